//! The labels of what is counted, and the names that they may hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// So many models, and so many upstreams, have names of their own.
pub(super) const NAMES: usize = 100;

/// A name that is shared by all that have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(Arc<str>);

impl EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&&*self.0, encoder)
    }
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(super) struct Whither {
    pub(super) upstream: Name,
    pub(super) model: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfCall {
    pub(super) client: &'static str,
    pub(super) dialect: &'static str,
    pub(super) operation: &'static str,
    pub(super) transport: &'static str,
    pub(super) upstream: Name,
    pub(super) model: Name,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfFault {
    pub(super) upstream: Name,
    pub(super) model: Name,
    pub(super) fault: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfLane {
    pub(super) lane: String,
    pub(super) upstream: Name,
    pub(super) model: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfWay {
    pub(super) upstream: Name,
    pub(super) by: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Why {
    pub(super) why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfCredential {
    pub(super) credential: Name,
    pub(super) outcome: &'static str,
}

/// The names that were met so far.
#[derive(Default)]
pub(super) struct Names {
    pub(super) upstreams: BTreeSet<Arc<str>>,
    pub(super) models: BTreeSet<Arc<str>>,
    pub(super) proxies: BTreeSet<Arc<str>>,
    pub(super) credentials: BTreeSet<Arc<str>>,
}

/// The name of something, unless too many have one already.
pub(super) fn named(known: &mut BTreeSet<Arc<str>>, name: &str) -> Name {
    if let Some(known) = known.get(name) {
        return Name(Arc::clone(known));
    }
    if known.len() >= NAMES {
        return Name("other".into());
    }
    let name: Arc<str> = name.into();
    known.insert(Arc::clone(&name));
    Name(name)
}

impl Names {
    pub(super) fn whither(&mut self, upstream: &str, model: Option<&str>) -> Whither {
        Whither {
            upstream: named(&mut self.upstreams, upstream),
            model: named(&mut self.models, model.unwrap_or_default()),
        }
    }
}
