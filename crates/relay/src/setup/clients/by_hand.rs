//! Clients whose settings are no file that a program should write.
//!
//! | client | where its address is (read, not run) |
//! |---|---|
//! | Continue | `apiBase` of each model in `~/.continue/config.yaml`: a list with names of the user's own, in a format that no sound editor keeps comments of |
//! | Cline, Roo Code | storage of the editor itself: entered in the extension's own page of settings |

use super::super::address::shown;
use super::vscode::editors;
use super::{Client, Finding, Format, Home, Look, Side, Way};
use crate::words::setup as words;

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let (lang, base) = (look.lang, shown(&look.relay.base()));
    let folder = home.path.join(".continue");
    let [yaml, json] = ["config.yaml", "config.json"].map(|name| folder.join(name));
    let is_asked = |client| look.named.contains(&client) && home.side == Side::Here;
    let there = [&yaml, &json].into_iter().find(|file| look.machine.has(file)).cloned();
    if let Some(file) = there.or_else(|| is_asked(Client::Continue).then_some(yaml)) {
        let shown = file.display().to_string();
        let mut finding = Finding::new(Client::Continue, "Continue", home, file, Format::Json);
        finding.way = Way::ByHand(vec![words::continue_by_hand(lang, &shown, &base)]);
        found.push(finding);
    }
    let before = found.len();
    for editor in editors(look.machine, home) {
        for (extension, name) in
            [("saoudrizwan.claude-dev", "Cline"), ("rooveterinaryinc.roo-cline", "Roo Code")]
        {
            if editor.has(extension) {
                let title = format!("{} ({name})", editor.name);
                let mut finding =
                    Finding::new(Client::Cline, &title, home, std::path::PathBuf::new(), Format::Json);
                finding.way = Way::ByHand(vec![words::cline_by_hand(lang, name, &base)]);
                found.push(finding);
            }
        }
    }
    if found.len() == before && is_asked(Client::Cline) {
        let mut finding = Finding::new(Client::Cline, "Cline", home, std::path::PathBuf::new(), Format::Json);
        finding.way = Way::ByHand(vec![words::cline_by_hand(lang, "Cline, Roo Code", &base)]);
        found.push(finding);
    }
}
