//! What in a request only the service understands that it was made for: things it keeps, things it has sealed, and
//! keys that it is to use.
//!
//! What it is not: the guard itself (that is [`crate::bound`]). It reads the whole body, where only a call that could go
//! to more than one upstream is looked at.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{NameIn, is_full};

/// Members that bind where they hold anything, as the [`KEYS`] do.
const BINDING: &[&str] = &[
    // OpenAI: what it keeps, and what it has sealed.
    "previous_response_id",
    "conversation",
    "background",
    "encrypted_content",
    "file_id",
    "file_ids",
    "vector_store_ids",
    "container",
    "container_id",
    "thread_id",
    "assistant_id",
    // Anthropic: thoughts are signed, the hidden ones sealed.
    "signature",
    // Gemini.
    "cachedContent",
    "cached_content",
    "fileUri",
    "file_uri",
    "thoughtSignature",
    "thought_signature",
    "vertexRagStore",
    "vertex_rag_store",
    // OpenRouter: thoughts, some of them sealed.
    "reasoning_details",
];

/// Members with keys for somebody else, which the service is to show there: who holds them is the client's choice, and that
/// is the place of its own credential.
const KEYS: &[&str] = &[
    "mcp_servers",
    "data_sources",
    "dataSources",
    "server_url",
    "connector_id",
    "authorization_token",
    "authorization",
    "authentication",
    "authConfig",
    "auth_config",
    "apiAuth",
    "api_auth",
    "api_key",
    "apiKey",
    "access_token",
    "client_secret",
    "password",
    "headers",
    "extra_headers",
    "extra_body",
    "aws_secret_access_key",
    "aws_session_token",
    "vertex_credentials",
];

/// Whether what binds is a key for somebody else.
#[must_use]
pub fn is_key(member: &str) -> bool {
    KEYS.contains(&member)
}

/// Types of items and blocks that bind by being there.
const KINDS: &[&str] = &[REFERENCE, "redacted_thinking", "image_generation_call"];

/// An item of `input` that is nothing but the id of one that is kept. Its type may be left out.
const REFERENCE: &str = "item_reference";

/// An answer that was spoken, which is named by its id. What `audio` holds where one is asked for is no object with an
/// id, unless the voice is one that the service keeps.
const AUDIO: &str = "audio";

/// A thought: what is sent back of it is a summary, and the service looks the rest up by the id.
const THOUGHT: &str = "reasoning";

/// What is asked of each item by itself.
const PARTS: &[&str] = &["type", "role", "id", "prompt", "input", AUDIO, "voice"];

/// What is the client's own below these: schemas and the arguments of tools.
const OWN: &[&str] = &[
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "schema",
    "responseSchema",
    "responseJsonSchema",
    "arguments",
    "args",
    "metadata",
    "client_metadata",
];

/// All names that are looked for, in one list, since a name is read once.
const NAMES: &[&str] = &{
    let lists = [BINDING, KEYS, OWN, PARTS];
    let mut names = [""; BINDING.len() + KEYS.len() + OWN.len() + PARTS.len()];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut from = 0;
        while from < lists[list].len() {
            names[at] = lists[list][from];
            (at, from) = (at + 1, from + 1);
        }
        list += 1;
    }
    names
};

/// The member of the JSON text `body`, at any depth, that binds it to the service that it was made for: the first with a
/// key for somebody else, or else the first.
///
/// # Errors
/// Where it is no JSON, or nested deeper than serde_json follows (128).
pub fn binding_member(body: &[u8]) -> Binds {
    let mut found = None;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let walk = Walk { found: &mut found, at: Place::Anywhere, left: TEXTS };
    let read = walk.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    read.map(|()| found).map_err(|_not_json| Unreadable)
}

/// The member that binds a body, if one does.
pub type Binds = Result<Option<&'static str>, Unreadable>;

/// What is no JSON, of which nobody can say what binds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// Where a value stands, as far as that says what its id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// It is the input, whose items are next.
    Input,
    /// It is an item of the input.
    Item,
    /// It is all that stands for something that was spoken, or for a voice.
    Audio,
}

struct Walk<'f> {
    found: &'f mut Option<&'static str>,
    at: Place,
    /// So many texts within a text may still be looked into: each is read with a limit of its own for how deep it is.
    left: u8,
}

/// Nobody puts an input into an input. Whoever does is not understood.
const TEXTS: u8 = 4;

impl Walk<'_> {
    /// A key before anything else: nobody but the client's own place gets it.
    fn finds(&mut self, what: &'static str) {
        if self.found.is_none_or(|known| is_key(what) && !is_key(known)) {
            *self.found = Some(what);
        }
    }

    fn inside(&mut self, text: &str, at: Place) {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let within = self.left.checked_sub(1);
        let read = within.map(|left| Walk { found: self.found, at, left }.deserialize(&mut deserializer));
        if !matches!(read, Some(Ok(()))) {
            // It was read as a whole before, so it is only deeper than it may be.
            self.finds("input");
        }
    }
}

