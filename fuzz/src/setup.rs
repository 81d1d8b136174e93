//! A client's settings file of any bytes, pointed at the relay and back, with an edit by somebody else in between: the
//! file comes back byte for byte where nobody edited, no edit is lost, and no other value is ever shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use relay_core::Lang;
use steady_relay::running::Who;
use steady_relay::setup::{
    Client, Disk, Fate, Machine, Notebook, Plan, RelayAt, System, Wish, carry_out, prepare, undo,
};

const SECRET: &str = "planted7Secret7planted7";
const LANG: Lang = Lang::English;

/// The first byte chooses the client, the second one where an edit goes; the rest is its file.
pub fn setup(bytes: &[u8]) {
    let [client, at, file @ ..] = bytes else { return };
    let (client, path) = match client % 6 {
        0 => (Client::Codex, "/home/u/.codex/config.toml"),
        1 => (Client::Claude, "/home/u/.claude/settings.json"),
        2 => (Client::Opencode, "/home/u/.config/opencode/opencode.jsonc"),
        3 => (Client::EnvFile, "/home/u/.env"),
        4 => (Client::VsCode, "/home/u/.config/Code/User/settings.json"),
        _ => (Client::Gemini, "/home/u/.gemini/.env"),
    };
    let path = Path::new(path);
    there_and_back(client, path, file);
    edited_between(client, path, file, usize::from(*at));
    if !contains(file, "planted7") {
        says_nothing(client, path, file);
    }
}

/// A disk made of bytes.
#[derive(Clone, Default, PartialEq)]
struct Memory(BTreeMap<PathBuf, Vec<u8>>);

impl Disk for Memory {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or(ErrorKind::NotFound.into())
    }

    fn target(&mut self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn write(&mut self, path: &Path, bytes: &[u8], _like: Option<&Path>) -> io::Result<()> {
        self.0.insert(path.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let bytes = self.0.remove(from).ok_or(ErrorKind::NotFound)?;
        self.0.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.0.remove(path).map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn make_folder(&mut self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_folder(&mut self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn with(path: &Path, file: &[u8]) -> Self {
        Self(BTreeMap::from([(path.to_owned(), file.to_vec())]))
    }

    /// Without the journal, which is there from the first setup on.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.0
            .iter()
            .filter(|(path, _)| !path.starts_with("/state"))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    }
}

fn notebook() -> Notebook {
    Notebook::in_folder(Path::new("/state"))
}

fn plan(disk: &mut Memory, client: Client, path: &Path) -> Plan {
    let files = disk.clone();
    let machine = Machine {
        system: System::Linux,
        in_wsl: false,
        distros: Vec::new(),
        env: &|name| (name == "HOME").then(|| OsString::from("/home/u")),
        read: &|path| files.0.get(path).cloned().ok_or(ErrorKind::NotFound.into()),
        list: &|folder| {
            let has_editor = client == Client::VsCode && folder == Path::new("/home/u/.vscode/extensions");
            if has_editor { vec!["anthropic.claude-code-2.1.0".to_owned()] } else { Vec::new() }
        },
        exists: &|path| files.0.keys().any(|file| file.starts_with(path)),
        who: &|_| Who::Nobody,
        folder: PathBuf::from("/"),
    };
    let mut wish =
        Wish { config: Some("/home/u/.config/steady-relay/config.toml".into()), ..Wish::default() };
    if client == Client::EnvFile {
        wish.env_files.push(path.to_owned());
    } else {
        wish.clients.push(client);
    }
    let planned = prepare(LANG, &machine, &RelayAt::local(8787), (disk, &notebook()), &wish);
    planned.expect("the journal is ours")
}

fn set_up(disk: &mut Memory, client: Client, path: &Path) -> Plan {
    let plan = plan(disk, client, path);
    let failed = carry_out(LANG, disk, &notebook(), &plan).expect("the journal can be written");
    assert_eq!(failed, [], "nothing changed meanwhile");
    plan
}

fn undone(disk: &mut Memory) -> Vec<Fate> {
    let undone = undo(LANG, disk, &notebook(), &[], true).expect("the journal is ours");
    undone.into_iter().map(|key| key.fate).collect()
}

fn there_and_back(client: Client, path: &Path, file: &[u8]) {
    let mut disk = Memory::with(path, file);
    let before = disk.files();
    set_up(&mut disk, client, path);
    assert!(plan(&mut disk, client, path).is_empty(), "once more is nothing more");
    let fates = undone(&mut disk);
    assert!(fates.iter().all(|fate| !matches!(fate, Fate::Left(_))), "{fates:?}");
    // An address that was the relay's already is not put back.
    if !contains(file, "127")
        && !contains(file, "localhost")
        && !contains(file, ":8787")
        && !contains(file, "\\")
    {
        assert_eq!(disk.files(), before);
    }
    assert_eq!(undone(&mut disk), []);
}

/// Somebody writes a line of their own somewhere.
fn edited_between(client: Client, path: &Path, file: &[u8], at: usize) {
    let mut disk = Memory::with(path, file);
    set_up(&mut disk, client, path);
    let Some(text) = disk.0.get(path).and_then(|bytes| String::from_utf8(bytes.clone()).ok()) else { return };
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end + 1).collect();
    let Some(end) = ends.get(at.checked_rem(ends.len()).unwrap_or_default()) else { return };
    let line = if path.extension().is_some_and(|ending| ending == "jsonc" || ending == "json") {
        "// edit7\n"
    } else {
        "# edit7\n"
    };
    let mut edited = text.clone();
    edited.insert_str(*end, line);
    disk.0.insert(path.to_owned(), edited.into_bytes());
    let fates = undone(&mut disk);
    let left = fates.iter().any(|fate| matches!(fate, Fate::Left(_)));
    let now = disk.0.get(path).is_some_and(|bytes| contains(bytes, "edit7"));
    assert!(now || left, "an edit is lost: {text:?}");
}

/// A secret beside the key.
fn says_nothing(client: Client, path: &Path, file: &[u8]) {
    let text = String::from_utf8_lossy(file);
    let planted = match (client, text.split_once('{')) {
        (Client::Claude | Client::Opencode | Client::VsCode, Some((before, after)))
            if before.trim().is_empty() =>
        {
            format!("{before}{{\"planted\": \"{SECRET}\", {after}")
        }
        (Client::Claude | Client::Opencode | Client::VsCode, _) => return,
        (Client::EnvFile | Client::Gemini, _) => format!("PLANTED={SECRET}\n{text}"),
        _ => format!("planted = \"{SECRET}\"\n{text}"),
    };
    let mut disk = Memory::with(path, planted.as_bytes());
    let plan = set_up(&mut disk, client, path);
    let told = format!("{} {:?} {:?} {:?}", plan.diff(), plan.left, plan.notes, plan.states);
    assert!(!told.contains("planted7"), "{told}");
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}
