//! `steady-relay run` and the sessions of a relay: the program as a child, clients that are scripts, a pretend service.
#![cfg(unix)]

#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
mod desktop;
#[cfg(test)]
mod endpoint;
#[cfg(test)]
mod joined;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod own;
#[cfg(test)]
mod place;
#[cfg(test)]
#[path = "../support/soon.rs"]
mod soon;
#[cfg(test)]
mod terminal;
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
