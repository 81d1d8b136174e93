//! Base URLs that clients on this machine were told, wherever they keep them: Codex, Claude Code, VS Code, Gemini CLI,
//! opencode, and variables. Only read. Who knows more places implements [`ClientFiles`] too.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One address that a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSetting {
    /// The client.
    pub client: String,
    /// The file, or what else says so.
    pub place: String,
    /// The key there.
    pub key: String,
    /// The address as it stands there, which may hold a secret.
    pub url: String,
}

impl ClientSetting {
    /// Scheme, host and port: the rest may be a secret.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(&self.url)
    }

    /// The host and the port.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let text = self.url.trim();
        // Ollama takes an address without a scheme.
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url: http::Uri = text.parse().ok()?;
        let host = url.host()?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let usual = match url.scheme_str()? {
            "https" => 443,
            "http" if self.key == "OLLAMA_HOST" => 11434,
            "http" => 80,
            _ => return None,
        };
        Some((host.to_owned(), url.port_u16().unwrap_or(usual)))
    }
}

/// Scheme, host and port of an address, and nothing else of it.
#[must_use]
pub fn shown(url: &str) -> String {
    let (scheme, rest) = url.trim().split_once("://").unwrap_or(("", url.trim()));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let text = if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") };
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// What yields such addresses.
pub trait ClientFiles {
    /// All that were found.
    fn settings(&self) -> Vec<ClientSetting>;
}

/// Where clients keep their settings.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The home.
    pub home: PathBuf,
    /// The folder of Codex.
    pub codex: PathBuf,
    /// The folder of Claude Code.
    pub claude: PathBuf,
    /// Settings files of VS Code.
    pub vscode: Vec<PathBuf>,
    /// The folder that programs of the XDG kind keep their settings in.
    pub config: PathBuf,
}

impl Places {
    /// By the environment.
    #[must_use]
    pub fn by(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Self {
        let home = variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).or_else(|| variable("HOME"));
        let home = home.unwrap_or_default();
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let user = if cfg!(windows) {
            variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
        } else if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            config.clone()
        };
        Self {
            codex: variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            claude: variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
            vscode: vec![
                user.join("Code/User/settings.json"),
                home.join(".vscode-server/data/Machine/settings.json"),
            ],
            config,
            home,
        }
    }
}

/// Variables that SDKs and clients take a base URL from.
const VARIABLES: [(&str, &str); 5] = [
    ("OPENAI_BASE_URL", "OpenAI SDK"),
    ("OPENAI_API_BASE", "OpenAI SDK"),
    ("ANTHROPIC_BASE_URL", "Claude Code"),
    ("GOOGLE_GEMINI_BASE_URL", "Gemini CLI"),
    ("OLLAMA_HOST", "Ollama"),
];

/// What the files and variables of this machine say.
pub struct OnThisMachine<'a> {
    /// Where the files are.
    pub places: Places,
    /// Reads one; `None` where there is none that can be read.
    pub read: &'a dyn Fn(&Path) -> Option<String>,
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for OnThisMachine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnThisMachine").field("places", &self.places).finish_non_exhaustive()
    }
}

impl ClientFiles for OnThisMachine<'_> {
    fn settings(&self) -> Vec<ClientSetting> {
        let mut all = Vec::new();
        self.codex(&mut all);
        self.claude(&mut all);
        for file in &self.places.vscode {
            self.vscode(file, &mut all);
        }
        self.gemini(&mut all);
        for name in ["opencode.json", "opencode.jsonc"] {
            self.opencode(&self.places.config.join("opencode").join(name), &mut all);
        }
        for (name, client) in VARIABLES {
            if let Some(url) = (self.variable)(name).filter(|url| !url.is_empty()) {
                all.push(setting(client, "environment", name, &url));
            }
        }
        all
    }
}

fn setting(client: &str, place: &str, key: &str, url: &str) -> ClientSetting {
    ClientSetting { client: client.into(), place: place.into(), key: key.into(), url: url.into() }
}

