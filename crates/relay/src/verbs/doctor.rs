//! `steady-relay doctor`: looks for what is wrong, and says what to do.

use std::io::{self, Write as _};

use steady_relay::cli::Flags;
use steady_relay::doctor::facts::Settings;
use steady_relay::doctor::gather::{Patient, gather};
use steady_relay::doctor::judge::judge;
use steady_relay::doctor::{Options, report};
use steady_relay::proxy::SystemProxies;
use steady_relay::settings::{Issue, Loaded, Shown};
use steady_relay::words::{self, lang, start};

use super::{Failure, Process, block_on, files, lang_of_data, places, print_json, try_load};

/// Looks, and prints what was found; 1 where something does not work.
pub(crate) fn doctor(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let (patient, _shown) = patient(flags, options.json);
    let facts = block_on(async { Ok(gather(patient).await) })?;
    let findings = judge(lang_of_data(options.json), &facts);
    let code = report::exit_code(&findings);
    if options.json {
        return print_json(&report::json(&findings)).map(|_printed| code);
    }
    let mut out = anstream::AutoStream::auto(io::stdout());
    match write!(out, "{}", report::text(lang(), &findings)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure(1, start::no_output(lang(), &error.to_string())))
        }
        Ok(()) | Err(_) => Ok(code),
    }
}

/// What is looked at, and the settings key by key. Settings that cannot be read are one trouble among others, and the
/// rest is looked at as without any.
pub(super) fn patient(flags: &Flags, is_json: bool) -> (Patient<'static>, Vec<Shown>) {
    let files = files(flags);
    let places = places(flags, &files);
    let said = |words: &str| words::settings::said(lang_of_data(is_json), words);
    let (config, settings, shown) = match try_load(flags, &files) {
        Ok(Loaded { config, notices, file, shown, .. }) => {
            words::settle(config.lang);
            let file = file.map(|file| file.display().to_string());
            let notes = notices.iter().map(|notice| said(notice)).collect();
            (config, Settings { file, errors: Vec::new(), notes }, shown)
        }
        Err(error) => {
            let told = |issue: &Issue| (format!("{}: {}", issue.at, said(&issue.what)), said(&issue.hint));
            let errors = error.issues.iter().map(told).collect();
            let settings = Settings { file: None, errors, notes: Vec::new() };
            (relay_core::Config::default(), settings, Vec::new())
        }
    };
    let patient = Patient {
        config,
        settings,
        places,
        env: &Process,
        proxies: SystemProxies::found(),
        folder: std::env::current_dir().unwrap_or_default(),
    };
    (patient, shown)
}
