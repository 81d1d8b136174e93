//! Several models at once: which of them is in trouble, and what of the others is told.

use super::*;

const MISSING: Failed = ("bad_request", "", 404, "model_not_found");
const SPENT: Failed = ("quota_spent", "", 429, "insufficient_quota");

impl Story {
    /// A call to this model that has failed so often and is still open.
    fn stuck(self, model: &str, failed: Failed, times: usize) -> Self {
        self.call(model, (failed, times), "open", None).but(|call| {
            (call.closed, call.committed, call.state) = (None, None, State::Waiting);
        })
    }

    /// So many calls like this.
    fn times(mut self, many: usize, call: impl Fn(Self) -> Self) -> Self {
        for _ in 0..many {
            self = call(self);
        }
        self
    }
}

fn found(verdict: &Verdict) -> (Cause, Option<&str>) {
    (verdict.cause, verdict.model.as_deref())
}

fn others(verdict: &Verdict) -> Vec<&str> {
    let other = |evidence: &'_ _| matches!(evidence, Evidence::OtherModel { .. });
    let others = verdict.evidence.iter().filter(|evidence| other(evidence));
    others
        .filter_map(
            |other| if let Evidence::OtherModel { model, .. } = other { Some(&**model) } else { None },
        )
        .collect()
}

#[test]
fn a_model_that_is_stuck_is_named_however_often_another_one_is_overcome() {
    for failed in [FULL, OVERLOADED] {
        // The other one is asked more often, and meets a refusal now and then.
        let story = Story::new(20).stuck("x", failed, 30);
        let story = story.times(8, |story| story.call("y", (failed, 1), "served", None).served("y"));
        let verdict = story.verdict();
        assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")), "{verdict:?}");
        assert_eq!(others(&verdict), ["y"]);
    }
}

#[test]
fn a_model_that_is_stuck_is_named_where_another_trouble_is_overcome() {
    let failed = ("server_failed", "failed", 500, "server_error");
    let story = Story::new(20).times(9, |story| story.call("y", (failed, 1), "served", None));
    assert_eq!(found(&story.stuck("x", FULL, 12).verdict()), (Cause::ModelAtCapacity, Some("x")));
}

#[test]
fn one_refusal_of_another_model_does_not_make_it_the_service() {
    let story = Story::new(9).call("y", (OVERLOADED, 1), "served", None).served("y");
    let verdict = story.call("x", (OVERLOADED, 9), "gave_up", Some("patience_spent")).verdict();
    assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")));
}

#[test]
fn what_another_model_met_long_before_does_not_make_it_the_service() {
    let story = Story::new(50).times(3, |story| story.call("y", (OVERLOADED, 5), "served", None));
    let story = Story { ago: 50, ..story }.times(4, |story| story.served("y"));
    let story = Story { ago: 15, ..story }.served("y").stuck("x", OVERLOADED, 20).served("y");
    let verdict = story.verdict();
    assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")), "{verdict:?}");
}

#[test]
fn the_evidence_is_that_of_the_model() {
    let story = Story::new(20).times(3, |story| story.served("y").call("y", (OVERLOADED, 1), "served", None));
    let verdict = story.call("x", (FULL, 6), "gave_up", Some("patience_spent")).verdict();
    assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")));
    let said: Vec<_> = verdict.evidence.iter().map(|evidence| evidence.said(Lang::English)).collect();
    assert!(said[0].starts_with("6 of 6 sends to x at openai failed"), "{said:?}");
    assert!(said[0].contains("(503, server_is_overloaded)"), "{said:?}");
    let of_x = "of 1 call to x at openai: 0 served, 1 not served, 0 open";
    assert!(said.iter().any(|said| said == of_x), "{said:?}");
    // So is that of what is no want of capacity.
    let story = Story::new(9).served("y").call("x", (MISSING, 1), "passed", None);
    let verdict = story.call("z", (FULL, 3), "served", None).verdict();
    assert_eq!(found(&verdict), (Cause::NoSuchModel, Some("x")));
    let said = verdict.evidence[0].said(Lang::English);
    assert!(said.starts_with("1 of 1 send to x at openai failed") && said.contains("(404, "), "{said}");
}

#[test]
fn a_service_is_shown_by_each_of_its_models() {
    let story = Story::new(20).call("x", (FULL, 5), "gave_up", Some("patience_spent"));
    let verdict = story.call("y", (OVERLOADED, 4), "served", None).verdict();
    assert_eq!(found(&verdict), (Cause::ServiceOverloaded, None));
    assert_eq!(others(&verdict), ["x", "y"]);
}

#[test]
fn sends_that_are_not_told_one_by_one_count_as_failed() {
    let story = Story::new(20).served("y").stuck("x", FULL, 30).but(|call| call.left_out = 100);
    let Evidence::Failed { failed: 130, sends: 130, .. } = story.verdict().evidence[0] else {
        panic!("they are left out")
    };
}

#[test]
fn models_that_are_refused_for_reasons_of_their_own_are_no_evidence() {
    let story = Story::new(20).served("y").call("gone", (MISSING, 1), "passed", None);
    let story = story.call("spent", (SPENT, 1), "passed", None);
    let verdict = story.times(2, |story| story.stuck("x", FULL, 8)).served("y").verdict();
    assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")));
    assert_eq!(others(&verdict), ["y"]);
}

#[test]
fn whoever_repeats_what_is_refused_for_good_does_not_drown_what_is_stuck() {
    for failed in [MISSING, SPENT] {
        let story = Story::new(12).times(9, |story| story.call("gone", (failed, 1), "passed", None));
        let verdict = story.stuck("x", FULL, 8).verdict();
        assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")), "{failed:?}");
        assert!(!verdict.is_sure);
    }
}

#[test]
fn two_failures_that_were_overcome_are_no_trouble_and_hide_none() {
    let few = || Story::new(20).call("x", (FULL, 2), "served", None);
    assert_eq!(few().verdict().cause, Cause::NothingWrong);
    // Nor are those of another model with them.
    assert_eq!(few().call("y", (FULL, 2), "served", None).verdict().cause, Cause::NothingWrong);
    let failed = ("server_failed", "failed", 500, "server_error");
    let story = few().times(1, |story| story.call("y", (failed, 3), "served", None));
    let late = Story { ago: 1, ..story }.call("x", (FULL, 1), "served", None);
    assert_eq!(late.verdict().cause, Cause::ModelAtCapacity, "three are trouble");
    let story = Story::new(20).call("y", (failed, 3), "served", None);
    let late =
        Story { ago: 2, ..story }.call("x", (FULL, 1), "served", None).call("x", (FULL, 1), "served", None);
    assert_eq!(late.verdict().cause, Cause::ServiceFailing, "the louder one is a trifle");
}

#[test]
fn a_trouble_that_is_over_hides_none() {
    let story = Story::new(14).times(4, |story| story.call("y", (FULL, 2), "served", None));
    let story = story.times(3, |story| story.served("y"));
    let verdict = story.call("x", (FULL, 3), "served", None).verdict();
    assert_eq!(found(&verdict), (Cause::ModelAtCapacity, Some("x")), "{verdict:?}");
}
