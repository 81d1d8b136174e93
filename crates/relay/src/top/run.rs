//! Brings the relay, the terminal and the model together, until somebody leaves.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::draw::draw;
use super::feed::{Feed, News};
use super::model::{Asked, Model};
use super::rows::Now;
use super::screen::{self, Input, Screen};
use super::signals::{Signals, Told};
use crate::clock::{Clock, wall_ms};
use crate::running::Who;
use crate::words;

/// How often it is drawn where nothing happens: countdowns go on.
const EVERY: Duration = Duration::from_millis(500);

/// Where the relay is, and how it is shown.
pub struct Options {
    /// Where it listens.
    pub at: SocketAddr,
    /// The token that it asks for.
    pub token: Option<String>,
    /// Whether colours are used.
    pub is_coloured: bool,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Somebody left.
    Left,
    /// Somebody interrupted it, or the system did.
    Interrupted,
}

/// Why it did not begin, or could not go on.
#[derive(Debug)]
pub enum Stopped {
    /// This is no terminal.
    NoTerminal,
    /// This is one that cannot be drawn on.
    Dumb,
    /// There is no relay, but this.
    NotThere(Who),
    /// The terminal could not be used.
    Terminal(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Whether there is a terminal that can be drawn on.
///
/// # Errors
/// Where there is none.
pub fn terminal() -> Result<(), Stopped> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Stopped::NoTerminal);
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(Stopped::Dumb);
    }
    Ok(())
}

/// Shows the relay until somebody leaves.
///
/// # Errors
/// Where there is no relay at first, or the terminal cannot be used.
pub async fn run(options: Options) -> Result<End, Stopped> {
    let Options { at, token, is_coloured, clock } = options;
    let mut feed = Feed::default();
    let first = feed.next(at, token.as_deref()).await;
    if let News::Lost { who, .. } = first {
        return Err(Stopped::NotThere(who));
    }
    let signals = Signals::new()?;
    let (go, paused) = watch::channel(false);
    let (told, news) = mpsc::channel(1);
    tokio::spawn(follow(feed, (at, token), told, paused));
    let now = || Now { at: clock.now(), wall: wall_ms(&*clock) };
    let mut model = Model::new(words::lang(), at.to_string(), now());
    model.update(first, now());
    let screen = Screen::enter(is_coloured)?;
    let shown = Shown { screen, model, signals, news, go, is_coloured };
    shown.until_left(&now).await
}

/// Asks the relay again and again, but not while nothing is to move.
async fn follow(
    mut feed: Feed,
    (at, token): (SocketAddr, Option<String>),
    told: mpsc::Sender<News>,
    mut paused: watch::Receiver<bool>,
) {
    let mut next = super::feed::EVERY;
    loop {
        tokio::time::sleep(next).await;
        if paused.wait_for(|paused| !paused).await.is_err() {
            return;
        }
        let news = feed.next(at, token.as_deref()).await;
        next = news.next();
        if told.send(news).await.is_err() {
            return;
        }
    }
}

struct Shown {
    screen: Screen,
    model: Model,
    signals: Signals,
    news: mpsc::Receiver<News>,
    go: watch::Sender<bool>,
    is_coloured: bool,
}

impl Shown {
    async fn until_left(mut self, now: &impl Fn() -> Now) -> Result<End, Stopped> {
        let mut inputs = screen::inputs()?;
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (columns, rows) = self.screen.size()?;
            self.model.sized(columns, rows, now());
            let (model, is_coloured) = (&self.model, self.is_coloured);
            self.screen.draw(|buffer| draw(model, now(), is_coloured, buffer))?;
            let is_paused = self.model.is_paused();
            tokio::select! {
                input = inputs.recv() => {
                    let mut next = input;
                    loop {
                        // Nobody can press a key any more.
                        let Some(input) = next else { return Ok(End::Interrupted) };
                        if let Some(end) = self.input(input, now).await? {
                            return Ok(end);
                        }
                        // What is pressed at once is drawn once.
                        match tokio::time::timeout(screen::AT_ONCE, inputs.recv()).await {
                            Ok(more) => next = more,
                            Err(_elapsed) => break,
                        }
                    }
                }
                news = self.news.recv(), if !is_paused => match news {
                    Some(news) => self.model.update(news, now()),
                    // Nobody asks any more: that was a panic, and it was told.
                    None => return Ok(End::Interrupted),
                },
                told = self.signals.next() => match told {
                    Told::End => return Ok(End::Interrupted),
                    Told::GoesOn => self.screen.again()?,
                },
                _ = tick.tick() => {}
            }
        }
    }

    /// Does what a key asks for; the end, where that is it.
    async fn input(&mut self, input: Input, now: &impl Fn() -> Now) -> io::Result<Option<End>> {
        let Input::Key(key) = input else { return Ok(None) };
        match self.model.key(key, now()) {
            Asked::Nothing => {}
            Asked::Leave => return Ok(Some(End::Left)),
            Asked::Interrupted => return Ok(Some(End::Interrupted)),
            Asked::Redraw => self.screen.clear()?,
            Asked::Pause(paused) => {
                self.go.send_replace(paused);
            }
            Asked::Suspend => {
                self.screen.leave()?;
                self.signals.suspend().await?;
                self.screen.again()?;
            }
        }
        Ok(None)
    }
}
