//! What single services answer when they refuse, by group. These rows hold in every dialect, because gateways hand
//! on each other's answers; they come after the dialect's own rows and before the shared ones.
//!
//! A code that only one service can mean is looked for wherever it turns up. A number that others use as well is
//! looked for at its place (`error.code`, `base_resp.status_code`), and a sentence only where it is one that nobody
//! says in passing. Words on a status 400 are never general ones: a 400 is the request's own fault until a service is
//! known to say otherwise in just these words.

use super::rule::Rule;

mod china;
mod clouds;
mod gateways;
mod local;

/// The tables in their order.
pub(super) const TABLES: [&[Rule]; 4] = [clouds::RULES, gateways::RULES, china::RULES, local::RULES];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_stands_twice() {
        let rows: Vec<_> =
            TABLES.iter().flat_map(|table| table.iter()).chain(super::super::shared::RULES).collect();
        for (index, row) in rows.iter().enumerate() {
            let twin = rows[..index].iter().find(|earlier| earlier.sign == row.sign && earlier.on == row.on);
            assert!(twin.is_none(), "{row:?}");
        }
    }

    #[test]
    fn words_are_in_lower_case_and_every_row_has_a_source() {
        use super::super::rule::{Sign, Test};
        for row in TABLES.iter().flat_map(|table| table.iter()).chain(super::super::shared::RULES) {
            let words = match &row.sign {
                Sign::CodeAnd(_, words) | Sign::Phrase(words) | Sign::Sentence(words) => Some(words),
                Sign::Path(_, Test::Has(words)) | Sign::Header(_, Test::Has(words)) => Some(words),
                Sign::Code(_) | Sign::Header(..) | Sign::Path(..) | Sign::All(_) => None,
            };
            assert!(words.is_none_or(|words| words.to_lowercase() == **words), "{row:?}");
            assert!(!row.source.is_empty(), "{row:?}");
        }
    }
}
