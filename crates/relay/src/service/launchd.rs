//! macOS: a launch agent of the user. launchd starts the relay at login and again whenever it fails; the port is the
//! relay's own, since taking sockets from launchd needs calls that no safe code can make.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use relay_core::Lang;

use super::quote::for_shell;
use super::{Aim, Job, Order, ServiceError, User, Written, order, try_order};
use crate::words::service as say;

/// How launchd knows it.
pub(super) const LABEL: &str = "io.github.steady-relay";

fn home(user: &User) -> Result<&PathBuf, ServiceError> {
    user.home.as_ref().ok_or(ServiceError::NoHome("HOME"))
}

/// Where the agent's file is.
pub(super) fn path(user: &User) -> Result<PathBuf, ServiceError> {
    Ok(home(user)?.join("Library").join("LaunchAgents").join(format!("{LABEL}.plist")))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The agent of a job.
pub(super) fn files(job: &Job, user: &User, lang: Lang) -> Result<Vec<Written>, ServiceError> {
    let log = home(user)?.join("Library").join("Logs").join("steady-relay.log");
    let program = job.program.to_string_lossy();
    let mut arguments = job.arguments.clone();
    if !job.has_log {
        // What launchd itself writes for an agent grows without a bound; the relay's own log does not.
        arguments.push(format!("--log-file={}", log.to_string_lossy()));
    }
    // A program that is gone, and settings that are wrong, stay so until somebody does something. That is told once, and
    // with a success, after which launchd lets it be: else it would try for ever.
    let tell = |words: &str| {
        let notice = format!("display notification {} with title \"Steady Relay\"", apple_text(words));
        let (words, notice) = (for_shell(words), for_shell(&notice));
        format!("echo {words} >&2; osascript -e {notice} >/dev/null 2>&1; exit 0")
    };
    let script = format!(
        r#"if [ ! -x "$0" ]; then {gone}; fi
child=; stop=; trap 'stop=1; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT HUP
"$0" "$@" & child=$!
[ -z "$stop" ] || kill "$child"
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
if [ "$code" = 2 ]; then {wrong}; fi
exit "$code""#,
        gone = tell(&say::gone_notice(lang, &program)),
        wrong = tell(&say::wrong_notice(lang, &program)),
    );
    let line = ["/bin/sh", "-c", &script, &program];
    let line = line.into_iter().chain(arguments.iter().map(String::as_str));
    let mut words = String::new();
    for word in line {
        // Writing to a text cannot fail.
        let _always = writeln!(words, "    <string>{}</string>", escaped(word));
    }
    let mut variables = String::new();
    for (name, value) in &job.environment {
        let _always =
            writeln!(variables, "    <key>{}</key>\n    <string>{}</string>", escaped(name), escaped(value));
    }
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by `steady-relay service install`; `steady-relay service remove` deletes it. -->
<!-- {record} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>1</integer>
  <key>ExitTimeOut</key>
  <integer>{stop}</integer>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  <string>/dev/null</string>
</dict>
</plist>
"#,
        record = job.record().line(),
        stop = job.drain.as_secs().saturating_add(10),
    );
    Ok(vec![Written { path: path(user)?, text, is_utf16: false }])
}

/// A text in AppleScript.
fn apple_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn domain(user: &User) -> String {
    format!("gui/{}", user.uid)
}

fn target(user: &User) -> String {
    format!("{}/{LABEL}", domain(user))
}

/// Loads the agent, which starts it; one that is loaded makes room first.
pub(super) fn install_orders(user: &User, patience: Duration) -> Result<Vec<Order>, ServiceError> {
    let path = path(user)?.to_string_lossy().into_owned();
    let mut orders = remove_orders(user, patience);
    orders.extend([
        try_order(&["launchctl", "enable", &target(user)]),
        order(&["launchctl", "bootstrap", &domain(user), &path]),
    ]);
    Ok(orders)
}

pub(super) fn start_orders(user: &User) -> Result<Vec<Order>, ServiceError> {
    let path = path(user)?.to_string_lossy().into_owned();
    Ok(vec![
        // One that was stopped is not loaded.
        try_order(&["launchctl", "bootstrap", &domain(user), &path]),
        order(&["launchctl", "kickstart", &target(user)]),
    ])
}

pub(super) fn stop_orders(user: &User, patience: Duration) -> Vec<Order> {
    vec![order(&["launchctl", "bootout", &target(user)]), gone(user, patience)]
}

pub(super) fn remove_orders(user: &User, patience: Duration) -> Vec<Order> {
    vec![try_order(&["launchctl", "bootout", &target(user)]), gone(user, patience)]
}

/// `bootout` does not wait for a relay that lets its calls end, and no agent of the same name can be loaded before.
fn gone(user: &User, patience: Duration) -> Order {
    Order { aim: Aim::Fail(patience), ..status_order(user) }
}

