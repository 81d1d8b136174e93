//! Single numbers of a profile, changed: what a profile's own table, or a route, says about it.
//! Not the numbers themselves (that is `profile`).

use crate::profile::{ClientLimit, Curve, Profile};
use crate::units::{Invalid, show_duration};
use std::time::Duration;

/// The numbers of a profile that are set here; all others stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileOverrides {
    /// The most sends of one call; `Some(None)`: no count.
    pub sends: Option<Option<u32>>,
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

/// Two numbers that contradict each other once both are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The keys that can mend it, the likelier first.
    pub keys: [&'static str; 2],
    /// What contradicts what.
    pub what: Invalid,
}

impl ProfileOverrides {
    /// The profile with these numbers in the place of its own.
    ///
    /// # Errors
    /// Where a curve's cap would lie below its base.
    pub fn apply(&self, to: &Profile) -> Result<Profile, Contradiction> {
        let mut profile = to.clone();
        replace(&mut profile.sends, self.sends);
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

    #[test]
    fn nothing_set_changes_nothing() {
        for (name, profile) in crate::config::shipped_profiles() {
            assert_eq!(ProfileOverrides::default().apply(&profile), Ok(profile), "{name}");
        }
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
