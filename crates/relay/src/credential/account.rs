//! Whose account a request acts for: told apart, never named.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use http::header::HeaderMap;

use super::{ACCOUNT_ID, credentials, query_key, sign_in};

/// The key of one account in the relay's tables. It changes with every start of the relay, and the
/// credential cannot be guessed at with it: the hash is keyed by chance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey(u64);

impl AccountKey {
    /// The key as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "account-{:016x}", self.0)
    }
}

/// The key of the account that a request acts for.
#[must_use]
pub fn account_key(headers: &HeaderMap, path_and_query: &str) -> AccountKey {
    keyed(|part| account(headers, path_and_query, part))
}

/// The same of a credential of the relay's own: its name, since what it holds is renewed.
pub(crate) fn own_account_key(name: &str) -> AccountKey {
    keyed(|part| own_account(name, part))
}

fn keyed(parts: impl FnOnce(&mut dyn FnMut(&[u8]))) -> AccountKey {
    static KEYED: OnceLock<RandomState> = OnceLock::new();
    let mut hasher = KEYED.get_or_init(RandomState::new).build_hasher();
    parts(&mut |part| {
        hasher.write_usize(part.len());
        hasher.write(part);
    });
    AccountKey(hasher.finish())
}

/// What tells that account from all others, after a restart too. It holds the credential: it is for a keyed hash, and
/// is neither kept nor shown.
#[must_use]
pub fn account_material(headers: &HeaderMap, path_and_query: &str) -> Vec<u8> {
    material(|part| account(headers, path_and_query, part))
}

/// The same of a credential of the relay's own.
pub(crate) fn own_account_material(name: &str) -> Vec<u8> {
    material(|part| own_account(name, part))
}

fn material(parts: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Vec<u8> {
    let mut material = Vec::new();
    parts(&mut |part| {
        material.extend_from_slice(&(part.len() as u64).to_le_bytes());
        material.extend_from_slice(part);
    });
    material
}

/// No header has a name like the first part.
fn own_account(name: &str, part: &mut dyn FnMut(&[u8])) {
    part(b"the relay's own");
    part(name.as_bytes());
}

/// The account that a request acts for, part by part.
///
/// A ChatGPT token is renewed every few days, so there the account and its user count instead of the token. Requests
/// without a credential share one account.
fn account(headers: &HeaderMap, path_and_query: &str, part: &mut dyn FnMut(&[u8])) {
    if let Some(claims) = sign_in(headers) {
        let claimed = claims.auth("chatgpt_account_id").map(str::as_bytes);
        if let Some(account) = headers.get(ACCOUNT_ID).map(http::HeaderValue::as_bytes).or(claimed) {
            part(b"account");
            part(account);
            part(claims.auth("chatgpt_user_id").unwrap_or_default().as_bytes());
            return;
        }
    }
    for (name, value) in credentials(headers) {
        part(name.as_str().as_bytes());
        part(value);
    }
    if let Some(key) = query_key(path_and_query) {
        part(b"key");
        part(key.as_bytes());
    }
}
