//! LiteLLM behind the relay: a gateway that translates what clients speak (Messages, Responses, Chat Completions) into
//! Chat Completions for a service that speaks nothing else. It sends nothing again by itself.
//!
//! ```text
//!  client --- Front --- relay --- LiteLLM --- Service
//! ```

use std::collections::VecDeque;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use relay_sim::fixtures::chat as completions;
use relay_sim::{Refused, Reply, Script, Seen, Upstream};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use crate::answers::{self, WORD, chat, messages, times};
use crate::scene::{Folder, LONGEST, Relay, SETTINGS, Tools, run_at};
use crate::sdks::{STAINLESS, Sdk, Told};
use crate::{Client, Line, Ran, Via};

/// A client that asks for a stream, or for the whole answer at once.
struct Asking {
    sdk: Sdk,
    whole: bool,
}

impl Client for Asking {
    fn furnish(&self, home: &Path) -> Result<()> {
        self.sdk.furnish(home)
    }

    fn line(&self, tools: &Tools, home: &Path, base: Option<&str>) -> Line {
        let mut line = self.sdk.line(tools, home, base);
        line.words.extend(self.whole.then(|| "whole".to_owned()));
        line
    }
}

/// What speaks Chat Completions and nothing else. It fails as it is told, and then answers.
struct Service {
    upstream: Upstream,
    failures: Arc<Mutex<VecDeque<Reply>>>,
}

impl Service {
    async fn start() -> Result<Self> {
        let failures: Arc<Mutex<VecDeque<Reply>>> = Arc::default();
        let next = Arc::clone(&failures);
        let script = Script::by(move |seen, _| match seen.method.as_str() {
            // LiteLLM asks for the list of models when it starts.
            "GET" => Reply::status(404),
            _ => next
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
                .unwrap_or_else(|| answer(seen)),
        });
        Ok(Self { upstream: Upstream::start(script).await?, failures })
    }

    /// Runs a client, with these failures before any answer; says what it sent here too.
    async fn asked(
        &self,
        client: &dyn Client,
        (via, addr): (Via, SocketAddr),
        failures: Vec<Reply>,
    ) -> Result<(Ran, Told)> {
        let before = self.upstream.requests().len();
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = failures.into();
        let mut ran = run_at(client, via, addr).await?;
        ran.seen = self.upstream.requests().split_off(before);
        let told = Told::by(&ran)?;
        Ok((ran, told))
    }
}

fn answer(seen: &Seen) -> Reply {
    match (seen.path(), seen.json()["stream"] == true) {
        ("/v1/chat/completions", true) => chat::good(seen),
        ("/v1/chat/completions", false) => Reply::status(200).json(completions::completion(WORD)),
        _ => Reply::status(404),
    }
}

/// LiteLLM, killed when dropped.
struct Gateway {
    addr: SocketAddr,
    _process: Child,
    _folder: Folder,
}

impl Gateway {
    /// On a port that nobody uses.
    async fn to(service: &Service) -> Result<Self> {
        Self::on(Refused::port()?.release(), service).await
    }

