//! Numbers that JSON does not have: `NaN`, `Infinity` and `-Infinity`, which Python writes all the same, and with it many a
//! gateway. One of them makes a whole text unreadable, and the code of an error that stands beside it.
//!
//! What it is not: leniency with what a model or a client says. Only what tells of a failure is read like this, and only
//! once it proved to be unreadable.

/// What is written where a number belongs.
const ODD: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with `null` in the place of each of them; `None` where there is none, or no text.
pub(crate) fn without_odd_numbers(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains("Infinity") && !text.contains("NaN") {
        return None;
    }
    let (mut mended, mut done) = (String::new(), 0);
    let (mut in_text, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_text {
            in_text = byte != b'"' || escaped;
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        in_text = byte == b'"';
        let odd = || ODD.iter().find(|odd| text.get(at..).is_some_and(|rest| rest.starts_with(**odd)));
        if matches!(byte, b'-' | b'I' | b'N')
            && at >= done
            && let Some(odd) = odd()
        {
            mended.push_str(&text[done..at]);
            mended.push_str("null");
            done = at + odd.len();
        }
    }
    (done > 0).then(|| mended + &text[done..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mended(text: &str) -> Option<String> {
        without_odd_numbers(text.as_bytes())
    }

    #[test]
    fn they_are_found_where_a_value_stands_and_in_no_text() {
        let odd = r#"{"NaN":NaN,"a":[-Infinity , Infinity],"b":"\"NaN\\","c":NaN}"#;
        let plain = r#"{"NaN":null,"a":[null , null],"b":"\"NaN\\","c":null}"#;
        assert_eq!(mended(odd).as_deref(), Some(plain));
        for none in ["", "{}", r#"{"a":"NaN Infinity"}"#, r#"{"a":-1,"b":"-Infinity"#] {
            assert_eq!(mended(none), None, "{none}");
        }
        assert_eq!(without_odd_numbers(b"\xffNaN"), None);
    }

    /// JSON with `?` in some places of a value.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("?".to_owned()),
            any::<i32>().prop_map(|number| number.to_string()),
            "[a-zé\"\\\\ -]{0,3}(NaN|-Infinity|Infinity)?"
                .prop_map(|text: String| serde_json::Value::from(text).to_string()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[{}]", all.join(","))),
                proptest::collection::vec(("[a-zN]{0,4}", inner), 0..4).prop_map(|all| {
                    let members = all.iter().map(|(name, value)| format!("\"{name}\": {value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn each_of_them_is_null(json in json(), odd in prop::sample::select(&ODD[..])) {
            // No text of these has the sign in it.
            let (with, without) = (json.replace('?', odd), json.replace('?', "null"));
            prop_assert_eq!(mended(&with).unwrap_or(with), without);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-INa\"\\\\é,]{0,4}(NaN|-?Infinity)?.{0,6}") {
            let _any = mended(&text);
        }
    }
}
