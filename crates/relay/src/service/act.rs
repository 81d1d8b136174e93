//! Carries the verbs out: files, commands of the service manager, one question to the relay. What to write and to
//! order is decided elsewhere.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relay_core::Lang;
use serde::Serialize;

use super::obstacle::{Facts, Obstacle};
use super::{Aim, Job, Order, Record, ServiceError, System, User, Written, give, launchd, systemd, tasks};
use crate::clock::{Clock as _, SystemClock};
use crate::private;
use crate::running::who::{self, Who};
use crate::settings::Environment;
use crate::wsl::in_wsl;

/// No file of ours is longer.
const LONGEST: u64 = 256 * 1024;
/// How long launchd lets an agent take to stop whose file does not tell, and a little more.
const LONGEST_STOP: Duration = Duration::from_secs(30);
/// How often it is asked whether something is gone.
const ASKING: Duration = Duration::from_millis(100);

/// The service manager of one user.
#[derive(Debug, Clone)]
pub struct Manager {
    /// Which one.
    pub system: System,
    /// Whose.
    pub user: User,
    /// The language of what is written for people.
    pub lang: Lang,
}

/// What became of an installation.
#[derive(Debug)]
pub struct Installed {
    /// What was written.
    pub files: Vec<PathBuf>,
    /// What was installed before, if anything was.
    pub before: Option<Record>,
}

/// How a service is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// What is installed; `None`: nothing.
    pub installed: Option<Record>,
    /// What the service manager says.
    pub state: State,
    /// The process, where the service manager tells.
    pub pid: Option<u32>,
    /// How often the service manager started it anew by itself.
    pub restarts: u32,
    /// Whether the program is there.
    pub has_program: bool,
    /// Who answers at its first address.
    pub answer: Who,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// What the service manager says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It runs.
    Running,
    /// It starts or stops.
    Changing,
    /// It does not run.
    Stopped,
    /// It cannot be started.
    Failed,
    /// The service manager does not tell.
    Unknown,
}

impl Status {
    /// Whether the address is the service's now: by its state, or by who answers.
    fn is_up(&self) -> bool {
        let is_up = matches!(self.state, State::Running | State::Changing | State::Failed);
        is_up || matches!(self.answer, Who::Relay | Who::StandIn)
    }
}

