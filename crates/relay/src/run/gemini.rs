//! Moving Gemini CLI: `GOOGLE_GEMINI_BASE_URL`, where its settings choose an API key.
//!
//! Measured with 0.61.0: with the variable and without `security.auth.selectedType = "gemini-api-key"` in a settings
//! file it ends with "Invalid auth method selected", whatever `GEMINI_DEFAULT_AUTH_TYPE` says, and a Google login does
//! not use the variable. So where the choice is missing only a file can make it, which is for `setup`. The environment
//! wins over the one `.env` that it reads.

use std::path::PathBuf;

use serde_json::Value;

use super::files::{dot_env, jsonc};
use super::{Own, Plan, RelayAddr, RunError, Surroundings};
use crate::words;

const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";
const BY_KEY: &str = "gemini-api-key";

const SYSTEM: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/GeminiCli"
} else if cfg!(windows) {
    r"C:\ProgramData\gemini-cli"
} else {
    "/etc/gemini-cli"
};

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    let home = around.variable("GEMINI_CLI_HOME").map(PathBuf::from).or_else(|| around.home());
    let lang = words::lang();
    let why = match selected(around, home.as_ref(), &mut plan.notices) {
        Some(how) if how == BY_KEY => None,
        Some(how) => Some(words::run::gemini_logs_in_by(lang, &how)),
        None => Some(words::run::gemini_chooses_nothing(lang)),
    };
    if let Some(why) = why {
        return Err(RunError::Immovable {
            client: "gemini",
            why,
            hint: words::run::gemini_choose_a_key(lang),
        });
    }
    let own = super::variables::of_environment(around, BASE_URL)
        .or_else(|| of_file(around, home.as_ref(), &mut plan.notices));
    let base = match own {
        Some(own) if relay.has_upstream => {
            plan.passes_over(&own);
            relay.base()
        }
        Some(own) => plan.stand_in("gemini", &own, relay)?,
        None => relay.base(),
    };
    plan.set(BASE_URL, &base);
    Ok(())
}

/// How it logs in, as the strongest of its settings files says.
fn selected(around: Surroundings<'_>, home: Option<&PathBuf>, notices: &mut Vec<String>) -> Option<String> {
    let named = |name: &str, file: &str| {
        around.variable(name).map_or_else(|| PathBuf::from(SYSTEM).join(file), PathBuf::from)
    };
    let mut files = vec![
        named("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "settings.json"),
        around.folder.join(".gemini/settings.json"),
    ];
    files.extend(home.map(|home| home.join(".gemini/settings.json")));
    files.push(named("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "system-defaults.json"));
    files.iter().find_map(|file| {
        let settings = jsonc(around, file, notices)?;
        let chosen = settings.pointer("/security/auth/selectedType").and_then(Value::as_str)?;
        Some(chosen.to_owned())
    })
}

/// The address in the one `.env` file that it reads.
fn of_file(around: Surroundings<'_>, home: Option<&PathBuf>, notices: &mut Vec<String>) -> Option<Own> {
    let folders = around.folder.ancestors().map(PathBuf::from).chain(home.cloned());
    let mut files = folders.flat_map(|folder| [folder.join(".gemini/.env"), folder.join(".env")]);
    let (file, all) = files.find_map(|file| dot_env(around, &file, notices).map(|all| (file, all)))?;
    let origin = words::run::in_place(words::lang(), BASE_URL, &file.display().to_string());
    Some(Own { url: all.get(BASE_URL)?, origin })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BASE, Machine, upstreams, variable};
    use super::*;

    const USER: &str = "/home/u/.gemini/settings.json";
    const KEY: &str = r#"{ // mine
        "security": {"auth": {"selectedType": "gemini-api-key"}}, }"#;

    #[test]
    fn where_a_key_is_chosen_one_variable_does() {
        let plan = Machine::new().file(USER, KEY).plan(&["gemini", "-p", "hi"]).unwrap();
        assert_eq!(variable(&plan, BASE_URL), Some(BASE));
        assert_eq!((plan.args.len(), upstreams(&plan), plan.notices.len()), (2, vec![], 0));
    }

    #[test]
    fn where_none_is_chosen_only_a_file_helps() {
        let google = r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#;
        for machine in [
            Machine::new(),
            Machine::new().file(USER, google),
            Machine::new().file(USER, KEY).file("/project/.gemini/settings.json", google),
            Machine::new().env("GEMINI_DEFAULT_AUTH_TYPE", "gemini-api-key"),
        ] {
            let error = machine.plan(&["gemini"]).unwrap_err();
            assert!(error.to_string().contains("steady-relay setup gemini"), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn an_address_of_the_users_own_is_the_upstream() {
        let machine =
            Machine::new().file(USER, KEY).file("/project/.env", "X=1\nGOOGLE_GEMINI_BASE_URL=https://p");
        let machine = machine.file("/home/u/.gemini/.env", "GOOGLE_GEMINI_BASE_URL=https://h");
        let plan = machine.plan(&["gemini"]).unwrap();
        assert_eq!(upstreams(&plan), [("gemini", "https://p")]);
        assert_eq!(variable(&plan, BASE_URL), Some(&*format!("{BASE}/to/gemini")));
        let plan = machine.env(BASE_URL, "https://shell/v1beta").plan(&["gemini"]).unwrap();
        assert_eq!(upstreams(&plan), [("gemini", "https://shell/v1beta")]);
        assert_eq!(variable(&plan, BASE_URL), Some(&*format!("{BASE}/to/gemini/v1beta")));
        // The first file counts, also where it says nothing of it.
        let silent = Machine::new().file(USER, KEY).file("/project/.env", "X=1");
        let silent = silent.file("/home/u/.gemini/.env", "GOOGLE_GEMINI_BASE_URL=https://h");
        assert_eq!(upstreams(&silent.plan(&["gemini"]).unwrap()), []);
    }
}
