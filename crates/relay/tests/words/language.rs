//! Which language is spoken.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::{Home, is_chinese, verbs};

/// A home, flags, variables, and whether Chinese is spoken then.
type Row<'a> = (&'a Home, &'a [&'a str], &'a [(&'a str, &'a str)], bool);

const ZH: (&str, &str) = ("LANG", "zh_CN.UTF-8");

#[test]
fn flag_before_variable_before_file_before_locale() {
    let silent = Home::new();
    let chinese = Home::with_config("[relay]\nlang = \"zh\"\n");
    let english = Home::with_config("[relay]\nlang = \"en\"\n");
    // `config path` has no settings to go by.
    assert!(is_chinese(&silent.run(&["config", "path"], &[ZH]).err));
    assert!(!is_chinese(&silent.run(&["config", "path", "--lang", "en"], &[ZH]).err));
    let rows: [Row<'_>; 14] = [
        (&silent, &[], &[], false),
        (&silent, &[], &[ZH], true),
        (&silent, &[], &[ZH, ("LC_ALL", "C")], false),
        (&silent, &[], &[("LANG", "fr_FR.UTF-8")], false),
        (&silent, &[], &[ZH, ("STEADY_RELAY_LANG", "en")], false),
        (&silent, &[], &[("STEADY_RELAY_LANG", "zh")], true),
        (&silent, &["--lang", "en"], &[ZH, ("STEADY_RELAY_LANG", "zh")], false),
        (&silent, &["--lang=zh"], &[("STEADY_RELAY_LANG", "en")], true),
        (&chinese, &[], &[], true),
        (&chinese, &[], &[("LANG", "en_US.UTF-8")], true),
        (&chinese, &[], &[("STEADY_RELAY_LANG", "en")], false),
        (&chinese, &["--lang", "en"], &[], false),
        (&english, &[], &[ZH], false),
        (&english, &["--lang", "zh"], &[], true),
    ];
    for (home, flags, variables, expected) in rows {
        for line in [[flags, &["config", "show"]].concat(), [&["config", "show"], flags].concat()] {
            let note = home.run(&line, &[variables, &[("PORT", "1")]].concat()).err;
            assert_eq!(is_chinese(&note), expected, "{line:?} {variables:?}: {note}");
        }
    }
    let said = silent.run(&["--lang", "xx"], &[]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.starts_with("error: invalid value 'xx' for '--lang <LANG>'"), "{}", said.err);
    for (variables, told) in [
        (
            &[("STEADY_RELAY_LANG", "xx")][..],
            "error: STEADY_RELAY_LANG: `xx` is no language that there are messages in",
        ),
        (
            &[("STEADY_RELAY_LANG", "xx"), ZH],
            "错误：STEADY_RELAY_LANG：`xx` 不是支持的语言\n提示：写 en 或 zh",
        ),
    ] {
        let said = silent.run(&["config", "check"], variables);
        assert!(said.code == Some(2) && said.err.starts_with(told), "{}", said.err);
    }
}

#[test]
fn help_of_every_verb_is_in_the_language_that_is_asked_for() {
    let home = Home::new();
    for verb in verbs() {
        let verb: Vec<_> = verb.iter().map(String::as_str).collect();
        for flag in ["-h", "--help"] {
            let chinese = home.run(&[&verb[..], &[flag]].concat(), &[ZH]);
            assert_eq!((chinese.code, chinese.err.as_str()), (Some(0), ""), "{verb:?}");
            for own in
                ["Usage:", "Options:", "Arguments:", "Commands:", "Print help", "[default:", "Examples:"]
            {
                assert!(!chinese.out.contains(own), "{verb:?} {flag}: {own} in {}", chinese.out);
            }
            assert!(chinese.out.contains("用法："), "{verb:?}: {}", chinese.out);
            let english = home.run(&[&["--lang", "en"], &verb[..], &[flag]].concat(), &[ZH]);
            assert!(!is_chinese(&english.out) && english.out.contains("Usage:"), "{verb:?}: {}", english.out);
        }
    }
    let wrong = home.run(&["--prot", "1"], &[ZH]);
    assert!(wrong.code == Some(2) && wrong.err.starts_with("错误：无法识别的参数 '--prot'"), "{}", wrong.err);
}

