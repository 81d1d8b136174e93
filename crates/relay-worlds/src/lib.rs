//! The capacity gate in virtual time: pretend clients, a policy that decides who is sent when, and a pretend service
//! that runs short. Six hours pass in some milliseconds, and one seed gives one run, on every machine.
//!
//! ```text
//!  clients ---> world <---> admission    gate_policy, policy, oracle: who is sent when
//!                 |  ^
//!                 v  |
//!               service                  what is accepted, what is refused, and for how long
//!
//!  world ---> measure ---> table, targets
//! ```
//!
//! What it is not: a model of any provider. Nobody measured one for these numbers. What counts are the ratios between
//! policies in the same world, and that the gate does not get worse.

pub mod admission;
pub mod chance;
pub mod clients;
pub mod gate_policy;
pub mod jobs;
pub mod measure;
pub mod oracle;
pub mod policy;
pub mod service;
pub mod table;
pub mod targets;
pub mod world;
