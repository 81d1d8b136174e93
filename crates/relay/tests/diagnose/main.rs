//! What the program makes of recorded calls: the causes of trouble that a person tells apart, scripted with pretend
//! services, each with the verdict that `diagnose` must come to; and `replay` of what was recorded then. The program as a
//! child with a home of its own.

#[cfg(test)]
mod causes;
#[cfg(test)]
#[path = "../support/child.rs"]
mod child;
#[cfg(test)]
#[path = "../settings/program.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod program;
#[cfg(test)]
mod replaying;
#[cfg(test)]
mod report;
#[cfg(test)]
mod scene;
