//! The dashboard: what the program serves under `/__steady/`, and the page itself in a browser.

#[cfg(feature = "history")]
#[cfg(test)]
mod browser;
#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
mod door;
#[cfg(test)]
mod events;
#[cfg(test)]
mod pages;
#[cfg(test)]
#[path = "../settings/program.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod program;
#[cfg(test)]
#[path = "../support/soon.rs"]
mod soon;
#[cfg(feature = "history")]
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
