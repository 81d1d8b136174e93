//! Where clients on this machine were told to ask: in their files, of which `setup` knows, and in variables, which it does
//! not write.

use std::path::Path;

use crate::setup::{self, Machine, RelayAt, Standing};

use super::super::facts::{ClientSetting, Clients, Unreadable, VsCodeProxy};

/// Variables that SDKs and clients take a base URL from.
const VARIABLES: [(&str, &str); 5] = [
    ("OPENAI_BASE_URL", "OpenAI SDK"),
    ("OPENAI_API_BASE", "OpenAI SDK"),
    ("ANTHROPIC_BASE_URL", "Claude Code"),
    ("GOOGLE_GEMINI_BASE_URL", "Gemini CLI"),
    (OLLAMA, "Ollama"),
];
const OLLAMA: &str = "OLLAMA_HOST";

/// What the files and variables of this machine say.
pub(super) fn found(machine: &Machine<'_>, relay: &RelayAt) -> Clients {
    let mut clients = Clients::default();
    for state in setup::survey(crate::words::lang(), machine, relay, &[]) {
        if let Standing::Unreadable(bad) = state.standing {
            let (client, file) = (state.title, place(&state.file));
            clients.unreadable.push(Unreadable { client, file, bad });
            continue;
        }
        let place = place(&state.file);
        let setting = |told| ClientSetting { client: state.title.clone(), place: place.clone(), told };
        clients.settings.extend(state.addresses.into_iter().map(setting));
    }
    for (name, client) in VARIABLES {
        let value = (machine.env)(name).and_then(|value| value.into_string().ok());
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        let url = if name == OLLAMA { of_ollama(&value) } else { value };
        let told = setup::told(machine, relay, name, &url);
        clients.settings.push(ClientSetting {
            client: client.to_owned(),
            place: "environment".to_owned(),
            told,
        });
    }
    let proxy = setup::editor_proxies(machine).into_iter().next();
    clients.vscode_proxy = proxy.map(|(file, proxy)| {
        let url = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
        VsCodeProxy { is_relay: relay.is(&url), proxy: setup::shown(&url), file: place(&file) }
    });
    clients
}

fn place(file: &Path) -> String {
    file.display().to_string()
}

