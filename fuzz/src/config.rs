//! A settings file of any bytes: it holds, or what is wrong with it is told with its place and without its secrets.

use relay_core::config::Secret;
use std::collections::BTreeSet;
use std::io;
use std::str::FromStr as _;
use steady_relay::cli::Flags;
use steady_relay::settings::{Loaded, NO_VARIABLES, SettingsError, load};

const SECRET: &str = "planted7Secret7planted7Secret";

/// The bytes are the file; once more with a secret in front of them.
pub fn config(file: &[u8]) {
    if let Err(error) = read(file) {
        check(&error, file);
        assert!(Secret::from_str(SECRET).is_ok());
    }
    if file.windows(8).any(|part| part.eq_ignore_ascii_case(b"planted7")) {
        return;
    }
    for line in [
        format!("relay.token = \"{SECRET}\"\n"),
        format!("relay = {{ token = '{SECRET}', port = 80800 }}\n"),
        format!("upstream.x = {{ headers = {{ \"x-key\" = \"{SECRET}\" }} }}\n"),
        format!("upstream.x.url = \"https://me:{SECRET}@host\"\n"),
    ] {
        let planted = [line.as_bytes(), file].concat();
        if let Err(error) = read(&planted) {
            check(&error, &planted);
            let told = error.to_string();
            assert!(!told.to_ascii_lowercase().contains("planted7"), "{told}");
        }
    }
}

fn read(file: &[u8]) -> Result<Loaded, SettingsError> {
    let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
    load(&flags, &NO_VARIABLES, &|_| -> io::Result<_> { Ok(file.to_vec()) })
}

/// Each error says something, once, at a place that exists.
fn check(error: &SettingsError, file: &[u8]) {
    assert!(!error.issues.is_empty());
    let lines = file.iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut seen = BTreeSet::new();
    for issue in &error.issues {
        assert!(!issue.what.is_empty());
        assert!(seen.insert((&issue.at, &issue.what)), "told twice: {issue}");
        let Some(place) = issue.at.strip_prefix("config.toml:") else {
            assert_eq!(issue.at, "config.toml", "{issue}");
            continue;
        };
        let numbers = place.split_once(':').map(|(line, column)| (line.parse(), column.parse()));
        let Some((Ok(line), Ok::<usize, _>(column))) = numbers else {
            unreachable!("no place: {issue}");
        };
        assert!((1..=lines).contains(&line) && column >= 1, "{issue} in a file of {lines} lines");
        assert!(issue.excerpt.is_some(), "{issue}");
    }
}
