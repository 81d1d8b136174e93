//! The whole way from file, environment and flags to settings, or to all that is wrong with them.

mod advice;
mod credentials;
mod env;
mod keys;
mod shown;

use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;
use relay_core::Listen;
use relay_core::client::Kind;
use relay_core::config::{ProfileChoice, Upstream, UpstreamChoice};
use std::time::Duration;

/// Loads the settings, and sees to it that whatever is said of them can be said in Chinese.
fn load(flags: &Flags, env: Env<'_>, read: ReadFile<'_>) -> Result<Loaded, SettingsError> {
    let loaded = super::load(flags, env, read);
    let said: Vec<&String> = match &loaded {
        Ok(loaded) => loaded.notices.iter().collect(),
        // The parser of TOML has words of its own.
        Err(error) => error
            .issues
            .iter()
            .flat_map(|Issue { what, hint, .. }| {
                let of_parser = file::syntax_hint(what) == hint;
                [Some(what).filter(|_| !of_parser), Some(hint)]
            })
            .flatten()
            .collect(),
    };
    for words in said {
        if let Some(missing) = crate::words::settings::lacks(words) {
            panic!("{missing}");
        }
    }
    loaded
}

/// Loads `text` as the file, with these variables and flags.
fn load_all(text: &str, variables: &[(&str, &str)], flags: Flags) -> Result<Loaded, SettingsError> {
    let flags = Flags { config: Some("config.toml".into()), ..flags };
    load(&flags, &variables, &|_| Ok(text.as_bytes().to_vec()))
}

fn good(text: &str) -> Config {
    load_all(text, &[], Flags::default()).unwrap_or_else(|error| panic!("{error}")).config
}

