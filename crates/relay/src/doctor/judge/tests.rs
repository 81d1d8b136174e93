//! Facts in, findings out.

use serde_json::json;

use super::super::facts::{Answered, Clients, Settings, Unreached};
use super::*;
use crate::credentials::Flaw;
use crate::installed::Way;
use crate::listen::Holder;
use crate::service::Record;
use crate::service::act::{State, Status};
use crate::setup::{Bad, Told};

fn well() -> Facts {
    Facts {
        localhost: vec![Ipv4Addr::LOCALHOST.into()],
        at: "127.0.0.1:8787".to_owned(),
        open_files: Some(Vec::new()),
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
fn who_installed_the_program_is_told_and_what_updates_it() {
    for way in Way::ALL {
        let facts = Facts { installed: way, update: way.update(), ..well() };
        let (level, words) = only(&facts, Check::Program);
        assert_eq!(level, Level::Ok);
        assert!(words.contains(env!("CARGO_PKG_VERSION")), "{words}");
        assert_eq!(
            way.update().is_some_and(|update| words.contains(update)),
            way.update().is_some(),
            "{words}"
        );
        assert_eq!(words.contains("by hand"), way.name().is_none(), "{words}");
    }
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
                let is_trouble = matches!(finding.level, Level::Fail | Level::Warn);
                assert_eq!(finding.remedy.is_some(), is_trouble, "{finding:?}");
            }
        }
    }
    assert!(judge(Lang::English, &well()).iter().all(|finding| finding.level >= Level::Ok));
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
        assert_eq!(
            only(&fine, check).0,
            if check == Check::Memory { Level::Skip } else { Level::Ok },
            "{check:?}"
        );
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

#[test]
fn credentials_of_the_relays_own_are_where_the_settings_say() {
    let flaw = |words: &str, stops| Flaw { words: words.to_owned(), stops };
    let with = |credentials, flaws| Facts { credentials, flaws, ..well() };
    assert_eq!(only(&with(0, Vec::new()), Check::Credentials).0, Level::Ok);
    assert!(only(&with(2, Vec::new()), Check::Credentials).1.contains("own: 2"));
    let all = found(&with(2, vec![flaw("no file", true), flaw("open to others", false)]), Check::Credentials);
    let expected = [(Level::Fail, "no file".to_owned()), (Level::Warn, "open to others".to_owned())];
    assert_eq!(all, expected);
}

#[test]
fn credentials_that_the_running_relay_could_not_have_are_told() {
    let page = json!({"credentials": [
        {"name": "over", "state": "failed_for_good", "why": "https://a.example refuses"},
        {"name": "late", "state": "failed", "why": "it took too long"},
        {"name": "seen", "state": "failed", "why": "there is no program pass"},
        {"name": "good", "state": "renewed", "why": null},
    ]});
    let flaws = vec![Flaw { words: "credential `seen`: there is no program pass".to_owned(), stops: true }];
    let facts = Facts { credentials: 4, flaws, here: Here::Relay(page), ..well() };
    let all = found(&facts, Check::Credentials);
    let levels: Vec<_> = all.iter().map(|(level, _)| *level).collect();
    assert_eq!(levels, [Level::Fail, Level::Fail, Level::Warn], "{all:?}");
    assert!(all[1].1.contains("`over`") && all[1].1.contains("a.example refuses"), "{all:?}");
    assert!(all[2].1.contains("`late`") && all[2].1.contains("too long"), "{all:?}");
    let page = json!({"credentials": [{"name": "good", "state": "renewed", "why": null}]});
    let well = Facts { credentials: 1, here: Here::Relay(page), ..well() };
    assert_eq!(only(&well, Check::Credentials).0, Level::Ok);
}

