//! Codex: CLI, IDE extension and desktop read one `config.toml`.
//!
//! | what | measured with 0.171 unless marked |
//! |---|---|
//! | file | `$CODEX_HOME/config.toml`, else `~/.codex/config.toml`; the desktop and the extension read the same one (not run) |
//! | key | `openai_base_url` at the top, with the version: every model request, in both login modes |
//! | where it does nothing | with a `model_provider` of the user's own: then `model_providers.NAME.base_url` is the key |
//! | cannot be moved | other providers that are built in (`--oss`, `amazon-bedrock`); they have no address in the file |
//! | what undoes it | a profile (`NAME.config.toml`, or `[profiles.NAME]`) that names a provider or an address; `-c` |
//! | what is ignored | `OPENAI_BASE_URL`; `chatgpt_base_url` must be left alone |
//! | when it counts | a running daemon takes it on for new threads |

use super::{Client, Document, Finding, Format, Home, Look, Wanted, Way, folder};
use crate::words::setup as words;

/// The provider that stands for OpenAI and ChatGPT.
const BUILT_IN: &str = "openai";

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let folder = folder(look, home, "CODEX_HOME", ".codex");
    if !look.machine.has(&folder) {
        return;
    }
    let file = folder.join("config.toml");
    let mut finding = Finding::new(Client::Codex, "Codex", home, file, Format::Toml);
    if let Some(document) = look.open(&mut finding) {
        let profile = document.at(&["profile"]);
        let of_profile = profile.and_then(|name| document.at(&["profiles", name, "model_provider"]));
        let provider = of_profile.or_else(|| document.at(&["model_provider"])).unwrap_or(BUILT_IN).to_owned();
        finding = if provider == BUILT_IN {
            finding.key(&["openai_base_url"], Wanted::Address("/v1"))
        } else if document.at(&["model_providers", &provider, "base_url"]).is_some() {
            finding.key(&["model_providers", &provider, "base_url"], Wanted::Address("/v1"))
        } else {
            finding.way = Way::No(words::codex_elsewhere(look.lang, &provider));
            finding
        };
        finding.notes.extend(profiles(look, &document, &folder));
    }
    found.push(finding);
}

/// The profiles whose sessions go elsewhere.
fn profiles(look: Look<'_>, document: &Document, folder: &std::path::Path) -> Vec<String> {
    let goes_elsewhere = |value: Option<&str>| value.is_some_and(|url| !look.relay.is(url));
    let inside = document.keys(&["profiles"]).into_iter().filter(|name| {
        document.at(&["profiles", name, "model_provider"]).is_some()
            || goes_elsewhere(document.at(&["profiles", name, "openai_base_url"]))
    });
    let mut names: Vec<String> = inside.map(str::to_owned).collect();
    for file in (look.machine.list)(folder) {
        let Some(name) = file.strip_suffix(".config.toml") else { continue };
        let Some(profile) = look.peek(&folder.join(&file), Format::Toml) else { continue };
        if profile.at(&["model_provider"]).is_some() || goes_elsewhere(profile.at(&["openai_base_url"])) {
            names.push(name.to_owned());
        }
    }
    names.iter().map(|name| words::codex_profile(look.lang, name)).collect()
}
