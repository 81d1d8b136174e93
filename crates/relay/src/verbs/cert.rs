//! `steady-relay cert …`: the certificate of https: what it is, how clients trust it, and a new one.

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::json;
use steady_relay::cli::Flags;
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::https::authority::certificate_path;
use steady_relay::https::authority::{Authority, Facts, HttpsError};
use steady_relay::https::{Verb, help};
use steady_relay::settings::Loaded;
use steady_relay::words::{self, https as table, start};

use super::{Failure, failed, files, load, print, print_json, say};

impl From<HttpsError> for Failure {
    fn from(error: HttpsError) -> Self {
        failed(1, &error)
    }
}

/// Carries out one of the verbs.
pub(crate) fn cert(flags: &Flags, verb: &Verb) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let state: PathBuf = config.state_dir.clone().ok_or(HttpsError::NoFolder)?;
    let path = certificate_path(&state);
    match *verb {
        Verb::Show { json } => match Authority::look(&state)? {
            Some(authority) => show(authority.facts(), json),
            None => Err(HttpsError::NoneYet(path).into()),
        },
        Verb::TrustHelp { json } => {
            if !path.exists() {
                say(&start::note(words::lang(), &HttpsError::NoneYet(path.clone()).to_string()));
            }
            if json { print_json(&help::page(&path)) } else { print(&help::words(words::lang(), &path)) }
        }
        Verb::Renew { json } => {
            let authority = Authority::renew(&state, &config.names, SystemClock.wall())?;
            if json {
                return show(authority.facts(), true);
            }
            say(&table::renewed(words::lang(), &path.display().to_string()));
            Ok(0)
        }
    }
}

fn show(facts: &Facts, as_json: bool) -> Result<u8, Failure> {
    let [from, to] = [facts.begins, facts.ends].map(httpdate::fmt_http_date);
    let path = facts.path.display().to_string();
    if as_json {
        let seconds =
            |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let page = json!({
            "v": 1, "file": path, "begins": seconds(facts.begins), "ends": seconds(facts.ends),
            "names": facts.names, "sha256": facts.fingerprint,
        });
        return print_json(&page);
    }
    let lang = words::lang();
    let lines = [
        table::file(lang, &path),
        table::holds(lang, &from, &to),
        table::names(lang, &facts.names.join(", ")),
        table::fingerprint(lang, &facts.fingerprint),
    ];
    print(&lines.join("\n"))
}
