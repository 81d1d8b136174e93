//! `steady-relay snapshots …`: the calls that ended badly, and what the present settings would make of them.

use std::path::PathBuf;

use steady_relay::cli::Flags;
use steady_relay::settings::Loaded;
use steady_relay::snapshots::folder::{Unread, list, named};
use steady_relay::snapshots::{Verb, replay};
use steady_relay::words::{lang, snapshots as words, start};

use super::{Failure, failed, files, lang_of_data, load, print, print_json, say};

impl From<Unread> for Failure {
    fn from(error: Unread) -> Self {
        failed(1, &error)
    }
}

/// Carries out one of the verbs.
pub(crate) fn snapshots(flags: &Flags, verb: &Verb) -> Result<u8, Failure> {
    if let Verb::Replay { dry_run: false, .. } = verb {
        return Err(failed(4, &words::needs_dry_run(lang())));
    }
    let Loaded { config, rules_at, .. } = load(flags, &files(flags))?;
    let folder: PathBuf = config.snapshots_folder().ok_or_else(|| failed(2, &words::no_folder(lang())))?;
    match verb {
        Verb::List { json } => {
            let (all, bad) = list(&folder)?;
            for why in &bad {
                say(&start::note(lang(), &why.to_string()));
            }
            if *json {
                return print_json(&replay::list_json(&all));
            }
            if all.is_empty() {
                say(&start::note(lang(), &Unread::Empty(folder).to_string()));
                return Ok(0);
            }
            print(&replay::list(&all))
        }
        Verb::Show { id, json } => {
            let snapshot = named(&folder, id)?;
            if *json {
                let text = snapshot.text().map_err(|error| failed(1, &error))?;
                return print_json(&text.trim_end());
            }
            print(&replay::text(lang(), &snapshot))
        }
        Verb::Replay { id, json, dry_run: _ } => {
            let snapshot = named(&folder, id)?;
            let anew = replay::anew(lang_of_data(*json), &snapshot, &config, &rules_at);
            if *json {
                return print_json(&replay::replay_json(&snapshot, &anew));
            }
            print(&replay::replay(lang(), &snapshot, &anew))
        }
    }
}