/// Ollama takes an address without a scheme, and without a port, too.
fn of_ollama(value: &str) -> String {
    if value.contains("://") {
        return value.to_owned();
    }
    let host = value.trim().split('/').next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    format!("http://{host}{}", if has_port { "" } else { ":11434" })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io;

    use super::*;
    use crate::running::Who;
    use crate::setup::System;

    const URL: &str = "http://127.0.0.1:9/v1";

    /// On a machine with these files and variables, and a relay at 8787.
    fn clients(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Clients {
        let env = |name: &str| {
            let variables = variables.iter().chain(&[("HOME", "/h")]);
            variables.filter(|(set, _)| *set == name).map(|(_, value)| OsString::from(value)).next()
        };
        let machine = Machine {
            system: System::Linux,
            in_wsl: false,
            distros: Vec::new(),
            env: &env,
            read: &|path| {
                let found = files.iter().find(|(name, _)| Path::new(name) == path);
                found.map(|(_, text)| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
            },
            list: &|folder| match folder.ends_with("extensions") {
                true => vec!["anthropic.claude-code-2.1.0".to_owned()],
                false => Vec::new(),
            },
            exists: &|path| files.iter().any(|(name, _)| Path::new(name).starts_with(path)),
            who: &|at| if at.port() == 8787 { Who::Relay } else { Who::Nobody },
            folder: "/project".into(),
        };
        found(&machine, &RelayAt::local(8787))
    }

    /// Client, key, address.
    fn told(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<[String; 3]> {
        let all = clients(files, variables).settings.into_iter();
        all.map(|setting| [setting.client, setting.told.key, setting.told.shown]).collect()
    }

    fn one(client: &str, key: &str, url: &str) -> [String; 3] {
        [client, key, url].map(str::to_owned)
    }

    #[test]
    fn addresses_are_found_where_clients_keep_them() {
        let codex = format!(
            "openai_base_url = '{URL}'\nchatgpt_base_url = '{URL}'\n[model_providers.mine]\nbase_url = \"http://[::1]:8/v1\"\n"
        );
        assert_eq!(
            told(&[("/h/.codex/config.toml", &codex)], &[]),
            [
                one("Codex", "openai_base_url", URL),
                one("Codex", "chatgpt_base_url", URL),
                one("Codex", "model_providers.mine.base_url", "http://[::1]:8/v1"),
            ]
        );
        let own = format!("model_provider = 'a'\n[model_providers.a]\nbase_url = '{URL}'\n");
        assert_eq!(
            told(&[("/h/.codex/config.toml", &own)], &[]),
            [one("Codex", "model_providers.a.base_url", URL)]
        );
        let claude = format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{URL}"}}}}"#);
        assert_eq!(
            told(&[("/h/.claude/settings.json", &claude)], &[]),
            [one("Claude Code", "env.ANTHROPIC_BASE_URL", URL)]
        );
        let gemini = format!("\u{feff}export GOOGLE_GEMINI_BASE_URL=\"{URL}\"\n");
        assert_eq!(
            told(&[("/h/.gemini/.env", &gemini)], &[]),
            [one("Gemini CLI", "GOOGLE_GEMINI_BASE_URL", URL)]
        );
        let opencode = format!(r#"{{"provider":{{"mine":{{"options":{{"baseURL":"{URL}",}},}},}},}}"#);
        assert_eq!(
            told(&[("/h/.config/opencode/opencode.jsonc", &opencode)], &[]),
            [one("opencode", "provider.mine.options.baseURL", URL)]
        );
    }

    #[test]
    fn variables_count_and_those_of_ollama_are_read_as_it_does() {
        assert_eq!(told(&[], &[("OPENAI_BASE_URL", URL)]), [one("OpenAI SDK", "OPENAI_BASE_URL", URL)]);
        assert_eq!(told(&[], &[("OPENAI_BASE_URL", "")]), [[""; 3]; 0]);
        for (value, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434"),
            ("localhost:9", "http://localhost:9"),
            ("[::1]", "http://[::1]:11434"),
            ("https://o.example", "https://o.example"),
        ] {
            assert_eq!(told(&[], &[(OLLAMA, value)]), [one("Ollama", OLLAMA, url)]);
        }
        let standing = |url| clients(&[], &[("OPENAI_BASE_URL", url)]).settings.remove(0).told.standing;
        assert_eq!(standing("http://localhost:8787/v1"), Standing::Relay);
        assert_eq!(standing(URL), Standing::Dead(URL.to_owned()));
        for odd in ["ftp://a", "http://", "\u{1b}[2J", "https://a.example/v1"] {
            assert!(
                matches!(standing(odd), Standing::Elsewhere(shown) if !shown.contains('\u{1b}')),
                "{odd:?}"
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_known() {
        for broken in ["[", "{\"env\": 3", "\u{0}"] {
            let files = ["/h/.codex/config.toml", "/h/.claude/settings.json"].map(|file| (file, broken));
            let found = clients(&files, &[]);
            assert_eq!((found.settings.len(), found.unreadable.len()), (0, 2), "{broken:?}");
        }
    }

    #[test]
    fn settings_of_vs_code_may_have_comments() {
        let text = r#"{
            // "http.proxy": "http://commented:1",
            "http.proxy": "http://me:hunter2@p.example:3128", /* a // comment */
            "a": "no \" // comment",
            "claudeCode.environmentVariables": [{"name": "ANTHROPIC_BASE_URL", "value": "http://127.0.0.1:9"},],
        }"#;
        let found = clients(&[("/h/.config/Code/User/settings.json", text)], &[]);
        let proxy = found.vscode_proxy.unwrap();
        assert_eq!((proxy.proxy.as_str(), proxy.is_relay), ("http://…@p.example:3128", false));
        assert_eq!(found.settings[0].told.shown, "http://127.0.0.1:9");
        for ours in
            ["http://LOCALHOST:8787/", "http://[::1]:8787", "http://me:pw@0.0.0.0:8787", "127.0.0.1:8787"]
        {
            let text = format!(r#"{{"http.proxy": "{ours}"}}"#);
            let found = clients(&[("/h/.config/Code/User/settings.json", &text)], &[]);
            assert!(found.vscode_proxy.unwrap().is_relay, "{ours}");
        }
    }
}
