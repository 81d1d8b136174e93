//! What follows from the facts. Pure: facts in, findings out, at least one for every check.

use std::net::Ipv4Addr;

use relay_core::Lang;

use super::facts::{
    Asked, ClientSetting, ClientVersion, Facts, Here, Service, Step, Unreadable, VsCodeProxy, Wsl,
};
use super::{Check, Finding, Level};
use crate::listen::reached_at;
use crate::running::Who;
use crate::setup::Standing;
use crate::words::doctor as words;

/// A clock that is off by so many seconds shortens and lengthens the waits that services ask for by dates.
const OFF: i64 = 60;
/// And by so many, certificates and sign-ins are refused.
pub(crate) const FAR_OFF: i64 = 300;
/// A call that is sent and unanswered for so long hangs, as likely as not: the usual limit on a first byte.
const HANGING_S: f64 = 900.0;
/// So many calls lost, and none saved, are no matter of capacity.
const STORM: u64 = 5;
/// The memory, in MiB, at which somebody should look: what bodies may take, and half as much.
const MUCH_MEMORY: u64 = 1536;

/// Judges them.
#[must_use]
pub fn judge(lang: Lang, facts: &Facts) -> Vec<Finding> {
    let judge = Judge { lang, facts };
    let mut all = Vec::new();
    judge.relay(&mut all);
    judge.running(&mut all);
    judge.upstreams(&mut all);
    judge.way(&mut all);
    judge.service(&mut all);
    judge.clients(&mut all);
    judge.versions(&mut all);
    judge.machine(&mut all);
    all
}

struct Judge<'a> {
    lang: Lang,
    facts: &'a Facts,
}

type All<'a> = &'a mut Vec<Finding>;

fn add(all: All<'_>, check: Check, level: Level, words: &str) {
    all.push(Finding::new(check, level, words));
}

