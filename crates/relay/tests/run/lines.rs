//! `steady-relay session`: a session for a program that asks by lines.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;

use relay_sim::{Client, Request, Script, Upstream};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::place::{Place, QUICK, SOON, busy, good, signal, taken_apart};

/// The program, and how it is asked.
struct Held {
    child: Child,
    input: Pin<Box<dyn AsyncWrite>>,
    output: Lines<BufReader<ChildStdout>>,
    ready: Value,
}

impl Held {
    async fn start(place: &Place, arguments: &[&str]) -> Self {
        let arguments: Vec<_> = ["session"].iter().chain(arguments).copied().collect();
        let mut child =
            place.program(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        Self::ready(child, Box::pin(input)).await
    }

    async fn ready(mut child: Child, input: Pin<Box<dyn AsyncWrite>>) -> Self {
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut held = Self { child, input, output, ready: Value::Null };
        held.ready = held.line().await;
        held
    }

    async fn line(&mut self) -> Value {
        let line = timeout(SOON, self.output.next_line()).await.expect("a line in time").unwrap();
        serde_json::from_str(&line.expect("a line")).unwrap()
    }

    async fn ask(&mut self, question: &Value) -> Value {
        self.input.write_all(format!("{question}\n").as_bytes()).await.unwrap();
        self.line().await
    }

    async fn base(&mut self, url: &str) -> String {
        let answer = self.ask(&json!({"id": 1, "ask": "base", "url": url})).await;
        answer["base"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Its exit code, once its input has ended.
    async fn ends(self) -> Option<i32> {
        let Self { mut child, input, .. } = self;
        drop(input);
        timeout(SOON, child.wait()).await.expect("it ends").unwrap().code()
    }
}

/// Asks for an answer by a base URL.
async fn asks(base: &str, path: &str) -> u16 {
    let (port, _) = taken_apart(base);
    let at = base.find("/~").unwrap();
    let request = Request::post(&format!("{}{path}", &base[at..])).header("authorization", "Bearer k");
    let request = request.json(r#"{"model":"gpt-x","stream":true,"input":"hi"}"#);
    let mut client = Client::connect(([127, 0, 0, 1], port).into()).await.unwrap();
    client.ask(&request).await.unwrap().status
}

#[tokio::test]
async fn a_program_has_a_relay_of_its_own_as_long_as_its_input_lasts() {
    let up = Upstream::start(Script::of([busy(), good()])).await.unwrap();
    let place = Place::new();
    place.settings(QUICK);
    let before = place.contents();
    let mut held = Held::start(&place, &["--own", "--client", "job.py"]).await;
    assert_eq!((&held.ready["v"], &held.ready["joined"]), (&json!(1), &json!(false)));
    let base = held.base(&up.url()).await;
    assert!(base.starts_with(held.ready["url"].as_str().unwrap()));
    assert_eq!(held.base(&up.url()).await, base, "it is told once");
    assert_eq!(asks(&base, "/v1/responses").await, 200);
    let seen = up.requests();
    // What a client sends goes there as it is.
    assert_eq!((seen.len(), seen[0].header("authorization")), (2, Some("Bearer k")));
    assert_eq!(seen[0].target, "/v1/responses");
    let stats = held.ask(&json!({"id": 7, "ask": "stats"})).await;
    assert_eq!(
        (&stats["id"], &stats["sums"]["recovered"], &stats["sums"]["sends"]),
        (&7.into(), &1.into(), &2.into())
    );
    let (port, _) = taken_apart(&base);
    assert_eq!(held.ends().await, Some(0));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the relay is gone with it");
    assert_eq!(place.contents(), before, "something was written to the home folder");
}

#[tokio::test]
async fn an_input_that_another_program_made_one_that_does_not_wait_is_waited_for() {
    let place = Place::new();
    // Both ends of tokio's pipe are such.
    let (input, end) = pipe::pipe().unwrap();
    let end: OwnedFd = end.into_nonblocking_fd().unwrap();
    let mut program = place.program(&["session", "--own"]);
    let child = program.stdin(end).stdout(Stdio::piped()).spawn().unwrap();
    drop(program);
    let mut held = Held::ready(child, Box::pin(input)).await;
    for id in 1..4 {
        assert_eq!(held.ask(&json!({"id": id, "ask": "stats"})).await["id"], json!(id));
    }
    assert_eq!(held.ends().await, Some(0));
}

#[tokio::test]
async fn a_relay_that_runs_is_joined_and_takes_one_more_upstream_while_calls_go_on() {
    let up = Upstream::start(good()).await.unwrap();
    let others = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    // Whoever names a service means that one, wherever the relay sends everybody else.
    let relay = place.serve(&others).await;
    let mut held = Held::start(&place, &["--client", "job.py"]).await;
    assert_eq!(held.ready["joined"], json!(true));
    let base = held.base(&up.url()).await;
    let (port, key) = taken_apart(&base);
    assert_eq!(port, relay.addr.port());
    // More than one session takes.
    let mut bases = Vec::new();
    for host in 2..40 {
        bases.push(held.base(&format!("http://127.0.0.{host}:1")).await);
        assert_eq!(asks(&base, "/v1/responses").await, 200, "{host}");
    }
    let keys: std::collections::BTreeSet<_> = bases.iter().map(|base| taken_apart(base).1).collect();
    assert_eq!(keys.len(), 3, "sixteen services for a session");
    let page = relay.session(&key).await.json();
    assert_eq!((&page["client"], &page["sums"]["all_sends"]), (&"job.py".into(), &38.into()));
    assert!(others.requests().is_empty());
    // The relay itself needs none in between.
    let itself =
        held.ask(&json!({"id": 2, "ask": "base", "url": format!("http://127.0.0.1:{port}/v1")})).await;
    assert_eq!(itself, json!({"id": 2, "itself": true}));
    assert_eq!(held.ends().await, Some(0));
    relay.forgets(&key).await;
    assert!(TcpStream::connect(relay.addr).await.is_ok(), "others use it");
}

#[tokio::test]
async fn a_relay_that_was_stopped_for_good_is_replaced_and_one_that_restarts_is_found_again() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let mut relay = place.serve_at(0, &up, &["--no-upstream"]).await;
    let port = relay.addr.port();
    let mut held = Held::start(&place, &[]).await;
    let base = held.base(&up.url()).await;
    relay.kill().await;
    let mut relay = place.serve_at(port, &up, &["--no-upstream"]).await;
    let lost = held.ask(&json!({"id": 1, "ask": "lost"})).await;
    assert_eq!((&lost["url"], &lost["joined"]), (&held.ready["url"], &json!(true)));
    assert_eq!(asks(&base, "/v1/responses").await, 200);
    relay.kill().await;
    let lost = held.ask(&json!({"id": 2, "ask": "lost"})).await;
    assert_eq!(lost["joined"], json!(false));
    let base = held.base(&up.url()).await;
    assert!(base.starts_with(lost["url"].as_str().unwrap()));
    assert_eq!(asks(&base, "/v1/responses").await, 200);
    assert_eq!(held.ends().await, Some(0));
}

#[tokio::test]
async fn ctrl_c_is_for_the_program_and_what_is_no_question_is_said() {
    let place = Place::new();
    let mut held = Held::start(&place, &["--own"]).await;
    signal(&held.child, Signal::INT);
    for (question, id, words) in [
        (json!({"id": 3, "ask": "more"}), json!(3), "this is no question: "),
        (json!([]), json!(null), "this is no question: "),
        (json!({"id": 4, "ask": "base", "url": "ftp://x"}), json!(4), "the URL "),
    ] {
        let answer = held.ask(&question).await;
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["error"].as_str().unwrap().starts_with(words), "{answer}");
    }
    // A line without an end is none.
    held.input.write_all(&[b'x'; 70_000]).await.unwrap();
    assert_eq!(held.ends().await, Some(0));
    let held = Held::start(&place, &["--own"]).await;
    signal(&held.child, Signal::TERM);
    assert_eq!(held.ends().await, Some(0));
    place.settings("[relay]\nprot = 1\n");
    let held = Held::start(&place, &[]).await;
    assert!(held.ready["error"].as_str().unwrap().contains("`prot`"), "{}", held.ready);
    assert_eq!(held.ends().await, Some(2));
}

#[tokio::test]
async fn what_is_no_question_is_answered_and_ends_nothing() {
    let place = Place::new();
    place.settings(QUICK);
    let mut held = Held::start(&place, &["--own", "--client=-job.py"]).await;
    let long = format!("{}\n", "x".repeat(200_000));
    for (line, why) in [
        (&b"\n"[..], "EOF while parsing"),
        (b"\xff\xfe\n", "no text in UTF-8"),
        (long.as_bytes(), "longer than 64 KiB"),
        (b"{\"id\":[1]}\n", "missing field `ask`"),
    ] {
        held.input.write_all(line).await.unwrap();
        let told = held.line().await;
        assert!(told["error"].as_str().is_some_and(|error| error.contains(why)), "{told}");
    }
    assert_eq!(held.ask(&json!({"id": "s", "ask": "stats"})).await["id"], "s");
    // There is room for so many services, and others are told of that.
    for number in 0..256 {
        held.base(&format!("http://127.0.0.1:1/{number}")).await;
    }
    let told = held.ask(&json!({"id": null, "ask": "base", "url": "http://127.0.0.1:2"})).await;
    assert!(told["error"].as_str().is_some_and(|error| error.contains("256 services already")), "{told}");
    held.base("http://127.0.0.1:1/7").await;
    assert_eq!(held.ends().await, Some(0));
}

#[tokio::test]
async fn a_command_line_that_is_wrong_is_said_in_a_line_too() {
    let place = Place::new();
    let mut command = place.program(&["session", "--clietn", "x"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(line["error"].as_str().is_some_and(|error| error.contains("--clietn")), "{line}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--clietn"));
    assert_eq!(output.status.code(), Some(2));
}
