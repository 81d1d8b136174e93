//! Settings that change while the relay runs: when to read them anew, and what of them needs a restart.
//! Not the reading (that is `settings`) and not the change (that is [`crate::app::Relay::reload`]).
//!
//! Files are looked at every two seconds, since that works the same on every system and every file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use relay_core::config::{Config, Credential, Held, Source};

use crate::settings::{Places, Shown};

/// How often files are looked at.
pub const EVERY: Duration = Duration::from_secs(2);
/// How long a file that changed has to stay as it is: an editor may be in the middle of it, and half a file can be
/// valid.
const SETTLED: Duration = Duration::from_millis(100);

/// What a file looks like from outside. `None`: it is not there.
type Stamp = Option<Look>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// When it was written, and its length.
    File(SystemTime, u64),
    /// A pipe or a device: those change by being read.
    Other,
}

/// Files that are watched.
#[derive(Debug)]
pub struct Watch {
    seen: Vec<(PathBuf, Stamp)>,
}

impl Watch {
    /// Watches all places of settings.
    #[must_use]
    pub fn over(places: &Places) -> Self {
        let paths = places.all().map(PathBuf::from);
        Self { seen: paths.map(|path| (path.clone(), stamp(&path))).collect() }
    }

    /// Watches these places from now on. What is watched already has been seen as it was before it was read.
    pub fn now_over(&mut self, places: &Places) {
        let before = std::mem::replace(self, Self::over(places)).seen;
        for (path, stamp) in &mut self.seen {
            if let Some((_, old)) = before.iter().find(|(old, _)| old == path) {
                *stamp = *old;
            }
        }
    }

    /// Takes the files as they are now for seen.
    pub fn look_now(&mut self) {
        self.seen = self.look();
    }

    /// Waits until a file has changed and settled. A wait that is cut short misses nothing.
    pub async fn changed(&mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let mut latest = self.look();
            if latest == self.seen {
                continue;
            }
            loop {
                tokio::time::sleep(SETTLED).await;
                let again = self.look();
                if again == latest {
                    break;
                }
                latest = again;
            }
            self.seen = latest;
            return;
        }
    }

    fn look(&self) -> Vec<(PathBuf, Stamp)> {
        self.seen.iter().map(|(path, _)| (path.clone(), stamp(path))).collect()
    }
}

fn stamp(path: &PathBuf) -> Stamp {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() {
        return Some(Look::Other);
    }
    Some(Look::File(found.modified().ok()?, found.len()))
}