impl OnThisMachine<'_> {
    fn codex(&self, all: &mut Vec<ClientSetting>) {
        let file = self.places.codex.join("config.toml");
        let Some(table) = (self.read)(&file).and_then(|text| text.parse::<toml::Table>().ok()) else {
            return;
        };
        let place = file.display().to_string();
        for key in ["openai_base_url", "chatgpt_base_url"] {
            if let Some(url) = table.get(key).and_then(toml::Value::as_str) {
                all.push(setting("Codex", &place, key, url));
            }
        }
        for (name, provider) in
            table.get("model_providers").and_then(toml::Value::as_table).into_iter().flatten()
        {
            if let Some(url) = provider.get("base_url").and_then(toml::Value::as_str) {
                all.push(setting("Codex", &place, &format!("model_providers.{name}.base_url"), url));
            }
        }
    }

    fn claude(&self, all: &mut Vec<ClientSetting>) {
        let file = self.places.claude.join("settings.json");
        let settings = self.json(&file);
        if let Some(url) = settings["env"]["ANTHROPIC_BASE_URL"].as_str() {
            all.push(setting("Claude Code", &file.display().to_string(), "env.ANTHROPIC_BASE_URL", url));
        }
    }

    fn vscode(&self, file: &Path, all: &mut Vec<ClientSetting>) {
        let settings = self.json(file);
        let place = file.display().to_string();
        if let Some(url) = settings["http.proxy"].as_str().filter(|url| !url.is_empty()) {
            all.push(setting("VS Code", &place, "http.proxy", url));
        }
        for pair in settings["claudeCode.environmentVariables"].as_array().into_iter().flatten() {
            if let (Some(name @ "ANTHROPIC_BASE_URL"), Some(url)) =
                (pair["name"].as_str(), pair["value"].as_str())
            {
                let key = format!("claudeCode.environmentVariables {name}");
                all.push(setting("VS Code, Claude Code", &place, &key, url));
            }
        }
    }

    fn gemini(&self, all: &mut Vec<ClientSetting>) {
        const NAME: &str = "GOOGLE_GEMINI_BASE_URL";
        let file = self.places.home.join(".gemini/.env");
        let text = (self.read)(&file).unwrap_or_default();
        for line in text.lines() {
            let line = line.trim().trim_start_matches('\u{feff}');
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else { continue };
            if name.trim() == NAME {
                let url = value.trim().trim_matches(['"', '\'']);
                all.push(setting("Gemini CLI", &file.display().to_string(), NAME, url));
            }
        }
    }

    fn opencode(&self, file: &Path, all: &mut Vec<ClientSetting>) {
        let settings = self.json(file);
        for (name, provider) in settings["provider"].as_object().into_iter().flatten() {
            if let Some(url) = provider["options"]["baseURL"].as_str() {
                let key = format!("provider.{name}.options.baseURL");
                all.push(setting("opencode", &file.display().to_string(), &key, url));
            }
        }
    }

    fn json(&self, file: &Path) -> Value {
        let text = (self.read)(file).unwrap_or_default();
        serde_json::from_str(&plain_json(&text)).unwrap_or_default()
    }
}

