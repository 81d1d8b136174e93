//! What `config show` says of each key.

use super::*;
use relay_core::config::shipped_profiles;

fn of<'a>(loaded: &'a Loaded, section: &str, key: &str) -> (Option<&'a str>, &'a str) {
    let shown = loaded.shown.iter().find(|shown| shown.section == section && shown.key == key);
    let shown = shown.unwrap_or_else(|| panic!("{section} {key}"));
    (shown.value.as_deref(), shown.origin.as_str())
}

/// What is shown, as a file.
fn as_file(loaded: &Loaded) -> String {
    let mut text = String::new();
    let mut last = None;
    for shown in &loaded.shown {
        if shown.value.is_none() && !shown.key.is_empty() {
            continue;
        }
        let section = Some((&shown.section, shown.nth));
        if section != last {
            text += &format!("{}\n", shown.section);
            last = section;
        }
        text += &shown.value.as_ref().map_or(String::new(), |value| format!("{} = {value}\n", shown.key));
    }
    text
}

#[test]
fn every_key_names_the_layer_that_won() {
    let text =
        "[relay]\nport = 3\nprofile = \"strict\"\nupstream = \"openai\"\n\n[timeouts]\nidle = \"5s\"\n";
    let variables = [("STEADY_RELAY_PROFILE", "batch"), ("UPSTREAM_URL", "http://localhost:1/v1")];
    let flags = Flags { port: Some("9".into()), ..Flags::default() };
    let loaded = load_all(text, &variables, flags).unwrap();
    assert_eq!(of(&loaded, "[relay]", "port"), (Some("9"), "--port"));
    assert_eq!(of(&loaded, "[relay]", "profile"), (Some("\"batch\""), "STEADY_RELAY_PROFILE"));
    assert_eq!(of(&loaded, "[relay]", "upstream"), (Some("\"http://localhost:1/v1\""), "UPSTREAM_URL"));
    assert_eq!(of(&loaded, "[relay]", "listen"), (Some("\"localhost\""), "default"));
    assert_eq!(of(&loaded, "[relay]", "token"), (None, "default"));
    assert_eq!(of(&loaded, "[timeouts]", "idle"), (Some("\"5s\""), "config.toml:7"));
    assert_eq!(of(&loaded, "[client.codex]", "cuts"), (Some("3"), "default"));
    assert_eq!(of(&loaded, "[profile.strict]", "sends"), (Some("3"), "default"));
    let url = Some("\"https://api.openai.com/v1\"");
    assert_eq!(of(&loaded, "[upstream.openai]", "url"), (url, "default"));
}

#[test]
fn env_files_and_numbers_of_older_tools_are_shown_where_they_count() {
    let env = "MAX_RETRIES=3\nTOTAL_TIMEOUT=9\nCODEX_ENDPOINT=http://localhost:1\nCODEX_API_KEY=sk-hunter2\nLOG_LEVEL=debug\n";
    let flags =
        Flags { env_file: Some("x.env".into()), config: Some("config.toml".into()), ..Flags::default() };
    let read = |path: &Path| Ok(if path == Path::new("x.env") { env.into() } else { Vec::new() });
    let loaded = load(&flags, &NO_VARIABLES, &read).unwrap();
    assert_eq!(of(&loaded, "[profile.interactive]", "sends"), (Some("4"), "x.env:1: MAX_RETRIES"));
    assert_eq!(of(&loaded, "[profile.batch]", "patience"), (Some("\"9s\""), "x.env:2: TOTAL_TIMEOUT"));
    let upstream = of(&loaded, "[relay]", "upstream").1;
    assert_eq!(upstream, "x.env:3: CODEX_ENDPOINT, with the key of x.env:4: CODEX_API_KEY");
    assert_eq!(of(&loaded, "[log]", "level"), (Some("\"debug\""), "x.env:5: LOG_LEVEL"));
    assert!(!format!("{:?}", loaded.shown).contains("hunter2"));
}

