//! Standard error as a terminal: whether its lines can be rewritten, and how large it is.

use std::io::{self, IsTerminal as _};

/// How many columns and rows a terminal has, where the system tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: Option<usize>,
    pub(crate) rows: Option<usize>,
}

/// Whether standard error is a terminal that does what it is told. One that calls itself dumb does not.
pub(crate) fn can_rewrite() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb") && understands()
}

/// Consoles of Windows have to be told that what follows is more than text.
#[cfg(windows)]
fn understands() -> bool {
    anstyle_query::windows::enable_ansi_colors().unwrap_or(false)
}

#[cfg(not(windows))]
const fn understands() -> bool {
    true
}

/// The terminal that this program was started from, to write to: where there is one, it is no dumb one, and we are in
/// front of it.
pub(crate) fn controlling() -> Option<std::fs::File> {
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    #[cfg(unix)]
    {
        let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty").ok()?;
        let front = rustix::termios::tcgetpgrp(&terminal).ok()?;
        (front == rustix::process::getpgrp()).then_some(terminal)
    }
    #[cfg(windows)]
    {
        let console = std::fs::OpenOptions::new().write(true).open("CONOUT$").ok()?;
        understands().then_some(console)
    }
    #[cfg(not(any(unix, windows)))]
    None
}

/// How large it is now.
pub(crate) fn size() -> Size {
    #[cfg(unix)]
    {
        let known = |number: u16| Some(usize::from(number)).filter(|number| *number > 0);
        rustix::termios::tcgetwinsize(io::stderr())
            .map_or(Size::default(), |size| Size { columns: known(size.ws_col), rows: known(size.ws_row) })
    }
    #[cfg(not(unix))]
    Size::default()
}

/// As much of a line as fits without its last column: what wraps cannot be rewritten.
pub(crate) fn fitting(line: &str, columns: Option<usize>) -> &str {
    let room = columns.map_or(usize::MAX, |columns| columns - 1);
    line.char_indices().nth(room).map_or(line, |(end, _)| line.split_at(end).0.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_a_narrow_terminal() {
        let line = "batch of 100      without 3/100            with 4/100";
        assert_eq!(fitting(line, Some(80)), line);
        assert_eq!(fitting(line, None), line);
        assert_eq!(fitting(line, Some(30)), "batch of 100      without 3/1");
        assert_eq!(fitting(line, Some(19)), "batch of 100");
        assert_eq!(fitting("äöü", Some(3)), "äö");
        assert_eq!(fitting(line, Some(1)), "");
    }
}
