//! What the command line asks of every message, found before it is understood: what is wrong with it is told in that
//! language, too. Not its other flags.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::Command;
use relay_core::Lang;

use super::in_english;

/// The language and the colour that the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// By `--lang`.
    pub lang: Option<Lang>,
    /// By `--color`.
    pub colour: ColorChoice,
}

impl Asked {
    // By hand: clap, told to ignore errors, ends at the first word that it does not know, such as a flag spelled wrong.
    /// Looks through a command line, which begins with the program's name. A value that is none asks for nothing: it
    /// is refused later.
    #[must_use]
    pub fn on(line: &[OsString]) -> Self {
        let mut asked = Self { lang: None, colour: ColorChoice::Auto };
        let mut verb = in_english();
        // Flags of every verb are known to every verb.
        verb.build();
        let mut words = line.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                match verb.find_subcommand(word).cloned() {
                    Some(below) => verb = below,
                    // All that follows is somebody else's.
                    None if !word.starts_with('-') && takes_all_that_follows(&verb) => break,
                    None => {}
                }
                continue;
            };
            if flag.is_empty() {
                break;
            }
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if takes_value(&verb, flag) => (flag, words.next()),
                None => continue,
            };
            match (name, value) {
                ("lang", Some(code)) => asked.lang = Lang::ALL.into_iter().find(|lang| lang.code() == code),
                ("color", Some("always")) => asked.colour = ColorChoice::Always,
                ("color", Some("never")) => asked.colour = ColorChoice::Never,
                ("color", Some("auto")) => asked.colour = ColorChoice::Auto,
                _ => {}
            }
        }
        asked
    }
}

fn takes_all_that_follows(verb: &Command) -> bool {
    verb.get_arguments().any(clap::Arg::is_trailing_var_arg_set)
}

fn takes_value(verb: &Command, name: &str) -> bool {
    verb.get_arguments().any(|flag| flag.get_long() == Some(name) && flag.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_and_colour_are_found_wherever_they_stand() {
        let asked = |line: &str| Asked::on(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let zh = Some(Lang::Chinese);
        for line in [
            "x --lang zh",
            "x --lang=zh serve",
            "x serve --port 1 --lang zh",
            "x config show --lang zh --no-such-flag",
            "x config --lang zh show",
            "x run --lang zh codex --lang en",
            "x run --port 1 --lang zh -- codex --lang en",
            "x --lang zh nonsense",
            "x --lang zh --help",
            "x --help --lang zh",
            "x serve --no-such-flag --lang zh",
            "x nonsense --lang zh",
        ] {
            assert_eq!(asked(line).lang, zh, "{line}");
        }
        for line in [
            "x",
            "x --lang",
            "x --lang xx",
            "x run codex --lang zh",
            "x run -- codex --lang zh",
            "x --port --lang zh",
        ] {
            assert_eq!(asked(line).lang, None, "{line}");
        }
        let colours =
            [("always", ColorChoice::Always), ("never", ColorChoice::Never), ("auto", ColorChoice::Auto)];
        for (name, colour) in colours {
            assert_eq!(asked(&format!("x demo --color {name}")).colour, colour);
        }
        assert_eq!(asked("x --color blue").colour, ColorChoice::Auto);
    }
}
