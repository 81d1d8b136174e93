//! Observers of the one event stream. An observer returns at once; nothing here may slow or break a call.

mod live;
pub mod log;
pub mod metrics;
pub mod status;
pub mod tail;

use std::sync::Arc;
use std::time::Duration;

use relay_core::Fault;
use relay_core::Moment;
use relay_core::alert::Alert;
use relay_core::event::{CallId, Event};
use relay_core::gate::Shut;
use relay_core::warm::News;

use crate::upstream::WayNews;

/// What happens to the relay as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The relay listens.
    Listening {
        /// The address to give to clients.
        url: String,
        /// Where requests go that no route takes elsewhere; `None`: to the service that issued their credential.
        upstream: Option<String>,
        /// Who else can reach it and what they need, where it is not loopback alone.
        beyond: Option<String>,
    },
    /// Metrics are read here.
    Metrics {
        /// The address without its path.
        url: String,
    },
    /// Something a person should know once.
    Advice(String),
    /// The settings were read again; what was changed holds for new calls.
    Reloaded {
        /// The keys that were changed.
        changed: Vec<String>,
        /// The keys that were changed and need a restart.
        kept: Vec<String>,
    },
    /// Changed settings have errors; the old ones stay.
    ReloadRefused(String),
    /// The relay stops taking calls and waits for those that are open.
    Draining {
        /// How many calls are open.
        open: usize,
        /// How many of them wait between sends; they are cut.
        waiting: usize,
        /// How long it waits for the others at most.
        within: Duration,
    },
    /// A second signal, or the end of the wait: open calls are dropped.
    Stopping {
        /// How many calls were still open.
        open: usize,
    },
    /// A request was turned away by the relay itself, and is no call.
    TurnedAway {
        /// The status of the answer.
        status: u16,
        /// Why, in one word.
        code: &'static str,
        /// What was asked for, as a label.
        path: Box<str>,
    },
    /// Connections cannot be accepted for now.
    AcceptFailed {
        /// What the system said.
        why: String,
        /// How often that happened since it was last told of.
        untold: u64,
    },
    /// A lane shut, or opened again.
    Lane(LaneChange),
    /// A way to an upstream was left, or works again.
    Way(WayNews),
    /// A model is being loaded, or that ended.
    Warming(Warming),
    /// A person should know of this.
    Alert(Alert),
    /// A credential of the relay's own was renewed, or could not be.
    Credential {
        /// Its name in the settings, as a label.
        name: Box<str>,
        /// What became of it.
        news: CredentialNews,
    },
}

/// What became of a credential. It says nothing of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialNews {
    /// There is a new value.
    Renewed,
    /// There is none.
    Failed {
        /// In words for a person.
        why: String,
        /// Nothing is tried any more until its source changes.
        for_good: bool,
        /// The same was told the last time.
        again: bool,
    },
}

/// The warm-up of a model. Labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warming {
    /// The upstream.
    pub upstream: Box<str>,
    /// The model, where the settings tell.
    pub model: Option<Box<str>>,
    /// What became of it.
    pub news: News,
}

/// What a lane is called. Labels: nothing here tells whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneName {
    /// A hash that tells it from all others, the same after a restart.
    pub id: String,
    /// The model, as a label.
    pub model: Option<Box<str>>,
    /// The upstream, as a label.
    pub upstream: Box<str>,
}

/// What became of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneChange {
    /// The lane.
    pub lane: LaneName,
    /// What it did.
    pub what: What,
}

/// What a lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It takes no more calls.
    LaneShut {
        /// Why.
        why: Shut,
        /// How many calls wait.
        waiting: usize,
    },
    /// It takes calls again.
    LaneOpened {
        /// How long it was shut.
        after: Duration,
    },
    /// Its breaker lets nothing through any more.
    CircuitOpened {
        /// The last fault.
        fault: Fault,
        /// How many failures it took.
        failures: u32,
        /// How long nothing is sent.
        pause: Duration,
    },
    /// The probe that its breaker let through has failed.
    CircuitStaysOpen {
        /// How.
        fault: Fault,
        /// How long nothing is sent again.
        pause: Duration,
    },
    /// Its breaker lets calls through again.
    CircuitClosed {
        /// How long it did not.
        after: Duration,
    },
}

/// Sees what happens.
pub trait Observer: Send + Sync {
    /// Something happened to a call.
    fn see(&self, call: CallId, at: Moment, event: &Event);

    /// Something happened to the relay.
    fn notice(&self, notice: &Notice);

    /// The file that it writes, where it has one, and what is in the way of writing it now, if anything.
    fn file(&self) -> Option<(&'static str, Option<String>)> {
        None
    }
}

/// All observers, in the order they were added.
#[derive(Clone, Default)]
pub struct Observers(Vec<Arc<dyn Observer>>);

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

impl Observers {
    /// These observers.
    #[must_use]
    pub fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self(observers)
    }

    /// Shows an event to all.
    pub fn see(&self, call: CallId, at: Moment, event: &Event) {
        for observer in &self.0 {
            observer.see(call, at, event);
        }
    }

    /// The files that they write, and what is in the way of each.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        self.0.iter().filter_map(|observer| observer.file())
    }

    /// Shows a notice to all.
    pub fn notice(&self, notice: &Notice) {
        for observer in &self.0 {
            observer.notice(notice);
        }
    }
}
