//! Every key of the file: what it takes, and what it refuses.

use super::*;
use relay_core::config::{
    Desktop, Held, Http2, LogFormat, LogLevel, LogSettings, OtlpSettings, ProxyChoice, ProxyList,
    REFRESH_BEFORE, REFRESH_TOKEN, Source, TokenRequest, Waiting, Websocket,
};
use relay_core::gate::Preset;
use relay_core::{ClientLimit, Profile, ProfileOverrides};
use std::num::NonZeroU32;

#[test]
fn the_documented_defaults_are_the_defaults() {
    let mut text = String::new();
    for section in reference() {
        assert!(!section.doc.is_empty());
        text +=
            &section.head.replace("client.NAME", "client.other").replace("upstream.NAME", "upstream.openai");
        text += "\n";
        for KeyDoc { name, shape, default, doc, .. } in section.keys {
            assert!(!shape.is_empty() && doc.ends_with('.'), "{name}");
            if !default.is_empty() {
                text += &format!("{name} = {default}\n");
            }
        }
        if section.head == "[pool.NAME]" {
            text += "members = [\"openai\"]\n";
        }
        if section.head == "[credential.NAME]" {
            text += "token_url = \"https://a.example/token\"\n";
        }
        if section.head == "[[fallback]]" {
            text += "model = \"x\"\nto = [\"y\"]\n";
        }
        if section.head == "[[rule]]" {
            text += "phrase = \"x\"\nfault = \"overloaded\"\n";
        }
    }
    let mut config = good(&text);
    // Among the numbers are the curves, and whoever writes these down has no gate.
    let without_gate = Profile { gate: None, ..Profile::interactive() };
    assert_eq!(config.profiles.remove("NAME"), Some(without_gate));
    let Source::OAuth(oauth) = config.credentials.remove("NAME").unwrap().source else {
        panic!("it is a token")
    };
    assert_eq!((oauth.form, oauth.before), (TokenRequest::default(), REFRESH_BEFORE));
    assert_eq!(oauth.refresh_token, Held::Variable { name: REFRESH_TOKEN.into(), value: None });
    config.routes.clear();
    config.rules.clear();
    config.pools.clear();
    assert_eq!(config.fallbacks.pop().map(|it| (it.after, it.upstream)), Some((ms(600_000), None)));
    assert_eq!(config, Config::default());
}

#[test]
fn every_key_of_a_fallback_is_read() {
    let config = good(
        r#"
        [[fallback]]
        model = "gpt-x"
        to = ["gpt-y", "gpt-z"]
        after = "3min"
        upstream = "openai"
        [[fallback]]
        model = "gpt-*"
        to = ["gpt-y"]
        "#,
    );
    let first = config.fallback("gpt-x", "openai").unwrap();
    assert_eq!((first.to.len(), first.after), (2, ms(180_000)));
    let other = config.fallback("gpt-x", "chatgpt").unwrap();
    assert_eq!((&*other.model, &other.to), ("gpt-*", &vec!["gpt-y".to_owned()]));
    assert_eq!(config.fallback("o", "openai"), None);
}

#[test]
fn every_key_of_the_relay_is_read() {
    let config = good(
        r#"
        [relay]
        listen = "0.0.0.0"
        port = 0
        token = "0123456789abcdef"
        upstream = "http://localhost:9000/v1/"
        profile = "batch"
        gate = false
        http2 = "always"
        websocket = "tunnel"
        proxy = "socks5h://me:pw@proxy.example"
        ca_file = "certs/ca.pem"
        allowed_origins = ["http://LOCALHOST:3000/", "vscode-webview://abc"]
        state_dir = "/var/lib/relay"
        "#,
    );
    assert_eq!(config.listen, Listen::Address([0, 0, 0, 0].into()));
    assert_eq!(config.port, 0);
    assert_eq!(config.token.map(|token| token.expose().to_owned()).as_deref(), Some("0123456789abcdef"));
    let url = "http://localhost:9000/v1".parse().unwrap();
    assert_eq!(config.upstream, Some(UpstreamChoice::Url(Upstream::at(url))));
    assert_eq!(config.profile, ProfileChoice::Named("batch".into()));
    assert!(!config.gate);
    assert_eq!(config.http2, Http2::Always);
    assert_eq!(config.websocket, Websocket::Tunnel);
    assert_eq!(config.proxy, "socks5h://me:pw@proxy.example".parse().unwrap());
    assert_eq!(config.ca_files, [PathBuf::from("certs/ca.pem")]);
    assert_eq!(config.allowed_origins, ["http://localhost:3000", "vscode-webview://abc"]);
    assert_eq!(config.state_dir, Some("/var/lib/relay".into()));
}

#[test]
fn the_folder_for_state_is_named_or_the_usual_one() {
    use file::{System, usual_state_dir};
    use std::io::ErrorKind::NotFound;
    let home: &[_] = &[("HOME", "/home/me"), ("LOCALAPPDATA", "/home/me"), ("XDG_STATE_HOME", "/state")];
    let named: &[_] = &[("XDG_STATE_HOME", "/state"), ("STEADY_RELAY_STATE_DIR", "by-variable")];
    let of = |text: &'static str, env: &[(&'static str, &'static str)], flag: Option<&str>| {
        let flags = Flags {
            config: Some("/etc/relay/config.toml".into()),
            state_dir: flag.map(str::to_owned),
            ..Flags::default()
        };
        let read = |path: &Path| if path.ends_with("env") { Err(NotFound.into()) } else { Ok(text.into()) };
        load(&flags, &env, &read).unwrap().config.state_dir
    };
    let in_file = "[relay]\nstate_dir = \"in-file\"";
    assert_eq!(of(in_file, named, Some("by-flag")), Some("by-flag".into()));
    assert_eq!(of(in_file, named, None), Some("by-variable".into()));
    assert_eq!(of(in_file, home, None), Some("/etc/relay/in-file".into()));
    assert_eq!(of("[relay]\nstate_dir = \"\"", &[], None), None);
    if cfg!(unix) {
        assert_eq!(of("", home, None), Some("/state/steady-relay".into()));
    }
    let usual = |env: &[(&'static str, &'static str)], system| usual_state_dir(&env, system);
    for (system, env, folder) in [
        (System::Unix, home, "/state/steady-relay"),
        (System::Mac, home, "/state/steady-relay"),
        (System::Unix, &home[..1], "/home/me/.local/state/steady-relay"),
        (System::Mac, &home[..1], "/home/me/Library/Application Support/steady-relay"),
        (System::Windows, &home[..2], "/home/me/steady-relay"),
    ] {
        assert_eq!(usual(env, system), Some(folder.into()), "{system:?}");
    }
    for system in [System::Unix, System::Mac, System::Windows] {
        assert_eq!(usual(&[("XDG_STATE_HOME", "relative"), ("HOME", "")], system), None);
    }
}

