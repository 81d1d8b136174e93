//! Credentials of the relay's own: their values, and the having of new ones. When that is done [`relay_core::renewal`]
//! decides; which requests get one the settings of their upstream say, and never one of another origin.
//!
//! ```text
//!  call --key--> Credential --needs a new one--> renewal, one at a time --> file | program | issuer of tokens
//!       --401--> refused?   <--value, number----         (a task of its own: it outlives its call)      |
//!                                                                            state folder <--kept-------'
//! ```
//!
//! A sign-in of ChatGPT or Claude is no such credential: its client owns it, and renews it itself.

mod blank;
mod held;
mod lent;
mod oauth;
mod store;
mod under_way;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use relay_core::config::{self, Config, Held, Secret, Source};
use relay_core::failure::{Bar, CREDENTIAL, Failure, label};
use relay_core::renewal::{Need, Outlook, Refused, Renewal, Renewed, Terms};
use relay_core::{Evidence, Fault, retry_after::Advice};
use tokio::sync::watch;

use self::store::Store;
use self::under_way::UnderWay;
use crate::clock::RealDice;
use crate::observe::{CredentialNews, Notice};
use crate::shared::Shared;
use crate::words::{credentials as words, lang};

pub use held::{Flaw, look};
pub(crate) use lent::{Lacks, Lent, of_request};
pub(crate) use under_way::Renewals;

/// A value is taken from its file again after so long: as often as other files are looked at.
const FILE_IS_GOOD: Duration = crate::reload::EVERY;
/// What a program wrote is asked for again so long before its end.
const BEFORE: Duration = config::REFRESH_BEFORE;
/// What was issued less than this ago and is refused is not asked for again: the next one would be refused, too.
const APART: Duration = Duration::from_secs(30);

/// The credentials whose variable is not set, each with that variable.
pub fn unset(config: &Config) -> impl Iterator<Item = (&str, &str)> {
    config.credentials.iter().flat_map(|(name, credential)| {
        let (one, other) = match &credential.source {
            Source::Key(held) => (Some(held), None),
            Source::Command { .. } => (None, None),
            Source::OAuth(oauth) => (Some(&oauth.refresh_token), oauth.client_secret.as_ref()),
        };
        one.into_iter().chain(other).filter_map(move |held| match held {
            Held::Variable { name: variable, value: None } => Some((name.as_str(), variable.as_str())),
            Held::Variable { value: Some(_), .. } | Held::Text(_) | Held::File(_) => None,
        })
    })
}

/// What is wrong with where the credentials of these settings are held.
pub fn all_flaws(config: &Config) -> impl Iterator<Item = Flaw> {
    config.credentials.iter().flat_map(|(name, settings)| look(name, settings))
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    all: BTreeMap<String, Arc<Credential>>,
}

impl Credentials {
    /// Those of the settings. One that was there before, and is set as it was, keeps its value; one that is set otherwise
    /// keeps the tokens that were issued, which tell themselves whether they are good under the new settings.
    pub(crate) fn of(config: &Config, before: Option<&Self>) -> Self {
        let one = |(name, settings): (&String, &config::Credential)| {
            let before = before.and_then(|before| before.all.get(name));
            if let Some(kept) = before.filter(|before| before.settings == *settings) {
                return (name.clone(), Arc::clone(kept));
            }
            let store = match &settings.source {
                Source::OAuth(_) => {
                    let before = before.and_then(|before| before.store.as_ref());
                    Some(Store::after(before, config.credentials_dir.as_deref(), name))
                }
                Source::Key(_) | Source::Command { .. } => None,
            };
            (name.clone(), Arc::new(Credential::new(name, settings, store)))
        };
        Self { all: config.credentials.iter().map(one).collect() }
    }

    /// The one of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Credential>> {
        self.all.get(name)
    }

    /// Whether the one of this name is the one that was there before.
    pub(crate) fn has_kept(&self, name: &str, before: &Self) -> bool {
        self.named(name).zip(before.named(name)).is_some_and(|(now, before)| Arc::ptr_eq(now, before))
    }

    /// What a person should know of them by now.
    pub(crate) fn advice(&self, config: &Config) -> Vec<String> {
        let mut advice: Vec<_> = all_flaws(config).map(|flaw| flaw.words).collect();
        let is_lost = |one: &&Arc<Credential>| one.store.as_ref().is_some_and(|store| store.path().is_none());
        advice.extend(self.all.values().filter(is_lost).map(|one| words::no_folder(lang(), &one.name)));
        advice
    }
}

