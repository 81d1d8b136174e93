use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use super::super::{ClientState, Standing, survey};
use super::*;
use crate::running::Who;

/// A machine made of texts.
#[derive(Default)]
struct Pretend {
    files: BTreeMap<PathBuf, String>,
    env: Vec<(&'static str, &'static str)>,
    in_wsl: bool,
    distros: Vec<String>,
    windows: bool,
}

impl Pretend {
    fn linux() -> Self {
        Self { env: vec![("HOME", "/home/u")], ..Self::default() }
    }

    fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.to_owned());
        self
    }

    fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.files.get(path).map(|text| text.as_bytes().to_vec());
        found.ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> Vec<String> {
        let inside = self.files.keys().filter_map(|path| path.strip_prefix(folder).ok()?.components().next());
        let mut names: Vec<String> =
            inside.map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        names.dedup();
        names
    }

    fn survey(&self) -> Vec<ClientState> {
        let env = |name: &str| {
            let set = self.env.iter().find(|(set, _)| *set == name);
            set.map(|(_, value)| OsString::from(value))
        };
        let machine = Machine {
            system: if self.windows { System::Windows } else { System::Linux },
            in_wsl: self.in_wsl,
            distros: self.distros.clone(),
            env: &env,
            read: &|path| self.read(path),
            list: &|folder| self.list(folder),
            exists: &|path| self.files.keys().any(|file| file.starts_with(path)),
            who: &|at| if at.port() == 8787 { Who::Relay } else { Who::Nobody },
            folder: PathBuf::from("/project"),
        };
        survey(Lang::English, &machine, &RelayAt::local(8787), &[])
    }

    /// The one client that is there.
    fn only(&self) -> ClientState {
        let mut found = self.survey();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }
}

const CODEX: &str = "/home/u/.codex/config.toml";
const CLAUDE: &str = "/home/u/.claude/settings.json";

#[test]
fn a_machine_without_clients_has_none() {
    assert_eq!(Pretend::linux().survey(), []);
    assert_eq!(Pretend::default().survey(), []);
}

#[test]
fn codex_is_found_where_its_variable_says() {
    let moved = Pretend::linux().set("CODEX_HOME", "/data/codex").file("/data/codex/auth.json", "{}").only();
    assert_eq!((moved.file, moved.standing), ("/data/codex/config.toml".into(), Standing::Unset));
}

#[test]
fn codex_is_moved_by_the_key_that_counts() {
    let rows = [
        ("", "openai_base_url"),
        ("model_provider = \"openai\"\n", "openai_base_url"),
        (
            "model_provider = \"gw\"\n[model_providers.gw]\nbase_url = \"https://gw.example/v1\"\n",
            "model_providers.gw.base_url",
        ),
        (
            "profile = \"p\"\n[profiles.p]\nmodel_provider = \"gw\"\n[model_providers.gw]\nbase_url = \"https://gw.example/v1\"\n",
            "model_providers.gw.base_url",
        ),
    ];
    for (text, key) in rows {
        assert_eq!(Pretend::linux().file(CODEX, text).only().key, key, "{text}");
    }
    let oss = Pretend::linux().file(CODEX, "model_provider = \"ollama\"\n").only();
    assert_eq!(
        oss.standing.said(Lang::English),
        "cannot be moved: its provider `ollama` has no base URL in this file that could be moved"
    );
}

#[test]
fn a_managed_file_of_codex_wins() {
    let managed = "/etc/codex/managed_config.toml";
    let with = |text: &str| Pretend::linux().file(CODEX, "").file(managed, text).only().standing;
    assert!(matches!(with("openai_base_url = \"https://corp.example/v1\"\n"), Standing::Immovable(_)));
    assert!(matches!(with("model_provider = \"corp\"\n"), Standing::Immovable(_)));
    assert_eq!(with("model = \"gpt-x\"\n"), Standing::Unset);
    assert_eq!(with("openai_base_url = \"http://127.0.0.1:8787/v1\"\n"), Standing::Unset);
}

