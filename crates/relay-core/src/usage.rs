//! The tokens that an answer says it took, read out of a copy of what passes. Services spell it in a few ways:
//!
//! | spelling | by |
//! |---|---|
//! | `"usage":{"input_tokens","output_tokens","input_tokens_details":{"cached_tokens"}}` | OpenAI Responses |
//! | `"usage":{"input_tokens","output_tokens","cache_read_input_tokens","cache_creation_input_tokens"}` | Anthropic Messages, where what was cached is counted beside the input |
//! | `"usage":{"prompt_tokens","completion_tokens","prompt_tokens_details":{"cached_tokens"}}` | OpenAI Chat and what follows it |
//! | `"usageMetadata":{"promptTokenCount","candidatesTokenCount","thoughtsTokenCount","cachedContentTokenCount"}` | Gemini |
//! | `"prompt_eval_count"`, `"eval_count"` at the top | Ollama |

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Those of the request, with what was read from a cache.
    pub input: u64,
    /// Those of them that were read from a cache.
    pub cached: u64,
    /// Those of the answer, thinking among them.
    pub output: u64,
}

impl Usage {
    /// The larger of each: a stream counts up as it goes.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            output: self.output.max(other.output),
        }
    }
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// All spellings of the object; no service uses two of them.
#[derive(Deserialize)]
struct Said {
    #[serde(default, alias = "prompt_tokens", alias = "promptTokenCount", alias = "prompt_eval_count")]
    input_tokens: Option<u64>,
    #[serde(default, alias = "completion_tokens", alias = "candidatesTokenCount", alias = "eval_count")]
    output_tokens: Option<u64>,
    #[serde(default, rename = "thoughtsTokenCount")]
    thoughts: Option<u64>,
    #[serde(default, alias = "prompt_tokens_details")]
    input_tokens_details: Option<Details>,
    #[serde(default, rename = "cachedContentTokenCount")]
    cached_content: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

impl Said {
    fn usage(self) -> Option<Usage> {
        let (read, made) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        let beside = read.unwrap_or(0).saturating_add(made.unwrap_or(0));
        let told = self.input_tokens.is_some() || self.output_tokens.is_some();
        let within = self.input_tokens_details.and_then(|details| details.cached_tokens);
        told.then(|| Usage {
            input: self.input_tokens.unwrap_or(0).saturating_add(beside),
            cached: read.or(within).or(self.cached_content).unwrap_or(0),
            output: self.output_tokens.unwrap_or(0).saturating_add(self.thoughts.unwrap_or(0)),
        })
    }
}

/// The beginning of the key before the object, and its two ends. No text inside JSON can have it: its quotation marks
/// would be escaped.
const KEY: &[u8] = b"\"usage";
const ENDS: [&[u8]; 2] = [b"\"", b"Metadata\""];
/// Made once: it is asked for at every event. Forwards, which is the faster way where there is none.
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KEY));
/// What Ollama's last line has.
const COUNT: &[u8] = b"\"eval_count\"";

/// What an event, or a whole answer, says of tokens; the last word of it counts.
#[must_use]
pub fn usage(json: &[u8]) -> Option<Usage> {
    if let Some(at) = FINDER.find_iter(json).last() {
        let rest = &json[at + KEY.len()..];
        let rest = ENDS.iter().find_map(|end| rest.strip_prefix(*end))?;
        let value = rest.trim_ascii_start().strip_prefix(b":")?;
        return serde_json::Deserializer::from_slice(value).into_iter::<Said>().next()?.ok()?.usage();
    }
    memchr::memmem::find(json, COUNT)?;
    serde_json::from_slice::<Said>(json).ok()?.usage()
}

#[cfg(test)]
mod tests {
    use super::{Usage, usage};

    const fn told(input: u64, cached: u64, output: u64) -> Option<Usage> {
        Some(Usage { input, cached, output })
    }

    #[test]
    fn every_spelling_is_read() {
        let responses = br#"{"type":"response.completed","response":{"output":[{"text":"\"usage\":{\"input_tokens\":9}"}],
            "usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":7,"total_tokens":127}}}"#;
        assert_eq!(usage(responses), told(120, 100, 7));
        let begun = br#"{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":5,"output_tokens":1}}}"#;
        assert_eq!(usage(begun), told(48, 40, 1));
        let ended = br#"{"type":"message_delta","delta":{},"usage":{"output_tokens":12}}"#;
        assert_eq!(usage(begun).unwrap().max(usage(ended).unwrap()), told(48, 40, 12).unwrap());
        let chat = br#"{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;
        assert_eq!(usage(chat), told(8, 4, 2));
        let gemini = br#"{"candidates":[],"usageMetadata" : {"promptTokenCount":5,"candidatesTokenCount":6,"thoughtsTokenCount":1}}"#;
        assert_eq!(usage(gemini), told(5, 0, 7));
        assert_eq!(usage(br#"{"done":true,"prompt_eval_count":26,"eval_count":298}"#), told(26, 0, 298));
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        for text in [
            r#"{"usage":null}"#,
            r#"{"usage":{}}"#,
            r#"{"usage":"#,
            r#"{"usage":{"input_tokens":-1}}"#,
            r#"{"text":"\"usage\":{\"input_tokens\":1}"}"#,
            r#"{"x":"eval_count"}"#,
            "",
        ] {
            assert_eq!(usage(text.as_bytes()), None, "{text}");
        }
    }
}
