//! What a user asks the program itself: one request through it, whether all is well, and what a relay is doing. The
//! program as a child with a home of its own, and pretend services.

#[cfg(test)]
mod alerts;
#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
mod doctor;
#[cfg(test)]
#[path = "../settings/program.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod program;
#[cfg(test)]
mod selftest;
#[cfg(test)]
mod send;
#[cfg(test)]
mod status;
#[cfg(feature = "top")]
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
#[cfg(test)]
#[cfg(feature = "top")]
mod top;
#[cfg(test)]
mod warm;
