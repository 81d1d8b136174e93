//! How a desktop is told: by a program that comes with it, started without a shell. Not when, and not what.
//!
//! A library would add 16 crates and 0.8 MB on Linux alone, for a sentence that is shown a few times in a day.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use relay_core::plain::is_unfit;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::telling::Message;
use crate::words::{held as words, lang};

/// How long such a program may take.
const WITHIN: Duration = Duration::from_secs(5);
/// The most that is read of what it says is wrong.
const MOST: u64 = 1024;

/// The kinds of desktops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Those of Linux and the BSDs: a service on the session's bus (org.freedesktop.Notifications).
    Freedesktop,
    Mac,
    Windows,
}

impl Kind {
    const fn of_this_system() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Freedesktop
        }
    }
}

/// A program that shows a notice, and what it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    program: &'static str,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

/// Shows a notice.
///
/// # Errors
/// Why nobody shows it, in words.
pub(crate) async fn show(message: &Message) -> Result<(), String> {
    let kind = Kind::of_this_system();
    let env = |name: &str| std::env::var_os(name);
    if kind == Kind::Freedesktop && !has_bus(&env, &|path| path.exists()) {
        return Err(words::no_session_bus(lang()));
    }
    let mut failed = String::new();
    for way in ways(kind, message) {
        match run(&way).await {
            Ok(()) => return Ok(()),
            // What the last one says is the most general.
            Err(why) => failed = why,
        }
    }
    Err(failed)
}

/// Whether there is a session's bus. Without one a program may start one for itself, on which nobody is.
fn has_bus(env: &dyn Fn(&str) -> Option<OsString>, exists: &dyn Fn(&Path) -> bool) -> bool {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let usual = || set("XDG_RUNTIME_DIR").is_some_and(|folder| exists(&PathBuf::from(folder).join("bus")));
    set("DBUS_SESSION_BUS_ADDRESS").is_some() || usual()
}

/// What may show it, the likeliest first. The words are arguments or variables of their own, never part of a script.
fn ways(kind: Kind, message: &Message) -> Vec<Way> {
    let (title, body) = (plain(&message.title), plain(&message.body));
    let way = |program, before: &[&str]| {
        let arguments = before.iter().map(|word| (*word).to_owned());
        let arguments = arguments.chain([title.clone(), body.clone()]).collect();
        Way { program, arguments, variables: Vec::new() }
    };
    match kind {
        Kind::Freedesktop => {
            // It comes with systemd, where the other one is not installed.
            let mut by_bus = way("busctl", BUSCTL);
            // No actions, no hints, and as long as the desktop likes.
            by_bus.arguments.extend(["0", "0", "-1"].map(str::to_owned));
            vec![way("notify-send", &["--app-name=Steady Relay", "--"]), by_bus]
        }
        Kind::Mac => vec![way("osascript", OSASCRIPT)],
        Kind::Windows => vec![Way {
            program: "powershell.exe",
            arguments: ["-NoProfile", "-NonInteractive", "-Command", POWERSHELL].map(str::to_owned).into(),
            variables: vec![("STEADY_RELAY_TITLE", title), ("STEADY_RELAY_BODY", body)],
        }],
    }
}

/// The call of `Notify` as the specification of desktop notifications has it: name, the notice that it replaces, icon.
const BUSCTL: &[&str] = &[
    "--user",
    "--timeout=3",
    "--",
    "call",
    "org.freedesktop.Notifications",
    "/org/freedesktop/Notifications",
    "org.freedesktop.Notifications",
    "Notify",
    "susssasa{sv}i",
    "Steady Relay",
    "0",
    "",
];

const OSASCRIPT: &[&str] = &[
    "-e",
    "on run told",
    "-e",
    "display notification (item 2 of told) with title (item 1 of told)",
    "-e",
    "end run",
];

/// A notice in the name of PowerShell: Windows shows none of a program that no installer has made known to it.
const POWERSHELL: &str = r"$ErrorActionPreference = 'Stop'
$all = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$page = $all::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $page.GetElementsByTagName('text')
[void]$texts.Item(0).AppendChild($page.CreateTextNode($env:STEADY_RELAY_TITLE))
[void]$texts.Item(1).AppendChild($page.CreateTextNode($env:STEADY_RELAY_BODY))
$us = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\WindowsPowerShell\v1.0\powershell.exe'
$all::CreateToastNotifier($us).Show([Windows.UI.Notifications.ToastNotification]::new($page))";

