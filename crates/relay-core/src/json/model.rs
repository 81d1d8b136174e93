//! Where a request's body names its model: another name may be put there, and every other byte stays as it came.

use std::fmt;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::NameIn;

/// Where the values of the body's own members `model` stand, each a text; `None` where there is none, where one is no
/// text, and where the body is no JSON object. Of a member that is there twice a service may read either.
#[must_use]
pub fn model_places(body: &[u8]) -> Option<Vec<Range<usize>>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let values = deserializer.deserialize_map(Models).ok()?;
    deserializer.end().ok()?;
    let place = |value: &str| {
        let start = value.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        value.starts_with('"').then(|| start..start + value.len())
    };
    let places: Vec<_> = values.into_iter().map(place).collect::<Option<_>>()?;
    (!places.is_empty()).then_some(places)
}

/// The name of a model as a value of JSON.
#[must_use]
pub fn model_value(model: &str) -> String {
    serde_json::Value::from(model).to_string()
}

/// Collects the values of `model` as they are written.
struct Models;

impl<'de> Visitor<'de> for Models {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(name) = map.next_key_seed(NameIn(&["model"]))? {
            match name {
                Some(_) => values.push(map.next_value::<&RawValue>()?.get()),
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(body: &str, model: &str) -> Option<String> {
        let mut whole = body.to_owned();
        for place in model_places(body.as_bytes())?.into_iter().rev() {
            whole.replace_range(place, &model_value(model));
        }
        Some(whole)
    }

    #[test]
    fn another_model_takes_its_place_and_nothing_else_changes() {
        for (came, goes) in [
            (r#"{"model":"x"}"#, r#"{"model":"gpt-y"}"#),
            (
                " {\n\t\"a\" : 1.50, \"model\" :  \"gpt\\u002dx\" ,\"b\":\"\\u00e9\"}\n",
                " {\n\t\"a\" : 1.50, \"model\" :  \"gpt-y\" ,\"b\":\"\\u00e9\"}\n",
            ),
            (r#"{"mod\u0065l":"x","é":"ö"}"#, r#"{"mod\u0065l":"gpt-y","é":"ö"}"#),
            (
                r#"{"model":"x","input":{"model":"x"},"model":""}"#,
                r#"{"model":"gpt-y","input":{"model":"x"},"model":"gpt-y"}"#,
            ),
            (r#"{"input":[{"model":"x"}],"model":"x"}"#, r#"{"input":[{"model":"x"}],"model":"gpt-y"}"#),
        ] {
            assert_eq!(with(came, "gpt-y").as_deref(), Some(goes), "{came}");
        }
        assert_eq!(with(r#"{"model":"x"}"#, "a\"b").as_deref(), Some(r#"{"model":"a\"b"}"#));
    }

    #[test]
    fn where_no_model_stands_none_is_put() {
        for body in [
            "",
            "{}",
            "[]",
            "7",
            "{",
            r#"{"model":null}"#,
            r#"{"model":7}"#,
            r#"["model"]"#,
            r#"{"model":"x"} x"#,
            r#"{"input":{"model":"x"}}"#,
            r#"{"model":"x","model":{}}"#,
        ] {
            assert_eq!(model_places(body.as_bytes()), None, "{body}");
        }
        assert_eq!(model_places(b"{\"model\":\"\xff\"}"), None);
    }

    proptest! {
        /// Whatever is around it, the model is the new one and the rest is the same.
        #[test]
        fn only_the_model_changes(before in ".{0,20}", model in ".{0,20}", other in ".{0,20}") {
            let of = |model: &str| format!("{{ {}:1, \"model\":{} , \"x\":[{}]}}", model_value(&before), model_value(model), model_value(&before));
            let expected = if before == "model" { None } else { Some(of(&other)) };
            prop_assert_eq!(with(&of(&model), &other), expected);
        }
    }
}
