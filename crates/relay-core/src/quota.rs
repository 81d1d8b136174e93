//! When a quota that is spent is there again, as far as an answer names it.
//!
//! What it is not: the choice to wait for that (that is `park_quota` of a profile, and off). A balance that is used up or
//! a plan that does not include a model does not come back by itself, whatever time stands beside it, so that nothing is
//! read there.

use std::time::{Duration, SystemTime};

use crate::dialect::Reply;
use crate::json::ErrorFields;
use crate::retry_after::{Advice, date_of};

/// No window of a plan is longer than a month: what is said beyond that is a mistake, and no time to wait for.
pub const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);

/// Codes of a balance or a plan that a person has to change.
const FOR_A_PERSON: &[&str] = &[
    // OpenAI and what speaks like it.
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "usage_not_included",
    "payment_required",
    // Anthropic.
    "billing_error",
    "credits_required",
    // Moonshot, DashScope, Volcengine; Zhipu: arrears, the plan has ended, a model that is not in it, fair use.
    "exceeded_current_quota_error",
    "Arrearage",
    "AllocationQuota.FreeTierOnly",
    "AccountOverdueError",
    "1113",
    "1309",
    "1311",
    "1313",
];

/// The same in words, where there is no code; in lower case. Google grants no requests at all to a plan with `limit: 0`.
const IN_WORDS: &[&str] = &["credit balance", "insufficient balance", "limit: 0"];

/// An answer that says that a quota is spent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent<'a> {
    pub(crate) code: Option<&'a str>,
    pub(crate) reply: &'a Reply<'a>,
    pub(crate) fields: Option<&'a ErrorFields>,
    /// What it says about coming back besides.
    pub(crate) advice: Advice,
}

/// In how long there is a quota again; `None`: it does not say, or says what cannot be.
///
/// The span that the error names comes before the moment, which needs two clocks that agree; a `Retry-After`, or the
/// reset of a spent bucket, holds where there is neither.
#[must_use]
pub(crate) fn renews(spent: &Spent<'_>) -> Option<Duration> {
    if spent.is_for_a_person() {
        return None;
    }
    let in_error = spent.fields.and_then(|fields| {
        let by_span = fields.resets_in.and_then(sound);
        by_span.or_else(|| fields.resets_at.and_then(|at| sound(at - spent.now())))
    });
    let told = match spent.advice {
        Advice::Wait(told) => sound(told.as_secs_f64()),
        Advice::Silent | Advice::Useless => None,
    };
    in_error.or(told)
}

