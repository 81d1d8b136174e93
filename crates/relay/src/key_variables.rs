//! The variables in which clients and SDKs keep a credential, and the shipped upstream that each is for.

/// One of them.
pub(crate) struct KeyVariable {
    pub(crate) name: &'static str,
    pub(crate) upstream: &'static str,
    /// It holds a key of the API, which a program may send on the user's word; not the token of a client's sign-in.
    pub(crate) is_api_key: bool,
}

/// All of them, the one that its service's own SDK reads first in front.
pub(crate) const KEY_VARIABLES: [KeyVariable; 6] = [
    key("OPENAI_API_KEY", "openai"),
    key("ANTHROPIC_API_KEY", "anthropic"),
    token("ANTHROPIC_AUTH_TOKEN", "anthropic"),
    token("CLAUDE_CODE_OAUTH_TOKEN", "anthropic"),
    key("GEMINI_API_KEY", "gemini"),
    key("GOOGLE_API_KEY", "gemini"),
];

const fn key(name: &'static str, upstream: &'static str) -> KeyVariable {
    KeyVariable { name, upstream, is_api_key: true }
}

const fn token(name: &'static str, upstream: &'static str) -> KeyVariable {
    KeyVariable { name, upstream, is_api_key: false }
}

/// Those for this upstream.
pub(crate) fn of_upstream(upstream: &str) -> impl Iterator<Item = &'static KeyVariable> {
    KEY_VARIABLES.iter().filter(move |variable| variable.upstream == upstream)
}
