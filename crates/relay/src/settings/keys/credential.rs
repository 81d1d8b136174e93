//! The keys of a `[credential.NAME]`.

use http::HeaderName;
use http::header::{CONTENT_TYPE, COOKIE, USER_AGENT};
use relay_core::config::{Secret, TokenRequest, TokenUrl};
use relay_core::units::Invalid;
use std::path::PathBuf;
use std::time::Duration;

use super::super::layers::api_key_of;
use super::super::read::{Given, Key};
use super::upstream::of_the_connection;
use super::{SOME_TIME, WEEK};

/// What a `[credential.NAME]` says.
#[derive(Debug, Default)]
pub(in crate::settings) struct CredentialDraft {
    pub(in crate::settings) key: Option<Secret>,
    pub(in crate::settings) key_env: Option<String>,
    pub(in crate::settings) key_file: Option<PathBuf>,
    pub(in crate::settings) key_command: Option<Vec<String>>,
    pub(in crate::settings) key_ttl: Option<Duration>,
    pub(in crate::settings) refresh_token: Option<Secret>,
    pub(in crate::settings) refresh_token_env: Option<String>,
    pub(in crate::settings) refresh_token_file: Option<PathBuf>,
    pub(in crate::settings) token_url: Option<TokenUrl>,
    pub(in crate::settings) token_request: Option<TokenRequest>,
    pub(in crate::settings) client_id: Option<String>,
    pub(in crate::settings) client_secret: Option<Secret>,
    pub(in crate::settings) client_secret_env: Option<String>,
    pub(in crate::settings) scope: Option<String>,
    pub(in crate::settings) refresh_before: Option<Duration>,
    pub(in crate::settings) header: Option<HeaderName>,
}

