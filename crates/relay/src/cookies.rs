//! The Cloudflare cookies of chatgpt.com, kept for clients that cannot keep them themselves.
//!
//! Codex returns these to `https://chatgpt.com` and to no other host, so behind a relay they would be lost and
//! with them the place that the edge chose for this client. The relay keeps the same names, in memory, apart
//! for every account, and for that one host. All other cookies, and all other hosts, are none of its business.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::header::{COOKIE, HeaderMap, SET_COOKIE};

use crate::credential::AccountKey;

/// The one host whose cookies are kept.
pub const HOST: &str = "chatgpt.com";

/// What Codex 0.171 keeps there (measured); everything else it drops.
const NAMES: [&str; 8] = [
    "__cf_bm",
    "_cfuvid",
    "cf_clearance",
    "__cflb",
    "__cfruid",
    "__cfwaitingroom",
    "cf_ob_info",
    "cf_use_ob",
];
const PREFIX: &str = "cf_chl_";

/// How many accounts are remembered; the one that is idle longest makes room.
const ACCOUNTS: usize = 64;
/// How many cookies one account may have: the names above and some challenges.
const COOKIES: usize = 24;
/// The longest name and value together; browsers keep as much.
const LONGEST: usize = 4096;

/// The cookies of all accounts.
#[derive(Debug, Default)]
pub struct Cookies {
    accounts: BTreeMap<AccountKey, Account>,
    /// Counts uses, to tell which account is idle longest.
    uses: u64,
}

#[derive(Default)]
struct Account {
    last_use: u64,
    cookies: BTreeMap<String, Cookie>,
}

/// Names only: a clearance cookie is a credential.
impl std::fmt::Debug for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.cookies.keys()).finish()
    }
}

struct Cookie {
    value: String,
    /// `None`: as long as the relay runs.
    until: Option<SystemTime>,
}

impl Cookie {
    fn is_over(&self, now: SystemTime) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// Whether cookies are kept for this origin: the one host, over TLS alone.
#[must_use]
pub fn applies(https: bool, host: &str) -> bool {
    https && host.eq_ignore_ascii_case(HOST)
}

impl Cookies {
    /// Takes what an answer of [`HOST`] sets. The caller asks [`applies`] first.
    pub fn take(&mut self, account: AccountKey, answer: &HeaderMap, now: SystemTime) {
        for line in answer.get_all(SET_COOKIE) {
            let Some((name, cookie)) = line.to_str().ok().and_then(|line| parse(line, now)) else { continue };
            if cookie.is_over(now) {
                if let Some(known) = self.accounts.get_mut(&account) {
                    known.cookies.remove(name);
                }
                continue;
            }
            let known = self.used(account);
            known.cookies.retain(|_, cookie| !cookie.is_over(now));
            if known.cookies.len() < COOKIES || known.cookies.contains_key(name) {
                known.cookies.insert(name.to_owned(), cookie);
            }
        }
        self.accounts.retain(|_, known| !known.cookies.is_empty());
        while self.accounts.len() > ACCOUNTS {
            let idle = self.accounts.iter().min_by_key(|(_, known)| known.last_use).map(|(key, _)| *key);
            idle.and_then(|key| self.accounts.remove(&key));
        }
    }

    /// Adds the account's cookies to a request for [`HOST`]. What the client sends itself stays, and wins.
    pub fn add(&mut self, account: AccountKey, request: &mut HeaderMap, now: SystemTime) {
        if !self.accounts.contains_key(&account) {
            return;
        }
        let own: Vec<String> = request
            .get_all(COOKIE)
            .iter()
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
            .filter_map(|pair| pair.split(|byte| *byte == b'=').next())
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
            .collect();
        let ours: Vec<String> = self
            .used(account)
            .cookies
            .iter()
            .filter(|(name, cookie)| !cookie.is_over(now) && !own.contains(name))
            .map(|(name, cookie)| format!("{name}={}", cookie.value))
            .collect();
        let Ok(ours) = HeaderValue::try_from(ours.join("; ")) else { return };
        if ours.is_empty() {
            return;
        }
        match request.get_mut(COOKIE) {
            // In place: removing a header would move another one into the gap.
            Some(line) if !line.is_empty() => {
                let joined = [line.as_bytes(), b"; ", ours.as_bytes()].concat();
                if let Ok(joined) = HeaderValue::from_bytes(&joined) {
                    *line = joined;
                }
            }
            Some(line) => *line = ours,
            None => {
                request.append(COOKIE, ours);
            }
        }
    }

