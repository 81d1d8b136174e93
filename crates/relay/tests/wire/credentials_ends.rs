//! Refresh tokens that are good once, where a relay ends or is set otherwise in the middle of it.

use std::time::Duration;

use relay_core::config::{Credential, Source};
use relay_sim::{Reply, Script, Signal as Door, Upstream};
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::credentials::{bare, first_token, issuer, keys_of, service, with};
use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON};

const RENEWING: &str = "a credential is being refreshed";

/// Issues `at-1` and `rt-1` once the door is open.
async fn slow(door: &Door) -> Upstream {
    let door = door.clone();
    let issued = r#"{"access_token":"at-1","expires_in":3600,"refresh_token":"rt-1"}"#;
    Upstream::start(Script::by(move |_, _| Reply::status(200).json(issued).when(door.clone()))).await.unwrap()
}

/// The program in this folder, whose one upstream has a credential of this issuer.
fn set(home: &Folder, service: &Upstream, issuer: &Upstream) -> Command {
    let text = format!(
        "[timeouts]\nconnect = \"300ms\"\n[relay]\nupstream = \"mine\"\nstate_dir = \"state\"\n[upstream.mine]\nurl = \"{}\"\ncredential = \"mine\"\n\
         [credential.mine]\ntoken_url = \"{}/oauth/token\"\nrefresh_token = \"rt-0\"\n",
        service.url(),
        issuer.url()
    );
    let file = home.write("relay.toml", &text);
    let mut command = program(home);
    command.arg("--config").arg(file);
    command
}

fn send(home: &Folder, service: &Upstream, issuer: &Upstream, more: &[&str]) -> Child {
    let mut command = set(home, service, issuer);
    let state = home.path().join("state");
    let command =
        command.arg("--state-dir").arg(state).args(["send", "/v1/responses", "-d", "{}"]).args(more);
    command.stderr(std::process::Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Waits until it says this on standard error; whatever it says later stays unread.
async fn says(child: &mut Child, words: &str) {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(words) {
                return true;
            }
        }
        false
    };
    assert!(timeout(SOON, said).await.unwrap(), "never said {words:?}");
    child.stderr = Some(lines.into_inner().into_inner());
}

fn is_kept(home: &Folder) {
    let kept = home.read("state/credentials/mine.json");
    assert!(kept.contains("rt-1"), "{kept}");
}

#[tokio::test]
async fn a_relay_that_is_stopped_keeps_what_is_being_issued() {
    let (door, home) = (Door::new(), Folder::new());
    let (service, issuer) = (service(&["at-1"], 401).await, slow(&door).await);
    let mut command = set(&home, &service, &issuer);
    let mut relay = Serving::start(command.args(["--listen", "127.0.0.1", "--port", "0"])).await;
    let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
    client.send(&bare()).await.unwrap();
    assert!(issuer.wait_for_requests(1, SOON).await);
    relay.signal(Signal::TERM);
    relay.until(RENEWING).await;
    door.release();
    assert_eq!(relay.end().await.code(), Some(0), "{}", relay.said());
    is_kept(&home);
    assert_eq!(service.requests().len(), 0, "the call itself was over");
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_it() {
    let home = Folder::new();
    let (service, issuer) = (service(&["at-1"], 401).await, slow(&Door::new()).await);
    let mut command = set(&home, &service, &issuer);
    let mut relay = Serving::start(command.args(["--listen", "127.0.0.1", "--port", "0"])).await;
    let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
    client.send(&bare()).await.unwrap();
    assert!(issuer.wait_for_requests(1, SOON).await);
    relay.signal(Signal::TERM);
    relay.until(RENEWING).await;
    relay.signal(Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0), "{}", relay.said());
}

#[tokio::test]
async fn send_that_is_ended_or_gives_up_keeps_what_is_being_issued() {
    let signals = [(Some(Signal::INT), 130), (Some(Signal::TERM), 143), (None, 3)];
    for (ends, code) in signals {
        let (door, home) = (Door::new(), Folder::new());
        let (service, issuer) = (service(&["at-1"], 401).await, slow(&door).await);
        let more: &[&str] = if ends.is_some() { &[] } else { &["-H", "x-steady-patience: 10ms"] };
        let mut child = send(&home, &service, &issuer, more);
        assert!(issuer.wait_for_requests(1, SOON).await);
        ends.into_iter().for_each(|ends| signal(&child, ends));
        says(&mut child, RENEWING).await;
        door.release();
        let ended = timeout(SOON, child.wait()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(code));
        is_kept(&home);
    }
}

#[tokio::test]
async fn a_second_interrupt_ends_send_at_once() {
    let home = Folder::new();
    let (service, issuer) = (service(&["at-1"], 401).await, slow(&Door::new()).await);
    let mut child = send(&home, &service, &issuer, &[]);
    assert!(issuer.wait_for_requests(1, SOON).await);
    signal(&child, Signal::INT);
    says(&mut child, RENEWING).await;
    signal(&child, Signal::INT);
    assert_eq!(timeout(SOON, child.wait()).await.unwrap().unwrap().code(), Some(130));
}

/// How often tokens were issued for three calls, before each of which the settings change but for what issued them.
async fn issued(lifetime: u64) -> usize {
    let (service, issuer) = (service(&["at-1", "at-2", "at-3"], 401).await, issuer(lifetime).await);
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    config.credentials_dir = None;
    let bench = Bench::with(config.clone()).await;
    for _ in 0..3 {
        assert_eq!(bench.ask(&bare()).await.status, 200, "{:?}", keys_of(&service));
        let Some(Credential { source: Source::OAuth(oauth), .. }) = config.credentials.get_mut("mine") else {
            unreachable!("it is one of tokens")
        };
        oauth.before += Duration::from_secs(1);
        bench.reload(config.clone());
    }
    issuer.requests().len()
}

#[tokio::test]
async fn without_a_folder_too_tokens_outlive_a_reload() {
    assert_eq!(issued(3600).await, 1);
    // Each of these is over when the next call comes, and the refresh token that came with it is good once.
    assert_eq!(issued(2).await, 3);
}