impl Judge<'_> {
    fn relay(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        let settings = &facts.settings;
        for (error, hint) in &settings.errors {
            add(all, Check::Settings, Level::Fail, &words::settings_bad(lang, error, hint));
        }
        for note in &settings.notes {
            add(all, Check::Settings, Level::Warn, &words::settings_note(lang, note));
        }
        if settings.errors.is_empty() && settings.notes.is_empty() {
            let words = match &settings.file {
                Some(file) => words::settings_ok(lang, file),
                None => words::settings_none(lang),
            };
            add(all, Check::Settings, Level::Ok, &words);
        }
        let (level, words) = match &facts.here {
            Here::Relay(_) => (Level::Ok, words::port_ours(lang, &facts.at)),
            Here::Free => (Level::Ok, words::port_free(lang, &facts.at)),
            Here::Locked => (Level::Warn, words::port_locked(lang, &facts.at)),
            Here::Held(_) if self.service_is_here() => (Level::Ok, words::port_service(lang, &facts.at)),
            Here::Taken(Some(holder)) | Here::Held(Some(holder)) => {
                (Level::Fail, words::port_held(lang, &facts.at, &holder.name, u64::from(holder.pid)))
            }
            Here::Taken(None) | Here::Held(None) => (Level::Fail, words::port_taken(lang, &facts.at)),
        };
        add(all, Check::Port, level, &words);
    }

    /// What the status page of a relay tells.
    fn running(&self, all: All<'_>) {
        let lang = self.lang;
        let Here::Relay(page) = &self.facts.here else {
            let checks = [Check::Version, Check::Failures, Check::Hanging, Check::Duplicates, Check::Memory];
            for check in checks {
                add(all, check, Level::Ok, &words::none_runs(lang));
            }
            return;
        };
        let (ours, theirs) = (env!("CARGO_PKG_VERSION"), page["version"].as_str().unwrap_or("?"));
        if ours == theirs {
            add(all, Check::Version, Level::Ok, &words::version_ok(lang, ours));
        } else {
            add(all, Check::Version, Level::Warn, &words::version_differs(lang, theirs, ours));
        }
        let count = |key: &str| page["totals"][key].as_u64().unwrap_or(0);
        let (saved, lost) = (count("calls_saved"), count("calls_lost"));
        let (level, words) = if lost >= STORM && saved == 0 {
            (Level::Warn, words::storm(lang, lost))
        } else {
            (Level::Ok, words::failures_ok(lang, saved, lost))
        };
        add(all, Check::Failures, level, &words);
        let open = page["open_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let hangs = |call: &&serde_json::Value| {
            call["state"] == "sending" && call["age_s"].as_f64().is_some_and(|age| age > HANGING_S)
        };
        match open.iter().filter(hangs).count() as u64 {
            0 => add(all, Check::Hanging, Level::Ok, &words::hanging_ok(lang, open.len() as u64)),
            hanging => add(all, Check::Hanging, Level::Warn, &words::hanging(lang, hanging)),
        }
        match count("maybe_billed_twice") {
            0 => add(all, Check::Duplicates, Level::Ok, &words::duplicates_ok(lang)),
            twice => add(all, Check::Duplicates, Level::Warn, &words::duplicates(lang, twice)),
        }
        let (level, words) = match self.facts.memory {
            None => (Level::Ok, words::memory_unknown(lang)),
            Some(much) if much > MUCH_MEMORY => (Level::Warn, words::memory_much(lang, much)),
            Some(some) => (Level::Ok, words::memory_ok(lang, some)),
        };
        add(all, Check::Memory, level, &words);
    }

    fn upstreams(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        for asked in &facts.upstreams {
            all.extend(upstream(lang, asked));
        }
        if facts.more_upstreams > 0 {
            let words = words::upstreams_more(lang, facts.more_upstreams as u64);
            add(all, Check::Upstream, Level::Ok, &words);
        }
        for check in [Check::Upstream, Check::Path] {
            if all.iter().all(|finding| finding.check != check) {
                add(all, check, Level::Ok, &words::upstreams_none(lang));
            }
        }
        let ahead = facts.upstreams.iter().filter_map(|asked| asked.answer.as_ref().ok()?.ahead);
        let (level, words) = match ahead.min_by_key(|ahead| ahead.abs()) {
            None => (Level::Ok, words::clock_unknown(lang)),
            Some(ahead) if ahead.abs() >= FAR_OFF => (Level::Fail, words::clock_off(lang, ahead)),
            Some(ahead) if ahead.abs() >= OFF => (Level::Warn, words::clock_off(lang, ahead)),
            Some(_) => (Level::Ok, words::clock_ok(lang)),
        };
        add(all, Check::Clock, level, &words);
    }

    fn way(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        match &facts.own_proxy {
            Some(proxy) => add(all, Check::Proxy, Level::Fail, &words::proxy_itself(lang, proxy)),
            None => add(all, Check::Proxy, Level::Ok, &words::proxy_ok(lang)),
        }
        for (who, what) in &facts.certificates {
            add(all, Check::Certificates, Level::Fail, &words::certificates_bad(lang, who, what));
        }
        if facts.certificates.is_empty() {
            let say = if facts.has_tls { words::certificates_own } else { words::certificates_ok };
            add(all, Check::Certificates, Level::Ok, &say(lang));
        }
    }

    fn service(&self, all: All<'_>) {
        let (lang, at) = (self.lang, &self.facts.at);
        let (level, words) = match &self.facts.service {
            Service::Absent => (Level::Ok, words::service_none(lang)),
            Service::Odd(why) => (Level::Warn, why.replace("\nhint: ", "\n")),
            Service::Installed(status) => {
                let record = status.installed.as_ref();
                let first = record.and_then(|record| record.addresses.first());
                let there = first.map_or_else(|| at.clone(), |first| reached_at(*first).to_string());
                match record.filter(|_| !status.has_program) {
                    Some(record) => {
                        let program = record.program.display().to_string();
                        (Level::Fail, words::service_gone(lang, &program, &there))
                    }
                    None if status.answer != Who::Relay => (Level::Fail, words::service_silent(lang, &there)),
                    None if !self.service_is_here() => {
                        (Level::Warn, words::service_elsewhere(lang, &there, at))
                    }
                    None => (Level::Ok, words::service_ok(lang, &there)),
                }
            }
        };
        add(all, Check::Service, level, &words);
    }

    /// Whether the service has the address of the settings.
    fn service_is_here(&self) -> bool {
        let Service::Installed(status) = &self.facts.service else { return false };
        let mut addresses = status.installed.iter().flat_map(|record| &record.addresses);
        addresses.any(|at| reached_at(*at).to_string() == self.facts.at)
    }

    fn clients(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        let mut pointed = 0;
        for ClientSetting { client, place, told } in &facts.clients.settings {
            let place = words::place(lang, &told.key, place);
            let is_http = told.shown.starts_with("http://");
            let trouble = match &told.standing {
                _ if told.key == "chatgpt_base_url" && is_http => words::client_breaks(lang, client, &place),
                Standing::Dead(url) => words::client_dead(lang, client, &place, url),
                Standing::RelayDown(url) => words::client_down(lang, client, &place, url),
                Standing::Relay if !is_http && !facts.has_tls => words::client_https(lang, client, &place),
                Standing::Relay => {
                    pointed += 1;
                    continue;
                }
                Standing::Elsewhere(_)
                | Standing::Unset
                | Standing::ByHand(_)
                | Standing::Immovable(_)
                | Standing::Unreadable(_) => continue,
            };
            add(all, Check::ClientAddress, Level::Fail, &trouble);
        }
        for Unreadable { client, file, bad } in &facts.clients.unreadable {
            let words = words::client_unreadable(lang, client, file, &bad.said(lang));
            add(all, Check::ClientAddress, Level::Warn, &words);
        }
        if all.iter().all(|finding| finding.check != Check::ClientAddress) {
            let others = facts.clients.settings.len() as u64 - pointed;
            let words = words::client_ok(lang, pointed, others);
            add(all, Check::ClientAddress, Level::Ok, &words);
        }
        match &facts.catching {
            Some(variable) => add(all, Check::ClientProxy, Level::Warn, &words::catching(lang, variable)),
            None => add(all, Check::ClientProxy, Level::Ok, &words::catching_none(lang)),
        }
        match &facts.clients.vscode_proxy {
            Some(VsCodeProxy { proxy, is_relay: true, .. }) => {
                add(all, Check::VsCodeProxy, Level::Fail, &words::vscode_itself(lang, proxy));
            }
            Some(VsCodeProxy { proxy, file, is_relay: false }) => {
                add(all, Check::VsCodeProxy, Level::Warn, &words::vscode_proxy(lang, proxy, file));
            }
            None => add(all, Check::VsCodeProxy, Level::Ok, &words::vscode_ok(lang)),
        }
        let (level, words) = match facts.plan {
            Some(plan) if !facts.is_routed => (Level::Warn, words::workspace_lost(lang, plan)),
            Some(plan) => (Level::Ok, words::workspace_kept(lang, plan)),
            None => (Level::Ok, words::workspace_ok(lang)),
        };
        add(all, Check::Workspace, level, &words);
    }

    fn versions(&self, all: All<'_>) {
        let lang = self.lang;
        let text = |version: [u32; 3]| version.map(|part| part.to_string()).join(".");
        for ClientVersion { client, found, measured } in &self.facts.versions {
            let (is, was) = (text(*found), text(*measured));
            let (level, words) = match found[..2].cmp(&measured[..2]) {
                std::cmp::Ordering::Less => (Level::Warn, words::client_old(lang, client, &is, &was)),
                std::cmp::Ordering::Equal => (Level::Ok, words::client_measured(lang, client, &is)),
                std::cmp::Ordering::Greater => (Level::Ok, words::client_newer(lang, client, &is, &was)),
            };
            add(all, Check::ClientVersion, level, &words);
        }
        if self.facts.versions.is_empty() {
            add(all, Check::ClientVersion, Level::Ok, &words::client_none(lang));
        }
    }

    fn machine(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        let (level, words) = if facts.localhost.is_empty() {
            (Level::Warn, words::localhost_none(lang))
        } else if !facts.localhost.contains(&Ipv4Addr::LOCALHOST.into()) {
            (Level::Warn, words::localhost_six(lang))
        } else {
            (Level::Ok, words::localhost_ok(lang))
        };
        add(all, Check::Localhost, level, &words);
        for (file, mode) in &facts.open_files {
            // What others may write is no longer one's own.
            let level = if mode & 0o022 == 0 { Level::Warn } else { Level::Fail };
            add(
                all,
                Check::FileModes,
                level,
                &words::open_file(lang, file, &format!("{:03o}", mode & 0o777)),
            );
        }
        if facts.open_files.is_empty() {
            add(all, Check::FileModes, Level::Ok, &words::files_ok(lang));
        }
        for file in &facts.odd_env_files {
            add(all, Check::EnvFile, Level::Warn, &words::env_file_odd(lang, file));
        }
        if facts.odd_env_files.is_empty() {
            add(all, Check::EnvFile, Level::Ok, &words::env_file_ok(lang));
        }
        let (level, words) = match facts.wsl {
            None => (Level::Ok, words::wsl_none(lang)),
            Some(Wsl::Mirrored) => (Level::Ok, words::wsl_mirrored(lang)),
            Some(Wsl::Nat) => (Level::Warn, words::wsl_nat(lang)),
            Some(Wsl::Unknown) => (Level::Warn, words::wsl_unknown(lang)),
        };
        add(all, Check::Wsl, level, &words);
    }
}