/// The keys that differ, by their names: `timeouts.idle`, `upstream.mine.url`. A table that is new or gone is named as such,
/// `[upstream.mine]`, whatever keys it has. Of an entry of a list its key is named, not which one it is, and what follows
/// from another key goes unnamed. Never empty where the settings differ.
#[must_use]
pub fn changed(old: (&Config, &[Shown]), new: (&Config, &[Shown])) -> Vec<String> {
    let place = |key: &Shown| (key.section.clone(), key.nth, key.key.clone());
    let values = |shown: &[Shown]| -> BTreeMap<_, _> {
        shown.iter().map(|key| (place(key), (key.value.clone(), key.origin.clone()))).collect()
    };
    let tables =
        |shown: &[Shown]| -> BTreeSet<_> { shown.iter().map(|key| (key.section.clone(), key.nth)).collect() };
    let [tables_before, tables_now] = [old.1, new.1].map(tables);
    let mut gone = values(old.1);
    let mut names = Vec::new();
    let mut add = |(section, nth, key): &(String, usize, String)| {
        let table = (section.clone(), *nth);
        let stays = tables_before.contains(&table) && tables_now.contains(&table);
        let name = if stays && !key.is_empty() {
            format!("{}.{key}", section.trim_matches(['[', ']']))
        } else {
            section.clone()
        };
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for key in new.1 {
        let place = place(key);
        let is_default = |origin: &str| origin == "default";
        let same = gone.remove(&place).is_some_and(|(value, origin)| {
            value == key.value || (is_default(&origin) && is_default(&key.origin))
        });
        if !same || hidden_differs(key, old.0, new.0) {
            add(&place);
        }
    }
    gone.keys().for_each(add);
    if names.is_empty() && old.0 != new.0 {
        names.push("what is not shown".to_owned());
    }
    names
}

/// Whether a key that shows nothing of its value differs: a secret is masked in both.
fn hidden_differs(key: &Shown, old: &Config, new: &Config) -> bool {
    let section = key.section.trim_matches(['[', ']']);
    match (section.split_once('.'), section, key.key.as_str()) {
        (_, "relay", "token") => old.token != new.token,
        (_, "relay", "upstream") => old.upstream != new.upstream,
        (_, "relay", "proxy") => old.proxy != new.proxy,
        (_, "alerts", "webhook") => old.alerts.webhook != new.alerts.webhook,
        (_, "alerts", "command") => old.alerts.command != new.alerts.command,
        (Some(("credential", name)), _, key) => {
            let [old, new] =
                [old, new].map(|config| config.credentials.get(name).and_then(|it| held(it, key)));
            old != new
        }
        (Some(("upstream", name)), _, key) => {
            let [old, new] = [old, new].map(|config| config.upstreams.get(name));
            match key {
                "url" => old.map(|it| &it.url) != new.map(|it| &it.url),
                "headers" => old.map(|it| &it.headers) != new.map(|it| &it.headers),
                "api_key" => old.map(|it| &it.api_key) != new.map(|it| &it.api_key),
                "proxy" => old.map(|it| &it.proxy) != new.map(|it| &it.proxy),
                _ => false,
            }
        }
        _ => false,
    }
}

/// What this key of a credential holds, where it is not shown: a secret, a variable's value, or a program.
fn held<'a>(credential: &'a Credential, key: &str) -> Option<(Option<&'a Held>, &'a [String])> {
    match (&credential.source, key) {
        (Source::Key(held), "key" | "key_env") => Some((Some(held), &[])),
        (Source::Command { argv, .. }, "key_command") => Some((None, argv)),
        (Source::OAuth(oauth), "refresh_token" | "refresh_token_env") => {
            Some((Some(&oauth.refresh_token), &[]))
        }
        (Source::OAuth(oauth), "client_secret" | "client_secret_env") => {
            Some((oauth.client_secret.as_ref(), &[]))
        }
        (Source::Key(_) | Source::Command { .. } | Source::OAuth(_), _) => None,
    }
}

