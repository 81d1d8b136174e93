//! A call that is sent with a credential of the relay's own: that is had before the send, and renewed where it is refused.

use std::sync::Arc;

use relay_core::failure::Failure;
use relay_core::moment::Moment;
use relay_core::retry_after::Advice;

use super::Drive;
use crate::clock::sleep_until;
use crate::credentials::Lacks;
use crate::legs::LOOK_AGAIN;
use crate::open::Waited;

impl Drive {
    /// Has the credential at hand that goes with the call, where one does.
    pub(crate) fn prepare(&mut self) -> Result<(), Lacks> {
        match self.order.legs.leg_mut().lent.as_mut() {
            Some(lent) => lent.prepare(self.open.shared()),
            None => Ok(()),
        }
    }

    /// Waits for it, or until others may take the call.
    pub(crate) async fn wait_for_credential(&mut self, lacks: Lacks, again: Option<Moment>) -> Waited {
        let (at_least, now) = (self.open.shared().config.timeouts.connect, self.open.now());
        let until = self.open.call().prepares(at_least, now);
        let again = again.unwrap_or(now + LOOK_AGAIN);
        let mut renewal = match lacks {
            Lacks::Renewal(renewal) => Some(renewal),
            Lacks::Value(failure) => {
                let there = match failure.advice {
                    Advice::Wait(left) => Some(now + left),
                    // It is for a person to mend. Others may take the call meanwhile.
                    Advice::Useless | Advice::Silent => self.order.legs.has_another(now).then_some(again),
                };
                let Some(there) = there.filter(|there| *there <= until) else {
                    self.open.call().unprepared(*failure, now);
                    return Waited::Again;
                };
                self.open.call().is_prepared_slowly(Some(there.since(now)));
                self.open.emit_pending();
                None
            }
        };
        let over = async {
            match &mut renewal {
                Some(renewal) => drop(renewal.changed().await),
                None => std::future::pending().await,
            }
        };
        let waited = self.open.rest(over, again.min(now + LOOK_AGAIN).min(until)).await;
        let now = self.open.now();
        match &self.order.legs.leg().lent {
            Some(lent) if waited == Waited::Again && now >= until => {
                let late = lent.late();
                self.open.call().unprepared(late, now);
            }
            Some(_) if waited == Waited::Again && renewal.is_some() => {
                self.open.call().is_prepared_slowly(None)
            }
            Some(_) | None => {}
        }
        waited
    }

    /// The failure of a send, which may be worth another with a newer credential of the relay's own.
    pub(super) async fn renewed(&mut self, mut failure: Failure) -> Failure {
        let now = self.open.now();
        let may_renew = self.open.call().may_renew(now);
        let Some(lent) =
            self.order.legs.leg().lent.as_ref().filter(|lent| may_renew && lent.is_refused(&failure))
        else {
            return failure;
        };
        let shared = Arc::clone(self.open.shared());
        let by = self.open.call().renews_by(shared.config.timeouts.connect, now);
        failure.renewed = tokio::select! {
            renewed = Box::pin(lent.renews(&shared)) => renewed,
            () = sleep_until(&*shared.clock, by) => false,
        };
        let waited = self.open.now().since(now);
        self.open.call().renews(waited);
        failure
    }
}