    fn used(&mut self, account: AccountKey) -> &mut Account {
        self.uses += 1;
        let known = self.accounts.entry(account).or_default();
        known.last_use = self.uses;
        known
    }
}

/// One `Set-Cookie` line, if it is a cookie that is kept. Paths are not compared: the edge sets them for `/`.
fn parse(line: &str, now: SystemTime) -> Option<(&str, Cookie)> {
    let mut parts = line.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let kept = NAMES.contains(&name) || name.starts_with(PREFIX);
    let clean = name.len() + value.len() <= LONGEST && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if !kept || !clean || name.contains(|letter: char| !letter.is_ascii_graphic()) {
        return None;
    }
    let (mut max_age, mut expires) = (None, None);
    for part in parts {
        let (key, text) = part.split_once('=').unwrap_or((part, ""));
        let text = text.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" if !text.is_empty() && !text.trim_start_matches('.').eq_ignore_ascii_case(HOST) => {
                return None;
            }
            "max-age" => max_age = text.parse::<i64>().ok().or(max_age),
            "expires" => expires = date(text).or(expires),
            _ => {}
        }
    }
    let until = match max_age {
        // A span that no clock can hold is as good as none at all.
        Some(seconds) => u64::try_from(seconds)
            .map_or(Some(SystemTime::UNIX_EPOCH), |seconds| now.checked_add(Duration::from_secs(seconds))),
        None => expires,
    };
    Some((name, Cookie { value: value.to_owned(), until }))
}

