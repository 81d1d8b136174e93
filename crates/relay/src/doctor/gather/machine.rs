//! What this machine is like: variables, files, versions of clients, names, and the Linux in Windows. What a system tells
//! in a text of its own is read by functions that are tested on every system.

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use relay_core::config::Config;
use serde_json::Value;
use tokio::time::timeout;

use super::super::facts::{Alerts, ClientVersion, History, OpenFile, Wsl};
use super::asked::{Said, said};
use crate::credential::{self, ManagedPlan};
use crate::files::Files;
use crate::history::place::in_the_way;
use crate::settings::{Places, looks_secret};
use crate::setup::Folders;
use crate::words::history::unusable;
use crate::words::lang;
use crate::wsl::in_wsl;

/// How long a program may take to tell its version. Node takes a second or two on a slow machine.
const SLOW: Duration = Duration::from_secs(8);
/// The clients, their programs, and their versions that were measured.
const CLIENTS: [(&str, &str, [u32; 3]); 3] = [
    ("Codex", "codex", [0, 171, 0]),
    ("Claude Code", "claude", [2, 1, 332]),
    ("Gemini CLI", "gemini", [0, 61, 0]),
];

/// What is kept in the state folder and is nobody else's business.
const PRIVATE: [&str; 4] = ["token", "lanes.json", "setup.json", "tls/ca-key.pem"];

