//! Linux: units of the user's systemd. systemd holds the port, so that it answers while the relay restarts; where the
//! relay cannot be started, another socket takes the port and tells each client so.
//!
//! ```text
//!   steady-relay.socket ---passes its sockets---> steady-relay.service      (restarted whenever it ends)
//!         ^                                             | OnFailure: no program, wrong settings
//!         |                                             v
//!         |                                  steady-relay-failed.service    (says so, and changes the sockets)
//!         |                                             v
//!   once there is                            steady-relay-absent.socket
//!   a program again                                     | for each client
//!         '---------------------------------- steady-relay-absent@.service  (/bin/sh alone: answers and ends)
//! ```
//!
//! The sockets are changed one after the other by commands. By `Conflicts=` alone a client that waits at the one that
//! goes has it come back while the other begins, and then nobody has the port.

use std::path::{Path, PathBuf};

use relay_core::Lang;
use serde_json::json;

use super::quote::{for_shell, for_systemd, program_for_systemd};
use super::{Job, Order, ServiceError, User, Written, order, try_order};
use crate::running::who::ABSENT_CODE;
use crate::words::service as say;

const SERVICE: &str = "steady-relay.service";
const SOCKET: &str = "steady-relay.socket";
const ABSENT: &str = "steady-relay-absent.socket";
const ABSENT_SERVICE: &str = "steady-relay-absent@.service";
const FAILED: &str = "steady-relay-failed.service";

/// The units: the relay, its port, what takes their place.
pub(super) const UNITS: [&str; 5] = [SERVICE, SOCKET, ABSENT, ABSENT_SERVICE, FAILED];

/// What a service of a user can be forbidden without anybody's help: what the relay never does.
const SANDBOX: &str = "\
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
UMask=0077
";

/// The folder of this user's units.
pub(super) fn folder(user: &User) -> Result<PathBuf, ServiceError> {
    let config = user.config.clone().or_else(|| user.home.as_ref().map(|home| home.join(".config")));
    Ok(config.ok_or(ServiceError::NoHome("HOME"))?.join("systemd").join("user"))
}

/// The units of a job.
pub(super) fn files(job: &Job, user: &User, lang: Lang) -> Result<Vec<Written>, ServiceError> {
    // It refuses such a path however it is quoted.
    if job.program.to_string_lossy().contains(['\'', '"', '\\']) {
        return Err(ServiceError::OddProgram(job.program.clone()));
    }
    let folder = folder(user)?;
    let texts = [service(job), socket(job), absent_socket(job), absent_service(job, lang), failed(job, lang)];
    let file = |(name, text): (&str, String)| Written { path: folder.join(name), text, is_utf16: false };
    Ok(UNITS.into_iter().zip(texts).map(file).collect())
}

/// What systemd links to the units that are to run from a login on.
pub(super) fn links(folder: &Path) -> [PathBuf; 2] {
    [folder.join("default.target.wants").join(SERVICE), folder.join("sockets.target.wants").join(SOCKET)]
}

/// Puts the units in force and starts them; `moved`: where they listen is changed.
pub(super) fn install_orders(moved: bool) -> Vec<Order> {
    let mut orders = vec![order(&["systemctl", "--user", "daemon-reload"])];
    orders.push(order(&["systemctl", "--user", "enable", SOCKET, SERVICE]));
    if moved {
        orders.push(try_order(&["systemctl", "--user", "stop", SERVICE, SOCKET, FAILED, ABSENT]));
    }
    orders.extend(start_orders());
    // Of one that runs already: what runs is to be what is installed.
    if !moved {
        orders.push(order(&["systemctl", "--user", "restart", SERVICE]));
    }
    orders
}

pub(super) fn start_orders() -> Vec<Order> {
    vec![
        try_order(&["systemctl", "--user", "reset-failed", SERVICE, SOCKET]),
        try_order(&["systemctl", "--user", "stop", FAILED, ABSENT]),
        order(&["systemctl", "--user", "start", SOCKET, SERVICE]),
    ]
}

