//! A terminal on which some lines stay, and the last ones are rewritten below them.

use std::io::{self, Write};

use crate::terminal::{Size, fitting};

/// What is assumed where the system does not tell.
const COLUMNS: usize = 80;

/// The terminal. The cursor stands at the end of the last line that is rewritten.
pub(in crate::observe) struct Screen<W> {
    out: W,
    size: fn() -> Size,
    lines: Vec<String>,
    /// The same as they were drawn: what fits.
    drawn: Vec<String>,
}

impl<W: Write> Screen<W> {
    /// A terminal of this size, on which nothing is written yet.
    pub(in crate::observe) fn on(out: W, size: fn() -> Size) -> Self {
        Self { out, size, lines: Vec::new(), drawn: Vec::new() }
    }

    /// Writes a line that stays.
    pub(in crate::observe) fn line(&mut self, line: &str) -> io::Result<()> {
        let above = [&self.erased(), line, "\n"].concat();
        self.draw(above)
    }

    /// Puts these in place of the lines that are rewritten.
    pub(in crate::observe) fn show(&mut self, lines: Vec<String>) -> io::Result<()> {
        if lines == self.lines {
            return Ok(());
        }
        self.lines = lines;
        let above = self.erased();
        self.draw(above)
    }

    /// What takes the rewritten lines away.
    fn erased(&self) -> String {
        match self.drawn.len() {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }

    fn draw(&mut self, above: String) -> io::Result<()> {
        if !self.lines.is_empty() || !self.drawn.is_empty() {
            let Size { columns, rows } = (self.size)();
            // No way leads back to a row that left the screen.
            let room = rows.map_or(usize::MAX, |rows| rows - 1);
            let fits = |line: &String| fitting(line, Some(columns.unwrap_or(COLUMNS))).to_owned();
            self.drawn = self.lines.iter().take(room).map(fits).collect();
        }
        // In one piece: others write there too, and nothing flickers.
        self.out.write_all([above, self.drawn.join("\n")].concat().as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A terminal that understands what a screen writes, and nothing else.
    #[derive(Debug, Clone, Default)]
    pub(in super::super) struct Paper(Arc<Mutex<String>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        /// All that was written.
        pub(in super::super) fn written(&self) -> String {
            self.0.lock().unwrap().clone()
        }

        /// The rows down to the cursor.
        pub(in super::super) fn rows(&self) -> Vec<String> {
            let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
            let written = self.written();
            let mut rest = written.chars();
            while let Some(char) = rest.next() {
                match char {
                    '\r' => column = 0,
                    '\n' => {
                        (row, column) = (row + 1, 0);
                        rows.resize(rows.len().max(row + 1), Vec::new());
                    }
                    '\x1b' => {
                        assert_eq!(rest.next(), Some('['));
                        let command = rest_of_command(&mut rest);
                        match command.split_at(command.len() - 1) {
                            ("", "J") => {
                                rows.truncate(row + 1);
                                rows[row].truncate(column);
                            }
                            (count, "A") => row -= count.parse::<usize>().unwrap(),
                            other => panic!("{other:?}"),
                        }
                    }
                    char => {
                        assert!(!char.is_control() && column == rows[row].len());
                        rows[row].push(char);
                        column += 1;
                    }
                }
            }
            assert_eq!((row, column), (rows.len() - 1, rows[row].len()), "the cursor is not at the end");
            rows.into_iter().map(|row| row.into_iter().collect()).collect()
        }
    }

    /// The rest of a command, which a letter ends.
    fn rest_of_command(rest: &mut impl Iterator<Item = char>) -> String {
        let mut command = String::new();
        while !command.ends_with(|char: char| char.is_ascii_alphabetic()) {
            command.push(rest.next().unwrap());
        }
        command
    }

    fn texts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn screen(size: fn() -> Size) -> (Screen<Paper>, Paper) {
        let paper = Paper::default();
        (Screen::on(paper.clone(), size), paper)
    }

    #[test]
    fn lines_that_stay_push_the_others_down() {
        let (mut screen, paper) = screen(Size::default);
        screen.line("one").unwrap();
        assert_eq!(paper.written(), "one\n", "a log without such lines is text alone");
        screen.show(texts(&["a", "b", "c"])).unwrap();
        assert_eq!(paper.rows(), ["one", "a", "b", "c"]);
        screen.line("two\nand more").unwrap();
        assert_eq!(paper.rows(), ["one", "two", "and more", "a", "b", "c"]);
        screen.show(texts(&["longer than before"])).unwrap();
        screen.line("three").unwrap();
        assert_eq!(paper.rows(), ["one", "two", "and more", "three", "longer than before"]);
        screen.show(texts(&["short", "d"])).unwrap();
        assert_eq!(paper.rows(), ["one", "two", "and more", "three", "short", "d"]);
        let before = paper.written();
        screen.show(texts(&["short", "d"])).unwrap();
        assert_eq!(paper.written(), before, "what stands there is not written again");
        screen.show(Vec::new()).unwrap();
        screen.line("four").unwrap();
        assert_eq!(paper.rows(), ["one", "two", "and more", "three", "four", ""]);
        assert!(paper.written().ends_with("four\n"));
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let (mut narrow, paper) = screen(|| Size { columns: Some(10), rows: Some(3) });
        narrow.line("a line that stays may wrap").unwrap();
        narrow.show(texts(&["0123456789", "012345678", "c"])).unwrap();
        assert_eq!(paper.rows(), ["a line that stays may wrap", "012345678", "012345678"]);
        narrow.show(texts(&["d"])).unwrap();
        assert_eq!(paper.rows(), ["a line that stays may wrap", "d"]);
        let (mut unknown, paper) = screen(Size::default);
        unknown.show(vec!["x".repeat(100)]).unwrap();
        assert_eq!(paper.rows(), ["x".repeat(79)]);
    }
}
