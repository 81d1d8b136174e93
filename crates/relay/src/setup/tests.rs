//! Setup and undo on real files, stopped at every step, and on files of every odd shape.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::running::Who;

const LANG: Lang = Lang::English;

/// A home of its own, gone at its end.
struct Scene {
    root: PathBuf,
    relay: RelayAt,
    config: PathBuf,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

/// All files below a folder with their bytes, and all folders.
type Everything = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn everything(folder: &Path, found: &mut Everything) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.insert(path.clone(), None);
            everything(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).ok());
        }
    }
}

impl Scene {
    fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("steady-relay-setup-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("home")).unwrap();
        let config = root.join("home/.config/steady-relay/config.toml");
        Self { root, relay: RelayAt::local(8787), config }
    }

    /// Every kind of edit: in place, new key, new file, new folders, an upstream of the user's own, a link, a mark.
    fn rich() -> Self {
        let scene = Self::empty();
        scene.write(
            ".codex/config.toml",
            "\u{feff}# mine\r\nmodel = \"gpt-x\" # note\r\n\r\n[a]\r\nb = 1\r\n",
        );
        scene.write(
            ".claude/settings.json",
            "{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"http://gw.example/anthropic\"\n  }\n}",
        );
        fs::create_dir_all(scene.home(".config/opencode")).unwrap();
        scene.write("dotfiles/gemini.env", "GEMINI_API_KEY=AIzaX");
        fs::create_dir_all(scene.home(".gemini")).unwrap();
        link(&scene.home("dotfiles/gemini.env"), &scene.home(".gemini/.env"));
        scene
    }

    fn home(&self, name: &str) -> PathBuf {
        self.root.join("home").join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home(name)).unwrap()
    }

    fn everything(&self) -> Everything {
        let mut found = Everything::new();
        everything(&self.root.join("home"), &mut found);
        found
    }

    fn notebook(&self) -> Notebook {
        Notebook::in_folder(&self.root.join("state"))
    }

    fn plan_for(&self, wish: &Wish) -> Plan {
        let home = OsString::from(self.root.join("home"));
        let machine = Machine {
            system: System::Linux,
            in_wsl: false,
            distros: Vec::new(),
            env: &|name| (name == "HOME").then(|| home.clone()),
            read: &|path| RealDisk.read(path),
            list: &|folder| {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            },
            exists: &|path| path.exists(),
            who: &|_| Who::Nobody,
            folder: self.root.clone(),
        };
        let wish = Wish { config: Some(self.config.clone()), ..wish.clone() };
        prepare(LANG, &machine, &self.relay, (&mut RealDisk, &self.notebook()), &wish).unwrap()
    }

    fn plan(&self) -> Plan {
        let env_files = vec![self.home("new/folder/.env")];
        let mut plan = self.plan_for(&Wish::default());
        if self.home("dotfiles").exists() {
            // One more that is named, in a folder that is not there.
            let only = Wish {
                env_files,
                clients: vec![Client::Codex, Client::Claude, Client::Opencode, Client::Gemini],
                ..Wish::default()
            };
            plan = self.plan_for(&only);
        }
        plan
    }

    fn setup(&self) -> Plan {
        let plan = self.plan();
        let failed = carry_out(LANG, &mut RealDisk, &self.notebook(), &plan).unwrap();
        assert_eq!(failed, []);
        plan
    }

    fn undo(&self) -> Vec<(String, Fate)> {
        let undone = undo(LANG, &mut RealDisk, &self.notebook(), &[], true).unwrap();
        undone.into_iter().map(|key| (key.key, key.fate)).collect()
    }
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) {
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[cfg(not(unix))]
fn link(target: &Path, link: &Path) {
    fs::copy(target, link).unwrap();
}

/// A disk that stops after so many steps. A file that is being written then is half there.
struct Stopping {
    steps: usize,
    left: usize,
}

impl Stopping {
    fn after(left: usize) -> Self {
        Self { steps: 0, left }
    }

    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("stopped"))?;
        Ok(())
    }
}

impl Disk for Stopping {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.step()?;
        RealDisk.read(path)
    }

    fn target(&mut self, path: &Path) -> io::Result<PathBuf> {
        self.step()?;
        RealDisk.target(path)
    }

    fn write(&mut self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
        if self.left == 0 && self.steps > 0 {
            let _half = RealDisk.write(path, &bytes[..bytes.len() / 2], like);
        }
        self.step()?;
        RealDisk.write(path, bytes, like)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.remove(path)
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.make_folder(path)
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.remove_folder(path)
    }
}

