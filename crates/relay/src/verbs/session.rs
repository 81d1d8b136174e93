//! `steady-relay session`: holds a session at a relay for a program that asks by lines of JSON, and lives as long as its
//! input. It is `run` without a client: whoever started it may be killed, and then nothing of it is left; a relay that ran
//! before goes on.
//!
//! A session has so many upstreams and no more, so a program that asks many services gets several, one after the other.

use std::io::{self, BufRead, Read as _, Write as _};

use relay_core::config::Config;
use relay_core::plain;
use serde::Serialize;
use serde_json::json;
use steady_relay::cli::{self, Flags};
use steady_relay::run::join::{Joined, NotJoined, Running};
use steady_relay::run::lines::{Answer, Asked, Placed, Ready, Said, Stopping, VERSION, read, unread};
use steady_relay::run::{RelayAddr, SessionKey};
use steady_relay::sessions::said::{NamedUrl, Page, Sums, VERSION as SESSIONS, Wanted};
use steady_relay::sessions::{Holder, MOST_UPSTREAMS, forwarding};
use steady_relay::settings::Loaded;
use steady_relay::standard_input::standard_input;
use steady_relay::target::Upstream;
use tokio::sync::mpsc;

use super::own::{Own, OwnRelay, tell_why, wants_its_own};
use super::signals::Signals;
use super::{Failure, block_on, failed, files, load, session_key};

/// The longest line that is read.
const LONGEST: u64 = 64 * 1024;
/// The most sessions that one program holds, each with as many services as one can have. A relay has room for more, which
/// is for other programs.
const MOST_SESSIONS: usize = 16;

/// Holds the session until standard input ends.
pub(crate) fn session(flags: &Flags, options: &cli::Session) -> Result<u8, Failure> {
    block_on(async {
        hold(flags, options).await.or_else(|Failure(code, words)| {
            refused(&words);
            Ok(code)
        })
    })
}

/// There will be no session. The program that started this reads lines, and says it to whom it may concern.
pub(crate) fn refused(words: &str) {
    say(&json!({ "v": VERSION, "error": plain::text(words.trim()) }));
}

async fn hold(flags: &Flags, options: &cli::Session) -> Result<u8, Failure> {
    let Loaded { config, notices, shown, .. } = load(flags, &files(flags))?;
    let mut signals = Signals::new()?;
    let mut held = Held { client: options.client.clone(), flags, config, relay: None, sessions: Vec::new() };
    let mut notices = notices;
    match wants_its_own(flags, options.own, &shown) {
        Some(why) => {
            tell_why(&held.config, why);
            notices.extend(held.has_its_own().await?);
        }
        None => {
            if let Err(why) = held.joins().await {
                tell_why(&held.config, &why);
                notices.extend(held.has_its_own().await?);
            }
        }
    }
    let place = held.place()?;
    let ready = Ready { v: VERSION, version: env!("CARGO_PKG_VERSION"), place, notices };
    let (lines, mut asked) = mpsc::channel(16);
    // A thread of its own: it may wait for ever, and nobody waits for it.
    std::thread::spawn(move || read_lines(&lines));
    let mut is_stopped = false;
    if say(&ready) {
        loop {
            let line = tokio::select! {
                line = asked.recv() => line,
                () = signals.terminated() => {
                    is_stopped = true;
                    None
                }
            };
            let Some(line) = line else { break };
            let answer = match line.map(|line| read(&line)) {
                Ok(Ok(asked)) => held.answer(asked).await,
                Ok(Err(unread)) => *unread,
                Err(why) => unread(why),
            };
            if !say(&answer) {
                break;
            }
        }
    }
    // Whoever asks from here on looks for another; calls that are answered just now come to their end.
    if is_stopped && say(&Stopping { stopping: true }) {
        held.drains(async { while asked.recv().await.is_some() {} }).await;
    } else {
        held.end().await;
    }
    Ok(0)
}

/// Hands on each line of standard input, until that ends. What cannot be a question is named in its place.
fn read_lines(lines: &mpsc::Sender<Result<String, String>>) {
    let mut input = standard_input();
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(length) if length > 0 => {}
            Ok(_) | Err(_) => return,
        }
        let is_whole = line.ends_with(b"\n");
        let read = if is_whole {
            String::from_utf8(line).map_err(|_other| "the line is no text in UTF-8".to_owned())
        } else if passes_over(&mut input) {
            Err(format!("the line is longer than {} KiB", LONGEST / 1024))
        } else {
            // Nobody is there to read the answer to half a line.
            return;
        };
        if lines.blocking_send(read).is_err() {
            return;
        }
    }
}