fn bad(text: &str) -> String {
    load_all(text, &[], Flags::default()).unwrap_err().to_string()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn without_anything_the_defaults_hold() {
    let loaded = load(&Flags::default(), &NO_VARIABLES, &|_| Err(io::ErrorKind::NotFound.into())).unwrap();
    assert_eq!((loaded.config, loaded.notices, loaded.file), (Config::default(), vec![], None));
    assert!(loaded.shown.iter().all(|shown| shown.origin == "default"));
    assert_eq!(good(""), Config::default());
}

#[test]
fn nothing_is_told_twice() {
    let told = bad("\r\r");
    assert_eq!(told.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{told}");
}

#[test]
fn of_very_many_errors_the_first_are_told_and_the_rest_counted() {
    let text: String = (0..2000).map(|n| format!("k{n} = 1\n")).collect();
    let error = load_all(&text, &[], Flags::default()).unwrap_err();
    assert_eq!((error.issues.len(), error.more), (20, 1980));
    let told = error.to_string();
    assert!(told.contains("config.toml:1:1: ") && told.contains("config.toml:20:1: "), "{told}");
    assert!(!told.contains("config.toml:21:") && told.ends_with("\nand 1980 more"), "{told}");
    let exactly: String = text.lines().take(20).map(|line| format!("{line}\n")).collect();
    let error = load_all(&exactly, &[], Flags::default()).unwrap_err();
    assert_eq!((error.issues.len(), error.more), (20, 0));
}

#[test]
fn a_file_that_is_wrong_all_over_is_told_of_in_no_time() {
    let each = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let texts = [
        each(20_000, &|n| format!("k{n} = 1\n")),
        each(20_000, &|_| "x\n".to_owned()),
        each(1_000, &|n| format!("[upstream.u{n}]\nurll = \"x\"\n")),
        format!("relay = {{ {} }}", each(20_000, &|n| format!("k{n} = 1, "))),
        format!("relay = {{ {} x", each(20_000, &|n| format!("token{n} = 1, "))),
        "= ".repeat(100_000),
        "\r".repeat(100_000),
        format!("a = {}", "[".repeat(200_000)),
        each(5_000, &|n| format!("[profile.p{n}]\nsends = 3\n[[route]]\ncap = \"1h\"\n")),
        each(1_000, &|n| format!("[[route]]\nupstream = \"none{n}\"\n[upstream.u{n}]\nurl = \"http://u\"\n")),
    ];
    for text in texts {
        let start: String = text.chars().take(40).collect();
        let error = load_all(&text, &[], Flags::default()).expect_err(&start);
        assert!(error.issues.len() <= 20, "{start}");
        assert!(error.to_string().len() < 100_000, "{start}: {}", error.to_string().len());
    }
    let variables = each(5_000, &|n| format!("STEADY_RELAY_X{n}=1\nSTEADY_RELAI_PORT{n}=1\n"));
    let flags = Flags { env_file: Some("x.env".into()), ..Flags::default() };
    let error = load(&flags, &NO_VARIABLES, &|_| Ok(variables.clone().into_bytes())).unwrap_err();
    assert_eq!(error.issues.len(), 20);
    let nearly = each(500, &|n| format!("STEADY_RELAI_PORT{n}=1\n"));
    let read = |path: &Path| {
        if path == Path::new("x.env") {
            Ok(nearly.clone().into_bytes())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    let notices = load(&flags, &NO_VARIABLES, &read).unwrap().notices;
    assert!(notices.len() <= 21, "{}", notices.len());
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "\
[relay]
port = 80800
prot = 1
profile = \"casees\"

[timeouts]
connect = 10
idle = \"5 parsecs\"

[profile.cases]
sends = 4
cap = \"500ms\"

[upstream.mine]
url = \"https://me:hunter2@host\"

[[route]]
mode = \"gpt\"
";
    let flags = Flags { port: Some("eighty".into()), ..Flags::default() };
    let error = load_all(text, &[("STEADY_RELAY_LISTEN", "here")], flags).unwrap_err();
    assert_snapshot!(error, @r#"
    error: config.toml:2:8: `relay.port = 80800` is out of range
      2 | port = 80800
        |        ^^^^^
    hint: a whole number from 0 to 65535
    error: config.toml:3:1: unknown key `prot` in [relay]
      3 | prot = …
        | ^^^^
    hint: did you mean `port`?
    error: config.toml:4:11: `relay.profile = "casees"` names no profile
      4 | profile = "casees"
        |           ^^^^^^^^
    hint: did you mean `cases`?
    error: config.toml:7:11: `timeouts.connect = 10` has no unit
      7 | connect = 10
        |           ^^
    hint: "10s" is seconds, "10ms" milliseconds, "10min" minutes
    error: config.toml:8:8: `timeouts.idle = "5 parsecs"` has the unknown unit `parsecs`
      8 | idle = "5 parsecs"
        |        ^^^^^^^^^^^
    hint: write a number and ms, s, min, h or d, such as "30s", "1.5s" or "15min"
    error: config.toml:12:7: profile `cases`: cap 500ms is below base 1s
      12 | cap = "500ms"
         |       ^^^^^^^
    hint: set cap to base or more
    error: config.toml:15:7: `upstream.mine.url` has a user name or password before the host
      15 | url = …
         |       ^
    hint: put the credential into the upstream's `headers`, or let the client send it
    error: config.toml:18:1: unknown key `mode` in [route]
      18 | mode = …
         | ^^^^
    hint: did you mean `model`?
    error: STEADY_RELAY_LISTEN: `here` is no IP address
    hint: write an IP address, or localhost for 127.0.0.1 and ::1
    error: --port: `eighty` is no port
    hint: a port is a number from 0 to 65535
    "#);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    assert_snapshot!(bad("[timeout]\nconnect = \"1s\""), @r"
    error: config.toml:1:2: unknown key `timeout`
      1 | [timeout]
        |  ^^^^^^^
    hint: did you mean `timeouts`?
    ");
    assert_snapshot!(bad("port = 1"), @r"
    error: config.toml:1:1: unknown key `port`
      1 | port = …
        | ^^^^
    hint: `port` is a key of [relay]: write it below that line
    ");
    assert_snapshot!(bad("profile = \"batch\""), @r#"
    error: config.toml:1:11: `profile` at the top is the table of profiles
      1 | profile = "batch"
        |           ^^^^^^^
    hint: to choose one for all calls, write it below a line [relay]: profile = …
    "#);
    assert_snapshot!(bad("[hold]\nidle = \"1s\"\n[relay]\nlevel = 3\nfirst-byte = 2\nxyz = 1"), @r"
    error: config.toml:2:1: unknown key `idle` in [hold]
      2 | idle = …
        | ^^^^
    hint: `idle` is a key of [timeouts]: write it below that line
    error: config.toml:4:1: unknown key `level` in [relay]
      4 | level = …
        | ^^^^^
    hint: `level` is a key of [log]: write it below that line
    error: config.toml:5:1: unknown key `first-byte` in [relay]
      5 | first-byte = …
        | ^^^^^^^^^^
    hint: `first_byte` is a key of [timeouts]: write it below that line
    error: config.toml:6:1: unknown key `xyz` in [relay]
      6 | xyz = …
        | ^^^
    hint: keys here: listen, port, token, upstream, profile, gate, park_quota, http2, websocket, proxy, ca_file, allowed_origins, metrics_port, tls, names, state_dir, lang
    ");
}

#[test]
fn every_break_of_syntax_is_told_once_and_nothing_is_concluded_from_it() {
    assert_snapshot!(bad("[relay]\nport = 87x7\nprofile = \"mine\"\n[hold]\nbytes =\ntime = 3\n"), @r#"
    error: config.toml:2:8: string values must be quoted, expected literal string
      2 | port = 87x7
        |        ^^^^
    hint: a value is text in quotes, a number, true, false or a list: idle = "30s"
    error: config.toml:5:8: string values must be quoted, expected literal string
      5 | bytes =
        |        ^
    hint: a value is text in quotes, a number, true, false or a list: idle = "30s"
    error: config.toml:6:8: `hold.time = 3` has no unit
      6 | time = 3
        |        ^
    hint: "3s" is seconds, "3ms" milliseconds, "3min" minutes
    "#);
    assert_snapshot!(bad("[relay\nport = 1\n"), @r"
    error: config.toml:1:7: unclosed table, expected `]`
      1 | [relay
        |       ^
    hint: close the bracket: [relay]
    ");
    assert_snapshot!(bad("[relay]\nport = 1\nport = 2\n"), @r"
    error: config.toml:3:1: duplicate key
      3 | port = 2
        | ^^^^
    hint: write each key, and each line such as [relay], only once
    ");
}

#[test]
fn every_break_of_syntax_says_how_to_mend_it() {
    for (text, hint) in [
        ("[relay]\nport: 9000\n", "write key = value; a name has letters"),
        ("relay:\n  port: 9000\n", "write key = value; a name has letters"),
        (
            "{\"relay\": {\"port\": 9000}}\n",
            "write key = value below a line such as [relay], and text in quotes",
        ),
        (
            "[relay]\nlisten = 127.0.0.1\n",
            "write key = value below a line such as [relay], and text in quotes",
        ),
        ("[relay]\nport = 070\n", "write key = value below"),
        ("[relay]\nport == 9\n", "write key = value below"),
        (
            "[relay]\nport = 9, listen = \"x\"\n",
            "write each key = value, and each line such as [relay], on a line",
        ),
        ("[relay] port = 9\n", "write each key = value, and each line such as [relay], on a line"),
        (
            "[relay]\nlisten = \"x\n",
            "close the quotes in the same line; in \"double\" ones \\ is written \\\\",
        ),
        ("[relay]\nlisten = 'x\n", "close the quotes in the same line"),
        ("[relay]\nallowed_origins = [\"http://a\"\n", "close the list with ]"),
    ] {
        let told = bad(text);
        assert!(told.contains(&format!("\nhint: {hint}")), "{told}");
        assert_eq!(told.matches("error: ").count(), told.matches("\nhint: ").count(), "{told}");
    }
}

#[test]
fn a_name_that_is_only_begun_is_completed_where_one_alone_begins_like_it() {
    assert!(bad("[client.claude]\n").contains("did you mean `claude_code`?"));
    assert!(bad("[relay]\nprofile = \"open\"\n").contains("did you mean `opencodex`?"));
    assert!(bad("[client.gem]\n").contains("did you mean `gemini_cli`?"));
    assert!(bad("[profile.x]\nover = \"1s\"\n").contains("keys here: "), "three begin like it");
}

#[test]
fn no_secret_is_ever_shown() {
    for text in [
        "[relay]\ntoken = \"hunter2\"",
        "[relay]\ntoken = \"hunter2",
        "[relay]\ntoken = hunter2",
        "[relay]\ntoken = '''\nhunter2\n",
        "[relay]\ntokn = \"hunter2hunter2hunter2\"",
        "[relay]\nport = 1\nhunter2",
        "[relay]\ntoken = [\"hunter2\"]",
        "[relay]\nproxy = [\"http://me:hunter2@p\", \"http://me:hunter2@p\"]",
        "[relay]\nproxy = [\"ftp://me:hunter2@p\", \"direct\"]",
        "[relay]\nproxy = [\"direct\", [\"http://me:hunter2@p\"]]",
        "token = \"hunter2\"",
        "relay = { token = \"hunter2hunter2hunter2\", port = -1 }",
        "relay = { token = \"hunter2hunter2hunter2\", port = }",
        "[upstream.openai]\nurl = \"https://me:hunter2@host\"",
        "[upstream.openai]\nurl = \"https://host?key=hunter2\"",
        "[upstream.openai]\nheaders = { authorization = \"Bearer hunter2\\u0001\" }",
        "[upstream.openai]\nheaders = { authorization = \"Bearer hunter2 }",
        "[upstream.openai]\nheaders = [\"hunter2\"]",
        "[upstream.openai.headers]\nauthorization = \"Bearer hunter2\"\nhost = \"hunter2\"",
        "[upstream.openai.headers]\nauthorization = \"Bearer hunter2",
        "[alerts]\nwebhook = \"https://host/hunter2 x\"",
        "[alerts]\ncommand = \"hunter2\"",
        "[alerts]\nwebhoook = \"hunter2\"",
        "[upstream]\nopenai = { headers = { a = \"hunter2\" }, url = 3 }",
        "[relay]\nupstream = \"sk-hunter2\"",
        "[relays]\ntoken = \"hunter2hunter2hunter2\"",
    ] {
        let error = load_all(text, &[], Flags::default()).unwrap_err();
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{text}\n{error}");
    }
    for (name, value) in [
        ("STEADY_RELAY_TOKEN", "hunter2"),
        ("UPSTREAM_URL", "https://me:hunter2@host"),
        ("STEADY_RELAY_PORT", "sk-hunter2"),
        ("STEADY_RELAY_UPSTREAM", "https://host/?key=hunter2"),
    ] {
        let error = load_all("", &[(name, value)], Flags::default()).unwrap_err();
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{name}\n{error}");
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text =
        "[relay]\nlisten = \"127.0.0.3\"\nport = 3\nupstream = \"http://three\"\nprofile = \"strict\"\n";
    let variables = [
        ("STEADY_RELAY_LISTEN", "127.0.0.2"),
        ("STEADY_RELAY_PORT", "2"),
        ("STEADY_RELAY_UPSTREAM", "http://two"),
        ("STEADY_RELAY_PROFILE", "batch"),
    ];
    let flags = Flags {
        listen: Some("127.0.0.1".into()),
        port: Some("1".into()),
        upstream: Some("http://one".into()),
        profile: Some("patient".into()),
        ..Flags::default()
    };
    let summary = |loaded: Loaded| {
        let config = loaded.config;
        let url =
            config.upstream.as_ref().and_then(|choice| Upstream::chosen(choice, &config.upstreams)).unwrap();
        format!("{} {} {} {}", config.listen, config.port, url.url, config.profile.name())
    };
    let of = |variables, flags| summary(load_all(text, variables, flags).unwrap());
    assert_eq!(of(&[], Flags::default()), "127.0.0.3 3 http://three strict");
    assert_eq!(of(&variables, Flags::default()), "127.0.0.2 2 http://two batch");
    assert_eq!(of(&variables, flags), "127.0.0.1 1 http://one patient");
    assert_eq!(of(&[("STEADY_RELAY_PORT", "")], Flags::default()), "127.0.0.3 3 http://three strict");
}

#[test]
fn older_names_are_read_with_a_notice_and_the_newer_win() {
    let old = [("UPSTREAM_URL", "http://old"), ("PORT", "1")];
    let loaded = load_all("", &old, Flags::default()).unwrap();
    assert_eq!(loaded.config.port, 1);
    assert_snapshot!(loaded.notices.join("\n"), @r"
    PORT is an older name and still read: write STEADY_RELAY_PORT
    UPSTREAM_URL is an older name and still read: write STEADY_RELAY_UPSTREAM
    ");
    let both = [old[0], old[1], ("STEADY_RELAY_UPSTREAM", "openai"), ("STEADY_RELAY_PORT", "2")];
    let loaded = load_all("", &both, Flags::default()).unwrap();
    assert_eq!(
        (loaded.config.port, loaded.config.upstream),
        (2, Some(UpstreamChoice::Named("openai".into())))
    );
    assert_snapshot!(loaded.notices.join("\n"), @r"
    PORT is ignored, since STEADY_RELAY_PORT is set
    UPSTREAM_URL is ignored, since STEADY_RELAY_UPSTREAM is set
    ");
    let flags = Flags { port: Some("3".into()), upstream: Some("openai".into()), ..Flags::default() };
    let loaded = load_all("", &[("PORT", "tty")], flags).unwrap();
    assert_eq!((loaded.config.port, loaded.notices.len()), (3, 0));
}

#[test]
fn errors_outside_the_file_name_the_flag_or_the_variable() {
    let flags = Flags { listen: Some("nowhere".into()), profile: Some("strict".into()), ..Flags::default() };
    let error = load_all("", &[("PORT", "99999"), ("UPSTREAM_URL", "example.com/v1")], flags).unwrap_err();
    assert_snapshot!(error, @r#"
    error: PORT: `99999` is no port
    hint: a port is a number from 0 to 65535
    error: UPSTREAM_URL: `example.com/v1` has no scheme
    hint: did you mean "http://example.com/v1", or https?
    error: --listen: `nowhere` is no IP address
    hint: write an IP address, or localhost for 127.0.0.1 and ::1
    "#);
}

#[test]
fn beyond_loopback_a_token_is_needed() {
    assert_snapshot!(bad("[relay]\nlisten = \"0.0.0.0\""), @r#"
    error: config.toml:2:10: listening on 0.0.0.0 lets other machines spend your credentials, and no token is set
      2 | listen = "0.0.0.0"
        |          ^^^^^^^^^
    hint: set STEADY_RELAY_TOKEN, or `token` below [relay], to a secret of 16 characters or more
    "#);
    let flags = Flags { listen: Some("::".into()), ..Flags::default() };
    assert_snapshot!(load_all("", &[], flags.clone()).unwrap_err(), @r"
    error: --listen: listening on :: lets other machines spend your credentials, and no token is set
    hint: set STEADY_RELAY_TOKEN, or `token` below [relay], to a secret of 16 characters or more
    ");
    let token = [("STEADY_RELAY_TOKEN", "0123456789abcdef")];
    assert!(load_all("", &token, flags.clone()).unwrap().config.token.is_some());
    let error = load_all("", &[("STEADY_RELAY_TOKEN", "short")], flags).unwrap_err();
    assert_eq!(error.issues.len(), 1, "{error}");
}

#[test]
fn an_upstream_that_is_the_relay_itself_is_refused() {
    assert_snapshot!(bad("[relay]\nupstream = \"http://localhost:8787/v1\""), @r#"
    error: config.toml:2:12: http://localhost:8787/v1 is this relay itself: every call would go round in a circle
      2 | upstream = "http://localhost:8787/v1"
        |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: name the service behind it, or let the relay listen on another port
    "#);
    assert!(bad("[relay]\nport = 1\n[upstream.x]\nurl = \"http://[::1]:1\"").contains("this relay itself"));
    let env = [("UPSTREAM_URL", "http://127.0.0.1:9")];
    assert!(
        load_all("[relay]\nport = 9", &env, Flags::default()).unwrap_err().to_string().contains("itself")
    );
    assert!(load_all("", &env, Flags::default()).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_gives_one_clear_message() {
    let try_with = |named: bool, result: &dyn Fn() -> io::Result<Vec<u8>>| {
        let config = named.then(|| PathBuf::from("my.toml"));
        let env: &[_] = &[("XDG_CONFIG_HOME", "/xdg")];
        load(&Flags { config, ..Flags::default() }, &env, &|path| {
            if path.ends_with("env") { Err(io::ErrorKind::NotFound.into()) } else { result() }
        })
    };
    let missing = || Err(io::ErrorKind::NotFound.into());
    assert_snapshot!(try_with(true, &missing).unwrap_err(), @r"
    error: my.toml: there is no such file
    hint: check the path, or leave it out to use the defaults
    ");
    assert_eq!(try_with(false, &missing).map(|loaded| loaded.file), Ok(None));
    assert_snapshot!(try_with(true, &|| Err(io::ErrorKind::IsADirectory.into())).unwrap_err(), @r"
    error: my.toml: this is a folder, not a file
    hint: name the file in it, such as config.toml
    ");
    assert_snapshot!(try_with(false, &|| Err(io::ErrorKind::PermissionDenied.into())).unwrap_err(), @r"
    error: /xdg/steady-relay/config.toml: the file may not be read
    hint: check its owner and mode, and those of its folder
    ");
    assert_snapshot!(try_with(true, &|| Err(io::Error::other("the disk is on fire"))).unwrap_err(), @"error: my.toml: the file cannot be read: the disk is on fire");
    assert_snapshot!(try_with(true, &|| Ok(b"\xff\xfea\0".to_vec())).unwrap_err(), @r"
    error: my.toml: the file is not UTF-8 text
    hint: save it as UTF-8: some editors on Windows write UTF-16 or an older encoding
    ");
}

#[test]
fn a_certificate_file_that_is_missing_is_told_with_its_line_and_with_all_else() {
    let text = "[relay]\nca_file = \"none.pem\"\nprot = 1\n";
    let flags = Flags { config: Some("/c/config.toml".into()), ..Flags::default() };
    let env: &[_] = &[("SSL_CERT_FILE", "/ssl/other.pem")];
    let error = load(&flags, &env, &|path| match path.to_str() {
        Some("/c/config.toml") => Ok(text.into()),
        Some("/ssl/other.pem") => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::ErrorKind::NotFound.into()),
    });
    assert_snapshot!(error.unwrap_err(), @r#"
    error: /c/config.toml:2:11: the certificate file /c/none.pem: there is no such file
      2 | ca_file = "none.pem"
        |           ^^^^^^^^^^
    hint: check the path
    error: /c/config.toml:3:1: unknown key `prot` in [relay]
      3 | prot = …
        | ^^^^
    hint: did you mean `port`?
    error: SSL_CERT_FILE: the certificate file /ssl/other.pem: this is a folder, not a file
    hint: name the file in it, such as ca.pem
    "#);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_accepted() {
    let config = good("\u{feff}[relay]\r\nport = 5\r\n");
    assert_eq!(config.port, 5);
    assert!(bad("\u{feff}port = 5\r\n").starts_with("error: config.toml:1:1:"));
}

#[test]
fn the_file_is_found_where_the_system_keeps_settings() {
    use file::{System, usual_path};
    let path = |variables: &[(&str, &str)], system| usual_path(&variables, system);
    let home = [("HOME", "/home/me"), ("APPDATA", "/data")];
    let with_xdg = [home[0], ("XDG_CONFIG_HOME", "/xdg")];
    let relative = [home[0], ("XDG_CONFIG_HOME", "xdg")];
    for (variables, system, expected) in [
        (&home, System::Unix, "/home/me/.config/steady-relay/config.toml"),
        (&with_xdg, System::Unix, "/xdg/steady-relay/config.toml"),
        (&relative, System::Unix, "/home/me/.config/steady-relay/config.toml"),
        (&home, System::Mac, "/home/me/Library/Application Support/steady-relay/config.toml"),
        (&with_xdg, System::Mac, "/xdg/steady-relay/config.toml"),
        (&home, System::Windows, "/data/steady-relay/config.toml"),
    ] {
        assert_eq!(path(variables, system), Some(expected.into()), "{system:?}");
    }
    assert_eq!(path(&[], System::Unix), None);
}

#[test]
fn the_file_that_is_named_is_the_one_that_is_read() {
    let read_at = |flag: Option<&str>, variable: Option<&'static str>| {
        let usual = ["XDG_CONFIG_HOME", "HOME", "APPDATA"].map(|name| (name, "/usual"));
        let named = variable.map(|path| ("STEADY_RELAY_CONFIG", path));
        let env: Vec<_> = usual.into_iter().chain(named).collect();
        let flags = Flags { config: flag.map(Into::into), ..Flags::default() };
        load(&flags, &&env[..], &|_| Ok(Vec::new())).unwrap().file
    };
    assert_eq!(read_at(Some("flag.toml"), Some("env.toml")), Some("flag.toml".into()));
    assert_eq!(read_at(None, Some("env.toml")), Some("env.toml".into()));
    assert!(read_at(None, None).is_some_and(|path| path.starts_with("/usual")));
}

#[test]
fn the_template_of_the_wire_cases_is_valid() {
    let text = include_str!("../../../../../tests/cases/relay.toml.tmpl");
    let text =
        [("{port}", "4000"), ("{upstream}", "http://127.0.0.1:4001"), ("{ca}", ""), ("{logdir}", "/logs")]
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    assert!(!text.contains('{'), "{text}");
    let config = good(&text);
    assert_eq!((config.port, config.profile.name()), (4000, "cases"));
    assert_eq!((config.timeouts.first_byte, config.ca_files.len()), (Some(ms(1500)), 0));
    let profile = config.profiles.get("cases").unwrap();
    assert_eq!((profile.sends, profile.ambiguous_resends, profile.patience), (Some(4), 0, ms(9000)));
    assert_eq!(profile.curve, profile.overloaded);
}

/// Lines of settings, good and bad, in any order and nesting.
fn toml_line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = reference()
        .iter()
        .flat_map(|section| section.keys.iter().map(|key| key.name))
        .chain(["client", "upstream.x", "profile.x", "route", "nonsense", "\u{e9}"])
        .collect();
    let heads: Vec<&'static str> =
        reference().iter().map(|section| section.head).chain(["[", "[[x]]"]).collect();
    let values = prop_oneof![
        Just("\"30s\"".to_owned()),
        Just("\"batch\"".to_owned()),
        Just("{ a = 1, b.c = [\"x\"] }".to_owned()),
        Just("'''".to_owned()),
        Just("1979-05-27".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        ".{0,12}".prop_map(|text| format!("{text:?}")),
        ".{0,12}",
    ];
    prop_oneof![
        1 => prop::sample::select(heads).prop_map(str::to_owned),
        3 => (prop::sample::select(names), values).prop_map(|(name, value)| format!("{name} = {value}")),
        1 => ".{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_it_panic(lines in prop::collection::vec(toml_line(), 0..12), end in "\r?\n") {
        let text = lines.join(&end);
        if let Err(error) = load_all(&text, &[], Flags::default()) {
            prop_assert!(!error.issues.is_empty());
            prop_assert!(!error.to_string().contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn no_value_from_outside_makes_it_panic(value in ".{0,30}", port in "[0-9x]{0,6}") {
        let flags = Flags { listen: Some(value.clone()), port: Some(port), ..Flags::default() };
        let variables = [
            ("UPSTREAM_URL", value.as_str()),
            ("STEADY_RELAY_PROFILE", value.as_str()),
            ("STEADY_RELAY_TOKEN", value.as_str()),
        ];
        if let Err(error) = load_all("", &variables, flags) {
            prop_assert!(!error.issues.is_empty());
            prop_assert!(!error.to_string().contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}

#[test]
fn a_room_without_place_for_a_message_is_told() {
    let notices = |text: &str| load_all(text, &[], Flags::default()).unwrap().notices;
    let small = "[bodies]\neach = \"1MiB\"\ntotal = \"2MiB\"\n";
    let told = notices(small);
    assert!(
        told.len() == 1 && told[0].contains("`bodies.total` (2MiB)") && told[0].contains("(64MiB)"),
        "{told:?}"
    );
    assert_eq!(notices(&format!("[relay]\nwebsocket = \"refuse\"\n{small}")), [""; 0]);
    assert_eq!(notices(&format!("[limits]\nmessage = \"2MiB\"\n{small}")), [""; 0]);
}
