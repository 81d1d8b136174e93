//! Values that a file holds or a program writes, and what a person should know of where they are held.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use relay_core::config::{self, Held, Secret, Source};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;

use super::{FILE_IS_GOOD, Had, Trouble};
use crate::credential::sign_in_of;
use crate::private;
use crate::process_group::Group;
use crate::shared::Shared;
use crate::words::{credentials as words, lang};

/// No key is longer.
pub(super) const LONGEST: usize = 16 << 10;
/// How long a program may take: a person may have to unlock a store meanwhile.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// How long what it has started may go on writing once it has ended: what it wrote itself can be read by then.
const REST_WITHIN: Duration = Duration::from_millis(250);

/// Why a text is no value.
pub(super) enum Unfit {
    /// It is no key.
    NoKey,
    /// It is a sign-in of this.
    SignIn(&'static str),
}

/// A key by itself in a text.
pub(super) fn key_of(bytes: &[u8]) -> Result<Secret, Unfit> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    let is_plain = !bytes.is_empty() && bytes.len() <= LONGEST && bytes.iter().all(u8::is_ascii_graphic);
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_plain).ok_or(Unfit::NoKey)?;
    match sign_in_of(text) {
        Some(whose) => Err(Unfit::SignIn(whose)),
        None => Ok(Secret::new(text.to_owned())),
    }
}

/// The secret in a file.
pub(super) fn of_file(path: &Path) -> Result<Secret, String> {
    let shown = path.display().to_string();
    let bytes = private::read_open(path, LONGEST as u64).map_err(|error| {
        if error.kind() == io::ErrorKind::FileTooLarge {
            words::file_unfit(lang(), &shown)
        } else {
            words::file_unread(lang(), &shown, &error.to_string())
        }
    })?;
    key_of(&bytes).map_err(|unfit| match unfit {
        Unfit::NoKey => words::file_unfit(lang(), &shown),
        Unfit::SignIn(whose) => words::a_sign_in(lang(), whose),
    })
}

/// The same away from the threads that serve.
pub(super) async fn of_file_elsewhere(path: &Path) -> Result<Secret, String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || of_file(&path)).await;
    read.unwrap_or_else(|_broke_off| Err(words::broke_off(lang())))
}

/// What a file holds now. One that is being replaced may hold nothing for a moment: then what it held before is as good.
pub(super) async fn again(path: &Path, present: Option<Arc<Secret>>) -> Result<Had, Trouble> {
    let lifetime = Some(FILE_IS_GOOD);
    match (of_file_elsewhere(path).await.map_err(Trouble::standing), present) {
        (Ok(value), _) => Ok(Had { value, issued: false, lifetime, in_spite_of: None }),
        (Err(trouble), Some(present)) => {
            let value = Secret::clone(&present);
            Ok(Had { value, issued: false, lifetime, in_spite_of: Some(trouble) })
        }
        (Err(trouble), None) => Err(trouble),
    }
}

/// What a program writes.
pub(super) async fn of_command(argv: &[String], shared: &Shared) -> Result<Secret, Trouble> {
    let (program, arguments) =
        argv.split_first().ok_or_else(|| Trouble::standing(words::broke_off(lang())))?;
    let rest = shared.clock.real(REST_WITHIN);
    let within = tokio::time::timeout(shared.clock.real(COMMAND_WITHIN), written(program, arguments, rest));
    let late = |_elapsed| Err(words::command_late(lang(), program, COMMAND_WITHIN.as_secs()));
    within.await.unwrap_or_else(late).map_err(Trouble::standing)
}

async fn written(program: &str, arguments: &[String], rest: Duration) -> Result<Secret, String> {
    let started = Group::start(program, arguments, |command| {
        command.stdout(Stdio::piped());
    });
    let mut child = started.map_err(|error| words::not_started(lang(), program, &error.to_string()))?;
    let failed = |error: &dyn std::fmt::Display| words::command_failed(lang(), program, &error.to_string());
    let mut read = Vec::new();
    let status = match child.0.stdout.take() {
        None => child.0.wait().await,
        Some(mut out) => tokio::select! {
            biased;
            ended = read_on(&mut out, &mut read) => match ended {
                // One that writes more is not waited for: it would wait for somebody to read it.
                Ok(()) if read.len() > LONGEST => return Err(words::command_unfit(lang(), program)),
                Ok(()) => child.0.wait().await,
                Err(error) => Err(error),
            },
            status = child.0.wait() => {
                // An agent that it has left behind may never close what it wrote to.
                let _what_there_is = tokio::time::timeout(rest, read_on(&mut out, &mut read)).await;
                status
            }
        },
    };
    let status = status.map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&status));
    }
    key_of(&read).map_err(|unfit| match unfit {
        Unfit::NoKey => words::command_unfit(lang(), program),
        Unfit::SignIn(whose) => words::a_sign_in(lang(), whose),
    })
}

/// Reads until there is no more to come, or more than a key is long. Where it is left off nothing of it is lost.
async fn read_on(out: &mut ChildStdout, read: &mut Vec<u8>) -> io::Result<()> {
    while read.len() <= LONGEST && out.read_buf(read).await? > 0 {}
    Ok(())
}

/// What is wrong with where a credential is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// In words, which credential it is among them.
    pub words: String,
    /// No call is sent before it is mended.
    pub stops: bool,
}

/// What a person should know of where a credential is held. Nothing is run, and nothing asked for.
#[must_use]
pub fn look(name: &str, credential: &config::Credential) -> Vec<Flaw> {
    let lang = lang();
    let mut found = Vec::new();
    let held = match &credential.source {
        Source::Key(held) => [Some(held), None],
        Source::Command { argv, .. } => {
            let program = argv.first().filter(|program| !is_program(program));
            found.extend(program.map(|program| (words::no_program(lang, program), true)));
            [None, None]
        }
        Source::OAuth(oauth) => [Some(&oauth.refresh_token), oauth.client_secret.as_ref()],
    };
    for held in held.into_iter().flatten() {
        match held {
            Held::Text(_) | Held::Variable { value: Some(_), .. } => {}
            Held::Variable { name, value: None } => found.push((words::variable_unset(lang, name), true)),
            Held::File(path) => {
                found.extend(of_file(path).err().map(|what| (what, true)));
                let open = is_open(path).then(|| words::file_open(lang, &path.display().to_string()));
                found.extend(open.map(|what| (what, false)));
            }
        }
    }
    found.into_iter().map(|(what, stops)| Flaw { words: words::about(lang, name, &what), stops }).collect()
}

/// Whether this starts a program, as far as names tell.
fn is_program(name: &str) -> bool {
    let endings: &[&str] = if cfg!(windows) { &["", ".exe"] } else { &[""] };
    let is_there =
        |folder: &Path| endings.iter().any(|ending| folder.join(format!("{name}{ending}")).is_file());
    if Path::new(name).components().count() > 1 {
        return is_there(Path::new(""));
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| is_there(&folder)))
}

/// Whether others can read a file, where files have modes.
fn is_open(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _no_modes = fs::metadata(path);
        false
    }
}
