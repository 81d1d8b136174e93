//! Tells a person of what needs one: in the log, by a webhook, by a program, on the desktop. What is told, and how often,
//! [`relay_core::alert`] decides; here it is delivered.
//!
//! ```text
//!  events, lanes --> watch --\
//!  time, files ----> watch ---+--> line (bounded) --> log
//!                                                 \-> line of each way (bounded) --> webhook | command | desktop
//! ```
//!
//! An observer as every other: nobody who makes an event waits for it. A way that hangs holds up itself alone; what finds no
//! room in its line is counted, and told of.

mod command;
mod message;
mod tried;
mod webhook;

pub(crate) use tried::try_all;
pub use tried::{Options, Tried, Verb, json};

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use relay_core::Moment;
use relay_core::alert::{About, Alert, Gate, Watch};
use relay_core::config::Config;
use relay_core::event::{CallId, Event};
use relay_core::redact::in_one_line;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use self::message::Message;
use crate::clock::{Clock, wall_ms};
use crate::held;
use crate::observe::{LaneChange, Notice, Observer, What};
use crate::shared::Shared;
use crate::words::{alerts as words, lang, start};

/// The most alerts that wait, in each line.
const ROOM: usize = 64;
/// How often it is looked whether something has lasted for long.
const TICK: Duration = Duration::from_secs(1);
/// The most of what a system says of a file.
const SAID: usize = 200;

/// What watches, and the line of what is to be told.
pub(crate) struct Alerts {
    clock: Arc<dyn Clock>,
    watch: Mutex<Watch>,
    line: Sender<Alert>,
    /// Taken by the one that delivers.
    told: Mutex<Option<Receiver<Alert>>>,
    lost: AtomicU64,
}

impl Alerts {
    /// Watches by these settings.
    pub(crate) fn new(clock: Arc<dyn Clock>, config: &Config) -> Self {
        let (line, told) = channel(ROOM);
        let alerts = Self {
            clock,
            watch: Mutex::default(),
            line,
            told: Mutex::new(Some(told)),
            lost: AtomicU64::new(0),
        };
        alerts.set(config);
        alerts
    }

