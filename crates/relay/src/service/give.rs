//! Gives one order to a service manager, and waits for it no longer than it can take.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use relay_core::plain::is_unfit;

use super::{Order, ServiceError};

/// No answer takes longer, from whoever is well.
const ASKED: Duration = Duration::from_secs(30);
/// What starts may take as long as its unit says.
const STARTS: Duration = Duration::from_secs(30);
/// The words by which something starts or stops.
const WORKS: [&str; 6] = ["start", "stop", "restart", "bootstrap", "bootout", "kickstart"];
/// No more is read of what is said.
const MOST: u64 = 64 * 1024;
/// How long what was said may take to arrive once who said it is gone.
const SOON: Duration = Duration::from_secs(1);
/// How often it is looked whether a command has ended.
const LOOKS: Duration = Duration::from_millis(10);

/// How long an order may take, where what runs takes `drain` to stop.
pub(super) fn limit(order: &Order, drain: Duration) -> Duration {
    let works = order.line.iter().any(|word| WORKS.contains(&word.as_str()));
    if works { ASKED.saturating_add(STARTS).saturating_add(drain) } else { ASKED }
}

/// Gives one order; what it printed.
pub(super) fn run(order: &Order, within: Duration) -> Result<String, ServiceError> {
    let refused = |why: String| ServiceError::Refused(order.line.join(" "), why);
    let Some((program, arguments)) = order.line.split_first() else { return Ok(String::new()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| refused(error.to_string()))?;
    let (out, err) = (heard(child.stdout.take()), heard(child.stderr.take()));
    let Some(status) = ended(&mut child, within).map_err(|error| refused(error.to_string()))? else {
        return Err(ServiceError::Hangs(order.line.join(" "), within.as_secs()));
    };
    // What it leaves behind may hold the pipes: that is not waited for.
    let out = out.recv_timeout(SOON).unwrap_or_default();
    if status.success() {
        return Ok(out);
    }
    let err = err.recv_timeout(SOON).unwrap_or_default();
    let said = first_lines(if err.trim().is_empty() { &out } else { &err });
    Err(refused(if said.is_empty() { status.to_string() } else { said }))
}

/// What comes out of a pipe, sent on at its end.
fn heard(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _whole = pipe.by_ref().take(MOST).read_to_end(&mut bytes);
            let _unread = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        let _nobody_waits = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

/// How it ended; `None`: it did not, and was killed.
fn ended(child: &mut Child, within: Duration) -> std::io::Result<Option<ExitStatus>> {
    let mut left = within;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if left.is_zero() {
            let _gone = child.kill();
            return child.wait().map(|_killed| None);
        }
        thread::sleep(LOOKS);
        left = left.saturating_sub(LOOKS);
    }
}

/// The first lines say it; what follows is advice about another program. Nothing in them moves the cursor.
fn first_lines(said: &str) -> String {
    let clean = |line: &str| line.chars().filter(|sign| !is_unfit(*sign)).take(500).collect::<String>();
    let lines: Vec<_> =
        said.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).map(clean).collect();
    lines.join(" ")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::order;
    use super::*;

    #[test]
    fn one_that_hangs_is_ended_and_told() {
        let hung = run(&order(&["/bin/sh", "-c", "sleep 60 & sleep 60"]), Duration::from_millis(200));
        assert!(
            matches!(&hung, Err(ServiceError::Hangs(line, _)) if line.starts_with("/bin/sh")),
            "{hung:?}"
        );
    }

    #[test]
    fn what_it_says_is_short_and_moves_no_cursor() {
        let said = |script: &str| match run(&order(&["/bin/sh", "-c", script]), ASKED) {
            Err(ServiceError::Refused(_, said)) => said,
            other => format!("{other:?}"),
        };
        assert_eq!(said("printf 'no\\033[2J\\007\\n\\none\\nthree\\n' >&2; exit 1"), "no[2J one");
        assert_eq!(said("echo out; exit 1"), "out");
        assert!(said("yes | head -c 1000000; exit 1").len() < 20);
    }

    #[test]
    fn what_stops_may_take_as_long_as_open_calls_do() {
        let drain = Duration::from_secs(300);
        assert_eq!(limit(&order(&["systemctl", "--user", "show"]), drain), ASKED);
        assert_eq!(limit(&order(&["systemctl", "--user", "stop", "x"]), drain), Duration::from_secs(360));
    }
}