/// Every file is as it was or as it was to be, or is one that nobody reads.
fn whole(now: &Everything, before: &Everything, after: &Everything) {
    for (path, bytes) in now {
        if path.to_string_lossy().ends_with(".steady-relay-new") || bytes.is_none() {
            continue;
        }
        let known = [before.get(path), after.get(path)];
        assert!(known.contains(&Some(bytes)), "{} is torn", path.display());
    }
}

#[test]
fn setup_and_undo_leave_everything_as_it_was() {
    let scene = Scene::rich();
    let before = scene.everything();
    let plan = scene.setup();
    assert_eq!(plan.left, []);
    assert!(!format!("{plan:?}").contains("AIza"), "{plan:?}");
    let after = scene.everything();
    assert!(scene.read(".codex/config.toml").contains("openai_base_url = \"http://127.0.0.1:8787/v1\"\r\n"));
    assert!(scene.read(".claude/settings.json").contains("\"http://127.0.0.1:8787/to/own-claude\""));
    let config = scene.read(".config/steady-relay/config.toml");
    assert!(
        config.contains("[upstream.own-claude]\n")
            && config.contains("url = \"http://gw.example/anthropic\"\n"),
        "{config}"
    );
    assert!(config.contains("allow_plaintext = true\n"), "{config}");
    // Once more is nothing more, in the files as in the journal.
    let journal = fs::read(scene.root.join("state/setup.json")).unwrap();
    let again = scene.plan();
    assert!(again.is_empty(), "{}", again.diff());
    assert_eq!((again.ready.len(), again.left.len()), (5, 0), "{again:?}");
    assert_eq!(fs::read(scene.root.join("state/setup.json")).unwrap(), journal);
    assert_eq!(scene.everything(), after);

    let undone = scene.undo();
    assert!(undone.iter().all(|(_, fate)| *fate == Fate::Restored), "{undone:?}");
    assert_eq!(scene.everything(), before);
    assert_eq!(scene.undo(), []);
    assert_eq!(scene.everything(), before);
}

#[test]
fn a_stop_at_any_step_leaves_whole_files_and_a_working_undo() {
    let scene = Scene::rich();
    let before = scene.everything();
    let mut counting = Stopping::after(usize::MAX);
    carry_out(LANG, &mut counting, &scene.notebook(), &scene.plan()).unwrap();
    let steps = counting.steps;
    assert!(steps > 40, "{steps}");
    let after = scene.everything();
    scene.undo();
    for stop in 0..steps {
        let plan = scene.plan();
        let _stopped = carry_out(LANG, &mut Stopping::after(stop), &scene.notebook(), &plan);
        whole(&scene.everything(), &before, &after);
        if stop % 2 == 0 {
            // Setup goes on where it was stopped.
            scene.setup();
            assert_eq!(scene.everything(), after, "after {stop} steps");
        }
        let undone = scene.undo();
        assert!(undone.iter().all(|(_, fate)| !matches!(fate, Fate::Left(_))), "{undone:?}");
        assert_eq!(scene.everything(), before, "after {stop} steps");
    }
}

/// A disk with one file that nobody may write.
struct Locked(PathBuf);

impl Disk for Locked {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn target(&mut self, path: &Path) -> io::Result<PathBuf> {
        let is_locked = path == self.0;
        if is_locked { Err(io::ErrorKind::PermissionDenied.into()) } else { RealDisk.target(path) }
    }

    fn write(&mut self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
        RealDisk.write(path, bytes, like)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        RealDisk.make_folder(path)
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        RealDisk.remove_folder(path)
    }
}

/// Gemini CLI with a key, and what its two files hold.
fn gemini(settings: &str) -> Scene {
    let scene = Scene::empty();
    scene.write(".gemini/.env", "GEMINI_API_KEY=AIzaX\n");
    scene.write(".gemini/settings.json", settings);
    scene.write(".claude/settings.json", "{}");
    scene
}