/// What an object says of itself. Of a member that is there twice the last one counts, as it does for most readers, but
/// for an id.
#[derive(Default)]
struct Said {
    is_typed: bool,
    is_thought: bool,
    has_role: bool,
    has_id: bool,
}

impl Said {
    /// What binds an object of which that is said.
    const fn binds(&self, at: Place) -> Option<&'static str> {
        match at {
            Place::Item if self.has_id && self.is_thought => Some(THOUGHT),
            Place::Item if self.has_id && !self.is_typed && !self.has_role => Some(REFERENCE),
            Place::Audio if self.has_id => Some(AUDIO),
            Place::Anywhere | Place::Input | Place::Item | Place::Audio => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut said = Said::default();
        while let Some(name) = map.next_key_seed(NameIn(NAMES))? {
            match name {
                Some(own) if OWN.contains(&own) => _ = map.next_value::<IgnoredAny>()?,
                Some("type") => {
                    let kind = map.next_value::<&RawValue>()?.get();
                    said.is_typed = is_full(kind);
                    let kind: Option<String> = serde_json::from_str(kind).ok();
                    said.is_thought = kind.as_deref() == Some(THOUGHT);
                    let is = |known: &&&str| kind.as_deref() == Some(**known);
                    if let Some(kind) = KINDS.iter().find(is) {
                        self.finds(kind);
                    }
                }
                // A text to go on from, or the name of one that is kept.
                Some("prompt") => {
                    let prompt = map.next_value::<&RawValue>()?.get();
                    if prompt.starts_with('{') && is_full(prompt) {
                        self.finds("prompt");
                    }
                }
                // What is asked, or what a tool was called with.
                Some("input") => {
                    let input = map.next_value::<&RawValue>()?.get();
                    if !input.starts_with('{') {
                        self.inside(input, Place::Input);
                    }
                }
                Some(name @ ("role" | "id" | AUDIO | "voice")) => {
                    let value = map.next_value::<&RawValue>()?.get();
                    match name {
                        "role" => said.has_role = is_full(value),
                        "id" => said.has_id |= is_full(value),
                        _spoken => {}
                    }
                    if value.starts_with(['{', '[']) {
                        let is_spoken = matches!(name, AUDIO | "voice");
                        self.inside(value, if is_spoken { Place::Audio } else { Place::Anywhere });
                    }
                }
                Some(name) => {
                    if is_full(map.next_value::<&RawValue>()?.get()) {
                        self.finds(name);
                    }
                }
                None => {
                    map.next_value_seed(Walk { found: self.found, at: Place::Anywhere, left: self.left })?
                }
            }
        }
        if let Some(what) = said.binds(self.at) {
            self.finds(what);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let at = if self.at == Place::Input { Place::Item } else { Place::Anywhere };
        while seq.next_element_seed(Walk { found: self.found, at, left: self.left })?.is_some() {}
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(body: &str) -> Option<&'static str> {
        binding_member(body.as_bytes()).unwrap()
    }

    #[test]
    fn what_a_service_keeps_or_has_sealed_binds() {
        let rows = [
            (r#"{"previous_response_id":"r"}"#, "previous_response_id"),
            (r#"{"conversation":{"id":"c"}}"#, "conversation"),
            (r#"{"background":true}"#, "background"),
            (r#"{"input":[{"type":"reasoning","encrypted_content":"gAAA"}]}"#, "encrypted_content"),
            (r#"{"input":[{"type":"item_reference","id":"x"}]}"#, "item_reference"),
            (r#"{"input":[{"role":"user","content":"x"},{"id":"msg_1"}]}"#, "item_reference"),
            (r#"{"input":[{"id":"msg_1","type":null}]}"#, "item_reference"),
            (r#"{"input":[{"id":"msg_1","id":null,"type":"message","type":""}]}"#, "item_reference"),
            (r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[]}]}"#, "reasoning"),
            (r#"{"messages":[{"role":"assistant","audio":{"id":"audio_1"}},{"role":"user"}]}"#, "audio"),
            (r#"{"audio":{"voice":{"id":"voice_1"},"format":"wav"}}"#, "audio"),
            (r#"{"audio":{"file_id":"file-1"}}"#, "file_id"),
            (r#"{"input":[{"id":{"file_id":"file-1"},"role":"user"}]}"#, "file_id"),
            (
                r#"{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}"#,
                "file_id",
            ),
            (r#"{"tools":[{"type":"file_search","vector_store_ids":["v"]}]}"#, "vector_store_ids"),
            (r#"{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}"#, "container"),
            (r#"{"tools":[{"type":"mcp","authorization":"secret"}]}"#, "authorization"),
            (r#"{"previous_response_id":"r","tools":[{"type":"mcp","authorization":"s"}]}"#, "authorization"),
            (r#"{"data_sources":[{"parameters":{"authentication":{"key":"s"}}}]}"#, "data_sources"),
            (r#"{"model":"m","api_key":"s"}"#, "api_key"),
            (
                r#"{"tools":[{"googleMaps":{"authConfig":{"apiKeyConfig":{"apiKeyString":"s"}}}}]}"#,
                "authConfig",
            ),
            (r#"{"extra_headers":{"Authorization":"s"}}"#, "extra_headers"),
            (r#"{"messages":[{"reasoning_details":[{"type":"reasoning.encrypted"}]}]}"#, "reasoning_details"),
            (r#"{"input":[{"type":"image_generation_call","id":"ig_1"}]}"#, "image_generation_call"),
            (r#"{"prompt":{"id":"pmpt_1"}}"#, "prompt"),
            (r#"{"messages":[{"content":[{"type":"thinking","signature":"Ep"}]}]}"#, "signature"),
            (r#"{"messages":[{"content":[{"type":"redacted_thinking","data":"x"}]}]}"#, "redacted_thinking"),
            (r#"{"mcp_servers":[{"url":"x"}]}"#, "mcp_servers"),
            (r#"{"contents":[{"parts":[{"fileData":{"fileUri":"f"}}]}]}"#, "fileUri"),
            (r#"{"contents":[{"parts":[{"thoughtSignature":"f"}]}]}"#, "thoughtSignature"),
            (r#"{"request":{"cachedContent":"c"}}"#, "cachedContent"),
            ("{\"input\":[{\"encrypted\\u005fcontent\":\"gAAA\"}]}", "encrypted_content"),
        ];
        for (body, member) in rows {
            assert_eq!(of(body), Some(member), "{body}");
        }
    }

    #[test]
    fn what_is_empty_or_the_clients_own_does_not() {
        for body in [
            "{}",
            "[]",
            "7",
            r#"{"previous_response_id":null,"background":false,"file_ids":[],"conversation":{}}"#,
            r#"{"input":"tell me of \"encrypted_content\": it binds","include":["reasoning.encrypted_content"]}"#,
            r#"{"prompt":"once upon a time"}"#,
            r#"{"tools":[{"type":"function","parameters":{"properties":{"file_id":{"type":"string"}}}}]}"#,
            r#"{"tools":[{"name":"t","input_schema":{"properties":{"signature":{"type":"string"}}}}]}"#,
            r#"{"messages":[{"content":[{"type":"tool_use","id":"t","name":"n","input":{"file_id":"mine"}}]}]}"#,
            r#"{"contents":[{"parts":[{"functionCall":{"name":"n","args":{"file_id":"mine"}}}]}]}"#,
            r#"{"metadata":{"conversation":"mine"}}"#,
            r#"{"input":[{"id":"msg_1","role":"user","content":"x"},{"id":"fc_1","type":"function_call"}]}"#,
            r#"{"input":[{"id":null},{"id":""},{"type":"reasoning","summary":[]},{"role":"user"}]}"#,
            r#"{"input":[{"role":"user","content":[{"id":"mine"}]}],"id":"mine","tools":[{"id":"mine"}]}"#,
            r#"{"messages":[{"role":"user","audio":null,"tool_calls":[{"id":"call_1"}]}]}"#,
            r#"{"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"},"voice":"alloy"}"#,
            r#"{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"x","format":"wav"}}]}]}"#,
        ] {
            assert_eq!(of(body), None, "{body}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_answer() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for body in ["", "{", "not json", "{} {}", deep.as_str()] {
            assert_eq!(binding_member(body.as_bytes()), Err(Unreadable), "{body}");
        }
        let deep = format!(r#"{{"input":[{}{}]}}"#, "[".repeat(120), "]".repeat(120));
        assert!(binding_member(deep.as_bytes()).is_ok_and(|found| found.is_none()));
    }

    #[test]
    fn texts_within_texts_have_an_end() {
        for (open, close) in [(r#"{"input":["#, "]}"), (r#"{"audio":"#, "}"), (r#"{"id":"#, "}")] {
            let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            assert_eq!(of(&nested), Some("input"), "{open}");
        }
    }

    proptest! {
        /// However deep it lies, it is found.
        #[test]
        fn it_is_found_at_any_depth(depth in 0_usize..50, at in 0_usize..BINDING.len() + KEYS.len()) {
            let name = BINDING.iter().chain(KEYS).nth(at).copied().unwrap_or_default();
            let inner = format!(r#"{{"{name}":"x"}}"#);
            let body = format!("{}{inner}{}", r#"{"a":[1,"#.repeat(depth), "]}".repeat(depth));
            prop_assert_eq!(of(&body), Some(name));
        }
    }
}
