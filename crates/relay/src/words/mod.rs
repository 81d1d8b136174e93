//! What the program says to people, a file of messages for each of its parts, and the language that it says it in.
//!
//! Log lines, JSON and what programs read elsewhere are in one language and are not here.
//!
//! Each part has its table of `words!`. Two are looked up by their English instead, since what they translate is written
//! where no language is known: `help` (what `--help` says) and `settings` (what is wrong with the settings).
//!
//! The Chinese is a developer's: short, without 您 where 你 or nothing does, a half-width space between Chinese and Latin
//! letters or digits, full-width punctuation, names of keys, flags and files as they are. One word for one thing:
//!
//! | English | Chinese |
//! |---|---|
//! | relay, upstream, client | 中继，上游，客户端 |
//! | call, send, send again | 请求，发送，重新发送 |
//! | answer (of a model, over HTTP), refusal, fault | 回答，响应，拒绝，故障 |
//! | at capacity, overloaded, throttled | 容量已满，过载，限流 |
//! | wait, backoff, patience (the key) | 等待，退避，`patience` |
//! | lane, gate, in line | 通道，闸门，排队 |
//! | profile, route, rule, dialect | 策略，路由，规则，协议 |
//! | credential, token, key | 凭据，令牌，密钥 |
//! | key (of a file), flag, verb | 键，选项，命令 |
//! | settings, configuration file | 设置，配置文件 |
//! | loopback, stream, body | 回环，流，请求体或响应体 |
//! | session, tunnel, certificate | 会话，隧道，证书 |
//! | folder, journal, secret | 目录，记录，机密 |
//! | error, hint, note | 错误，提示，说明 |

use std::sync::atomic::{AtomicU8, Ordering};

use relay_core::Lang;
use relay_core::words::Table;

pub mod alerts;
pub mod cli;
pub mod credentials;
pub mod demo;
pub mod diagnose;
pub mod doctor;
pub mod door;
pub mod held;
pub(crate) mod help;
pub mod history;
pub mod https;
pub mod live;
pub mod otlp;
pub mod replay;
pub mod rule;
pub mod run;
pub mod selftest;
pub mod send;
pub mod service;
pub mod settings;
pub mod setup;
pub mod snapshots;
pub mod span;
pub mod start;
pub mod stats;
pub mod status;
pub mod top;
pub mod top_call;
pub mod verbs;
pub mod verdict;
pub mod why;

/// Every table there is.
pub const TABLES: &[Table] = &[
    relay_core::answer::words::TABLE,
    relay_core::notice::words::TABLE,
    alerts::TABLE,
    cli::TABLE,
    credentials::TABLE,
    demo::TABLE,
    diagnose::TABLE,
    doctor::TABLE,
    door::TABLE,
    held::TABLE,
    history::TABLE,
    https::TABLE,
    live::TABLE,
    otlp::TABLE,
    replay::TABLE,
    rule::TABLE,
    run::TABLE,
    selftest::TABLE,
    send::TABLE,
    service::TABLE,
    settings::TABLE,
    setup::TABLE,
    snapshots::TABLE,
    span::TABLE,
    start::TABLE,
    stats::TABLE,
    status::TABLE,
    top::TABLE,
    top_call::TABLE,
    verbs::TABLE,
    verdict::TABLE,
    why::TABLE,
];

/// The language of the surroundings, and the one that is spoken: their places in [`Lang::ALL`].
static AROUND: AtomicU8 = AtomicU8::new(0);
static SPOKEN: AtomicU8 = AtomicU8::new(0);

/// The language of this process. English as long as nobody has chosen.
#[must_use]
pub fn lang() -> Lang {
    at(&SPOKEN)
}

/// Speaks this language, which the command line or the surroundings ask for.
pub fn speak(lang: Lang) {
    AROUND.store(lang as u8, Ordering::Relaxed);
    SPOKEN.store(lang as u8, Ordering::Relaxed);
}

/// Goes by the settings, which name a language or leave that to the surroundings; the one that is spoken from now on.
pub fn settle(chosen: Option<Lang>) -> Lang {
    let lang = chosen.unwrap_or_else(|| at(&AROUND));
    SPOKEN.store(lang as u8, Ordering::Relaxed);
    lang
}

fn at(place: &AtomicU8) -> Lang {
    Lang::ALL.get(usize::from(place.load(Ordering::Relaxed))).copied().unwrap_or_default()
}

/// The variable that names the language for this program alone.
pub const VARIABLE: &str = "STEADY_RELAY_LANG";

/// The language that a user's surroundings ask for: what was said to this program by a flag or its variable, or else
/// the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set to something (POSIX.1-2024, chapter 8.2), or else what
/// the system is set to. One that there are no messages in is English.
#[must_use]
pub fn preferred(
    said: Option<Lang>,
    variable: impl Fn(&str) -> Option<String>,
    system: impl FnOnce() -> Option<String>,
) -> Lang {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let by_name = |name: String| Lang::ALL.into_iter().find(|lang| name.eq_ignore_ascii_case(lang.code()));
    let locale = || ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(set).or_else(system);
    let said = said.or_else(|| variable(VARIABLE).and_then(by_name));
    said.or_else(|| Lang::of(&locale()?)).unwrap_or_default()
}

/// The language that the system is set to, where it has one besides the variables.
#[must_use]
pub fn of_system() -> Option<String> {
    // Elsewhere the variables are all there is.
    if cfg!(any(windows, target_os = "macos")) { sys_locale::get_locale() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_there_in_every_language() {
        let flaws: Vec<String> = TABLES.iter().flat_map(Table::flaws).collect();
        assert_eq!(flaws, [""; 0]);
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        const ZH: (&str, &str) = ("LANG", "zh_CN.UTF-8");
        let with_system = |said, set: &[(&str, &str)], system: Option<&str>| {
            let variable =
                |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
            preferred(said, variable, || system.map(str::to_owned))
        };
        let preferred = |said, set: &[(&str, &str)]| with_system(said, set, None);
        assert_eq!(preferred(None, &[]), Lang::English);
        assert_eq!(preferred(None, &[ZH]), Lang::Chinese);
        assert_eq!(preferred(None, &[ZH, ("LC_ALL", "C")]), Lang::English);
        assert_eq!(preferred(None, &[ZH, ("LC_ALL", "")]), Lang::Chinese);
        assert_eq!(preferred(None, &[ZH, ("LC_MESSAGES", "de_DE")]), Lang::English);
        assert_eq!(preferred(Some(Lang::Chinese), &[("LC_ALL", "en_US")]), Lang::Chinese);
        assert_eq!(preferred(None, &[(VARIABLE, "zh"), ("LC_ALL", "en_US")]), Lang::Chinese);
        assert_eq!(preferred(None, &[(VARIABLE, "en"), ZH]), Lang::English);
        assert_eq!(
            preferred(None, &[(VARIABLE, "xx"), ZH]),
            Lang::Chinese,
            "the settings say that it is none"
        );
        assert_eq!(preferred(Some(Lang::English), &[(VARIABLE, "zh")]), Lang::English);
        assert_eq!(with_system(None, &[], Some("zh-Hans-CN")), Lang::Chinese);
        assert_eq!(with_system(None, &[("LANG", "C")], Some("zh-Hans-CN")), Lang::English);
        assert_eq!(with_system(None, &[], Some("fr-FR")), Lang::English);
    }
}