pub(super) fn stop_orders() -> Vec<Order> {
    vec![order(&["systemctl", "--user", "stop", SERVICE, SOCKET, FAILED, ABSENT])]
}

/// Before the units are deleted, and after.
pub(super) fn remove_orders() -> (Vec<Order>, Vec<Order>) {
    let before = vec![
        try_order(&["systemctl", "--user", "stop", SERVICE, SOCKET, FAILED, ABSENT]),
        try_order(&["systemctl", "--user", "disable", SERVICE, SOCKET]),
    ];
    let after = vec![
        try_order(&["systemctl", "--user", "daemon-reload"]),
        try_order(&["systemctl", "--user", "reset-failed", SERVICE, SOCKET, FAILED, ABSENT]),
    ];
    (before, after)
}

/// Asks how the units are.
pub(super) fn status_order() -> Order {
    let properties = "--property=Id,ActiveState,SubState,MainPID,NRestarts";
    order(&["systemctl", "--user", "show", properties, SERVICE, SOCKET, ABSENT])
}

/// What systemd says of the units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shown {
    /// Of the relay: `active`, `activating`, `failed` …
    pub(super) state: String,
    pub(super) pid: Option<u32>,
    /// How often it was started anew by itself.
    pub(super) restarts: u32,
    /// Whether the stand-in has the port.
    pub(super) is_absent: bool,
}

/// Reads what [`status_order`] prints: a block of `NAME=value` for each unit.
pub(super) fn shown(text: &str) -> Shown {
    let mut shown = Shown::default();
    for block in text.split("\n\n") {
        let value = |name: &str| {
            let of_name = |line: &'_ str| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
            block.lines().find_map(of_name).unwrap_or_default()
        };
        match value("Id").as_str() {
            SERVICE => {
                shown.state = value("ActiveState");
                shown.pid = value("MainPID").parse().ok().filter(|pid| *pid != 0);
                shown.restarts = value("NRestarts").parse().unwrap_or_default();
            }
            ABSENT => shown.is_absent = value("ActiveState") == "active",
            _ => {}
        }
    }
    shown
}

fn head(job: &Job) -> String {
    format!(
        "# Written by `steady-relay service install`; `steady-relay service remove` deletes it.\n# {}\n",
        job.record().line()
    )
}

fn service(job: &Job) -> String {
    let program = program_for_systemd(&job.program.to_string_lossy());
    let arguments: String = job.arguments.iter().map(|word| format!(" {}", for_systemd(word))).collect();
    let variable = |(name, value): &(String, String)| {
        format!("Environment={}\n", program_for_systemd(&format!("{name}={value}")))
    };
    let environment: String = job.environment.iter().map(variable).collect();
    let stop = job.drain.as_secs().saturating_add(10);
    format!(
        "{}
[Unit]
Description=Steady Relay, which keeps AI coding agents going when a service is at capacity
Requires={SOCKET}
After={SOCKET}
OnFailure={FAILED}
# A relay that is killed comes back each time; one that cannot start does not try for ever.
StartLimitIntervalSec=10
StartLimitBurst=50

[Service]
Type=notify
ExecStart={program}{arguments}
ExecReload=/bin/kill -HUP $MAINPID
{environment}Restart=always
RestartSec=100ms
# Wrong settings and a missing program do not mend by themselves.
RestartPreventExitStatus=2 203
TimeoutStartSec=30
# Open calls may end first, as long as the settings say.
TimeoutStopSec={stop}
KillMode=mixed
{SANDBOX}
[Install]
WantedBy=default.target
",
        head(job)
    )
}

fn listen(job: &Job) -> String {
    job.addresses.iter().map(|address| format!("ListenStream={address}\n")).collect()
}

