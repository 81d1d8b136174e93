//! JSON as a value, and no more of it than there is room for: a text of some megabytes can say a million things, each
//! of which takes a hundred times its letters in memory. What is beyond is counted.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// So many values are read, of some 32 bytes each, besides their texts. A request of a long conversation says ten
/// thousand things.
const ROOM: usize = 256 * 1024;
/// What an object takes besides the values in it, in values.
const OBJECT: usize = 24;

/// What the text says; `None` where it is no JSON.
pub(super) fn read(text: &[u8]) -> Option<Value> {
    let mut text = serde_json::Deserializer::from_slice(text);
    let room = Cell::new(ROOM);
    let value = Bounded { room: &room }.deserialize(&mut text).ok()?;
    text.end().ok()?;
    Some(value)
}

#[derive(Clone, Copy)]
struct Bounded<'r> {
    room: &'r Cell<usize>,
}

impl Bounded<'_> {
    fn takes(self, values: usize) -> bool {
        let left = self.room.get().checked_sub(values);
        left.map(|left| self.room.set(left)).is_some()
    }
}

/// Tells that there was more.
fn left_out(count: usize) -> String {
    format!("[{count} more]")
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while self.takes(1) {
            match from.next_element_seed(self)? {
                Some(one) => all.push(one),
                None => return Ok(all.into()),
            }
        }
        let mut more = 0;
        while from.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            all.push(left_out(more).into());
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let mut more = 0;
        let mut has_room = self.takes(OBJECT);
        loop {
            has_room = has_room && self.takes(2);
            if has_room {
                let Some(name) = from.next_key::<String>()? else { break };
                fields.insert(name, from.next_value_seed(self)?);
            } else {
                if from.next_entry::<IgnoredAny, IgnoredAny>()?.is_none() {
                    break;
                }
                more += 1;
            }
        }
        if more > 0 {
            fields.insert(left_out(more), Value::Null);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How many values there are, with what an object takes.
    fn size(value: &Value) -> usize {
        match value {
            Value::Array(all) => 1 + all.iter().map(size).sum::<usize>(),
            Value::Object(fields) => OBJECT + fields.values().map(size).sum::<usize>(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    #[test]
    fn what_has_room_is_read_as_it_is() {
        for value in [
            json!(null),
            json!("x\n\u{1F600}"),
            json!([1, -2, 2.5, 1e300, u64::MAX, i64::MIN, true, null, [], {}]),
            json!({"a": {"b": [{"c": "d"}, ""]}, "": 0, "$serde_json::private::RawValue": "1"}),
        ] {
            assert_eq!(read(value.to_string().as_bytes()), Some(value));
        }
        for odd in ["", "{", "[1,]", "1 2", "nul", "{\"a\":1}}", "\"\\ud800\""] {
            assert_eq!(read(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(read("[".repeat(10_000).as_bytes()), None);
    }

    #[test]
    fn of_what_has_no_room_the_beginning_is_read_and_the_rest_counted() {
        const COUNT: usize = 1 << 20;
        for one in ["1", "{\"a\":1}", "[[]]", "[[1,{}],{\"b\":[]}]"] {
            let text = format!(
                "{{\"model\":\"m\",\"list\":[{one}{}],\"after\":1}}",
                format!(",{one}").repeat(COUNT - 1)
            );
            let value = read(text.as_bytes()).unwrap();
            assert!(size(&value) <= ROOM + 1_000, "{one}: {}", size(&value));
            let list = value["list"].as_array().unwrap();
            let rest = left_out(COUNT - (list.len() - 1));
            assert_eq!(
                (value["model"].as_str(), list.last().unwrap().as_str()),
                (Some("m"), Some(rest.as_str()))
            );
            assert_eq!(value.get(left_out(1)), Some(&Value::Null), "what comes after it");
        }
        let fields: Vec<_> = (0..COUNT).map(|number| format!("\"{number}\":0")).collect();
        let value = read(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap();
        assert!(size(&value) <= ROOM + 1_000);
        let kept = value.as_object().unwrap().len() - 1;
        assert!(value.get(left_out(COUNT - kept)).is_some());
    }
}
