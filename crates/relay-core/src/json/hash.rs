//! A number that is the same for two JSON texts that say the same: what tells a client's re-send from a new
//! call.
//!
//! What it is not: a digest. It is 64 bits, its keys are known, and it may change with the compiler's
//! version, so it is neither a defence against somebody who builds collisions nor fit to be stored.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A hash of the JSON text `body` that does not depend on whitespace, on the order of an object's keys at any
/// depth, or on how a text is escaped; the top-level keys in `skip` are left out.
///
/// `None` where it is no JSON, or nested deeper than serde_json follows (128). Numbers are as they are read:
/// `1` and `1.0` differ, `1.0` and `1.00` do not, integers past 64 bits are rounded, and a number of more than 17
/// digits may differ from its shortest spelling.
#[must_use]
pub fn canonical_hash(body: &[u8], skip: &[&str]) -> Option<u64> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let hash = Hashed { skip }.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(hash)
}

/// Reads any value as its hash.
#[derive(Clone, Copy)]
struct Hashed<'s> {
    skip: &'s [&'s str],
}

/// A tag for each kind of value comes first, so that `"1"`, `1`, `[1]` and `{"1":..}` start apart.
fn tagged(tag: u8, value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(tag);
    value.hash(&mut hasher);
    hasher.finish()
}

impl<'de> DeserializeSeed<'de> for Hashed<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hashed<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<u64, E> {
        Ok(tagged(0, ()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<u64, E> {
        Ok(tagged(1, value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        Ok(tagged(2, value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        Ok(tagged(3, value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<u64, E> {
        Ok(tagged(4, value.to_bits()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<u64, E> {
        Ok(tagged(5, value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(6);
        while let Some(item) = seq.next_element_seed(Hashed { skip: &[] })? {
            hasher.write_u64(item);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        // A sum does not depend on the order of what is added, and each member is mixed before it is.
        let (mut sum, mut count) = (0_u64, 0_u64);
        while let Some(key) = map.next_key_seed(Key { skip: self.skip })? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(Hashed { skip: &[] })?;
            sum = sum.wrapping_add(tagged(7, (key, value)));
            count += 1;
        }
        Ok(tagged(8, (sum, count)))
    }
}

/// Reads an object's key as its hash, or as `None` where it is skipped.
struct Key<'s> {
    skip: &'s [&'s str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((!self.skip.contains(&key)).then(|| tagged(9, key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn hash(text: &str) -> Option<u64> {
        canonical_hash(text.as_bytes(), &[])
    }

    #[test]
    fn order_space_and_escapes_do_not_matter() {
        let one = hash(r#"{"a":1,"b":{"c":[1,2],"d":"\u00e9/"}}"#);
        assert!(one.is_some());
        assert_eq!(one, hash(" {\"b\" :\n{\"d\":\"é\\/\" , \"c\":[ 1,2]},\t\"a\":1 } \r\n"));
    }

    #[test]
    fn what_differs_in_kind_or_place_differs() {
        let texts = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "1.0",
            "-1",
            "\"\"",
            "\"1\"",
            "[]",
            "{}",
            "[1]",
            "[[1]]",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            "[{}]",
            "[null]",
            r#"{"a":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"b":{"a":1}}"#,
            r#"{"a":[1]}"#,
            r#"["a",1]"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"{"a":null}"#,
            r#"{"1":"a"}"#,
            r#"[{"a":1},{"b":2}]"#,
        ];
        let hashes: std::collections::BTreeSet<_> = texts.iter().filter_map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }

    #[test]
    fn skipped_keys_are_skipped_at_the_top_only() {
        let skip = |text: &str| canonical_hash(text.as_bytes(), &["stream", "max_tokens"]);
        let bare = skip(r#"{"model":"m","x":{"stream":1}}"#);
        assert_eq!(bare, skip(r#"{"stream":true,"model":"m","x":{"stream":1},"max_tokens":[{}]}"#));
        assert_ne!(bare, skip(r#"{"model":"m","x":{"stream":2}}"#));
        assert_eq!(bare, hash(r#"{"model":"m","x":{"stream":1}}"#));
    }

    #[test]
    fn what_is_no_json_has_no_hash() {
        let deep = "[".repeat(500) + &"]".repeat(500);
        for text in ["", "{", "{} {}", "{\"a\"}", "nul", "\u{FEFF}{}", &deep] {
            assert_eq!(hash(text), None, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map("[a-d\"\\\\é]{0,2}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes a value with its keys rotated by `turn` and more space than needed.
    fn write(value: &Value, turn: usize) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        match value {
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| write(item, turn)).collect();
                format!("[ {}]", items.join(" ,"))
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .map(|(key, item)| format!("{}:\n{}", quoted(key), write(item, turn)))
                    .collect();
                let turn = turn % members.len().max(1);
                members.rotate_left(turn);
                members.reverse();
                format!("{{{} }}", members.join(",\t"))
            }
            leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => leaf.to_string(),
        }
    }

    /// How many leaves a value has; and, where `wanted` is the number of one, replaces it.
    fn change(value: &mut Value, wanted: usize, count: &mut usize) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                items.iter_mut().for_each(|item| change(item, wanted, count));
            }
            Value::Object(members) if !members.is_empty() => {
                members.values_mut().for_each(|item| change(item, wanted, count));
            }
            leaf @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => {
                if *count == wanted {
                    *leaf = json!(["changed"]);
                }
                *count += 1;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn equal_for_equal_values_and_only_for_them(
            value in values(), turn in 0_usize..5, place in any::<usize>(),
        ) {
            let text = value.to_string();
            prop_assert!(hash(&text).is_some());
            prop_assert_eq!(hash(&text), hash(&write(&value, turn)));
            let (mut other, mut leaves) = (value.clone(), 0);
            change(&mut value.clone(), usize::MAX, &mut leaves);
            change(&mut other, place % leaves, &mut 0);
            prop_assert_ne!(hash(&text), hash(&other.to_string()));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let is_json = serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            prop_assert!(is_json || canonical_hash(&bytes, &["a"]).is_none());
        }
    }
}