/// The keys that differ and hold only from a start on.
#[must_use]
pub fn needs_restart(started_with: &Config, now: &Config) -> Vec<String> {
    let (old, new) = (started_with, now);
    let differing = [
        ("relay.listen", old.listen != new.listen),
        ("relay.port", old.port != new.port),
        ("relay.token", old.token != new.token),
        ("relay.tls", old.tls != new.tls),
        ("relay.names", old.names != new.names),
        ("relay.state_dir", old.state_dir != new.state_dir),
        ("relay.metrics_port", old.metrics_port != new.metrics_port),
        ("log.format", old.log.format != new.log.format),
        ("log.file", old.log.file != new.log.file),
        ("log.max_size", old.log.max_size != new.log.max_size),
        ("log.max_files", old.log.max_files != new.log.max_files),
        ("history.enabled", old.history.enabled != new.history.enabled),
        ("history.file", old.history.file != new.history.file),
        ("history.max_age", old.history.max_age != new.history.max_age),
        ("history.max_size", old.history.max_size != new.history.max_size),
        ("otlp.endpoint", old.otlp.endpoint != new.otlp.endpoint),
        ("otlp.headers", old.otlp.headers != new.otlp.headers),
        ("otlp.service_name", old.otlp.service_name != new.otlp.service_name),
        ("otlp.traces", old.otlp.traces != new.otlp.traces),
        ("otlp.metrics", old.otlp.metrics != new.otlp.metrics),
        ("otlp.interval", old.otlp.interval != new.otlp.interval),
    ];
    differing.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("steady-relay-{}-{name}", std::process::id()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_once_it_has_settled_and_only_once() {
        let path = file("watched");
        fs::write(&path, "a").unwrap();
        let places = Places { config: Some(path.clone()), ..Places::default() };
        let mut watch = Watch::over(&places);
        let minute = Duration::from_secs(60);
        assert!(tokio::time::timeout(minute, watch.changed()).await.is_err(), "nothing changed");
        fs::write(&path, "ab").unwrap();
        watch.now_over(&places);
        tokio::time::timeout(minute, watch.changed()).await.unwrap();
        assert!(tokio::time::timeout(minute, watch.changed()).await.is_err(), "it was seen");
        fs::remove_file(&path).unwrap();
        tokio::time::timeout(minute, watch.changed()).await.unwrap();
        fs::write(&path, "ab").unwrap();
        tokio::time::timeout(minute, watch.changed()).await.unwrap();
        fs::remove_file(&path).unwrap();
        watch.look_now();
        assert!(tokio::time::timeout(minute, watch.changed()).await.is_err(), "it was looked at");
    }

    #[test]
    fn what_was_changed_is_named_and_no_value_shown() {
        use crate::settings::{Flags, Loaded, NO_VARIABLES, load};
        let loaded = |text: &str| -> Loaded {
            let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
            load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec())).unwrap()
        };
        let names = |old: &str, new: &str| {
            let (old, new) = (loaded(old), loaded(new));
            changed((&old.config, &old.shown), (&new.config, &new.shown)).join(" ")
        };
        let mine = |rest: &str| format!("[upstream.mine]\nurl = \"http://localhost:1\"\n{rest}");
        for (old, new, expected) in [
            ("", "", ""),
            ("", "[timeouts]\nidle = \"3s\"\n[relay]\nport = 1\n", "relay.port timeouts.idle"),
            ("[relay]\nprofile = \"batch\"\n", "", "relay.profile"),
            ("", "[profile.strict]\nbase = \"1s\"\n", "profile.strict.gate profile.strict.base"),
            (
                "",
                "[relay]\ngate = false\n[profile.strict]\ngate = true\n[profile.batch]\ngate = true\n",
                "relay.gate profile.interactive.gate profile.patient.gate",
            ),
            (
                "[relay]\ntoken = \"hunter2hunter2hunter2\"\n",
                "[relay]\ntoken = \"hunter3hunter3hunter3\"\n",
                "relay.token",
            ),
            (
                &mine("headers = { a = \"1\" }\napi_key = \"k\"\n"),
                &mine("headers = { a = \"2\" }\napi_key = \"l\"\n"),
                "upstream.mine.headers upstream.mine.api_key",
            ),
            (
                "[relay]\nproxy = \"http://me:hunter2@p\"\n",
                "[relay]\nproxy = \"http://me:hunter3@p\"\n",
                "relay.proxy",
            ),
            (
                "[[route]]\nmodel = \"a\"\nsends = 1\n[[route]]\nmodel = \"b\"\nsends = 1\n",
                "[[route]]\nmodel = \"a\"\nsends = 2\n",
                "route.sends [[route]]",
            ),
            ("", "[[route]]\n", "[[route]]"),
            (
                "[[route]]\nmodel = \"a\"\n",
                "[[route]]\nmodel = \"a\"\n[[route]]\nmodel = \"b\"\nsends = 2\n",
                "[[route]]",
            ),
            ("", &mine(""), "[upstream.mine]"),
            (&mine(""), "", "[upstream.mine]"),
            (
                &mine(""),
                &mine(
                    "http2 = \"off\"\n[pool.both]\nmembers = [\"mine\", \"openai\"]\n[profile.night]\nsends = 3\n",
                ),
                "upstream.mine.http2 [pool.both] [profile.night]",
            ),
        ] {
            assert_eq!(names(old, new), expected, "{old}\n{new}");
        }
    }

    #[test]
    fn what_needs_a_restart_is_named() {
        let old = Config::default();
        assert!(needs_restart(&old, &old).is_empty());
        let mut new = Config { port: 1, ..Config::default() };
        new.log.file = Some("x".into());
        new.state_dir = Some("y".into());
        new.log.level = relay_core::config::LogLevel::Debug;
        assert_eq!(needs_restart(&old, &new), ["relay.port", "relay.state_dir", "log.file"]);
    }
}
