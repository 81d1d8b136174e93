//! From drafts of `[credential.NAME]` to credentials: each has one source, and the keys that belong to it. Not the having of
//! a value (that is [`crate::credentials`]): a file or a program may have one only later.

use super::errors::{Findings, Place};
use super::file::Entry;
use super::keys::CredentialDraft;
use super::layers::api_key_of;
use super::read::Spans;
use crate::credential::{is_key_header, sign_in_of};
use relay_core::config::{
    Config, Credential, Held, OAuth, REFRESH_BEFORE, REFRESH_TOKEN, Secret, Source, Upstream,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a variable of this name holds, in the environment or in an env file.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What draws on what lies around the file.
pub(super) struct Reading<'a> {
    pub(super) variables: Variables<'a>,
    /// Where relative paths start.
    pub(super) folder: Option<&'a Path>,
    pub(super) found: &'a mut Findings,
}

/// The keys that name a source by themselves, and those of a token.
const KEYS: [&str; 4] = ["key", "key_env", "key_file", "key_command"];
const TOKENS: [&str; 4] = ["token_url", "refresh_token", "refresh_token_env", "refresh_token_file"];
const OF_TOKENS: [&str; 6] =
    ["token_request", "client_id", "client_secret", "client_secret_env", "scope", "refresh_before"];

impl Reading<'_> {
    /// Builds the credentials. One that is wrong keeps its name, so that what names it is not reported too.
    pub(super) fn all(
        &mut self,
        entries: BTreeMap<String, Entry<CredentialDraft>>,
    ) -> BTreeMap<String, Credential> {
        let mut all = BTreeMap::new();
        for (name, entry) in entries {
            let nothing = || Source::Key(Held::Variable { name: String::new(), value: None });
            let header = entry.draft.header.clone();
            let source = self.source(&name, entry).unwrap_or_else(nothing);
            all.insert(name, Credential { source, header });
        }
        all
    }

    /// Where its value comes from; `None` where that was found wrong.
    fn source(&mut self, name: &str, entry: Entry<CredentialDraft>) -> Option<Source> {
        let Entry { draft, spans, name: at } = entry;
        let is_set = |key: &&&str| spans.contains_key(**key);
        let mut sources: Vec<&str> = KEYS.iter().filter(is_set).copied().collect();
        sources.extend(TOKENS.iter().find(is_set));
        let [source] = sources.as_slice() else {
            if let [one, other, ..] = sources.as_slice() {
                let what = format!("credential `{name}` has both `{one}` and `{other}`");
                self.found.add(at_key(&spans, other), what, "keep the one that the key comes from");
            } else {
                let what = format!("credential `{name}` names nothing that its key comes from");
                let hint = "write one of `key`, `key_env`, `key_file`, `key_command`, or a `token_url`";
                self.found.add(Place::File(at), what, hint);
            }
            return None;
        };
        if *source != "key_command" && spans.contains_key("key_ttl") {
            let what = format!("credential `{name}` has a `key_ttl` and no `key_command`");
            self.found.add(at_key(&spans, "key_ttl"), what, "leave it out: it is for what a program writes");
        }
        if TOKENS.contains(source) {
            return self.tokens(name, draft, &spans, &at);
        }
        if let Some(key) = OF_TOKENS.iter().find(is_set) {
            let what = format!("credential `{name}` has a `{key}` and no `token_url`");
            self.found.add(at_key(&spans, key), what, "leave it out: it is for tokens that are issued");
        }
        if let Some(argv) = draft.key_command {
            return Some(Source::Command { argv, ttl: draft.key_ttl });
        }
        let held = Holds { text: draft.key, variable: draft.key_env, file: draft.key_file };
        self.held(held, &spans, ["key", "key_env"]).map(Source::Key)
    }

    fn tokens(
        &mut self,
        name: &str,
        draft: CredentialDraft,
        spans: &Spans,
        at: &Range<usize>,
    ) -> Option<Source> {
        let several = [["refresh_token", "refresh_token_env"], ["refresh_token", "refresh_token_file"]];
        let several = several.into_iter().chain([["refresh_token_env", "refresh_token_file"]]);
        for [one, other] in several.chain([["client_secret", "client_secret_env"]]) {
            if spans.contains_key(one) && spans.contains_key(other) {
                let what = format!("credential `{name}` has both `{one}` and `{other}`");
                self.found.add(at_key(spans, other), what, "keep one of the two");
                return None;
            }
        }
        if !spans.contains_key("token_url") {
            let what = format!("credential `{name}` has a refresh token and no `token_url`");
            let hint = "write where tokens are issued: token_url = \"https://auth.example/oauth/token\"";
            self.found.add(Place::File(at.clone()), what, hint);
            return None;
        }
        let named = draft.refresh_token_env.or_else(|| {
            let is_named = ["refresh_token", "refresh_token_file"].iter().any(|key| spans.contains_key(key));
            (!is_named).then(|| REFRESH_TOKEN.to_owned())
        });
        let held = Holds { text: draft.refresh_token, variable: named, file: draft.refresh_token_file };
        let refresh_token = self.held(held, spans, ["refresh_token", "refresh_token_env"])?;
        let secret = Holds { text: draft.client_secret, variable: draft.client_secret_env, file: None };
        Some(Source::OAuth(Box::new(OAuth {
            refresh_token,
            token_url: draft.token_url?,
            client_id: draft.client_id,
            client_secret: self.held(secret, spans, ["client_secret", "client_secret_env"]),
            scope: draft.scope,
            form: draft.token_request.unwrap_or_default(),
            before: draft.refresh_before.unwrap_or(REFRESH_BEFORE),
        })))
    }

    /// Where a secret is held, and what is known of it by now.
    fn held(&mut self, holds: Holds, spans: &Spans, [text, variable]: [&str; 2]) -> Option<Held> {
        let place =
            |key| spans.get(key).map_or(Place::Default, |span: &Range<usize>| Place::File(span.clone()));
        if let Some(secret) = holds.text {
            self.not_a_sign_in(&secret, place(text));
            return Some(Held::Text(secret));
        }
        if let Some(file) = holds.file {
            return Some(Held::File(self.folder.map_or(file.clone(), |folder| folder.join(&file))));
        }
        let name = holds.variable?;
        let value = match (self.variables)(&name).map(|value| api_key_of(value.trim())) {
            None => None,
            Some(Ok(secret)) => {
                self.not_a_sign_in(&secret, place(variable));
                Some(secret)
            }
            Some(Err(error)) => {
                self.found.add(place(variable), format!("the variable {name} {}", error.why), error.allowed);
                None
            }
        };
        Some(Held::Variable { name, value })
    }

    fn not_a_sign_in(&mut self, secret: &Secret, place: Place) {
        if let Some(whose) = sign_in_of(secret.expose()) {
            let what = format!("this is a sign-in of {whose}, which no relay should hold");
            let hint = "use a key of the API; a sign-in belongs to its client, which renews it itself, and passes as it \
                        comes";
            self.found.add(place, what, hint);
        }
    }
}

