//! Manual pages, made from the command line as it is understood. Not where they are written to.

use std::io;

use clap::Command;
use clap_mangen::Man;
use relay_core::Lang;

use super::command;
use crate::terminal;

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The name of its file: `steady-relay-run.1`.
    pub name: String,
    /// What is in it, for `man`.
    pub roff: String,
}

/// The page of the program itself, and then one of each verb.
///
/// # Errors
/// Where the system has no room for them.
pub fn pages(lang: Lang) -> io::Result<Vec<Page>> {
    let mut all = Vec::new();
    let mut top = command(lang).disable_help_subcommand(true);
    top.build();
    add(&top, lang, &mut all)?;
    Ok(all)
}

fn add(verb: &Command, lang: Lang, all: &mut Vec<Page>) -> io::Result<()> {
    let man = Man::new(verb.clone());
    let name = man.get_filename();
    let mut roff = Vec::new();
    man.render(&mut roff)?;
    let roff = String::from_utf8(roff).map_err(io::Error::other)?;
    let mut roff = with_foot_and_examples(&roff, name.trim_end_matches(".1"));
    if !all.is_empty() {
        roff.push_str(".SH \"SEE ALSO\"\nsteady\\-relay(1)\n");
    }
    let roff = match lang {
        Lang::English => roff,
        Lang::Chinese => in_columns(&roff),
    };
    all.push(Page { name, roff });
    verb.get_subcommands().filter(|verb| !verb.is_hide_set()).try_for_each(|verb| add(verb, lang, all))
}

/// The foot names the program and its version, whatever the verb is; a date that is left out has to be there as an empty
/// word. The examples have a section of their own; what stands before them is a note.
fn with_foot_and_examples(roff: &str, name: &str) -> String {
    const FOOT: &str = concat!("\"\" \"steady-relay ", env!("CARGO_PKG_VERSION"), "\" \"User Commands\"");
    let mut page = String::new();
    let mut is_extra = false;
    for line in roff.lines() {
        match line {
            ".SH EXTRA" => {
                is_extra = true;
                page += ".SH NOTES";
            }
            "Examples:" | "示例：" if is_extra => {
                // A section that has nothing else in it.
                page.truncate(page.strip_suffix(".SH NOTES\n").map_or(page.len(), str::len));
                page += ".SH EXAMPLES";
            }
            line if line.starts_with(".TH ") => page += &format!(".TH {name} 1 {FOOT}"),
            line => page += line,
        }
        page.push('\n');
    }
    page
}

/// Readers of pages break lines at spaces, and stretch those. Chinese has none: it is told where a line may end.
fn in_columns(roff: &str) -> String {
    let mut page = String::new();
    for line in roff.lines() {
        match line.starts_with(['.', '\'']) {
            true => page += line,
            false => page += &terminal::breakable(line, "\\:"),
        }
        page.push('\n');
        if line.starts_with(".TH ") {
            page += ".ad l\n.nh\n";
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_with_what_they_are_of() {
        for lang in Lang::ALL {
            let pages = pages(lang).unwrap();
            let version = env!("CARGO_PKG_VERSION");
            for (at, Page { name, roff }) in pages.iter().enumerate() {
                let title = roff.lines().find(|line| line.starts_with(".TH ")).unwrap();
                let foot = format!("1 \"\" \"steady-relay {version}\" \"User Commands\"");
                assert_eq!(title, format!(".TH {} {foot}", name.trim_end_matches(".1")));
                assert!(!roff.contains(".SH EXTRA"), "{name}");
                let examples = roff.matches("\n.SH EXAMPLES\n").count();
                // What a verb has below it has none of its own.
                let is_below = name.matches('-').count() > 2;
                assert!(examples == 1 || is_below && examples == 0, "{name}: {examples}");
                let last = roff.lines().last().unwrap();
                assert_eq!(
                    last,
                    if at == 0 { format!("v{version}") } else { "steady\\-relay(1)".to_owned() }
                );
            }
            let run = pages.iter().find(|page| page.name == "steady-relay-run.1").unwrap();
            let (notes, examples) = run.roff.split_once("\n.SH EXAMPLES\n").unwrap();
            assert!(
                notes.contains("\n.SH NOTES\n") && examples.contains("run \\-\\- codex exec"),
                "{}",
                run.roff
            );
        }
    }
}