/// A cookie's date: the HTTP form, or with dashes and a year of two digits, as Cloudflare writes it.
fn date(text: &str) -> Option<SystemTime> {
    let (weekday, rest) = text.split_once(',')?;
    let rest = rest.replace('-', " ");
    let mut words = rest.split_ascii_whitespace();
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let century = if year.len() == 2 { "20" } else { "" };
    let weekday = weekday.get(..3)?;
    httpdate::parse_http_date(&format!("{weekday}, {day:0>2} {month} {century}{year} {time} GMT")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::account_key;

    fn account(secret: &str) -> AccountKey {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", secret.parse().unwrap());
        account_key(&headers, "/")
    }

    fn at(seconds: u64) -> SystemTime {
        // 2026-11-29 18:00:00 UTC
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_975_200 + seconds)
    }

    fn answer(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(SET_COOKIE, line.parse().unwrap());
        }
        headers
    }

    fn sent(cookies: &mut Cookies, who: &str, own: &[&str], now: SystemTime) -> Vec<String> {
        let mut request = HeaderMap::new();
        for line in own {
            request.append(COOKIE, line.parse().unwrap());
        }
        cookies.add(account(who), &mut request, now);
        request.get_all(COOKIE).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_the_listed_names_are_kept() {
        let mut cookies = Cookies::default();
        let set = answer(&[
            "__cf_bm=a=b; path=/; Domain=.chatgpt.com; HttpOnly; Secure; SameSite=None",
            "_cfuvid=u",
            "cf_chl_rc_i=1",
            "oai-did=no",
            "__cf_logged_in=no",
            "__cf_bm2=no",
            "cf_clearance=no; Domain=evil.example",
            "garbage",
        ]);
        cookies.take(account("a"), &set, at(0));
        assert_eq!(sent(&mut cookies, "a", &[], at(0)), ["__cf_bm=a=b; _cfuvid=u; cf_chl_rc_i=1"]);
    }

    #[test]
    fn accounts_do_not_share() {
        let mut cookies = Cookies::default();
        cookies.take(account("a"), &answer(&["__cflb=x"]), at(0));
        assert!(sent(&mut cookies, "b", &[], at(0)).is_empty());
        assert_eq!(sent(&mut cookies, "b", &["mine=1"], at(0)), ["mine=1"]);
    }

    #[test]
    fn the_clients_own_cookies_stay_and_win() {
        let mut cookies = Cookies::default();
        cookies.take(account("a"), &answer(&["__cflb=x", "_cfuvid=y"]), at(0));
        assert_eq!(sent(&mut cookies, "a", &["q=1; __cflb=own"], at(0)), ["q=1; __cflb=own; _cfuvid=y"]);
        assert_eq!(sent(&mut cookies, "a", &["q=1", "_cfuvid=own"], at(0)), ["q=1; __cflb=x", "_cfuvid=own"]);
        assert_eq!(sent(&mut cookies, "a", &["__cflb=1; _cfuvid=2"], at(0)), ["__cflb=1; _cfuvid=2"]);
    }

    #[test]
    fn their_time_is_kept() {
        let rows = [
            ("__cflb=x", u64::MAX),
            ("__cflb=x; Max-Age=30", 30),
            ("__cflb=x; max-age=0", 0),
            ("__cflb=x; Max-Age=-5", 0),
            ("__cflb=x; Max-Age=99999999999999999999", u64::MAX),
            ("__cflb=x; Max-Age=9223372036854775807", u64::MAX),
            ("__cflb=x; Max-Age=30; Expires=Sun, 29 Nov 2026 19:00:00 GMT", 30),
            ("__cflb=x; Expires=Sun, 29 Nov 2026 18:00:10 GMT", 10),
            ("__cflb=x; expires=Sun, 29-Nov-26 18:00:10 GMT", 10),
            ("__cflb=x; expires=Sunday, 29-Nov-2026 18:00:10 GMT", 10),
            ("__cflb=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("__cflb=x; Expires=whenever", u64::MAX),
        ];
        for (line, life) in rows {
            let mut cookies = Cookies::default();
            cookies.take(account("a"), &answer(&[line]), at(0));
            for seconds in [0, 9, 10, 29, 30, 4000] {
                let there = !sent(&mut cookies, "a", &[], at(seconds)).is_empty();
                assert_eq!(there, seconds < life, "{line} after {seconds} s");
            }
        }
    }

    #[test]
    fn a_cookie_can_be_replaced_and_taken_back() {
        let mut cookies = Cookies::default();
        cookies.take(account("a"), &answer(&["__cflb=x", "__cflb=y"]), at(0));
        assert_eq!(sent(&mut cookies, "a", &[], at(0)), ["__cflb=y"]);
        cookies.take(account("a"), &answer(&["__cflb=; Max-Age=0"]), at(0));
        assert!(sent(&mut cookies, "a", &[], at(0)).is_empty());
        assert!(cookies.accounts.is_empty());
    }

    #[test]
    fn everything_is_bounded() {
        let mut cookies = Cookies::default();
        for number in 0..200 {
            cookies.take(account("many"), &answer(&[&format!("cf_chl_{number}=1")]), at(0));
        }
        let long = format!("__cflb={}", "x".repeat(LONGEST));
        cookies.take(account("long"), &answer(&[&long]), at(0));
        assert_eq!(cookies.accounts.len(), 1);
        assert_eq!(cookies.accounts[&account("many")].cookies.len(), COOKIES);
        for number in 0..200 {
            sent(&mut cookies, "many", &[], at(0));
            cookies.take(account(&number.to_string()), &answer(&["__cflb=x"]), at(0));
        }
        assert_eq!(cookies.accounts.len(), ACCOUNTS);
        assert!(cookies.accounts.contains_key(&account("many")), "an account in use is not the one to go");
        assert!(!format!("{cookies:?}").contains("=x"));
    }

    #[test]
    fn no_other_origin() {
        assert!(applies(true, "chatgpt.com"));
        assert!(applies(true, "ChatGPT.com"));
        for (https, host) in [(false, "chatgpt.com"), (true, "api.openai.com"), (true, "x.chatgpt.com")] {
            assert!(!applies(https, host), "{host}");
        }
    }
}