impl Manager {
    /// The one of the user whose environment this is.
    ///
    /// # Errors
    /// On a system without any that is known.
    pub fn here(environment: &dyn Environment, lang: Lang) -> Result<Self, ServiceError> {
        let system = System::here().ok_or(ServiceError::NoManager(Obstacle::System))?;
        let text = |name| environment.value(name).and_then(|value| value.into_string().ok());
        let path = |name| environment.value(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let account = text("USERNAME").map(|name| match text("USERDOMAIN") {
            Some(domain) => format!("{domain}\\{name}"),
            None => name,
        });
        #[cfg(unix)]
        let uid = rustix::process::getuid().as_raw();
        #[cfg(not(unix))]
        let uid = 0;
        let user = User {
            home: path("HOME"),
            config: path("XDG_CONFIG_HOME"),
            local_app_data: path("LOCALAPPDATA"),
            uid,
            account,
        };
        Ok(Self { system, user, lang })
    }

    /// What is in the way of any service, if anything is.
    ///
    /// # Errors
    /// With that.
    pub fn is_there(&self) -> Result<(), ServiceError> {
        match self.system {
            System::Systemd => on_linux(),
            System::Launchd | System::Tasks => Ok(()),
        }
    }

    /// The files of a job.
    ///
    /// # Errors
    /// Where the environment does not tell where they belong, or no file can hold the job.
    pub fn files(&self, job: &Job) -> Result<Vec<Written>, ServiceError> {
        job.fits()?;
        match self.system {
            System::Systemd => systemd::files(job, &self.user, self.lang),
            System::Launchd => launchd::files(job, &self.user, self.lang),
            System::Tasks => tasks::files(job, &self.user),
        }
    }

    fn paths(&self) -> Result<Vec<PathBuf>, ServiceError> {
        Ok(match self.system {
            System::Systemd => {
                let folder = systemd::folder(&self.user)?;
                systemd::UNITS.iter().map(|name| folder.join(name)).collect()
            }
            System::Launchd => vec![launchd::path(&self.user)?],
            System::Tasks => vec![tasks::path(&self.user)?],
        })
    }

    /// The files that are there, with what each says of itself.
    ///
    /// # Errors
    /// Where one is not ours, or cannot be read.
    pub fn installed(&self) -> Result<Vec<(PathBuf, Record)>, ServiceError> {
        let mut found = Vec::new();
        for path in self.paths()? {
            match private::read_open(&path, LONGEST) {
                Ok(bytes) => match Record::of(&decoded(&bytes)) {
                    Some(record) => found.push((path, record)),
                    None => return Err(ServiceError::NotOurs(path)),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(ServiceError::File(path, error)),
            }
        }
        Ok(found)
    }

    /// What is installed.
    ///
    /// # Errors
    /// Where nothing is, or a file is not ours.
    pub fn record(&self) -> Result<Record, ServiceError> {
        let first = self.installed()?.into_iter().next();
        first.map(|(_, record)| record).ok_or(ServiceError::NotInstalled)
    }

    /// Writes the files of a job and starts it.
    ///
    /// # Errors
    /// Where a file cannot be written or the service manager refuses.
    pub fn install(&self, job: &Job) -> Result<Installed, ServiceError> {
        let before = self.installed()?.into_iter().next().map(|(_, record)| record);
        let drain = self.drain();
        let patience = self.patience();
        let files = self.files(job)?;
        for file in &files {
            let failed = |error| ServiceError::File(file.path.clone(), error);
            let folder = file.path.parent().unwrap_or(Path::new("/"));
            private::folder(folder).map_err(failed)?;
            private::replace(&file.path, &encoded(file)).map_err(failed)?;
        }
        let moved = before.as_ref().is_some_and(|before| before.addresses != job.addresses);
        let orders = match self.system {
            System::Systemd => systemd::install_orders(moved),
            System::Launchd => launchd::install_orders(&self.user, patience)?,
            System::Tasks => tasks::install_orders(&self.user)?,
        };
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
        match run_all(&orders, drain.max(self.drain())) {
            Ok(()) => Ok(Installed { files, before }),
            Err(error) => Err(ServiceError::Left(Box::new(error), files)),
        }
    }

    /// How long what is installed takes to stop, at most, where its file tells.
    fn patience(&self) -> Duration {
        let text = launchd::path(&self.user).ok().and_then(|path| private::read_open(&path, LONGEST).ok());
        text.and_then(|bytes| launchd::exit_time(&decoded(&bytes))).unwrap_or(LONGEST_STOP)
    }

    /// Starts what is installed.
    ///
    /// # Errors
    /// Where nothing is, or the service manager refuses.
    pub fn start(&self) -> Result<Record, ServiceError> {
        let record = self.record()?;
        run_all(
            &match self.system {
                System::Systemd => systemd::start_orders(),
                System::Launchd => launchd::start_orders(&self.user)?,
                System::Tasks => tasks::start_orders(),
            },
            self.drain(),
        )?;
        Ok(record)
    }

    /// Stops it.
    ///
    /// # Errors
    /// Where nothing is installed, or the service manager refuses.
    pub fn stop(&self) -> Result<Record, ServiceError> {
        let record = self.record()?;
        run_all(
            &match self.system {
                System::Systemd => systemd::stop_orders(),
                System::Launchd => launchd::stop_orders(&self.user, self.patience()),
                System::Tasks => tasks::stop_orders(),
            },
            self.drain(),
        )?;
        Ok(record)
    }

    /// Stops it and deletes its files, and the folders that are empty then; works without a service manager, too, where
    /// nothing runs.
    ///
    /// # Errors
    /// Where it cannot be stopped, or a file is not ours or cannot be deleted.
    pub fn remove(&self) -> Result<Vec<(PathBuf, Record)>, ServiceError> {
        let files = self.installed()?;
        if files.is_empty() {
            return Ok(files);
        }
        let (before, after) = match self.system {
            System::Systemd => systemd::remove_orders(),
            System::Launchd => (launchd::remove_orders(&self.user, self.patience()), Vec::new()),
            System::Tasks => (tasks::remove_orders(), Vec::new()),
        };
        self.stopped_by(&before, &files)?;
        for (path, _) in &files {
            fs::remove_file(path).map_err(|error| ServiceError::File(path.clone(), error))?;
        }
        if self.system == System::Systemd {
            let folder = systemd::folder(&self.user)?;
            for link in systemd::links(&folder) {
                // What is not there, or not empty, stays as it is.
                let _gone = fs::remove_file(&link);
                let _kept = link.parent().map(fs::remove_dir);
            }
            let _kept = fs::remove_dir(&folder).and_then(|()| folder.parent().map_or(Ok(()), fs::remove_dir));
        }
        run_all(&after, Duration::ZERO)?;
        Ok(files)
    }

    /// Gives the orders before a removal, of which the first stops the service: while it may run, its files stay, as
    /// nothing else could stop it.
    fn stopped_by(&self, orders: &[Order], files: &[(PathBuf, Record)]) -> Result<(), ServiceError> {
        let Some((stop, others)) = orders.split_first() else { return Ok(()) };
        // systemd refuses to stop what it has no file of.
        let is_there = |word: &String| {
            !systemd::UNITS.contains(&word.as_str()) || files.iter().any(|(path, _)| path.ends_with(word))
        };
        let line = stop.line.iter().filter(|word| is_there(word)).cloned().collect();
        let stop = Order { line, aim: Aim::Succeed };
        if let Err(error) = give::run(&stop, give::limit(&stop, self.drain())) {
            let mut addresses = files.iter().flat_map(|(_, record)| &record.addresses);
            let is_over = match self.system {
                System::Systemd => {
                    matches!(self.is_there(), Err(ServiceError::NoManager(_)))
                        && addresses.all(|at| who::ask(*at) == Who::Nobody)
                }
                // What is not loaded cannot be stopped.
                System::Launchd => run(&launchd::status_order(&self.user)).is_err(),
                System::Tasks => addresses.all(|at| who::ask(*at) == Who::Nobody),
            };
            if !is_over {
                return Err(error);
            }
        }
        run_all(others, Duration::ZERO)?;
        // A task that is still known goes on at the next login.
        if self.system == System::Tasks && run(&tasks::status_order()).is_ok() {
            return Err(ServiceError::Refused(
                "schtasks /Delete".to_owned(),
                "the task is still there".to_owned(),
            ));
        }
        Ok(())
    }

    /// How long the installed service may take to stop, as its file says.
    fn drain(&self) -> Duration {
        let paths = self.paths().unwrap_or_default();
        let texts = paths.iter().filter_map(|path| Some(decoded(&private::read_open(path, LONGEST).ok()?)));
        Duration::from_secs(texts.filter_map(|text| stops_within(&text)).max().unwrap_or_default())
    }

    /// How it is.
    ///
    /// # Errors
    /// Where a file is not ours or cannot be read.
    pub fn status(&self) -> Result<Status, ServiceError> {
        let files = self.installed()?;
        let record = files.first().map(|(_, record)| record.clone());
        let (state, pid, restarts) = if record.is_some() { self.state() } else { (State::Stopped, None, 0) };
        let address = record.as_ref().and_then(|record| record.addresses.first());
        Ok(Status {
            state,
            pid,
            restarts,
            has_program: record.as_ref().is_some_and(|record| is_program(&record.program)),
            answer: address.map_or(Who::Nobody, |address| who::ask(*address)),
            files: files.into_iter().map(|(path, _)| path).collect(),
            installed: record,
        })
    }

    fn state(&self) -> (State, Option<u32>, u32) {
        match self.system {
            System::Systemd => {
                let said = run(&systemd::status_order()).unwrap_or_default();
                let shown = systemd::shown(&said);
                let state = match shown.state.as_str() {
                    _ if shown.is_absent => State::Failed,
                    "active" => State::Running,
                    "failed" => State::Failed,
                    "activating" | "deactivating" | "reloading" => State::Changing,
                    _ => State::Stopped,
                };
                (state, shown.pid, shown.restarts)
            }
            System::Launchd => {
                let pid = run(&launchd::status_order(&self.user)).ok().and_then(|said| launchd::pid(&said));
                (if pid.is_some() { State::Running } else { State::Stopped }, pid, 0)
            }
            // What it prints is in the language of Windows: whether it runs, the address tells.
            System::Tasks => {
                let is_known = run(&tasks::status_order()).is_ok();
                (if is_known { State::Unknown } else { State::Stopped }, None, 0)
            }
        }
    }

    /// Whether the service, as it is installed, has this port now.
    #[must_use]
    pub fn holds(&self, port: u16) -> bool {
        let has_port = |status: &Status| {
            status.installed.iter().flat_map(|it| &it.addresses).any(|at| at.port() == port)
        };
        self.status().is_ok_and(|status| has_port(&status) && status.is_up())
    }
}

/// The seconds after which systemd or launchd kills what does not stop.
fn stops_within(text: &str) -> Option<u64> {
    let (_, rest) =
        text.split_once("TimeoutStopSec=").or_else(|| text.split_once("<key>ExitTimeOut</key>"))?;
    let digits = rest.trim_start().trim_start_matches("<integer>");
    digits.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

/// Whether there is a program that can be started.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    let Ok(found) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    found.is_file() && may_run
}

/// Looks around on a Linux.
fn on_linux() -> Result<(), ServiceError> {
    let asked = run(&super::order(&["systemctl", "--user", "show", "--property=Version"]));
    let answers = asked.is_ok();
    if let Err(hangs @ ServiceError::Hangs(..)) = asked {
        return Err(hangs);
    }
    let is_there = |path: &str| Path::new(path).exists();
    let found = Obstacle::on_linux(Facts {
        answers,
        is_booted: is_there("/run/systemd/system"),
        is_wsl: in_wsl(),
        is_container: is_there("/.dockerenv")
            || is_there("/run/.containerenv")
            || std::env::var_os("container").is_some(),
    });
    found.map_or(Ok(()), |obstacle| Err(ServiceError::NoManager(obstacle)))
}

fn run_all(orders: &[Order], drain: Duration) -> Result<(), ServiceError> {
    for order in orders {
        match order.aim {
            Aim::Succeed => drop(give::run(order, give::limit(order, drain))?),
            Aim::Try => drop(give::run(order, give::limit(order, drain))),
            Aim::Fail(patience) => {
                let begun = SystemClock.now();
                while run(order).is_ok() && SystemClock.now().since(begun) < patience {
                    std::thread::sleep(ASKING);
                }
            }
        }
    }
    Ok(())
}

/// Asks something that needs no waiting.
fn run(order: &Order) -> Result<String, ServiceError> {
    give::run(order, give::limit(order, Duration::ZERO))
}

fn encoded(file: &Written) -> Vec<u8> {
    if !file.is_utf16 {
        return file.text.clone().into_bytes();
    }
    let with_mark = std::iter::once(0xfeff).chain(file.text.encode_utf16());
    with_mark.flat_map(u16::to_le_bytes).collect()
}

fn decoded(bytes: &[u8]) -> String {
    let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let units: Vec<_> = rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::super::tests::job;
    use super::*;

    #[test]
    fn what_is_written_for_windows_is_read_back() {
        let text = "<a>é</a>\n".to_owned();
        let file = |is_utf16| Written { path: PathBuf::new(), text: text.clone(), is_utf16 };
        assert_eq!(encoded(&file(true))[..4], [0xff, 0xfe, b'<', 0]);
        assert_eq!(
            [decoded(&encoded(&file(true))), decoded(&encoded(&file(false)))],
            [text.clone(), text.clone()]
        );
    }

    /// A launchctl whose agent is there for two more questions after it was told to go.
    #[cfg(unix)]
    #[test]
    fn an_agent_is_loaded_once_the_old_one_is_gone() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = std::env::temp_dir().join(format!("steady-relay-launchctl-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let script = home.join("launchctl");
        let text = "#!/bin/sh\ncd \"${0%/*}\"\necho \"$1\" >> orders\ncase $1 in\nbootout) echo 1 > going ;;\n\
            print) case $(cat going) in 1) echo 2 > going ;; 2) echo 3 > going ;; *) rm going; exit 113 ;; esac ;;\n\
            bootstrap) if [ -e going ]; then echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5; fi ;;\nesac\n";
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let user = User { home: Some(home.clone()), uid: 501, ..User::default() };
        let mut orders = launchd::install_orders(&user, Duration::from_secs(600)).unwrap();
        for order in &mut orders {
            assert_eq!(order.line[0], "launchctl");
            order.line[0] = script.display().to_string();
        }
        run_all(&orders, Duration::ZERO).unwrap();
        let given = fs::read_to_string(home.join("orders")).unwrap();
        assert_eq!(given, "bootout\nprint\nprint\nprint\nenable\nbootstrap\n");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn where_the_manager_does_not_tell_who_answers_does() {
        let status = |state, answer| Status {
            installed: None,
            state,
            pid: None,
            restarts: 0,
            has_program: true,
            answer,
            files: Vec::new(),
        };
        for (state, answer, is_up) in [
            (State::Unknown, Who::Stranger, false),
            (State::Unknown, Who::Nobody, false),
            (State::Unknown, Who::Relay, true),
            (State::Stopped, Who::StandIn, true),
            (State::Stopped, Who::Stranger, false),
            (State::Running, Who::Silent, true),
        ] {
            assert_eq!(status(state, answer).is_up(), is_up, "{state:?} {answer:?}");
        }
    }

    #[test]
    fn how_long_it_takes_to_stop_is_read_from_its_files() {
        let user = User { home: Some("/home/me".into()), ..User::default() };
        for system in [System::Systemd, System::Launchd] {
            let manager = Manager { system, user: user.clone(), lang: Lang::English };
            let files = manager.files(&job()).unwrap();
            assert_eq!(files.iter().find_map(|file| stops_within(&file.text)), Some(310), "{system:?}");
        }
    }

    #[test]
    fn a_unit_of_somebody_else_is_neither_taken_nor_deleted() {
        let home = std::env::temp_dir().join(format!("steady-relay-foreign-{}", std::process::id()));
        let manager = |system| Manager {
            system,
            user: User {
                home: Some(home.clone()),
                local_app_data: Some(home.clone()),
                account: Some("me".into()),
                ..User::default()
            },
            lang: Lang::English,
        };
        for system in [System::Systemd, System::Launchd, System::Tasks] {
            let manager = manager(system);
            assert!(matches!(manager.record(), Err(ServiceError::NotInstalled)));
            let path = manager.files(&job()).unwrap().remove(0).path;
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "[Unit]\n").unwrap();
            for failed in [manager.install(&job()).map(|_| ()), manager.remove().map(|_| ())] {
                assert!(matches!(failed, Err(ServiceError::NotOurs(found)) if found == path));
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), "[Unit]\n");
        }
        fs::remove_dir_all(&home).unwrap();
    }
}
