//! What each verb says where Chinese is spoken: no English sentence is left in it but those that docs/language.md names.

use std::net::TcpListener;

use crate::support::{Home, is_chinese};

/// Three words of English behind each other, outside of backticks, quotes and parentheses: names, commands and what
/// somebody else has said stand there.
fn english_in(line: &str) -> Option<String> {
    let mut plain = String::new();
    let mut until = None;
    for sign in line.chars() {
        match (until, sign) {
            (Some(end), sign) if sign == end => until = None,
            (Some(_), _) => {}
            (None, '`') => until = Some('`'),
            (None, '"') => until = Some('"'),
            (None, '(') => until = Some(')'),
            (None, '（') => until = Some('）'),
            (None, sign) => plain.push(sign),
        }
    }
    let is_word = |word: &&str| {
        // A list of names has commas.
        let word = word.trim_end_matches(['.', ':', ';']);
        word.len() > 1 && word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '\'')
    };
    let words: Vec<_> = plain.split(' ').collect();
    let run = words.windows(3).find(|run| run.iter().all(is_word));
    run.map(|run| run.join(" "))
}

#[test]
fn english_is_told_from_names_and_commands() {
    assert_eq!(english_in("错误：the file may not be read"), Some("file may not".to_owned()));
    for fine in
        ["提示：用 `steady-relay config show --origin` 查看", "Python 版 SDK（openai 与 all of its friends）"]
    {
        assert_eq!(english_in(fine), None, "{fine}");
    }
}

/// How messages begin in English.
const OF_OURS: [&str; 5] = ["error:", "hint:", "note:", "problem:", "steady-relay: "];

/// What the system says, and a command of it.
const OF_OTHERS: [&str; 2] = ["(os error ", "      sudo "];

/// A port at which nobody is.
fn closed() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A home with clients in it.
fn with_clients() -> Home {
    let home = Home::new();
    for (file, text) in [
        (".codex/config.toml", "openai_base_url = \"http://10.0.0.5:4000/v1\"\n"),
        (".claude/settings.json", "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:9\"}}\n"),
        (".gemini/settings.json", "{\"security\": {\"auth\": {\"selectedType\": \"oauth-personal\"}}}\n"),
        (".config/opencode/opencode.json", "{ broken\n"),
        (".continue/config.yaml", "models: []\n"),
    ] {
        let path = home.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(home.0.join("bad.toml"), "[relay]\nlisten = \"0.0.0.0\"\nprot = 1\n").unwrap();
    std::fs::write(home.0.join("headers"), "no colon\n").unwrap();
    home
}

/// Runs each of these where Chinese is spoken, and looks for what is not.
fn all_is_chinese(home: &Home, lines: &[&[&str]]) {
    let variables = [
        ("LANG", "zh_CN.UTF-8"),
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("OPENAI_API_BASE", "http://10.0.0.6/v1"),
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "x"),
    ];
    let mut left = Vec::new();
    for line in lines {
        let ran = home.run(line, &variables);
        let said = ran.all();
        if !is_chinese(&said) {
            left.push(format!("{line:?} has no Chinese: {ran:?}"));
        }
        let is_english =
            |text: &&str| english_in(text).is_some() || OF_OURS.iter().any(|own| text.contains(own));
        let is_ours = |text: &&str| !OF_OTHERS.iter().any(|other| text.contains(other));
        let of_line = said.lines().filter(is_ours).filter(is_english);
        left.extend(of_line.map(|text| format!("{line:?}: {text}")));
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn verbs_that_relay_speak_chinese() {
    let nobody = format!("http://127.0.0.1:{}", closed());
    let asked = format!("{nobody}/v1/models");
    let lines: &[&[&str]] = &[
        &["config", "check", "bad.toml"],
        &["config", "check", "none.toml"],
        &["config", "path"],
        &["config", "test-rule", "none.http"],
        &["serve", "--listen", "0.0.0.0"],
        &["serve", "--upstream", "nobody"],
        &["selftest"],
        &["selftest", "--upstream", "nobody"],
        &["selftest", "--upstream", &nobody, "--profile", "strict"],
        &["send", "no-url"],
        &["send", "GET", &asked, "-X", "GET"],
        &["send", "ftp://localhost/"],
        &["send", "http://me:x@localhost/"],
        &["send", &asked, "-H", "no colon"],
        &["send", &asked, "-H", "@headers"],
        &["send", &asked, "-H", "content-length: 1"],
        &["send", &asked, "-d", "@none.json"],
        &["send", &asked, "-d", "@config"],
        &["send", &asked, "--patience", "x"],
        &["send", &asked, "-o", "none/there"],
        &["send", &asked, "--profile", "strict", "-q"],
        &["run"],
        &["run", "--", "no-such-program"],
        &["run", "--", "./headers"],
        &["run", "--", "codex", "--remote", "ws://x"],
        &["run", "--", "codex", "-c", "model_provider=other"],
        &["run", "--", "claude"],
        &["run", "--", "gemini"],
        &["run", "--", "opencode"],
        &["run", "--", "aider"],
        &["completions", "nosh"],
        &["man", "--dir", "headers/x"],
    ];
    all_is_chinese(&with_clients(), lines);
}

#[test]
fn verbs_that_look_after_it_speak_chinese() {
    let port = closed().to_string();
    let nobody = format!("http://127.0.0.1:{}", closed());
    // One behind the other: each finds what those before it have written.
    let lines: &[&[&str]] = &[
        &["setup", "--port", &port, "--status"],
        &["setup", "--port", &port, "--dry-run"],
        &["setup", "--port", &port],
        &["setup", "--port", &port, "--yes"],
        &["setup", "--port", &port, "--yes"],
        &["setup", "--port", "0"],
        &["setup", "nobody"],
        &["setup", "env-file"],
        &["doctor", "--port", &port, "--upstream", &nobody],
        &["undo", "nobody"],
        &["undo", "--dry-run"],
        &["undo"],
        &["undo"],
        &["cert", "show"],
        &["cert", "trust-help"],
        &["cert", "renew"],
        &["cert", "show"],
        &["cert", "trust-help"],
        &["status", "--port", &port],
        &["top", "--port", &port],
        &["health", "--port", &port],
        &["service", "status"],
        &["service", "start"],
        &["service", "stop"],
        &["service", "remove"],
        &["service", "install", "--dry-run", "--port", "0"],
    ];
    all_is_chinese(&with_clients(), lines);
}

#[test]
fn json_is_english_whoever_asks() {
    let home = with_clients();
    let port = closed().to_string();
    let nobody = format!("http://127.0.0.1:{}", closed());
    let lines: &[&[&str]] = &[
        &["config", "path", "--json"],
        &["setup", "--port", &port, "--status", "--json"],
        &["setup", "--port", &port, "--dry-run", "--json"],
        &["doctor", "--port", &port, "--upstream", &nobody, "--json"],
        &["undo", "--dry-run", "--json"],
        &["cert", "renew", "--json"],
        &["cert", "trust-help", "--json"],
        &["health", "--port", &port, "--json"],
        &["selftest", "--json"],
    ];
    for line in lines {
        let ran = home.run(line, &[("LANG", "zh_CN.UTF-8")]);
        assert!(ran.out.starts_with('{') && !is_chinese(&ran.out), "{line:?}: {ran:?}");
    }
}