fn asked(is_used: bool, answer: Result<Answered, Unreached>) -> Facts {
    let (name, origin, path) = ("gw".to_owned(), "https://gw.example".to_owned(), "/v1/models".to_owned());
    Facts {
        upstreams: vec![Asked { name, origin, path, via: None, is_used, answer, lost: Vec::new() }],
        ..well()
    }
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
    // A proxy that is named and does not lead there, while another way does.
    let mut facts = asked(true, Ok(Answered { status: 401, ..Answered::default() }));
    let why = Unreached { step: Step::Connect, detail: "why".to_owned() };
    facts.upstreams[0].lost = vec![(Some("http://p.example:3128".to_owned()), why)];
    let found = upstream(Lang::English, &facts.upstreams[0]);
    let levels: Vec<_> = found.iter().map(|finding| finding.level).collect();
    assert_eq!(levels, [Level::Ok, Level::Ok, Level::Warn]);
    assert!(
        found[2].what.contains("https://gw.example by the proxy http://p.example:3128 (why)"),
        "{found:?}"
    );
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
    let plan = |is_routed| only(&Facts { plan: Some("business"), is_routed, ..well() }, Check::Workspace).0;
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
fn what_could_not_be_looked_at_is_not_said_to_be_well() {
    let nothing =
        Facts { open_files: None, service: Service::Unknown("no bus\nhint: x".to_owned()), ..well() };
    for (check, why) in [
        (Check::Version, "no relay shows its status page"),
        (Check::Failures, "no relay shows its status page"),
        (Check::Hanging, "no relay shows its status page"),
        (Check::Duplicates, "no relay shows its status page"),
        (Check::Memory, "no relay shows its status page"),
        (Check::Upstream, "no upstream was reached"),
        (Check::Path, "no upstream was reached"),
        (Check::Clock, "no service told the time"),
        (Check::Service, "no bus"),
        (Check::ClientVersion, "neither Codex, Claude Code nor Gemini CLI is on the PATH"),
        (Check::FileModes, "this system has no modes of files"),
    ] {
        assert_eq!(only(&nothing, check), (Level::Skip, format!("not looked at: {why}")), "{check:?}");
    }
    let silent = Facts { silent_clients: vec!["Codex"], ..well() };
    let words = "not looked at: Codex did not tell its version in time".to_owned();
    assert_eq!(only(&silent, Check::ClientVersion), (Level::Skip, words));
    let many =
        Facts { more_upstreams: 3, ..asked(true, Ok(Answered { status: 401, ..Answered::default() })) };
    let found = found(&many, Check::Upstream);
    assert_eq!((found.len(), found[0].0, found[1].0), (2, Level::Ok, Level::Skip));
}

#[test]
fn the_machine() {
    let six = Facts { localhost: vec![std::net::Ipv6Addr::LOCALHOST.into()], ..well() };
    assert_eq!(only(&six, Check::Localhost).0, Level::Warn);
    let file = |mode, is_secret| {
        let open = OpenFile { file: "f".to_owned(), mode, is_secret };
        only(&Facts { open_files: Some(vec![open]), ..well() }, Check::FileModes)
    };
    assert_eq!((file(0o644, true).0, file(0o666, true).0), (Level::Warn, Level::Fail));
    assert_eq!(file(0o664, false), (Level::Fail, "others may change f (mode 664)".to_owned()));
    let odd = Facts { odd_env_files: vec![".env".to_owned()], ..well() };
    assert_eq!(only(&odd, Check::EnvFile).0, Level::Warn);
    for (wsl, level) in [(Wsl::Nat, Level::Warn), (Wsl::Unknown, Level::Warn), (Wsl::Mirrored, Level::Ok)] {
        assert_eq!(only(&Facts { wsl: Some(wsl), ..well() }, Check::Wsl).0, level);
    }
    let catching = Facts { catching: Some("HTTP_PROXY".to_owned()), ..well() };
    assert_eq!(only(&catching, Check::ClientProxy).0, Level::Warn);
    let own = Facts { own_proxy: Some("http://127.0.0.1:8787".to_owned()), ..well() };
    assert_eq!(only(&own, Check::Proxy).0, Level::Fail);
    let bad = Facts { certificates: vec![("SSL_CERT_FILE".to_owned(), "gone".to_owned())], ..well() };
    assert_eq!(only(&bad, Check::Certificates).0, Level::Fail);
}

#[test]
fn what_is_kept_and_who_is_told() {
    let of = |history| only(&Facts { history, ..well() }, Check::History);
    assert_eq!(of(History::Off).0, Level::Ok);
    assert_eq!(of(History::Nowhere).0, Level::Warn);
    assert_eq!(of(History::Expected).0, Level::Ok);
    assert!(of(History::There(1 + (1 << 20))).1.contains("2 MiB"));
    assert_eq!(of(History::Bad("why".to_owned())).0, Level::Fail);
    let of = |ways, missing: Option<&str>| {
        let alerts = Alerts { ways, missing: missing.map(str::to_owned) };
        only(&Facts { alerts, ..well() }, Check::Alerts)
    };
    assert_eq!((of(0, None).0, of(1, None).0, of(1, Some("x")).0), (Level::Ok, Level::Ok, Level::Fail));
    assert!(of(2, None).1.contains("2 ways"));
}