fn socket(job: &Job) -> String {
    format!(
        "{}
[Unit]
Description=The port of Steady Relay
StartLimitIntervalSec=0

[Socket]
{}Service={SERVICE}
FileDescriptorName=steady-relay
Backlog=1024
# Those that wait while the relay restarts start it, each anew.
TriggerLimitIntervalSec=2s
TriggerLimitBurst=1000

[Install]
WantedBy=sockets.target
",
        head(job),
        listen(job)
    )
}

fn absent_socket(job: &Job) -> String {
    format!(
        "{}
[Unit]
Description=The port of Steady Relay while it does not start
# Each client that asks has the relay tried once more, and the port comes back each time.
StartLimitIntervalSec=0

[Socket]
{}Accept=yes
MaxConnections=64
TriggerLimitIntervalSec=2s
TriggerLimitBurst=1000
",
        head(job),
        listen(job)
    )
}

fn failed(job: &Job, lang: Lang) -> String {
    let words = for_shell(&say::absent_notice(lang, &job.program.to_string_lossy()));
    // Where there is a desktop it is told at once, and the journal in any case.
    let script = format!(
        "echo {words} >&2; if command -v notify-send >/dev/null 2>&1; then notify-send 'Steady Relay' {words}; fi; \
         systemctl --user stop {SOCKET}; systemctl --user start {ABSENT}"
    );
    format!(
        "{}
[Unit]
Description=Tells that Steady Relay does not start
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/bin/sh -c {}
TimeoutStartSec=30
",
        head(job),
        for_systemd(&script)
    )
}

fn absent_service(job: &Job, lang: Lang) -> String {
    format!(
        "{}
[Unit]
Description=Tells a client that Steady Relay does not start
CollectMode=inactive-or-failed

[Service]
ExecStart=-/bin/sh -c {}
StandardInput=socket
StandardOutput=socket
StandardError=journal
RuntimeMaxSec=10
{SANDBOX}",
        head(job),
        for_systemd(&absent_script(job, lang))
    )
}

/// Answers one client by means of /bin/sh alone. A program that is there is started after that: it may have come back.
fn absent_script(job: &Job, lang: Lang) -> String {
    let program = job.program.to_string_lossy();
    let body = |words: String| {
        let error =
            json!({"type": ABSENT_CODE, "code": ABSENT_CODE, "message": format!("steady-relay: {words}")});
        json!({"type": "error", "error": error}).to_string()
    };
    let (gone, broken) = (body(say::absent_gone(lang, &program)), body(say::absent_broken(lang)));
    // 400, since clients send a 5xx again and again: nothing mends by that. Codex prints the text of a 400.
    let answer = |body: &str| {
        format!(
            "printf 'HTTP/1.1 400 Bad Request\\r\\ncontent-type: application/json\\r\\nx-should-retry: false\\r\\n\
             content-length: {}\\r\\nconnection: close\\r\\n\\r\\n%s' {}",
            body.len(),
            for_shell(body)
        )
    };
    let program = for_shell(&program);
    // The head is read before it is answered, and what follows after: else closing would take the answer away.
    format!(
        "while IFS= read -r line && [ ${{#line}} -gt 1 ]; do :; done; \
         if [ -x {program} ]; then {}; systemctl --user stop {ABSENT}; systemctl --user --no-block start {SOCKET} {SERVICE}; \
         else {}; fi; \
         exec timeout 2 cat >/dev/null",
        answer(&broken),
        answer(&gone)
    )
}

#[cfg(test)]
#[path = "../../tests/support/tools.rs"]
mod tools;

#[cfg(test)]
mod tests {
    use super::super::tests::{job, user};
    use super::*;

    fn text_of(name: &str) -> String {
        let files = files(&job(), &user(), Lang::English).unwrap();
        files.into_iter().find(|file| file.path.ends_with(name)).unwrap().text
    }

