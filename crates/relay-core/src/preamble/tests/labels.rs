//! What an answer is where its label says something else.

use super::*;

#[test]
fn a_body_whose_label_says_something_else_is_known_by_its_first_byte() {
    for kind in ["text/event-stream", "text/plain", "", "application/octet-stream"] {
        for bytes in [HIDES, &format!("\u{feff}{HIDES}")] {
            let chunks = bytes.as_bytes().chunks(1);
            let told = heard(asked(CHAT), head(200, kind), chunks, Stop::Tidy);
            assert_eq!(told, held("overloaded refused InBody 503"), "{kind:?}");
        }
        let told = of_whole(asked(CHAT), head(200, kind), QUOTES, Stop::Tidy);
        assert_eq!(told, committed("pass"), "a whole answer where a stream was asked for: {kind:?}");
        let stream = created() + &failed_event("server_is_overloaded");
        let told = of_whole(asked(RESPONSES), head(200, kind), &stream, Stop::Tidy);
        assert_eq!(told, held("at_capacity refused InStream server_is_overloaded"), "{kind:?}");
    }
}

#[test]
fn a_page_is_no_answer_of_a_model() {
    let page = || head(200, "text/html; charset=utf-8");
    let whole = Asked { streams: false, ..asked(CHAT) };
    for asked in [asked(CHAT), whole] {
        for text in ["<", "<!doctype html>", "\u{feff}\r\n <html>"] {
            let told = heard(asked, page(), text.as_bytes().chunks(1), Stop::Open);
            assert_eq!(told, held("server_failed failed ByStatus -"), "{text:?}");
        }
        assert_eq!(of_whole(asked, page(), " \n", Stop::Open), held("hold"));
        let told = of_whole(asked, page(), " \n", Stop::Tidy);
        assert_eq!(told, held("empty_answer maybe_ran ByTransport -"));
    }
    let slow = Head { arrived: SENT + Duration::from_secs(16), ..page() };
    assert_eq!(listener(asked(CHAT), slow).hear(b"<html>", 6, HEAD), {
        let failure = Failure { told: Told::ByStatus, status: Some(200), ..page_failure() };
        Verdict::Fault(Box::new(failure))
    });
    let unread = in_words(&listener(asked(CHAT), page()).undecodable());
    assert_eq!(unread, "server_failed failed ByStatus -", "what cannot be read is what its label says");
    let other = of_whole(asked(OTHER), page(), "<html>", Stop::Tidy);
    assert_eq!(other, committed("pass"), "a page may be what was asked for");
    let mut late = listener(asked(CHAT), page());
    assert_eq!((late.at_head(), late.timed_out()), (Verdict::Hold, Verdict::Pass));
    assert_eq!((late.hear(b"<html>", 6, HEAD), late.ended()), (Verdict::Pass, Verdict::Pass));
}

fn page_failure() -> Failure {
    Failure::of_transport(Fault::ServerFailed, Evidence::MaybeRan)
}

#[test]
fn what_is_labelled_as_a_page_and_is_none_is_what_its_first_byte_says() {
    let page = || head(200, "text/html");
    let stream = created() + &delta() + &event("response.completed", "");
    assert_eq!(of_whole(asked(RESPONSES), page(), &stream, Stop::Tidy), committed("pass"));
    let refused = created() + &failed_event("server_is_overloaded");
    let told = of_whole(asked(RESPONSES), page(), &refused, Stop::Tidy);
    assert_eq!(told, held("at_capacity refused InStream server_is_overloaded"));
    let whole = Asked { streams: false, ..asked(CHAT) };
    for asked in [asked(CHAT), whole] {
        assert_eq!(of_whole(asked, page(), HIDES, Stop::Tidy), held("overloaded refused InBody 503"));
        assert_eq!(of_whole(asked, page(), QUOTES, Stop::Tidy), committed("pass"));
    }
    assert_eq!(of_whole(whole, page(), "plain words", Stop::Tidy), committed("pass"));
}

#[test]
fn a_stream_that_is_labelled_as_json_is_heard_as_events() {
    for kind in ["application/json", "application/x-ndjson", "application/vnd.api+json"] {
        let labelled = || head(200, kind);
        let begun = created() + &delta();
        assert_eq!(of_whole(asked(RESPONSES), labelled(), &begun, Stop::Open), committed("pass"), "{kind}");
        let broken = committed("broken_stream committed ByTransport -");
        assert_eq!(of_whole(asked(RESPONSES), labelled(), &begun, Stop::Tidy), broken, "{kind}");
        for first in ["", "\n\n", ": working\n\n"] {
            let refused = first.to_owned() + &created() + &failed_event("server_is_overloaded");
            let told = heard(asked(RESPONSES), labelled(), refused.as_bytes().chunks(1), Stop::Open);
            assert_eq!(told, held("at_capacity refused InStream server_is_overloaded"), "{kind}");
        }
        // The one event that is withheld is found where it is.
        let fatal = "\n".to_owned() + &begun + &failed_event("server_is_overloaded");
        let at = "\n".len() + begun.len();
        let cut = committed(&format!("cut at {at}: at_capacity refused InStream server_is_overloaded"));
        assert_eq!(heard(codex(), labelled(), fatal.as_bytes().chunks(1), Stop::Open), cut, "{kind}");
    }
}

#[test]
fn a_body_under_the_label_of_a_stream_begins_at_its_bracket() {
    let body = b"\xEF\xBB\xBF\n\xEF\xBB\xBF {\"error\":\"overloaded\"}".as_slice();
    let whole = heard(asked(RESPONSES), events(), [body], Stop::Tidy);
    for at in 1..body.len() {
        let (one, other) = body.split_at(at);
        assert_eq!(heard(asked(RESPONSES), events(), [one, other], Stop::Tidy), whole, "cut at {at}");
    }
}
