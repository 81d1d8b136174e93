//! The relay's own credential as one request uses it: which value it was sent with, and whether a newer one is worth
//! another send.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, StatusCode};
use relay_core::Moment;
use relay_core::config::Secret;
use relay_core::failure::{Failure, Told};
use relay_core::renewal::Outlook;
use tokio::sync::watch;

use super::{Credential, Taken, lang, words};
use crate::clock::sleep_until;
use crate::credential::{
    AccountKey, Verdict, judge, own_account_key, own_account_material, put, strip, without_query_key,
};
use crate::shared::Shared;
use crate::target::{Target, Upstream};

/// The relay's own credential, for one request.
#[derive(Debug, Clone)]
pub(crate) struct Lent {
    credential: Arc<Credential>,
    /// The number of the value that it was sent with.
    number: u64,
    /// What the next send goes with.
    ready: Option<Taken>,
}

/// What stands in the way of a send.
pub(crate) enum Lacks {
    /// A renewal is under way, and this tells of its end.
    Renewal(watch::Receiver<u64>),
    /// There is no value: what becomes of a call, which may be told to wait.
    Value(Box<Failure>),
}

/// The relay's own credential for a request that carries none, or whose own is replaced and taken out here.
pub(crate) fn of_request(shared: &Shared, target: &mut Target, headers: &mut HeaderMap) -> Option<Lent> {
    let lent = Lent::of(shared, &target.upstream)?;
    let path = target.path_and_query.as_str();
    if !target.upstream.replace_credential {
        let is_bare = judge(headers, path) == Verdict::None;
        let brings = lent.header().is_some_and(|header| headers.contains_key(header));
        return (is_bare && !brings).then_some(lent);
    }
    strip(headers, lent.header());
    let bare = without_query_key(path).and_then(|bare| PathAndQuery::try_from(bare).ok());
    if let Some(bare) = bare {
        target.path_and_query = bare;
    }
    Some(lent)
}

impl Lent {
    /// That of an upstream, if it has one.
    pub(crate) fn of(shared: &Shared, upstream: &Upstream) -> Option<Self> {
        let credential = shared.credentials.named(upstream.credential.as_deref()?)?;
        Some(Self { credential: Arc::clone(credential), number: 0, ready: None })
    }

    /// The account that requests with it act for.
    pub(crate) fn account(&self) -> AccountKey {
        own_account_key(&self.credential.name)
    }

    /// What tells that account from all others, after a restart too.
    pub(crate) fn account_material(&self) -> Vec<u8> {
        own_account_material(&self.credential.name)
    }

    fn header(&self) -> Option<&HeaderName> {
        self.credential.settings.header.as_ref()
    }

    /// What a call would meet that came to need it now.
    pub(crate) fn outlook(&self, now: Moment) -> Outlook {
        self.credential.outlook(now)
    }

    /// Has the next send ready.
    ///
    /// # Errors
    /// Where it is not.
    pub(crate) fn prepare(&mut self, shared: &Arc<Shared>) -> Result<(), Lacks> {
        self.ready = Some(self.credential.take_now(shared).map_err(Lacks::Renewal)?.map_err(Lacks::Value)?);
        Ok(())
    }

    /// The failure of a call that does not wait for a renewal any longer.
    pub(crate) fn late(&self) -> Failure {
        self.credential.lacking(&words::awaited(lang()))
    }

    /// The value that was made ready, else the present one, to be sent next.
    ///
    /// # Errors
    /// Where there is none: what becomes of the call.
    pub(crate) async fn key(&mut self, shared: &Arc<Shared>) -> Result<Key, Box<Failure>> {
        let Taken { value, number } = match self.ready.take() {
            Some(ready) => ready,
            None => self.credential.take(shared).await?,
        };
        self.number = number;
        Ok(Key { value, header: self.header().cloned() })
    }

    /// The same where nobody waits for it any longer than this.
    ///
    /// # Errors
    /// Where there is none by then, too.
    pub(crate) async fn key_by(&mut self, shared: &Arc<Shared>, by: Moment) -> Result<Key, Box<Failure>> {
        tokio::select! {
            biased;
            key = self.key(shared) => return key,
            () = sleep_until(&*shared.clock, by) => {}
        }
        Err(Box::new(self.late()))
    }

    /// Whether it was refused, as a 401 says. A 403 is no matter of the credential's age.
    pub(crate) fn is_refused(&self, failure: &Failure) -> bool {
        failure.status == Some(401) && failure.told == Told::ByStatus && failure.evidence.is_none()
    }

    /// Whether there is a newer value than the one that was refused.
    pub(crate) async fn renews(&self, shared: &Arc<Shared>) -> bool {
        self.credential.refused(shared, self.number).await
    }

    /// The same of an answer that is no call's, by this time.
    pub(crate) async fn renews_after(&self, shared: &Arc<Shared>, status: StatusCode, by: Moment) -> bool {
        if status != StatusCode::UNAUTHORIZED {
            return false;
        }
        tokio::select! {
            biased;
            renews = self.credential.refused(shared, self.number) => renews,
            () = sleep_until(&*shared.clock, by) => false,
        }
    }
}

/// A value on its way into a request.
pub(crate) struct Key {
    value: Arc<Secret>,
    header: Option<HeaderName>,
}

impl Key {
    /// Puts it where the service looks for it.
    pub(crate) fn put(&self, headers: &mut HeaderMap, path_and_query: &str) {
        put(self.value.expose(), self.header.as_ref(), headers, path_and_query);
    }
}