    #[test]
    fn units_go_into_the_folder_of_the_user() {
        let user = User { config: Some("/c".into()), ..user() };
        assert_eq!(folder(&user).unwrap(), Path::new("/c/systemd/user"));
        assert!(matches!(folder(&User::default()), Err(ServiceError::NoHome("HOME"))));
    }

    #[test]
    fn the_command_line_is_quoted_and_both_addresses_are_held() {
        let service = text_of(SERVICE);
        let line = r#"ExecStart="/home/me/a b/steady-relay" "serve" "--upstream=https://h/a%%20b?$$x=\"1\"""#;
        assert!(service.contains(line), "{service}");
        assert!(service.contains("Environment=\"XDG_CONFIG_HOME=/home/me/my config\"\n"), "{service}");
        assert!(service.contains("TimeoutStopSec=310\n"), "{service}");
        for name in [SOCKET, ABSENT] {
            let socket = text_of(name);
            assert!(socket.contains("ListenStream=127.0.0.1:8787\nListenStream=[::1]:8787\n"), "{socket}");
        }
    }

    #[test]
    fn a_program_that_systemd_does_not_start_is_refused() {
        for odd in ["/home/it's/p", "/home/a\"b/p", "/home/a\\b/p"] {
            let job = Job { program: odd.into(), ..job() };
            let refused = files(&job, &user(), Lang::English);
            assert!(
                matches!(refused, Err(ServiceError::OddProgram(path)) if path == Path::new(odd)),
                "{odd}"
            );
        }
    }

    #[test]
    fn every_unit_says_whose_it_is() {
        for file in files(&job(), &user(), Lang::Chinese).unwrap() {
            assert_eq!(super::super::Record::of(&file.text), Some(job().record()), "{}", file.text);
        }
    }

    #[test]
    fn what_systemd_says_is_understood() {
        let text = "Id=steady-relay.service\nActiveState=active\nSubState=running\nMainPID=12\nNRestarts=3\n\n\
                    Id=steady-relay.socket\nActiveState=active\n\nId=steady-relay-absent.socket\nActiveState=active\n";
        let all = Shown { state: "active".into(), pid: Some(12), restarts: 3, is_absent: true };
        assert_eq!(shown(text), all);
        assert_eq!(shown(""), Shown::default());
        assert_eq!(shown("Id=steady-relay.service\nMainPID=0\nNRestarts=x").pid, None);
    }

    #[cfg(unix)]
    #[test]
    fn the_stand_in_answers_in_a_form_that_clients_show() {
        use std::io::Write as _;
        let missing = Job { program: "/nowhere/it's".into(), ..job() };
        for lang in Lang::ALL {
            let mut shell = std::process::Command::new("/bin/sh")
                .args(["-c", &absent_script(&missing, lang)])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            shell.stdin.take().unwrap().write_all(b"POST / HTTP/1.1\r\nhost: x\r\n\r\n{}").unwrap();
            let said = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["error"]["code"], ABSENT_CODE);
            assert!(body["error"]["message"].as_str().unwrap().contains("/nowhere/it's"), "{body}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn systemd_finds_nothing_wrong_with_the_units() {
        let folder = std::env::temp_dir().join(format!("steady-relay-units-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // It wants the program to be there.
        let job = Job { program: std::env::current_exe().unwrap(), ..job() };
        let user = User { config: Some(folder.clone()), ..user() };
        let mut verify = std::process::Command::new("systemd-analyze");
        verify.args(["--user", "--man=no", "verify"]).env("XDG_RUNTIME_DIR", &folder);
        for file in files(&job, &user, Lang::Chinese).unwrap() {
            std::fs::create_dir_all(file.path.parent().unwrap()).unwrap();
            std::fs::write(&file.path, &file.text).unwrap();
            verify.arg(&file.path);
        }
        let Ok(output) = verify.output() else {
            return tools::missing("systemd-analyze");
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!said.contains("steady-relay"), "{said}");
    }
}
