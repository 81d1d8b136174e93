//! Env files, the older names, and what wins over what.

use super::*;
use relay_core::ClientLimit;
use relay_core::config::{LogFormat, LogLevel};

/// Loads with these files; the configuration folder is `/c/steady-relay`.
fn load_files(
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
    flags: Flags,
) -> Result<Loaded, SettingsError> {
    let home = ["XDG_CONFIG_HOME", "HOME", "APPDATA"].map(|name| (name, "/c"));
    let env = [&home, variables].concat();
    load(&flags, &&env[..], &|path| {
        if path.extension().is_some_and(|end| end == "pem") {
            return Ok(Vec::new());
        }
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    })
}

fn with_env_file(text: &str) -> Loaded {
    load_files(&[("/e/relay.env", text)], &[], named()).unwrap_or_else(|error| panic!("{error}"))
}

fn named() -> Flags {
    Flags { env_file: Some("/e/relay.env".into()), ..Flags::default() }
}

#[test]
fn flags_environment_named_file_usual_file_and_configuration_file_in_this_order() {
    let files = [
        ("/e/relay.env", "STEADY_RELAY_PORT=3\n"),
        ("/c/steady-relay/env", "STEADY_RELAY_PORT=4\n"),
        ("/c/steady-relay/config.toml", "[relay]\nport = 5\n"),
    ];
    let process = [("PORT", "2")];
    let flags = Flags { port: Some("1".into()), ..named() };
    let port = |skip: usize, variables: &[(&str, &str)], flags: Flags| {
        load_files(&files[skip..], variables, flags).unwrap().config.port
    };
    assert_eq!(port(0, &process, flags), 1);
    assert_eq!(port(0, &process, named()), 2);
    assert_eq!(port(0, &[], named()), 3);
    assert_eq!(port(1, &[], Flags::default()), 4);
    assert_eq!(port(2, &[], Flags::default()), 5);
    assert_eq!(port(0, &[("STEADY_RELAY_ENV_FILE", "/e/relay.env")], Flags::default()), 3);
}