#[test]
fn profiles_of_codex_that_go_elsewhere_are_told() {
    let notes = Pretend::linux()
        .file(CODEX, "[profiles.a]\nmodel_provider = \"x\"\n[profiles.b]\nmodel = \"y\"\n")
        .file("/home/u/.codex/c.config.toml", "openai_base_url = \"https://gw.example/v1\"\n")
        .file("/home/u/.codex/d.config.toml", "openai_base_url = \"http://localhost:8787/v1\"\n")
        .only()
        .notes;
    let names: Vec<_> = notes.iter().filter_map(|note| note.split('`').nth(1)).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn what_keeps_claude_code_where_it_is_is_told() {
    let settings = |text: &str| Pretend::linux().file(CLAUDE, text);
    for machine in [
        settings("{\"env\": {\"CLAUDE_CODE_USE_BEDROCK\": \"1\"}}"),
        settings("{}").set("CLAUDE_CODE_USE_VERTEX", "true"),
        settings("{}").file(
            "/etc/claude-code/managed-settings.json",
            "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://corp.example\"}}",
        ),
    ] {
        assert!(matches!(machine.only().standing, Standing::Immovable(_)));
    }
    let off = settings("{\"env\": {\"CLAUDE_CODE_USE_BEDROCK\": \"0\"}}").only();
    assert_eq!(off.standing, Standing::Unset);
    let project = settings("{}")
        .file(
            "/project/.claude/settings.local.json",
            "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://x.example\"}}",
        )
        .only();
    assert!(project.notes[0].contains("settings.local.json sets `ANTHROPIC_BASE_URL` and wins"));
    // The environment counts where the file says nothing.
    let around = settings("{}").set("ANTHROPIC_BASE_URL", "https://gw.example").only();
    assert_eq!(around.standing, Standing::Elsewhere("https://gw.example".to_owned()));
}

#[test]
fn editors_count_where_the_extension_is_or_its_list_has_an_address() {
    let settings = "/home/u/.config/Cursor/User/settings.json";
    let none = Pretend::linux().file(settings, "{\"editor.fontSize\": 12}");
    assert_eq!(none.survey(), []);
    let installed =
        Pretend::linux().file("/home/u/.cursor/extensions/anthropic.claude-code-2.1/package.json", "");
    let state = installed.only();
    assert_eq!((state.title.as_str(), state.file), ("Cursor (Claude Code)", settings.into()));
    let listed = Pretend::linux().file(
        settings,
        "{// c\n\"claudeCode.environmentVariables\": [{\"name\": \"ANTHROPIC_BASE_URL\", \"value\": \"http://127.0.0.1:1\"}],}",
    );
    assert_eq!(listed.only().standing, Standing::Dead("http://127.0.0.1:1".to_owned()));
}

#[test]
fn opencode_takes_the_file_that_is_read_last() {
    let json = "/home/u/.config/opencode/opencode.json";
    let both = Pretend::linux().file(json, "{}").file("/home/u/.config/opencode/opencode.jsonc", "{}");
    assert_eq!(both.only().file, PathBuf::from("/home/u/.config/opencode/opencode.jsonc"));
    let some = "{\"provider\": {\"openai\": {\"options\": {\"baseURL\": \"http://127.0.0.1:8787/v1\"}}}}";
    // One provider that goes around the relay is told.
    assert_eq!(Pretend::linux().file(json, some).only().standing, Standing::Unset);
    let noted = Pretend::linux()
        .file(json, "{}")
        .file("/project/opencode.json", "{\"provider\": {\"openai\": {}}}")
        .set("OPENCODE_CONFIG", "/x.json");
    assert_eq!(noted.only().notes.len(), 2);
}

#[test]
fn gemini_is_moved_with_a_key_alone() {
    let env = "/home/u/.gemini/.env";
    let settings = "/home/u/.gemini/settings.json";
    let google = "{\"security\": {\"auth\": {\"selectedType\": \"oauth-personal\"}}}";
    let refused = Pretend::linux().file(settings, google).file(env, "GEMINI_API_KEY=AIzaX\n").only();
    assert!(matches!(refused.standing, Standing::Immovable(_)));
    assert!(matches!(Pretend::linux().file(env, "").only().standing, Standing::Immovable(_)));
    for machine in [
        Pretend::linux().file(env, "GEMINI_API_KEY=AIzaX\n"),
        Pretend::linux().file(env, "").set("GEMINI_API_KEY", "AIzaX"),
        Pretend::linux().file(settings, &google.replace("oauth-personal", "gemini-api-key")),
    ] {
        assert_eq!(machine.only().standing, Standing::Unset);
    }
    let broken = Pretend::linux().file(env, "GEMINI_API_KEY=AIzaX\n").file(settings, "{").only();
    assert!(matches!(broken.standing, Standing::Unreadable(_)), "half of it would stop the client");
}

#[test]
fn what_no_program_should_write_is_told_with_what_to_enter() {
    let found = Pretend::linux()
        .file("/home/u/.continue/config.yaml", "models: []\n")
        .file("/home/u/.vscode/extensions/saoudrizwan.claude-dev-3.1/package.json", "")
        .file("/home/u/.vscode/extensions/rooveterinaryinc.roo-cline-3/package.json", "")
        .survey();
    let steps: Vec<_> = found
        .iter()
        .map(|state| {
            let Standing::ByHand(steps) = &state.standing else { panic!("{state:?}") };
            (state.title.as_str(), steps.join("\n"))
        })
        .collect();
    assert_eq!(
        steps.iter().map(|(title, _)| *title).collect::<Vec<_>>(),
        ["Continue", "VS Code (Cline)", "VS Code (Roo Code)"]
    );
    assert!(steps.iter().all(|(_, step)| step.contains("http://127.0.0.1:8787/v1")));
}

#[test]
fn both_sides_of_windows_are_looked_at() {
    let mut wsl = Pretend::linux()
        .file(CODEX, "")
        .file("/mnt/c/Users/me/.codex/config.toml", "")
        .file("/mnt/c/Users/me/AppData/x", "")
        .file("/mnt/c/Users/Public/AppData/x", "")
        .file("/mnt/c/Users/Public/.codex/config.toml", "");
    wsl.in_wsl = true;
    let found = wsl.survey();
    let sides: Vec<_> = found.iter().map(|state| (state.side.clone(), state.notes.len())).collect();
    assert_eq!(sides, [(Side::Here, 0), (Side::Windows, 1)]);

    let linux_side = r"\\wsl.localhost\Ubuntu\home";
    let config = Path::new(linux_side).join("me").join(".codex").join("config.toml");
    for (text, standing) in [("[wsl2]\nnetworkingMode = Mirrored\n", true), ("[wsl2]\n", false)] {
        let mut windows = Pretend::default().set("USERPROFILE", "/C/Users/me");
        windows.windows = true;
        windows.distros = vec!["Ubuntu".to_owned()];
        windows.files.insert(config.clone(), String::new());
        let state = windows.file("/C/Users/me/.wslconfig", text).only();
        assert_eq!(state.side, Side::Wsl("Ubuntu".to_owned()));
        assert_eq!(state.standing == Standing::Unset, standing, "{state:?}");
    }
}

#[test]
fn every_client_is_known_by_its_name() {
    for client in Client::ALL {
        assert_eq!(Client::of(client.name()), Some(client));
    }
    assert_eq!((Client::of("roo"), Client::of("nobody")), (Some(Client::Cline), None));
}

#[test]
fn of_several_addresses_the_one_that_is_dead_is_told() {
    let text = r#"{"provider": {"openai": {"options": {"baseURL": "http://127.0.0.1:8787/v1"}},
        "google": {"options": {"baseURL": "http://127.0.0.1:9/v1beta"}},
        "mine": {"options": {"baseURL": "http://[::1]:7/v1"}}}}"#;
    let state = Pretend::linux().file("/home/u/.config/opencode/opencode.json", text).only();
    assert_eq!(state.key, "provider.google.options.baseURL");
    assert_eq!(state.standing.name(), "dead");
    let all: Vec<_> = state.addresses.iter().map(|told| (told.key.as_str(), told.standing.name())).collect();
    let expected = [
        ("provider.openai.options.baseURL", "relay"),
        ("provider.google.options.baseURL", "dead"),
        ("provider.mine.options.baseURL", "dead"),
    ];
    assert_eq!(all, expected);
}
