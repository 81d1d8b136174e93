//! The table: may this request be sent again after this failure? `docs/faults.md` is compared with it.

use crate::evidence::{Evidence, Nature, Operation};
use crate::failure::Failure;

/// By what right a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Freely, inside the budget of sends and patience.
    Free,
    /// As one of the few sends that the upstream may fail.
    Failed,
    /// By a grant: it may run, and be billed, twice.
    Grant,
    /// Not at all: the failure goes back to the client.
    Never,
}

/// The table. One row per kind of evidence; a final failure has none and never comes here.
#[must_use]
pub fn right(evidence: Evidence, nature: &Nature, failure: &Failure) -> Right {
    if !nature.kept && evidence != Evidence::NeverSent {
        return Right::Never;
    }
    match evidence {
        Evidence::NeverSent if failure.certificate => Right::Never,
        Evidence::NeverSent => Right::Free,
        Evidence::Refused => match nature.operation {
            Operation::Generation | Operation::Pure => Right::Free,
            Operation::Other if refuses_this_request(failure) => Right::Free,
            Operation::Other => Right::Never,
        },
        Evidence::Failed => match nature.operation {
            Operation::Generation | Operation::Pure => Right::Failed,
            Operation::Other => Right::Never,
        },
        Evidence::MaybeRan => match nature.operation {
            Operation::Generation if nature.self_contained => Right::Grant,
            Operation::Generation | Operation::Pure | Operation::Other => Right::Never,
        },
        Evidence::NoAnswer | Evidence::Committed => Right::Never,
    }
}

/// Whether the refusal names its reason, rather than leave it to a status that an edge may have made up.
fn refuses_this_request(failure: &Failure) -> bool {
    failure.status == Some(429) || (failure.by_code && failure.fault.is_capacity())
}
