//! Which other models may answer in place of one that has no capacity.

use std::time::Duration;

/// A lane that takes no calls for so long is no passing shortage, and people who are told of it would choose another
/// model themselves.
pub const FALLBACK_AFTER: Duration = Duration::from_secs(600);

/// Other models for one, with the consent of whoever wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// The model that is asked for; a `*` at the end stands for any rest.
    pub model: String,
    /// Those that answer in its place, in the order of preference; at least one.
    pub to: Vec<String>,
    /// How long its lane has to take no calls before.
    pub after: Duration,
    /// Holds for calls of this upstream, or pool, alone.
    pub upstream: Option<String>,
}

impl Fallback {
    /// Whether it is for calls that ask this one, an upstream or a pool, for this model.
    #[must_use]
    pub fn matches(&self, model: &str, upstream: &str) -> bool {
        super::is_model(&self.model, model) && self.upstream.as_deref().is_none_or(|only| only == upstream)
    }

    /// Whether it is for every call that the other one is for.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let model = match self.model.strip_suffix('*') {
            Some(start) => other.model.trim_end_matches('*').starts_with(start),
            None => other.model == self.model,
        };
        model && (self.upstream.is_none() || self.upstream == other.upstream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(model: &str, upstream: Option<&str>) -> Fallback {
        let upstream = upstream.map(str::to_owned);
        Fallback { model: model.to_owned(), to: vec!["y".to_owned()], after: FALLBACK_AFTER, upstream }
    }

    #[test]
    fn it_is_for_its_model_and_its_upstream() {
        for (model, upstream, asked, at, fits) in [
            ("gpt-x", None, "gpt-x", "one", true),
            ("gpt-x", None, "gpt-x-mini", "one", false),
            ("gpt-*", None, "gpt-x-mini", "one", true),
            ("*", None, "o", "one", true),
            ("gpt-x", Some("two"), "gpt-x", "one", false),
            ("gpt-x", Some("one"), "gpt-x", "one", true),
        ] {
            assert_eq!(entry(model, upstream).matches(asked, at), fits, "{model} {upstream:?} {asked} {at}");
        }
    }

    #[test]
    fn one_that_fits_more_covers_one_that_fits_less() {
        let covers = |one: (&str, Option<&str>), other: (&str, Option<&str>)| {
            entry(one.0, one.1).covers(&entry(other.0, other.1))
        };
        assert!(covers(("gpt-*", None), ("gpt-x", Some("one"))));
        assert!(covers(("gpt-*", None), ("gpt-x*", None)));
        assert!(covers(("gpt-x", None), ("gpt-x", None)));
        assert!(!covers(("gpt-x", None), ("gpt-*", None)));
        assert!(!covers(("gpt-*", Some("one")), ("gpt-x", None)));
        assert!(!covers(("gpt-*", Some("one")), ("gpt-x", Some("two"))));
    }
}