/// How long an agent that was written takes to stop, at most.
pub(super) fn exit_time(text: &str) -> Option<Duration> {
    let (_, rest) = text.split_once("<key>ExitTimeOut</key>")?;
    let (number, _) = rest.trim_start().strip_prefix("<integer>")?.split_once('<')?;
    number.parse().ok().map(Duration::from_secs)
}

pub(super) fn status_order(user: &User) -> Order {
    order(&["launchctl", "print", &target(user)])
}

/// The process of the agent, in what launchd prints of it.
pub(super) fn pid(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().strip_prefix("pid = ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{job, user};
    use super::*;

    #[test]
    fn the_agent_is_a_property_list_that_says_what_to_run() {
        let job = Job {
            environment: vec![("XDG_STATE_HOME".into(), "/a & <b>".into())],
            program: "/Applications/it's \"A & B\"/steady-relay".into(),
            ..job()
        };
        for lang in Lang::ALL {
            let [file] = files(&job, &user(), lang).unwrap().try_into().unwrap();
            assert!(file.path.ends_with("Library/LaunchAgents/io.github.steady-relay.plist"));
            assert_eq!(super::super::Record::of(&file.text), Some(job.record()));
            let agent =
                plist::Value::from_reader_xml(file.text.as_bytes()).unwrap().into_dictionary().unwrap();
            assert_eq!(agent["Label"].as_string(), Some(LABEL));
            let words: Vec<_> = agent["ProgramArguments"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_string().unwrap())
                .collect();
            assert_eq!(words[..2], ["/bin/sh", "-c"]);
            assert_eq!(words[3], job.program.to_str().unwrap());
            assert_eq!(words[4..words.len() - 1], job.arguments);
            assert_eq!(words.last(), Some(&"--log-file=/home/me/Library/Logs/steady-relay.log"));
            assert_eq!(agent["StandardErrorPath"].as_string(), Some("/dev/null"));
            let keep = agent["KeepAlive"].as_dictionary().unwrap();
            assert_eq!(keep["SuccessfulExit"].as_boolean(), Some(false));
            assert_eq!(agent["RunAtLoad"].as_boolean(), Some(true));
            let variables = agent["EnvironmentVariables"].as_dictionary().unwrap();
            assert_eq!(variables["XDG_STATE_HOME"].as_string(), Some("/a & <b>"));
            assert_eq!(agent["ExitTimeOut"].as_signed_integer(), Some(310));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_is_gone_is_told_and_one_that_is_there_is_started() {
        let line = |program: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
            let job = Job { program: program.into(), arguments, has_log: true, ..job() };
            let [file] = files(&job, &user(), Lang::English).unwrap().try_into().unwrap();
            let agent =
                plist::Value::from_reader_xml(file.text.as_bytes()).unwrap().into_dictionary().unwrap();
            let words: Vec<_> = agent["ProgramArguments"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_string().unwrap())
                .collect();
            let mut command = std::process::Command::new(words[0]);
            command
                .args(&words[1..])
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let ended = |child: std::process::Child| child.wait_with_output().unwrap();
        let gone = ended(line("/nowhere/it's", &["serve"]));
        assert!(gone.status.success());
        assert!(String::from_utf8_lossy(&gone.stderr).contains("/nowhere/it's"));
        let there = ended(line("/bin/sh", &["-c", "echo $1; exit 3", "sh", "a b"]));
        assert_eq!((there.status.code(), there.stdout.as_slice()), (Some(3), &b"a b\n"[..]));
        // Wrong settings are no reason to try again.
        let wrong = ended(line("/bin/sh", &["-c", "exit 2"]));
        assert!(wrong.status.success());
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("config check"));
        // A stop is handed on, and waited for.
        use std::io::{BufRead as _, BufReader};
        let script = "trap 'sleep 0.1; echo ended; exit 0' TERM; echo begun; while :; do sleep 0.01; done";
        let mut stopped = line("/bin/sh", &["-c", script]);
        let mut said = BufReader::new(stopped.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "begun");
        let pid = rustix::process::Pid::from_child(&stopped);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "ended");
        assert!(stopped.wait().unwrap().success());
    }

    #[test]
    fn an_agent_tells_how_long_it_takes_to_stop() {
        let [file] = files(&job(), &user(), Lang::English).unwrap().try_into().unwrap();
        assert_eq!(exit_time(&file.text), Some(Duration::from_secs(310)));
        assert_eq!(exit_time("<key>ExitTimeOut</key><integer>x</integer>"), None);
    }

    #[test]
    fn the_process_is_found_in_what_launchd_prints() {
        assert_eq!(pid("gui/501/x = {\n\tstate = running\n\tpid = 4711\n}\n"), Some(4711));
        assert_eq!(pid("state = not running\n"), None);
    }
}