/// One credential.
pub(crate) struct Credential {
    name: String,
    settings: config::Credential,
    /// Where its tokens are kept, if it has any.
    store: Option<Arc<Store>>,
    state: Mutex<State>,
    /// Counts the renewals that ended.
    ended: watch::Sender<u64>,
}

struct State {
    renewal: Renewal,
    value: Option<Arc<Secret>>,
    /// What went wrong at last.
    trouble: Option<Trouble>,
    /// How the files looked that it comes from when it failed for good.
    looked: Vec<Stamp>,
}

/// What a file looks like from outside; `None`: it is not there.
type Stamp = Option<(SystemTime, u64)>;

/// Why a value could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trouble {
    /// In words for a person, without a secret.
    why: String,
    kind: Kind,
}

/// What a call does that meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It waits: it may be over soon. The issuer may have asked for a pause.
    Passing(Option<Duration>),
    /// It ends: somebody has to mend it. The next one asks again.
    Standing,
    /// It ends, and nobody asks again until the source changes.
    Final,
}

/// A value that was had.
struct Had {
    value: Secret,
    /// Just now, rather than found where it is kept.
    issued: bool,
    lifetime: Option<Duration>,
    /// It is the old one, since a new one could not be had.
    in_spite_of: Option<Trouble>,
}

/// Not derived: it holds a secret.
impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Credential").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The present value, and its number.
#[derive(Debug, Clone)]
struct Taken {
    value: Arc<Secret>,
    number: u64,
}