/// Where the value of a key stands.
fn at_key(spans: &Spans, key: &str) -> Place {
    spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()))
}

/// What a draft says of one secret.
struct Holds {
    text: Option<Secret>,
    variable: Option<String>,
    file: Option<PathBuf>,
}

/// Checks what an `[upstream.NAME]` says of a credential against the rest of it.
pub(super) fn of_upstream(
    name: &str,
    upstream: &Upstream,
    spans: &Spans,
    known: &BTreeMap<String, Credential>,
    found: &mut Findings,
) {
    let place = |key| at_key(spans, key);
    let Some(own) = &upstream.credential else {
        if upstream.replace_credential && !spans.contains_key("credential") {
            let what = format!("upstream `{name}` has `replace_credential` and no `credential`");
            found.add(place("replace_credential"), what, "name the `[credential.NAME]` that is to be sent");
        }
        return;
    };
    let Some(credential) = known.get(own) else {
        let names: Vec<_> = known.keys().map(String::as_str).collect();
        let error = found.unknown(own, "credential", &names);
        return found.invalid(place("credential"), &format!("upstream.{name}.credential"), None, error);
    };
    if upstream.api_key.is_some() {
        let what = format!("upstream `{name}` has both `api_key` and `credential`");
        found.add(place("credential"), what, "keep one of the two");
    }
    let is_theirs = |header| is_key_header(header) || credential.header.as_ref() == Some(header);
    if let Some((header, _)) = upstream.headers.iter().find(|(header, _)| is_theirs(header)) {
        let what = format!("upstream `{name}` adds the header `{header}`, which its `credential` goes into");
        found.add(place("headers"), what, "keep one of the two");
    }
}

/// What the user should know of credentials whose variable is not set: without it the relay does not start.
pub(super) fn unset(config: &Config) -> impl Iterator<Item = String> {
    crate::credentials::unset(config)
        .map(|(name, variable)| format!("credential `{name}`: the variable {variable} is not set"))
}
