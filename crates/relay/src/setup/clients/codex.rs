//! Codex: CLI, IDE extension and desktop read one `config.toml`.
//!
//! | what | measured with 0.171 unless marked |
//! |---|---|
//! | file | `$CODEX_HOME/config.toml`, else `~/.codex/config.toml`; the desktop and the extension read the same one (not run) |
//! | key | `openai_base_url` at the top, with the version: every model request, in both login modes |
//! | where it does nothing | with a `model_provider` of the user's own: then `model_providers.NAME.base_url` is the key |
//! | cannot be moved | other providers that are built in (`--oss`, `amazon-bedrock`); they have no address in the file |
//! | what undoes it | `managed_config.toml` in `/etc/codex`, which wins; a profile (`NAME.config.toml`) that names a provider or an address; `-c` |
//! | in older versions | `profile` and `[profiles.NAME]` in the same file; this one stops over them |
//! | what is ignored | `OPENAI_BASE_URL`; `chatgpt_base_url` must be left alone |
//! | when it counts | a running daemon takes it on for new threads |

use std::path::{Path, PathBuf};

use super::{Client, Document, Finding, Format, Home, Look, Machine, Side, Wanted, Way, folder};
use crate::client_facts::{CODEX_BASE_URL, CODEX_BUILT_IN as BUILT_IN, CODEX_PROVIDER, codex_managed};
use crate::words::setup as words;

/// Its folder in a home.
pub(super) fn folder_in(machine: &Machine<'_>, home: &Home) -> PathBuf {
    folder(machine, home, "CODEX_HOME", ".codex")
}

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let folder = folder_in(look.machine, home);
    if !look.finds(Client::Codex, home, &folder) {
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
        for key in ["openai_base_url", "chatgpt_base_url"] {
            finding.note(&document, &[key]);
        }
        for name in document.keys(&["model_providers"]) {
            finding.note(&document, &["model_providers", name, "base_url"]);
        }
        finding.notes.extend(profiles(look, &document, &folder));
        let managed = codex_managed(home.system, &folder);
        if home.side == Side::Here && names_another(look, &managed) {
            let file = managed.display().to_string();
            finding.way = Way::No(words::managed(look.lang, &file));
        }
    }
    found.push(finding);
}

/// Whether a file beside the user's own names a provider or an address other than the relay's.
fn names_another(look: Look<'_>, file: &Path) -> bool {
    let Some(document) = look.peek(file, Format::Toml) else { return false };
    let address = document.at(&[CODEX_BASE_URL]).is_some_and(|url| !look.relay.is(url));
    address || document.at(&[CODEX_PROVIDER]).is_some()
}

/// The profiles whose sessions go elsewhere.
fn profiles(look: Look<'_>, document: &Document, folder: &Path) -> Vec<String> {
    let goes_elsewhere = |value: Option<&str>| value.is_some_and(|url| !look.relay.is(url));
    let inside = document.keys(&["profiles"]).into_iter().filter(|name| {
        document.at(&["profiles", name, "model_provider"]).is_some()
            || goes_elsewhere(document.at(&["profiles", name, "openai_base_url"]))
    });
    let mut names: Vec<String> = inside.map(str::to_owned).collect();
    for file in (look.machine.list)(folder) {
        let Some(name) = file.strip_suffix(".config.toml") else { continue };
        if names_another(look, &folder.join(&file)) {
            names.push(name.to_owned());
        }
    }
    names.iter().map(|name| words::codex_profile(look.lang, name)).collect()
}
