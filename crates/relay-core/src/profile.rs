//! How hard and how long the relay tries: the numbers of a profile, and the six that ship.
//! Not the choice of a profile for a call (that is the relay's `profile`), and not the arithmetic (that is `wait` and
//! `budget`).

use crate::gate::Preset;
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
    /// How its calls wait in the gate of their lane; `None`: each by itself, on the curves below.
    pub gate: Option<Preset>,
    /// The gate that it has where a setting says no more than that it has one.
    pub preset: Preset,
    /// Whether a spent quota that names when there is one again parks the lane of its call until then; only in the
    /// gate. Off: a definite error is no wait unless somebody wants it to be one.
    pub park_quota: bool,
    /// The most sends of one call, the first included; `None`: no count, patience alone ends it. Zero is zero.
    pub sends: Option<u32>,
    /// In place of `sends` where that is a count and the gate spaces the sends: few of them are wasted then. `None`:
    /// the count holds there too, as one that somebody set does.
    pub gated_sends: Option<u32>,
    /// The most sends of one call that may end in an upstream's own failure (`Failed`), the last included.
    pub failed_sends: u32,
    /// The most sends of one call that may be throttled, the last included; `None`: no count of their own.
    pub throttled_sends: Option<u32>,
    /// The most sends of one call that may meet a service at capacity or overloaded, the last included; `None`: no
    /// count of their own.
    pub capacity_sends: Option<u32>,
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
    /// The curve where nothing reached the service. Chance adds at most as much as the wait itself.
    pub never_sent: Curve,
    /// The shortest wait where the upstream named one that says nothing: zero, past, negative, garbage.
    pub useless_floor: Duration,
}

const SECOND: Duration = Duration::from_secs(1);

impl Profile {
    /// The most sends of one call, by the way its sends are spaced; `None`: no count. Zero is zero.
    #[must_use]
    pub const fn most_sends(&self) -> Option<u32> {
        match (self.sends, self.gate, self.gated_sends) {
            (Some(1..), Some(_), Some(most)) => Some(most),
            (sends, _, _) => sends,
        }
    }

    /// Whether a spent quota may park the lane.
    #[must_use]
    pub const fn parks(&self) -> bool {
        self.park_quota && self.gate.is_some()
    }

    /// A person waits in front of the client. 8 sends make seven waits of 91 s in all on the plain curve. In the gate
    /// one that refuses at random is met every few seconds, so that patience ends a call rather than 40 sends.
    #[must_use]
    pub const fn interactive() -> Self {
        Self {
            gate: Some(Preset::Interactive),
            preset: Preset::Interactive,
            park_quota: false,
            sends: Some(8),
            gated_sends: Some(40),
            failed_sends: 3,
            throttled_sends: None,
            capacity_sends: None,
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
            // A listener that restarts is back in a moment, so the first tries are quick.
            never_sent: Curve {
                base: Duration::from_millis(150),
                factor: 2.0,
                cap: Duration::from_secs(30),
                jitter: SECOND,
            },
            useless_floor: Duration::from_millis(1500),
        }
    }

    /// Many calls, nobody waits for a single one: more sends, longer waits.
    #[must_use]
    pub const fn batch() -> Self {
        let mut profile = Self::interactive();
        profile.gate = Some(Preset::Batch);
        profile.preset = Preset::Batch;
        profile.sends = Some(12);
        profile.gated_sends = Some(60);
        profile.patience = Duration::from_secs(480);
        profile.curve.cap = Duration::from_secs(60);
        profile.never_sent.cap = profile.curve.cap;
        profile
    }

    /// Unattended work that must not be lost: until the client leaves, at most six hours.
    #[must_use]
    pub const fn patient() -> Self {
        let mut profile = Self::batch();
        profile.sends = None;
        profile.gated_sends = None;
        profile.patience = Duration::from_secs(6 * 3600);
        profile.client_limit = ClientLimit::Ignored;
        profile
    }

