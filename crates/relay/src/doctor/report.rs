//! The findings for people, at 80 columns, what is wrong first; and for programs.

use relay_core::{Lang, plain};
use serde_json::{Value, json};

use super::{Finding, Level};
use crate::terminal;
use crate::words::doctor as words;

/// The widest line, and where the words of a finding begin.
const COLUMNS: usize = 80;
const INDENT: usize = 22;

fn count(findings: &[Finding], level: Level) -> u64 {
    findings.iter().filter(|finding| finding.level == level).count() as u64
}

/// 1 where something does not work.
#[must_use]
pub fn exit_code(findings: &[Finding]) -> u8 {
    u8::from(count(findings, Level::Fail) > 0)
}

/// The report, with the marks of colour that a stream may drop.
#[must_use]
pub fn text(lang: Lang, findings: &[Finding]) -> String {
    let [fails, warns, oks] = [Level::Fail, Level::Warn, Level::Ok].map(|level| count(findings, level));
    let mut out = words::opening(lang, env!("CARGO_PKG_VERSION"), fails, warns, oks);
    let skipped = count(findings, Level::Skip);
    if skipped > 0 {
        out = words::opening_and_skipped(lang, &out, skipped);
    }
    out.push('\n');
    for level in [Level::Fail, Level::Warn, Level::Ok, Level::Skip] {
        let mut these = findings.iter().filter(|finding| finding.level == level).peekable();
        if these.peek().is_some() {
            out.push('\n');
        }
        for finding in these {
            let colour = match level {
                Level::Fail => "\u{1b}[31m",
                Level::Warn => "\u{1b}[33m",
                Level::Ok => "\u{1b}[32m",
                Level::Skip => "\u{1b}[2m",
            };
            let head = format!("{colour}{:<4}\u{1b}[0m  {:<15} ", level.name(), finding.check.name());
            out.push_str(&beside(&head, &finding.what));
            if let Some(remedy) = &finding.remedy {
                out.push_str(&beside(&" ".repeat(INDENT), &words::remedy(lang, remedy)));
            }
        }
    }
    out
}

/// Words behind what stands at their left, in lines that begin below each other. What is longer than a line and has no
/// place to break stays whole: it is a path or an address, to be copied.
fn beside(left: &str, words: &str) -> String {
    let lines = terminal::wrapped(&format!("{:INDENT$}{}", "", plain::line(words.trim())), COLUMNS);
    format!("{left}{}\n", lines.trim_start())
}

/// The report for programs.
#[must_use]
pub fn json(findings: &[Finding]) -> Value {
    let all: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check.name(),
                "level": finding.level.name(),
                "what": finding.what,
                "remedy": finding.remedy,
            })
        })
        .collect();
    json!({
        "v": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "ok": exit_code(findings) == 0,
        "fails": count(findings, Level::Fail),
        "warnings": count(findings, Level::Warn),
        "skipped": count(findings, Level::Skip),
        "findings": all,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::new(Check::Settings, Level::Ok, "there is no file, so the defaults hold"),
            Finding::new(
                Check::Port,
                Level::Fail,
                "127.0.0.1:8787 is taken by a program with a long name (process 1234)\nstop it, or give the relay another port",
            ),
            Finding::new(Check::Memory, Level::Skip, "not looked at: no relay shows its status page"),
            Finding::new(
                Check::Clock,
                Level::Warn,
                "本机时钟慢了六十一秒本机时钟慢了六十一秒本机时钟慢了六十一秒本机时钟慢了六十一秒\n让系统自动校时",
            ),
        ]
    }

    #[test]
    fn what_is_wrong_comes_first_and_nothing_is_wider_than_a_terminal() {
        let text = text(Lang::English, &findings()).replace("\u{1b}[31m", "").replace("\u{1b}[33m", "");
        let text = text.replace("\u{1b}[2m", "").replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
        insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r"
        Steady Relay VERSION: 1 failed, 1 warning, 1 ok, 1 not looked at

        fail  port            127.0.0.1:8787 is taken by a program with a long name
                              (process 1234)
                              do: stop it, or give the relay another port

        warn  clock           本机时钟慢了六十一秒本机时钟慢了六十一秒本机时钟慢了六十一
                              秒本机时钟慢了六十一秒
                              do: 让系统自动校时

        ok    settings        there is no file, so the defaults hold

        skip  memory          not looked at: no relay shows its status page
        ");
        for line in text.lines() {
            assert!(terminal::width(line) <= COLUMNS, "{line}");
        }
    }

    #[test]
    fn a_long_path_stays_whole_and_nothing_moves_the_cursor() {
        let path = format!("/{}", "long".repeat(30));
        let text = beside("", &format!("the file {path} is \u{1b}[2J gone"));
        assert!(text.contains(&path) && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn programs_get_json() {
        let json = json(&findings());
        assert_eq!(
            (&json["v"], &json["ok"], &json["fails"], &json["warnings"]),
            (&1.into(), &false.into(), &1.into(), &1.into())
        );
        assert_eq!(json["findings"][1]["remedy"], "stop it, or give the relay another port");
        assert_eq!(json["skipped"], 1);
        assert_eq!((exit_code(&findings()), exit_code(&findings()[..1])), (1, 0));
    }
}