/// Words without what a desktop may take for markup or a terminal for a command.
fn plain(words: &str) -> String {
    let is_odd = |letter: &char| matches!(letter, '<' | '>' | '&') || is_unfit(*letter) && *letter != '\n';
    words.chars().filter(|letter| !is_odd(letter)).collect()
}

async fn run(way: &Way) -> Result<(), String> {
    let failed = |why: &str| words::not_shown(lang(), way.program, why);
    let mut command = Command::new(way.program);
    command.args(&way.arguments).envs(way.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    without_window(&mut command);
    let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
    let mut said = Vec::new();
    let ended = tokio::time::timeout(WITHIN, async {
        if let Some(errors) = child.stderr.take() {
            errors.take(MOST).read_to_end(&mut said).await?;
        }
        child.wait().await
    });
    match ended.await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => {
            let said = String::from_utf8_lossy(&said);
            let first = said.lines().map(str::trim).find(|line| !line.is_empty());
            Err(failed(&plain(first.unwrap_or(&status.to_string()))))
        }
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_elapsed) => Err(words::stands_still(lang(), way.program)),
    }
}

/// A program for consoles gets no window of its own (`CREATE_NO_WINDOW`).
#[cfg(windows)]
fn without_window(command: &mut Command) {
    command.creation_flags(0x0800_0000);
}

#[cfg(not(windows))]
fn without_window(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let body = "-x at <b>capacity</b>\n$(touch x)\u{1b}[2J `y` \"z".to_owned();
        Message { title: "Steady Relay holds a request".to_owned(), body }
    }

    #[test]
    fn what_is_told_is_never_part_of_a_script() {
        let told = "-x at bcapacity/b\n$(touch x)[2J `y` \"z";
        for kind in [Kind::Freedesktop, Kind::Mac, Kind::Windows] {
            for Way { program, arguments, variables } in ways(kind, &message()) {
                let as_argument = arguments.iter().filter(|argument| *argument == told).count();
                let as_variable = variables.iter().filter(|(_, value)| value == told).count();
                let within = arguments.iter().filter(|argument| argument.contains("touch")).count();
                assert_eq!((as_argument + as_variable, within), (1, as_argument), "{program}");
            }
        }
        let programs = |kind| ways(kind, &message()).iter().map(|way| way.program).collect::<Vec<_>>();
        assert_eq!(programs(Kind::Freedesktop), ["notify-send", "busctl"]);
        assert_eq!(programs(Kind::Mac), ["osascript"]);
        assert_eq!(programs(Kind::Windows), ["powershell.exe"]);
        // Words that begin like an option follow where none is taken any more.
        for way in ways(Kind::Freedesktop, &message()) {
            let at = |word: &str| way.arguments.iter().position(|argument| argument == word);
            assert!(at("--").unwrap() < at(told).unwrap(), "{way:?}");
        }
    }

    #[test]
    fn without_a_session_there_is_no_desktop() {
        let has = |set: &[(&str, &str)], file: &str| {
            let env = |name: &str| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| OsString::from(*value))
            };
            has_bus(&env, &|path| path == Path::new(file))
        };
        assert!(!has(&[], "/run/user/1/bus"));
        assert!(!has(&[("DBUS_SESSION_BUS_ADDRESS", "")], ""));
        assert!(has(&[("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")], ""));
        assert!(has(&[("XDG_RUNTIME_DIR", "/run/user/1")], "/run/user/1/bus"));
        assert!(!has(&[("XDG_RUNTIME_DIR", "/run/user/2")], "/run/user/1/bus"));
    }

    #[tokio::test]
    async fn a_program_that_fails_or_is_missing_is_told_of() {
        let way = |program| Way { program, arguments: vec!["-c".to_owned()], variables: Vec::new() };
        let missing = run(&way("steady-relay-no-such-program")).await.unwrap_err();
        assert!(missing.starts_with("steady-relay-no-such-program: "), "{missing}");
    }
}
