//! opencode.
//!
//! | what | measured with 1.18.33 unless marked |
//! |---|---|
//! | file | `opencode.json` in `$XDG_CONFIG_HOME/opencode`, else in `~/.config/opencode`, on every system (read); where there is an `opencode.jsonc` that one, which is read after it |
//! | keys | `provider.openai.options.baseURL` and `provider.anthropic.options.baseURL` with `/v1`, `provider.google.options.baseURL` with `/v1beta`; a provider of which nothing else is said keeps all that opencode knows of it |
//! | what undoes it | `OPENCODE_CONFIG`, `OPENCODE_CONFIG_CONTENT`, an `opencode.json` of a project (read) |

use super::{Client, Finding, Format, Home, Look, Side, Wanted, folder};
use crate::words::setup as words;

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let folder = folder(look.machine, home, "XDG_CONFIG_HOME", ".config").join("opencode");
    if !look.finds(Client::Opencode, home, &folder) {
        return;
    }
    let commented = folder.join("opencode.jsonc");
    let file = if look.machine.has(&commented) { commented } else { folder.join("opencode.json") };
    let mut finding = Finding::new(Client::Opencode, "opencode", home, file, Format::Json)
        .key(&["provider", "openai", "options", "baseURL"], Wanted::Address("/v1"))
        .key(&["provider", "anthropic", "options", "baseURL"], Wanted::Address("/v1"))
        .key(&["provider", "google", "options", "baseURL"], Wanted::Address("/v1beta"));
    finding.comments = finding.file.extension().is_some_and(|ending| ending == "jsonc");
    if let Some(document) = look.open(&mut finding) {
        for name in document.keys(&["provider"]) {
            finding.note(&document, &["provider", name, "options", "baseURL"]);
        }
    }
    if home.side == Side::Here {
        for name in ["OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"] {
            if look.machine.variable(name).is_some() {
                finding.notes.push(words::variable_wins(look.lang, name, "opencode"));
            }
        }
        let project = look.machine.folder.join("opencode.json");
        if look.peek(&project, Format::Json).is_some_and(|document| !document.keys(&["provider"]).is_empty())
        {
            let file = project.display().to_string();
            finding.notes.push(words::wins_here(look.lang, &file, "provider"));
        }
    }
    found.push(finding);
}
