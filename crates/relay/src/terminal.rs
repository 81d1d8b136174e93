//! Standard error as a terminal: whether its lines can be rewritten, and how large it is.

use std::io::{self, IsTerminal as _};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
        in_front()
    }
    #[cfg(windows)]
    {
        let console = std::fs::OpenOptions::new().write(true).open("CONOUT$").ok()?;
        understands().then_some(console)
    }
    #[cfg(not(any(unix, windows)))]
    None
}

/// The terminal that we are in front of, whatever it is: what it sends to all of its foreground reaches us, and it does
/// what we tell it.
#[cfg(unix)]
pub(crate) fn in_front() -> Option<std::fs::File> {
    let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty").ok()?;
    let front = rustix::termios::tcgetpgrp(&terminal).ok()?;
    (front == rustix::process::getpgrp()).then_some(terminal)
}

/// How the terminal takes keys and shows text, kept for when a program that changed it cannot change it back.
#[derive(Debug)]
pub(crate) struct Modes {
    #[cfg(unix)]
    kept: Option<rustix::termios::Termios>,
}

impl Modes {
    /// As they are now; nothing where we are not in front of a terminal.
    pub(crate) fn keep() -> Self {
        Self {
            #[cfg(unix)]
            kept: in_front().and_then(|terminal| rustix::termios::tcgetattr(terminal).ok()),
        }
    }

    /// Makes them what they were.
    pub(crate) fn restore(self) {
        #[cfg(unix)]
        if let (Some(kept), Some(terminal)) = (self.kept, in_front()) {
            // A terminal that is gone has no modes.
            let _set = rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &kept);
        }
    }
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

/// How wide a text is to be that is printed as a whole: as wide as a terminal is, or as the user says. `None`: nobody
/// tells. In this order, as it is for the help in English.
pub(crate) fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    seen().or(said).filter(|columns| *columns > 0)
}

/// As much of a line as fits without its last column: what wraps cannot be rewritten. No sign is halved that takes two
/// columns.
pub(crate) fn fitting(line: &str, columns: Option<usize>) -> &str {
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(1));
    let mut taken = 0;
    let too_far = |(_, sign): &(usize, char)| {
        taken += width_of(*sign);
        taken > room
    };
    line.char_indices().find(too_far).map_or(line, |(end, _)| line.split_at(end).0.trim_end())
}

pub(crate) fn width_of(sign: char) -> usize {
    sign.width().unwrap_or(0)
}

/// How many columns a text takes, without what colours it.
pub(crate) fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// A text with spaces behind it, so that it takes so many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The same with the spaces before it.
pub(crate) fn padded_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A text whose lines take no more columns than this: they are broken at spaces, and between signs of two columns. What
/// follows a break stands below the beginning of the text, behind a gap of two spaces or more if there is one. A word
/// that is too long stays whole.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let hang = hang(line, columns);
        let line = if line.trim().is_empty() { "" } else { line };
        let (mut rest, mut room) = (line, columns);
        while let Some((piece, after)) = cut(rest, room) {
            out += &format!("{}\n{}", piece.trim_end(), " ".repeat(hang));
            (rest, room) = (after, columns.saturating_sub(hang).max(2));
        }
        out += rest;
        out += end;
    }
    out
}

/// Where the text of a line begins.
fn hang(line: &str, columns: usize) -> usize {
    let plain = anstream::adapter::strip_str(line).to_string();
    let content = plain.trim_start();
    let leading = plain.len() - content.len();
    let behind_gap = content.split_once("  ").map(|(name, told)| {
        let gap = 2 + told.len() - told.trim_start().len();
        leading + width(name) + gap
    });
    behind_gap.filter(|hang| *hang <= columns / 2).unwrap_or(leading)
}

/// Whether a line may end between two signs of which one takes two columns.
fn breaks_between(before: char, sign: char) -> bool {
    // Signs that begin no line, and those that end none.
    const BEGIN_NONE: &str = "，。、；：？！）」』》】”]),.;:?!…";
    const END_NONE: &str = "（「『《【“[(";
    let is_wide = width_of(sign) > 1 || width_of(before) > 1;
    let is_blank = sign.is_whitespace() || before.is_whitespace();
    is_wide && !is_blank && !BEGIN_NONE.contains(sign) && !END_NONE.contains(before)
}

/// A text with `mark` wherever a line may be broken between signs of two columns.
pub(crate) fn breakable(text: &str, mark: &str) -> String {
    let mut out = String::new();
    let mut before = '\n';
    for sign in text.chars() {
        if breaks_between(before, sign) {
            out += mark;
        }
        out.push(sign);
        before = sign;
    }
    out
}

/// The first line of what has to be broken, and what comes after; `None` where it fits or cannot be broken.
fn cut(text: &str, room: usize) -> Option<(&str, &str)> {
    let (mut taken, mut in_escape, mut last) = (0, false, None);
    let mut before = ' ';
    let begins = text.len() - text.trim_start().len();
    for (at, sign) in text.char_indices() {
        if in_escape || sign == '\x1b' {
            in_escape = !(in_escape && sign.is_ascii_alphabetic());
            continue;
        }
        let can_break = at > begins && sign != ' ' && (before == ' ' || breaks_between(before, sign));
        if can_break {
            last = Some(at);
        }
        taken += width_of(sign);
        before = sign;
        if taken > room
            && sign != ' '
            && let Some(at) = last
        {
            return Some(text.split_at(at));
        }
    }
    None
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
        assert_eq!(fitting("容量已满，6 等待", Some(8)), "容量已");
        assert_eq!(fitting("容量已满，6 等待", Some(9)), "容量已满");
        assert_eq!(fitting(line, Some(1)), "");
    }

    #[test]
    fn texts_are_padded_by_what_they_take() {
        assert_eq!(padded("容量", 6), "容量  ");
        assert_eq!(padded_left("a容", 6), "   a容");
        assert_eq!(padded("too long", 3), "too long");
        assert_eq!((width("\x1b[1m容量\x1b[0m"), width("gpt…")), (4, 4));
    }

    #[test]
    fn lines_are_broken_between_wide_signs_and_at_spaces() {
        assert_eq!(wrapped("一二三四五", 6), "一二三\n四五");
        assert_eq!(wrapped("一二三，四五", 6), "一二\n三，四\n五", "no comma begins a line");
        assert_eq!(wrapped("一二（三四", 6), "一二\n（三四", "no bracket ends one");
        assert_eq!(wrapped("see `steady-relay` 的说明\nx\n", 12), "see\n`steady-relay`\n的说明\nx\n");
        assert_eq!(wrapped("  -h   显示帮助信息", 14), "  -h   显示帮\n       助信息", "below the text");
        assert_eq!(wrapped("  --a-long-flag  显示", 16), "  --a-long-flag\n  显示", "too far to the right");
        assert_eq!(wrapped("\x1b[1m一二\x1b[0m三", 4), "\x1b[1m一二\x1b[0m\n三");
        assert_eq!(wrapped("a-word-that-fits-nowhere", 6), "a-word-that-fits-nowhere");
        assert_eq!(wrapped("", 6), "");
        assert_eq!(breakable("一二，a b三", "|"), "一|二，|a b|三");
    }
}
