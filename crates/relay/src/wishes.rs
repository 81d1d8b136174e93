//! What a client asks of the relay for one call, by headers that are never forwarded:
//! `x-steady-profile: NAME`, `x-steady-patience: 30s`, `x-steady-limit: 30s`, `x-steady-report: call` and `x-steady: off`.
//! What they cannot mean is refused: a wish that is overheard is worse than none. Not the token (that is `guard`).

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use relay_core::config::{Config, ProfileChoice};
use relay_core::units::duration;

use crate::guard::TOKEN_HEADER;
use crate::hops::HOPS;
use crate::words::{door, lang, settings};

const PROFILE: HeaderName = HeaderName::from_static("x-steady-profile");
const PATIENCE: HeaderName = HeaderName::from_static("x-steady-patience");
const LIMIT: HeaderName = HeaderName::from_static("x-steady-limit");
/// Asks to be told how the call went, and tells it: see `call_report`.
pub(crate) const REPORT: HeaderName = HeaderName::from_static("x-steady-report");
const OFF: HeaderName = HeaderName::from_static("x-steady");
/// Nobody means to wait longer: what is longer is a slip of the unit.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is asked for one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// This profile, which exists.
    pub(crate) profile: Option<ProfileChoice>,
    /// No longer wait than this.
    pub(crate) patience: Option<Duration>,
    /// The client leaves when nothing came for so long: no wait is to outlast that.
    pub(crate) limit: Option<Duration>,
    /// The head of the answer tells how the call went.
    pub(crate) report: bool,
    /// Nothing is sent again, nothing changed.
    pub(crate) off: bool,
}

/// A wish that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", door::wish(lang(), header.as_str(), &settings::said(lang(), why), &settings::said(lang(), hint)))]
pub(crate) struct Refusal {
    header: HeaderName,
    why: String,
    hint: String,
}

/// Whether a header is for the relay, and not for the service behind it.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    *name == OFF || name.as_str().starts_with("x-steady-")
}

impl Wishes {
    /// Reads the headers.
    pub(crate) fn of(headers: &HeaderMap, config: &Config) -> Result<Self, Refusal> {
        if !headers.keys().any(is_ours) {
            return Ok(Self::default());
        }
        let known = [PROFILE, PATIENCE, LIMIT, REPORT, OFF, TOKEN_HEADER];
        // Of a relay's mark no client has to know.
        let unknown = |name: &&HeaderName| is_ours(name) && !known.contains(name) && **name != HOPS;
        if let Some(name) = headers.keys().find(unknown) {
            let names = known.map(|name| name.to_string()).join(", ");
            return Err(refusal(name, "is none that this relay knows", format!("there are {names}")));
        }
        let profile = text(headers, &PROFILE)?.map(|name| profile(name, config)).transpose()?;
        let time =
            |name: HeaderName| text(headers, &name)?.map(|given| time(name.clone(), given)).transpose();
        let (patience, limit) = (time(PATIENCE)?, time(LIMIT)?);
        let report = match text(headers, &REPORT)? {
            None => false,
            Some("call") => true,
            Some(_) => return Err(refusal(&REPORT, "can only say `call`", "leave it out for no report")),
        };
        let off = match text(headers, &OFF)? {
            None => false,
            Some("off") => true,
            Some(_) => return Err(refusal(&OFF, "can only say `off`", "leave it out for the usual care")),
        };
        if off && (profile.is_some() || patience.is_some()) {
            let hint = "send `x-steady: off` alone, or leave it out";
            return Err(refusal(&OFF, "leaves nothing for the other x-steady headers to say", hint));
        }
        Ok(Self { profile, patience, limit, report, off })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refusal(name, "was sent twice", "send it once"));
    }
    let text = value.to_str().map(str::trim);
    text.map(Some).map_err(|_not_text| refusal(name, "is no plain text", "write letters and digits of ASCII"))
}

fn profile(name: &str, config: &Config) -> Result<ProfileChoice, Refusal> {
    let choice = ProfileChoice::from_name(name);
    if choice == ProfileChoice::Auto || config.profiles.contains_key(name) {
        return Ok(choice);
    }
    let known = config.profiles.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    Err(refusal(&PROFILE, "names no profile", format!("there are auto, {known}")))
}

fn time(header: HeaderName, text: &str) -> Result<Duration, Refusal> {
    let time = duration(text).map_err(|error| refusal(&header, error.why, error.allowed))?;
    if time > LONGEST {
        return Err(refusal(&header, "is too long", "allowed is 0s to 7d"));
    }
    Ok(time)
}

fn refusal(header: &HeaderName, why: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal { header: header.clone(), why: why.into(), hint: hint.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&'static str, &'static str)]) -> Result<Wishes, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, http::HeaderValue::from_static(value));
        }
        Wishes::of(&headers, &Config::default()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn wishes_are_read() {
        let none = Wishes::default();
        assert_eq!(of(&[("x-steady-token", "secret"), ("x-other", "1")]), Ok(none.clone()));
        let profile = Some(ProfileChoice::from_name("codex-retry"));
        assert_eq!(of(&[("x-steady-profile", "codex-retry")]), Ok(Wishes { profile, ..none.clone() }));
        assert_eq!(of(&[("x-steady-profile", "auto")]).unwrap().profile, Some(ProfileChoice::Auto));
        let patience = Some(Duration::from_millis(1500));
        assert_eq!(of(&[("x-steady-patience", " 1.5s ")]), Ok(Wishes { patience, ..none.clone() }));
        let limit = Some(Duration::from_secs(30));
        assert_eq!(of(&[("x-steady-limit", "30s")]), Ok(Wishes { limit, ..none.clone() }));
        assert_eq!(of(&[("x-steady", "off")]), Ok(Wishes { off: true, ..none.clone() }));
        let lines = [("x-steady", "off"), ("x-steady-report", "call")];
        assert_eq!(of(&lines), Ok(Wishes { off: true, report: true, ..none }));
    }

    #[test]
    fn what_they_cannot_mean_is_refused() {
        for (lines, what) in [
            (&[("x-steady-profile", "bach")][..], "`x-steady-profile` names no profile"),
            (&[("x-steady-profile", "")], "`x-steady-profile` names no profile"),
            (&[("x-steady-patience", "30")], "`x-steady-patience` has no unit"),
            (&[("x-steady-patience", "8d")], "`x-steady-patience` is too long"),
            (&[("x-steady-patience", "1s"), ("x-steady-patience", "1s")], "was sent twice"),
            (&[("x-steady-limit", "30")], "`x-steady-limit` has no unit"),
            (&[("x-steady-report", "all")], "`x-steady-report` can only say `call`"),
            (&[("x-steady", "on")], "`x-steady` can only say `off`"),
            (&[("x-steady", "off"), ("x-steady-patience", "1s")], "leaves nothing"),
            (&[("x-steady-pateince", "1s")], "`x-steady-pateince` is none that this relay knows"),
        ] {
            let words = of(lines).unwrap_err();
            assert!(words.contains(what) && words.contains("\nhint: "), "{words}");
        }
    }
}
