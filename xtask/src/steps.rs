//! Runs steps one after the other; some go on beside the others, since they mostly wait or leave a processor free. The
//! first failure ends the run.
//!
//! A step beside others is this program once more, in a process group of its own. It writes to a file, which is shown
//! when its turn comes, and ends with all that it started when the run does, however that ends: its input closes then.
#![expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]

use anyhow::{Context as _, Result, anyhow};
use std::fs::{self, File};
use std::io::{Read as _, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xtask::command::works;

/// One step.
pub(crate) struct Check {
    /// Its name in `--only`.
    pub(crate) name: &'static str,
    /// What it checks, for a person.
    pub(crate) what: &'static str,
    pub(crate) begins: Begins,
    pub(crate) run: fn(&Path) -> Result<Done>,
}

/// When a step begins; how it ended is told in its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// When all before it have ended.
    InTurn,
    /// With the first step.
    Early,
    /// With the step of this name.
    With(&'static str),
}

/// How a step ended that did not fail.
pub(crate) enum Done {
    Passed,
    /// It had nothing to run on; why.
    Skipped(String),
}

/// The word that starts this program as a step beside others.
pub(crate) const BESIDE: &str = "beside";

/// Runs these steps.
pub(crate) fn run(root: &Path, checks: &[&Check]) -> Result<()> {
    let mut report = Vec::new();
    let mut others = Others::prepare(root)?;
    for (place, check) in checks.iter().enumerate() {
        for other in &checks[place + 1..] {
            let now = match other.begins {
                Begins::InTurn => false,
                Begins::Early => place == 0,
                Begins::With(name) => name == check.name,
            };
            if now {
                others.begin(root, other)?;
            }
        }
        eprintln!("\n== {}: {}", check.name, check.what);
        let ended = match others.take(check.name) {
            Some(other) => other.end(check.name),
            None => {
                let start = Instant::now();
                let ended = (check.run)(root);
                (line(check.name, &ended, start.elapsed()), ended.map(|_| ()))
            }
        };
        report.push(ended.0);
        if let Err(error) = ended.1 {
            eprintln!("\n{}", report.join("\n"));
            return Err(error.context(format!("step {} failed", check.name)));
        }
    }
    eprintln!("\n{}", report.join("\n"));
    Ok(())
}

/// Runs one step beside a run that started this program: the last line that it writes is that of the report.
pub(crate) fn run_beside(root: &Path, check: &Check) -> Result<()> {
    thread::spawn(end_with_the_run);
    let start = Instant::now();
    let ended = (check.run)(root);
    let line = line(check.name, &ended, start.elapsed());
    ended.map(|_| eprintln!("{line}"))
}

/// Waits until nobody holds the other end of the input, and ends the process group: this program with all that it started.
fn end_with_the_run() {
    let mut nothing = Vec::new();
    // An input that cannot be read is as good as one that is closed.
    drop(stdin().read_to_end(&mut nothing));
    works(Command::new("sh").args(["-c", "kill 0"]));
}

fn line(name: &str, ended: &Result<Done>, took: Duration) -> String {
    let word = match ended {
        Ok(Done::Passed) => "ok".to_owned(),
        Ok(Done::Skipped(why)) => format!("skipped: {why}"),
        Err(_) => "FAILED".to_owned(),
    };
    format!("{name:<12} {:>7.1} s  {word}", took.as_secs_f64())
}

/// The steps that go on beside the one whose turn it is.
struct Others {
    folder: PathBuf,
    /// A copy of this program, since Cargo may build it anew meanwhile.
    program: PathBuf,
    going_on: Vec<(&'static str, Other)>,
}

struct Other {
    process: Child,
    /// Held open for as long as it is to go on.
    _input: Option<ChildStdin>,
    log: PathBuf,
}

impl Others {
    fn prepare(root: &Path) -> Result<Self> {
        let folder = root.join("target/checks");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let program = folder.join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
        // One that is still running cannot be written to.
        drop(fs::remove_file(&program));
        fs::copy(std::env::current_exe()?, &program)
            .with_context(|| format!("cannot write {}", program.display()))?;
        Ok(Self { folder, program, going_on: Vec::new() })
    }

    /// Begins the step, where processes come in groups: elsewhere it waits for its turn.
    #[cfg(unix)]
    fn begin(&mut self, root: &Path, check: &Check) -> Result<()> {
        use std::os::unix::process::CommandExt as _;

        let log = self.folder.join(format!("{}.log", check.name));
        let written = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(&self.program);
        command.args([BESIDE, check.name]).current_dir(root).process_group(0);
        command.stdin(Stdio::piped()).stdout(written.try_clone()?).stderr(written);
        let mut process = command.spawn().with_context(|| format!("cannot begin {}", check.name))?;
        let input = process.stdin.take();
        self.going_on.push((check.name, Other { process, _input: input, log }));
        Ok(())
    }

    #[cfg(not(unix))]
    fn begin(&mut self, _: &Path, _: &Check) -> Result<()> {
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Other> {
        let place = self.going_on.iter().position(|(other, _)| *other == name)?;
        Some(self.going_on.remove(place).1)
    }
}

impl Other {
    /// Waits for its end and shows what it wrote; its line of the report.
    fn end(mut self, name: &str) -> (String, Result<()>) {
        let ended = self.process.wait().context("cannot wait for it");
        let wrote = fs::read(&self.log).unwrap_or_default();
        let wrote = String::from_utf8_lossy(&wrote);
        let (shown, last) = wrote.trim_end().rsplit_once('\n').unwrap_or(("", wrote.trim_end()));
        match ended {
            Ok(status) if status.success() => {
                eprintln!("{shown}");
                (format!("{last}, beside others"), Ok(()))
            }
            ended => {
                eprintln!("{wrote}");
                let why = ended.map_or_else(|error| format!("{error:#}"), |status| status.to_string());
                (
                    format!("{name:<12} beside others  FAILED"),
                    Err(anyhow!("it ended with {why}, as told above")),
                )
            }
        }
    }
}