#[test]
fn a_relative_ca_file_starts_at_the_folder_of_the_file_and_an_empty_one_is_none() {
    let load_at = |text: &'static str| {
        let flags = Flags { config: Some("/etc/relay/config.toml".into()), ..Flags::default() };
        let env: &[_] = &[("SSL_CERT_FILE", "more.pem")];
        load(&flags, &env, &|_| Ok(text.into())).unwrap().config.ca_files
    };
    assert_eq!(
        load_at("[relay]\nca_file = \"ca.pem\""),
        ["/etc/relay/ca.pem", "more.pem"].map(PathBuf::from)
    );
    assert_eq!(load_at("[relay]\nca_file = \"/a/ca.pem\""), ["/a/ca.pem", "more.pem"].map(PathBuf::from));
    assert_eq!(load_at("[relay]\nca_file = \"\""), [PathBuf::from("more.pem")]);
}

#[test]
fn every_limit_is_read() {
    let config = good(
        r#"
        [timeouts]
        connect = "1s"
        first_byte = "2s"
        first_byte_unknown = "3min"
        idle = "4s"
        pool_idle = "0s"
        drain = "1.5s"
        [waiting]
        interim = "off"
        early_commit = "45s"
        heartbeat = "5s"
        notice = "off"
        title = "off"
        desktop = "on"
        [hold]
        bytes = "64KiB"
        time = "6s"
        [bodies]
        each = 1000
        total = "128MB"
        [limits]
        connections = 7
        streams = 8
        head = "9KiB"
        headers = 17
        head_time = "11s"
        stall = "12s"
        [log]
        level = "debug"
        format = "json"
        file = "relay.log"
        max_size = "1MiB"
        max_files = 2
        "#,
    );
    let timeouts = config.timeouts;
    assert_eq!((timeouts.connect, timeouts.first_byte), (ms(1000), Some(ms(2000))));
    assert_eq!((timeouts.first_byte_unknown, timeouts.idle), (ms(180_000), ms(4000)));
    assert_eq!((timeouts.pool_idle, timeouts.drain), (ms(0), ms(1500)));
    let waiting = Waiting {
        interim: None,
        early_commit: Some(ms(45_000)),
        heartbeat: ms(5000),
        notice: None,
        title: false,
        desktop: Desktop::On,
    };
    assert_eq!(config.waiting, waiting);
    assert_eq!((config.hold.bytes, config.hold.time), (65_536, ms(6000)));
    assert_eq!((config.bodies.each, config.bodies.total), (1000, 128_000_000));
    let limits = config.limits;
    assert_eq!((limits.connections, limits.streams, limits.head, limits.headers), (7, 8, 9 << 10, 17));
    assert_eq!((limits.head_time, limits.stall), (ms(11_000), ms(12_000)));
    let log = LogSettings {
        level: LogLevel::Debug,
        format: LogFormat::Json,
        file: Some("relay.log".into()),
        max_size: 1 << 20,
        max_files: 2,
    };
    assert_eq!(config.log, log);
}

#[test]
fn every_key_of_alerts_is_read() {
    use relay_core::alert::Kind;
    use relay_core::config::AlertSettings;
    let config = good(
        r#"
        [alerts]
        kinds = ["maybe_billed_twice", "lane_closed"]
        lane_closed = "1s"
        long_wait = "2s"
        long_waits = 4
        every = "5s"
        log = false
        webhook = "https://hooks.example/services/T0?x=1"
        command = ["notify-me", "--urgent"]
        desktop = true
        within = "6s"
        "#,
    );
    let settings = AlertSettings {
        kinds: [Kind::LaneClosed, Kind::MaybeBilledTwice].into(),
        lane_closed: ms(1000),
        long_wait: ms(2000),
        long_waits: 4,
        every: ms(5000),
        log: false,
        webhook: Some("https://hooks.example/services/T0?x=1".parse().unwrap()),
        command: vec!["notify-me".to_owned(), "--urgent".to_owned()],
        desktop: true,
        within: ms(6000),
    };
    assert_eq!(config.alerts, settings);
    assert!(good("[alerts]\nkinds = []\nwebhook = \"\"\ncommand = []").alerts.kinds.is_empty());
}

#[test]
fn every_key_of_snapshots_is_read() {
    use relay_core::config::SnapshotSettings;
    use relay_core::event::Outcome;
    let text = "[snapshots]\nenabled = true\nfolder = \"kept\"\noutcomes = [\"cut\"]\nmax_size = \"1MiB\"\n\
                max_count = 3\nmax_total = \"2MiB\"\n";
    let settings = SnapshotSettings {
        enabled: true,
        folder: Some("kept".into()),
        outcomes: [Outcome::Cut].into(),
        max_size: 1 << 20,
        max_count: 3,
        max_total: 2 << 20,
    };
    assert_eq!(good(text).snapshots, settings);
    let of = |text: &str| good(text).snapshots_folder();
    assert_eq!(of(""), None);
    assert_eq!(of("[relay]\nstate_dir = \"/s\""), Some("/s/snapshots".into()));
    assert_eq!(of("[relay]\nstate_dir = \"/s\"\n[snapshots]\nfolder = \"/t\""), Some("/t".into()));
}

#[test]
fn every_key_of_otlp_is_read() {
    let text = "[otlp]\nheaders = { \"x-key\" = \"s3\" }\nservice_name = \"night\"\ntraces = false\nmetrics = false\n\
                interval = \"2s\"\npropagate = true\n";
    let settings = OtlpSettings {
        endpoint: None,
        headers: vec![("x-key".parse().unwrap(), "s3".parse().unwrap())],
        service_name: "night".to_owned(),
        traces: false,
        metrics: false,
        interval: ms(2000),
        propagate: true,
    };
    assert_eq!(good(text).otlp, settings);
    let named = load_all("[otlp]\nendpoint = \"http://127.0.0.1:4318\"\n", &[], Flags::default());
    if cfg!(feature = "otlp") {
        assert_eq!(named.unwrap().config.otlp.endpoint, Some("http://127.0.0.1:4318".parse().unwrap()));
    } else {
        let said = named.unwrap_err().to_string();
        assert!(said.contains("config.toml:2:12: this program was built without `otlp`"), "{said}");
        assert!(said.contains("hint: build it with the feature `otlp`"), "{said}");
    }
}

