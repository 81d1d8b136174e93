//! The relay on real sockets: a raw client before it, a scripted upstream behind it, real time and short limits.
//! Each test is named after the rule it holds. Where it fits, the list of events is the assertion.
//!
//! The six promises of the README: `never_twice` and its kin in `evidence`, `never_early`, `never_many` and
//! `never_forever` in `budget`, `never_altered` in `bytes`, `never_leaked` in `leaks`.

#[cfg(test)]
#[cfg(unix)]
mod alerts;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod breakers;
#[cfg(test)]
mod breaks;
#[cfg(test)]
mod budget;
mod bytes;
#[cfg(test)]
mod codex;
#[cfg(test)]
#[cfg(unix)]
mod credentials;
#[cfg(test)]
#[cfg(unix)]
mod credentials_awaited;
#[cfg(test)]
#[cfg(unix)]
mod credentials_ends;
#[cfg(test)]
#[cfg(unix)]
mod credentials_hang;
#[cfg(test)]
#[cfg(unix)]
mod credentials_held;
#[cfg(test)]
#[cfg(unix)]
mod credentials_leaks;
#[cfg(test)]
mod crowds;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod door;
#[cfg(test)]
mod encoded;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod fallback;
#[cfg(test)]
mod hold;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod lanes_crowd;
#[cfg(test)]
mod lanes_curves;
#[cfg(test)]
#[cfg(unix)]
mod lanes_kept;
#[cfg(test)]
mod lanes_leaving;
#[cfg(test)]
mod lanes_places;
#[cfg(test)]
#[cfg(unix)]
mod lanes_seen;
#[cfg(test)]
mod lanes_told;
#[cfg(test)]
#[cfg(unix)]
mod leaks;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod notices;
#[cfg(test)]
#[cfg(unix)]
mod parked;
#[cfg(test)]
mod pools;
#[cfg(test)]
#[cfg(unix)]
mod process;
#[cfg(test)]
mod quoted;
#[cfg(test)]
mod resends;
#[cfg(test)]
mod routing;
#[cfg(test)]
#[cfg(unix)]
mod snapshots;
#[cfg(test)]
#[cfg(unix)]
#[path = "../support/soon.rs"]
mod soon;
#[cfg(test)]
#[cfg(unix)]
mod started;
#[cfg(test)]
mod support;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod websocket;
mod websocket_door;
mod websocket_odd;
