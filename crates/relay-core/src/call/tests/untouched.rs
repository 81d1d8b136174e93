//! A call whose answer goes to its client unread, whatever it is.

use super::*;

#[test]
fn what_its_head_says_counts_unless_it_is_a_definite_error() {
    let passes = |failure| {
        let mut play = Play::new(plan(Profile { gate: None, ..Profile::interactive() }));
        assert!(matches!(play.go(), Step::Send { .. }));
        let may_heal = play.call.passes_failed(failure);
        play.call.committed();
        play.note();
        let seen = play.seen.iter().any(|line| line.starts_with("fault 1 "));
        assert_eq!(play.end(), "committed", "nothing is done about it");
        let closing = play.closing();
        (may_heal, seen, closing.last_fault, closing.capacity_faults, closing.sends)
    };
    assert_eq!(passes(busy()), (true, true, Some(busy().fault), 1, 1));
    let failed = answered(500, Fault::ServerFailed, Evidence::Failed);
    assert_eq!(passes(failed), (true, true, Some(Fault::ServerFailed), 0, 1));
    assert_eq!(passes(bad_request()), (false, false, None, 0, 1));
}
