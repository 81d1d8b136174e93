//! What a request says about itself: which model, whether it streams, and what it leaves to the service.
//!
//! What it is not: the verdict on whether it may be sent twice (that is `evidence`). Whatever is not
//! understood is reported as the kind that binds: an unknown tool counts as one that the service runs.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};

use super::{Items, Members, NameIn, Shape, each_item};

/// What a request body says, as far as it decides about sending it again.
///
/// `null` counts as absent throughout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peek {
    /// The model asked for.
    pub model: Option<String>,
    /// Whether the answer is to be streamed; `None` where the body leaves it open.
    pub stream: Option<bool>,
    /// It goes on from an answer that the service keeps.
    pub previous_response_id: bool,
    /// It belongs to a conversation that the service keeps.
    pub conversation: bool,
    /// It is to run on the service after the connection has gone.
    pub background: bool,
    /// It brings its own content: a non-empty `input`, `messages`, `contents` or `prompt`.
    pub input_is_full: bool,
    /// The service may run something with effects of its own: code, a connector, an image, a tool unknown
    /// here, or what a prompt kept at the service brings along.
    pub hosted_tools: bool,
    /// The service may search or read for it. That costs, and does nothing else; so it is told apart from
    /// `hosted_tools`, because some agents name a search tool in every request.
    pub read_only_hosted: bool,
    /// Its last input item asks for the conversation to be compacted.
    pub compaction: bool,
    /// Its input points to an item that the service keeps.
    pub item_reference: bool,
    /// The service is to keep the answer, so that a later request goes on from it wherever it comes in: it does unless
    /// `store` is false.
    pub stores: bool,
    /// It asks for no answer: Codex makes a WebSocket ready with it (`"generate": false`).
    pub prewarms: bool,
    /// What Codex says of its turn over HTTP in the header `x-codex-turn-metadata`; on a WebSocket it stands here.
    pub turn_metadata: Option<String>,
}

impl Peek {
    /// Whether the whole input is in the request and every tool runs at the client: a second run costs money only.
    #[must_use]
    pub const fn is_self_contained(&self) -> bool {
        self.input_is_full
            && !self.previous_response_id
            && !self.conversation
            && !self.background
            && !self.hosted_tools
            && !self.item_reference
    }
}

const TOP: &[&str] = &[
    "model",
    "stream",
    "previous_response_id",
    "conversation",
    "background",
    "input",
    "messages",
    "contents",
    "prompt",
    "tools",
    "mcp_servers",
    "container",
    "web_search_options",
    "request",
    "store",
    "generate",
    "client_metadata",
];

const ITEM: &[&str] = &["type", "role", "id"];

const TOOL: &[&str] = &[
    "type",
    "name",
    "environment",
    "execution",
    "tools",
    "function",
    "functionDeclarations",
    "function_declarations",
    "computerUse",
    "computer_use",
    // From here on: `GEMINI_READS`.
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "urlContext",
    "url_context",
    "fileSearch",
    "file_search",
    "googleMaps",
    "google_maps",
];

/// Gemini has no `type`: a tool is the member it has. These search and read.
const GEMINI_READS: &[&str] = &[
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "urlContext",
    "url_context",
    "fileSearch",
    "file_search",
    "googleMaps",
    "google_maps",
];

/// How deep groups of tools are followed. Nobody nests them; whoever does is not understood.
const DEEPEST: u8 = 8;

/// Looks at a request body, once from its beginning to its end. `None` where it is no JSON object.
#[must_use]
pub fn peek(body: &[u8]) -> Option<Peek> {
    let mut found = Found::in_body(body)?;
    // Code Assist puts Gemini's body into one more object, beside the model.
    if let Some(inner) = found.members.get("request").and_then(|inner| Found::in_body(inner.as_bytes())) {
        found.add(inner);
    }
    let Found { members: top, has_input, peek } = found;
    let prompt_is_kept = top.get("prompt").is_some_and(|prompt| prompt.starts_with('{'));
    Some(Peek {
        model: top.text("model"),
        stream: top.get("stream").and_then(|value| value.parse().ok()),
        previous_response_id: top.is_full("previous_response_id"),
        conversation: top.is_full("conversation"),
        background: top.is_full("background"),
        input_is_full: has_input
            || ["messages", "contents"].iter().any(|name| top.is_full(name))
            || (top.is_full("prompt") && !prompt_is_kept),
        // The service may read the other of two members.
        hosted_tools: peek.hosted_tools
            || top.is_ambiguous
            || prompt_is_kept
            || top.is_full("mcp_servers")
            || top.is_full("container"),
        read_only_hosted: peek.read_only_hosted || top.get("web_search_options").is_some(),
        stores: top.get("store") != Some("false"),
        prewarms: top.get("generate") == Some("false"),
        turn_metadata: top
            .get("client_metadata")
            .and_then(|metadata| Members::of(metadata, &["x-codex-turn-metadata"]))
            .and_then(|metadata| metadata.text("x-codex-turn-metadata")),
        ..peek
    })
}

