//! What a relay and the program that opens a session at it say to each other, as types for both ends; and how the relay
//! proves whose it is before it is told anything.
//!
//! ```text
//! GET  /__steady/sessions?nonce=…     whose are you?            {"v":1,"proof":"…","has_upstream":false}
//! POST /__steady/sessions             open one (local token)    {"v":1,"key":"…",…}, and no end until the relay stops:
//!                                                               then how it is, as below
//! GET  /__steady/sessions/KEY         how is it?                {"v":1,"client":"codex","open":1,"held":[…],"sums":{…}}
//! ```

use std::fmt;
use std::str::FromStr;

use ring::hmac;
use serde::{Deserialize, Serialize};

/// The path of the endpoint.
pub const PATH: &str = "/__steady/sessions";
/// The version of everything that is said here.
pub const VERSION: u32 = 1;

/// What tells the calls of one session: the first segment of their path is `~KEY`. Whoever has it can use the
/// session's upstreams, so it is in no log and on no page. It is worth nothing after the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub u128);

/// So many digits make a key.
pub(crate) const DIGITS: usize = 32;

impl fmt::Display for SessionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SessionKey(…)")
    }
}

/// It is no key: 32 digits from 0 to 9 and a to f.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is 32 digits from 0 to 9 and a to f")]
pub struct NoKey;

impl FromStr for SessionKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let is_digit = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
        if text.len() != DIGITS || !text.bytes().all(is_digit) {
            return Err(NoKey);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_not_hex| NoKey)
    }
}

impl Serialize for SessionKey {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The session that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The version of this form.
    pub v: u32,
    /// What the client is called, for people who look.
    pub client: String,
    /// The key it had before, or wants. `None`: the relay draws one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SessionKey>,
    /// How long Claude Code, started with this session, waits for the head of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claude_limit_ms: Option<u64>,
    /// Services of the session's own: `/~KEY/to/NAME/…` leads there.
    #[serde(default)]
    pub upstreams: Vec<NamedUrl>,
}

/// A service of a session's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedUrl {
    /// What paths call it.
    pub name: String,
    /// Its base URL, to which paths are appended as a client would.
    pub url: String,
}

/// What proves whose relay it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// The version of this form.
    pub v: u32,
    /// By the local token, over the nonce and the address that was asked.
    pub proof: String,
    /// Whether the relay's own settings name the upstream of everything: then those of a session do not count.
    pub has_upstream: bool,
}

/// The first line about a session that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The version of this form.
    pub v: u32,
    /// Its key.
    pub key: SessionKey,
    /// Whether there was one of this key: its sums go on.
    pub resumed: bool,
    /// The relay's version.
    pub version: String,
}

/// How a session is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Page {
    /// The version of this form.
    pub v: u32,
    /// What the client is called.
    pub client: String,
    /// How many of its calls are open.
    pub open: usize,
    /// Those of them that are held, the one that waits for longest first.
    pub held: Vec<Held>,
    /// What it came to so far.
    pub sums: Sums,
}

/// A call that is held: something failed, or stands before it, and its client has no answer yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Its name in the log.
    pub call: String,
    /// The model, where the request names one.
    pub model: Option<String>,
    /// Where it goes.
    pub upstream: String,
    /// What went wrong, where something did; it may also wait behind others.
    pub fault: Option<String>,
    /// Seconds since it is held.
    pub held_s: f64,
    /// Seconds until it, or the first of those before it, is sent again; `None` while it is being sent, and where
    /// that does not depend on time alone.
    pub next_try_in_s: Option<f64>,
    /// Whether it is being sent.
    pub sending: bool,
    /// Whether its client shows that it is held, since it was given a notice.
    #[serde(default)]
    pub noticed: bool,
}

/// What the calls of a session, or of a relay, came to: the numbers of `run`'s closing line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Calls that met a fault the relay waited for.
    pub calls: u64,
    /// Those of them that met a want of capacity.
    pub at_capacity: u64,
    /// Those of them that were served in the end.
    pub recovered: u64,
    /// How long calls waited in all, in seconds: those that met no fault, too, which a crowd holds back.
    pub waited_s: f64,
    /// All physical sends of these calls.
    pub sends: u64,
    /// Those of them that the relay gave up.
    pub lost: u64,
    /// Sends that may have run twice upstream.
    pub maybe_billed_twice: u64,
    /// Sends that were refused for want of capacity.
    #[serde(default)]
    pub refusals: u64,
    /// All physical sends, of every call.
    #[serde(default)]
    pub all_sends: u64,
}

