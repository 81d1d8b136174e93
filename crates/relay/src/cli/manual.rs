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
    let mut roff = Vec::new();
    man.render(&mut roff)?;
    let roff = String::from_utf8(roff).map_err(io::Error::other)?;
    let roff = match lang {
        Lang::English => roff,
        Lang::Chinese => in_columns(&roff),
    };
    all.push(Page { name: man.get_filename(), roff });
    verb.get_subcommands().filter(|verb| !verb.is_hide_set()).try_for_each(|verb| add(verb, lang, all))
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