/// What is found while a body is read.
#[derive(Default)]
struct Found<'a> {
    /// Its members, but for those that are read item by item.
    members: Members<'a>,
    /// It has an `input` that brings something.
    has_input: bool,
    /// What its input and its tools say.
    peek: Peek,
}

impl<'a> Found<'a> {
    fn in_body(body: &'a [u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        deserializer.deserialize_map(Body(&mut found)).ok()?;
        deserializer.end().ok()?;
        Some(found)
    }

    fn add(&mut self, inner: Self) {
        self.members.add(inner.members);
        self.has_input |= inner.has_input;
        self.peek.compaction |= inner.peek.compaction;
        self.peek.item_reference |= inner.peek.item_reference;
        self.peek.hosted_tools |= inner.peek.hosted_tools;
        self.peek.read_only_hosted |= inner.peek.read_only_hosted;
    }
}

/// Reads a body into what is found of it.
struct Body<'f, 'de>(&'f mut Found<'de>);

impl<'de> Visitor<'de> for Body<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(Found { members, has_input, peek }) = self;
        let (mut inputs, mut tools) = (0_u8, 0_u8);
        while let Some(name) = map.next_key_seed(NameIn(TOP))? {
            match name {
                Some("input") => {
                    inputs = inputs.saturating_add(1);
                    let each = |item| look_at_item(&item, peek);
                    let input = map.next_value_seed(Items { names: ITEM, each })?;
                    *has_input = matches!(input, Shape::Array { empty: false } | Shape::Other { full: true });
                }
                Some("tools") => {
                    tools = tools.saturating_add(1);
                    let each = |tool| look_at_tool(&tool, DEEPEST, peek);
                    let shape = map.next_value_seed(Items { names: TOOL, each })?;
                    peek.hosted_tools |= matches!(shape, Shape::Other { .. });
                }
                name => members.read_value(name, &mut map)?,
            }
        }
        members.is_ambiguous |= inputs > 1 || tools > 1;
        Ok(())
    }
}

fn look_at_item(item: &Members<'_>, peek: &mut Peek) {
    peek.item_reference |= item.is_ambiguous;
    let kind = item.text("type");
    peek.compaction = kind.as_deref() == Some("compaction_trigger");
    // The type of a reference may be left out; then an id is all it has.
    let is_bare = kind.is_none() && item.get("role").is_none() && item.get("id").is_some();
    peek.item_reference |= is_bare || kind.as_deref() == Some("item_reference");
}

fn look_at_tool(tool: &Members<'_>, depth: u8, peek: &mut Peek) {
    match side(tool) {
        Side::Client => {}
        Side::Reads => peek.read_only_hosted = true,
        Side::Hosted => peek.hosted_tools = true,
        Side::Group if depth == 0 => peek.hosted_tools = true,
        Side::Group => {
            let Some(tools) = tool.get("tools") else { return };
            let read = each_item(tools, TOOL, |tool| look_at_tool(&tool, depth - 1, peek));
            peek.hosted_tools |= read.is_none();
        }
    }
}

/// Who runs a tool.
enum Side {
    /// The client, after the answer.
    Client,
    /// The service, and it only searches or reads.
    Reads,
    /// The service.
    Hosted,
    /// It is a group of tools.
    Group,
}

fn side(tool: &Members<'_>) -> Side {
    if tool.is_ambiguous {
        return Side::Hosted;
    }
    if tool.get("type").is_none() {
        return side_of_untyped(tool);
    }
    let Some(kind) = tool.text("type") else { return Side::Hosted };
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| kind.starts_with(prefix));
    match kind.as_str() {
        "namespace" => Side::Group,
        "function" | "custom" | "local_shell" | "apply_patch" | "computer" => Side::Client,
        // A shell in a container is the service's; without an environment, or in a local one, it is the
        // client's.
        "shell" if tool.get("environment").is_none_or(is_local) => Side::Client,
        "tool_search" if tool.text("execution").as_deref() == Some("client") => Side::Client,
        // Anthropic's types carry a date: `bash_20250124`. OpenAI's `computer_use_preview` is the client's
        // too.
        _ if starts_with(&["bash_", "text_editor_", "computer_", "memory_"]) => Side::Client,
        _ if starts_with(&["web_search", "web_fetch", "tool_search", "file_search"]) => Side::Reads,
        _ => Side::Hosted,
    }
}

fn is_local(environment: &str) -> bool {
    Members::of(environment, &["type"]).is_some_and(|it| it.text("type").as_deref() == Some("local"))
}