    async fn on(port: u16, service: &Service) -> Result<Self> {
        let (tools, folder) = (Tools::find()?, Folder::new()?);
        let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/gateway.yaml");
        let mut command = Command::new(tools.installed.join("gateway/bin/litellm"));
        command.arg("--config").arg(settings).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.env_clear().env("PATH", tools.path()).env("HOME", folder.home()).current_dir(folder.work());
        command.envs([
            ("SERVICE", format!("{}/v1", service.upstream.url()).as_str()),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("cannot start LiteLLM")?;
        let mut lines = BufReader::new(process.stderr.take().context("its stderr is piped")?).lines();
        let mut said = String::new();
        timeout(LONGEST, async {
            while let Some(line) = lines.next_line().await? {
                said.push_str(&line);
                said.push('\n');
                if line.contains("Uvicorn running on") {
                    return Ok(());
                }
            }
            bail!("LiteLLM ended: {said}")
        })
        .await
        .context("LiteLLM does not start")??;
        tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
        Ok(Self { addr: ([127, 0, 0, 1], port).into(), _process: process, _folder: folder })
    }
}

fn clients() -> impl Iterator<Item = Asking> {
    STAINLESS.into_iter().flat_map(|sdk| [false, true].map(|whole| Asking { sdk, whole }))
}

/// What the service says when it is full, in words that have a code there.
fn full() -> Reply {
    Reply::status(503).json(chat::error())
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
    Reply::status(status).json(json!({ "error": error }))
}

#[tokio::test]
async fn answers_pass_whole_and_in_streams_and_a_refusal_is_waited_out() -> Result<()> {
    let service = Service::start().await?;
    let gateway = Gateway::to(&service).await?;
    for client in clients() {
        for failures in [0, 2] {
            let failures = times(failures, &full());
            let sends = failures.len() + 1;
            let (relayed, told) = service.asked(&client, (Via::Relay, gateway.addr), failures).await?;
            assert!(told.is_the_answer(), "{relayed}");
            assert_eq!((relayed.requests(), relayed.sends()), (1, sends), "{relayed}");
            let key = |seen: &Seen| seen.header("authorization") == Some("Bearer sk-proj-of-the-service");
            assert!(relayed.posts().all(key), "{relayed}");
        }
    }
    Ok(())
}

/// LiteLLM hands the time on in a header of its own, and in the message to those that speak Messages.
#[tokio::test]
async fn a_throttle_is_waited_out_for_as_long_as_the_service_said() -> Result<()> {
    let service = Service::start().await?;
    let gateway = Gateway::to(&service).await?;
    let told = error(429, "rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s.");
    let header = error(429, "rate_limit_exceeded", "Rate limit reached.").header("retry-after", "2");
    let rows =
        [(Sdk::Anthropic, told, 1500), (Sdk::Responses, header.clone(), 2000), (Sdk::Chat, header, 2000)];
    for (sdk, refusal, least) in rows {
        let failures = times(1, &refusal);
        let (relayed, told) = service.asked(&sdk, (Via::Relay, gateway.addr), failures).await?;
        assert!(told.is_the_answer(), "{relayed}");
        let at: Vec<_> = relayed.posts().map(|post| post.at).collect();
        assert!(at.len() == 2 && at[1] - at[0] >= Duration::from_millis(least), "{relayed}");
    }
    Ok(())
}

/// LiteLLM has begun its own stream by then, and tells of a failure without a code.
#[tokio::test]
async fn overloaded_in_the_stream_of_the_service() -> Result<()> {
    let service = Service::start().await?;
    let gateway = Gateway::to(&service).await?;
    for sdk in [Sdk::Anthropic, Sdk::Responses] {
        let failures = || times(4, &chat::overloaded_in_stream());
        let (alone, told) = service.asked(&sdk, (Via::Direct, gateway.addr), failures()).await?;
        assert!(!told.is_the_answer(), "{alone}");
        assert_eq!(alone.requests(), 1, "{alone}");

        // More often than a failure of unknown kind is sent again.
        let (relayed, told) = service.asked(&sdk, (Via::Relay, gateway.addr), failures()).await?;
        assert!(told.is_the_answer(), "{relayed}");
        assert_eq!((relayed.requests(), relayed.sends()), (1, 5), "{relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn definite_errors_go_back_at_once() -> Result<()> {
    let service = Service::start().await?;
    let gateway = Gateway::to(&service).await?;
    let spent = "You exceeded your current quota, please check your plan and billing details.";
    let rows = [
        (error(400, "context_length_exceeded", "This model's maximum context length is 10 tokens."), 400),
        (error(401, "invalid_api_key", "Incorrect API key provided."), 401),
        (error(429, "insufficient_quota", spent), 429),
    ];
    for sdk in STAINLESS {
        for (refusal, status) in &rows {
            let failures = times(100, refusal);
            let (relayed, told) = service.asked(&sdk, (Via::Relay, gateway.addr), failures).await?;
            assert_eq!((told.status, relayed.waits_at_the_relay()), (Some(*status), 0), "{relayed}");
            // These clients send a 429 again by themselves.
            let requests = if *status == 429 { 3 } else { 1 };
            assert_eq!((relayed.requests(), relayed.sends()), (requests, requests), "{relayed}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_gateway_that_is_not_up_yet_is_waited_for() -> Result<()> {
    let service = Service::start().await?;
    let (tools, folder, port) = (Tools::find()?, Folder::new()?, Refused::port()?.release());
    // LiteLLM takes as long as the machine lets it.
    let settings = SETTINGS.replacen("interactive\"", "patient\"", 1);
    fs::write(folder.settings(), settings)?;
    let relay = Relay::start(&tools, Some(&folder.settings()), ([127, 0, 0, 1], port).into()).await?;
    let asked = service.asked(&Sdk::Anthropic, (Via::Direct, relay.addr), Vec::new());
    let comes_up = async {
        let mut looks = interval(Duration::from_millis(20));
        while !relay.log().contains("[retry]") {
            looks.tick().await;
        }
        Gateway::on(port, &service).await
    };
    let (asked, gateway) = tokio::join!(asked, timeout(LONGEST, comes_up));
    let (ran, told) = asked?;
    let _gateway = gateway.context("nothing is waited for")??;
    assert!(told.is_the_answer(), "{ran}\n{}", relay.log());
    assert_eq!((ran.requests(), ran.sends()), (1, 1), "{ran}");
    Ok(())
}

/// Each of the two stands in for the other. The client's key is for the first of them.
#[tokio::test]
async fn a_gateway_and_a_service_that_is_asked_without_one_are_a_pool() -> Result<()> {
    let service = Service::start().await?;
    let gateway = Gateway::to(&service).await?;
    for direct_is_first in [true, false] {
        let busy =
            if direct_is_first { times(1, &Reply::status(529).json(messages::error())) } else { Vec::new() };
        let direct = Upstream::start(answers::script(busy, messages::good)).await?;
        let mut members = [
            ("direct", direct.url(), "sk-ant-of-the-direct-one"),
            ("translated", format!("http://{}", gateway.addr), "sk-of-the-gateway"),
        ];
        if !direct_is_first {
            members.reverse();
        }
        let mut settings = SETTINGS.replacen("[relay]\n", "[relay]\nupstream = \"main\"\n", 1);
        for (name, url, key) in &members {
            settings += &format!("\n[upstream.{name}]\nurl = \"{url}\"\napi_key = \"{key}\"\n");
        }
        settings += &format!("\n[pool.main]\nmembers = [\"{}\", \"{}\"]\n", members[0].0, members[1].0);
        let (tools, folder) = (Tools::find()?, Folder::new()?);
        fs::write(folder.settings(), settings)?;
        let relay = Relay::launch(&tools, Some(&folder.settings()), &["--port", "0"], direct.addr()).await?;
        let failures = if direct_is_first { Vec::new() } else { times(1, &full()) };
        let (ran, told) = service.asked(&Sdk::Anthropic, (Via::Direct, relay.addr), failures).await?;
        let log = relay.log();
        assert!(told.is_the_answer() && log.contains("[moved]"), "{ran}\n{log}");
        let asked = direct.requests();
        assert_eq!((ran.requests(), ran.sends(), asked.len()), (1, 1, 1), "{ran}\n{log}");
        let key = if direct_is_first { "Bearer sk-ant-test" } else { "Bearer sk-ant-of-the-direct-one" };
        assert_eq!(asked[0].header("authorization"), Some(key), "{log}");
    }
    Ok(())
}