/// JSON without the comments and the last commas that editors allow.
fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut is_text = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(_)) if is_text => {
                out.push(letter);
                out.extend(letters.next());
            }
            ('"', _) => {
                is_text = !is_text;
                out.push(letter);
            }
            ('/', Some('/')) if !is_text => {
                for skipped in letters.by_ref() {
                    if skipped == '\n' {
                        break;
                    }
                }
            }
            ('/', Some('*')) if !is_text => {
                let mut before = ' ';
                letters.next();
                for skipped in letters.by_ref() {
                    if (before, skipped) == ('*', '/') {
                        break;
                    }
                    before = skipped;
                }
            }
            ('}' | ']', _) if !is_text => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<(String, String, String)> {
        let places = Places::by(&|name| match name {
            "HOME" | "USERPROFILE" => Some("/h".into()),
            "XDG_CONFIG_HOME" | "APPDATA" => Some("/h/.config".into()),
            _ => None,
        });
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        let variable =
            |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        let all = OnThisMachine { places, read: &read, variable: &variable }.settings();
        all.into_iter().map(|setting| (setting.client.clone(), setting.key.clone(), setting.url)).collect()
    }

    fn one(client: &str, key: &str, url: &str) -> Vec<(String, String, String)> {
        vec![(client.to_owned(), key.to_owned(), url.to_owned())]
    }

    #[test]
    fn addresses_are_found_where_clients_keep_them() {
        const URL: &str = "http://127.0.0.1:9/v1";
        let codex =
            format!("openai_base_url = '{URL}'\n[model_providers.mine]\nbase_url = \"http://[::1]:8/v1\"\n");
        let all = found(&[("/h/.codex/config.toml", &codex)], &[]);
        assert_eq!(all[0], one("Codex", "openai_base_url", URL)[0]);
        assert_eq!(all[1], one("Codex", "model_providers.mine.base_url", "http://[::1]:8/v1")[0]);
        let claude = format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{URL}"}}}}"#);
        assert_eq!(
            found(&[("/h/.claude/settings.json", &claude)], &[]),
            one("Claude Code", "env.ANTHROPIC_BASE_URL", URL)
        );
        assert_eq!(
            found(&[("/h/.gemini/.env", &format!("\u{feff}export GOOGLE_GEMINI_BASE_URL=\"{URL}\"\n"))], &[]),
            one("Gemini CLI", "GOOGLE_GEMINI_BASE_URL", URL)
        );
        let opencode = format!(r#"{{"provider":{{"openai":{{"options":{{"baseURL":"{URL}",}},}},}},}}"#);
        assert_eq!(
            found(&[("/h/.config/opencode/opencode.jsonc", &opencode)], &[]),
            one("opencode", "provider.openai.options.baseURL", URL)
        );
        assert_eq!(found(&[], &[("OPENAI_BASE_URL", URL)]), one("OpenAI SDK", "OPENAI_BASE_URL", URL));
        for broken in ["[", "{\"env\": 3}", "\u{0}"] {
            let files = ["/h/.codex/config.toml", "/h/.claude/settings.json"].map(|file| (file, broken));
            assert_eq!(found(&files, &[("OPENAI_BASE_URL", "")]), []);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn settings_of_vs_code_may_have_comments() {
        let text = r#"{
            // "http.proxy": "http://commented:1",
            "http.proxy": "http://p.example:3128", /* a // comment */
            "a": "no \" // comment",
            "claudeCode.environmentVariables": [{"name": "ANTHROPIC_BASE_URL", "value": "http://127.0.0.1:9"},],
        }"#;
        let all = found(&[("/h/.config/Code/User/settings.json", text)], &[]);
        assert_eq!(all[0], one("VS Code", "http.proxy", "http://p.example:3128")[0]);
        assert_eq!(all[1].2, "http://127.0.0.1:9");
    }

    #[test]
    fn only_scheme_host_and_port_are_shown() {
        let of = |key: &str, url: &str| setting("c", "p", key, url);
        let url = of("k", "http://me:hunter2@127.0.0.1:9/~hunter2/v1?key=hunter2");
        assert_eq!(
            (url.shown().as_str(), url.host_and_port()),
            ("http://127.0.0.1:9", Some(("127.0.0.1".into(), 9)))
        );
        assert_eq!(of("k", "https://a.example/v1").host_and_port(), Some(("a.example".into(), 443)));
        assert_eq!(of("k", "http://[::1]:7").host_and_port(), Some(("::1".into(), 7)));
        assert_eq!(of("OLLAMA_HOST", "127.0.0.1").host_and_port(), Some(("127.0.0.1".into(), 11434)));
        for odd in ["", "ftp://a", "http://", "\u{1b}[2J"] {
            assert_eq!(of("k", odd).host_and_port(), None, "{odd:?}");
            assert!(!of("k", odd).shown().contains('\u{1b}'));
        }
    }
}
