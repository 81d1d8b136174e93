//! The numbers of a profile as keys, declared once like those in `keys`.

use super::keys::{ANY_TIME, WEEK};
use super::read::{Given, Key};
use relay_core::units::Invalid;
use relay_core::{ClientLimit, ProfileOverrides};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A first wait below this would be a busy loop against a service that is short of capacity.
const FIRST_WAIT: RangeInclusive<Duration> = Duration::from_millis(10)..=WEEK;

/// The numbers of a profile, as keys of `[profile.NAME]` and of `[[route]]`. The defaults are those of `interactive`.
pub(super) const NUMBERS: &[Key<ProfileOverrides>] = &[
    Key {
        name: "gate",
        shape: "true or false",
        default: "",
        doc: "Whether calls wait in the gate of their lane. Not set: as `[relay]` says, except for `codex-retry` and \
              `opencodex`, which keep to the numbers of their tools. Where `base`, `factor`, `cap`, `jitter` or one of \
              `overloaded_base`, `overloaded_factor` and `overloaded_cap` is set, there is no gate: that curve is kept \
              to. So none of these can stand beside `gate = true`; a `gate = true` of a route, or of a profile that \
              stands on another, wins over the curve of what it stands on.",
        set: |numbers, given| given.flag().map(|value| numbers.gate = Some(value)),
    },
    Key {
        name: "park_quota",
        shape: "true or false",
        default: "",
        doc: "Whether a spent quota that names when there is one again parks the lane until then. Not set: as `[relay]` \
              says. It cannot stand beside `gate = false` or a curve, since it is the gate that parks. To wait for hours \
              takes a `patience` that lasts as long, as `patient` has it.",
        set: |numbers, given| given.flag().map(|value| numbers.park_quota = Some(value)),
    },
    Key {
        name: "sends",
        shape: "whole number or \"unlimited\"",
        default: "8",
        doc: "The most sends of one call, the first included. Zero is zero; `\"unlimited\"`: patience alone \
              ends it. Where it is set, it holds in the gate too, whatever `gated_sends` the profile ships with. The tool \
              codex-retry sends 4 to 6 times by fault, opencodex 3 times.",
        set: |numbers, given| sends(given).map(|count| numbers.sends = Some(count)),
    },
    Key {
        name: "gated_sends",
        shape: "whole number",
        default: "40",
        doc: "In place of `sends`, where that is a count, for calls that wait in the gate: it spaces the sends, so \
              that more of them do no harm. In `batch` 60; in all others `sends` holds there too.",
        set: |numbers, given| given.count(1..=1000).map(|value| numbers.gated_sends = Some(value)),
    },
    Key {
        name: "failed_sends",
        shape: "whole number",
        default: "3",
        doc: "The most sends of one call that may end in a failure of the upstream, the last included. The tool \
              codex-retry has 3 resends of them, which are 4 sends; opencodex has 3 sends.",
        set: |numbers, given| given.count(0..=1000).map(|value| numbers.failed_sends = Some(value)),
    },
    Key {
        name: "throttled_sends",
        shape: "whole number or \"unlimited\"",
        default: "\"unlimited\"",
        doc: "The most sends of one call that may be throttled (a 429 that is no quota), the last included. Not \
              counted by themselves, except in `codex-retry`: 4, which are that tool's 3 resends.",
        set: |numbers, given| sends(given).map(|count| numbers.throttled_sends = Some(count)),
    },
    Key {
        name: "capacity_sends",
        shape: "whole number or \"unlimited\"",
        default: "\"unlimited\"",
        doc: "The most sends of one call that may meet a service at capacity or overloaded, the last included. Not \
              counted by themselves, except in `codex-retry`: 6, which are that tool's 5 resends.",
        set: |numbers, given| sends(given).map(|count| numbers.capacity_sends = Some(count)),
    },
    Key {
        name: "ambiguous_resends",
        shape: "whole number",
        default: "1",
        doc: "How many times a call that may already have run may be sent again. Each may be billed twice. Opencodex \
              has none; codex-retry sends a 504 again 3 times.",
        set: |numbers, given| given.count(0..=10).map(|value| numbers.ambiguous_resends = Some(value)),
    },
    Key {
        name: "patience",
        shape: "time",
        default: "\"120s\"",
        doc: "The longest a client is kept waiting between sends; the time of a running send never counts. A \
              Retry-After beyond it goes back at once, never shortened. The tool codex-retry counts its 120 s over \
              the answers too, and cuts a Retry-After to 300 s.",
        set: |numbers, given| given.duration(ANY_TIME).map(|value| numbers.patience = Some(value)),
    },
    Key {
        name: "client_limit",
        shape: "choice",
        default: "\"replaces\"",
        doc: "What a limit that the client states, or is known to bear, does to `patience`: `replaces` takes \
              its place, `shortens` lets the smaller hold, `ignored` leaves it.",
        set: |numbers, given| given.choice(&CLIENT_LIMITS).map(|value| numbers.client_limit = Some(value)),
    },
    Key {
        name: "serves_resends",
        shape: "true or false",
        default: "true",
        doc: "Whether a client's own re-send of a call that spent its budget still gets its one send.",
        set: |numbers, given| given.flag().map(|value| numbers.serves_resends = Some(value)),
    },
    Key {
        name: "base",
        shape: "time",
        default: "\"1s\"",
        doc: "The first wait after at capacity, throttled or failed, where the upstream names none. The tool \
              codex-retry begins with 1.5 s, opencodex with 400 ms.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.base = Some(value)),
    },
    Key {
        name: "factor",
        shape: "number",
        default: "2.0",
        doc: "What each further wait is multiplied by, on every curve.",
        set: |numbers, given| given.number(1.0..=10.0).map(|value| numbers.factor = Some(value)),
    },
    Key {
        name: "cap",
        shape: "time",
        default: "\"30s\"",
        doc: "No such wait grows past this; at least `base`. `jitter` comes on top. The tool codex-retry ends at \
              60 s, chance included; opencodex at 5 s.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.cap = Some(value)),
    },
    Key {
        name: "jitter",
        shape: "time",
        default: "\"1s\"",
        doc: "The most that chance adds to a wait, on every curve; where nothing was sent, at most the wait itself. \
              Chance never shortens a wait. The tool codex-retry adds it below the cap, and ±0.3 s; opencodex \
              multiplies by 0.8 to 1.2.",
        set: |numbers, given| given.duration(ANY_TIME).map(|value| numbers.jitter = Some(value)),
    },
    Key {
        name: "overloaded_base",
        shape: "time",
        default: "\"4s\"",
        doc: "The first wait after overloaded: the whole service is short, so it is longer.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.overloaded_base = Some(value)),
    },
    Key {
        name: "overloaded_factor",
        shape: "number",
        default: "2.0",
        doc: "What each further wait after overloaded is multiplied by, where it differs from `factor`.",
        set: |numbers, given| given.number(1.0..=10.0).map(|value| numbers.overloaded_factor = Some(value)),
    },
    Key {
        name: "overloaded_cap",
        shape: "time",
        default: "\"60s\"",
        doc: "No wait after overloaded grows past this; at least `overloaded_base`.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.overloaded_cap = Some(value)),
    },
    Key {
        name: "never_sent_base",
        shape: "time",
        default: "\"150ms\"",
        doc: "The first wait where nothing reached the service: a listener that restarts is back in a moment. Not set, \
              a smaller `base` lowers it too.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.never_sent_base = Some(value)),
    },
    Key {
        name: "never_sent_cap",
        shape: "time",
        default: "\"30s\"",
        doc: "No wait where nothing reached the service grows past this; at least `never_sent_base`. Not set, a \
              smaller `cap` lowers it too. In `opencodex` 1 s.",
        set: |numbers, given| given.duration(FIRST_WAIT).map(|value| numbers.never_sent_cap = Some(value)),
    },
    Key {
        name: "useless_floor",
        shape: "time",
        default: "\"1.5s\"",
        doc: "The shortest wait where the upstream named one that says nothing: zero, past, negative, \
              garbage. The tool codex-retry raises every shorter wait to 1.5 s; here a valid one, however short, \
              is heeded.",
        set: |numbers, given| given.duration(ANY_TIME).map(|value| numbers.useless_floor = Some(value)),
    },
];

const CLIENT_LIMITS: [(&str, ClientLimit); 3] = [
    ("replaces", ClientLimit::Replaces),
    ("shortens", ClientLimit::Shortens),
    ("ignored", ClientLimit::Ignored),
];

fn sends(given: &Given<'_>) -> Result<Option<u32>, Invalid> {
    match given.text() {
        Ok("unlimited") => Ok(None),
        Ok(_) => Err(Invalid::new("is no count", "write a whole number from 0 to 1000, or \"unlimited\"")),
        Err(_not_text) => given.count(0..=1000).map(Some),
    }
}
