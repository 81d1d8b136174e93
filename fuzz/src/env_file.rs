//! An env file of any bytes: it is read the same in every encoding, what is wrong is told with its line, and no
//! value is ever shown.

use std::io::{self, ErrorKind};
use std::path::Path;
use steady_relay::cli::Flags;
use steady_relay::settings::{Loaded, NO_VARIABLES, SettingsError, load};

const SECRET: &str = "planted7Secret7planted7Secret";

/// The bytes are the file; in other encodings, and with a secret in front of them.
pub fn env_file(file: &[u8]) {
    let read_as_is = read(file);
    if let Err(error) = &read_as_is {
        check(error, file);
    }
    // A mark of its own says that the file is in another encoding already; zeros are the sign of UTF-16 without one.
    let text =
        std::str::from_utf8(file).ok().filter(|text| !text.starts_with('\u{FEFF}') && !text.contains('\0'));
    let Some(text) = text else { return };
    for other in encodings(text) {
        assert_eq!(read(&other), read_as_is, "in another encoding");
    }
    if text.to_ascii_lowercase().contains("planted7") {
        return;
    }
    for line in [
        format!("CODEX_API_KEY={SECRET}"),
        format!("export CODEX_API_KEY = '{SECRET}"),
        format!("STEADY_RELAY_TOKEN=\"{SECRET}\\q\""),
        format!("PORT=sk-proj-{SECRET}"),
        format!("UPSTREAM_URL=https://me:{SECRET}@host/v1"),
        SECRET.to_owned(),
    ] {
        for planted in [format!("{line}\n{text}"), format!("{text}\n{line}")] {
            let told = match read(planted.as_bytes()) {
                Ok(loaded) => format!("{:?} {:?} {:?}", loaded.config, loaded.notices, loaded.shown),
                Err(error) => error.to_string(),
            };
            assert!(!told.to_ascii_lowercase().contains("planted7"), "{line:?}: {told}");
        }
    }
}

fn read(file: &[u8]) -> Result<Loaded, SettingsError> {
    let flags = Flags { env_file: Some("env".into()), ..Flags::default() };
    let files = |path: &Path| {
        if path == Path::new("env") { Ok(file.to_vec()) } else { Err(io::Error::from(ErrorKind::NotFound)) }
    };
    load(&flags, &NO_VARIABLES, &files)
}

/// The same text as UTF-8 with its mark, as UTF-16 of both kinds, and with the line ends of Windows.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(bytes).collect::<Vec<u8>>()
    };
    let mut all =
        vec![[b"\xEF\xBB\xBF", text.as_bytes()].concat(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)];
    if !text.contains('\r') {
        all.push(text.replace('\n', "\r\n").into_bytes());
    }
    all
}

/// Each error stands in a line that there is.
fn check(error: &SettingsError, file: &[u8]) {
    assert!(!error.issues.is_empty());
    // In UTF-16 a line end is not always a byte of its own.
    let lines = file.iter().filter(|byte| **byte == b'\n').count() + 1;
    for issue in &error.issues {
        assert!(!issue.what.is_empty());
        let Some(place) = issue.at.strip_prefix("env:") else {
            assert!(["env", "settings"].contains(&issue.at.as_str()), "{issue}");
            continue;
        };
        let number = place.split(|c: char| !c.is_ascii_digit()).next().and_then(|line| line.parse().ok());
        assert!(number.is_some_and(|line| (1..=lines).contains(&line)), "{issue} in a file of {lines} lines");
    }
}
