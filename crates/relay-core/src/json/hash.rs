//! A number that is the same for two JSON texts that say the same: what tells a client's re-send from a new
//! call.
//!
//! What it is not: a digest. It is 64 bits, its keys are known, and it may change with the compiler's
//! version, so it is neither a defence against somebody who builds collisions nor fit to be stored.

use std::cell::Cell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A hash of the JSON text `body` that does not depend on whitespace, on the order of an object's keys at any
/// depth, or on how a text is escaped; the top-level keys in `skip` are left out.
///
/// `None` where it is no JSON, or nested deeper than serde_json follows (128). Numbers are as they are read:
/// `1` and `1.0` differ, `1.0` and `1.00` do not. One of more than 17 digits is what its digits say, not what it would
/// be rounded to.
#[must_use]
pub fn canonical_hash(body: &[u8], skip: &[&str]) -> Option<u64> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let hash = Hashed { skip, numbers: &Numbers::of(body) }.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(hash)
}

/// Reads any value as its hash.
#[derive(Clone, Copy)]
struct Hashed<'s> {
    skip: &'s [&'s str],
    numbers: &'s Numbers<'s>,
}

/// The numbers of a JSON text as they are written, in their order: what reads the text tells of each only what it is
/// rounded to.
struct Numbers<'t> {
    rest: Cell<&'t [u8]>,
}

impl<'t> Numbers<'t> {
    const fn of(text: &'t [u8]) -> Self {
        Self { rest: Cell::new(text) }
    }

    /// The next one. Everything before it was found to be JSON by then.
    fn next(&self) -> Option<&'t [u8]> {
        let mut rest = self.rest.get();
        loop {
            let at = rest.iter().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))?;
            rest = rest.get(at..)?;
            if rest.first() == Some(&b'"') {
                rest = after_text(rest)?;
                continue;
            }
            let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
            let (number, after) =
                rest.split_at(rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len()));
            self.rest.set(after);
            return Some(number);
        }
    }

    /// Passes by those of a value that is not looked at.
    fn skip(&self, value: &RawValue) {
        let skipped = Numbers::of(value.get().as_bytes());
        while skipped.next().is_some() {
            self.next();
        }
    }
}

/// What comes behind a text in quotes.
fn after_text(mut rest: &[u8]) -> Option<&[u8]> {
    rest = rest.get(1..)?;
    loop {
        let at = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        let is_end = rest.get(at) == Some(&b'"');
        rest = rest.get(at + if is_end { 1 } else { 2 }..)?;
        if is_end {
            return Some(rest);
        }
    }
}

/// So many digits tell every double from every other.
const EXACT: usize = 17;

/// A number with more digits than that: whether it is negative, its digits from the first to the last that
/// is not zero, and the power of ten of the last. `None` where it has no more.
fn long(number: &[u8]) -> Option<(bool, Vec<u8>, i64)> {
    let split = number.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(number.len());
    let (mantissa, power) = number.split_at(split);
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let digits = |of: &[u8]| of.iter().copied().filter(u8::is_ascii_digit).collect::<Vec<u8>>();
    let behind = mantissa.len().saturating_sub(point + 1);
    let mut found = digits(mantissa);
    if found.len() <= EXACT {
        return None;
    }
    let zeros = found.iter().rev().take_while(|digit| **digit == b'0').count();
    found.truncate(found.len() - zeros);
    found.drain(..found.iter().take_while(|digit| **digit == b'0').count());
    if found.len() <= EXACT {
        return None;
    }
    let written = String::from_utf8(digits(power)).ok()?;
    // Too long for a number, it is no number that anybody means.
    let written = if written.is_empty() { 0 } else { written.parse().unwrap_or(i64::MAX / 2) };
    let power = if power.get(1) == Some(&b'-') { -written } else { written };
    let last = i64::try_from(zeros).ok()? - i64::try_from(behind).ok()?;
    Some((number.first() == Some(&b'-'), found, power.saturating_add(last)))
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
        self.numbers.next();
        Ok(tagged(2, value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        self.numbers.next();
        Ok(tagged(3, value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<u64, E> {
        Ok(match self.numbers.next().and_then(long) {
            Some(written) => tagged(10, written),
            None => tagged(4, value.to_bits()),
        })
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<u64, E> {
        Ok(tagged(5, value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(6);
        while let Some(item) = seq.next_element_seed(Hashed { skip: &[], ..self })? {
            hasher.write_u64(item);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        // A sum does not depend on the order of what is added, and each member is mixed before it is.
        let (mut sum, mut count) = (0_u64, 0_u64);
        while let Some(key) = map.next_key_seed(Key { skip: self.skip })? {
            let Some(key) = key else {
                self.numbers.skip(map.next_value::<&RawValue>()?);
                continue;
            };
            let value = map.next_value_seed(Hashed { skip: &[], ..self })?;
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
    use serde::de::IgnoredAny;
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
    fn numbers_that_say_the_same_are_the_same() {
        for same in [
            &["1.0", "1.00", "1e0", "10e-1", "1E+0", "0.1e1"][..],
            &["0.1", "0.10", "1e-1", "0.100000000000000000000"],
            &["100000000000000000000", "1e20", "100000000000000000000.0"],
            &["1234567890123456789.5", "1234567890123456789.50", "0.12345678901234567895e19"],
            &["-0.12345678901234567891", "-12345678901234567891e-20", "-0.0012345678901234567891E2"],
        ] {
            for text in same {
                assert_eq!(hash(text), hash(same[0]), "{text}");
                assert_eq!(hash(&format!("[{text}]")), hash(&format!("[ {} ]", same[0])), "{text}");
            }
        }
    }

    #[test]
    fn numbers_that_differ_beyond_what_a_double_holds_differ() {
        let texts = [
            "0.12345678901234567890",
            "0.12345678901234567891",
            "-0.12345678901234567891",
            "1.2345678901234567891",
            "18446744073709551616",
            "18446744073709551617",
            "184467440737095516170",
            "12345678901234567890.5",
            "12345678901234567890",
            "1234567890123456789",
            "1234567890123456788",
            "1e-4000000000000000000000",
        ];
        let hashes: std::collections::BTreeSet<_> = texts.iter().filter_map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
        // Wherever they stand, and whatever stands before them.
        for before in [r#""a\\\"1":2"#, r#""stream":[1,{"x":[-2.5e3,"3"]}]"#, r#""b":["4\\",5,-6,7.0]"#] {
            let skip = |number| {
                let text = format!(r#"{{{before},"n":{number}}}"#);
                canonical_hash(text.as_bytes(), &["stream"]).unwrap()
            };
            assert_ne!(skip("0.12345678901234567891"), skip("0.12345678901234567892"), "{before}");
            assert_eq!(skip("0.12345678901234567891"), skip("12345678901234567891e-20"), "{before}");
        }
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
