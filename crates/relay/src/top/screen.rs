//! The terminal: taken over, drawn on, and given back as it was, whatever ends the program.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::style::force_color_output;
use ratatui::layout::{Position, Rect};
use tokio::sync::mpsc;

use super::model::Key;

/// A terminal that was taken over. It is given back when this is dropped, and before a panic is told.
pub struct Screen {
    terminal: DefaultTerminal,
}

/// What somebody did in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Pressed a key.
    Key(Key),
    /// Changed its size, or something else that means nothing here.
    Other,
}

impl Screen {
    /// Takes it over.
    ///
    /// # Errors
    /// Where it is none, or does not do what it is told.
    pub fn enter(is_coloured: bool) -> io::Result<Self> {
        force_color_output(is_coloured);
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        Ok(Self { terminal })
    }

    /// Takes it over again after somebody else had it.
    ///
    /// # Errors
    /// As [`Screen::enter`].
    pub fn again(&mut self) -> io::Result<()> {
        use ratatui::crossterm::execute;
        use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
        // What was set before may not be so any more. The other screen is not left here: where it is not shown, that would
        // bring the cursor back to where it was when this was taken over first.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.clear()
    }

    /// Gives it back.
    ///
    /// # Errors
    /// Where it does not take that.
    pub fn leave(&mut self) -> io::Result<()> {
        self.terminal.show_cursor()?;
        ratatui::try_restore()
    }

    /// Draws all of it anew.
    ///
    /// # Errors
    /// Where it does not take that.
    pub fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` asks the terminal where its cursor is, and whoever reads keys would take the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// How many columns and rows it has.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// Shows what this draws.
    ///
    /// # Errors
    /// Where it cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _gone = self.leave();
    }
}

/// Begins to read what somebody does, on a thread of its own that ends with the process: reading blocks.
///
/// # Errors
/// Where the system gives no thread.
pub fn inputs() -> io::Result<mpsc::Receiver<Input>> {
    let (told, inputs) = mpsc::channel(64);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            let input = match event {
                Event::Key(key) => match understood(key) {
                    Some(key) => Input::Key(key),
                    None => continue,
                },
                Event::Resize(..) => Input::Other,
                Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => continue,
            };
            if told.blocking_send(input).is_err() {
                return;
            }
        }
    })?;
    Ok(inputs)
}

/// How long what is pressed at once is gathered before it is drawn.
pub(super) const AT_ONCE: Duration = Duration::from_millis(5);

#[expect(clippy::wildcard_enum_match_arm, reason = "most keys of a keyboard mean nothing here")]
fn understood(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    let key = match key.code {
        KeyCode::Char('c') if is_control => Key::Interrupt,
        KeyCode::Char('z') if is_control && cfg!(unix) => Key::Suspend,
        KeyCode::Char('u') if is_control => Key::Clear,
        KeyCode::Char('l') if is_control => Key::Redraw,
        KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(sign) => Key::Char(sign),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    };
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_understood_and_those_let_go_are_none() {
        let plain = |code| understood(KeyEvent::new(code, KeyModifiers::NONE));
        let control = |sign| understood(KeyEvent::new(KeyCode::Char(sign), KeyModifiers::CONTROL));
        assert_eq!(plain(KeyCode::Char('容')), Some(Key::Char('容')));
        assert_eq!(plain(KeyCode::Enter), Some(Key::Enter));
        assert_eq!(plain(KeyCode::F(1)), None);
        assert_eq!(control('c'), Some(Key::Interrupt));
        assert_eq!(control('z'), cfg!(unix).then_some(Key::Suspend));
        assert_eq!(control('q'), None, "a letter with a modifier is not that letter");
        let mut key = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(understood(key), None);
    }
}
