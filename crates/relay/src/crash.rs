//! What is said where the relay fails at something that cannot fail. Words that stand in the program are shown; those
//! that were made on the spot are not, since they may quote what was at hand, such as a piece of a request.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use relay_core::Lang;

use crate::words::{lang, start};

/// The words for such a failure, with the way there where the system was asked for it (`RUST_BACKTRACE`).
#[must_use]
pub fn words(info: &PanicHookInfo<'_>) -> String {
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let words = told(lang(), &at, info.payload());
    let way = Backtrace::capture();
    if way.status() == BacktraceStatus::Captured { format!("{words}\n{way}") } else { words }
}

fn told(lang: Lang, at: &str, payload: &(dyn Any + Send)) -> String {
    let what = payload.downcast_ref::<&'static str>().map(|what| format!(" ({what})")).unwrap_or_default();
    start::crashed(lang, at, &what)
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use http::{HeaderMap, HeaderValue};
    use relay_core::config::{self, Config, Secret};

    use super::*;
    use crate::guard::Guard;
    use crate::target::Upstream;

    #[test]
    fn what_was_at_hand_is_not_shown() {
        let text = "é canary";
        let ended = catch_unwind(|| text.get(..4).map(|_| &text[1..]).map(str::len)).unwrap_err();
        assert!(ended.downcast_ref::<String>().is_some_and(|words| words.contains("canary")));
        assert_eq!(
            told(Lang::English, "src/x.rs:1:2", &*ended),
            "error: steady-relay has failed, which is its own fault: at src/x.rs:1:2\n\
             hint: please report this line; with RUST_BACKTRACE=1 in the environment it says more"
        );
        let ended: Box<dyn Any + Send> = Box::new("a call leaves as itself");
        assert!(told(Lang::English, "x", &*ended).contains("at x (a call leaves as itself)\n"));
        assert!(told(Lang::Chinese, "x", &*ended).contains("x (a call leaves as itself)\n"));
    }

    /// No type that holds a secret for long tells it to whoever prints it.
    #[test]
    fn no_secret_shows_itself() {
        let secret = Secret::new("canary".to_owned());
        let mut value = HeaderValue::from_static("canary");
        value.set_sensitive(true);
        let mut entry = config::Upstream::at("https://api.example".parse().unwrap());
        entry.api_key = Some(secret.clone());
        entry.headers.push((http::header::AUTHORIZATION, value));
        let mut config = Config { token: Some(secret.clone()), ..Config::default() };
        config.alerts.webhook = Some("https://hooks.example/canary?a=canary".parse().unwrap());
        config.proxy = "http://me:canary@proxy.example".parse().unwrap();
        config.upstreams.insert("up".to_owned(), entry.clone());
        let mut headers = HeaderMap::new();
        crate::credential::lend("canary", &mut headers, "/");
        let guard = Guard { local: Some(secret), ..Guard::of(&config, Vec::new()) };
        let key = crate::sessions::drawn().unwrap();
        let shown = format!("{config:?} {:?} {headers:?} {guard:?} {key:?}", Upstream::of("up", &entry));
        assert!(shown.contains("api.example") && !shown.contains("canary"), "{shown}");
        assert!(!shown.contains(&key.to_string()));
    }
}