#[test]
fn variables_of_opentelemetry_are_read_where_there_is_something_to_do() {
    let env: &[_] = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example/otlp/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3%20x"),
        ("OTEL_SERVICE_NAME", "night"),
    ];
    let of = |env: &[(&str, &str)]| {
        let loaded = load_all("[otlp]\nservice_name = \"day\"", env, Flags::default()).unwrap();
        assert!(loaded.notices.is_empty());
        let shown = loaded.shown.iter().map(|shown| format!("{shown:?}")).collect::<String>();
        assert!(!shown.contains("s3"), "{shown}");
        loaded.config.otlp
    };
    let otlp = of(env);
    if cfg!(feature = "otlp") {
        assert_eq!(otlp.endpoint, Some("https://collector.example/otlp".parse().unwrap()));
        assert_eq!((otlp.headers[0].1.to_str().unwrap(), otlp.service_name.as_str()), ("s3 x", "night"));
        assert_eq!(of(&[env, &[("OTEL_SDK_DISABLED", "True")]].concat()).endpoint, None);
        assert!(of(&[env, &[("OTEL_SDK_DISABLED", "1")]].concat()).endpoint.is_some());
        for (name, value, what) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "OTEL_EXPORTER_OTLP_ENDPOINT: "),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3", "the value is no list of headers"),
        ] {
            let said = load_all("", &[(name, value)], Flags::default()).unwrap_err().to_string();
            assert!(said.contains(what) && !said.contains("s3"), "{said}");
        }
    } else {
        // They are meant for somebody else.
        assert_eq!((otlp.endpoint, otlp.service_name.as_str()), (None, "day"));
    }
}

#[test]
fn every_key_of_a_client_is_read() {
    let config = good(
        r#"
        [client.codex]
        profile = "patient"
        limit = "50s"
        cut_fatal = false
        cuts = 0
        [client.claude_code]
        limit = "6min"
        "#,
    );
    let codex = config.client(Kind::Codex);
    assert_eq!(codex.profile, Some(ProfileChoice::Named("patient".into())));
    assert_eq!((codex.limit, codex.cut_fatal, codex.cuts), (Some(ms(50_000)), false, 0));
    assert_eq!(config.client(Kind::ClaudeCode).limit, Some(ms(360_000)));
    assert_eq!(config.client(Kind::Other), Config::default().client(Kind::Other));
}

#[test]
fn every_key_of_an_upstream_is_read_and_a_shipped_one_is_changed_key_by_key() {
    let config = good(
        r#"
        [upstream.mine]
        url = "http://10.0.0.7:4000"
        headers = { "x-team" = "blue", "X-Many" = ["1", "2"] }
        api_key = "sk-mine"
        allow_plaintext = true
        strip_v1 = true
        http2 = "off"
        websocket = "refuse"
        proxy = "none"
        max_running = 12
        [upstream.openai]
        headers = { "openai-organization" = "org" }
        proxy = ["http://me:pw@proxy.example", "system", "direct"]
        [upstream.chatgpt]
        url = "https://eu.example.com/backend-api/codex"
        "#,
    );
    let mine = config.upstreams.get("mine").unwrap();
    let headers: Vec<_> =
        mine.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    assert_eq!(headers, [("x-many", &b"1"[..]), ("x-many", b"2"), ("x-team", b"blue")]);
    assert_eq!((mine.allow_plaintext, mine.strip_v1), (true, Some(true)));
    assert_eq!((mine.http2, &mine.proxy), (Some(Http2::Off), &Some(ProxyChoice::Direct.into())));
    assert_eq!(mine.websocket, Some(Websocket::Refuse));
    assert_eq!(mine.max_running.map(NonZeroU32::get), Some(12));
    assert_eq!(mine.api_key.as_ref().map(|key| key.expose()), Some("sk-mine"));
    assert!(!format!("{mine:?}").contains("blue") && !format!("{mine:?}").contains("sk-mine"));
    let openai = config.upstreams.get("openai").unwrap();
    assert_eq!((openai.url.to_string().as_str(), openai.headers.len()), ("https://api.openai.com/v1", 1));
    let proxies = ["http://me:pw@proxy.example", "system", "none"].map(|choice| choice.parse().unwrap());
    assert_eq!(openai.proxy, Some(ProxyList::of(proxies.to_vec()).unwrap()));
    assert!(config.upstreams.get("chatgpt").is_some_and(Upstream::strips_v1));
    assert_eq!(config.upstreams.len(), 5);
}

#[test]
fn every_number_of_a_profile_is_read() {
    let config = good(
        r#"
        [profile.cases]
        based_on = "strict"
        gate = false
        sends = "unlimited"
        gated_sends = 30
        failed_sends = 5
        throttled_sends = 2
        capacity_sends = 4
        ambiguous_resends = 2
        patience = "9s"
        client_limit = "ignored"
        serves_resends = true
        base = "100ms"
        factor = 3
        cap = "400ms"
        jitter = "50ms"
        overloaded_base = "200ms"
        overloaded_factor = 1.5
        overloaded_cap = "300ms"
        never_sent_base = "60ms"
        never_sent_cap = "700ms"
        useless_floor = "80ms"
        "#,
    );
    let profile = config.profiles.get("cases").unwrap();
    assert_eq!((profile.sends, profile.failed_sends, profile.ambiguous_resends), (None, 5, 2));
    assert_eq!((profile.throttled_sends, profile.capacity_sends), (Some(2), Some(4)));
    assert_eq!((profile.patience, profile.client_limit), (ms(9000), ClientLimit::Ignored));
    assert_eq!((profile.gate, profile.gated_sends), (None, Some(30)));
    let never_sent = profile.never_sent;
    assert_eq!((never_sent.base, never_sent.cap, never_sent.jitter), (ms(60), ms(700), ms(50)));
    assert_eq!((profile.serves_resends, profile.useless_floor), (true, ms(80)));
    let (plain, overloaded) = (profile.curve, profile.overloaded);
    assert_eq!((plain.base, plain.cap, plain.jitter), (ms(100), ms(400), ms(50)));
    assert_eq!((overloaded.base, overloaded.cap, overloaded.jitter), (ms(200), ms(300), ms(50)));
    assert_eq!((plain.factor, overloaded.factor), (3.0, 1.5));
}

#[test]
fn a_profile_stands_on_the_one_it_names_as_that_is_configured() {
    let config = good(
        r#"
        [profile.interactive]
        failed_sends = 7
        [profile.a]
        based_on = "b"
        sends = 1
        [profile.b]
        patience = "5s"
        "#,
    );
    let a = config.profiles.get("a").unwrap();
    assert_eq!((a.sends, a.patience, a.failed_sends), (Some(1), ms(5000), 7));
    assert_eq!(config.profiles.get("batch"), Some(&Profile::batch()));
}

