//! Sessions: the calls of one client that somebody started, told from all others by a key in their path. A session has
//! upstreams and limits of its own, and sums of its own; the gate is everybody's. Not who opens one (that is
//! [`crate::run`]), and not its HTTP (that is `endpoint`).
//!
//! A session lasts as long as its [`Holder`]. Over HTTP that is the answer in which it was told: whoever is killed lets
//! go of the connection, and nothing of the session is left.

mod endpoint;
pub mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::client::{Client, Kind};
use relay_core::config::Config;
use relay_core::failure::label;
use relay_core::gate::View;
use relay_core::units::Invalid;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;
use tokio::sync::{Notify, watch};

pub(crate) use endpoint::{answer, is_ours};
pub use said::SessionKey;

use self::said::{DIGITS, Page, VERSION, Wanted};
use crate::observe::LaneName;
use crate::observe::status::Status;
use crate::target::{Upstream, V1};
use crate::words::{door, lang, settings};

/// The most that are open at once: nobody starts so many clients.
const MOST: usize = 256;
/// The most upstreams that one has, and the longest name of one.
pub const MOST_UPSTREAMS: usize = 16;
const LONGEST_NAME: usize = 64;

/// How long a relay that has just begun waits for the session of a call: programs that had one at the relay before it
/// are about to open it again.
pub(crate) const RETURN: Duration = Duration::from_secs(10);

/// One session.
#[derive(Debug)]
pub struct Session {
    key: SessionKey,
    client: Box<str>,
    claude_limit: Option<Duration>,
    upstreams: BTreeMap<String, Arc<Upstream>>,
    /// Counts its calls alone.
    pub(crate) status: Arc<Status>,
}

/// Why a session is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// There are too many.
    #[error("{}", door::too_many_sessions(lang(), MOST))]
    TooMany,
    /// It is of a version that this relay does not know.
    #[error("{}", door::session_version(lang(), *.0, VERSION))]
    Version(u32),
    /// A name that no path can hold, or too many of them.
    #[error("{}", door::session_names(lang(), MOST_UPSTREAMS, LONGEST_NAME))]
    Names,
    /// An address that nothing can be sent to.
    #[error("{}", door::session_url(lang(), .0, &settings::said_of(lang(), &.1.to_string())))]
    Url(String, Invalid),
    /// The relay itself.
    #[error("{}", door::session_itself(lang(), .0))]
    Itself(String),
    /// There is no chance.
    #[error("{}", door::no_random(lang()))]
    NoChance,
}

/// All sessions of a relay.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Mutex<Vec<Entry>>,
    opened: watch::Sender<()>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    /// Told when another holder takes the session over.
    taken: Arc<Notify>,
}

/// Whoever holds a session: it ends when this is dropped.
#[derive(Debug)]
pub struct Holder {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    taken: Arc<Notify>,
    /// Whether it was another's before.
    resumed: bool,
}

impl Session {
    /// What it asks for, made ready.
    ///
    /// # Errors
    /// [`NotOpened`] where it cannot be.
    pub(crate) fn of(wanted: &Wanted) -> Result<Self, NotOpened> {
        if wanted.v != VERSION {
            return Err(NotOpened::Version(wanted.v));
        }
        let mut upstreams = BTreeMap::new();
        for given in &wanted.upstreams {
            let upstream = forwarding(&given.url).map_err(|why| NotOpened::Url(given.name.clone(), why));
            let is_new =
                is_name(&given.name) && upstreams.insert(given.name.clone(), Arc::new(upstream?)).is_none();
            if !is_new || upstreams.len() > MOST_UPSTREAMS {
                return Err(NotOpened::Names);
            }
        }
        Ok(Self {
            key: wanted.key.or_else(drawn).ok_or(NotOpened::NoChance)?,
            client: label(&wanted.client),
            claude_limit: wanted.claude_limit_ms.map(Duration::from_millis),
            upstreams,
            status: Arc::default(),
        })
    }

    /// What its calls are told by.
    pub(crate) const fn key(&self) -> SessionKey {
        self.key
    }

    /// How it is; the lanes are asked for where a call of it stands in line.
    pub(crate) fn page(&self, now: Moment, lanes: impl FnOnce() -> Vec<(LaneName, View)>) -> Page {
        let (open, mut held) = self.status.held(now, lanes);
        held.sort_by(|one, other| other.held_s.total_cmp(&one.held_s));
        Page { v: VERSION, client: self.client.clone().into(), open, held, sums: self.status.sums() }
    }

