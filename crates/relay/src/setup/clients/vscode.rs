//! Claude Code's extension in VS Code and the editors made from it.
//!
//! | what | read, not run, unless marked |
//! |---|---|
//! | file | `User/settings.json` in the editor's folder of settings; `data/Machine/settings.json` of a VS Code server |
//! | key | `claudeCode.environmentVariables`, a list of `{ "name": …, "value": … }`; comments and commas at the end allowed |
//! | when | only where the extension `anthropic.claude-code` is installed, or the list has an address already |
//! | what wins over it | the `env` block of Claude Code's own file (measured for variables of the environment), so both are set |
//! | others in the editor | Codex's extension reads Codex's own file; Continue, Cline and Roo have their own places |

use std::path::{Path, PathBuf};

use super::claude::BASE_URL;
use super::{Client, Finding, Format, Home, Look, Machine, System, Wanted, peek, settings_folder};

/// Name, folder of settings, folder of extensions in the home.
const EDITORS: [(&str, &str, &str); 5] = [
    ("VS Code", "Code", ".vscode"),
    ("VS Code Insiders", "Code - Insiders", ".vscode-insiders"),
    ("VSCodium", "VSCodium", ".vscode-oss"),
    ("Cursor", "Cursor", ".cursor"),
    ("Windsurf", "Windsurf", ".windsurf"),
];

/// An editor on this machine.
pub(super) struct Editor {
    pub(super) name: &'static str,
    /// Its settings.
    file: PathBuf,
    /// The extensions in it.
    extensions: Vec<String>,
}

impl Editor {
    pub(super) fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|name| name.to_ascii_lowercase().starts_with(extension))
    }
}

pub(super) fn editors(machine: &Machine<'_>, home: &Home) -> Vec<Editor> {
    let settings = settings_folder(machine, home);
    let extensions = |folder: &Path| (machine.list)(&folder.join("extensions"));
    let mut editors: Vec<Editor> = EDITORS
        .iter()
        .map(|(name, folder, own)| Editor {
            name,
            file: settings.join(folder).join("User").join("settings.json"),
            extensions: extensions(&home.path.join(own)),
        })
        .collect();
    let server = home.path.join(".vscode-server");
    if home.system == System::Linux && machine.has(&server) {
        let file = server.join("data").join("Machine").join("settings.json");
        editors.push(Editor { name: "VS Code Server", file, extensions: extensions(&server) });
    }
    editors
}

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    const LIST: &str = "claudeCode.environmentVariables";
    let address = format!("[{BASE_URL}]");
    for editor in editors(look.machine, home) {
        let title = format!("{} (Claude Code)", editor.name);
        let installed = editor.has("anthropic.claude-code");
        let mut finding = Finding::new(Client::VsCode, &title, home, editor.file, Format::Json)
            .key(&[LIST, &address], Wanted::Address(""));
        finding.comments = true;
        let document = look.open(&mut finding);
        let path = [LIST.to_owned(), address.clone()];
        if installed || document.is_some_and(|document| document.has(&path)) {
            found.push(finding);
        }
    }
}

/// The proxies that the editors' settings name.
pub(super) fn proxies(machine: &Machine<'_>, home: &Home) -> Vec<(PathBuf, String)> {
    let named = |editor: Editor| {
        let document = peek(machine, &editor.file, Format::Json)?;
        let proxy = document.at(&["http.proxy"])?.to_owned();
        Some((editor.file, proxy))
    };
    editors(machine, home).into_iter().filter_map(named).collect()
}