#[test]
fn an_env_file_that_is_named_has_to_be_there() {
    assert_snapshot!(load_files(&[], &[], named()).unwrap_err(), @r"
    error: /e/relay.env: there is no such file
    hint: check the path
    ");
    assert!(load_files(&[], &[], Flags::default()).is_ok());
    let folder = load(&named(), &NO_VARIABLES, &|_| Err(io::ErrorKind::IsADirectory.into())).unwrap_err();
    assert_snapshot!(folder, @r"
    error: /e/relay.env: this is a folder, not a file
    hint: name the file in it, such as relay.env
    ");
}

#[test]
fn every_older_name_is_read_from_an_env_file_with_a_notice() {
    let loaded = with_env_file(
        "UPSTREAM_URL=http://localhost:1\nPORT=2\nMAX_RETRIES=3\nTOTAL_TIMEOUT=90\nLOG_LEVEL=WARNING\n\
         LOG_FILE=logs/x.log\nSSL_CERT_FILE=ca.pem\nCODEX_API_KEY=sk-1\nOTHER=1\n",
    );
    let config = loaded.config;
    assert_eq!((config.port, config.log.level), (2, LogLevel::Warn));
    let numbers = config.numbers;
    assert_eq!((numbers.sends, numbers.patience), (Some(Some(4)), Some(ms(90_000))));
    assert_eq!(numbers.client_limit, Some(ClientLimit::Shortens));
    assert_eq!((config.log.file, config.ca_files), (Some("/e/logs/x.log".into()), vec!["/e/ca.pem".into()]));
    let Some(UpstreamChoice::Url(upstream)) = config.upstream else { panic!("a URL") };
    assert_eq!(upstream.api_key.unwrap().expose(), "sk-1");
    assert_snapshot!(loaded.notices.join("\n"), @r"
    PORT in /e/relay.env is an older name and still read: write STEADY_RELAY_PORT
    UPSTREAM_URL in /e/relay.env is an older name and still read: write STEADY_RELAY_UPSTREAM
    LOG_LEVEL in /e/relay.env is an older name and still read: write STEADY_RELAY_LOG_LEVEL
    LOG_FILE in /e/relay.env is an older name and still read: write STEADY_RELAY_LOG_FILE
    MAX_RETRIES in /e/relay.env is an older name and still read: write `sends` in a [profile.NAME]
    TOTAL_TIMEOUT in /e/relay.env is an older name and still read: write `patience` in a [profile.NAME]
    CODEX_API_KEY in /e/relay.env is an older name and still read: write `api_key` in an [upstream.NAME]
    ");
}

#[test]
fn names_that_many_programs_share_do_not_count_in_the_process_environment() {
    let shared = [
        ("LOG_LEVEL", "verbose"),
        ("LOG_FILE", "/var/log/other.log"),
        ("ENABLE_LOGGING", "maybe"),
        ("CODEX_API_KEY", "sk-of-codex"),
        ("UPSTREAM_URL", "http://localhost:1"),
    ];
    let config = load_files(&[], &shared, Flags::default()).unwrap().config;
    assert_eq!(config.log, Config::default().log);
    assert!(!format!("{config:?}").contains("Secret"));
}

#[test]
fn the_log_is_set_by_flag_variable_and_older_name() {
    let level = |text: &str, flag: Option<&str>| {
        let flags = Flags { log_level: flag.map(str::to_owned), ..named() };
        load_files(&[("/e/relay.env", text)], &[], flags).unwrap().config.log.level
    };
    assert_eq!(level("ENABLE_LOGGING=False\n", None), LogLevel::Error);
    assert_eq!(level("ENABLE_LOGGING=False\nLOG_LEVEL=DEBUG\n", None), LogLevel::Error);
    assert_eq!(level("ENABLE_LOGGING=True\nLOG_LEVEL=DEBUG\n", None), LogLevel::Debug);
    assert_eq!(level("ENABLE_LOGGING=no\nSTEADY_RELAY_LOG_LEVEL=warn\n", None), LogLevel::Warn);
    assert_eq!(level("ENABLE_LOGGING=no\n", Some("trace")), LogLevel::Trace);
    assert_eq!(level("LOG_LEVEL=CRITICAL\n", None), LogLevel::Error);
    // Of two files the stronger one has the say.
    let both = |named_says: &str, usual_says: &str| {
        let files = [("/e/relay.env", named_says), ("/c/steady-relay/env", usual_says)];
        load_files(&files, &[], named()).unwrap().config.log.level
    };
    assert_eq!(both("LOG_LEVEL=debug\n", "ENABLE_LOGGING=no\n"), LogLevel::Debug);
    assert_eq!(both("ENABLE_LOGGING=no\n", "STEADY_RELAY_LOG_LEVEL=debug\n"), LogLevel::Error);
    let flags = Flags { log_format: Some("json".into()), log_file: Some("l.log".into()), ..Flags::default() };
    let log = load_files(&[], &[("STEADY_RELAY_LOG_FORMAT", "text")], flags).unwrap().config.log;
    assert_eq!((log.format, log.file), (LogFormat::Json, Some("l.log".into())));
}

#[test]
fn a_key_goes_only_where_the_same_file_or_our_own_says() {
    let with = |text: &str, file: &str, variables: &[(&str, &str)], flags: Flags| {
        let files = [("/e/relay.env", text), ("/c/steady-relay/config.toml", file)];
        let loaded = load_files(&files, variables, flags).unwrap();
        let config = &loaded.config;
        let upstream =
            config.upstream.as_ref().and_then(|choice| Upstream::chosen(choice, &config.upstreams));
        let key = upstream.and_then(|upstream| upstream.api_key.as_ref()).map(|key| key.expose().to_owned());
        (key, loaded.notices.iter().any(|words| words.contains("CODEX_API_KEY in /e/relay.env is not used")))
    };
    let both = "CODEX_ENDPOINT=https://a.example/v1\nCODEX_API_KEY=sk-1\n";
    let alone = "CODEX_API_KEY=sk-1\n";
    let ours = "[relay]\nupstream = \"https://b.example\"\n";
    let used = (Some("sk-1".to_owned()), false);
    let not_used = (None, true);
    let flags = || Flags { upstream: Some("https://evil.example".into()), ..named() };
    assert_eq!(with(both, "", &[], named()), used);
    assert_eq!(with(alone, ours, &[], named()), used);
    assert_eq!(with(both, ours, &[], named()), used, "the env file's own upstream wins");
    assert_eq!(with(alone, "", &[], named()), not_used);
    assert_eq!(with(both, "", &[], flags()), not_used);
    assert_eq!(with(alone, ours, &[], flags()), not_used);
    assert_eq!(with(both, "", &[("UPSTREAM_URL", "https://evil.example")], named()), not_used);
    let named_entry = "STEADY_RELAY_UPSTREAM=openai\nCODEX_API_KEY=sk-1\n";
    assert_eq!(with(named_entry, "[upstream.openai]\napi_key = \"sk-2\"\n", &[], named()), used);
}

#[test]
fn no_key_goes_over_plain_http_to_another_host() {
    let text = "CODEX_ENDPOINT=http://10.0.0.7/v1\nCODEX_API_KEY=sk-1\n";
    assert_snapshot!(load_files(&[("/e/relay.env", text)], &[], named()).unwrap_err(), @r"
    error: /e/relay.env:2: CODEX_API_KEY: the key would go to 10.0.0.7 over plain http
    hint: use https, or say allow_plaintext = true in the upstream's own entry
    ");
    let entry = "[upstream.x]\nurl = \"http://10.0.0.7\"\napi_key = \"sk-1\"\n";
    assert_snapshot!(bad(entry), @r"
    error: config.toml:3:11: the key would go to 10.0.0.7 over plain http
      3 | api_key = …
        |           ^
    hint: use https, or say allow_plaintext = true in the upstream's own entry
    ");
    good(&format!("{entry}allow_plaintext = true\n"));
    good("[upstream.x]\nurl = \"http://localhost:9\"\napi_key = \"sk-1\"\n");
}

#[test]
fn what_is_wrong_in_an_env_file_names_its_line_and_no_secret() {
    let text = "PORT=hunter\nSTEADY_RELAY_TOKEN=hunter2\nhunter2\nSTEADY_RELAY_PROT=hunter2\nMAX_RETRIES=many\n\
                TOTAL_TIMEOUT=-1\nENABLE_LOGGING=perhaps\nSTEADY_RELAY_LOG_LEVEL=loud\nUPSTREAM_UL=http://a\n\
                STEADY_RELAY_LOG_FORMAT=xml\nCODEX_API_KEY='a b'\n";
    let error = load_files(&[("/e/relay.env", text)], &[], named()).unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
    assert_snapshot!(error, @r"
    error: /e/relay.env:1: PORT: `hunter` is no port
    hint: a port is a number from 0 to 65535
    error: /e/relay.env:2: STEADY_RELAY_TOKEN: the value is too short
    hint: a token has 16 to 1024 letters, digits and signs of ASCII, and no space
    error: /e/relay.env:3: this line has no `=`
    hint: write NAME=value, and # before a comment
    error: /e/relay.env:4: STEADY_RELAY_PROT: there is no such setting
    hint: did you mean `STEADY_RELAY_PORT`?
    error: /e/relay.env:5: MAX_RETRIES: `many` is no count
    hint: write a whole number from 0 to 999
    error: /e/relay.env:6: TOTAL_TIMEOUT: `-1` is no number of seconds
    hint: write seconds, such as 120
    error: /e/relay.env:7: ENABLE_LOGGING: `perhaps` is neither true nor false
    hint: write on or off, or true or false
    error: /e/relay.env:8: STEADY_RELAY_LOG_LEVEL: `loud` is no level
    hint: write one of: error, warn, info, debug, trace
    error: /e/relay.env:10: STEADY_RELAY_LOG_FORMAT: `xml` is no format
    hint: write text or json
    error: /e/relay.env:11: CODEX_API_KEY: the value is no key
    hint: a key is one word of letters, digits and signs of ASCII
    ");
    let loaded = with_env_file("UPSTREAM_UL=http://a\nOPENAI_API_KEY=sk-other\nHOST=x\n");
    assert_eq!(loaded.notices, ["UPSTREAM_UL in /e/relay.env is not read: did you mean `UPSTREAM_URL`?"]);
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_without_its_value() {
    let told = |variables: &[(&str, &str)], text: &str| {
        let files = [("/c/steady-relay/config.toml", text)];
        load_files(&files, variables, Flags::default()).unwrap().notices
    };
    let words = "names no proxy that can be used, and is passed over: write it as scheme://host:port, with one of \
                 http, https, socks4, socks4a, socks5, socks5h";
    for value in ["foo://me:hunter2@x", "http://", "a b", "http://[::1"] {
        assert_eq!(told(&[("HTTPS_PROXY", value)], ""), [format!("HTTPS_PROXY in the environment {words}")]);
    }
    let lower = [
        ("http_proxy", "foo://x"),
        ("all_proxy", "foo://x"),
        ("HTTPS_PROXY", ""),
        ("https_proxy", "foo://x"),
    ];
    let names: Vec<_> = told(&lower, "").iter().map(|words| words[..10].to_owned()).collect();
    assert_eq!(names, ["http_proxy", "all_proxy "]);
    for value in ["http://p:3128", "p.example:3128", "p.example", "socks5h://me:pw@p"] {
        assert_eq!(told(&[("HTTPS_PROXY", value)], ""), Vec::<String>::new(), "{value}");
    }
    assert!(told(&[("HTTPS_PROXY", "foo://x")], "[relay]\nproxy = \"none\"\n").is_empty());
    let own = "[relay]\nproxy = \"none\"\n[upstream.openai]\nproxy = \"system\"\n";
    assert_eq!(told(&[("HTTPS_PROXY", "foo://x")], own).len(), 1);
}

#[test]
fn an_env_file_may_name_the_configuration_file() {
    let files = [("/e/relay.env", "STEADY_RELAY_CONFIG=my.toml\n"), ("/e/my.toml", "[relay]\nport = 7\n")];
    let loaded = load_files(&files, &[], named()).unwrap();
    assert_eq!((loaded.config.port, loaded.file), (7, Some("/e/my.toml".into())));
}

#[test]
fn the_mode_of_an_older_tool_is_accepted_and_does_nothing() {
    let mode = |mode: &str| load_files(&[], &[], Flags { mode: Some(mode.into()), ..Flags::default() });
    let loaded = mode("proxy").unwrap();
    assert_eq!(loaded.config, load_files(&[], &[], Flags::default()).unwrap().config);
    assert_eq!(loaded.notices, ["--mode proxy is an older flag: this is always a proxy, leave it out"]);
    assert_snapshot!(mode("server").unwrap_err(), @r"
    error: --mode: the only mode is `proxy`
    hint: leave it out; `steady-relay --help` shows what there is
    ");
}

#[test]
fn a_variable_of_ours_that_is_none_is_told_with_the_nearest_name_and_stops_nothing() {
    let variables = [
        ("STEADY_RELAY_PROT", "hunter2"),
        ("STEADY_RELAY_PORT", "5"),
        ("steady_relay_upstreem", "hunter2"),
        ("STEADY_RELAY_ENVFILE", "hunter2"),
        ("STEADY_RELAY_EMPTY", ""),
        ("STEADY_RELAY_\n[done]", "hunter2"),
        ("STEADY_RELAYS", "hunter2"),
        ("STEADY", "hunter2"),
        ("PROT", "hunter2"),
    ];
    let loaded = load_files(&[], &variables, Flags::default()).unwrap();
    let names = "names: STEADY_RELAY_LISTEN, STEADY_RELAY_PORT, STEADY_RELAY_TOKEN, STEADY_RELAY_UPSTREAM, \
                 STEADY_RELAY_PROFILE, STEADY_RELAY_GATE, STEADY_RELAY_TLS, STEADY_RELAY_METRICS_PORT, STEADY_RELAY_STATE_DIR, STEADY_RELAY_LANG, STEADY_RELAY_LOG_LEVEL, \
                 STEADY_RELAY_LOG_FORMAT, STEADY_RELAY_LOG_FILE, STEADY_RELAY_CONFIG, STEADY_RELAY_ENV_FILE";
    assert_eq!(
        loaded.notices,
        [
            format!("STEADY_RELAY_?[done] in the environment is not read: {names}"),
            "STEADY_RELAY_ENVFILE in the environment is not read: did you mean `STEADY_RELAY_ENV_FILE`?"
                .into(),
            "STEADY_RELAY_PROT in the environment is not read: did you mean `STEADY_RELAY_PORT`?".into(),
            "steady_relay_upstreem in the environment is not read: did you mean `STEADY_RELAY_UPSTREAM`?"
                .into(),
        ]
    );
    assert_eq!(loaded.config.port, 5);
}

#[test]
fn an_unknown_name_of_ours_in_an_env_file_is_an_error_with_the_nearest_name() {
    for (name, hint) in [
        ("STEADY_RELAY_LOGLEVEL", "did you mean `STEADY_RELAY_LOG_LEVEL`?"),
        ("STEADY_RELAY_FOO", "names: STEADY_RELAY_LISTEN, "),
    ] {
        let error = load_files(&[("/e/relay.env", &format!("{name}=1\n"))], &[], named()).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(&format!("{name}: there is no such setting\nhint: {hint}")), "{told}");
    }
}
