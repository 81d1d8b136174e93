//! A JSON Schema of the configuration file, made from the lists in `keys`, for editors that complete and check.
//! Looser than the relay itself: what one key demands of another is not in it.

use super::reference::{KeyDoc, SectionDoc, reference};
use relay_core::client::Kind;
use serde_json::{Map, Value, json};

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let mut root = Map::new();
    let sections = reference();
    let named = |head: &str| sections.iter().find(|section| section.head == head);
    for section in &sections {
        let name = section.head.trim_matches(['[', ']']);
        let keys = match section.head {
            "[client.codex]" => continue,
            // Each number of a profile is a key of a route too.
            "[[route]]" => {
                let numbers = named("[profile.NAME]").into_iter().flat_map(|profile| profile.keys.clone());
                section.keys.iter().cloned().chain(numbers.filter(|key| key.name != "based_on")).collect()
            }
            _ => section.keys.clone(),
        };
        let table = table(section, &keys);
        match name.split_once('.') {
            Some(("client", _)) => {
                let codex = named("[client.codex]").into_iter().flat_map(|codex| codex.keys.clone());
                let codex = self::table(section, &keys.iter().cloned().chain(codex).collect::<Vec<_>>());
                let kinds = Kind::ALL.map(|kind| {
                    let keys = if kind == Kind::Codex { &codex } else { &table };
                    (kind.name().to_owned(), keys.clone())
                });
                let kinds: Map<_, _> = kinds.into_iter().collect();
                let client = json!({"type": "object", "properties": kinds, "additionalProperties": false});
                root.insert("client".to_owned(), client);
            }
            Some((kind, _)) => {
                root.insert(kind.to_owned(), json!({"type": "object", "additionalProperties": table}));
            }
            None if section.head.starts_with("[[") => {
                root.insert(name.to_owned(), json!({"type": "array", "items": table}));
            }
            None => {
                root.insert(name.to_owned(), table);
            }
        }
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Steady Relay",
        "type": "object",
        "properties": root,
        "additionalProperties": false,
    })
}

fn table(section: &SectionDoc, keys: &[KeyDoc]) -> Value {
    let keys: Map<_, _> = keys.iter().map(|key| (key.name.to_owned(), value(key))).collect();
    json!({"type": "object", "description": section.doc, "properties": keys, "additionalProperties": false})
}

fn value(key: &KeyDoc) -> Value {
    let mut value = shape(key).unwrap_or_else(|| json!({}));
    if let Some(value) = value.as_object_mut() {
        value.insert("description".to_owned(), key.doc.into());
        if let Some(default) = default(key) {
            value.insert("default".to_owned(), default);
        }
    }
    value
}

/// The default as JSON: it is written as TOML.
fn default(key: &KeyDoc) -> Option<Value> {
    let table: Map<String, Value> = toml::from_str(&format!("v = {}", key.default)).ok()?;
    table.get("v").cloned()
}

/// What a value of this shape is in JSON; `None` where nobody has said it yet.
fn shape(key: &KeyDoc) -> Option<Value> {
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    Some(match key.shape {
        "address" | "URL" | "URL or name" | "name" | "path" | "text" => json!({"type": "string"}),
        "choice" => json!({"type": "string", "enum": key.choices}),
        "time" => json!({"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|min|h|d)\s*$"}),
        "choice, URL or list" => json!({"anyOf": [{"type": "string"}, texts()]}),
        "time or `off`" => json!({"anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|min|h|d)\s*$"},
            {"type": "string", "enum": ["off"]},
        ]}),
        "size" => json!({"anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(B|KB|kB|KiB|MB|MiB|GB|GiB)?\s*$"},
        ]}),
        "number, class or list" => {
            let one = json!({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[1-9]xx$"}]});
            json!({"anyOf": [one, {"type": "array", "items": one}]})
        }
        "test" => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
        }
        "whole number" => json!({"type": "integer", "minimum": 0}),
        "whole number or \"unlimited\"" => {
            json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "enum": ["unlimited"]}]})
        }
        "number" => json!({"type": "number"}),
        "true or false" => json!({"type": "boolean"}),
        "list of origins" | "list of names" => texts(),
        "model or table of texts" => json!({"anyOf": [
            {"type": "string"},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ]}),
        "table of numbers" => {
            json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}})
        }
        "table of texts" => {
            json!({"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, texts()]}})
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_and_every_default_is_known() {
        for key in reference().into_iter().flat_map(|section| section.keys) {
            assert!(shape(&key).is_some(), "{}: {}", key.name, key.shape);
            assert_eq!(default(&key).is_some(), !key.default.is_empty(), "{}", key.name);
            assert_eq!(key.choices.len() > 1, key.shape == "choice", "{}: {:?}", key.name, key.choices);
        }
    }

    #[test]
    fn every_key_is_in_the_schema_at_its_place() {
        let schema = schema();
        let at = |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("{path}"));
        for (path, kind) in [
            ("/properties/relay/properties/port/type", "integer"),
            ("/properties/client/properties/codex/properties/cuts/type", "integer"),
            ("/properties/client/properties/other/properties/limit/type", "string"),
            ("/properties/upstream/additionalProperties/properties/headers/type", "object"),
            ("/properties/profile/additionalProperties/properties/based_on/type", "string"),
            ("/properties/route/items/properties/patience/type", "string"),
            ("/properties/relay/properties/gate/type", "boolean"),
            ("/properties/upstream/additionalProperties/properties/max_running/type", "integer"),
            ("/properties/route/items/properties/gate/type", "boolean"),
            ("/properties/log/properties/level/enum/1", "warn"),
            ("/properties/timeouts/properties/idle/default", "300s"),
        ] {
            assert_eq!(at(path), kind, "{path}");
        }
        assert!(schema.pointer("/properties/client/properties/other/properties/cuts").is_none());
        let count = |value: &Value| value.to_string().matches("\"description\"").count();
        // Each key and each section once, besides the keys of clients and of routes.
        assert!(count(&schema) > reference().iter().map(|section| section.keys.len() + 1).sum::<usize>() - 3);
    }
}
