//! A notice on the desktop when a call of the client is held for long; a program built without the feature `desktop` has
//! none, and its settings do not take the key.

use std::collections::BTreeSet;

use relay_core::Lang;

use super::title::{span, what};
use crate::sessions::said::{Held, Page};
use crate::words::run;

/// How long a call is held before it is told.
const AFTER: f64 = 20.0;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Desktop {
    told: BTreeSet<String>,
}

impl Desktop {
    /// Tells of each call once.
    pub(super) fn show(&mut self, lang: Lang, page: &Page) {
        for held in self.untold(page) {
            let words = run::held_in_line(lang, &what(lang, held), &span(lang, held.held_s));
            tell(run::holds(lang), words);
        }
    }

    fn untold<'p>(&mut self, page: &'p Page) -> Vec<&'p Held> {
        self.told.retain(|told| page.held.iter().any(|held| held.call == *told));
        let long = page.held.iter().filter(|held| held.held_s >= AFTER);
        long.filter(|held| self.told.insert(held.call.clone())).collect()
    }
}

#[cfg(feature = "desktop")]
/// Tells the desktop, without waiting for it.
pub(crate) fn tell(title: String, words: String) {
    // It may wait for whoever shows it.
    tokio::task::spawn_blocking(move || {
        let mut notice = notify_rust::Notification::new();
        // Without anybody to show it there is nothing to be done.
        let _unseen = notice.appname("Steady Relay").summary(&title).body(&words).show().map(drop);
    });
}

#[cfg(not(feature = "desktop"))]
pub(crate) fn tell(_title: String, _words: String) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_told_once_when_it_is_held_for_long() {
        let held = |call: &str, held_s| Held {
            call: call.to_owned(),
            model: None,
            upstream: "openai".to_owned(),
            fault: None,
            held_s,
            next_try_in_s: None,
            sending: false,
        };
        let mut desktop = Desktop::default();
        let mut told = |held| {
            let page = Page { held, ..Page::default() };
            desktop.untold(&page).iter().map(|held| held.call.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told(vec![held("c1", 19.0)]), [""; 0]);
        assert_eq!(told(vec![held("c1", 20.0), held("c2", 3.0)]), ["c1"]);
        assert_eq!(told(vec![held("c1", 21.0), held("c2", 20.0)]), ["c2"]);
        assert_eq!(told(vec![held("c1", 25.0)]), [""; 0]);
    }
}