#[test]
fn whoever_switches_the_log_off_is_named_and_the_level_that_does_not_count_is_told() {
    let with = |env: &'static str, text: &'static str| {
        let flags =
            Flags { env_file: Some("x.env".into()), config: Some("config.toml".into()), ..Flags::default() };
        let read = |path: &Path| Ok(if path == Path::new("x.env") { env.into() } else { text.into() });
        load(&flags, &NO_VARIABLES, &read).unwrap()
    };
    let off = with("LOG_LEVEL=debug\nENABLE_LOGGING=false\n", "");
    assert_eq!(of(&off, "[log]", "level"), (Some("\"error\""), "x.env:2: ENABLE_LOGGING"));
    let level: Vec<_> = off.notices.iter().filter(|words| words.starts_with("LOG_LEVEL")).collect();
    assert_eq!(level, ["LOG_LEVEL in x.env is ignored, since ENABLE_LOGGING is false"]);
    let ours = with("STEADY_RELAY_LOG_LEVEL=debug\nENABLE_LOGGING=false\n", "");
    assert_eq!(of(&ours, "[log]", "level"), (Some("\"debug\""), "x.env:1: STEADY_RELAY_LOG_LEVEL"));
    let on = with("ENABLE_LOGGING=true\n", "[log]\nlevel = \"trace\"\n");
    assert_eq!(of(&on, "[log]", "level"), (Some("\"trace\""), "config.toml:2"));
}

#[test]
fn a_profile_shows_its_gate_and_who_took_it() {
    let text = "[profile.strict]\ncap = \"9s\"\n[profile.batch]\ngate = true\n";
    let off = Flags { gate: Some("off".into()), ..Flags::default() };
    let [on, off] = [Flags::default(), off].map(|flags| load_all(text, &[], flags).unwrap());
    let gate = |loaded, name: &str| {
        let (value, origin) = of(loaded, &format!("[profile.{name}]"), "gate");
        format!("{} {origin}", value.unwrap_or_default())
    };
    assert_eq!(of(&on, "[relay]", "gate"), (Some("true"), "default"));
    assert_eq!(of(&off, "[relay]", "gate"), (Some("false"), "--gate"));
    assert_eq!([gate(&on, "interactive"), gate(&off, "interactive")], ["true default", "false --gate"]);
    assert_eq!([gate(&on, "strict"), gate(&off, "strict")], ["false config.toml:2", "false config.toml:2"]);
    assert_eq!([gate(&on, "batch"), gate(&off, "batch")], ["true config.toml:4", "true config.toml:4"]);
    assert_eq!(gate(&on, "codex-retry"), "false default");
    // Beside a gate stands no curve, and a count by hand holds everywhere.
    assert_eq!(of(&on, "[profile.interactive]", "base"), (None, "default"));
    assert_eq!(of(&off, "[profile.interactive]", "base"), (Some("\"1s\""), "default"));
    assert_eq!(of(&on, "[profile.interactive]", "sends"), (Some("8"), "default"));
    assert_eq!(of(&on, "[profile.interactive]", "gated_sends"), (Some("40"), "default"));
    assert_eq!(of(&on, "[profile.strict]", "gated_sends"), (None, "default"));
    let by_hand = load_all("", &[("MAX_RETRIES", "3")], Flags::default()).unwrap();
    assert_eq!(of(&by_hand, "[profile.interactive]", "gated_sends"), (None, "default"));
}

#[test]
fn a_certificate_file_from_outside_is_shown_as_added() {
    let loaded = load_all("", &[("SSL_CERT_FILE", "b.pem")], Flags::default()).unwrap();
    assert_eq!(of(&loaded, "[relay]", "ca_file"), (Some("\"b.pem\""), "SSL_CERT_FILE"));
    let loaded =
        load_all("[relay]\nca_file = \"a.pem\"", &[("SSL_CERT_FILE", "b.pem")], Flags::default()).unwrap();
    let both = (Some("\"a.pem\""), "config.toml:2, and SSL_CERT_FILE adds one");
    assert_eq!(of(&loaded, "[relay]", "ca_file"), both);
}

#[cfg(unix)]
#[test]
fn the_folder_for_state_is_shown_wherever_it_comes_from() {
    let env: &[_] = &[("XDG_STATE_HOME", "/state")];
    let shown = |flags| load_all("", env, flags).unwrap();
    let usual = shown(Flags::default());
    assert_eq!(of(&usual, "[relay]", "state_dir"), (Some("\"/state/steady-relay\""), "default"));
    let named = shown(Flags { state_dir: Some("/s".into()), ..Flags::default() });
    assert_eq!(of(&named, "[relay]", "state_dir"), (Some("\"/s\""), "--state-dir"));
}

