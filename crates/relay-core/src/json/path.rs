//! Looking a value up by its path, as a rule names it: `error.code`, `base_resp.status_code`,
//! `error.details.*.reason`, `errors.0.message`.
//!
//! What it is not: JSONPath. A name is a member, a number an item of a list, `*` every item. A list on the way that
//! the path does not mention is gone through item by item: Gemini puts its errors into one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::without_odd_numbers;

/// The values at the path as texts: a text without its quotes, a number or `true` as it is written. Objects, lists
/// and `null` have none.
#[must_use]
pub fn texts_at(body: &[u8], path: &str) -> Vec<String> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii();
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_slice::<&RawValue>(body) {
        walk(value.get(), path, LISTS, &mut found);
    } else if let Some(mended) = without_odd_numbers(body)
        && let Ok(value) = serde_json::from_str::<&RawValue>(&mended)
    {
        walk(value.get(), path, LISTS, &mut found);
    }
    found
}

/// So many lists that the path does not mention may lie one in another. Nobody nests two; whoever nests a thousand must
/// not make this as deep.
const LISTS: u8 = 4;

fn walk(value: &str, path: &str, lists: u8, found: &mut Vec<String>) {
    // More is not asked for by any rule; an answer made of lists must not cost more than it weighs.
    const MOST: usize = 256;
    if found.len() >= MOST {
        return;
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    match value.as_bytes().first() {
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value) else { return };
            if let Ok(index) = step.parse::<usize>() {
                if let Some(item) = items.get(index) {
                    walk(item.get(), rest, lists, found);
                }
                return;
            }
            let (rest, lists) = match lists.checked_sub(1) {
                _ if step == "*" => (rest, lists),
                Some(left) => (path, left),
                None => return,
            };
            for item in items {
                walk(item.get(), rest, lists, found);
            }
        }
        Some(b'{') if !step.is_empty() => {
            let Ok(members) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(value) else {
                return;
            };
            if let Some(member) = members.get(step) {
                walk(member.get(), rest, lists, found);
            }
        }
        Some(b'"') if path.is_empty() => found.extend(serde_json::from_str::<String>(value).ok()),
        Some(b'{' | b'n' | b'"') | None => {}
        Some(_) if path.is_empty() => found.push(value.to_owned()),
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_that_json_does_not_have_hides_nothing() {
        assert_eq!(texts_at(br#"{"a":NaN,"b":{"c":"x"}}"#, "b.c"), ["x"]);
    }

    #[test]
    fn values_by_their_path() {
        let body = r#"{"error":{"code":"1302","n":7,"ok":true,"none":null,
            "details":[{"reason":"A"},{"x":1},{"violations":[{"quotaId":"PerDay"}]}]},"a\u0062":"escaped"}"#;
        for (path, is) in [
            ("error.code", vec!["1302"]),
            ("error.n", vec!["7"]),
            ("error.ok", vec!["true"]),
            ("error.none", vec![]),
            ("error", vec![]),
            ("error.details", vec![]),
            ("error.details.0.reason", vec!["A"]),
            ("error.details.9.reason", vec![]),
            ("error.details.*.reason", vec!["A"]),
            ("error.details.reason", vec!["A"]),
            ("error.details.violations.quotaId", vec!["PerDay"]),
            ("error.code.more", vec![]),
            ("error.", vec![]),
            ("", vec![]),
            (".", vec![]),
            ("ab", vec!["escaped"]),
        ] {
            assert_eq!(texts_at(body.as_bytes(), path), is, "{path}");
        }
        assert_eq!(texts_at(br#" [{"error":{"code":503}}]"#, "error.code"), ["503"]);
        for odd in ["", "{", "nul", "\u{feff}", "[1,", "\"x", "{\"error\":{\"code\":}}"] {
            assert_eq!(texts_at(odd.as_bytes(), "error.code"), Vec::<String>::new(), "{odd}");
        }
    }

    /// An answer of a few kilobytes must not use up the stack, which ends the whole program.
    #[test]
    fn lists_without_end_hold_nothing() {
        let nested = |depth: usize| "[".repeat(depth) + r#"{"a":1}"# + &"]".repeat(depth);
        assert_eq!(texts_at(nested(4).as_bytes(), "a"), ["1"]);
        assert_eq!(texts_at(nested(30_000).as_bytes(), "a"), Vec::<String>::new());
        assert_eq!(texts_at(nested(30_000).as_bytes(), "*.*.a"), Vec::<String>::new());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn arbitrary_text_does_no_harm(body in "([{}\\[\\],:]|\"(a|b)\"|1|null){0,40}", path in "[ab*.0]{0,8}") {
            let found = texts_at(body.as_bytes(), &path);
            if serde_json::from_str::<serde_json::Value>(&body).is_err() {
                prop_assert!(found.is_empty());
            }
        }
    }
}
