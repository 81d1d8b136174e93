//! The Python SDKs `openai`, `anthropic`, `google-genai` and `ollama`, by the small programs in `tests/clients`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use relay_sim::fixtures::{gemini as google, ollama as models};
use relay_sim::{Reply, Script, Seen};

use crate::answers::{self, WORD, chat, gemini, messages, ollama, responses, script, times};
use crate::scene::{SENDS, Tools, run};
use crate::{Client, Line, Ran, Via};

/// One way to ask for a streamed answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sdk {
    Chat,
    Responses,
    Anthropic,
    Genai,
    Ollama,
}

/// Those that send again by themselves.
pub(crate) const STAINLESS: [Sdk; 3] = [Sdk::Chat, Sdk::Responses, Sdk::Anthropic];

impl Client for Sdk {
    fn furnish(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn line(&self, tools: &Tools, _: &Path, base: Option<&str>) -> Line {
        let program: &[&str] = match self {
            Self::Chat => &["openai_stream.py", "chat"],
            Self::Responses => &["openai_stream.py", "responses"],
            Self::Anthropic => &["anthropic_stream.py", "messages"],
            Self::Genai => &["genai_stream.py"],
            Self::Ollama => &["ollama_stream.py"],
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
        let mut words = vec![tools.installed.join("python/bin/python").display().to_string()];
        words.push(folder.join(program[0]).display().to_string());
        words.extend(program[1..].iter().map(|word| (*word).to_owned()));
        let base = base.unwrap_or_default();
        let env = vec![
            ("OPENAI_BASE_URL", format!("{base}/v1")),
            ("OPENAI_API_KEY", "sk-proj-test".to_owned()),
            ("ANTHROPIC_BASE_URL", base.to_owned()),
            ("ANTHROPIC_API_KEY", "sk-ant-test".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", base.to_owned()),
            ("GEMINI_API_KEY", "AIza-test".to_owned()),
            ("OLLAMA_HOST", base.to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        Line { words, env }
    }
}

impl Sdk {
    fn good(self) -> fn(&Seen) -> Reply {
        match self {
            Self::Chat => chat::good,
            Self::Responses => responses::good,
            Self::Anthropic => messages::good,
            Self::Genai => gemini::good,
            Self::Ollama => ollama::good,
        }
    }

    fn error(self) -> String {
        match self {
            Self::Chat | Self::Responses => chat::error(),
            Self::Anthropic => messages::error(),
            Self::Genai => google::overloaded(),
            Self::Ollama => models::busy(),
        }
    }

    fn overloaded_in_stream(self) -> Reply {
        match self {
            Self::Chat => chat::overloaded_in_stream(),
            Self::Responses => responses::overloaded_flat_in_stream(),
            Self::Anthropic => messages::overloaded_in_stream(),
            Self::Genai => gemini::overloaded_in_stream(),
            Self::Ollama => ollama::failed_in_stream(),
        }
    }

    fn early_end(self) -> Reply {
        match self {
            Self::Chat => chat::early_end(),
            Self::Responses => responses::early_end(),
            Self::Anthropic => messages::early_end(),
            Self::Genai => Reply::sse(google::stream(WORD).into_iter().take(1)),
            Self::Ollama => ollama::early_end(),
        }
    }

    async fn run(self, via: Via, script: Script) -> Result<(Ran, Told)> {
        let ran = run(&self, via, script).await?;
        let told = Told::by(&ran)?;
        Ok((ran, told))
    }
}

/// What the program saw.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Told {
    /// The text of the answer.
    pub(crate) text: String,
    /// How many items the stream had.
    pub(crate) items: usize,
    /// The name of the exception that ended it.
    pub(crate) raised: Option<String>,
    /// The status that came with the exception.
    pub(crate) status: Option<i32>,
}

impl Told {
    pub(crate) fn by(ran: &Ran) -> Result<Self> {
        serde_json::from_str(&ran.out).with_context(|| format!("no JSON: {ran}"))
    }

    pub(crate) fn is_the_answer(&self) -> bool {
        self.text == WORD && self.raised.is_none()
    }
}

/// The SDKs take it for a stream without events: the program goes on with nothing, and no exception tells it.
#[tokio::test]
async fn error_in_a_200_is_silent_alone_and_waited_out_by_the_relay() -> Result<()> {
    for sdk in STAINLESS {
        let script = || script(times(2, &answers::error_in_200(sdk.error())), sdk.good());
        let (alone, told) = sdk.run(Via::Direct, script()).await?;
        assert_eq!((told.items, told.raised), (0, None), "{alone}");
        assert_eq!(alone.requests(), 1, "{alone}");

        let (relayed, told) = sdk.run(Via::Relay, script()).await?;
        assert!(told.is_the_answer(), "{relayed}");
        assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn they_trust_the_relay_over_https_by_ssl_cert_file_and_not_without() -> Result<()> {
    for sdk in [Sdk::Chat, Sdk::Responses, Sdk::Anthropic, Sdk::Genai, Sdk::Ollama] {
        let script = || script(times(2, &Reply::status(503).json(sdk.error())), sdk.good());
        let (trusting, told) = sdk.run(Via::RelayOverHttps("SSL_CERT_FILE"), script()).await?;
        assert!(told.is_the_answer() && trusting.sends() == 3, "{trusting}");
        let (other, told) = sdk.run(Via::RelayOverHttps("REQUESTS_CA_BUNDLE"), script()).await?;
        assert!(told.raised.is_some() && other.sends() == 0, "{other}");
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_in_the_stream() -> Result<()> {
    for sdk in STAINLESS {
        let script = || script(times(2, &sdk.overloaded_in_stream()), sdk.good());
        let (alone, told) = sdk.run(Via::Direct, script()).await?;
        assert_eq!(told.raised.is_none(), sdk == Sdk::Responses, "{alone}");
        assert_eq!((told.text.as_str(), alone.requests()), ("", 1), "{alone}");

        let (relayed, told) = sdk.run(Via::Relay, script()).await?;
        assert!(told.is_the_answer(), "{relayed}");
        assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn status_529_more_often_than_they_try() -> Result<()> {
    for sdk in STAINLESS {
        let busy = Reply::status(529).reason("").json(sdk.error());
        let script = || script(times(5, &busy), sdk.good());
        let (alone, told) = sdk.run(Via::Direct, script()).await?;
        assert_eq!((told.status, alone.requests()), (Some(529), 3), "{alone}");

        let (relayed, told) = sdk.run(Via::Relay, script()).await?;
        assert!(told.is_the_answer(), "{relayed}");
        assert_eq!((relayed.requests(), relayed.sends()), (1, 6), "{relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn storm_of_503_stays_within_one_budget() -> Result<()> {
    for sdk in STAINLESS {
        let storm = || answers::always(&answers::unavailable());
        let (alone, told) = sdk.run(Via::Direct, storm()).await?;
        assert_eq!((told.status, alone.requests()), (Some(503), 3), "{alone}");

        let (relayed, told) = sdk.run(Via::Relay, storm()).await?;
        assert_eq!((told.status, relayed.requests()), (Some(503), 1), "{relayed}");
        assert_eq!(relayed.sends(), SENDS, "{relayed}");
    }
    Ok(())
}

/// Half an answer passes for a whole one; the relay makes the break visible and sends nothing again.
#[tokio::test]
async fn early_end_is_silent_alone_and_an_exception_with_the_relay() -> Result<()> {
    for sdk in [STAINLESS.as_slice(), &[Sdk::Genai, Sdk::Ollama]].concat() {
        for (tidy, end) in [(true, sdk.early_end()), (false, sdk.early_end().fin_without_terminator())] {
            let script = || script(times(1, &end), sdk.good());
            let (alone, told) = sdk.run(Via::Direct, script()).await?;
            assert_eq!((told.text.as_str(), told.raised.is_none()), (WORD, tidy), "{alone}");
            assert_eq!(alone.requests(), 1, "{alone}");

            let (relayed, told) = sdk.run(Via::Relay, script()).await?;
            assert!(told.raised.is_some(), "{relayed}");
            assert_eq!((relayed.requests(), relayed.sends()), (1, 1), "{relayed}");
        }
    }
    Ok(())
}

/// Alone they send once, so that any refusal ends the program.
#[tokio::test]
async fn google_and_ollama_are_refused_twice() -> Result<()> {
    let rows = [
        (Sdk::Genai, gemini::overloaded(), 503),
        (Sdk::Genai, gemini::throttled("0.4s"), 429),
        (Sdk::Genai, gemini::overloaded_in_stream(), 503),
        (Sdk::Ollama, ollama::busy(), 503),
    ];
    for (sdk, refusal, status) in rows {
        let script = || script(times(2, &refusal), sdk.good());
        let (alone, told) = sdk.run(Via::Direct, script()).await?;
        assert!(told.raised.is_some() && told.text.is_empty(), "{alone}");
        assert_eq!((told.status, alone.requests()), (Some(status), 1), "{alone}");

        let (relayed, told) = sdk.run(Via::Relay, script()).await?;
        assert!(told.is_the_answer(), "{relayed}");
        assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    }
    Ok(())
}

/// The delay that the body names is a floor.
#[tokio::test]
async fn google_is_asked_again_when_its_body_said_so() -> Result<()> {
    let script = script(times(1, &gemini::throttled("1.5s")), gemini::good);
    let (relayed, told) = Sdk::Genai.run(Via::Relay, script).await?;
    assert!(told.is_the_answer(), "{relayed}");
    let at: Vec<_> = relayed.posts().map(|post| post.at).collect();
    assert!(at.len() == 2 && at[1] - at[0] >= Duration::from_millis(1500), "{relayed}");
    Ok(())
}

/// A line that tells a failure has no status, so the program sees another exception than for a full queue.
#[tokio::test]
async fn ollama_fails_by_the_first_line_twice() -> Result<()> {
    let script = || script(times(2, &ollama::failed_in_stream()), ollama::good);
    let (alone, told) = Sdk::Ollama.run(Via::Direct, script()).await?;
    assert_eq!((told.raised.as_deref(), told.items), (Some("ResponseError"), 0), "{alone}");

    let (relayed, told) = Sdk::Ollama.run(Via::Relay, script()).await?;
    assert!(told.is_the_answer(), "{relayed}");
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    Ok(())
}