#[test]
fn no_secret_is_shown() {
    let text = r#"
        [relay]
        token = "hunter2hunter2hunter2"
        [upstream.mine]
        url = "http://localhost:1"
        api_key = "hunter2"
        headers = { "x-a" = "hunter2", "x-b" = ["hunter2", "2"] }
        [upstream.other]
        url = "http://localhost:2"
        proxy = [
            "http://me:hunter2@p.example", # or "http://me:hunter2@q.example"
            "direct",
        ]
        [upstream.other.headers]
        x-c = "hunter2"
        [upstream.openai]
        proxy = [
            "direct", # not "http://me:hunter2@q.example"
        ]
    "#;
    for variables in [&[][..], &[("STEADY_RELAY_TOKEN", "hunter2hunter2hunter2")]] {
        let loaded = load_all(text, variables, Flags::default()).unwrap();
        assert!(!format!("{loaded:?}").contains("hunter2"));
        assert_eq!(of(&loaded, "[relay]", "token").0, Some("\"…\""));
        assert_eq!(of(&loaded, "[upstream.mine]", "api_key").0, Some("\"…\""));
        assert_eq!(of(&loaded, "[upstream.other]", "proxy").0, Some("[\"…\", \"direct\"]"));
        assert_eq!(of(&loaded, "[upstream.openai]", "proxy").0, Some("[\"direct\"]"));
        let headers = Some("{ \"x-a\" = \"…\", \"x-b\" = \"…\" }");
        assert_eq!(of(&loaded, "[upstream.mine]", "headers").0, headers);
        assert_eq!(of(&loaded, "[upstream.other]", "headers").0, Some("{ \"x-c\" = \"…\" }"));
    }
}

#[test]
fn what_is_shown_is_read_as_the_same() {
    let text = r#"
        [relay]
        port = 0
        allowed_origins = [
            "http://localhost:3000", # mine
        ]
        [profile.mine]
        based_on = "opencodex"
        sends = "unlimited"
        cap = '7s'
        [profile.batch]
        never_sent_cap = "3s"
        [profile.strict]
        base = "1s"
        [profile.again]
        based_on = "strict"
        gate = true
        gated_sends = 9
        [client.other]
        profile = "mine"
        [upstream.near]
        url = "http://localhost:1"
        max_running = 8
        [[route]]
        max_running = 7
        path = "/v1/messages"
        upstream = "near"
        [[route]]
        sends = 2
    "#;
    for text in [
        "",
        text,
        "[relay]\ngate = false\n[profile.batch]\ngate = true\n",
        "[[route]]\nmodel = \"o3\"\nsends = 1\n[[route]]\n",
    ] {
        let loaded = load_all(text, &[], Flags::default()).unwrap();
        assert_eq!(good(&as_file(&loaded)), loaded.config, "{}", as_file(&loaded));
    }
}

#[test]
fn times_are_shown_as_the_defaults_are_written() {
    use relay_core::units::{duration, show_duration};
    for key in reference().iter().flat_map(|section| &section.keys) {
        if let Some(time) =
            duration(key.default.trim_matches('"')).ok().filter(|_| key.default.starts_with('"'))
        {
            assert_eq!(format!("\"{}\"", show_duration(time)), key.default, "{}", key.name);
        }
    }
    let loaded = load_all("", &[], Flags::default()).unwrap();
    assert_eq!(of(&loaded, "[profile.interactive]", "patience").0, Some("\"120s\""));
    assert_eq!(of(&loaded, "[profile.batch]", "patience").0, Some("\"480s\""));
    assert_eq!(of(&loaded, "[profile.patient]", "patience").0, Some("\"6h\""));
}

#[test]
fn every_number_of_a_profile_is_shown() {
    let docs = reference().into_iter().find(|section| section.head == "[profile.NAME]").unwrap();
    for (name, profile) in shipped_profiles() {
        let numbers = show::numbers(&profile);
        let names: Vec<_> = numbers.iter().map(|(name, _)| *name).collect();
        let expected: Vec<_> =
            docs.keys.iter().map(|key| key.name).filter(|name| *name != "based_on").collect();
        assert_eq!(names, expected);
        let lines = numbers.iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", value.as_ref()?)));
        let lines: String = lines.collect();
        assert_eq!(good(&format!("[profile.{name}]\n{lines}")).profiles.get(&name), Some(&profile));
    }
}
