//! Gemini CLI, with a key of the Gemini API.
//!
//! | what | measured with 0.61.0 unless marked |
//! |---|---|
//! | files | `.env` and `settings.json` in `~/.gemini` |
//! | keys | `GOOGLE_GEMINI_BASE_URL` in the first, without a version; `security.auth.selectedType` in the second has to be `gemini-api-key`, or the variable selects another login and the client stops (exit code 41) |
//! | cannot be moved | a login with Google: its requests go to another service |
//! | what undoes it | a `.env` or `.gemini/.env` of a project: the first one that is found is the only one that is read (read) |

use super::{Client, Finding, Format, Home, Look, Side, Wanted, Way};
use crate::words::setup as words;

const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";
const TYPE: [&str; 3] = ["security", "auth", "selectedType"];
const BY_KEY: &str = "gemini-api-key";

pub(super) fn look(look: Look<'_>, home: &Home, found: &mut Vec<Finding>) {
    let folder = home.path.join(".gemini");
    if !look.finds(Client::Gemini, home, &folder) {
        return;
    }
    let mut variables = Finding::new(Client::Gemini, "Gemini CLI", home, folder.join(".env"), Format::Env)
        .key(&[BASE_URL], Wanted::Address(""));
    let mut settings =
        Finding::new(Client::Gemini, "Gemini CLI", home, folder.join("settings.json"), Format::Json)
            .key(&TYPE, Wanted::Text(BY_KEY));
    let (Some(env), Some(document)) = (look.open(&mut variables), look.open(&mut settings)) else {
        // Half of it would stop the client.
        let broken = if variables.way == Way::Keys { settings } else { variables };
        found.push(broken);
        return;
    };
    if home.side == Side::Here {
        variables.around = look.machine.variable(BASE_URL);
        let project = look.machine.folder.join(".env");
        if project != variables.file && look.machine.has(&project) {
            let file = project.display().to_string();
            variables.notes.push(words::gemini_project(look.lang, &file));
        }
    }
    let around = if home.side == Side::Here { look.machine.variable("GEMINI_API_KEY") } else { None };
    let has_key = env.at(&["GEMINI_API_KEY"]).is_some() || around.is_some();
    match document.at(&TYPE) {
        Some(BY_KEY) => found.push(variables),
        // The settings first: with the variable and without them, the client stops.
        None if has_key => found.extend([settings, variables]),
        None | Some(_) => {
            variables.way = Way::No(words::gemini_login(look.lang));
            found.push(variables);
        }
    }
}