impl Sums {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            at_capacity: self.at_capacity + other.at_capacity,
            recovered: self.recovered + other.recovered,
            waited_s: self.waited_s + other.waited_s,
            sends: self.sends + other.sends,
            lost: self.lost + other.lost,
            maybe_billed_twice: self.maybe_billed_twice + other.maybe_billed_twice,
            refusals: self.refusals + other.refusals,
            all_sends: self.all_sends + other.all_sends,
        }
    }
}

/// The longest nonce that is answered.
const LONGEST_NONCE: usize = 64;

/// The proof that one knows the local token, at this address (`127.0.0.1:8787`): whoever passes the question on from
/// another address gets an answer that is good for the other one alone. `None`: a nonce is 16 to 64 letters and digits.
#[must_use]
pub fn proof(local_token: &str, nonce: &str, address: &str) -> Option<String> {
    let is_one = (16..=LONGEST_NONCE).contains(&nonce.len())
        && nonce.bytes().all(|letter| letter.is_ascii_alphanumeric());
    if !is_one {
        return None;
    }
    let tag = hmac::sign(&key(local_token), text(nonce, address).as_bytes());
    Some(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether this is that proof.
#[must_use]
pub fn proves(proof: &str, local_token: &str, nonce: &str, address: &str) -> bool {
    let bytes = |at: usize| u8::from_str_radix(proof.get(at..at + 2)?, 16).ok();
    let Some(tag) = (0..proof.len()).step_by(2).map(bytes).collect::<Option<Vec<u8>>>() else { return false };
    hmac::verify(&key(local_token), text(nonce, address).as_bytes(), &tag).is_ok()
}

fn key(local_token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, local_token.as_bytes())
}

fn text(nonce: &str, address: &str) -> String {
    format!("steady-relay sessions {VERSION}\n{nonce}\n{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef";

    #[test]
    fn a_proof_holds_for_one_token_one_nonce_and_one_address() {
        let proof = proof("token", NONCE, "127.0.0.1:1").unwrap();
        assert!(proves(&proof, "token", NONCE, "127.0.0.1:1"));
        for (token, nonce, address) in [
            ("other", NONCE, "127.0.0.1:1"),
            ("token", "0123456789abcdee", "127.0.0.1:1"),
            ("token", NONCE, "127.0.0.1:2"),
        ] {
            assert!(!proves(&proof, token, nonce, address), "{token} {nonce} {address}");
        }
        for odd in ["", "zz", "é0", &proof[..62], &format!("{proof}00")] {
            assert!(!proves(odd, "token", NONCE, "127.0.0.1:1"), "{odd}");
        }
        for nonce in ["", "short", "0123456789abcde\n", &"a".repeat(65)] {
            assert_eq!(super::proof("token", nonce, "127.0.0.1:1"), None, "{nonce}");
        }
    }

    #[test]
    fn a_key_is_32_digits_and_does_not_show_by_accident() {
        let key = SessionKey(0xab);
        let text = key.to_string();
        assert_eq!((text.len(), text.parse()), (DIGITS, Ok(key)));
        assert!(!format!("{key:?}").contains("ab"));
        let odd = ["", "ab", &text[1..], &text.to_uppercase(), &format!("+{}", &text[1..])];
        for odd in odd {
            assert_eq!(odd.parse::<SessionKey>(), Err(NoKey), "{odd}");
        }
    }

    #[test]
    fn what_is_wanted_reads_as_it_is_documented() {
        let all = r#"{"v":1,"client":"codex","key":"000000000000000000000000000000ab","claude_limit_ms":5,
                      "upstreams":[{"name":"openai","url":"https://gw.example/v1"}]}"#;
        let wanted: Wanted = serde_json::from_str(all).unwrap();
        assert_eq!((wanted.key, wanted.upstreams.len()), (Some(SessionKey(0xab)), 1));
        let least: Wanted = serde_json::from_str(r#"{"v":1,"client":"job.py"}"#).unwrap();
        assert_eq!((least.key, least.upstreams), (None, vec![]));
        for odd in [r#"{"v":1}"#, r#"{"v":1,"client":"x","more":1}"#, r#"{"v":1,"client":"x","key":"1"}"#] {
            assert!(serde_json::from_str::<Wanted>(odd).is_err(), "{odd}");
        }
    }
}
