//! What the program says where a command line asks for help, or is not understood, and how it ends then. English is left
//! to clap; in Chinese its own words are replaced, and lines are broken by display width, which clap does at spaces only.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anstream::AutoStream;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use relay_core::Lang;

use super::WIDEST;
use crate::terminal;
use crate::words::{self, cli, help};

/// Clients that people start, be they on the PATH or not.
const KNOWN: [&str; 5] = ["codex", "claude", "gemini", "opencode", "aider"];

/// Says it, and tells the exit code.
#[must_use]
pub fn leave(error: &Error) -> ExitCode {
    let lang = words::lang();
    let columns = terminal::columns().map_or(WIDEST, |columns| columns.min(WIDEST));
    let words = with_client(error, lang, said(error, lang, columns), &is_program);
    // A reader that is gone cannot be told anything.
    let _unread = if error.use_stderr() {
        AutoStream::auto(std::io::stderr()).write_all(words.as_bytes())
    } else {
        AutoStream::auto(std::io::stdout()).write_all(words.as_bytes())
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// All that is said, with colours.
pub(super) fn said(error: &Error, lang: Lang, columns: usize) -> String {
    let by_clap = || error.render().ansi().to_string();
    match lang {
        Lang::English => by_clap(),
        Lang::Chinese if is_help(error.kind()) => terminal::wrapped(&in_chinese(by_clap()), columns),
        Lang::Chinese => terminal::wrapped(&wrong(error), columns),
    }
}

/// The same with a hint to `run`, where the verb that is none names a client or a program.
fn with_client(error: &Error, lang: Lang, said: String, is_program: &dyn Fn(&str) -> bool) -> String {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return said };
    let is_one = KNOWN.contains(&word.as_str()) || is_program(word);
    // A paragraph of its own, before the usage.
    match said.split_once("\n\n") {
        Some((what, more)) if is_one => format!("{what}\n\n{}\n\n{more}", cli::start_it(lang, word)),
        Some(_) | None => said,
    }
}

/// Whether a shell would find it.
fn is_program(word: &str) -> bool {
    if Path::new(word).components().count() > 1 {
        return Path::new(word).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = format!("{word}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).any(|folder| folder.join(&name).is_file())
}

fn is_help(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The words of clap itself.
fn in_chinese(help: String) -> String {
    let help = help::OF_CLAP.iter().fold(help, |help, (english, chinese)| help.replace(english, chinese));
    let mut chinese = String::new();
    let is_wide = |sign: Option<char>| sign.is_some_and(|sign| terminal::width_of(sign) > 1);
    for sign in help.chars() {
        // Behind a heading.
        chinese.push(if sign == ':' && is_wide(chinese.chars().next_back()) { '：' } else { sign });
    }
    // A full-width colon brings its space along.
    chinese.replace("：\x1b[0m ", "：\x1b[0m").replace("用法： ", "用法：")
}

fn wrong(error: &Error) -> String {
    let lang = Lang::Chinese;
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue);
    let kind = error.kind();
    let what = if kind == ErrorKind::UnknownArgument {
        cli::unexpected(lang, &argument)
    } else if kind == ErrorKind::InvalidSubcommand {
        cli::no_such_verb(lang, &text(ContextKind::InvalidSubcommand))
    } else if kind == ErrorKind::InvalidValue && value.is_empty() {
        cli::lacks_value(lang, &argument)
    } else if matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        let why = std::error::Error::source(error).map_or_else(String::new, |why| format!("：{why}"));
        cli::invalid(lang, &value, &argument, &why)
    } else if kind == ErrorKind::MissingRequiredArgument {
        cli::lacks(lang, &listed(error, ContextKind::InvalidArg, ""))
    } else if kind == ErrorKind::ArgumentConflict {
        match text(ContextKind::PriorArg) {
            prior if prior == argument => cli::twice(lang, &argument),
            prior => cli::conflict(lang, &argument, &prior),
        }
    } else if kind == ErrorKind::TooManyValues {
        cli::needs_no_value(lang, &value, &argument)
    } else {
        cli::other(lang, &kind.to_string())
    };
    let mut more = String::new();
    let values = listed(error, ContextKind::ValidValue, "");
    if !values.is_empty() {
        more += &format!("{}\n", cli::values(lang, &values));
    }
    for near in [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand] {
        let names = listed(error, near, "'");
        if !names.is_empty() {
            more += &format!("\n{}\n", cli::near(lang, &names));
        }
    }
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => format!("\n{}\n", in_chinese(usage.to_string())),
        _ => String::new(),
    };
    // In the colours of clap.
    let colour = |words: &str| format!("\x1b[1m\x1b[31m{words}\x1b[0m");
    cli::wrong(lang, &colour(&cli::error(lang)), &what, &(more + &usage))
}

/// The names that clap has of this kind, each between `marks`.
fn listed(error: &Error, kind: ContextKind, marks: &str) -> String {
    let name = |name: &String| format!("{marks}{name}{marks}");
    match error.get(kind) {
        Some(ContextValue::String(one)) => name(one),
        Some(ContextValue::Strings(many)) => many.iter().map(name).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{command, verb_first};
    use super::*;

    fn chinese(line: &str, columns: usize) -> String {
        let mut command = command(Lang::Chinese);
        let line = verb_first(&command, line.split(' ').map(Into::into).collect());
        let error = command.try_get_matches_from_mut(line).unwrap_err();
        anstream::adapter::strip_str(&said(&error, Lang::Chinese, columns)).to_string()
    }

    #[test]
    fn help_is_in_chinese_and_its_columns_stand_in_line() {
        insta::assert_snapshot!(chinese("steady-relay demo --help", 80));
        insta::assert_snapshot!(chinese("steady-relay -h", 80));
    }

    #[test]
    fn a_client_where_a_verb_belongs_is_told_of_run() {
        let hint = |lang, line: &str| {
            let mut command = command(lang);
            let line = verb_first(&command, line.split(' ').map(Into::into).collect());
            let error = command.try_get_matches_from_mut(line).unwrap_err();
            let words = with_client(&error, lang, said(&error, lang, 80), &|word| word == "htop");
            let words = anstream::adapter::strip_str(&words).to_string();
            words.lines().find(|line| line.contains("run -- ")).map(|line| line.trim().to_owned())
        };
        let is = |words: &str| Some(words.to_owned());
        let english = |line| hint(Lang::English, line);
        assert_eq!(
            english("steady-relay codex"),
            is("to start it with a relay: 'steady-relay run -- codex'")
        );
        assert_eq!(
            english("steady-relay claude -p hi"),
            is("to start it with a relay: 'steady-relay run -- claude'")
        );
        assert_eq!(english("steady-relay htop"), is("to start it with a relay: 'steady-relay run -- htop'"));
        let chinese = is("要经由中继启动它：'steady-relay run -- codex'");
        assert_eq!(hint(Lang::Chinese, "steady-relay codex"), chinese);
        for other in ["steady-relay confg", "steady-relay --codex", "steady-relay nothing"] {
            assert_eq!(english(other), None, "{other}");
        }
    }

    #[test]
    fn errors_are_in_chinese() {
        let lines = [
            "steady-relay --prot 1",
            "steady-relay confg",
            "steady-relay --port",
            "steady-relay --port 1 --port 2",
            "steady-relay --lang xx",
            "steady-relay run",
            "steady-relay config check a --config b",
            "steady-relay config test-rule x --status 42",
            "steady-relay demo --quick=1",
            "steady-relay config",
        ];
        let said: Vec<_> = lines.iter().map(|line| format!("$ {line}\n{}", chinese(line, 80))).collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
