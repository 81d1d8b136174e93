//! The Python SDKs `openai` and `anthropic`, by the small programs in `tests/clients`.

use std::path::Path;

use anyhow::{Context as _, Result};
use relay_sim::{Reply, Script, Seen};

use crate::answers::{self, WORD, chat, messages, responses, script, times};
use crate::scene::{SENDS, Tools, run};
use crate::{Client, Line, Ran, Via};

/// One way to ask for a streamed answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sdk {
    Chat,
    Responses,
    Anthropic,
}

const ALL: [Sdk; 3] = [Sdk::Chat, Sdk::Responses, Sdk::Anthropic];

impl Client for Sdk {
    fn furnish(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn line(&self, tools: &Tools, _: &Path, base: Option<&str>) -> Line {
        let (program, api) = match self {
            Self::Chat => ("openai_stream.py", "chat"),
            Self::Responses => ("openai_stream.py", "responses"),
            Self::Anthropic => ("anthropic_stream.py", "messages"),
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
        let python = tools.installed.join("python/bin/python").display().to_string();
        let words = vec![python, folder.join(program).display().to_string(), api.to_owned()];
        let base = base.unwrap_or_default();
        let env = vec![
            ("OPENAI_BASE_URL", format!("{base}/v1")),
            ("OPENAI_API_KEY", "sk-proj-test".to_owned()),
            ("ANTHROPIC_BASE_URL", base.to_owned()),
            ("ANTHROPIC_API_KEY", "sk-ant-test".to_owned()),
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
        }
    }

    fn error(self) -> String {
        match self {
            Self::Chat | Self::Responses => chat::error(),
            Self::Anthropic => messages::error(),
        }
    }

    fn overloaded_in_stream(self) -> Reply {
        match self {
            Self::Chat => chat::overloaded_in_stream(),
            Self::Responses => responses::overloaded_flat_in_stream(),
            Self::Anthropic => messages::overloaded_in_stream(),
        }
    }

    fn early_end(self) -> Reply {
        match self {
            Self::Chat => chat::early_end(),
            Self::Responses => responses::early_end(),
            Self::Anthropic => messages::early_end(),
        }
    }

    async fn run(self, via: Via, script: Script) -> Result<(Ran, Told)> {
        let ran = run(&self, via, script).await?;
        let told = serde_json::from_str(&ran.out).with_context(|| format!("no JSON: {ran}"))?;
        Ok((ran, told))
    }
}

/// What the program saw.
#[derive(Debug, serde::Deserialize)]
struct Told {
    /// The text of the answer.
    text: String,
    /// How many items the stream had.
    items: usize,
    /// The name of the exception that ended it.
    raised: Option<String>,
    /// The status that came with the exception.
    status: Option<u16>,
}

impl Told {
    fn is_the_answer(&self) -> bool {
        self.text == WORD && self.raised.is_none()
    }
}

/// The SDKs take it for a stream without events: the program goes on with nothing, and no exception tells it.
#[tokio::test]
async fn error_in_a_200_is_silent_alone_and_waited_out_by_the_relay() -> Result<()> {
    for sdk in ALL {
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
async fn overloaded_in_the_stream() -> Result<()> {
    for sdk in ALL {
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
    for sdk in ALL {
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
    for sdk in ALL {
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
    for sdk in ALL {
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