    /// Its upstream of this name.
    pub(crate) fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.get(name)
    }

    /// What is known of how its client was started, unless the settings say otherwise.
    pub(crate) fn limit(&self, config: &Config, client: &mut Client) {
        let known = self.claude_limit.filter(|_| client.kind == Kind::ClaudeCode);
        if let (Some(limit), None) = (known, config.client(client.kind).limit) {
            client.limit = Some(limit);
            client.limit_in_company = Some(limit);
        }
    }
}

/// The upstream for a base URL of a client's own: paths are appended as the client would, and its credential goes
/// there as the client itself would send it.
pub fn forwarding(url: &str) -> Result<Upstream, Invalid> {
    let mut upstream = Upstream::parse("own", url)?;
    upstream.name = label(&upstream.url.authority()).into();
    upstream.v1 = V1::Keep;
    upstream.allow_plaintext = !upstream.is_https();
    Ok(upstream)
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_letter)
}

/// A key that nobody can guess.
#[must_use]
pub fn drawn() -> Option<SessionKey> {
    let mut bytes = [0; DIGITS / 2];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(SessionKey(u128::from_ne_bytes(bytes)))
}

/// The key that a path and query begin with, and what follows it.
pub(crate) fn key_in(path_and_query: &str) -> Option<(SessionKey, &str)> {
    let rest = path_and_query.strip_prefix("/~")?;
    let (key, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some((key.parse().ok()?, rest))
}

/// Whether a path begins as if a key followed, be it one or not; clients may write the `~` in another way.
pub(crate) fn names_a_key(path_and_query: &str) -> bool {
    ["/~", "/%7E", "/%7e"].iter().any(|start| path_and_query.starts_with(start))
}

impl Sessions {
    fn open_ones(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session, or takes over the one of its key, whose sums go on.
    ///
    /// # Errors
    /// [`NotOpened`] with the reason.
    pub fn open(self: &Arc<Self>, wanted: &Wanted) -> Result<Holder, NotOpened> {
        self.hold(Session::of(wanted)?)
    }

    /// The same with a session that is made ready.
    ///
    /// # Errors
    /// [`NotOpened::TooMany`].
    pub(crate) fn hold(self: &Arc<Self>, mut session: Session) -> Result<Holder, NotOpened> {
        let taken = Arc::<Notify>::default();
        let (session, resumed) = {
            let mut open = self.open_ones();
            let before = position(&open, session.key);
            if let Some(at) = before {
                let before = open.swap_remove(at);
                session.status = Arc::clone(&before.session.status);
                before.taken.notify_one();
            } else if open.len() >= MOST {
                return Err(NotOpened::TooMany);
            }
            let session = Arc::new(session);
            open.push(Entry { session: Arc::clone(&session), taken: Arc::clone(&taken) });
            (session, before.is_some())
        };
        self.opened.send_replace(());
        Ok(Holder { sessions: Arc::clone(self), session, taken, resumed })
    }

    /// The session of this key.
    pub(crate) fn find(&self, key: SessionKey) -> Option<Arc<Session>> {
        let open = self.open_ones();
        position(&open, key).and_then(|at| open.get(at)).map(|entry| Arc::clone(&entry.session))
    }

    /// The names of all calls of sessions that are held.
    pub(crate) fn held(&self, now: Moment) -> BTreeSet<String> {
        let sessions: Vec<_> = self.open_ones().iter().map(|entry| Arc::clone(&entry.session)).collect();
        let held = |session: &Arc<Session>| session.status.held(now, Vec::new).1;
        sessions.iter().flat_map(held).map(|held| held.call).collect()
    }

    /// Waits until there is one of this key.
    pub(crate) async fn opens(&self, key: SessionKey) {
        let mut opened = self.opened.subscribe();
        // The sender lives as long as we do.
        let _lives = opened.wait_for(|()| self.find(key).is_some()).await;
    }
}

/// Looks at every one for as long, so that the time it takes says nothing of their keys.
fn position(open: &[Entry], key: SessionKey) -> Option<usize> {
    let key = key.0.to_ne_bytes();
    let mut found = None;
    for (at, entry) in open.iter().enumerate() {
        if bool::from(entry.session.key.0.to_ne_bytes().ct_eq(&key)) {
            found = Some(at);
        }
    }
    found
}

impl Holder {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.session.key
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Waits until somebody else holds the session.
    pub(crate) async fn taken(&self) {
        self.taken.notified().await;
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.sessions.open_ones().retain(|entry| !Arc::ptr_eq(&entry.taken, &self.taken));
    }
}

#[cfg(test)]
mod tests {
    use super::said::NamedUrl;
    use super::*;

    fn wanted(key: Option<u128>) -> Wanted {
        let key = key.map(SessionKey);
        Wanted { v: 1, client: "codex".to_owned(), key, claude_limit_ms: None, upstreams: Vec::new() }
    }

    #[test]
    fn a_session_lasts_as_long_as_its_holder() {
        let sessions = Arc::<Sessions>::default();
        let one = sessions.open(&wanted(None)).unwrap();
        let other = sessions.open(&wanted(None)).unwrap();
        assert_ne!(one.key(), other.key());
        let key = one.key();
        assert!(sessions.find(key).is_some());
        drop(one);
        assert!(sessions.find(key).is_none() && sessions.find(other.key()).is_some());
    }

    #[tokio::test]
    async fn whoever_comes_with_its_key_takes_it_over_with_its_sums() {
        let sessions = Arc::<Sessions>::default();
        let before = sessions.open(&wanted(Some(7))).unwrap();
        let after = sessions.open(&wanted(Some(7))).unwrap();
        before.taken().await;
        assert!(Arc::ptr_eq(&before.session.status, &after.session.status));
        drop(before);
        assert!(sessions.find(SessionKey(7)).is_some(), "the end of the old holder ends nothing");
        drop(after);
        assert!(sessions.find(SessionKey(7)).is_none());
    }

    #[test]
    fn there_are_bounds() {
        let sessions = Arc::<Sessions>::default();
        let all: Vec<_> = (0..MOST).map(|_| sessions.open(&wanted(None)).unwrap()).collect();
        assert_eq!(sessions.open(&wanted(None)).unwrap_err(), NotOpened::TooMany);
        assert!(sessions.open(&wanted(Some(all[0].key().0))).is_ok(), "one that is there may be taken over");
        let named = |name: &str| NamedUrl { name: name.to_owned(), url: "http://10.0.0.1/v1".to_owned() };
        let with = |upstreams| Session::of(&Wanted { upstreams, ..wanted(None) }).map(|_| ());
        let many = |count: usize| (0..count).map(|at| named(&at.to_string())).collect();
        assert_eq!(with(many(MOST_UPSTREAMS)), Ok(()));
        assert_eq!(with(many(MOST_UPSTREAMS + 1)), Err(NotOpened::Names));
        for odd in ["", "a/b", "a b", "ä", "..", &"a".repeat(65)] {
            assert_eq!(with(vec![named(odd)]), Err(NotOpened::Names), "{odd}");
        }
        assert_eq!(with(vec![named("a"), named("a")]), Err(NotOpened::Names));
        let secret = NamedUrl { url: "https://me:hush@x".to_owned(), ..named("a") };
        let refused = with(vec![secret]).unwrap_err().to_string();
        assert!(!refused.contains("hush"), "{refused}");
        assert_eq!(Session::of(&Wanted { v: 2, ..wanted(None) }).unwrap_err(), NotOpened::Version(2));
    }

    #[test]
    fn a_path_begins_with_a_key_or_not() {
        let key = SessionKey(0xab);
        for (path, rest) in [
            (format!("/~{key}/v1/x?y=1"), Some("/v1/x?y=1")),
            (format!("/~{key}?y"), Some("?y")),
            (format!("/~{key}"), Some("")),
            (format!("/{key}/v1"), None),
            ("/~token/v1".to_owned(), None),
            (format!("/~{key}0/v1"), None),
        ] {
            assert_eq!(key_in(&path), rest.map(|rest| (key, rest)), "{path}");
        }
    }

    #[test]
    fn what_may_be_a_key_is_seen() {
        for path in ["/~", "/~abc/v1", "/%7Eabc", "/%7eabc/v1?x"] {
            assert!(names_a_key(path), "{path}");
        }
        for path in ["", "/", "/v1/~abc", "~abc", "/v1?~abc"] {
            assert!(!names_a_key(path), "{path}");
        }
    }

    #[test]
    fn the_limit_holds_for_claude_code_alone_and_gives_way_to_the_settings() {
        let session = Session::of(&Wanted { claude_limit_ms: Some(90_000), ..wanted(None) }).unwrap();
        let limited = |config: &Config, kind| {
            let mut client = Client::unknown(kind);
            session.limit(config, &mut client);
            client.limit
        };
        let mut config = Config::default();
        assert_eq!(limited(&config, Kind::ClaudeCode), Some(Duration::from_secs(90)));
        assert_ne!(limited(&config, Kind::Codex), Some(Duration::from_secs(90)));
        config.clients.entry(Kind::ClaudeCode).or_default().limit = Some(Duration::from_secs(5));
        assert_ne!(limited(&config, Kind::ClaudeCode), Some(Duration::from_secs(90)));
    }
}