/// What asking one upstream came to: whether it is reached, and, where it is, what it answers.
pub(crate) fn upstream(lang: Lang, asked: &Asked) -> Vec<Finding> {
    let way = match &asked.via {
        Some(proxy) => words::way_by(lang, &asked.origin, proxy),
        None => asked.origin.clone(),
    };
    let name = &asked.name;
    let answered = match &asked.answer {
        Ok(answered) => answered,
        Err(why) => {
            let say = match why.step {
                Step::Dns => words::unreached_dns,
                Step::Connect => words::unreached_connect,
                Step::Tls => words::unreached_tls,
                Step::Certificate => words::unreached_certificate,
                Step::Proxy => words::unreached_proxy,
                Step::Answer => words::unreached_answer,
                Step::Itself => words::unreached_itself,
            };
            let level = if asked.is_used { Level::Fail } else { Level::Warn };
            return vec![Finding::new(Check::Upstream, level, &say(lang, name, &way, &why.detail))];
        }
    };
    let (status, reached) = (u64::from(answered.status), words::reached(lang, name, &way));
    let (level, words) = match answered.status {
        200..300 if answered.is_page => (Level::Warn, words::path_page(lang, name, &asked.path)),
        300..400 => (Level::Warn, words::path_elsewhere(lang, name, &asked.path, status)),
        404 | 410 => (Level::Warn, words::path_missing(lang, name, &asked.path, status)),
        500.. => (Level::Warn, words::path_failing(lang, name, &asked.path, status)),
        _ => match answered.health {
            Some(health) if health != 200 => {
                (Level::Ok, words::path_no_health(lang, name, status, u64::from(health)))
            }
            Some(_) | None => (Level::Ok, words::path_ok(lang, name, &asked.path, status)),
        },
    };
    vec![Finding::new(Check::Upstream, Level::Ok, &reached), Finding::new(Check::Path, level, &words)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::facts::{Answered, Clients, Settings, Unreached};
    use super::*;
    use crate::listen::Holder;
    use crate::service::Record;
    use crate::service::act::{State, Status};
    use crate::setup::{Bad, Told};

    fn well() -> Facts {
        Facts {
            localhost: vec![Ipv4Addr::LOCALHOST.into()],
            at: "127.0.0.1:8787".to_owned(),
            ..Facts::default()
        }
    }

    /// What this check finds, in short.
    fn found(facts: &Facts, check: Check) -> Vec<(Level, String)> {
        let all = judge(Lang::English, facts).into_iter().filter(|finding| finding.check == check);
        all.map(|finding| (finding.level, finding.what)).collect()
    }

    fn only(facts: &Facts, check: Check) -> (Level, String) {
        let mut all = found(facts, check);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn every_check_says_something_and_every_trouble_has_a_remedy() {
        let mut ill = well();
        ill.settings.errors = vec![("bad".to_owned(), "mend it".to_owned())];
        ill.here = Here::Taken(None);
        ill.localhost.clear();
        for facts in [Facts::default(), well(), ill] {
            for lang in Lang::ALL {
                let all = judge(lang, &facts);
                for check in Check::ALL {
                    assert!(all.iter().any(|finding| finding.check == check), "{check:?}");
                }
                for finding in all {
                    assert_eq!(finding.remedy.is_some(), finding.level != Level::Ok, "{finding:?}");
                }
            }
        }
        assert!(judge(Lang::English, &well()).iter().all(|finding| finding.level == Level::Ok));
    }

    #[test]
    fn the_relays_own() {
        let settings = |errors: &[&str], notes: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            let errors = owned(errors).into_iter().map(|error| (error, "mend it".to_owned())).collect();
            let settings = Settings { file: None, errors, notes: owned(notes) };
            found(&Facts { settings, ..well() }, Check::Settings)
                .into_iter()
                .map(|(level, _)| level)
                .collect::<Vec<_>>()
        };
        assert_eq!(settings(&["a", "b"], &[]), [Level::Fail, Level::Fail]);
        assert_eq!(settings(&[], &["a"]), [Level::Warn]);
        assert_eq!(settings(&[], &[]), [Level::Ok]);
        let port = |here| only(&Facts { here, ..well() }, Check::Port);
        let holder = Holder { name: "node".to_owned(), pid: 123 };
        assert_eq!(
            port(Here::Taken(Some(holder))),
            (Level::Fail, "127.0.0.1:8787 is taken by node (process 123)".to_owned())
        );
        assert_eq!(port(Here::Taken(None)).0, Level::Fail);
        assert_eq!(port(Here::Locked).0, Level::Warn);
        assert_eq!(port(Here::Free).0, Level::Ok);
    }

    #[test]
    fn what_a_running_relay_tells() {
        let page = |version: &str, lost: u64, saved: u64, twice: u64| {
            json!({"version": version, "totals": {"calls_lost": lost, "calls_saved": saved, "maybe_billed_twice": twice},
                   "open_calls": [{"state": "sending", "age_s": 899.0}, {"state": "streaming", "age_s": 5000.0}]})
        };
        let here = |page| Facts { here: Here::Relay(page), ..well() };
        let ours = env!("CARGO_PKG_VERSION");
        let fine = here(page(ours, 5, 1, 0));
        for check in [Check::Version, Check::Failures, Check::Hanging, Check::Duplicates, Check::Memory] {
            assert_eq!(only(&fine, check).0, Level::Ok, "{check:?}");
        }
        assert_eq!(only(&here(page("9.9.9", 0, 0, 0)), Check::Version).0, Level::Warn);
        assert_eq!(only(&here(page(ours, 5, 0, 0)), Check::Failures).0, Level::Warn);
        assert_eq!(only(&here(page(ours, 4, 0, 0)), Check::Failures).0, Level::Ok);
        assert_eq!(only(&here(page(ours, 0, 0, 1)), Check::Duplicates).0, Level::Warn);
        let mut hanging = page(ours, 0, 0, 0);
        hanging["open_calls"][0]["age_s"] = json!(901.0);
        assert_eq!(only(&here(hanging), Check::Hanging).0, Level::Warn);
        let fat = Facts { memory: Some(1537), ..fine };
        assert_eq!(only(&fat, Check::Memory).0, Level::Warn);
    }

    fn asked(is_used: bool, answer: Result<Answered, Unreached>) -> Facts {
        let (name, origin, path) =
            ("gw".to_owned(), "https://gw.example".to_owned(), "/v1/models".to_owned());
        Facts { upstreams: vec![Asked { name, origin, path, via: None, is_used, answer }], ..well() }
    }

    #[test]
    fn upstreams_are_judged_by_the_step_that_failed_and_by_their_answer() {
        for step in
            [Step::Dns, Step::Connect, Step::Tls, Step::Certificate, Step::Proxy, Step::Answer, Step::Itself]
        {
            let facts = |is_used| asked(is_used, Err(Unreached { step, detail: "why".to_owned() }));
            assert_eq!(only(&facts(true), Check::Upstream).0, Level::Fail, "{step:?}");
            assert_eq!(only(&facts(false), Check::Upstream).0, Level::Warn, "{step:?}");
        }
        let path = |status, is_page| {
            only(&asked(true, Ok(Answered { status, is_page, ..Answered::default() })), Check::Path).0
        };
        for (status, level) in [
            (200, Level::Ok),
            (401, Level::Ok),
            (403, Level::Ok),
            (404, Level::Warn),
            (302, Level::Warn),
            (503, Level::Warn),
        ] {
            assert_eq!(path(status, false), level, "{status}");
        }
        assert_eq!((path(200, true), path(403, true)), (Level::Warn, Level::Ok));
        // It only advises.
        let health = Answered { status: 401, health: Some(404), ..Answered::default() };
        assert_eq!(only(&asked(true, Ok(health)), Check::Path).0, Level::Ok);
        let clock = |ahead| {
            only(
                &asked(true, Ok(Answered { status: 401, ahead: Some(ahead), ..Answered::default() })),
                Check::Clock,
            )
        };
        assert_eq!((clock(59).0, clock(-60).0, clock(-300).0), (Level::Ok, Level::Warn, Level::Fail));
        assert_eq!(clock(-61).1, "this machine's clock is 61 s behind");
    }

    #[test]
    fn clients_that_ask_where_nothing_is_are_told_of() {
        let facts = |key: &str, url: &str, standing| {
            let told = Told { key: key.to_owned(), shown: url.to_owned(), standing };
            let setting = ClientSetting { client: "Codex".to_owned(), place: "config.toml".to_owned(), told };
            let clients = Clients { settings: vec![setting], ..Clients::default() };
            Facts { clients, ..well() }
        };
        let url = "http://127.0.0.1:9/v1";
        let found = |standing| only(&facts("openai_base_url", url, standing), Check::ClientAddress);
        let words = "Codex is told to ask http://127.0.0.1:9/v1 (`openai_base_url` in config.toml), and nothing answers there";
        assert_eq!(found(Standing::Dead(url.to_owned())), (Level::Fail, words.to_owned()));
        assert_eq!(found(Standing::RelayDown(url.to_owned())).0, Level::Fail);
        for standing in [Standing::Relay, Standing::Elsewhere(url.to_owned())] {
            assert_eq!(found(standing).0, Level::Ok);
        }
        let breaks = facts("chatgpt_base_url", url, Standing::Relay);
        assert_eq!(only(&breaks, Check::ClientAddress).0, Level::Fail);
        let mut https = facts("openai_base_url", "https://127.0.0.1:9/v1", Standing::Relay);
        assert_eq!(only(&https, Check::ClientAddress).0, Level::Fail);
        https.has_tls = true;
        assert_eq!(only(&https, Check::ClientAddress).0, Level::Ok);
        assert!(only(&https, Check::Certificates).1.contains("`steady-relay cert trust-help`"));
        let unreadable = vec![Unreadable { client: "Codex".into(), file: "f".into(), bad: Bad::Denied }];
        let clients = Clients { unreadable, ..Clients::default() };
        assert_eq!(only(&Facts { clients, ..well() }, Check::ClientAddress).0, Level::Warn);
        let vscode = |is_relay| {
            let (proxy, file) = ("http://p.example:1".to_owned(), "settings.json".to_owned());
            let vscode_proxy = Some(VsCodeProxy { proxy, file, is_relay });
            let clients = Clients { vscode_proxy, ..Clients::default() };
            only(&Facts { clients, ..well() }, Check::VsCodeProxy).0
        };
        assert_eq!((vscode(true), vscode(false)), (Level::Fail, Level::Warn));
        let plan =
            |is_routed| only(&Facts { plan: Some("business"), is_routed, ..well() }, Check::Workspace).0;
        assert_eq!((plan(false), plan(true)), (Level::Warn, Level::Ok));
        let version = |found| {
            let versions = vec![ClientVersion { client: "Codex", found, measured: [0, 171, 0] }];
            only(&Facts { versions, ..well() }, Check::ClientVersion).0
        };
        assert_eq!(version([0, 170, 9]), Level::Warn);
        assert_eq!((version([0, 171, 5]), version([0, 180, 0])), (Level::Ok, Level::Ok));
    }

    #[test]
    fn the_service_is_installed_is_there_and_answers() {
        let status = Status {
            installed: Some(Record {
                program: "/bin/relay".into(),
                addresses: vec!["127.0.0.1:8787".parse().unwrap(), "[::1]:8787".parse().unwrap()],
            }),
            state: State::Running,
            pid: None,
            restarts: 0,
            has_program: true,
            answer: Who::Relay,
            files: Vec::new(),
        };
        let facts = |status| Facts { service: Service::Installed(status), ..well() };
        let found = |status| only(&facts(status), Check::Service);
        assert_eq!(only(&well(), Check::Service).0, Level::Ok);
        assert_eq!(found(status.clone()).0, Level::Ok);
        let gone = Status { has_program: false, answer: Who::StandIn, ..status.clone() };
        let (level, words) = found(gone);
        assert!(level == Level::Fail && words.contains("/bin/relay"), "{words}");
        for answer in [Who::Silent, Who::StandIn, Who::Stranger, Who::Nobody] {
            assert_eq!(found(Status { answer, ..status.clone() }).0, Level::Fail, "{answer:?}");
        }
        let elsewhere = Facts { at: "127.0.0.1:9000".to_owned(), ..facts(status.clone()) };
        assert_eq!(only(&elsewhere, Check::Service).0, Level::Warn);
        let odd = Facts { service: Service::Odd("f is there\nhint: move it".to_owned()), ..well() };
        assert_eq!(only(&odd, Check::Service), (Level::Warn, "f is there".to_owned()));
        // Its port is held for it, and not by a stranger.
        let held = Facts { here: Here::Held(None), ..facts(status) };
        assert_eq!(only(&held, Check::Port).0, Level::Ok);
        assert_eq!(only(&Facts { here: Here::Held(None), ..well() }, Check::Port).0, Level::Fail);
    }

    #[test]
    fn the_machine() {
        let six = Facts { localhost: vec![std::net::Ipv6Addr::LOCALHOST.into()], ..well() };
        assert_eq!(only(&six, Check::Localhost).0, Level::Warn);
        let file =
            |mode| only(&Facts { open_files: vec![("f".to_owned(), mode)], ..well() }, Check::FileModes).0;
        assert_eq!((file(0o644), file(0o666)), (Level::Warn, Level::Fail));
        let odd = Facts { odd_env_files: vec![".env".to_owned()], ..well() };
        assert_eq!(only(&odd, Check::EnvFile).0, Level::Warn);
        for (wsl, level) in [(Wsl::Nat, Level::Warn), (Wsl::Unknown, Level::Warn), (Wsl::Mirrored, Level::Ok)]
        {
            assert_eq!(only(&Facts { wsl: Some(wsl), ..well() }, Check::Wsl).0, level);
        }
        let catching = Facts { catching: Some("HTTP_PROXY".to_owned()), ..well() };
        assert_eq!(only(&catching, Check::ClientProxy).0, Level::Warn);
        let own = Facts { own_proxy: Some("http://127.0.0.1:8787".to_owned()), ..well() };
        assert_eq!(only(&own, Check::Proxy).0, Level::Fail);
        let bad = Facts { certificates: vec![("SSL_CERT_FILE".to_owned(), "gone".to_owned())], ..well() };
        assert_eq!(only(&bad, Check::Certificates).0, Level::Fail);
    }
}
