//! What is known about execution: which requests may be sent again at all, and what a failure says about
//! whether the request ran. The table that joins the two is `decide`.

use std::time::Duration;

/// A failure that came later than this may hide a request that ran: opencodex measured failures after 191 s
/// that had been billed, while a refusal is quick.
pub const PROMPT: Duration = Duration::from_secs(15);

/// What we know about whether the upstream ran the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// No byte of the request reached the service.
    NeverSent,
    /// A complete answer says that it was not run.
    Refused,
    /// The service failed in a way of its own, quickly.
    Failed,
    /// Bytes left and nothing tells whether it ran.
    MaybeRan,
    /// Our own time limit ended it: it is probably still running.
    NoAnswer,
    /// Some of the answer reached the client.
    Committed,
}

impl Evidence {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 6] =
        [Self::NeverSent, Self::Refused, Self::Failed, Self::MaybeRan, Self::NoAnswer, Self::Committed];

    /// The name in logs and events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverSent => "never_sent",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::MaybeRan => "maybe_ran",
            Self::NoAnswer => "no_answer",
            Self::Committed => "committed",
        }
    }
}

/// What a rule says of an answer, before the time it took is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Not run, whenever it came.
    Refused,
    /// Not run if it came promptly or named a time to come back; else it may have run (a bare 503).
    RefusedIfPrompt,
    /// Failed if it came promptly; else it may have run.
    Failed,
    /// May have run.
    MaybeRan,
    /// The same request will fail again, or a wait does not heal it: nothing to decide, it goes back.
    Final,
}

impl Says {
    /// The evidence of an answer that took `took` and did or did not name a time to come back; `None`: final.
    #[must_use]
    pub fn after(self, took: Duration, told_when: bool) -> Option<Evidence> {
        let prompt = took <= PROMPT;
        match self {
            Self::Refused => Some(Evidence::Refused),
            Self::RefusedIfPrompt if prompt || told_when => Some(Evidence::Refused),
            Self::Failed if prompt => Some(Evidence::Failed),
            Self::RefusedIfPrompt | Self::Failed | Self::MaybeRan => Some(Evidence::MaybeRan),
            Self::Final => None,
        }
    }
}

/// What a request does, seen from the question "may it be sent twice?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Asks a model for an answer: costs money, changes nothing else.
    Generation,
    /// Changes nothing and costs next to nothing: GET, HEAD, embeddings, token counts, moderation, rerank.
    Pure,
    /// Everything else: uploads, batches, compaction, POSTs nobody knows.
    Other,
}

impl Operation {
    /// The name in events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Pure => "pure",
            Self::Other => "other",
        }
    }
}

/// What matters of a request for the question "may it be sent again?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// What it does.
    pub operation: Operation,
    /// The whole input is in the request and every tool runs at the client: a second run costs money only.
    pub self_contained: bool,
    /// The body is still at hand.
    pub kept: bool,
}
