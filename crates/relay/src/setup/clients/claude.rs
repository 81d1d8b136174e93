//! Claude Code, in the terminal and in editors.
//!
//! | what | measured with 2.1.197 and 2.1.332 unless marked |
//! |---|---|
//! | file | `settings.json` in `$CLAUDE_CONFIG_DIR`, else in `~/.claude` |
//! | key | `env.ANTHROPIC_BASE_URL`, without a version; it wins over the environment |
//! | cannot be moved | where `CLAUDE_CODE_USE_BEDROCK`, `…_VERTEX` or `…_FOUNDRY` is set |
//! | what undoes it | the managed file; `.claude/settings.json` and `settings.local.json` of a project; `--settings` |
//! | what it costs | Remote Control and settings that an organisation manages stay off with any address of one's own (read) |

use std::path::{Path, PathBuf};

use super::{Client, Document, Finding, Format, Home, Look, Machine, Side, Wanted, Way, folder};
pub(super) use crate::client_facts::CLAUDE_BASE_URL as BASE_URL;
use crate::client_facts::{CLAUDE_CLOUDS, claude_managed, is_on};
use crate::words::setup as words;

/// Its folder in a home.
pub(super) fn folder_in(machine: &Machine<'_>, home: &Home) -> PathBuf {
    folder(machine, home, "CLAUDE_CONFIG_DIR", ".claude")
}

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let folder = folder_in(look.machine, home);
    if !look.finds(Client::Claude, home, &folder) {
        return;
    }
    let file = folder.join("settings.json");
    let mut finding = Finding::new(Client::Claude, "Claude Code", home, file, Format::Json)
        .key(&["env", BASE_URL], Wanted::Address(""));
    if let Some(document) = look.open(&mut finding) {
        if home.side == Side::Here {
            finding.around = look.machine.variable(BASE_URL);
        }
        if let Some(cloud) = cloud(look, home, &document) {
            finding.way = Way::No(words::claude_cloud(look.lang, cloud));
        }
        beside(look, home, &mut finding);
    }
    found.push(finding);
}

/// The cloud that it is told to use instead.
fn cloud(look: Look<'_>, home: &Home, document: &Document) -> Option<&'static str> {
    CLAUDE_CLOUDS.into_iter().find(|name| {
        let around = if home.side == Side::Here { look.machine.variable(name) } else { None };
        let set = document.at(&["env", name]).map(str::to_owned).or(around);
        set.is_some_and(|value| is_on(&value))
    })
}

/// The files that win over the user's own.
fn beside(look: Look<'_>, home: &Home, finding: &mut Finding) {
    if home.side != Side::Here {
        return;
    }
    let elsewhere = |file: &Path| {
        let document = look.peek(file, Format::Json)?;
        document.at(&["env", BASE_URL]).filter(|url| !look.relay.is(url)).map(|_| file.display().to_string())
    };
    if let Some(file) = elsewhere(Path::new(claude_managed(home.system))) {
        finding.way = Way::No(words::managed(look.lang, &file));
    }
    let project = look.machine.folder.join(".claude");
    for name in ["settings.json", "settings.local.json"] {
        let file = project.join(name);
        if file != finding.file
            && let Some(file) = elsewhere(&file)
        {
            finding.notes.push(words::wins_here(look.lang, &file, BASE_URL));
        }
    }
}