impl Credential {
    fn new(name: &str, settings: &config::Credential, store: Option<Arc<Store>>) -> Self {
        let terms = match &settings.source {
            Source::Key(Held::Text(_) | Held::Variable { .. }) => Terms::default(),
            Source::Key(Held::File(_)) => Terms { renewable: true, ..Terms::default() },
            Source::Command { .. } => Terms { renewable: true, before: BEFORE, apart: APART },
            Source::OAuth(oauth) => Terms { renewable: true, before: oauth.before, apart: APART },
        };
        let mut renewal = Renewal::new(terms);
        let value = match &settings.source {
            Source::Key(Held::Text(value) | Held::Variable { value: Some(value), .. }) => {
                let there = Renewed { is_new: true, issued: false, lifetime: None };
                renewal.renewed(there, relay_core::Moment::ZERO);
                Some(Arc::new(value.clone()))
            }
            Source::Key(Held::Variable { value: None, .. } | Held::File(_))
            | Source::Command { .. }
            | Source::OAuth(_) => None,
        };
        let state = Mutex::new(State { renewal, value, trouble: None, looked: Vec::new() });
        let ended = watch::Sender::new(0);
        Self { name: name.to_owned(), settings: settings.clone(), store, state, ended }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, once there is a good one.
    async fn take(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<Taken, Box<Failure>> {
        loop {
            match self.take_now(shared) {
                Ok(taken) => return taken,
                Err(mut ended) => drop(ended.changed().await),
            }
        }
    }

    /// The value, or what becomes of a call that gets none. `Err`: a renewal is under way, and this tells of its end.
    fn take_now(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
    ) -> Result<Result<Taken, Box<Failure>>, watch::Receiver<u64>> {
        let ended = self.ended.subscribe();
        let need = self.need(shared);
        match need {
            Need::TakeAndRenew | Need::Renew => self.begin(shared),
            Need::Take | Need::Wait | Need::Pause(_) | Need::Never => {}
        }
        match need {
            Need::Take | Need::TakeAndRenew => {
                let state = self.state();
                let number = state.renewal.number();
                // A value has a number, and a number a value.
                let taken = state.value.clone().map(|value| Taken { value, number });
                Ok(taken.ok_or_else(|| self.failure(&state, None)))
            }
            Need::Renew | Need::Wait => Err(ended),
            Need::Pause(left) => Ok(Err(self.failure(&self.state(), Some(left)))),
            Need::Never => Ok(Err(self.failure(&self.state(), None))),
        }
    }

    fn need(&self, shared: &Shared) -> Need {
        self.looked_at().renewal.need(shared.clock.now())
    }

    /// What a call would meet that needed the value now.
    fn outlook(&self, now: relay_core::Moment) -> Outlook {
        self.looked_at().renewal.outlook(now)
    }

    /// The state, once it was looked whether what it comes from is another one by now.
    fn looked_at(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if state.renewal.is_spent() && state.looked != self.stamps() {
            state.renewal.source_changed();
        }
        state
    }

    /// The value of this number was refused; whether there is a newer one now.
    async fn refused(self: &Arc<Self>, shared: &Arc<Shared>, number: u64) -> bool {
        let mut ended = self.ended.subscribe();
        let refused = self.state().renewal.refused(number, shared.clock.now());
        match refused {
            Refused::Newer => return true,
            Refused::Stays => return false,
            Refused::Renew => self.begin(shared),
            Refused::Wait => {}
        }
        drop(ended.changed().await);
        self.state().renewal.number() > number
    }

    /// What becomes of a call that needs a value and gets none; `left`: none is asked for before that.
    fn failure(&self, state: &State, left: Option<Duration>) -> Box<Failure> {
        let why = match (&state.trouble, &self.settings.source) {
            (Some(trouble), _) => trouble.why.clone(),
            (None, Source::Key(Held::Variable { name, .. })) => words::variable_unset(lang(), name),
            (None, Source::Key(_) | Source::Command { .. } | Source::OAuth(_)) => words::broke_off(lang()),
        };
        let mut failure = self.lacking(&why);
        match (left, state.trouble.as_ref().map(|trouble| trouble.kind)) {
            (Some(left), Some(Kind::Passing(_))) => failure.advice = Advice::Wait(left),
            (_, _) => failure.barred = Some(Bar::Credential),
        }
        Box::new(failure)
    }

    /// A send for which there is no value.
    fn lacking(&self, why: &str) -> Failure {
        let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
        let mut failure = failure.saying(words::about(lang(), &self.name, why));
        failure.code = Some(CREDENTIAL.into());
        failure
    }

    /// Begins a renewal, of which there is one at a time. It is not that of the call which begins it: others wait for it,
    /// and a token that is issued must not be lost.
    fn begin(self: &Arc<Self>, shared: &Arc<Shared>) {
        tokio::spawn(UnderWay::new(self, shared).run());
    }

    async fn obtain(&self, shared: &Arc<Shared>) -> Result<Had, Trouble> {
        let present = self.state().value.clone();
        match &self.settings.source {
            Source::Key(Held::File(path)) => held::again(path, present).await,
            Source::Key(Held::Text(_) | Held::Variable { .. }) => {
                Err(Trouble::standing(words::broke_off(lang())))
            }
            Source::Command { argv, ttl } => {
                let value = held::of_command(argv, shared).await?;
                Ok(Had { value, issued: true, lifetime: *ttl, in_spite_of: None })
            }
            Source::OAuth(oauth) => oauth::Issuer { shared, oauth, credential: self }.obtain(present).await,
        }
    }

    /// Takes in what came of a renewal, and tells it.
    fn end(&self, shared: &Shared, had: Result<Had, Trouble>) {
        let (now, mut dice) = (shared.clock.now(), RealDice::default());
        let mut state = self.state();
        let told = state.trouble.take();
        let mut news = None;
        let trouble = match had {
            Ok(Had { value, issued, lifetime, in_spite_of }) => {
                let is_new = state.value.as_ref().is_none_or(|present| **present != value);
                // Whoever heard of the trouble hears that it is over.
                let is_mended = told.is_some() && in_spite_of.is_none();
                if is_mended || is_new && (issued || state.value.is_some()) {
                    news = Some(CredentialNews::Renewed);
                }
                state.renewal.renewed(Renewed { is_new, issued, lifetime }, now);
                if is_new {
                    state.value = Some(Arc::new(value));
                }
                in_spite_of
            }
            Err(trouble) => {
                match trouble.kind {
                    Kind::Passing(pause) => state.renewal.failed(pause, now, &mut dice),
                    Kind::Standing => state.renewal.failed(None, now, &mut dice),
                    Kind::Final => {
                        state.looked = self.stamps();
                        state.renewal.failed_for_good();
                    }
                }
                Some(trouble)
            }
        };
        if let Some(trouble) = &trouble {
            let again = told.as_ref().is_some_and(|told| told.why == trouble.why);
            let for_good = trouble.kind == Kind::Final;
            news = Some(CredentialNews::Failed { why: trouble.why.clone(), for_good, again });
        }
        state.trouble = trouble;
        drop(state);
        if let Some(news) = news {
            shared.observers.notice(&Notice::Credential { name: label(&self.name), news });
        }
        self.ended.send_modify(|count| *count += 1);
    }

    /// How the files look that its value may change by.
    fn stamps(&self) -> Vec<Stamp> {
        let held = match &self.settings.source {
            Source::OAuth(oauth) => match &oauth.refresh_token {
                Held::File(path) => Some(path.as_path()),
                Held::Text(_) | Held::Variable { .. } => None,
            },
            Source::Key(_) | Source::Command { .. } => None,
        };
        let kept = self.store.as_ref().and_then(|store| store.path());
        held.into_iter().chain(kept).map(stamp).collect()
    }
}

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

impl Trouble {
    fn standing(why: String) -> Self {
        Self { why, kind: Kind::Standing }
    }
}
