//! The relay as a service: what the verbs write and order, sockets that a service manager passes, and what clients see
//! while the relay is killed. The service manager is a script that notes what it is told.
#![cfg(unix)]

#[cfg(test)]
mod activation;
#[cfg(test)]
#[path = "../support/child.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod child;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod program;
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
#[cfg(test)]
mod verbs;