    /// The least that is worth doing: few sends, short waits, nothing that may have run is sent again.
    #[must_use]
    pub const fn strict() -> Self {
        let mut profile = Self::interactive();
        profile.gate = Some(Preset::Strict);
        profile.preset = Preset::Strict;
        profile.sends = Some(3);
        profile.gated_sends = None;
        profile.failed_sends = 1;
        profile.ambiguous_resends = 0;
        profile.patience = Duration::from_secs(60);
        profile.client_limit = ClientLimit::Shortens;
        profile.serves_resends = false;
        profile.curve.base = Duration::from_millis(400);
        profile.curve.cap = Duration::from_secs(5);
        profile.never_sent.cap = profile.curve.cap;
        profile
    }

    /// As the tool codex-retry: 3 resends of what was throttled, 5 at capacity or overloaded, 3 of what failed,
    /// and 120 s of waiting. Without a gate, since these are the numbers of one call for itself. Where its numbers differ
    /// from these:
    ///
    /// - It waits `min(1.5 · 2ⁿ + up to 1 s, 60 s)` and ± 0.3 s; here chance comes on top of the cap and is only
    ///   added, so that no send is early.
    /// - It cuts a Retry-After of more than 300 s to 300 s; here what exceeds the patience goes back at once.
    /// - Its 120 s count the answers too; here only the waits, so that no running answer is cut.
    /// - It sends a 504 again three times; here that may have run, and the one grant decides.
    /// - It never sends again what could not be sent; here that is harmless, and as quick as in `interactive`.
    #[must_use]
    pub const fn codex_retry() -> Self {
        let mut profile = Self::interactive();
        profile.gate = None;
        profile.sends = Some(6);
        profile.gated_sends = None;
        profile.failed_sends = 4;
        profile.throttled_sends = Some(4);
        profile.capacity_sends = Some(6);
        profile.client_limit = ClientLimit::Shortens;
        profile.curve.base = Duration::from_millis(1500);
        profile.curve.cap = Duration::from_secs(60);
        profile.overloaded = profile.curve;
        profile
    }

    /// As the proxy opencodex: `strict`, with 3 sends where the service failed or is short, and a reset leg of
    /// 150 ms to 1 s where nothing was sent, and without a gate. Where its numbers differ from these:
    ///
    /// - It multiplies each wait by 0.8 to 1.2; here chance is only added, so that no send is early.
    /// - It hands a Retry-After of more than 60 s back; so does the patience of 60 s here.
    /// - It counts its two legs apart, 3 sends each; here 3 is the most of both together.
    #[must_use]
    pub const fn opencodex() -> Self {
        let mut profile = Self::strict();
        profile.gate = None;
        profile.preset = Preset::Interactive;
        profile.failed_sends = 3;
        profile.never_sent.cap = SECOND;
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_carry_the_numbers_of_other_tools_have_no_gate_and_all_others_have_one() {
        let gates =
            crate::config::shipped_profiles().into_iter().map(|(name, it)| (name, it.gate, it.preset));
        let shown: Vec<_> = gates.map(|(name, gate, preset)| format!("{name} {gate:?} {preset:?}")).collect();
        let expected = [
            "batch Some(Batch) Batch",
            "codex-retry None Interactive",
            "interactive Some(Interactive) Interactive",
            "opencodex None Interactive",
            "patient Some(Batch) Batch",
            "strict Some(Strict) Strict",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn more_sends_are_allowed_where_the_gate_spaces_them() {
        let most = |profile: &Profile| {
            [Some(Preset::Batch), None].map(|gate| Profile { gate, ..profile.clone() }.most_sends())
        };
        assert_eq!(most(&Profile::interactive()), [Some(40), Some(8)]);
        assert_eq!(most(&Profile::batch()), [Some(60), Some(12)]);
        assert_eq!(most(&Profile::patient()), [None, None]);
        assert_eq!(most(&Profile::strict()), [Some(3), Some(3)]);
        let no_count = Profile { sends: None, ..Profile::interactive() };
        assert_eq!(most(&no_count), [None, None]);
        assert_eq!(most(&Profile { sends: Some(0), ..no_count }), [Some(0), Some(0)]);
    }
}
