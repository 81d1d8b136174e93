//! A pool: several upstreams, of which each call gets the one that can take it.

use std::num::NonZeroU32;

use crate::router::Strategy;

/// The largest share of a member.
pub const SHARES: u32 = 1000;

/// Several upstreams that stand in for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The names of its upstreams, each once, in the order of preference; at least one. The first is where a client's
    /// own credential belongs.
    pub members: Vec<String>,
    /// In which order they are preferred.
    pub strategy: Strategy,
    /// The share of each member beside the others, in their order: 1 where nothing is said.
    pub weights: Vec<NonZeroU32>,
}
