//! Settings at work: the program as a child with a home of its own, a pretend upstream, and what each setting does
//! on the wire and in the log.

#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod env;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod program;
#[cfg(all(test, unix))]
mod reload;
#[cfg(all(test, unix))]
mod session;
#[cfg(test)]
mod verbs;
mod version;
#[cfg(test)]
mod wishes;
