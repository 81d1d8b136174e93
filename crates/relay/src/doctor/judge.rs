//! What follows from the facts. Pure: facts in, findings out, at least one for every check.

use std::net::Ipv4Addr;

use relay_core::Lang;

use super::facts::{
    Alerts, Asked, ClientSetting, ClientVersion, Facts, Here, History, OpenFile, Service, Step, Unreached,
    Unreadable, VsCodeProxy, Wsl,
};
use super::{Check, Finding, Level};
use crate::listen::reached_at;
use crate::running::Who;
use crate::setup::Standing;
use crate::words::credentials::about;
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
    judge.program(&mut all);
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

/// What could not be looked at is not in order: it is not known.
fn skip(lang: Lang, all: All<'_>, check: Check, why: &str) {
    add(all, check, Level::Skip, &words::not_looked_at(lang, why));
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

    fn program(&self, all: All<'_>) {
        let (lang, way, version) = (self.lang, self.facts.installed, env!("CARGO_PKG_VERSION"));
        let words = match (way.name(), self.facts.update) {
            (Some(by), Some(update)) => words::installed(lang, version, by, update),
            (Some(by), None) => words::installed_file(lang, version, by),
            (None, _) => words::installed_by_hand(lang, version),
        };
        add(all, Check::Program, Level::Ok, &words);
    }

    /// What the status page of a relay tells.
    fn running(&self, all: All<'_>) {
        let lang = self.lang;
        let Here::Relay(page) = &self.facts.here else {
            let checks = [Check::Version, Check::Failures, Check::Hanging, Check::Duplicates, Check::Memory];
            for check in checks {
                skip(lang, all, check, &words::none_runs(lang));
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
        match self.facts.memory {
            None => skip(lang, all, Check::Memory, &words::memory_unknown(lang)),
            Some(much) if much > MUCH_MEMORY => {
                add(all, Check::Memory, Level::Warn, &words::memory_much(lang, much));
            }
            Some(some) => add(all, Check::Memory, Level::Ok, &words::memory_ok(lang, some)),
        }
    }

    fn upstreams(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        for asked in &facts.upstreams {
            all.extend(upstream(lang, asked));
        }
        if facts.more_upstreams > 0 {
            skip(lang, all, Check::Upstream, &words::upstreams_more(lang, facts.more_upstreams as u64));
        }
        for check in [Check::Upstream, Check::Path] {
            if all.iter().all(|finding| finding.check != check) {
                skip(lang, all, check, &words::upstreams_none(lang));
            }
        }
        let ahead = facts.upstreams.iter().filter_map(|asked| asked.answer.as_ref().ok()?.ahead);
        let Some(ahead) = ahead.min_by_key(|ahead| ahead.abs()) else {
            return skip(lang, all, Check::Clock, &words::clock_unknown(lang));
        };
        let (level, words) = match ahead.abs() {
            FAR_OFF.. => (Level::Fail, words::clock_off(lang, ahead)),
            OFF.. => (Level::Warn, words::clock_off(lang, ahead)),
            _ => (Level::Ok, words::clock_ok(lang)),
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
        for flaw in &facts.flaws {
            let level = if flaw.stops { Level::Fail } else { Level::Warn };
            add(all, Check::Credentials, level, &words::credential_flaw(lang, &flaw.words));
        }
        let failing = self.failing_credentials();
        let is_well = facts.flaws.is_empty() && failing.is_empty();
        all.extend(failing);
        if is_well {
            let words = match facts.credentials {
                0 => words::credentials_none(lang),
                count => words::credentials_ok(lang, count as u64),
            };
            add(all, Check::Credentials, Level::Ok, &words);
        }
    }

    /// What the relay that runs could not have when it needed it, and what was not seen from outside.
    fn failing_credentials(&self) -> Vec<Finding> {
        let (lang, facts) = (self.lang, self.facts);
        let Here::Relay(page) = &facts.here else { return Vec::new() };
        let told = page["credentials"].as_array().map_or(&[][..], Vec::as_slice);
        let failing = |one: &serde_json::Value| {
            let (name, why) = (one["name"].as_str()?, one["why"].as_str()?);
            let seen = about(lang, name, why);
            if facts.flaws.iter().any(|flaw| flaw.words == seen) {
                return None;
            }
            let (level, words) = if one["state"] == "failed_for_good" {
                (Level::Fail, words::credential_over(lang, name, why))
            } else {
                (Level::Warn, words::credential_failed(lang, name, why))
            };
            Some(Finding::new(Check::Credentials, level, &words))
        };
        told.iter().filter_map(failing).collect()
    }

    fn service(&self, all: All<'_>) {
        let (lang, at) = (self.lang, &self.facts.at);
        let (level, words) = match &self.facts.service {
            Service::Absent => (Level::Ok, words::service_none(lang)),
            Service::Odd(why) => (Level::Warn, why.replace("\nhint: ", "\n")),
            Service::Unknown(why) => {
                let why = why.lines().next().unwrap_or_default();
                (Level::Skip, words::not_looked_at(lang, why))
            }
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
        for client in &self.facts.silent_clients {
            skip(lang, all, Check::ClientVersion, &words::client_silent(lang, client));
        }
        if self.facts.versions.is_empty() && self.facts.silent_clients.is_empty() {
            skip(lang, all, Check::ClientVersion, &words::client_none(lang));
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
        self.modes(all);
        for file in &facts.odd_env_files {
            add(all, Check::EnvFile, Level::Warn, &words::env_file_odd(lang, file));
        }
        if facts.odd_env_files.is_empty() {
            add(all, Check::EnvFile, Level::Ok, &words::env_file_ok(lang));
        }
        self.kept(all);
        let (level, words) = match facts.wsl {
            None => (Level::Ok, words::wsl_none(lang)),
            Some(Wsl::Mirrored) => (Level::Ok, words::wsl_mirrored(lang)),
            Some(Wsl::Nat) => (Level::Warn, words::wsl_nat(lang)),
            Some(Wsl::Unknown) => (Level::Warn, words::wsl_unknown(lang)),
        };
        add(all, Check::Wsl, level, &words);
    }

    /// What is kept of calls, and whether somebody is told of trouble.
    fn kept(&self, all: All<'_>) {
        let (lang, facts) = (self.lang, self.facts);
        let (level, words) = match &facts.history {
            History::Off => (Level::Ok, words::history_off(lang)),
            History::Nowhere => (Level::Warn, words::history_nowhere(lang)),
            History::Expected => (Level::Ok, words::history_expected(lang)),
            History::There(bytes) => (Level::Ok, words::history_ok(lang, bytes.div_ceil(1 << 20))),
            History::Bad(why) => (Level::Fail, words::history_bad(lang, why)),
        };
        add(all, Check::History, level, &words);
        let (level, words) = match &facts.alerts {
            Alerts { missing: Some(program), .. } => (Level::Fail, words::alerts_missing(lang, program)),
            Alerts { ways: 0, .. } => (Level::Ok, words::alerts_none(lang)),
            Alerts { ways, .. } => (Level::Ok, words::alerts_ok(lang, *ways as u64)),
        };
        add(all, Check::Alerts, level, &words);
    }

    fn modes(&self, all: All<'_>) {
        let lang = self.lang;
        let Some(open) = &self.facts.open_files else {
            return skip(lang, all, Check::FileModes, &words::no_modes(lang));
        };
        for OpenFile { file, mode, is_secret } in open {
            // What others may write is no longer one's own.
            let level = if mode & 0o022 == 0 { Level::Warn } else { Level::Fail };
            let say = if *is_secret { words::open_file } else { words::open_to_writing };
            add(all, Check::FileModes, level, &say(lang, file, &format!("{:03o}", mode & 0o777)));
        }
        if open.is_empty() {
            add(all, Check::FileModes, Level::Ok, &words::files_ok(lang));
        }
    }
}

/// What asking one upstream came to: whether it is reached, and, where it is, what it answers.
pub(crate) fn upstream(lang: Lang, asked: &Asked) -> Vec<Finding> {
    let (name, way) = (&asked.name, way(lang, asked, asked.via.as_ref()));
    // As long as another way leads there, nothing fails.
    let lost = asked.lost.iter().map(|(via, why)| unreached(lang, asked, (via.as_ref(), why), Level::Warn));
    let answered = match &asked.answer {
        Ok(answered) => answered,
        Err(why) => {
            let level = if asked.is_used { Level::Fail } else { Level::Warn };
            let first = unreached(lang, asked, (asked.via.as_ref(), why), level);
            return std::iter::once(first).chain(lost).collect();
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
    let found =
        [Finding::new(Check::Upstream, Level::Ok, &reached), Finding::new(Check::Path, level, &words)];
    found.into_iter().chain(lost).collect()
}

/// The way to an upstream by this proxy, or by none.
fn way(lang: Lang, asked: &Asked, via: Option<&String>) -> String {
    via.map_or_else(|| asked.origin.clone(), |proxy| words::way_by(lang, &asked.origin, proxy))
}

/// Why an upstream was not reached by one way.
fn unreached(lang: Lang, asked: &Asked, (via, why): (Option<&String>, &Unreached), level: Level) -> Finding {
    let say = match why.step {
        Step::Dns => words::unreached_dns,
        Step::Connect => words::unreached_connect,
        Step::Tls => words::unreached_tls,
        Step::Certificate => words::unreached_certificate,
        Step::Proxy => words::unreached_proxy,
        Step::Answer => words::unreached_answer,
        Step::Itself => words::unreached_itself,
    };
    Finding::new(Check::Upstream, level, &say(lang, &asked.name, &way(lang, asked, via), &why.detail))
}

#[cfg(test)]
mod tests;