/// A tool without a `type`: the client's own one at Anthropic, where it has a name, or one of Gemini's.
fn side_of_untyped(tool: &Members<'_>) -> Side {
    if tool.get("name").is_some() {
        return Side::Client;
    }
    if tool.has_others {
        return Side::Hosted;
    }
    if GEMINI_READS.iter().any(|name| tool.get(name).is_some()) { Side::Reads } else { Side::Client }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(body: &str) -> Peek {
        peek(body.as_bytes()).unwrap()
    }

    #[test]
    fn the_plain_fields() {
        let stores = Peek { stores: true, ..Peek::default() };
        assert_eq!(of("{}"), stores);
        assert_eq!(of(r#"{"store":false}"#), Peek::default());
        assert_eq!(
            of(r#"{"model":"gpt-5","stream":true,"input":"hi","background":true,"previous_response_id":"r",
                "conversation":{"id":"c"}}"#),
            Peek {
                model: Some("gpt-5".to_owned()),
                stream: Some(true),
                previous_response_id: true,
                conversation: true,
                background: true,
                input_is_full: true,
                ..stores
            }
        );
    }

    #[test]
    fn what_a_websocket_adds() {
        let body = r#"{"type":"response.create","generate":false,"client_metadata":{"x":1,
            "x-codex-turn-metadata":"{\"turn_id\":\"t\"}"}}"#;
        let peek = of(body);
        assert!(peek.prewarms);
        assert_eq!(peek.turn_metadata.as_deref(), Some(r#"{"turn_id":"t"}"#));
        for other in [r#"{"generate":true,"client_metadata":"x"}"#, r#"{"generate":null}"#, "{}"] {
            assert!(!of(other).prewarms && of(other).turn_metadata.is_none(), "{other}");
        }
    }

    #[test]
    fn null_and_false_are_absent() {
        let body = r#"{"model":null,"stream":null,"previous_response_id":null,"conversation":null,
            "background":null,"input":null,"tools":null,"mcp_servers":null,"container":null,"prompt":null}"#;
        let stores = Peek { stores: true, ..Peek::default() };
        assert_eq!(of(body), stores);
        let body = r#"{"background":false,"input":[ ],"messages":[],"tools":[],"mcp_servers":[],"model":7}"#;
        assert_eq!(of(body), stores);
        assert_eq!(of(r#"{"stream":false}"#).stream, Some(false));
    }

    #[test]
    fn what_is_there_twice_binds() {
        for body in [
            r#"{"previous_response_id":"r","previous_response_id":null,"input":"x"}"#,
            r#"{"input":"x","tools":[{"type":"mcp"}],"tools":[]}"#,
            r#"{"input":"x","tools":[{"type":"mcp","type":"function"}]}"#,
        ] {
            assert!(of(body).hosted_tools, "{body}");
        }
        assert!(of(r#"{"input":[{"type":"item_reference","type":"message","role":"user"}]}"#).item_reference);
        assert!(!of(r#"{"input":"x","other":1,"other":2}"#).hosted_tools);
    }

    #[test]
    fn only_an_object_is_a_request() {
        for body in ["", "[]", "\"x\"", "{", "{} x", "{\"a\":}", "null", "{\"model\":\"\u{0}\"}"] {
            assert_eq!(peek(body.as_bytes()), None, "{body}");
        }
        assert_eq!(peek(b"{\"model\":\"\xff\"}"), None);
    }

    #[test]
    fn input_of_every_dialect() {
        for body in [
            r#"{"input":"x"}"#,
            r#"{"input":[{"role":"user","content":"x"}]}"#,
            r#"{"messages":[{}]}"#,
            r#"{"contents":[{}]}"#,
            r#"{"prompt":"x"}"#,
            r#"{"input":[],"messages":[{}]}"#,
        ] {
            assert!(of(body).input_is_full, "{body}");
        }
    }

    #[test]
    fn code_assist_has_one_more_object() {
        let peek = of(
            r#"{"model":"gemini-3-pro","project":"p","request":{"contents":[{}],"tools":[{"codeExecution":{}}]}}"#,
        );
        assert!(peek.input_is_full && peek.hosted_tools);
        assert_eq!(peek.model.as_deref(), Some("gemini-3-pro"));
    }

    #[test]
    fn input_items_that_matter() {
        for (items, compaction, item_reference) in [
            (r#"{"type":"compaction_trigger"}"#, true, false),
            (r#"{"role":"user"},{"x":[1],"type":"compaction_trigger"}"#, true, false),
            (r#"{"type":"compaction_trigger"},{"role":"user"}"#, false, false),
            (r#"{"type":"message","content":[{"type":"item_reference"}]}"#, false, false),
            (r#"{"type":"item_reference","id":"m"},{"role":"user","content":"x"}"#, false, true),
            (r#"{"id":"m"}"#, false, true),
            (r#"{"id":"m","type":null}"#, false, true),
            (r#"{"id":"m","role":"user","content":"x"}"#, false, false),
            (r#"{"id":"m","type":"reasoning"}"#, false, false),
            (r#""text",1,null,[{"type":"item_reference"}]"#, false, false),
        ] {
            let peek = of(&format!(r#"{{"input":[{items}]}}"#));
            assert_eq!((peek.compaction, peek.item_reference), (compaction, item_reference), "{items}");
        }
    }

    #[test]
    fn tools_by_who_runs_them() {
        // Hosted, read only.
        for (tools, expected) in [
            (r#"{"type":"function","name":"f","parameters":{"type":"mcp"}}"#, (false, false)),
            (
                r#"{"type":"custom","name":"apply"},{"type":"local_shell"},{"type":"apply_patch"}"#,
                (false, false),
            ),
            (r#"{"type":"shell"},{"type":"shell","environment":null}"#, (false, false)),
            (r#"{"type":"shell","environment":{"type":"local","skills":[]}}"#, (false, false)),
            (r#"{"type":"shell","environment":{"type":"container_auto"}}"#, (true, false)),
            (r#"{"type":"shell","environment":{}}"#, (true, false)),
            (r#"{"type":"computer_use_preview"},{"type":"computer"}"#, (false, false)),
            (r#"{"type":"tool_search","execution":"client"}"#, (false, false)),
            (r#"{"type":"tool_search"}"#, (false, true)),
            (r#"{"type":"tool_search","execution":"server"}"#, (false, true)),
            (r#"{"type":"web_search"}"#, (false, true)),
            (r#"{"type":"web_search_preview"},{"type":"file_search"}"#, (false, true)),
            (r#"{"type":"code_interpreter"}"#, (true, false)),
            (r#"{"type":"mcp"},{"type":"web_search"}"#, (true, true)),
            (r#"{"type":"image_generation"}"#, (true, false)),
            (r#"{"type":"something_new"}"#, (true, false)),
            (r#"{"type":7}"#, (true, false)),
            (r#""mcp""#, (true, false)),
            // Groups of tools.
            (r#"{"type":"namespace","tools":[{"type":"function"}]}"#, (false, false)),
            (r#"{"tools":[{"type":"mcp"}],"type":"namespace"}"#, (true, false)),
            (
                r#"{"type":"namespace","tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}"#,
                (false, true),
            ),
            (r#"{"type":"namespace"}"#, (false, false)),
            // Anthropic.
            (r#"{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}}"#, (false, false)),
            (r#"{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728"}"#, (false, false)),
            (r#"{"type":"computer_20251124"},{"type":"memory_20250818"}"#, (false, false)),
            (r#"{"type":"web_search_20250305"},{"type":"web_fetch_20250910"}"#, (false, true)),
            (r#"{"type":"tool_search_tool_regex_20251119"}"#, (false, true)),
            (r#"{"type":"code_execution_20250825"}"#, (true, false)),
            // Gemini.
            (r#"{"functionDeclarations":[{"name":"f"}]}"#, (false, false)),
            (r#"{"googleSearch":{}},{"urlContext":{}}"#, (false, true)),
            (r#"{"codeExecution":{}}"#, (true, false)),
        ] {
            let peek = of(&format!(r#"{{"tools":[{tools}]}}"#));
            assert_eq!((peek.hosted_tools, peek.read_only_hosted), expected, "{tools}");
        }
        let nested = r#"[{"type":"namespace","tools":"#.repeat(20) + "[]" + &"}]".repeat(20);
        assert!(of(&format!(r#"{{"tools":{nested}}}"#)).hosted_tools);
    }

    #[test]
    fn what_the_service_runs_besides_tools() {
        assert!(of(r#"{"mcp_servers":[{"url":"x"}]}"#).hosted_tools);
        assert!(of(r#"{"container":"c"}"#).hosted_tools);
        assert!(of(r#"{"tools":{"type":"function"}}"#).hosted_tools);
        assert!(of(r#"{"web_search_options":{}}"#).read_only_hosted);
        // A prompt kept at the service may bring tools that are not seen here.
        let kept = of(r#"{"prompt":{"id":"p"}}"#);
        assert!(kept.hosted_tools && !kept.input_is_full);
    }

    #[test]
    fn deep_content_is_no_hindrance() {
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        let peek = of(&format!(r#"{{"input":[{{"type":"message","content":{deep}}}],"model":"m"}}"#));
        assert!(peek.input_is_full && peek.model.is_some() && !peek.item_reference);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn arbitrary_text_does_no_harm(
            text in "([{}\\[\\],:]|\"(type|tools|input|id|namespace|mcp|model)\"|1|null){0,40}",
        ) {
            let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
            prop_assert_eq!(peek(text.as_bytes()).is_some(), is_object);
        }
    }
}
