//! What the program says to people, a file of messages for each of its parts, and the language that it says it in.
//!
//! Log lines, JSON and what programs read elsewhere are in one language and are not here.

use std::sync::OnceLock;

use relay_core::Lang;
use relay_core::words::Table;

pub mod run;
pub mod setup;

/// Every table there is.
pub const TABLES: &[Table] = &[run::TABLE, setup::TABLE];

static SPOKEN: OnceLock<Lang> = OnceLock::new();

/// The language of this process. English as long as nobody has chosen.
#[must_use]
pub fn lang() -> Lang {
    SPOKEN.get().copied().unwrap_or_default()
}

/// Chooses the language of this process, once, at its start; who comes later is not heard.
pub fn speak(lang: Lang) {
    let _first_wins = SPOKEN.set(lang);
}

/// The language that a user's surroundings ask for: what was said to this program, or else the first of `LC_ALL`,
/// `LC_MESSAGES` and `LANG` that is set to something (POSIX.1-2024, chapter 8.2). One that there are no messages in is
/// English.
#[must_use]
pub fn preferred(said: Option<Lang>, variable: impl Fn(&str) -> Option<String>) -> Lang {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = || ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(set);
    said.or_else(|| Lang::of(&locale()?)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_there_in_every_language() {
        let flaws: Vec<String> = TABLES.iter().flat_map(Table::flaws).collect();
        assert_eq!(flaws, [""; 0]);
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        const ZH: (&str, &str) = ("LANG", "zh_CN.UTF-8");
        let preferred = |said, set: &[(&str, &str)]| {
            preferred(said, |name| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(preferred(None, &[]), Lang::English);
        assert_eq!(preferred(None, &[ZH]), Lang::Chinese);
        assert_eq!(preferred(None, &[ZH, ("LC_ALL", "C")]), Lang::English);
        assert_eq!(preferred(None, &[ZH, ("LC_ALL", "")]), Lang::Chinese);
        assert_eq!(preferred(None, &[ZH, ("LC_MESSAGES", "de_DE")]), Lang::English);
        assert_eq!(preferred(Some(Lang::Chinese), &[("LC_ALL", "en_US")]), Lang::Chinese);
    }
}