/// Asks without a credential; what is answered.
fn ask(addr: SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                   content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn clients_are_told_in_the_language_of_the_settings() {
    let chinese = Home::with_config("[relay]\nlang = \"zh\"\n");
    let relay = chinese.serve(&[], &[]);
    assert!(relay.said.starts_with("Steady Relay 正在监听 http://"), "{}", relay.said);
    let answer = ask(relay.addr);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("请求不带凭据"), "{answer}");
    let english = Home::new().serve(&[], &[]);
    assert!(english.said.starts_with("Steady Relay listening on http://"), "{}", english.said);
    assert!(ask(english.addr).contains("the request carries no credential"));
    // One that nobody answers: the words are the core's.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let line = ["--upstream", &format!("http://{nobody}"), "--profile", "strict", "--lang", "zh"];
    let answer = ask(Home::new().serve(&line, &[]).addr);
    assert!(answer.contains(&format!("后放弃：{nobody} 无法响应")), "{answer}");
}

/// Asks with this head; what is answered.
fn ask_with(addr: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let more = if head.contains("connection: ") { "" } else { "connection: close\r\n" };
    write!(stream, "{head}\r\nhost: {addr}\r\n{more}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn own_endpoints_and_tunnels_say_in_chinese_what_is_wrong() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let relay = Home::new().serve(&["--upstream", &format!("http://{nobody}"), "--lang", "zh"], &[]);
    let rows = [
        ("GET /__steady/sessions HTTP/1.1", "steady-relay：请在此中继监听的地址上用 `?nonce=` 请求"),
        ("GET /__steady/sessions/x HTTP/1.1", "steady-relay：没有这个会话"),
        ("PUT /__steady/sessions HTTP/1.1", "steady-relay：不支持这种请求方法"),
        ("POST /__steady/sessions HTTP/1.1", "steady-relay：更改操作需要出示本地令牌"),
        (
            "GET /x HTTP/1.1\r\nconnection: upgrade, close\r\nupgrade: other",
            &*format!("steady-relay：无法建立到 {nobody} 的隧道"),
        ),
    ];
    for (head, words) in rows {
        let answer = ask_with(relay.addr, head);
        assert!(answer.contains(words), "{head}: {answer}");
    }
}

#[test]
fn a_relay_that_runs_takes_on_another_language() {
    let home = Home::with_config("[relay]\nlang = \"en\"\n");
    let relay = home.serve(&[], &[ZH]);
    let config = home.0.join("config/steady-relay/config.toml");
    for (text, words) in [
        ("[relay]\nlang = \"zh\"\n", "请求不带凭据"),
        ("[relay]\nlang = \"en\"\n", "the request carries no credential"),
        // Nobody chooses any more, so the locale does.
        ("[relay]\n", "请求不带凭据"),
    ] {
        std::fs::write(&config, text).unwrap();
        let takes_it_on = (0..300).any(|_| {
            let said = ask(relay.addr).contains(words);
            if !said {
                std::thread::sleep(Duration::from_millis(100));
            }
            said
        });
        assert!(takes_it_on, "{text}: {}", ask(relay.addr));
    }
}

#[test]
fn json_and_log_lines_are_english_in_any_language() {
    let home = Home::with_config("[relay]\nprot = 1\n");
    let check = home.run(&["config", "check", "--json"], &[ZH]).out;
    assert!(check.contains("unknown key `prot` in [relay]") && !is_chinese(&check), "{check}");
    let said = home.run(&["config", "check"], &[ZH]).err;
    assert!(
        said.contains("[relay] 中有未知的键 `prot`\n") && said.contains("提示：是否想写 `port`？"),
        "{said}"
    );
    let good = Home::with_config("[relay]\nca_file = \"none.pem\"\n");
    let check = good.run(&["config", "check", "--json"], &[ZH]).out;
    assert!(check.contains("there is no such file") && !is_chinese(&check), "{check}");
    let show = Home::new().run(&["config", "show", "--json"], &[ZH, ("PORT", "1")]).out;
    assert!(show.contains("PORT is an older name and still read") && !is_chinese(&show), "{show}");
    let schema = Home::new().run(&["config", "schema"], &[ZH]).out;
    assert!(!is_chinese(&schema));
}