/// `[credential.NAME]`.
pub(in crate::settings) const CREDENTIAL: &[Key<CredentialDraft>] = &[
    Key {
        name: "key",
        shape: "text",
        default: "",
        doc: "The key itself. It is shown nowhere.",
        set: |credential, given| api_key_of(given.text()?).map(|value| credential.key = Some(value)),
    },
    Key {
        name: "key_env",
        shape: "text",
        default: "",
        doc: "The name of a variable that holds the key: of the environment, or of an env file.",
        set: |credential, given| variable(given).map(|value| credential.key_env = Some(value)),
    },
    Key {
        name: "key_file",
        shape: "path",
        default: "",
        doc: "A file that holds the key and nothing else, at most 16 KiB. It is read again when calls need it, every two \
              seconds at most, and when the key was refused. A relative path starts at the folder of this file.",
        set: |credential, given| path(given).map(|value| credential.key_file = Some(value)),
    },
    Key {
        name: "key_command",
        shape: "list of names",
        default: "",
        doc: "A program and its arguments that writes the key to its standard output, such as the helper of a password \
              store. It is run without a shell, for 30 s at most, when a call first needs the key, and again after \
              `key_ttl` and when the key was refused.",
        set: |credential, given| {
            let command = given.texts()?;
            let is_odd = |word: &&str| word.contains('\0');
            if command.len() > 100
                || command.iter().any(is_odd)
                || command.first().is_none_or(|it| it.is_empty())
            {
                let hint = "write the program and its arguments: [\"secret-tool\", \"lookup\", \"service\", \"api\"]";
                return Err(Invalid::new("is no command", hint));
            }
            credential.key_command = Some(command.into_iter().map(str::to_owned).collect());
            Ok(())
        },
    },
    Key {
        name: "key_ttl",
        shape: "time",
        default: "",
        doc: "How long what `key_command` wrote is good. Not set: until it is refused.",
        set: |credential, given| given.duration(SOME_TIME).map(|value| credential.key_ttl = Some(value)),
    },
    Key {
        name: "token_url",
        shape: "URL",
        default: "",
        doc: "Where an access token is issued against the refresh token, over https or on this machine. Not where sign-ins \
              of ChatGPT or Claude are renewed: those belong to the client, which renews them itself.",
        set: |credential, given| given.parsed().map(|value| credential.token_url = Some(value)),
    },
    Key {
        name: "token_request",
        shape: "choice",
        default: "\"form\"",
        doc: "How the token is asked for: `form`, as OAuth has it (RFC 6749, section 6), or `json`, with the same names.",
        set: |credential, given| {
            let among = TokenRequest::ALL.map(|form| (form.name(), form));
            given.choice(&among).map(|value| credential.token_request = Some(value))
        },
    },
    Key {
        name: "refresh_token",
        shape: "text",
        default: "",
        doc: "The refresh token. It is shown nowhere. Where the issuer gives a new one with each access token, the new one is \
              kept in `relay.state_dir` and used from then on, until this one is changed.",
        set: |credential, given| {
            api_key_of(given.text()?).map(|value| credential.refresh_token = Some(value))
        },
    },
    Key {
        name: "refresh_token_env",
        shape: "text",
        default: "\"REFRESH_TOKEN\"",
        doc: "The name of a variable that holds the refresh token: of the environment, or of an env file.",
        set: |credential, given| variable(given).map(|value| credential.refresh_token_env = Some(value)),
    },
    Key {
        name: "refresh_token_file",
        shape: "path",
        default: "",
        doc: "A file that holds the refresh token and nothing else. A relative path starts at the folder of this file.",
        set: |credential, given| path(given).map(|value| credential.refresh_token_file = Some(value)),
    },
    Key {
        name: "client_id",
        shape: "text",
        default: "",
        doc: "The client that the refresh token was issued to, where the issuer wants to hear it.",
        set: |credential, given| line(given).map(|value| credential.client_id = Some(value)),
    },
    Key {
        name: "client_secret",
        shape: "text",
        default: "",
        doc: "The secret of that client, where it has one. It is shown nowhere.",
        set: |credential, given| {
            api_key_of(given.text()?).map(|value| credential.client_secret = Some(value))
        },
    },
    Key {
        name: "client_secret_env",
        shape: "text",
        default: "",
        doc: "The name of a variable that holds it.",
        set: |credential, given| variable(given).map(|value| credential.client_secret_env = Some(value)),
    },
    Key {
        name: "scope",
        shape: "text",
        default: "",
        doc: "What the token is to be good for. Not set: what the refresh token was issued for.",
        set: |credential, given| line(given).map(|value| credential.scope = Some(value)),
    },
    Key {
        name: "refresh_before",
        shape: "time",
        default: "\"60s\"",
        doc: "How long before its end a token is renewed, when a call needs it; never in the first half of its life. Calls \
              wait for that only where the token is over.",
        set: |credential, given| {
            given.duration(Duration::ZERO..=WEEK).map(|value| credential.refresh_before = Some(value))
        },
    },
    Key {
        name: "header",
        shape: "text",
        default: "",
        doc: "The header that the key goes into as it is, such as `api-key` for Azure. Not set, or `authorization`: \
              `Authorization: Bearer`, or `x-api-key` for a key of Anthropic and `x-goog-api-key` for one of Gemini.",
        set: |credential, given| {
            let name: HeaderName = given.text()?.parse().map_err(|_not_a_name| {
                Invalid::new("is no header name", "a name has letters, digits and hyphens")
            })?;
            if of_the_connection(&name) || [CONTENT_TYPE, COOKIE, USER_AGENT].contains(&name) {
                let why = "belongs to the connection or to the request";
                return Err(Invalid::new(why, "write the one that keys go into, such as \"api-key\""));
            }
            credential.header = Some(name);
            Ok(())
        },
    },
];

/// Reads the name of a variable.
fn variable(given: &Given<'_>) -> Result<String, Invalid> {
    let name = given.text()?;
    let is_name = !name.is_empty()
        && name.len() <= 200
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_name {
        return Ok(name.to_owned());
    }
    Err(Invalid::new(
        "is no name of a variable",
        "a name has letters, digits and underscores: \"MY_API_KEY\"",
    ))
}

fn path(given: &Given<'_>) -> Result<PathBuf, Invalid> {
    let path = given.text()?;
    if path.is_empty() || path.contains('\0') {
        return Err(Invalid::new("is no path", "write where the file is: \"secrets/api-key\""));
    }
    Ok(PathBuf::from(path))
}

/// Reads a text in one line.
fn line(given: &Given<'_>) -> Result<String, Invalid> {
    let text = given.text()?;
    if text.is_empty() || text.len() > 4096 || text.contains(char::is_control) {
        return Err(Invalid::new("is empty, too long, or no single line", "write it as the issuer tells it"));
    }
    Ok(text.to_owned())
}
