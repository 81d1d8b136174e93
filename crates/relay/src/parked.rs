//! Calls whose client was shown a notice, until it asks again: they keep their place in line meanwhile.
//!
//! The client of such a call has been answered, and sends the request again at once ([`relay_core::notice`]). What it
//! sends then is not another call: it takes this one up where it stands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::client::Turn;

use crate::clock::sleep_until;
use crate::open::OpenCall;

/// Codex asks again after 0.2 s, over a new connection. Who is not back by then has left: its turn may have come, and
/// others wait behind it. Should it come later, it goes on from what was spent, and from its place by age.
const BACK_WITHIN: Duration = Duration::from_secs(2);
/// The most that are parked at once: more are not shown a notice.
const MOST: usize = 1024;

/// The parked calls, by the turn that their client names.
#[derive(Default)]
pub(crate) struct Parked(Mutex<BTreeMap<Turn, OpenCall>>);

impl Parked {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<Turn, OpenCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for one more of this turn.
    pub(crate) fn has_room_for(&self, turn: &Turn) -> bool {
        let calls = self.calls();
        calls.len() < MOST && !calls.contains_key(turn)
    }

    /// The call that a request of this turn takes up, if it fits. One that does not is left to its own request.
    pub(crate) fn take(&self, turn: &Turn, fits: impl Fn(&OpenCall) -> bool) -> Option<OpenCall> {
        let mut calls = self.calls();
        if !calls.get(turn).is_some_and(fits) {
            return None;
        }
        calls.remove(turn)
    }
}

/// Parks a call. Unless its client is back in time, or where the relay is being stopped, it ends as one whose client has
/// left.
pub(crate) fn park(call: OpenCall) {
    let Some(turn) = call.client().turn.clone() else { return };
    let shared = Arc::clone(call.shared());
    let id = call.id();
    // Beyond the lock: what it replaces tells its end.
    let replaced = shared.parked.calls().insert(turn.clone(), call);
    drop(replaced);
    tokio::spawn(async move {
        tokio::select! {
            () = sleep_until(&*shared.clock, shared.clock.now() + BACK_WITHIN) => {}
            () = shared.draining() => {}
        }
        let mut calls = shared.parked.calls();
        let left = calls.get(&turn).is_some_and(|call| call.id() == id).then(|| calls.remove(&turn));
        drop(calls);
        drop(left);
    });
}
