//! The first minute of the README, replayed.

#[cfg(all(test, unix))]
mod transcript;
