//! `--help` in Chinese: every text of the command line is looked up by its English, so that a text that changes asks for
//! its translation anew. Not the texts (those are `words::help`), and not what clap says by itself (that is `leave`).

use clap::Command;
use clap::builder::{Resettable, StyledStr};

use crate::words::help;

/// The same commands with the texts in Chinese. Their lines are broken by whoever prints them.
pub(super) fn in_chinese(command: Command) -> Command {
    spoken(command).term_width(0)
}

fn spoken(command: Command) -> Command {
    let about = command.get_about().map(text);
    let long_about = command.get_long_about().map(text);
    let after = command.get_after_help().map(block);
    let long_after = command.get_after_long_help().map(block);
    let command = command
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
        .after_help(Resettable::from(after))
        .after_long_help(Resettable::from(long_after));
    let command = command.mut_args(|arg| {
        let (help, long_help) = (arg.get_help().map(text), arg.get_long_help().map(text));
        let heading = arg.get_help_heading().and_then(help::chinese);
        let arg = arg.help(Resettable::from(help)).long_help(Resettable::from(long_help));
        // Without one of its own it stands below clap's.
        if heading.is_some() { arg.help_heading(heading) } else { arg }
    });
    command.mut_subcommands(spoken)
}

fn text(english: &StyledStr) -> StyledStr {
    paragraphs(&english.to_string()).map(said).collect::<Vec<_>>().join("\n\n").into()
}

fn block(english: &StyledStr) -> StyledStr {
    let mut chinese = String::new();
    for part in parts(&english.to_string()) {
        match part {
            Part::Prose(prose) => chinese += said(&prose).trim_end(),
            Part::Line(code, "") => chinese += code,
            Part::Line(code, told) => chinese += &format!("{code}{}", said(told)),
        }
        chinese.push('\n');
    }
    chinese.trim_end().to_owned().into()
}

/// The texts between empty lines.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty())
}

/// A part of what follows the flags.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// What is told, of which the lines are broken anywhere.
    Prose(String),
    /// A line that begins with spaces: what is typed with the space behind it, and what is told of it.
    Line(&'a str, &'a str),
}

fn parts(block: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for line in block.lines() {
        let content = line.trim_start();
        if content.len() < line.len() {
            let gap = content.find("  ").map_or(line.len(), |at| {
                let told = content.split_at(at).1.trim_start();
                line.len() - told.len()
            });
            let (code, told) = line.split_at(gap);
            parts.push(Part::Line(code, told));
            continue;
        }
        match parts.last_mut() {
            Some(Part::Prose(prose)) if !prose.is_empty() && !line.is_empty() => {
                *prose += &format!(" {line}")
            }
            _ => parts.push(Part::Prose(line.to_owned())),
        }
    }
    parts
}

/// The Chinese of a text, with the stop at its end that the English has.
fn said(english: &str) -> String {
    let key = english.strip_suffix('.').unwrap_or(english);
    match help::chinese(key) {
        Some(chinese) if key == english => chinese.to_owned(),
        Some(chinese) => format!("{chinese}。"),
        // It stays as it is: a test tells.
        None => english.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::in_english;
    use super::*;

    /// All texts of the commands, each as it is looked up, with a place where it stands.
    fn texts(command: &Command, path: &str, all: &mut Vec<(String, String)>) {
        let mut add = |text: &str, at: String| {
            let key = text.strip_suffix('.').unwrap_or(text);
            if key.contains(char::is_alphabetic) && !all.iter().any(|(known, _)| known == key) {
                all.push((key.to_owned(), at));
            }
        };
        for told in [command.get_about(), command.get_long_about()].into_iter().flatten() {
            paragraphs(&told.to_string()).for_each(|text| add(text, path.to_owned()));
        }
        for told in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
            for part in parts(&told.to_string()) {
                match part {
                    Part::Prose(prose) => add(&prose, format!("{path}, after its flags")),
                    Part::Line(_, told) => add(told, format!("{path}, after its flags")),
                }
            }
        }
        for arg in command.get_arguments() {
            let at = format!("{path} {}", arg.get_id());
            for told in [arg.get_help(), arg.get_long_help()].into_iter().flatten() {
                paragraphs(&told.to_string()).for_each(|text| add(text, at.clone()));
            }
            arg.get_help_heading().into_iter().for_each(|heading| add(heading, at.clone()));
            for value in arg.get_possible_values() {
                assert_eq!(
                    value.get_help(),
                    None,
                    "{at}: the help of a value stays English, write it into the argument's"
                );
            }
        }
        for below in command.get_subcommands() {
            texts(below, &format!("{path} {}", below.get_name()), all);
        }
    }

    #[test]
    fn every_text_of_the_help_has_its_chinese() {
        let mut all = Vec::new();
        texts(&in_english(), "steady-relay", &mut all);
        let missing: Vec<_> = all
            .iter()
            .filter(|(text, _)| help::chinese(text).is_none())
            .map(|(text, at)| format!("    // {at}\n    ({text:?}, \"\"),"))
            .collect();
        assert!(
            missing.is_empty(),
            "{} texts have no Chinese: add to TEXTS in crates/relay/src/words/help.rs, with the translation filled in\n{}",
            missing.len(),
            missing.join("\n")
        );
        let used: BTreeSet<_> = all.iter().map(|(text, _)| text.as_str()).collect();
        let unused: Vec<_> = help::TEXTS.iter().filter(|(text, _)| !used.contains(text)).collect();
        assert!(unused.is_empty(), "no help says these any more: take them out of TEXTS {unused:#?}");
    }
}
