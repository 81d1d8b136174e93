//! `steady-relay config …`: what the settings are, what is wrong with them, what there is to set.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use relay_core::Lang;
use serde_json::{Value, json};
use steady_relay::cli::{ConfigVerb, Flags};
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::credentials;
use steady_relay::recorded::{self, TestRule};
use steady_relay::settings::{self, Loaded, SettingsError, Shown};
use steady_relay::words::{self, lang, start, verbs};

use super::{
    Failure, can_start, failed, files, load, places, print, print_json, say, settled, tls_config, try_load,
    wrong,
};

/// Carries out one of the verbs.
pub(crate) fn config(flags: &Flags, verb: &ConfigVerb) -> Result<u8, Failure> {
    match verb {
        ConfigVerb::Show { origin, json } => show(flags, *origin, *json),
        ConfigVerb::Check { file, json } => check(flags, file.as_ref(), *json),
        ConfigVerb::Schema => print(&format!("{:#}", settings::schema())),
        ConfigVerb::Path { json } => path(flags, *json),
        ConfigVerb::TestRule(asked) => test_rule(flags, asked),
    }
}

fn show(flags: &Flags, origin: bool, as_json: bool) -> Result<u8, Failure> {
    let loaded = try_load(flags, &files(flags)).map_err(|error| wrong(&error))?;
    if as_json {
        let Loaded { shown, notices, file, .. } = loaded;
        let keys: Vec<Value> = shown.iter().map(in_json).collect();
        return print_json(&json!({"v": 1, "file": file, "notices": notices, "keys": keys}));
    }
    let Loaded { shown, notices, .. } = settled(loaded);
    for words in notices {
        say(&start::note(lang(), &words));
    }
    print(as_toml(&shown, origin).trim_end())
}

/// A value is what would stand in the file, as text: settings that are masked or not set have none in JSON.
fn in_json(shown: &Shown) -> Value {
    let Shown { section, nth, key, value, origin } = shown;
    json!({"section": section, "nth": nth, "key": key, "value": value, "origin": origin})
}

fn as_toml(shown: &[Shown], origin: bool) -> String {
    let mut text = String::new();
    let mut last = None;
    for Shown { section, nth, key, value, origin: from } in shown {
        let line = match value {
            None if key.is_empty() && origin => format!("# sets nothing  # {from}\n"),
            None if key.is_empty() => "# sets nothing\n".to_owned(),
            Some(value) if origin => format!("{key} = {value}  # {from}\n"),
            Some(value) => format!("{key} = {value}\n"),
            None if origin => format!("# {key} is not set\n"),
            None => continue,
        };
        if last.replace((section, nth)) != Some((section, nth)) {
            let gap = if text.is_empty() { "" } else { "\n" };
            text += &format!("{gap}{section}\n");
        }
        text += &line;
    }
    text
}

fn check(flags: &Flags, file: Option<&PathBuf>, as_json: bool) -> Result<u8, Failure> {
    let flags = Flags { config: file.or(flags.config.as_ref()).cloned(), ..flags.clone() };
    match try_load(&flags, &files(&flags)) {
        Err(SettingsError { issues, more }) if as_json => {
            let errors: Vec<_> = issues
                .iter()
                .map(|issue| json!({"at": issue.at, "what": issue.what, "hint": issue.hint}))
                .collect();
            print_json(&json!({"v": 1, "ok": false, "errors": errors, "more": more})).map(|_printed| 2)
        }
        Err(error) => Err(wrong(&error)),
        Ok(loaded) => {
            // Programs read JSON, in English.
            let loaded = if as_json { loaded } else { settled(loaded) };
            if as_json {
                words::settle(Some(Lang::English));
            }
            let Loaded { config, notices, .. } = loaded;
            // Certificates are read at the start, so a file that is missing would stop it.
            let started = can_start(&config).and_then(|()| tls_config(&config));
            let (_tls, more) = match started {
                Err(Failure(code, words)) if as_json => {
                    let words = words.trim_start_matches("error: ");
                    let (what, hint) = words.split_once("\nhint: ").unwrap_or((words, ""));
                    let error = json!({"at": "settings", "what": what, "hint": hint});
                    let all = json!({"v": 1, "ok": false, "errors": [error]});
                    return print_json(&all).map(|_printed| code);
                }
                tls => tls?,
            };
            let held = credentials::all_flaws(&config).map(|flaw| flaw.words);
            let notices: Vec<_> = notices.into_iter().chain(more).chain(held).collect();
            if as_json {
                return print_json(&json!({"v": 1, "ok": true, "notices": notices}));
            }
            for words in notices {
                say(&start::note(lang(), &words));
            }
            print("ok")
        }
    }
}

fn path(flags: &Flags, as_json: bool) -> Result<u8, Failure> {
    let places = places(flags, &files(flags));
    let exists = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.exists());
    if as_json {
        let [config, env_file, usual] = [&places.config, &places.env_file, &places.usual_env_file]
            .map(|path| json!({"path": path, "exists": exists(path)}));
        let all = json!({"v": 1, "config": config, "env_file": env_file, "usual_env_file": usual});
        return print_json(&all);
    }
    let Some(config) = &places.config else {
        return Err(Failure(1, verbs::no_place(lang())));
    };
    if !exists(&places.config) {
        say(&if places.config_is_named {
            verbs::named_is_missing(lang())
        } else {
            verbs::no_file_yet(lang())
        });
    }
    print(&config.display().to_string())
}

/// Says what a recorded answer would be taken for.
fn test_rule(flags: &Flags, asked: &TestRule) -> Result<u8, Failure> {
    let Loaded { config, rules_at, .. } = load(flags, &files(flags))?;
    let unusable = |error: &dyn std::fmt::Display| failed(2, &format!("{}: {error}", asked.file.display()));
    let file = recorded_answer(&asked.file).map_err(|error| unusable(&unread(&error)))?;
    let mut report =
        recorded::test_rule(&file, asked, &config, SystemClock.wall()).map_err(|error| unusable(&error))?;
    report.name_rule(&rules_at);
    for words in report.assumed.iter().filter(|_| !asked.json) {
        say(&start::note(lang(), &words::settings::said(lang(), words)));
    }
    if asked.json { print_json(&report.to_json()) } else { print(&report.to_string()) }
}

/// One byte more than is read tells that a file is too long, and keeps what never ends from being read for ever.
fn recorded_answer(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(recorded::LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why a file with an answer was not read.
fn unread(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == ErrorKind::NotFound {
        verbs::no_answer_file(lang())
    } else if kind == ErrorKind::IsADirectory {
        verbs::answer_is_folder(lang())
    } else if kind == ErrorKind::PermissionDenied {
        verbs::answer_not_allowed(lang())
    } else {
        verbs::answer_unreadable(lang(), &error.to_string())
    }
}
