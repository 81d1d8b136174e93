//! Settings at work: the program as a child with a home of its own, a pretend upstream, and what each setting does
//! on the wire and in the log.

mod env;
mod logs;
mod profiles;
mod program;
#[cfg(unix)]
mod reload;
mod verbs;
mod wishes;
