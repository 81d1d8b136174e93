//! Looking into JSON: what is found does not contradict itself, and a hash is that of what the text says.

use relay_core::json::{
    canonical_hash, error_fields, is_kept_thing, is_top_level_error, peek, refusal_fields, texts_at, type_of,
};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Whatever the bytes are, nothing falls, and answers that belong together agree.
pub fn json(body: &[u8]) {
    let error = error_fields(body);
    let refusal = refusal_fields(body);
    assert!(error.is_none() || error == refusal, "{error:?} {refusal:?}");
    let names_output = error.as_ref().is_some_and(|fields| fields.names_output);
    assert_eq!(is_top_level_error(body), error.is_some() && !names_output);
    let http = refusal.as_ref().and_then(|fields| fields.http);
    assert!(http.is_none_or(|status| (400..600).contains(&status)), "{refusal:?}");
    let _kept: bool = is_kept_thing(body);
    for path in ["error.code", "*.0.reason", "code"] {
        assert!(texts_at(body, path).len() <= 256, "{path}");
    }

    let tree = serde_json::from_slice::<Tree>(body).ok();
    let is_object = matches!(tree, Some(Tree::Object(_)));
    assert!(!is_object || peek(body).is_some());
    types(body, tree.as_ref());
    hashes(body, tree.as_ref());
}

/// A type is found in the beginning of a text, or not yet; it is never another one.
fn types(body: &[u8], tree: Option<&Tree>) {
    let whole = type_of(body);
    for end in 0..body.len().min(512) {
        let part = type_of(&body[..end]);
        assert!(part.is_none() || part == whole, "{part:?} {whole:?}");
    }
    if let Some(Tree::Object(members)) = tree {
        let first = members.iter().find(|(key, _)| key == "type").and_then(|(_, value)| value.text());
        assert_eq!(whole.as_deref(), first);
    }
}

/// Texts that say the same have the same hash, and one that says something else has another.
fn hashes(body: &[u8], tree: Option<&Tree>) {
    let hash = canonical_hash(body, &[]);
    assert_eq!(hash.is_some(), tree.is_some());
    let Some(tree) = tree.filter(|tree| tree.is_exact() && !has_long_run(body)) else { return };
    for order in [Order::Kept, Order::Sorted, Order::Reversed] {
        let mut text = String::new();
        tree.write(order, &mut text);
        assert_eq!(canonical_hash(text.as_bytes(), &[]), hash, "{text}");
    }
    let mut wrapped = String::from(r#"{"stream":[1],"it":"#);
    tree.write(Order::Sorted, &mut wrapped);
    let bare = format!("{{{}}}", &wrapped[r#"{"stream":[1],"#.len()..]);
    wrapped.push('}');
    if let Some(skipped) = canonical_hash(wrapped.as_bytes(), &["stream"]) {
        assert_eq!(Some(skipped), canonical_hash(bare.as_bytes(), &[]));
        assert_ne!(Some(skipped), canonical_hash(wrapped.as_bytes(), &[]));
    }
}

/// Whether a number may stand in the text that has more digits than its reader keeps: written anew it is another one.
fn has_long_run(body: &[u8]) -> bool {
    body.split(|byte| !byte.is_ascii_digit() && *byte != b'.').any(|run| run.len() > 17)
}

/// How the members of an object are written.
#[derive(Clone, Copy)]
enum Order {
    Kept,
    Sorted,
    Reversed,
}

/// A JSON text as it stands: with members that are there twice, in their order.
enum Tree {
    Leaf(serde_json::Value),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Tree {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Leaf(value) => value.as_str(),
            Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Whether its numbers are read as they are written: a long fraction may come out a bit apart.
    fn is_exact(&self) -> bool {
        match self {
            Self::Leaf(value) => {
                serde_json::from_str::<serde_json::Value>(&value.to_string()).is_ok_and(|it| it == *value)
            }
            Self::Array(items) => items.iter().all(Self::is_exact),
            Self::Object(members) => members.iter().all(|(_, value)| value.is_exact()),
        }
    }

    fn write(&self, order: Order, out: &mut String) {
        match self {
            Self::Leaf(value) => out.push_str(&value.to_string()),
            Self::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { " ,\t" });
                    item.write(order, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                match order {
                    Order::Kept => {}
                    Order::Sorted => members.sort_by_key(|(key, _)| key),
                    Order::Reversed => members.reverse(),
                }
                out.push('{');
                for (n, (key, item)) in members.into_iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ",\n" });
                    out.push_str(&serde_json::Value::from(key.as_str()).to_string());
                    out.push_str(" : ");
                    item.write(order, out);
                }
                out.push('}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTree)
    }
}

struct ReadTree;

impl<'de> Visitor<'de> for ReadTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf(serde_json::Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Object(members))
    }
}