/// Reads the rest of a line away; false where the input ends before it does.
fn passes_over(input: &mut impl BufRead) -> bool {
    loop {
        let Ok(there) = input.fill_buf() else { return false };
        let (length, end) = (there.len(), there.iter().position(|byte| *byte == b'\n'));
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() || length == 0 {
            return end.is_some();
        }
    }
}

/// Says a line; false where nobody reads any more.
fn say(what: &impl Serialize) -> bool {
    // None of the types that are said can fail to become text.
    let mut line = serde_json::to_string(what).unwrap_or_default();
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// What is held.
struct Held<'a> {
    client: String,
    flags: &'a Flags,
    config: Config,
    /// Since the beginning.
    relay: Option<At>,
    sessions: Vec<Session>,
}

/// The relay.
enum At {
    Own(Box<OwnRelay>, u16),
    Running(Running),
}

impl At {
    const fn port(&self) -> u16 {
        match self {
            Self::Own(_, port) => *port,
            Self::Running(running) => running.port(),
        }
    }
}

/// One session there.
struct Session {
    key: SessionKey,
    wanted: Wanted,
    /// The URLs of its upstreams, in their order.
    urls: Vec<String>,
    /// It ends with this.
    by: By,
}

enum By {
    Own(Holder),
    Joined(Joined),
}

impl Held<'_> {
    /// The relay of this user that runs.
    async fn finds(&self) -> Result<Running, NotJoined> {
        let Config { port, state_dir, token, .. } = &self.config;
        Running::find(*port, state_dir.as_deref(), token.as_ref()).await
    }

    /// Joins the relay that runs; why not, where that cannot be.
    async fn joins(&mut self) -> Result<(), String> {
        let running = self.finds().await.map_err(|why| why.to_string())?;
        let key = session_key().map_err(|Failure(_, words)| words)?;
        self.begin(At::Running(running), key).await
    }

    /// Starts one of its own; what the user should know of that.
    async fn has_its_own(&mut self) -> Result<Vec<String>, Failure> {
        let key = session_key()?;
        let bound = Own::bind(self.flags, self.config.clone(), key).await?;
        let port = bound.addr(key).port;
        let (own, notices) = bound.start()?;
        self.begin(At::Own(Box::new(own), port), key).await.map_err(|why| failed(1, &why))?;
        Ok(notices)
    }

    /// Opens the first session there.
    async fn begin(&mut self, at: At, key: SessionKey) -> Result<(), String> {
        let first = self.open(&at, key, Vec::new()).await?;
        self.relay = Some(at);
        self.sessions = vec![first];
        Ok(())
    }

    async fn open(&self, at: &At, key: SessionKey, urls: Vec<String>) -> Result<Session, String> {
        let wanted = Wanted {
            v: SESSIONS,
            client: self.client.clone(),
            key: Some(key),
            claude_limit_ms: None,
            upstreams: named(&urls),
        };
        let by = match at {
            At::Own(own, _) => {
                By::Own(own.relay.sessions().open(&wanted).map_err(|error| error.to_string())?)
            }
            At::Running(running) => {
                By::Joined(running.clone().open(wanted.clone()).await.map_err(|why| why.to_string())?)
            }
        };
        Ok(Session { key, wanted, urls, by })
    }

    fn place(&self) -> Result<Placed, Failure> {
        let none = || failed(1, &"there is no session");
        let (relay, first) = self.relay.as_ref().zip(self.sessions.first()).ok_or_else(none)?;
        let addr = RelayAddr { port: relay.port(), key: first.key, has_upstream: false };
        Ok(Placed { url: addr.base(), joined: matches!(relay, At::Running(_)) })
    }

    async fn answer(&mut self, asked: Asked) -> Answer {
        let error = |error| Said::Error { error };
        let (id, said) = match asked {
            Asked::Base { id, url } => (id, self.base(&url).await.unwrap_or_else(error)),
            Asked::Lost { id } => (id, self.lost().await.map_or_else(error, Said::Placed)),
            Asked::Stats { id } => (id, self.stats().await),
        };
        Answer { id, said }
    }

    async fn base(&mut self, url: &str) -> Result<Said, String> {
        let upstream = forwarding(url).map_err(|why| format!("the URL {why}"))?;
        let Some(relay) = &self.relay else { return Err("there is no relay".to_owned()) };
        let port = relay.port();
        // The one that clients are pointed at for good is a relay too, and has its own idea of where a request goes.
        if is_at(&upstream, port) || (is_at(&upstream, self.config.port) && self.finds().await.is_ok()) {
            return Ok(Said::Itself { itself: true });
        }
        let url = upstream.url.to_string();
        let known = self.sessions.iter().find_map(|session| Some((session, session.place_of(&url)?)));
        if let Some((session, place)) = known {
            return Ok(Said::Base { base: session.base(port, place) });
        }
        let at = self.sessions.len().saturating_sub(1);
        let has_room = self.sessions.last().is_some_and(|last| last.urls.len() < MOST_UPSTREAMS);
        if has_room && let (Some(session), Some(relay)) = (self.sessions.get_mut(at), &self.relay) {
            session.takes(relay, url).await?;
            let place = session.urls.len() - 1;
            return Ok(Said::Base { base: session.base(port, place) });
        }
        if self.sessions.len() == MOST_SESSIONS {
            let most = MOST_SESSIONS * MOST_UPSTREAMS;
            return Err(format!(
                "this program has asked for {most} services already, and there is room for no more"
            ));
        }
        let key = session_key().map_err(|Failure(_, words)| words)?;
        let next = match &self.relay {
            Some(relay) => self.open(relay, key, vec![url]).await?,
            None => return Err("there is no relay".to_owned()),
        };
        let base = next.base(port, 0);
        self.sessions.push(next);
        Ok(Said::Base { base })
    }

    /// The relay does not answer any more: one that others use may have been stopped for good. Who restarts is found again
    /// under its address, and the session with it; else there is one of our own from now on.
    async fn lost(&mut self) -> Result<Placed, String> {
        if matches!(self.relay, Some(At::Running(_))) && self.finds().await.is_err() {
            self.has_its_own().await.map_err(|Failure(_, words)| words)?;
        }
        self.place().map_err(|Failure(_, words)| words)
    }

    async fn stats(&self) -> Said {
        let (mut open, mut held, mut sums) = (0, Vec::new(), Sums::default());
        for session in &self.sessions {
            let page = match (&session.by, &self.relay) {
                (By::Own(holder), Some(At::Own(own, _))) => own.relay.session_page(holder),
                (By::Own(_), _) => Page::default(),
                (By::Joined(joined), _) => joined.page().await.unwrap_or_default(),
            };
            open += page.open;
            held.extend(page.held);
            sums = sums.and(page.sums);
        }
        Said::Stats { open, held, sums }
    }

    /// Lets go. Nobody is left to be answered.
    async fn end(mut self) {
        self.sessions.clear();
        self.drains(std::future::ready(())).await;
    }

    /// Lets go once the calls of its own relay have ended, or `hurry` is ready.
    async fn drains(self, hurry: impl Future<Output = ()>) {
        let Self { relay, sessions, .. } = self;
        if let Some(At::Own(own, _)) = relay {
            let OwnRelay { relay, log, recorder } = *own;
            relay.drain(hurry).await;
            recorder.close();
            log.close();
        }
        drop(sessions);
    }
}

