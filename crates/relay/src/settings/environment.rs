//! The environment as settings see it: what a variable holds, and which variables there are. Not which of them are
//! read (that is `variables`).

use std::ffi::OsString;

/// An environment.
pub trait Environment {
    /// What this variable holds.
    fn value(&self, name: &str) -> Option<OsString>;

    /// The names of all variables: one that is nearly ours deserves a word.
    fn names(&self) -> Vec<String>;
}

/// A list of names and values; the first of a name holds.
impl Environment for &[(&str, &str)] {
    fn value(&self, name: &str) -> Option<OsString> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// An environment without any variable.
pub const NO_VARIABLES: &[(&str, &str)] = &[];
