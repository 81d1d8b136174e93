//! What the program says, as a user meets it: in which language, without colours where nobody asked for them, and no
//! wider than a terminal. And what is made from the same source: completions and manual pages.

#[cfg(test)]
mod language;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod support;
#[cfg(test)]
#[path = "../support/tools.rs"]
mod tools;
#[cfg(test)]
mod verbs;