impl Session {
    fn place_of(&self, url: &str) -> Option<usize> {
        self.urls.iter().position(|known| known == url)
    }

    fn base(&self, port: u16, place: usize) -> String {
        let addr = RelayAddr { port, key: self.key, has_upstream: false };
        format!("{}/to/{}", addr.base(), name(place))
    }

    /// Gives it one more upstream. Its calls go on meanwhile.
    async fn takes(&mut self, relay: &At, url: String) -> Result<(), String> {
        let mut urls = self.urls.clone();
        urls.push(url);
        let wanted = Wanted { upstreams: named(&urls), ..self.wanted.clone() };
        match (&mut self.by, relay) {
            (By::Own(holder), At::Own(own, _)) => {
                // It is taken over before it is let go.
                *holder = own.relay.sessions().open(&wanted).map_err(|error| error.to_string())?;
            }
            (By::Joined(joined), At::Running(_)) => {
                joined.change(wanted.clone()).await.map_err(|why| why.to_string())?;
            }
            (By::Own(_), At::Running(_)) | (By::Joined(_), At::Own(..)) => {
                return Err("the session is at another relay".to_owned());
            }
        }
        (self.wanted, self.urls) = (wanted, urls);
        Ok(())
    }
}

/// What paths call an upstream.
fn name(place: usize) -> String {
    format!("u{place}")
}

fn named(urls: &[String]) -> Vec<NamedUrl> {
    urls.iter().enumerate().map(|(place, url)| NamedUrl { name: name(place), url: url.clone() }).collect()
}

fn is_at(upstream: &Upstream, port: u16) -> bool {
    RelayAddr { port, key: SessionKey(0), has_upstream: false }.is(upstream)
}
