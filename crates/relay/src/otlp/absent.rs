//! What there is without the feature: nothing, in the same shape. Settings that ask for it are an error before.

use std::future::{Future, ready};
use std::sync::Arc;

use arc_swap::ArcSwap;
use relay_core::config::OtlpSettings;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::observe::Observer;
use crate::shared::Shared;

/// There is none.
pub(crate) enum Otlp {}

impl Otlp {
    /// None.
    pub(crate) const fn of(_settings: &OtlpSettings, _clock: &Arc<dyn Clock>) -> Option<Arc<Self>> {
        None
    }

    /// Those of none.
    pub(crate) fn observers(self: &Arc<Self>) -> Vec<Arc<dyn Observer>> {
        match **self {}
    }
}

/// Sends nothing.
pub(crate) fn export(_current: Arc<ArcSwap<Shared>>) -> impl Future<Output = ()> + Send {
    ready(())
}

/// Waits for nothing.
pub(crate) fn close(shared: &Shared, _exporting: JoinSet<()>) -> impl Future<Output = ()> + Send {
    match shared.otlp.as_deref() {
        None => ready(()),
        Some(none) => match *none {},
    }
}
