//! The connections that can take a request: idle ones of HTTP/1.1, and those of HTTP/2 with room. Newest first,
//! bounded, and aged by the relay's clock, so that a connection that slept with the machine is as old as it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use relay_core::Moment;
use tokio::sync::watch;

use super::connection::{Connection, Lease};
use super::multiplexed::{Multiplexed, Occupied};
use super::{Payload, PoolLimits, Way};
use crate::clock::Clock;

/// The most idle connections to all origins together.
const MOST_IDLE: usize = 256;
/// The most connections of HTTP/2 one way; each carries many requests, and an older one goes on until they end.
const MOST_SHARED: usize = 8;
/// How often idle connections are looked through while there are any.
const SWEEP: Duration = Duration::from_secs(15);
/// A connection that has just carried a whole answer may have a little to do before it can take another request; one
/// that needs longer has more left than that.
const TO_BECOME_READY: Duration = Duration::from_millis(100);
/// Some upstreams close a connection after its answer without a word. A request that meets that close may have run, so
/// a connection that has been idle for this long, and is known to be open still, goes before one that has just answered.
const RESTED: Duration = Duration::from_millis(100);

/// Who carries one request.
pub(super) enum Carrier<B> {
    /// A connection that carries nothing else.
    Lent(Lease<B>),
    /// A place on one that carries others too.
    Shared(Occupied),
}

/// Whose part it is to connect, where one connection may serve all who wait for it.
pub(super) enum Turn {
    /// Ours; whoever waits is woken when this is dropped.
    Ours(watch::Sender<()>),
    /// Somebody else's.
    Theirs(watch::Receiver<()>),
}

/// The connections of all ways.
pub(super) struct Pool<B> {
    clock: Arc<dyn Clock>,
    limits: PoolLimits,
    held: Mutex<Held<B>>,
}

struct Held<B> {
    /// The longest idle first.
    idle: BTreeMap<Way, Vec<Connection<B>>>,
    /// The newest last.
    shared: BTreeMap<Way, Vec<Arc<Multiplexed>>>,
    connecting: BTreeMap<Way, watch::Receiver<()>>,
    is_swept: bool,
}

impl<B: Payload> Pool<B> {
    pub(super) fn new(clock: Arc<dyn Clock>, limits: PoolLimits) -> Self {
        let held = Held {
            idle: BTreeMap::new(),
            shared: BTreeMap::new(),
            connecting: BTreeMap::new(),
            is_swept: false,
        };
        Self { clock, limits, held: Mutex::new(held) }
    }

    /// The newest connection that way that can carry a request now, of those that have rested if there are any.
    pub(super) async fn take(self: &Arc<Self>, way: &Way, may_be_stale: bool) -> Option<Carrier<B>> {
        if let Some(place) = self.place(way, may_be_stale) {
            return Some(Carrier::Shared(place));
        }
        loop {
            let mut connection = self.newest(way, may_be_stale)?;
            let ready = tokio::time::timeout(TO_BECOME_READY, connection.is_ready()).await;
            if ready == Ok(true) && !connection.wire.read_ended() {
                return Some(Carrier::Lent(self.lend(connection, way, true)));
            }
        }
    }

    /// A loan of a connection that is in nobody's hands.
    pub(super) fn lend(self: &Arc<Self>, connection: Connection<B>, way: &Way, reused: bool) -> Lease<B> {
        Lease::new(connection, way.clone(), Arc::clone(self), reused)
    }

    fn place(&self, way: &Way, may_be_stale: bool) -> Option<Occupied> {
        let most = if may_be_stale { self.oldest_of_all() } else { self.limits.idle };
        let mut held = self.lock();
        let connections = held.shared.get_mut(way)?;
        connections.retain(|connection| connection.is_open());
        connections.iter().rev().find_map(|connection| connection.occupy(most))
    }

    fn newest(&self, way: &Way, may_be_stale: bool) -> Option<Connection<B>> {
        let now = self.clock.now();
        let mut held = self.lock();
        let connections = held.idle.get_mut(way)?;
        let most = if may_be_stale { self.oldest_of_all() } else { self.limits.idle };
        let idle_for = |connection: &Connection<B>| now.since(connection.idle_since);
        let rested = connections.partition_point(|connection| idle_for(connection) >= RESTED);
        let newest = [rested, connections.len()].into_iter().filter_map(|count| count.checked_sub(1));
        let chosen =
            newest.into_iter().find(|at| connections.get(*at).is_some_and(|it| idle_for(it) <= most))?;
        Some(connections.remove(chosen))
    }

