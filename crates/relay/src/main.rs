//! steady-relay.
fn main() {}