    /// Goes by these settings from now on.
    pub(crate) fn set(&self, config: &Config) {
        self.watch().set(config.alerts.clone(), config.alerting_rules());
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, alerts: Vec<Alert>) {
        for alert in alerts {
            if self.line.try_send(alert).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Observer for Alerts {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        if Watch::concerns(event) {
            let alerts = self.watch().see(call, at, event);
            self.push(alerts);
        }
    }

    fn notice(&self, notice: &Notice) {
        let Notice::Lane(LaneChange { lane, what }) = notice else { return };
        let about = About {
            upstream: Some(lane.upstream.clone()),
            model: lane.model.clone(),
            lane: Some(lane.id.as_str().into()),
            ..About::default()
        };
        let did = match what {
            What::LaneShut { why, .. } => Gate::Shut(*why),
            What::LaneOpened { .. } => Gate::Opened,
            What::CircuitOpened { fault, .. } => Gate::CircuitOpened(*fault),
            What::CircuitClosed { .. } => Gate::CircuitClosed,
            // What was told is still the case.
            What::CircuitStaysOpen { .. } => return,
        };
        let alerts = self.watch().lane(about, self.clock.now(), did);
        self.push(alerts);
    }
}

/// Delivers alerts as long as the relay takes calls; dropping this ends what is under way.
pub(crate) async fn deliver(current: Arc<ArcSwap<Shared>>) {
    let alerts = Arc::clone(&current.load().alerts);
    let told = alerts.told.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut told) = told else { return };
    let mut under_way = JoinSet::new();
    let mut ways = [Way::webhook, Way::command, Way::desktop].map(|way| way(&current, &mut under_way));
    let mut ticks = interval(alerts.clock.real(TICK).max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let alert = tokio::select! {
            alert = told.recv() => alert,
            _ = ticks.tick() => {
                look(&alerts, &current.load());
                continue;
            }
        };
        let Some(alert) = alert else { return };
        let shared = current.load_full();
        tell_of_lost(&alerts.lost, &shared);
        if shared.config.alerts.log {
            shared.observers.notice(&Notice::Alert(alert.clone()));
        }
        let message = Arc::new(Message::of(&alert, wall_ms(&*alerts.clock), lang()));
        for way in &mut ways {
            way.push(&shared, &message);
        }
    }
}

/// Looks at the time and at the files.
fn look(alerts: &Alerts, shared: &Shared) {
    let now = alerts.clock.now();
    let mut found = Vec::new();
    let snapshots = shared.config.snapshots.enabled.then(|| ("snapshots", shared.snapshots.trouble()));
    for (what, trouble) in shared.observers.files().chain(snapshots) {
        let trouble = trouble.map(|why| in_one_line(&why, SAID));
        found.extend(alerts.watch().file(what, now, trouble.as_deref()));
    }
    found.extend(alerts.watch().tick(now));
    alerts.push(found);
}

/// Says how many found no room, once there is some.
fn tell_of_lost(lost: &AtomicU64, shared: &Shared) {
    let lost = lost.swap(0, Ordering::Relaxed);
    if lost > 0 {
        shared.observers.notice(&Notice::Advice(words::lost(lang(), lost)));
    }
}

/// Shows it on the desktop.
async fn show(message: &Message) -> Result<(), String> {
    held::show(&held::Message { title: words::title(lang()), body: message.text.clone() }).await
}

/// How one delivery went; `Err` with what was in the way.
type Delivery = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A way to a person, with a line of its own.
struct Way {
    wanted: fn(&Config) -> bool,
    line: Sender<Arc<Message>>,
    lost: u64,
}

impl Way {
    fn webhook(current: &Arc<ArcSwap<Shared>>, under_way: &mut JoinSet<()>) -> Self {
        Self::start(
            current,
            under_way,
            |config| config.alerts.webhook.is_some(),
            |shared, message| Box::pin(webhook::post(shared, message)),
        )
    }

    fn command(current: &Arc<ArcSwap<Shared>>, under_way: &mut JoinSet<()>) -> Self {
        Self::start(
            current,
            under_way,
            |config| !config.alerts.command.is_empty(),
            |shared, message| Box::pin(command::run(shared, message)),
        )
    }

    fn desktop(current: &Arc<ArcSwap<Shared>>, under_way: &mut JoinSet<()>) -> Self {
        Self::start(
            current,
            under_way,
            |config| config.alerts.desktop,
            |_, message| Box::pin(async move { show(&message).await }),
        )
    }

    fn start(
        current: &Arc<ArcSwap<Shared>>,
        under_way: &mut JoinSet<()>,
        wanted: fn(&Config) -> bool,
        one: fn(Arc<Shared>, Arc<Message>) -> Delivery,
    ) -> Self {
        let (line, mut told) = channel::<Arc<Message>>(ROOM);
        let current = Arc::clone(current);
        under_way.spawn(async move {
            let failing = AtomicBool::new(false);
            while let Some(message) = told.recv().await {
                let shared = current.load_full();
                // The settings may have changed while it waited.
                if !wanted(&shared.config) {
                    continue;
                }
                match one(Arc::clone(&shared), message).await {
                    Ok(()) => failing.store(false, Ordering::Relaxed),
                    // Said once until it works again.
                    Err(_) if failing.swap(true, Ordering::Relaxed) => {}
                    Err(why) => shared.observers.notice(&Notice::Advice(start::note(lang(), &why))),
                }
            }
        });
        Self { wanted, line, lost: 0 }
    }

    fn push(&mut self, shared: &Shared, message: &Arc<Message>) {
        if !(self.wanted)(&shared.config) {
            return;
        }
        if self.line.try_send(Arc::clone(message)).is_err() {
            self.lost += 1;
        } else if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            shared.observers.notice(&Notice::Advice(words::lost(lang(), lost)));
        }
    }
}
