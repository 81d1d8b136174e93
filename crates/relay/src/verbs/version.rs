//! `steady-relay --version --json`: what the program knows of itself, for other programs.

use std::process::ExitCode;

use steady_relay::installed::About;

use super::{Failure, print_json, say};

pub(crate) fn version() -> ExitCode {
    let about = serde_json::to_value(About::this()).unwrap_or_default();
    match print_json(&about) {
        Ok(code) => ExitCode::from(code),
        Err(Failure(code, words)) => {
            say(&words);
            ExitCode::from(code)
        }
    }
}