/// The presets of these profiles, in the order of their names.
fn gates(config: &Config) -> String {
    let gate = |profile: &Profile| profile.gate.map_or("-".to_owned(), |preset| format!("{preset:?}"));
    let gates = config.profiles.iter().map(|(name, profile)| format!("{name} {}", gate(profile)));
    gates.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_gate_that_is_off_for_all_is_on_where_a_profile_or_a_route_says_so() {
    let on = good("[relay]\ngate = true\n");
    assert_eq!(
        gates(&on),
        "batch Batch, codex-retry -, interactive Interactive, opencodex -, patient Batch, strict Strict"
    );
    let off = good(
        r#"
        [relay]
        gate = false
        [profile.batch]
        gate = true
        [profile.codex-retry]
        gate = true
        [profile.on_batch]
        based_on = "batch"
        [profile.on_patient]
        based_on = "patient"
        [[route]]
        profile = "strict"
        gate = true
        "#,
    );
    assert_eq!(
        gates(&off),
        "batch Batch, codex-retry Interactive, interactive -, on_batch Batch, on_patient -, opencodex -, \
         patient -, strict -"
    );
    let routed = off.routes[0].overrides.apply(&off.profiles["strict"]).unwrap();
    assert_eq!(routed.gate, Some(Preset::Strict));
}

#[test]
fn a_quota_is_waited_for_where_all_profiles_one_or_a_route_say_so() {
    let parking = |config: &Config| {
        let parks = config.profiles.iter().filter(|(_, profile)| profile.parks());
        parks.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(parking(&good("")), "");
    assert_eq!(parking(&good("[relay]\npark_quota = true\n")), "batch, interactive, patient, strict");
    assert_eq!(parking(&good("[relay]\npark_quota = true\ngate = false\n")), "", "it is the gate that parks");
    let some = good(
        r#"
        [relay]
        park_quota = true
        [profile.batch]
        park_quota = false
        [profile.night]
        based_on = "patient"
        [profile.hasty]
        based_on = "batch"
        cap = "9s"
        [profile.codex-retry]
        gate = true
        "#,
    );
    assert_eq!(parking(&some), "codex-retry, interactive, night, patient, strict");
    let one = good("[profile.patient]\npark_quota = true\n[[route]]\nmodel = \"x\"\npark_quota = true\n");
    assert_eq!(parking(&one), "patient");
    assert!(one.routes[0].overrides.apply(&one.profiles["batch"]).unwrap().parks());
    assert_snapshot!(bad("[profile.x]\ngate = false\npark_quota = true\n"), @r"
    error: config.toml:3:14: profile `x`: park_quota = true and gate = false exclude each other: a lane is parked by its gate
      3 | park_quota = true
        |              ^^^^
    hint: leave out park_quota, or gate = false
    ");
    assert_snapshot!(bad("[[route]]\nbase = \"1s\"\npark_quota = true\n"), @r"
    error: config.toml:3:14: the route's park_quota = true and base exclude each other: a lane is parked by its gate
      3 | park_quota = true
        |              ^^^^
    hint: leave out park_quota, or base
    ");
}

#[test]
fn flags_win_over_variables_and_those_over_the_file_about_the_gate() {
    let of = |file: &str, variable: Option<&'static str>, flag: Option<&str>| {
        let variables: Vec<_> = variable.map(|value| ("STEADY_RELAY_GATE", value)).into_iter().collect();
        let flags = Flags { gate: flag.map(str::to_owned), ..Flags::default() };
        let config = load_all(file, &variables, flags).unwrap().config;
        assert_eq!(config.profiles["interactive"].gate.is_some(), config.gate);
        config.gate
    };
    let (on, off) = ("[relay]\ngate = true\n", "[relay]\ngate = false\n");
    assert_eq!([of("", None, None), of(off, None, None)], [true, false]);
    assert_eq!([of(on, Some("off"), None), of(off, Some("on"), None)], [false, true]);
    assert_eq!([of(off, Some("off"), Some("on")), of(on, Some("true"), Some("false"))], [true, false]);
    let flags = Flags { gate: Some("ajar".into()), ..Flags::default() };
    assert_snapshot!(load_all("", &[], flags).unwrap_err(), @r"
    error: --gate: `ajar` is neither true nor false
    hint: write on or off, or true or false
    ");
}

#[test]
fn a_curve_and_a_gate_exclude_each_other_in_one_table_and_the_later_table_wins() {
    assert_snapshot!(bad("[profile.x]\ncap = \"9s\"\ngate = true\n"), @r#"
    error: config.toml:3:8: profile `x`: gate = true and cap exclude each other: waits in the gate are not on a curve
      3 | gate = true
        |        ^^^^
    hint: leave out gate, or cap and what else belongs to the curves
    "#);
    assert_snapshot!(bad("[[route]]\ngate = true\noverloaded_factor = 3\n"), @r"
    error: config.toml:2:8: the route's gate = true and overloaded_factor exclude each other: waits in the gate are not on a curve
      2 | gate = true
        |        ^^^^
    hint: leave out gate, or overloaded_factor and what else belongs to the curves
    ");
    let layered = good(
        r#"
        [profile.batch]
        base = "2s"
        [profile.x]
        based_on = "batch"
        gate = true
        [profile.y]
        based_on = "x"
        jitter = "0s"
        [profile.z]
        gate = true
        never_sent_base = "1s"
        never_sent_cap = "2s"
        useless_floor = "3s"
        "#,
    );
    let shown = gates(&layered);
    assert!(shown.starts_with("batch -, ") && shown.ends_with("x Batch, y -, z Interactive"), "{shown}");
}

#[test]
fn the_keys_of_sends_name_the_numbers_that_ship() {
    let profiles = reference().into_iter().find(|section| section.head == "[profile.NAME]").unwrap();
    let gated = profiles.keys.iter().find(|key| key.name == "gated_sends").unwrap();
    let (interactive, batch) = (Profile::interactive(), Profile::batch());
    assert_eq!(gated.default, interactive.gated_sends.unwrap().to_string());
    assert!(gated.doc.contains(&format!("In `batch` {};", batch.gated_sends.unwrap())), "{}", gated.doc);
    for profile in [Profile::patient(), Profile::strict(), Profile::codex_retry(), Profile::opencodex()] {
        assert_eq!(profile.gated_sends, None, "in all others `sends` holds there too");
    }
}

#[test]
fn every_key_of_a_route_is_read() {
    let config = good(
        r#"
        [[route]]
        path = "/v1/messages"
        client = "claude_code"
        model = "claude-*"
        upstream = "anthropic"
        profile = "auto"
        max_running = 100000
        sends = 0
        patience = "3s"
        [[route]]
        client_limit = "shortens"
        "#,
    );
    let [first, second] = config.routes.as_slice() else { panic!("two routes") };
    assert_eq!((first.path.as_deref(), first.model.as_deref()), (Some("/v1/messages"), Some("claude-*")));
    assert_eq!((first.client, first.upstream.as_deref()), (Some(Kind::ClaudeCode), Some("anthropic")));
    assert_eq!(first.profile, Some(ProfileChoice::Auto));
    assert_eq!(first.max_running.map(NonZeroU32::get), Some(100_000));
    let numbers =
        ProfileOverrides { sends: Some(Some(0)), patience: Some(ms(3000)), ..ProfileOverrides::default() };
    assert_eq!(first.overrides, numbers);
    assert_eq!(second.overrides.client_limit, Some(ClientLimit::Shortens));
}

#[test]
fn every_route_has_to_be_reached_by_some_call() {
    assert_snapshot!(bad("[[route]]\nsends = 2\n[[route]]\npath = \"/v1/messages\"\nsends = 3\n[[route]]\n"), @r"
    error: config.toml:1:1: the route fits every call, so none after it is ever reached: lines 3, 6
      1 | [[route]]
        | ^^^^^^^^^
    hint: name what it fits (`path`, `client`, `model`), or make it the last
    ");
    assert_snapshot!(bad("[[route]]\n[[route]]\n"), @r"
    error: config.toml:1:1: the route fits every call, so none after it is ever reached: line 2
      1 | [[route]]
        | ^^^^^^^^^
    hint: name what it fits (`path`, `client`, `model`), or make it the last
    ");
    let all = "[[route]]\npath = \"/v1\"\nmodel = \"gpt-*\"\n\n[[route]]\npath = \"/v1/x\"\nmodel = \"gpt-5\"\nsends = 1\n";
    assert_snapshot!(bad(all), @r"
    error: config.toml:5:1: the route is never reached: the one in line 1 fits every call that it fits
      5 | [[route]]
        | ^^^^^^^^^
    hint: change what it fits, put it before the other, or make one of the two
    ");
    let same = "[[route]]\nclient = \"codex\"\n[[route]]\nclient = \"codex\"\nsends = 1\n[[route]]\n";
    assert!(
        bad(same).contains("config.toml:3:1: the route is never reached: the one in line 1 fits every call")
    );
    good("[[route]]\nclient = \"codex\"\n[[route]]\nmodel = \"gpt-*\"\n[[route]]\nsends = 1\n");
    good("[[route]]\n");
    // A condition that is misspelt is one slip, not two.
    for slip in ["paht = \"/v1\"", "path = 3", "model = \"a*b\""] {
        let told = bad(&format!("[[route]]\n{slip}\n[[route]]\nclient = \"codex\"\n"));
        assert_eq!(told.matches("error: ").count(), 1, "{told}");
    }
}

/// Section, line, what is wrong with it, and what is said to do.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("relay", "listen = \"example.com\"", "is no IP address", "localhost for 127.0.0.1 and ::1"),
    ("relay", "listen = \"127.0.0.1:1\"", "has a port", "--port"),
    ("waiting", "heartbeat = \"0s\"", "is too short", "50ms"),
    ("waiting", "desktop = \"maybe\"", "is none of the choices", "auto, on, off"),
    ("relay", "port = 65536", "`relay.port = 65536` is out of range", "from 0 to 65535"),
    ("relay", "port = \"80\"", "`relay.port = \"80\"` is text, not a whole number", "from 0 to 65535"),
    ("relay", "token = \"short\"", "`relay.token` is too short", "16 to 1024"),
    ("relay", "upstream = \"opnai\"", "names no upstream", "did you mean `openai`? Or write a URL"),
    ("relay", "upstream = \"localhost:9000\"", "has no scheme", "\"http://localhost:9000\""),
    (
        "relay",
        "upstream = \"ftp://a\"",
        "has a scheme other than http and https",
        "https://api.example.com/v1",
    ),
    ("relay", "upstream = \"https://a/?x=1\"", "`relay.upstream` has a query", "its own query"),
    ("relay", "profile = \"patent\"", "names no profile", "did you mean `patient`?"),
    ("relay", "profile = 3", "is a number, not text", "quotes"),
    ("relay", "gate = \"off\"", "is text, not true or false", "without quotes"),
    ("relay", "ca_file = true", "is true or false, not text", "quotes"),
    ("relay", "allowed_origins = [\"*\"]", "holds what is no origin", "http://localhost:3000"),
    ("relay", "allowed_origins = [\"http://a/b\"]", "holds what is no origin", "http://localhost:3000"),
    ("relay", "allowed_origins = \"http://a\"", "is text, not a list of texts", "[\"one\", \"two\"]"),
    ("timeouts", "connect = 10", "`timeouts.connect = 10` has no unit", "\"10s\" is seconds"),
    ("timeouts", "connect = 1.5", "`timeouts.connect = 1.5` has no unit", "\"1.5s\" is seconds"),
    ("timeouts", "connect = \"0s\"", "is too short", "allowed is 1ms to 7d"),
    ("timeouts", "first_byte = \"8d\"", "is too long", "allowed is 1ms to 7d"),
    ("timeouts", "first_byte_unknown = \"15m\"", "unknown unit `m`", "did you mean \"15min\"?"),
    ("timeouts", "idle = [\"1s\"]", "is a list, not a length of time", "\"30s\""),
    ("timeouts", "pool_idle = \"soon\"", "does not begin with a number", "\"30s\""),
    ("timeouts", "drain = \"-1s\"", "is below zero", "\"30s\""),
    ("waiting", "interim = \"1ms\"", "is too short", "allowed is 50ms to 300s"),
    ("waiting", "interim = true", "not a length of time", "\"30s\""),
    ("hold", "bytes = \"1GiB\"", "is too large", "allowed is 0B to 64MiB"),
    ("hold", "time = \"\"", "does not begin with a number", "\"30s\""),
    ("bodies", "each = 1.5", "is a number, not a size", "\"8MiB\""),
    ("bodies", "each = -1", "is below zero", "\"64KiB\""),
    ("bodies", "total = \"8mib\"", "unknown unit `mib`", "did you mean \"8MiB\"?"),
    ("bodies", "total = \"1MiB\"", "`bodies.each` (128MiB) is more than `bodies.total` (1MiB)", "raise"),
    ("relay", "http2 = \"2\"", "is none of the choices", "auto, off, always"),
    ("relay", "websocket = true", "is true or false, not text", "write one of: speak, refuse, tunnel"),
    ("upstream.openai", "warm = \"\"", "is empty", "write the name of a model"),
    ("upstream.openai", "warm = 3", "not a model or a table of texts", "write the name of a model"),
    ("upstream.openai", "warm = { body = \"{}\" }", "has no `path`", "write the name of a model"),
    (
        "upstream.openai",
        "warm = { path = \"load\" }",
        "has a `path` that is none",
        "write the name of a model",
    ),
    (
        "upstream.openai",
        "warm = { path = \"/x\", model = \"m\" }",
        "more than one `path` and one `body`",
        "of a model",
    ),
    ("upstream.openai", "websocket = \"on\"", "is none of the choices", "speak, refuse, tunnel"),
    ("limits", "message = \"1KiB\"", "is too small", "allowed is 64KiB to 1GiB"),
    ("relay", "proxy = \"proxy:3128\"", "is no proxy", "http://proxy.example:3128"),
    ("upstream.openai", "proxy = \"ftp://s3cret@p\"", "has a scheme that no proxy has", "socks5h"),
    ("relay", "proxy = []", "is an empty list", "[\"http://proxy.example:3128\", \"direct\"]"),
    ("relay", "proxy = [\"none\", 8]", "is a number, not text", "quotes"),
    (
        "relay",
        "proxy = [\"http://p\", \"s3cret\", \"direct\"]",
        "`relay.proxy` (number 2 of the list) is no proxy",
        "socks5h",
    ),
    ("relay", "proxy = [\"p\"]", "`relay.proxy` is no proxy", "socks5h"),
    ("relay", "proxy = [\"direct\", \"none\"]", "names the same proxy twice", "up to 8"),
    ("limits", "connections = 0", "is out of range", "from 1 to 1000000"),
    ("limits", "head = \"1KiB\"", "is too small", "allowed is 8KiB to 16MiB"),
    ("limits", "stall = 3", "has no unit", "\"3s\" is seconds"),
    ("log", "level = \"loud\"", "is none of the choices", "error, warn, info, debug, trace"),
    ("log", "format = \"xml\"", "is none of the choices", "text, json"),
    ("log", "file = 1", "is a number, not text", "quotes"),
    ("log", "max_size = \"1KiB\"", "is too small", "allowed is 4KiB to"),
    ("history", "enabled = 1", "is a number, not true or false", "without quotes"),
    ("history", "file = 1", "is a number, not text", "quotes"),
    ("history", "max_age = \"10min\"", "is too short", "allowed is 1h to"),
    ("history", "max_size = \"1KiB\"", "is too small", "allowed is 1MiB to"),
    ("alerts", "kinds = \"all\"", "is text, not a list of texts", "[\"one\", \"two\"]"),
    (
        "alerts",
        "kinds = [\"lane\"]",
        "is none of the choices",
        "lane_closed, circuit_open, long_waits, quota_spent, rule",
    ),
    ("alerts", "lane_closed = \"0s\"", "is too short", "allowed is 1ms to 7d"),
    ("alerts", "long_wait = 50", "has no unit", "\"50s\" is seconds"),
    ("alerts", "long_waits = 0", "is out of range", "from 1 to 1000"),
    ("alerts", "every = \"1ms\"", "is too short", "allowed is 1s to 7d"),
    ("alerts", "log = 1", "is a number, not true or false", "without quotes"),
    ("alerts", "webhook = \"https://u:s3@a/x\"", "has a user name or password", "scheme, host and path"),
    (
        "alerts",
        "webhook = \"https://a/s3 x\"",
        "has a character that a URL cannot have",
        "scheme, host and path",
    ),
    ("alerts", "command = \"s3\"", "is text, not a list of texts", "[\"one\", \"two\"]"),
    ("alerts", "command = [\"\"]", "is no command", "the program and its arguments"),
    ("alerts", "desktop = 1", "is a number, not true or false", "without quotes"),
    ("alerts", "within = \"2min\"", "is too long", "allowed is 100ms to 60s"),
    ("otlp", "endpoint = \"ftp://x\"", "", "http"),
    ("otlp", "headers = { \"a b\" = \"s3\" }", "holds what is no header name", "letters, digits"),
    ("otlp", "headers = \"s3\"", "is text, not a table of texts", ""),
    ("otlp", "service_name = 1", "is a number, not text", "quotes"),
    ("otlp", "traces = 1", "is a number, not true or false", "without quotes"),
    ("otlp", "metrics = 1", "is a number, not true or false", "without quotes"),
    ("otlp", "interval = \"1ms\"", "is too short", "allowed is 100ms to 1h"),
    ("otlp", "propagate = 1", "is a number, not true or false", "without quotes"),
    ("snapshots", "enabled = \"yes\"", "is text, not true or false", "without quotes"),
    ("snapshots", "folder = 1", "is a number, not text", "quotes"),
    ("snapshots", "outcomes = [\"bad\"]", "is none of the choices", "served, passed, returned"),
    ("snapshots", "max_size = \"1KiB\"", "is too small", "allowed is 16KiB to 64MiB"),
    ("snapshots", "max_count = 0", "is out of range", "from 1 to 10000"),
    ("snapshots", "max_total = \"1KiB\"", "is too small", "allowed is 64KiB to"),
    ("log", "max_files = 0", "is out of range", "from 1 to 1000"),
    ("client.codex", "profile = \"none\"", "names no profile", "profiles: auto, batch"),
    ("client.codex", "limit = \"10ms\"", "is too short", "allowed is 1s to 7d"),
    ("client.codex", "cut_fatal = 1", "is a number, not true or false", "without quotes"),
    ("client.codex", "cuts = 101", "is out of range", "from 0 to 100"),
    ("client.other", "cuts = 1", "unknown key `cuts`", "is a key of [client.codex] alone"),
    ("client.codx", "cuts = 1", "unknown key `codx`", "did you mean `codex`?"),
    ("upstream.x", "allow_plaintext = true", "upstream `x` has no `url`", "url = "),
    ("upstream.openai", "url = \"https://u:p@a\"", "`upstream.openai.url` has a user name", "headers"),
    ("upstream.openai", "headers = { host = \"a\" }", "which belongs to the connection", "leave it out"),
    ("upstream.openai", "headers = { \"a b\" = \"a\" }", "holds what is no header name", "letters"),
    ("upstream.openai", "headers = { a = \"s3\\ncret\" }", "that no header can have", "one line"),
    ("upstream.openai", "headers = { a = 1 }", "is a number, not text", "quotes"),
    ("upstream.openai", "api_key = \"s3 cret\"", "`upstream.openai.api_key` is no key", "one word"),
    ("upstream.openai", "api_key = \"\"", "`upstream.openai.api_key` is no key", "one word"),
    ("upstream.openai", "allow_plaintext = \"yes\"", "is text, not true or false", "true or false"),
    ("upstream.openai", "strip_v1 = 0", "is a number, not true or false", "true or false"),
    ("upstream.openai", "max_running = 0", "is out of range", "from 1 to 100000"),
    ("upstream.openai", "max_running = \"all\"", "is text, not a whole number", "from 1 to 100000"),
    (
        "upstream.openai",
        "dialects = [\"english\"]",
        "is none of the choices",
        "openai_responses, openai_chat",
    ),
    ("pool.x", "strategy = \"sticky\"", "pool `x` has no `members`", "members = "),
    ("pool.x", "members = []", "`pool.x.members = []` is empty", "members = "),
    ("pool.x", "members = \"openai\"", "is text, not a list of texts", "[\"one\", \"two\"]"),
    ("pool.x", "members = [\"opnai\"]", "names no upstream", "did you mean `openai`?"),
    ("pool.x", "members = [\"openai\", \"x\"]", "lists `x`, which is a pool", "members of the other pool"),
    ("pool.x", "members = [\"openai\", \"openai\"]", "lists `openai` twice", "`weights`"),
    ("pool.openai", "members = [\"openai\"]", "`openai` is an upstream and a pool", "a name of its own"),
    (
        "pool.x",
        "members = [\"openai\"]\nweights = { gemini = 2 }",
        "none of its members",
        "take the weight out",
    ),
    ("pool.x", "members = [\"openai\"]\nweights = { openai = 0 }", "is out of range", "from 1 to 1000"),
    ("pool.x", "members = [\"openai\"]\nstrategy = \"best\"", "is none of the choices", "in_order, weighted"),
    ("breaker", "failures = 0", "is out of range", "from 1 to 1000"),
    ("breaker", "window = \"0s\"", "is too short", "allowed is"),
    ("breaker", "pause = \"1ms\"", "is too short", "allowed is 100ms to"),
    ("breaker", "alone = \"no\"", "is text, not true or false", "true or false"),
    ("relay", "max_running = 1", "unknown key `max_running`", "is a key of [upstream.NAME]"),
    ("upstream.\"a b\"", "url = \"http://a\"", "this cannot be a name", "1 to 64 letters"),
    ("profile.auto", "sends = 1", "this cannot be a name", "is not `auto`"),
    ("profile.x", "based_on = \"y\"", "names no profile", "profiles: "),
    ("profile.x", "based_on = \"x\"", "leads back to itself", "a profile that ships"),
    ("profile.strict", "based_on = \"batch\"", "ships with the relay", "profile of your own"),
    ("profile.x", "gate = 1", "is a number, not true or false", "without quotes"),
    ("profile.x", "gated_sends = 0", "is out of range", "from 1 to 1000"),
    ("profile.x", "sends = \"many\"", "is no count", "\"unlimited\""),
    ("profile.x", "sends = 1001", "is out of range", "from 0 to 1000"),
    ("profile.x", "failed_sends = -1", "is out of range", "from 0 to 1000"),
    ("profile.x", "throttled_sends = \"x\"", "is no count", "\"unlimited\""),
    ("profile.x", "capacity_sends = -1", "is out of range", "from 0 to 1000"),
    ("profile.x", "never_sent_base = \"31s\"", "never_sent_cap 30s is below never_sent_base 31s", "set"),
    ("profile.x", "never_sent_cap = \"1ms\"", "is too short", "allowed is 10ms to 7d"),
    ("profile.x", "ambiguous_resends = 11", "is out of range", "from 0 to 10"),
    ("profile.x", "patience = 120", "has no unit", "\"120s\" is seconds"),
    ("profile.x", "client_limit = \"halves\"", "is none of the choices", "replaces, shortens, ignored"),
    ("profile.x", "serves_resends = 1", "is a number, not true or false", "true or false"),
    ("profile.x", "base = \"1ms\"", "is too short", "allowed is 10ms to 7d"),
    ("profile.x", "base = \"31s\"", "profile `x`: cap 30s is below base 31s", "set cap to base or more"),
    ("profile.x", "factor = 0.5", "is out of range", "from 1 to 10"),
    ("profile.x", "factor = nan", "is out of range", "from 1 to 10"),
    ("profile.x", "cap = \"0s\"", "is too short", "allowed is 10ms to 7d"),
    ("profile.x", "jitter = \"8d\"", "is too long", "allowed is 0s to 7d"),
    ("profile.x", "overloaded_base = \"2min\"", "overloaded_cap 60s is below overloaded_base 120s", "set"),
    ("profile.x", "overloaded_factor = \"2\"", "is text, not a number", "from 1 to 10"),
    ("profile.x", "overloaded_cap = \"1s\"", "overloaded_cap 1s is below overloaded_base 4s", "set"),
    ("profile.x", "useless_floor = 1", "has no unit", "\"1s\" is seconds"),
    ("[route]", "path = \"v1\"", "is no path", "begins with /"),
    ("[route]", "path = \"/v1/chat/*\"", "has a `*`, which stands for nothing", "a path fits all below it"),
    ("[route]", "path = \"/*/chat\"", "has a `*`, which stands for nothing", "leave it out"),
    ("[route]", "client = \"curl\"", "is none of the choices", "codex, claude_code, stainless, gemini_cli"),
    ("[route]", "model = \"a*b\"", "is no model", "at its end"),
    (
        "[route]",
        "upstream = \"http://a\"",
        "names no upstream",
        "upstreams: anthropic, chatgpt, gemini, openai",
    ),
    ("[route]", "max_running = 100001", "is out of range", "from 1 to 100000"),
    ("[route]", "profile = \"stict\"", "names no profile", "did you mean `strict`?"),
    (
        "[route]",
        "base = \"10s\"",
        "with profile `opencodex`, the route's cap 5s is below base 10s",
        "name one",
    ),
    ("route", "path = \"/v1\"", "`route` is no list of tables", "[[route]]"),
    ("fallback", "model = \"x\"", "`fallback` is no list of tables", "[[fallback]]"),
    ("[fallback]", "to = [\"y\"]", "the fallback has no `model`", "model = "),
    ("[fallback]", "model = \"x\"", "the fallback has no `to`", "to = "),
    ("[fallback]", "model = \"x\"\nto = []", "is empty", "to = "),
    ("[fallback]", "model = \"a*b\"\nto = [\"y\"]", "is no model", "at its end"),
    ("[fallback]", "model = \"x\"\nto = [\"y*\"]", "holds what is no model", "without *"),
    ("[fallback]", "model = \"x\"\nto = [\"y\", \"x\"]", "the fallback names `x` twice", "each of them once"),
    ("[fallback]", "model = \"x\"\nto = [\"y\"]\nafter = \"1ms\"", "is too short", "allowed is 1s to 7d"),
    (
        "[fallback]",
        "model = \"x\"\nto = [\"y\"]\nupstream = \"opnai\"",
        "names no upstream",
        "did you mean `openai`?",
    ),
    (
        "[fallback]",
        "model = \"gpt-*\"\nto = [\"y\"]\n[[fallback]]\nmodel = \"gpt-x\"\nto = [\"z\"]",
        "the fallback is never reached: the one in line",
        "put it before the other",
    ),
    ("rule", "fault = \"overloaded\"", "`rule` is no list of tables", "[[rule]]"),
    ("[rule]", "status = 503", "the rule has no `fault`", "overloaded"),
    ("[rule]", "fault = \"overloaded\"", "the rule fits every answer", "`phrase`"),
    (
        "[rule]",
        "status = 503\nfault = \"overloaded\"\nresend = \"final\"\nfloor = \"5s\"",
        "the rule has a `floor`, and what it fits is final",
        "leave out `floor`",
    ),
    (
        "[rule]",
        "status = 503\nfault = \"quota_spent\"\nfloor = \"5s\"",
        "the rule has a `floor`",
        "leave out",
    ),
    ("[rule]", "status = 503\nfault = \"no_answer\"", "is none of the choices", "at_capacity, overloaded"),
    ("[rule]", "fault = \"overloaded\"\nstatus = 200", "holds what is no status", "5xx"),
    ("[rule]", "fault = \"overloaded\"\nstatus = [429, \"6xx\"]", "holds what is no status", "5xx"),
    ("[rule]", "fault = \"overloaded\"\nstatus = []", "is empty", "5xx"),
    ("[rule]", "fault = \"overloaded\"\nheader = \"x\"", "is text, not a table", "equals = "),
    ("[rule]", "fault = \"overloaded\"\nheader = { equals = \"x\" }", "has no `name`", "at_least"),
    ("[rule]", "fault = \"overloaded\"\nheader = { name = \"x\" }", "has no test", "at_least"),
    ("[rule]", "fault = \"overloaded\"\nheader = { name = \"a b\", equals = 1 }", "no header's", "hyphens"),
    (
        "[rule]",
        "fault = \"overloaded\"\nheader = { name = \"x\", at_least = \"full\" }",
        "is no number",
        "at_least",
    ),
    (
        "[rule]",
        "fault = \"overloaded\"\npath = { at = \"a\", equals = 1, contains = \"b\" }",
        "more than one test",
        "at",
    ),
    ("[rule]", "fault = \"overloaded\"\npath = { at = \"a..b\", equals = 1 }", "is no path", "dots"),
    ("[rule]", "fault = \"overloaded\"\npath = { at = \"a\", matches = 1 }", "unknown `matches`", "equals"),
    ("[rule]", "fault = \"overloaded\"\nphrase = \" \"", "is empty", "words"),
    (
        "[rule]",
        "status = 503\nfault = \"overloaded\"\ndialect = \"grpc\"",
        "is none of the choices",
        "gemini, ollama",
    ),
    ("[rule]", "status = 503\nfault = \"overloaded\"\nupstream = \"x\"", "names no upstream", "upstreams: "),
    (
        "[rule]",
        "status = 503\nfault = \"overloaded\"\nresend = \"always\"",
        "is none of the choices",
        "refused, failed",
    ),
    ("[rule]", "status = 503\nfault = \"overloaded\"\nfloor = 5", "has no unit", "\"5s\""),
    (
        "[rule]",
        "status = 503\nfault = \"overloaded\"\nfault_ = 1",
        "unknown key `fault_`",
        "did you mean `fault`?",
    ),
];

#[test]
fn every_key_of_a_rule_is_read() {
    use relay_core::Fault;
    use relay_core::dialect::{Rule, Sign, Statuses, Test};
    use relay_core::evidence::Says;
    let config = good(
        r#"
        [[rule]]
        status = [429, "5xx"]
        header = { name = "X-Load", at_least = "95%" }
        path = { at = "error.details.*.reason", equals = "BUSY*" }
        phrase = "Come Back"
        inside = true
        dialect = "gemini"
        upstream = "openai"
        fault = "model_loading"
        floor = "5s"
        alert = true
        [[rule]]
        status = 500
        fault = "server_failed"
        [[rule]]
        header = { name = "x", contains = "No" }
        fault = "quota_spent"
        [[rule]]
        path = { at = "code", equals = 7 }
        fault = "throttled"
        resend = "maybe_ran"
        "#,
    );
    let [first, second, third, fourth] = config.rules.as_slice() else { panic!("{:?}", config.rules) };
    assert_eq!((first.dialect, first.upstream.as_deref()), (Some("gemini"), Some("openai")));
    let whole = Rule {
        sign: Sign::All(vec![
            Sign::Header("x-load".into(), Test::AtLeast(0.95)),
            Sign::Path("error.details.*.reason".into(), Test::Is("BUSY*".into())),
            Sign::Sentence("come back".into()),
        ]),
        on: Statuses::Chosen { among: vec![429..=429, 500..=599], inside: true },
        fault: Fault::ModelLoading,
        says: Says::Refused,
        floor: ms(5000),
        source: "[[rule]] number 1".into(),
    };
    assert_eq!(*first.rule, whole);
    assert_eq!(config.rules.iter().map(|rule| rule.alert).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!((second.rule.says, second.rule.sign.is_code()), (Says::Failed, false));
    assert_eq!(third.rule.sign, Sign::All(vec![Sign::Header("x".into(), Test::Has("no".into()))]));
    assert_eq!(third.rule.says, Says::Final);
    assert_eq!(fourth.rule.sign, Sign::All(vec![Sign::Path("code".into(), Test::Is("7".into()))]));
    assert_eq!(fourth.rule.says, Says::MaybeRan);
    assert_eq!(config.rules_for("gemini", "openai").len(), 4);
    assert_eq!(config.rules_for("gemini", "chatgpt").len(), 3);
    assert_eq!(config.rules_for("ollama", "openai").len(), 3);
}

#[test]
fn each_key_refuses_what_it_cannot_be() {
    for (section, line, what, hint) in REFUSED {
        let text = format!("[{section}]\n{line}\n");
        let error = load_all(&text, &[], Flags::default()).unwrap_err();
        assert_eq!(error.issues.len(), 1, "{text}{error}");
        let issue = error.issues.first().unwrap();
        assert!(issue.what.contains(what) && issue.hint.contains(hint), "{text}{error}");
        assert!(issue.at.starts_with("config.toml:"), "{error}");
        assert!(!error.to_string().contains("s3"), "{error}");
    }
}

#[test]
fn no_more_names_are_taken_than_a_certificate_can_hold() {
    let with = |count: usize| {
        let names: Vec<_> = (0..count).map(|at| format!("\"{at}.{}\"", ["abcdefgh"; 26].join("."))).collect();
        load_all(&format!("[relay]\nnames = [{}]\n", names.join(",")), &[], Flags::default())
    };
    assert!(with(100).is_ok());
    let error = with(101).unwrap_err().to_string();
    assert!(error.contains("`relay.names` holds too many names") && error.contains("at most 100"), "{error}");
}
