//! Renewals that are under way: each is a task of its own, and the end of the relay waits for all of them.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Credential, Had, Kind, Trouble};
use crate::shared::Shared;
use crate::words::{credentials as words, lang};

/// How many there are. A relay that ends in the middle of one would take a token with it that was just issued, and the old
/// one may be good no longer.
#[derive(Debug, Default)]
pub(crate) struct Renewals(watch::Sender<usize>);

impl Renewals {
    /// Whether there is any.
    pub(crate) fn any(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until there is none.
    pub(crate) async fn over(&self) {
        let mut count = self.0.subscribe();
        // The sender is this one.
        let _gone = count.wait_for(|count| *count == 0).await;
    }
}

/// A renewal that is under way. However it ends, those that wait for it hear of it.
pub(super) struct UnderWay {
    credential: Arc<Credential>,
    shared: Arc<Shared>,
    had: Option<Result<Had, Trouble>>,
}

impl UnderWay {
    /// From now on it counts.
    pub(super) fn new(credential: &Arc<Credential>, shared: &Arc<Shared>) -> Self {
        shared.renewals.0.send_modify(|count| *count += 1);
        Self { credential: Arc::clone(credential), shared: Arc::clone(shared), had: None }
    }

    pub(super) async fn run(mut self) {
        let had = self.credential.obtain(&self.shared).await;
        self.had = Some(had);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let broke_off = || Err(Trouble { why: words::broke_off(lang()), kind: Kind::Passing(None) });
        self.credential.end(&self.shared, self.had.take().unwrap_or_else(broke_off));
        // Last: once nobody waits any longer, the relay may be gone.
        self.shared.renewals.0.send_modify(|count| *count -= 1);
    }
}
