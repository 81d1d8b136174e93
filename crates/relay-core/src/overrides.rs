//! Single numbers of a profile, changed: what a profile's own table, or a route, says about it.
//! Not the numbers themselves (that is `profile`).

use crate::profile::{ClientLimit, Curve, Profile};
use crate::units::{Invalid, show_duration};
use std::time::Duration;

/// The numbers of a profile that are set here; all others stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileOverrides {
    /// Whether calls wait in the gate of their lane; which one is the profile's.
    pub gate: Option<bool>,
    /// Whether a spent quota that names when there is one again parks the lane.
    pub park_quota: Option<bool>,
    /// The most sends of one call; `Some(None)`: no count.
    pub sends: Option<Option<u32>>,
    /// The most sends of one call where the gate spaces them, in place of a count in `sends`.
    pub gated_sends: Option<u32>,
    /// The most sends that may end in an upstream's own failure.
    pub failed_sends: Option<u32>,
    /// The most sends that may be throttled; `Some(None)`: no count of their own.
    pub throttled_sends: Option<Option<u32>>,
    /// The most sends that may meet a service short of capacity; `Some(None)`: no count of their own.
    pub capacity_sends: Option<Option<u32>>,
    /// How many times a call that may already have run may be sent again.
    pub ambiguous_resends: Option<u32>,
    /// The longest a client is kept waiting between sends.
    pub patience: Option<Duration>,
    /// What a client's own limit does to `patience`.
    pub client_limit: Option<ClientLimit>,
    /// Whether a client's own re-send of a call that spent its budget still gets its one send.
    pub serves_resends: Option<bool>,
    /// The first wait of at capacity, throttled and failed.
    pub base: Option<Duration>,
    /// What each further wait is multiplied by, on every curve.
    pub factor: Option<f64>,
    /// The longest wait of at capacity, throttled and failed.
    pub cap: Option<Duration>,
    /// The most that chance adds to a wait, on every curve.
    pub jitter: Option<Duration>,
    /// The first wait of overloaded.
    pub overloaded_base: Option<Duration>,
    /// What each further wait of overloaded is multiplied by, where it differs from `factor`.
    pub overloaded_factor: Option<f64>,
    /// The longest wait of overloaded.
    pub overloaded_cap: Option<Duration>,
    /// The first wait where nothing was sent.
    pub never_sent_base: Option<Duration>,
    /// The longest wait where nothing was sent.
    pub never_sent_cap: Option<Duration>,
    /// The shortest wait where the upstream named one that says nothing.
    pub useless_floor: Option<Duration>,
}

/// The keys of the curves that a gate takes the place of.
pub const CURVES: [&str; 7] =
    ["base", "factor", "cap", "jitter", "overloaded_base", "overloaded_factor", "overloaded_cap"];

/// Two numbers that contradict each other once both are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The keys that can mend it, the likelier first.
    pub keys: [&'static str; 2],
    /// What contradicts what.
    pub what: Invalid,
}

impl ProfileOverrides {
    /// The profile with these numbers in the place of its own. A count of sends that is set here holds with a gate and
    /// without; a curve that is set here is kept to, so there is no gate then.
    ///
    /// # Errors
    /// Where a curve's cap would lie below its base, or where a curve and a gate, or something in the gate, are set
    /// both.
    pub fn apply(&self, to: &Profile) -> Result<Profile, Contradiction> {
        self.agrees()?;
        let mut profile = to.clone();
        if self.own_wait().is_some() || self.gate == Some(false) {
            profile.gate = None;
        } else if self.gate == Some(true) {
            profile.gate = Some(profile.preset);
        }
        replace(&mut profile.park_quota, self.park_quota);
        if let Some(sends) = self.sends {
            (profile.sends, profile.gated_sends) = (sends, None);
        }
        profile.gated_sends = self.gated_sends.or(profile.gated_sends);
        replace(&mut profile.failed_sends, self.failed_sends);
        replace(&mut profile.throttled_sends, self.throttled_sends);
        replace(&mut profile.capacity_sends, self.capacity_sends);
        replace(&mut profile.ambiguous_resends, self.ambiguous_resends);
        replace(&mut profile.patience, self.patience);
        replace(&mut profile.client_limit, self.client_limit);
        replace(&mut profile.serves_resends, self.serves_resends);
        replace(&mut profile.useless_floor, self.useless_floor);
        for curve in [&mut profile.curve, &mut profile.overloaded, &mut profile.never_sent] {
            replace(&mut curve.factor, self.factor);
            replace(&mut curve.jitter, self.jitter);
        }
        replace(&mut profile.curve.base, self.base);
        replace(&mut profile.curve.cap, self.cap);
        replace(&mut profile.overloaded.base, self.overloaded_base);
        replace(&mut profile.overloaded.factor, self.overloaded_factor);
        replace(&mut profile.overloaded.cap, self.overloaded_cap);
        // Where nothing was sent no wait is longer than elsewhere, unless somebody wants just that.
        let never_sent = &mut profile.never_sent;
        never_sent.cap = self.never_sent_cap.unwrap_or(never_sent.cap.min(profile.curve.cap));
        never_sent.base = self.never_sent_base.unwrap_or(never_sent.base.min(profile.curve.base));
        rises(&profile.curve, ["cap", "base"])?;
        rises(&profile.overloaded, ["overloaded_cap", "overloaded_base"])?;
        rises(&profile.never_sent, ["never_sent_cap", "never_sent_base"])?;
        Ok(profile)
    }

