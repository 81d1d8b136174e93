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
    if failure.barred.is_some() || (!nature.kept && evidence != Evidence::NeverSent) {
        return Right::Never;
    }
    match evidence {
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
    failure.status == Some(429) || (failure.by_code && failure.fault.heals_by_waiting())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Told;
    use crate::fault::Fault;

    // The table itself is compared with docs/faults.md, cell by cell, by tests/faults_page.rs.

    #[test]
    fn other_requests_are_sent_again_only_where_the_refusal_names_its_reason() {
        let other = Nature { operation: Operation::Other, self_contained: true, kept: true };
        let says = |status, fault, by_code| {
            let told = Failure { status: Some(status), told: Told::ByStatus, by_code, ..refused(fault) };
            right(Evidence::Refused, &other, &told)
        };
        assert_eq!(says(503, Fault::AtCapacity, false), Right::Never, "an edge may have made up the status");
        assert_eq!(says(529, Fault::Overloaded, false), Right::Never);
        assert_eq!(says(503, Fault::AtCapacity, true), Right::Free);
        assert_eq!(says(200, Fault::Overloaded, true), Right::Free);
        assert_eq!(says(429, Fault::Throttled, false), Right::Free);
        assert_eq!(says(503, Fault::ServerFailed, true), Right::Never, "a code, but none of capacity");
    }

    fn refused(fault: Fault) -> Failure {
        Failure::of_transport(fault, Evidence::Refused)
    }
}
