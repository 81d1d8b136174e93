//! The idle connections. Newest first, bounded, and aged by the relay's clock, so that a connection that slept with
//! the machine is as old as it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use relay_core::Moment;

use super::connection::Connection;
use super::{Origin, Payload, PoolLimits};
use crate::clock::Clock;

/// The most idle connections to all origins together.
const MOST_IDLE: usize = 256;
/// How often idle connections are looked through while there are any.
const SWEEP: Duration = Duration::from_secs(15);
/// A connection that has just carried a whole answer needs a moment of its task's time before it can take another
/// request; one that needs longer has something left to do.
const TO_BECOME_READY: Duration = Duration::from_millis(100);

/// The idle connections to all origins.
pub(super) struct Pool<B> {
    clock: Arc<dyn Clock>,
    limits: PoolLimits,
    idle: Mutex<Idle<B>>,
}

struct Idle<B> {
    /// The longest idle first.
    by_origin: BTreeMap<Origin, Vec<Connection<B>>>,
    is_swept: bool,
}

impl<B: Payload> Pool<B> {
    pub(super) fn new(clock: Arc<dyn Clock>, limits: PoolLimits) -> Self {
        Self { clock, limits, idle: Mutex::new(Idle { by_origin: BTreeMap::new(), is_swept: false }) }
    }

    /// The newest idle connection to `origin` that can carry a request now.
    pub(super) async fn take(&self, origin: &Origin, may_be_stale: bool) -> Option<Connection<B>> {
        loop {
            let mut connection = self.newest(origin, may_be_stale)?;
            let ready = tokio::time::timeout(TO_BECOME_READY, connection.sender.ready()).await;
            if matches!(ready, Ok(Ok(()))) && !connection.wire.read_ended() {
                return Some(connection);
            }
        }
    }

    fn newest(&self, origin: &Origin, may_be_stale: bool) -> Option<Connection<B>> {
        let now = self.clock.now();
        let mut idle = self.lock();
        let connections = idle.by_origin.get_mut(origin)?;
        let most = if may_be_stale { self.oldest_of_all() } else { self.limits.idle };
        // If the newest is too old, all are.
        if now.since(connections.last()?.idle_since) > most {
            return None;
        }
        connections.pop()
    }

    /// Takes a connection back that has carried a whole answer.
    pub(super) fn put(self: Arc<Self>, origin: Origin, mut connection: Connection<B>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        connection.idle_since = self.clock.now();
        let mut idle = self.lock();
        let connections = idle.by_origin.entry(origin).or_default();
        connections.push(connection);
        let over = connections.len().saturating_sub(self.limits.idle_per_origin);
        connections.drain(..over);
        idle.drop_oldest_beyond(MOST_IDLE);
        if !std::mem::replace(&mut idle.is_swept, true) {
            runtime.spawn(sweep(Arc::downgrade(&self)));
        }
    }

    /// How many connections to `origin` are idle and not known to be closed.
    #[cfg(test)]
    pub(super) fn ready_to(&self, origin: &Origin) -> usize {
        let idle = self.lock();
        let connections = idle.by_origin.get(origin).map_or(&[][..], Vec::as_slice);
        connections.iter().filter(|connection| !connection.sender.is_closed()).count()
    }

    pub(super) fn clear(&self) {
        self.lock().by_origin.clear();
    }

    /// Drops what no request would take any more; says whether anything is left.
    fn sweep_once(&self) -> bool {
        let (now, most) = (self.clock.now(), self.oldest_of_all());
        let mut idle = self.lock();
        idle.by_origin.retain(|_, connections| {
            connections.retain(|connection| {
                !connection.sender.is_closed() && now.since(connection.idle_since) <= most
            });
            !connections.is_empty()
        });
        idle.is_swept = !idle.by_origin.is_empty();
        idle.is_swept
    }

    fn oldest_of_all(&self) -> Duration {
        self.limits.idle.saturating_mul(2)
    }

    /// A panic elsewhere leaves connections behind, never half of one.
    fn lock(&self) -> MutexGuard<'_, Idle<B>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Idle<B> {
    fn drop_oldest_beyond(&mut self, most: usize) {
        let mut count: usize = self.by_origin.values().map(Vec::len).sum();
        while count > most {
            let oldest = |connections: &Vec<Connection<B>>| {
                connections
                    .first()
                    .map_or(Moment::after_start(Duration::MAX), |connection| connection.idle_since)
            };
            let Some(connections) = self.by_origin.values_mut().min_by_key(|connections| oldest(connections))
            else {
                return;
            };
            connections.remove(0);
            self.by_origin.retain(|_, connections| !connections.is_empty());
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
