//! What the chores of the repository have in common.

pub mod command;
