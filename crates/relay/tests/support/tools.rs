//! Programs of the system that tests are made with.

use std::io::Write as _;

/// Says that something goes untested, for want of this program. Where `STEADY_NEEDS_TOOLS` is set, as `cargo xtask test`
/// does, that is a failure.
pub(crate) fn missing(program: &str) {
    left_out(program, std::env::var_os("STEADY_NEEDS_TOOLS").is_some());
}

fn left_out(program: &str, all_are_needed: bool) {
    let said = format!("there is no {program}; `cargo xtask setup` installs it");
    assert!(!all_are_needed, "{said}");
    drop(writeln!(std::io::stderr(), "skipped: {said}"));
}

#[test]
fn what_is_missing_is_told_here() {
    left_out("tmux", false);
}

#[test]
#[should_panic(expected = "there is no tmux")]
fn what_is_missing_fails_where_all_is_needed() {
    left_out("tmux", true);
}