    /// Asks whose part it is to connect that way. With [`Turn::Theirs`], wait, and look again.
    pub(super) fn turn(&self, way: &Way) -> Turn {
        let mut held = self.lock();
        held.connecting.retain(|_, waits| waits.has_changed().is_ok());
        if let Some(waits) = held.connecting.get(way) {
            return Turn::Theirs(waits.clone());
        }
        let (ours, waits) = watch::channel(());
        held.connecting.insert(way.clone(), waits);
        Turn::Ours(ours)
    }

    /// Takes a connection back that has carried a whole answer.
    pub(super) fn put(self: Arc<Self>, way: Way, mut connection: Connection<B>) {
        connection.idle_since = self.clock.now();
        let mut held = self.lock();
        let connections = held.idle.entry(way).or_default();
        connections.push(connection);
        let over = connections.len().saturating_sub(self.limits.idle_per_origin);
        connections.drain(..over);
        held.drop_oldest_beyond(MOST_IDLE);
        self.have_swept(held);
    }

    /// Offers a connection to all requests that go this way. Older ones carry no more than they do already.
    pub(super) fn share(self: &Arc<Self>, way: Way, connection: Arc<Multiplexed>) {
        let mut held = self.lock();
        let connections = held.shared.entry(way).or_default();
        connections.retain(|connection| connection.is_open() && connection.idle_since().is_none());
        connections.push(connection);
        let over = connections.len().saturating_sub(MOST_SHARED);
        connections.drain(..over);
        self.have_swept(held);
    }

    fn have_swept(self: &Arc<Self>, mut held: MutexGuard<'_, Held<B>>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !std::mem::replace(&mut held.is_swept, true) {
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// How many connections that way are idle and not known to be closed.
    #[cfg(test)]
    pub(super) fn ready_to(&self, way: &Way) -> usize {
        let held = self.lock();
        let connections = held.idle.get(way).map_or(&[][..], Vec::as_slice);
        connections.iter().filter(|connection| !connection.sender.is_closed()).count()
    }

    /// Drops what no request would take any more; says whether anything is left.
    fn sweep_once(&self) -> bool {
        let (now, most) = (self.clock.now(), self.oldest_of_all());
        let mut held = self.lock();
        held.idle.retain(|_, connections| {
            connections.retain_mut(|connection| {
                // Nobody else reads that the peer has closed it.
                connection.work_once();
                !connection.sender.is_closed() && now.since(connection.idle_since) <= most
            });
            !connections.is_empty()
        });
        held.shared.retain(|_, connections| {
            connections.retain(|connection| {
                connection.is_open() && connection.idle_since().is_none_or(|since| now.since(since) <= most)
            });
            !connections.is_empty()
        });
        held.is_swept = !held.idle.is_empty() || !held.shared.is_empty();
        held.is_swept
    }

    fn oldest_of_all(&self) -> Duration {
        self.limits.idle.saturating_mul(2)
    }

    /// A panic elsewhere leaves connections behind, never half of one.
    fn lock(&self) -> MutexGuard<'_, Held<B>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Held<B> {
    fn drop_oldest_beyond(&mut self, most: usize) {
        let mut count: usize = self.idle.values().map(Vec::len).sum();
        while count > most {
            let oldest = |connections: &Vec<Connection<B>>| {
                connections
                    .first()
                    .map_or(Moment::after_start(Duration::MAX), |connection| connection.idle_since)
            };
            let Some(connections) = self.idle.values_mut().min_by_key(|connections| oldest(connections))
            else {
                return;
            };
            connections.remove(0);
            self.idle.retain(|_, connections| !connections.is_empty());
            count -= 1;
        }
    }
}

/// Looks through the pool until it is empty or gone.
async fn sweep<B: Payload>(pool: Weak<Pool<B>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.sweep_once() {
            return;
        }
    }
}
