//! https for clients, on the port that speaks http: what passes over it, what a hostile peer gets, the verbs about its
//! certificate, and clients that are installed here.

#[cfg(test)]
mod clients;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod program;
#[cfg(test)]
mod support;
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
#[cfg(test)]
mod traffic;