#[test]
fn a_client_with_two_files_gets_both_or_none() {
    // A key that cannot be planned.
    let scene = gemini(r#"{"security": "x"}"#);
    let plan = scene.setup();
    assert_eq!((plan.clients(), plan.left.len(), plan.states.len()), (vec!["claude"], 1, 2), "{plan:?}");
    assert_eq!(scene.read(".gemini/.env"), "GEMINI_API_KEY=AIzaX\n");

    // A file that cannot be written: the one after it is left, and other clients are not.
    let scene = gemini("{}");
    let mut locked = Locked(scene.home(".gemini/settings.json"));
    let failed = carry_out(LANG, &mut locked, &scene.notebook(), &scene.plan()).unwrap();
    let files: Vec<_> = failed.iter().map(|(file, _)| file.strip_prefix(scene.home("")).unwrap()).collect();
    assert_eq!(files, [Path::new(".gemini/settings.json"), Path::new(".gemini/.env")]);
    assert_eq!(scene.read(".gemini/.env"), "GEMINI_API_KEY=AIzaX\n");
    assert!(scene.read(".claude/settings.json").contains("8787"));

    // On the way back, the login stays as long as the address does.
    let scene = gemini("{}");
    assert_eq!(scene.setup().clients(), ["claude", "gemini"]);
    let mut locked = Locked(scene.home(".gemini/.env"));
    undo(LANG, &mut locked, &scene.notebook(), &[], true).unwrap();
    assert!(scene.read(".gemini/settings.json").contains("gemini-api-key"));
    assert_eq!(scene.read(".claude/settings.json"), "{}");
    scene.undo();
    assert_eq!(scene.read(".gemini/settings.json"), "{}");
}

#[test]
fn an_upstream_goes_with_the_client_that_it_was_made_for() {
    let mut scene = Scene::empty();
    let own = "http://127.0.0.1:9/v1";
    scene.write(".codex/config.toml", format!("openai_base_url = \"{own}\"\n"));
    scene.setup();
    // As the settings know it from then on.
    scene.relay.upstreams = vec![("own-codex".to_owned(), own.to_owned())];
    let env_file = scene.write(".env", format!("OPENAI_BASE_URL={own}\n"));
    let plan = scene.plan_for(&Wish { env_files: vec![env_file], ..Wish::default() });
    carry_out(LANG, &mut RealDisk, &scene.notebook(), &plan).unwrap();
    // While its file cannot be taken back, a client keeps its upstream.
    let mut locked = Locked(scene.home(".codex/config.toml"));
    undo(LANG, &mut locked, &scene.notebook(), &[Client::Codex], true).unwrap();
    assert!(scene.read(".config/steady-relay/config.toml").contains("[upstream.own-codex]"));
    undo(LANG, &mut RealDisk, &scene.notebook(), &[Client::Codex], true).unwrap();
    let config = scene.read(".config/steady-relay/config.toml");
    assert!(scene.read(".env").contains("/to/own-env-file/v1"), "{}", scene.read(".env"));
    assert!(config.contains("[upstream.own-env-file]") && !config.contains("own-codex"), "{config}");
    let undone = scene.undo();
    assert!(!scene.config.exists(), "{undone:?} {}", scene.read(".config/steady-relay/config.toml"));
}

#[test]
fn an_undo_that_is_stopped_can_be_done_again() {
    let scene = Scene::rich();
    let before = scene.everything();
    scene.setup();
    let after = scene.everything();
    let mut counting = Stopping::after(usize::MAX);
    undo(LANG, &mut counting, &scene.notebook(), &[], true).unwrap();
    assert!(counting.steps > 40, "{}", counting.steps);
    for stop in 0..counting.steps {
        scene.setup();
        assert_eq!(scene.everything(), after);
        let _stopped = undo(LANG, &mut Stopping::after(stop), &scene.notebook(), &[], true);
        // Where one file has several keys, each state of it has some of them.
        let undone = scene.undo();
        assert!(undone.iter().all(|(_, fate)| !matches!(fate, Fate::Left(_))), "{undone:?}");
        assert_eq!(scene.everything(), before, "after {stop} steps");
    }
}

#[test]
fn a_key_that_said_null_says_so_again() {
    let scene = Scene::empty();
    let text = "{\"env\":{\"ANTHROPIC_BASE_URL\":null}}";
    scene.write(".claude/settings.json", text);
    scene.setup();
    assert!(scene.read(".claude/settings.json").contains("8787"));
    scene.undo();
    assert_eq!(scene.read(".claude/settings.json"), text);
}

#[test]
fn what_somebody_changed_since_stays() {
    let scene = Scene::rich();
    scene.setup();
    scene.write(".codex/config.toml", "openai_base_url = \"https://other.example/v1\"\n");
    let claude = scene.read(".claude/settings.json");
    scene.write(
        ".claude/settings.json",
        claude.replace("{\n  \"env\"", "{\n  \"model\": \"opus\",\n  \"env\""),
    );
    let undone = scene.undo();
    let left: Vec<_> = undone.iter().filter(|(_, fate)| matches!(fate, Fate::Left(_))).collect();
    let why = "somebody changed it since; it stays as it is (before setup: not set)";
    assert_eq!(left, [&("openai_base_url".to_owned(), Fate::Left(why.to_owned()))]);
    assert_eq!(scene.read(".codex/config.toml"), "openai_base_url = \"https://other.example/v1\"\n");
    assert_eq!(
        scene.read(".claude/settings.json"),
        "{\n  \"model\": \"opus\",\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"http://gw.example/anthropic\"\n  }\n}"
    );
    // The conflict is told again, until it is none.
    assert_eq!(scene.undo().len(), 1);
    scene.write(".codex/config.toml", "model = \"x\"\n");
    assert_eq!(scene.undo(), [("openai_base_url".to_owned(), Fate::Nothing)]);
    assert_eq!(scene.undo(), []);
}

#[test]
fn a_key_that_somebody_took_out_is_told_once() {
    let scene = Scene::empty();
    let own = "openai_base_url = \"https://gw.example/v1\"\n";
    scene.write(".codex/config.toml", own);
    scene.setup();
    // A folder that is away for now takes nothing with it.
    fs::rename(scene.home(".codex"), scene.home("away")).unwrap();
    let fates = scene.undo();
    assert!(fates.iter().any(|(key, fate)| key == "openai_base_url" && matches!(fate, Fate::Left(_))));
    fs::rename(scene.home("away"), scene.home(".codex")).unwrap();
    assert_eq!(scene.undo(), [("openai_base_url".to_owned(), Fate::Restored)]);
    assert_eq!(scene.read(".codex/config.toml"), own);

    scene.setup();
    scene.write(".codex/config.toml", "model = \"x\"\n");
    let why = "somebody removed it since; it stays out (before setup: https://gw.example/v1)";
    assert!(scene.undo().contains(&("openai_base_url".to_owned(), Fate::Left(why.to_owned()))));
    assert_eq!(scene.undo(), []);
    assert_eq!(scene.read(".codex/config.toml"), "model = \"x\"\n");
}

#[test]
fn the_relay_is_never_kept_as_what_was_there_before() {
    for (ours, earlier) in [
        ("http://localhost:8787/v1/", 0),
        ("https://127.0.0.1:8787/v1", 0),
        ("http://[::1]:8787", 0),
        ("http://127.0.0.1:9999/v1", 9999),
    ] {
        let mut scene = Scene::empty();
        scene.relay.earlier = vec![earlier];
        scene.write(".codex/config.toml", format!("openai_base_url = \"{ours}\"\n"));
        scene.setup();
        assert_eq!(scene.undo(), [("openai_base_url".to_owned(), Fate::Restored)]);
        assert_eq!(scene.read(".codex/config.toml"), "", "{ours}");
        assert!(!scene.config.exists());
    }
}

#[test]
fn another_port_moves_clients_and_keeps_what_was_before() {
    let mut scene = Scene::rich();
    let before = scene.everything();
    scene.setup();
    scene.relay.port = 9000;
    let plan = scene.setup();
    assert_eq!(plan.clients(), ["claude", "codex", "env-file", "gemini", "opencode"]);
    assert!(scene.read(".claude/settings.json").contains("http://127.0.0.1:9000/to/own-claude"));
    assert!(scene.read(".codex/config.toml").contains("http://127.0.0.1:9000/v1"));
    scene.undo();
    assert_eq!(scene.everything(), before);
}

#[test]
fn a_taken_port_is_written_with_the_clients_alone() {
    let mut scene = Scene::empty();
    scene.relay.port = 8788;
    let wish = Wish { new_port: Some(8788), ..Wish::default() };
    assert!(scene.plan_for(&wish).is_empty());
    scene.write(".codex/config.toml", "");
    scene.write(".config/steady-relay/config.toml", "[relay]\nport = 8787\n");
    let plan = scene.plan_for(&wish);
    assert_eq!(plan.clients(), ["codex", "relay"]);
    carry_out(LANG, &mut RealDisk, &scene.notebook(), &plan).unwrap();
    assert!(scene.read(".config/steady-relay/config.toml").ends_with("port = 8788\n"));
    scene.undo();
    assert_eq!(scene.read(".config/steady-relay/config.toml"), "[relay]\nport = 8787\n");
}

#[test]
fn odd_files_are_left_alone_and_the_others_are_done() {
    let huge = vec![b'#'; (1 << 20) + 1];
    let odd: &[(&[u8], &str)] = &[
        (b"a = [", "line 1, column 6"),
        (b"ok = 1\n\xff\xfe = 2\n", "line 2, column 1: this is not UTF-8 text"),
        (b"a = 1\na = 2\n", "line 2, column 1"),
        (&huge, "the file is larger than 1 MiB"),
    ];
    for (bytes, why) in odd {
        let scene = Scene::empty();
        scene.write(".codex/config.toml", bytes);
        scene.write(".claude/settings.json", "");
        let before = scene.everything();
        let plan = scene.setup();
        let (client, said) = &plan.left[0];
        assert!(client == "Codex" && said.contains(why), "{said}");
        assert_eq!(plan.clients(), ["claude"]);
        assert_eq!(fs::read(scene.home(".codex/config.toml")).unwrap(), *bytes);
        scene.undo();
        assert_eq!(scene.everything(), before);
    }
    let scene = Scene::empty();
    fs::create_dir_all(scene.home(".codex/config.toml")).unwrap();
    assert!(scene.plan().left[0].1.contains("this is no file"));
}

#[cfg(unix)]
#[test]
fn modes_and_links_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let scene = Scene::rich();
    let target = scene.home("dotfiles/gemini.env");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    scene.setup();
    assert!(scene.home(".gemini/.env").is_symlink());
    assert_eq!(mode(&target), 0o640);
    assert_eq!(mode(&scene.root.join("state/setup.json")), 0o600);
    let fresh = scene.root.join("fresh");
    lock_file(&fresh).unwrap();
    assert_eq!((mode(&fresh), mode(&fresh.join("setup.lock"))), (0o700, 0o600));
    assert_eq!(mode(&scene.home(".config/opencode/opencode.json")), 0o600);
    scene.undo();
    assert!(scene.home(".gemini/.env").is_symlink());
    assert_eq!(mode(&target), 0o640);

    // A file that nobody may write, and a link to nowhere, stay.
    let scene = Scene::empty();
    let locked = scene.write(".codex/config.toml", "a = 1\n");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
    fs::create_dir_all(scene.home(".claude")).unwrap();
    link(&scene.home("nowhere"), &scene.home(".claude/settings.json"));
    let before = scene.everything();
    let failed = carry_out(LANG, &mut RealDisk, &scene.notebook(), &scene.plan()).unwrap();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert_eq!(scene.everything(), before);
    assert_eq!(scene.undo(), []);
}

#[test]
fn a_file_that_changes_while_somebody_is_asked_is_not_written() {
    let scene = Scene::empty();
    scene.write(".codex/config.toml", "a = 1\n");
    let plan = scene.plan();
    scene.write(".codex/config.toml", "a = 2\n");
    let failed = carry_out(LANG, &mut RealDisk, &scene.notebook(), &plan).unwrap();
    assert!(failed[0].1.contains("changed while you were asked"), "{failed:?}");
    assert_eq!((scene.read(".codex/config.toml").as_str(), scene.undo().len()), ("a = 2\n", 0));
}

#[test]
fn a_journal_that_is_not_ours_stops_everything() {
    let scene = Scene::rich();
    fs::create_dir_all(scene.root.join("state")).unwrap();
    for (text, word) in [("{", "not what this program writes"), ("{\"v\": 2}", "newer"), ("[]", "not what")] {
        fs::write(scene.root.join("state/setup.json"), text).unwrap();
        let error = undo(LANG, &mut RealDisk, &scene.notebook(), &[], true).unwrap_err();
        assert!(error.said(LANG).contains(word), "{}", error.said(LANG));
    }
}
