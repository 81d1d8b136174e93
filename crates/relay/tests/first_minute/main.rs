//! The first minute of the README, replayed.

#[cfg(test)]
#[cfg(unix)]
mod transcript;