/// Files of certificates for clients and for us that are not there.
pub(super) fn certificates(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let named = ["SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];
    let missing = named.into_iter().filter_map(|name| {
        let path = variable(name).filter(|path| !path.is_empty())?;
        let error = std::fs::metadata(&path).err()?;
        Some((name.to_owned(), format!("{path}: {error}")))
    });
    missing.collect()
}

/// The managed plan that Codex is signed in on. The token is looked at and forgotten.
pub(super) fn plan(codex: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Option<ManagedPlan> {
    let auth: Value = serde_json::from_str(&read(&codex.join("auth.json"))?).ok()?;
    let token = auth["tokens"]["access_token"].as_str()?;
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    credential::plan(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// Files of the relay's that others may change, or read although they hold what may be secret; `None` where files have
/// no modes.
pub(super) fn open_files(config: &Config, places: &Places) -> Option<Vec<OpenFile>> {
    if !cfg!(unix) {
        return None;
    }
    let settings = places.all().map(|file| (file.to_owned(), holds_a_secret as fn(&Path) -> bool));
    // A log never has one, and the state folder may in all that it keeps.
    let log = config.log.file.clone().map(|file| (file, (|_| false) as fn(&Path) -> bool));
    let kept = config
        .state_dir
        .iter()
        .flat_map(|folder| PRIVATE.map(|file| (folder.join(file), (|_| true) as fn(&Path) -> bool)));
    // It tells who used which model when. A link in its place leads to what keeps its mode.
    let history = config.history_file().map(|file| (file, (|_| true) as fn(&Path) -> bool));
    let open = settings.chain(log).chain(kept).chain(history).filter_map(|(file, is_secret)| {
        let mode = mode(&file).filter(|mode| mode & 0o077 != 0)?;
        let open = OpenFile { file: file.display().to_string(), mode, is_secret: is_secret(&file) };
        (open.is_secret || mode & 0o022 != 0).then_some(open)
    });
    Some(open.collect())
}

/// The file of the history. Nothing is written.
pub(super) fn history(config: &Config) -> History {
    if !config.history.enabled || cfg!(not(feature = "history")) {
        return History::Off;
    }
    let Some(file) = config.history_file() else { return History::Nowhere };
    if let Some(why) = in_the_way(&file) {
        return History::Bad(unusable(lang(), &file.display().to_string(), &why));
    }
    let Ok(there) = std::fs::metadata(&file) else { return History::Expected };
    #[cfg(feature = "history")]
    if let Some(why) = unreadable(&file) {
        return History::Bad(why);
    }
    History::There(there.len())
}

/// Why what lies there is no history that this program reads.
#[cfg(feature = "history")]
fn unreadable(file: &Path) -> Option<String> {
    use crate::history::store::{Reader, StoreError};
    match Reader::look(file) {
        // It was made a moment ago, or by hand, and is empty.
        Ok(()) | Err(StoreError::Missing(_)) => None,
        Err(why) => Some(why.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// What alerts go by.
pub(super) fn alerts(config: &Config, folder: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Alerts {
    let settings = &config.alerts;
    let program = settings.command.first();
    let ways = [settings.webhook.is_some(), program.is_some(), settings.desktop];
    let path = variable("PATH").unwrap_or_default();
    let is_missing = |program: &&String| find(program, folder, &path).is_none();
    Alerts {
        ways: ways.into_iter().filter(|is_set| *is_set).count(),
        missing: program.filter(is_missing).cloned(),
    }
}

/// Where a program lies that is started by this name.
fn find(program: &str, folder: &Path, path: &str) -> Option<PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat"] } else { &[""] };
    let is_bare = Path::new(program).components().count() == 1 && !program.contains('/');
    let folders = if is_bare { std::env::split_paths(path).collect() } else { vec![folder.to_owned()] };
    let files = folders
        .iter()
        .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{program}{ending}"))));
    files.into_iter().find(|file| file.is_file())
}

/// Whether a file of settings holds what may be secret; one that cannot be read may.
fn holds_a_secret(file: &Path) -> bool {
    let text = Files::anew().read(file).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_none_or(|text| has_a_secret(&text))
}

/// The same of its text, be it TOML or lines with variables: by the name of a key, or by what an address or a well-known
/// key looks like.
fn has_a_secret(text: &str) -> bool {
    const TELLING: [&str; 9] =
        ["token", "key", "secret", "password", "passwd", "authorization", "headers", "credential", "cookie"];
    let tells = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| TELLING.contains(&word))
    };
    text.lines().map(str::trim).filter(|line| !line.starts_with('#')).any(|line| {
        match line.split_once('=') {
            // The head of a table, such as that of headers.
            None => line.starts_with('[') && tells(line),
            Some((name, value)) => {
                let value = value.trim().trim_matches(['"', '\'']);
                !value.is_empty() && (tells(name) || looks_secret(value))
            }
        }
    })
}

/// The mode of a file, where the system has modes.
#[cfg(unix)]
fn mode(file: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = std::fs::metadata(file).ok()?;
    found.is_file().then(|| found.permissions().mode())
}

#[cfg(not(unix))]
fn mode(_file: &Path) -> Option<u32> {
    None
}

/// Env files that begin with a mark, or are UTF-16.
pub(super) fn odd_env_files(places: &Places, folder: &Path, folders: Option<&Folders>) -> Vec<String> {
    let own = [&places.env_file, &places.usual_env_file].into_iter().flatten().cloned();
    let gemini = folders.map(|folders| folders.home.join(".gemini/.env"));
    let others = [Some(folder.join(".env")), gemini];
    let odd = own
        .chain(others.into_iter().flatten())
        .filter(|file| first_bytes(file).is_some_and(|bytes| is_odd(&bytes)));
    let mut odd: Vec<_> = odd.map(|file| file.display().to_string()).collect();
    odd.dedup();
    odd
}

fn first_bytes(file: &Path) -> Option<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for its writer.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(4).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_odd(first: &[u8]) -> bool {
    first.starts_with(b"\xef\xbb\xbf")
        || matches!(first, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [_, 0, ..] | [0, _, ..])
}

/// The clients that are on the PATH, each asked for its version, and those that did not tell it.
pub(super) async fn versions() -> (Vec<ClientVersion>, Vec<&'static str>) {
    let asked = CLIENTS.map(async |(client, program, measured)| {
        let words = match said(program, "--version", SLOW).await {
            Said::Absent => return None,
            Said::Nothing => None,
            Said::Words(words) => Some(words),
        };
        let found = words.and_then(|words| version_in(&words)).ok_or(client);
        Some(found.map(|found| ClientVersion { client, found, measured }))
    });
    let (mut told, mut silent) = (Vec::new(), Vec::new());
    for found in join_all(asked).await.into_iter().flatten() {
        match found {
            Ok(version) => told.push(version),
            Err(client) => silent.push(client),
        }
    }
    (told, silent)
}

/// The first three numbers with points between them.
fn version_in(text: &str) -> Option<[u32; 3]> {
    text.split(|letter: char| !letter.is_ascii_digit() && letter != '.').find_map(|word| {
        let mut numbers = word.split('.').map(|number| number.parse().ok());
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    })
}

/// The addresses of `localhost`.
pub(super) async fn localhost() -> Vec<IpAddr> {
    let found = timeout(super::WITHIN, tokio::net::lookup_host(("localhost", 80))).await;
    found
        .ok()
        .and_then(Result::ok)
        .map_or_else(Vec::new, |found| found.map(|at: SocketAddr| at.ip()).collect())
}

/// The Linux in Windows that we are in, and how it is joined to its network.
pub(super) async fn wsl() -> Option<Wsl> {
    if !in_wsl() {
        return None;
    }
    match said("wslinfo", "--networking-mode", SLOW).await {
        Said::Words(mode) => Some(joined(&mode)),
        Said::Nothing | Said::Absent => Some(Wsl::Unknown),
    }
}

fn joined(mode: &str) -> Wsl {
    match mode.trim() {
        "nat" => Wsl::Nat,
        "mirrored" => Wsl::Mirrored,
        _ => Wsl::Unknown,
    }
}

/// The memory of a process, in MiB, on systems that tell it in a file.
pub(super) fn memory(process: u32) -> Option<u64> {
    memory_in(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn memory_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_the_state_folder_keeps_is_looked_at() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("steady-relay-modes-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("tls")).unwrap();
        for (name, mode) in [
            ("setup.json", 0o644),
            ("tls/ca-key.pem", 0o640),
            ("token", 0o600),
            ("tls/ca.pem", 0o644),
            ("history.sqlite", 0o640),
        ] {
            std::fs::write(folder.join(name), "").unwrap();
            std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let config = Config { state_dir: Some(folder.clone()), ..Config::default() };
        let open = open_files(&config, &Places::default()).unwrap();
        let names: Vec<_> =
            open.iter().map(|open| Path::new(&open.file).strip_prefix(&folder).unwrap()).collect();
        assert_eq!(names, ["setup.json", "tls/ca-key.pem", "history.sqlite"].map(Path::new));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn settings_hold_a_secret_or_not() {
        for secret in [
            "[upstream.x]\nurl = \"https://x/gsk_abcdef123456\"\n",
            "[relay]\ntoken = \"0123456789abcdef\"\n",
            "[upstream.gw]\nheaders = { \"x-team\" = \"blue\" }\n",
            "[upstream.gw.headers]\nx-team = \"blue\"\n",
            "proxy = \"http://me:hunter2@proxy\"\n",
            "export OPENAI_API_KEY='x'\n",
            "STEADY_RELAY_UPSTREAM=https://gw/?k=1\n",
        ] {
            assert!(has_a_secret(secret), "{secret}");
        }
        for plain in [
            "",
            "[relay]\nport = 8787\n",
            "# token = \"x\"\n",
            "STEADY_RELAY_TOKEN=\n",
            "[profile.quick]\nsends = 3\n",
        ] {
            assert!(!has_a_secret(plain), "{plain}");
        }
    }

    #[test]
    fn versions_are_read_as_clients_write_them() {
        let rows = [
            ("codex-cli 0.171.0\n", Some([0, 171, 0])),
            ("2.1.332 (Claude Code)\n", Some([2, 1, 332])),
            ("v0.61.0-nightly.3", Some([0, 61, 0])),
            ("warning: 3 things\n1.2.3", Some([1, 2, 3])),
            ("", None),
            ("1.2", None),
            ("99999999999.1.1", None),
        ];
        for (text, version) in rows {
            assert_eq!(version_in(text), version, "{text}");
        }
    }

    #[test]
    fn what_linux_tells() {
        assert_eq!(
            ["nat\n", "mirrored\n", "virtioproxy\n", ""].map(joined),
            [Wsl::Nat, Wsl::Mirrored, Wsl::Unknown, Wsl::Unknown]
        );
        assert_eq!(memory_in("Name:\tsteady\nVmRSS:\t   20480 kB\nThreads:\t3\n"), Some(20));
        assert_eq!((memory_in(""), memory_in("VmRSS: x kB")), (None, None));
    }

    #[test]
    fn marks_of_windows_are_seen() {
        for odd in [&b"\xef\xbb\xbfA"[..], b"\xff\xfeA\0", b"\xfe\xff\0A", b"A\0=\0", b"\0A\0="] {
            assert!(is_odd(odd), "{odd:?}");
        }
        assert!(!is_odd(b"A=1\n") && !is_odd(b""));
    }

    #[test]
    fn the_plan_is_read_from_the_sign_in() {
        let token = relay_sim::fixtures::openai_jwt(&serde_json::json!({
            "iss": "https://auth.openai.com",
            "https://api.openai.com/auth": {"chatgpt_plan_type": "business"}
        }));
        let auth = serde_json::json!({"tokens": {"access_token": token}}).to_string();
        let plan = |text: &str| {
            plan(Path::new("/c"), &|path| (path == Path::new("/c/auth.json")).then(|| text.to_owned()))
        };
        assert_eq!(plan(&auth).map(ManagedPlan::name), Some("business"));
        assert!(plan("{").is_none() && plan(r#"{"tokens":{"access_token":"x"}}"#).is_none());
    }
}
