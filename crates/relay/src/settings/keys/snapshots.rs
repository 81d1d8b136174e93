//! `[snapshots]`.

use crate::settings::read::{Given, Key};
use relay_core::config::SnapshotSettings;
use relay_core::event::Outcome;
use relay_core::units::Invalid;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// `[snapshots]`.
pub(in crate::settings) const SNAPSHOTS: &[Key<SnapshotSettings>] = &[
    Key {
        name: "enabled",
        shape: "true or false",
        default: "false",
        doc: "Whether the request, its answer and the record of a call that ends badly are kept in a file: without keys, tokens, \
              cookies, e-mail addresses and home folders, but with what people wrote.",
        set: |snapshots, given| given.flag().map(|value| snapshots.enabled = value),
    },
    Key {
        name: "folder",
        shape: "path",
        default: "\"\"",
        doc: "The folder of these files, which only their owner can read. A relative path starts at the folder of this file. \
              Empty: `snapshots` in `relay.state_dir`; without such a folder nothing is kept.",
        set: |snapshots, given| {
            let path = given.text()?;
            snapshots.folder = (!path.is_empty()).then(|| PathBuf::from(path));
            Ok(())
        },
    },
    Key {
        name: "outcomes",
        shape: "list of names",
        default: r#"["passed", "returned", "refused", "gave_up", "broken"]"#,
        doc: "Which ends are bad: any of those in `docs/log.md`. `passed` is a service's definite error.",
        set: |snapshots, given| outcomes(given).map(|value| snapshots.outcomes = value),
    },
    Key {
        name: "max_size",
        shape: "size",
        default: "\"256KiB\"",
        doc: "The most that one file holds; the longest texts of a longer one are shortened.",
        set: |snapshots, given| given.size(16 << 10..=64 << 20).map(|value| snapshots.max_size = value),
    },
    Key {
        name: "max_count",
        shape: "whole number",
        default: "100",
        doc: "The most files; the oldest go first.",
        set: |snapshots, given| given.count(1..=10_000).map(|value| snapshots.max_count = value),
    },
    Key {
        name: "max_total",
        shape: "size",
        default: "\"16MiB\"",
        doc: "The most that all files hold together; the oldest go first.",
        set: |snapshots, given| given.size(64 << 10..=1 << 40).map(|value| snapshots.max_total = value),
    },
];

fn outcomes(given: &Given<'_>) -> Result<BTreeSet<Outcome>, Invalid> {
    given.texts()?;
    let among = Outcome::ALL.map(|outcome| (outcome.name(), outcome));
    given.each_or_one().iter().map(|one| one.choice(&among)).collect()
}
