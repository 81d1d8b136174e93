//! How hard and how long the relay tries: the numbers of a profile, and the four that ship.
//! Not the choice of a profile for a call (that is `client`) and not the arithmetic (that is `wait` and `budget`).

use std::time::Duration;

/// A curve of waits: `min(base · factorⁿ, cap)`, plus up to `jitter`, which is only ever added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// The first wait.
    pub base: Duration,
    /// What each further wait is multiplied by.
    pub factor: f64,
    /// No wait grows past this (jitter comes on top).
    pub cap: Duration,
    /// The most that chance adds to a wait.
    pub jitter: Duration,
}

/// What the longest time that a client waits for an answer's head does to the profile's patience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientLimit {
    /// It takes its place, less a margin: an honest answer comes just before the client would hang up.
    Replaces,
    /// The smaller of the two holds.
    Shortens,
    /// Nothing: the call goes on until the client leaves.
    Ignored,
}

/// The numbers that bound one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The most sends of one call, the first included; `None`: no count, patience alone ends it. Zero is zero.
    pub sends: Option<u32>,
    /// The most sends of one call that may end in an upstream's own failure (`Failed`), the last included.
    pub failed_sends: u32,
    /// How many times a call that may already have run may be sent again.
    pub ambiguous_resends: u32,
    /// The longest a client is kept waiting between sends; the time of a running send never counts.
    pub patience: Duration,
    /// What a limit that the client states, or is known to bear, does to `patience`.
    pub client_limit: ClientLimit,
    /// Whether a client's own re-send of a call that spent its budget still gets its one send.
    pub serves_resends: bool,
    /// The curve of at capacity, throttled and failed.
    pub curve: Curve,
    /// The curve of overloaded.
    pub overloaded: Curve,
    /// The shortest wait where the upstream named one that says nothing: zero, past, negative, garbage.
    pub useless_floor: Duration,
}

const SECOND: Duration = Duration::from_secs(1);

impl Profile {
    /// A person waits in front of the client. 8 sends make seven waits of 91 s in all on the plain curve.
    #[must_use]
    pub const fn interactive() -> Self {
        Self {
            sends: Some(8),
            failed_sends: 3,
            ambiguous_resends: 1,
            patience: Duration::from_secs(120),
            client_limit: ClientLimit::Replaces,
            serves_resends: true,
            curve: Curve { base: SECOND, factor: 2.0, cap: Duration::from_secs(30), jitter: SECOND },
            overloaded: Curve {
                base: Duration::from_secs(4),
                factor: 2.0,
                cap: Duration::from_secs(60),
                jitter: SECOND,
            },
            useless_floor: Duration::from_millis(1500),
        }
    }

    /// Many calls, nobody waits for a single one: more sends, longer waits.
    #[must_use]
    pub const fn batch() -> Self {
        let mut profile = Self::interactive();
        profile.sends = Some(12);
        profile.patience = Duration::from_secs(480);
        profile.curve.cap = Duration::from_secs(60);
        profile
    }

    /// Unattended work that must not be lost: until the client leaves, at most six hours.
    #[must_use]
    pub const fn patient() -> Self {
        let mut profile = Self::batch();
        profile.sends = None;
        profile.patience = Duration::from_secs(6 * 3600);
        profile.client_limit = ClientLimit::Ignored;
        profile
    }

    /// The least that is worth doing: few sends, short waits, nothing that may have run is sent again.
    #[must_use]
    pub const fn strict() -> Self {
        let mut profile = Self::interactive();
        profile.sends = Some(3);
        profile.failed_sends = 1;
        profile.ambiguous_resends = 0;
        profile.patience = Duration::from_secs(60);
        profile.client_limit = ClientLimit::Shortens;
        profile.serves_resends = false;
        profile.curve.base = Duration::from_millis(400);
        profile.curve.cap = Duration::from_secs(5);
        profile
    }
}
