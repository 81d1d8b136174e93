//! What is kept of calls, as a user meets it: the real program relays, and `why` and `stats` tell of it afterwards; and
//! what happens where the file cannot be what it should be.

#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
mod files;
#[cfg(test)]
#[cfg(unix)]
mod hostile;
#[cfg(test)]
#[cfg(unix)]
mod kills;
#[cfg(test)]
#[path = "../settings/program.rs"]
#[cfg_attr(not(unix), expect(dead_code, reason = "other tests use the rest"))]
mod program;
#[cfg(test)]
#[path = "../support/soon.rs"]
mod soon;
#[cfg(test)]
mod told;