impl Spent<'_> {
    fn is_for_a_person(&self) -> bool {
        let by_code =
            self.code.is_some_and(|code| FOR_A_PERSON.contains(&code) || code.starts_with("BILLING_"));
        let message = self.fields.and_then(|fields| fields.message.as_deref()).unwrap_or_default();
        let message = message.to_lowercase();
        by_code || self.reply.status == 402 || IN_WORDS.iter().any(|words| message.contains(words))
    }

    /// The moment of the answer in Unix seconds: by its own clock, which also named the reset, where it shows it.
    fn now(&self) -> f64 {
        let wall = date_of(self.reply.headers).unwrap_or(self.reply.wall);
        wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// A span in seconds that can be one; those that are no number, are over, or are longer than [`LONGEST`] are none.
fn sound(seconds: f64) -> Option<Duration> {
    let may_be = seconds > 0.0 && seconds <= LONGEST.as_secs_f64();
    may_be.then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{judge, route};
    use crate::fault::Fault;
    use http::{HeaderMap, HeaderName, HeaderValue, Method};
    use proptest::prelude::*;

    const NOW: u64 = 1_795_977_660;
    const PLAN: &str =
        r#""type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus""#;

    fn renews(path: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> Option<u64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let reply = Reply {
            told: crate::failure::Told::ByStatus,
            status,
            headers: &map,
            body: body.as_bytes(),
            took: Duration::from_millis(100),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
            rules: &[],
        };
        let failure = judge(route(&Method::POST, path).dialect, &reply);
        if failure.fault != Fault::QuotaSpent {
            assert_eq!(failure.renews, None, "only a spent quota renews");
        }
        failure.renews.map(|span| span.as_secs())
    }

    fn plan(more: &str) -> Option<u64> {
        renews("/v1/responses", 429, &[], &format!(r#"{{"error":{{{PLAN}{more}}}}}"#))
    }

    #[test]
    fn the_error_names_a_span_or_a_moment() {
        assert_eq!(plan(r#","resets_in_seconds":3600"#), Some(3600));
        assert_eq!(plan(&format!(r#","resets_at":{}"#, NOW + 90)), Some(90));
        let both = format!(r#","resets_at":{},"resets_in_seconds":60"#, NOW + 7200);
        assert_eq!(plan(&both), Some(60), "a span needs no second clock");
        let late = format!(r#","resets_at":{},"resets_in_seconds":0"#, NOW + 70);
        assert_eq!(plan(&late), Some(70));
    }

    #[test]
    fn a_moment_is_counted_from_the_clock_of_the_answer() {
        let body = format!(r#"{{"error":{{{PLAN},"resets_at":{}}}}}"#, NOW + 600);
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + 500));
        assert_eq!(renews("/v1/responses", 429, &[("date", &date)], &body), Some(100));
    }

    #[test]
    fn a_number_that_json_does_not_have_hides_no_spent_quota() {
        for odd in ["NaN", "Infinity", "-Infinity"] {
            let body = format!(r#"{{"error":{{"resets_at":{odd},{PLAN}}}}}"#);
            let reply = Reply {
                told: crate::failure::Told::ByStatus,
                status: 429,
                headers: &HeaderMap::new(),
                body: body.as_bytes(),
                took: Duration::ZERO,
                wall: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
                rules: &[],
            };
            let failure = judge(route(&Method::POST, "/v1/responses").dialect, &reply);
            assert_eq!((failure.fault, failure.renews), (Fault::QuotaSpent, None), "{odd}");
            assert_eq!(failure.code.as_deref(), Some("usage_limit_reached"));
            assert_eq!(plan(&format!(r#","resets_at":{odd},"resets_in_seconds":60"#)), Some(60), "{odd}");
        }
    }

    #[test]
    fn what_cannot_be_is_no_reset() {
        for more in [
            "",
            r#","resets_in_seconds":0"#,
            r#","resets_in_seconds":-5"#,
            r#","resets_in_seconds":"soon""#,
            r#","resets_in_seconds":1e300"#,
            r#","resets_at":1"#,
            r#","resets_in_seconds":2678401"#,
        ] {
            assert_eq!(plan(more), None, "{more}");
        }
        assert_eq!(plan(&format!(r#","resets_at":{}"#, NOW)), None);
        assert_eq!(plan(&format!(r#","resets_at":{}000"#, NOW + 60)), None, "milliseconds are millennia");
        assert_eq!(plan(r#","resets_in_seconds":2678400"#), Some(2_678_400));
    }

    #[test]
    fn headers_name_it_where_the_error_does_not() {
        let body = format!(r#"{{"error":{{{PLAN},"resets_at":5}}}}"#);
        assert_eq!(renews("/v1/responses", 429, &[("retry-after", "120")], &body), Some(120));
        assert_eq!(renews("/v1/responses", 429, &[("retry-after", "-1")], &body), None);
        let reset = (NOW + 18_000).to_string();
        let claude = [
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-reset", reset.as_str()),
        ];
        let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"limit"}}"#;
        assert_eq!(renews("/v1/messages", 429, &claude, limited), Some(18_000));
        let daily = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36000s"}]}}"#;
        assert_eq!(renews("/v1beta/models/g:generateContent", 429, &[], daily), Some(36_000));
    }

    #[test]
    fn a_balance_does_not_come_back_whatever_time_stands_beside_it() {
        for code in ["insufficient_quota", "billing_hard_limit_reached", "usage_not_included"] {
            let body = format!(r#"{{"error":{{"code":"{code}","message":"m","resets_in_seconds":60}}}}"#);
            assert_eq!(renews("/v1/responses", 429, &[("retry-after", "60")], &body), None, "{code}");
        }
        assert_eq!(renews("/v1/responses", 402, &[("retry-after", "60")], "{}"), None);
        let poor = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#;
        assert_eq!(renews("/v1/messages", 400, &[("retry-after", "60")], poor), None);
    }

    #[test]
    fn a_throttle_is_no_quota() {
        let body = r#"{"error":{"code":"rate_limit_exceeded","message":"slow","resets_in_seconds":60}}"#;
        assert_eq!(renews("/v1/responses", 429, &[("retry-after", "60")], body), None);
    }

    proptest! {
        #[test]
        fn whatever_is_named_is_bounded(span in any::<f64>(), at in any::<f64>()) {
            let named = plan(&format!(r#","resets_in_seconds":{span},"resets_at":{at}"#));
            prop_assert!(named.is_none_or(|seconds| seconds <= LONGEST.as_secs()));
        }
    }
}