    /// Whether these numbers fit each other, whatever the profile.
    ///
    /// # Errors
    /// Where a curve and a gate are set both: the sends are spaced by the one or by the other. And where a lane is to be
    /// parked in whose gate nobody waits.
    pub fn agrees(&self) -> Result<(), Contradiction> {
        let without = self.own_wait().or_else(|| (self.gate == Some(false)).then_some("gate = false"));
        if let (Some(without), Some(true), None | Some(false)) = (without, self.park_quota, self.gate) {
            let what = Invalid::new(
                format!("park_quota = true and {without} exclude each other: a lane is parked by its gate"),
                format!("leave out park_quota, or {without}"),
            );
            let other = without.split(' ').next().unwrap_or(without);
            return Err(Contradiction { keys: ["park_quota", other], what });
        }
        let Some(wait) = self.own_wait().filter(|_| self.gate == Some(true)) else { return Ok(()) };
        let what = Invalid::new(
            format!("gate = true and {wait} exclude each other: waits in the gate are not on a curve"),
            format!("leave out gate, or {wait} and what else belongs to the curves"),
        );
        Err(Contradiction { keys: ["gate", wait], what })
    }

    /// The first key of the curves that is set. Where nothing was sent, or a useless time was told, waits are the same
    /// in the gate.
    fn own_wait(&self) -> Option<&'static str> {
        let set = [
            self.base.is_some(),
            self.factor.is_some(),
            self.cap.is_some(),
            self.jitter.is_some(),
            self.overloaded_base.is_some(),
            self.overloaded_factor.is_some(),
            self.overloaded_cap.is_some(),
        ];
        CURVES.into_iter().zip(set).find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

fn replace<T>(number: &mut T, with: Option<T>) {
    if let Some(new) = with {
        *number = new;
    }
}

fn rises(curve: &Curve, keys: [&'static str; 2]) -> Result<(), Contradiction> {
    if curve.cap >= curve.base {
        return Ok(());
    }
    let [cap, base] = keys;
    let why = format!("{cap} {} is below {base} {}", show_duration(curve.cap), show_duration(curve.base));
    Err(Contradiction { keys, what: Invalid::new(why, format!("set {cap} to {base} or more")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Preset;

    #[test]
    fn nothing_set_changes_nothing() {
        for (name, profile) in crate::config::shipped_profiles() {
            assert_eq!(ProfileOverrides::default().apply(&profile), Ok(profile), "{name}");
        }
    }

    const NONE: fn() -> ProfileOverrides = ProfileOverrides::default;

    #[test]
    fn a_gate_is_switched_on_as_the_profile_has_it() {
        let with = |gate, profile: &Profile| ProfileOverrides { gate, ..NONE() }.apply(profile).unwrap().gate;
        assert_eq!(with(Some(true), &Profile::opencodex()), Some(Preset::Interactive));
        assert_eq!(with(Some(true), &Profile { gate: None, ..Profile::batch() }), Some(Preset::Batch));
        assert_eq!(with(Some(true), &Profile::strict()), Some(Preset::Strict));
        assert_eq!(with(Some(false), &Profile::strict()), None);
        assert_eq!(with(None, &Profile::strict()), Some(Preset::Strict));
    }

    #[test]
    fn a_lane_is_parked_where_somebody_says_so_and_there_is_a_gate() {
        for (name, profile) in crate::config::shipped_profiles() {
            assert!(!profile.parks(), "{name}: a definite error is no wait by itself");
        }
        let parks = ProfileOverrides { park_quota: Some(true), ..NONE() };
        assert!(parks.apply(&Profile::interactive()).unwrap().parks());
        assert!(!parks.apply(&Profile::opencodex()).unwrap().parks(), "it has no gate");
        let parking = Profile { park_quota: true, ..Profile::batch() };
        assert!(NONE().apply(&parking).unwrap().parks());
        assert!(!ProfileOverrides { park_quota: Some(false), ..NONE() }.apply(&parking).unwrap().parks());
        let time = Some(Duration::from_secs(20));
        let error = |with: ProfileOverrides| with.apply(&Profile::interactive()).unwrap_err();
        let no_gate = error(ProfileOverrides { gate: Some(false), ..parks.clone() });
        assert_eq!(no_gate.keys, ["park_quota", "gate"]);
        assert_eq!(error(ProfileOverrides { cap: time, ..parks.clone() }).keys, ["park_quota", "cap"]);
        let both = ProfileOverrides { cap: time, gate: Some(true), ..parks };
        assert_eq!(error(both).keys, ["gate", "cap"]);
    }

    #[test]
    fn whoever_sets_a_curve_gets_it_and_no_gate() {
        let time = Some(Duration::from_secs(20));
        let own = [
            ProfileOverrides { base: time, ..NONE() },
            ProfileOverrides { factor: Some(2.0), ..NONE() },
            ProfileOverrides { cap: time, ..NONE() },
            ProfileOverrides { jitter: time, ..NONE() },
            ProfileOverrides { overloaded_base: time, ..NONE() },
            ProfileOverrides { overloaded_factor: Some(2.0), ..NONE() },
            ProfileOverrides { overloaded_cap: time, ..NONE() },
        ];
        let keys = own.map(|own| {
            let plain = own.apply(&Profile::interactive()).unwrap();
            assert_eq!((plain.gate, plain.most_sends()), (None, Some(8)), "{own:?}");
            // A later layer has the last word.
            let gated = ProfileOverrides { gate: Some(true), ..NONE() }.apply(&plain).unwrap();
            assert_eq!((gated.gate, gated.curve), (Some(Preset::Interactive), plain.curve));
            let both = ProfileOverrides { gate: Some(true), ..own };
            both.apply(&Profile::interactive()).unwrap_err().keys
        });
        assert_eq!(keys, CURVES.map(|key| ["gate", key]));
        let rest = ProfileOverrides {
            never_sent_base: time,
            never_sent_cap: time,
            useless_floor: time,
            patience: time,
            gate: Some(true),
            ..NONE()
        };
        assert_eq!(rest.apply(&Profile::batch()).unwrap().gate, Some(Preset::Batch));
    }

    #[test]
    fn a_count_of_sends_that_is_set_holds_in_the_gate_too() {
        for sends in [Some(0), Some(9), None] {
            let by_hand = ProfileOverrides { sends: Some(sends), ..NONE() };
            let profile = by_hand.apply(&Profile::interactive()).unwrap();
            assert_eq!((profile.gate, profile.most_sends()), (Some(Preset::Interactive), sends));
        }
        let both = ProfileOverrides { sends: Some(Some(9)), gated_sends: Some(20), ..NONE() };
        let profile = both.apply(&Profile::strict()).unwrap();
        assert_eq!((profile.sends, profile.most_sends()), (Some(9), Some(20)));
    }

    #[test]
    fn what_is_set_replaces_and_the_rest_stays() {
        let overrides = ProfileOverrides {
            sends: Some(None),
            factor: Some(3.0),
            overloaded_factor: Some(1.0),
            jitter: Some(Duration::ZERO),
            ..ProfileOverrides::default()
        };
        let profile = overrides.apply(&Profile::strict()).unwrap();
        assert_eq!((profile.sends, profile.failed_sends), (None, 1));
        assert_eq!((profile.curve.factor, profile.overloaded.factor), (3.0, 1.0));
        assert_eq!((profile.curve.jitter, profile.overloaded.jitter), (Duration::ZERO, Duration::ZERO));
        assert_eq!(profile.curve.cap, Profile::strict().curve.cap);
    }

    #[test]
    fn where_nothing_was_sent_waits_follow_the_others_down_but_not_up() {
        let ms = |millis| Some(Duration::from_millis(millis));
        let quick = |overrides: ProfileOverrides| {
            let curve = overrides.apply(&Profile::interactive()).unwrap().never_sent;
            [curve.base, curve.cap].map(|time| time.as_millis())
        };
        let none = ProfileOverrides::default();
        assert_eq!(quick(none.clone()), [150, 30_000]);
        assert_eq!(quick(ProfileOverrides { base: ms(100), cap: ms(400), ..none.clone() }), [100, 400]);
        assert_eq!(
            quick(ProfileOverrides { base: ms(2000), cap: ms(90_000), ..none.clone() }),
            [150, 30_000]
        );
        let own = ProfileOverrides { never_sent_base: ms(5000), never_sent_cap: ms(99_000), ..none };
        assert_eq!(quick(ProfileOverrides { base: ms(100), ..own }), [5000, 99_000]);
    }

    #[test]
    fn a_cap_below_its_base_is_a_contradiction() {
        let base = Some(Duration::from_secs(50));
        let plain = ProfileOverrides { base, ..ProfileOverrides::default() };
        let error = plain.apply(&Profile::interactive()).unwrap_err();
        assert_eq!(error.keys, ["cap", "base"]);
        assert_eq!(error.what.why, "cap 30s is below base 50s");
        let overloaded =
            ProfileOverrides { overloaded_cap: Some(Duration::from_secs(1)), ..ProfileOverrides::default() };
        assert_eq!(
            overloaded.apply(&Profile::batch()).unwrap_err().keys,
            ["overloaded_cap", "overloaded_base"]
        );
    }
}
