//! Moving Claude Code: `ANTHROPIC_BASE_URL`, and two variables that let it wait for half an hour.
//!
//! The `env` block of a settings file wins over the environment, and `--settings` wins over every such file
//! except the managed one (measured with 2.1.197). Of several `--settings` the last one counts and the others
//! are dropped, so where the user gives one, ours is merged into it. The managed file cannot be overridden.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Own, Plan, RelayAddr, RunError, Surroundings};
use crate::client_facts::{CLAUDE_BASE_URL as BASE_URL, CLAUDE_CLOUDS, claude_managed, is_on};
use crate::setup::here::SYSTEM;
use crate::words;

const REQUEST_LIMIT: &str = "API_TIMEOUT_MS";
const IDLE_LIMIT: &str = "CLAUDE_STREAM_IDLE_TIMEOUT_MS";
/// One hour and half an hour: with both, Claude Code held a silent request for 31 minutes (measured).
const LONG_LIMITS: [(&str, &str); 2] = [(REQUEST_LIMIT, "3600000"), (IDLE_LIMIT, "1800000")];

/// What Claude Code takes without the variables, and the bounds it keeps the second one in.
const DEFAULT_REQUEST: Duration = Duration::from_secs(600);
const SHORTEST_IDLE: Duration = Duration::from_secs(300);
const LONGEST_IDLE: Duration = Duration::from_secs(1800);
/// It hangs up this long after the idle limit: at 357 to 359 s with 300 s (measured four times).
const AFTER_IDLE: Duration = Duration::from_secs(57);

/// What holds a key, and comes before a login; and the login of a machine without a browser.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];
const KEY_HELPER: &str = "apiKeyHelper";
const LOGIN_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// What the name of a variable with a secret has in it.
const SECRET_WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH", "HEADER", "CREDENTIAL"];

const MANAGED_FILE: &str = claude_managed(SYSTEM);

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    let given = Given::read(&plan.args, around, &mut plan.notices)?;
    let layers = layers(&given, around, &mut plan.notices);
    let find = |name: &str| {
        let from_files = layers.iter().find_map(|layer| Some((layer.variable(name)?, layer)));
        match from_files {
            Some((value, layer)) => Some((value, layer.origin.clone(), layer.kind)),
            None => Some((around.variable(name)?, String::new(), Kind::Environment)),
        }
    };
    for cloud in CLAUDE_CLOUDS {
        if find(cloud).is_some_and(|(value, ..)| is_on(&value)) {
            plan.notices.push(words::run::claude_cloud(words::lang(), cloud));
        }
    }
    if is_subscription(around, &layers, &|name| find(name).is_some()) {
        let lang = words::lang();
        plan.notices.extend([
            words::run::claude_leaves_off(lang),
            words::run::claude_retries(lang),
            words::run::claude_without(lang),
        ]);
    }
    let mut ours = vec![(BASE_URL, relay.base())];
    for (name, value) in LONG_LIMITS {
        if find(name).is_none() {
            ours.push((name, value.to_owned()));
        }
    }
    plan.claude_limit = Some(limit(|name| {
        ours.iter()
            .find(|(set, _)| *set == name)
            .map(|(_, value)| value.clone())
            .or_else(|| Some(find(name)?.0))
    }));
    if let Some((url, origin, kind)) = find(BASE_URL) {
        let lang = words::lang();
        let origin = match kind {
            Kind::Environment => words::run::in_environment(lang, BASE_URL),
            Kind::Managed | Kind::Settings => words::run::in_place(lang, BASE_URL, &origin),
        };
        let own = Own { url, origin };
        let base = if relay.has_upstream {
            plan.passes_over(&own);
            relay.base()
        } else {
            plan.stand_in("claude", &own, relay)?
        };
        if kind == Kind::Managed {
            return Err(RunError::Immovable {
                client: "claude",
                why: words::run::managed(lang, &own.origin),
                hint: words::run::ask_manager(lang, BASE_URL),
            });
        }
        if kind == Kind::Settings {
            given.keeps_secrets()?;
            plan.args = given.with_settings(std::mem::take(&mut plan.args), &base);
        }
        if let Some((_, value)) = ours.iter_mut().find(|(name, _)| *name == BASE_URL) {
            *value = base;
        }
    }
    plan.env.extend(ours.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    Ok(())
}

/// Whether it goes by a claude.ai login, to which a custom base URL makes a difference. A key of any kind comes first.
fn is_subscription(around: Surroundings<'_>, layers: &[Layer], is_set: &dyn Fn(&str) -> bool) -> bool {
    if KEYS.iter().any(|name| is_set(name))
        || layers.iter().any(|layer| layer.settings.contains_key(KEY_HELPER))
    {
        return false;
    }
    let named = around.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let beside = named.clone().or_else(|| around.home()).map(|folder| folder.join(".claude.json"));
    let within = named.or_else(|| Some(around.home()?.join(".claude")));
    let within = within.map(|folder| folder.join(".credentials.json"));
    // The first may be longer than what is read of it, and some systems keep the login elsewhere than in the second.
    // Of neither anything is told.
    let holds = |file: Option<PathBuf>, key: &str| {
        let text = file.and_then(|file| around.text(&file).ok().flatten());
        let all = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(&text).ok());
        all.is_some_and(|all| all.get(key).is_some_and(Value::is_object))
    };
    is_set(LOGIN_TOKEN) || holds(beside, "oauthAccount") || holds(within, "claudeAiOauth")
}

/// How long it waits for the head of an answer, by the variables that are in force.
fn limit(variable: impl Fn(&str) -> Option<String>) -> Duration {
    let milliseconds =
        |name: &str| variable(name).and_then(|text| text.trim().parse().ok()).map(Duration::from_millis);
    let request = milliseconds(REQUEST_LIMIT).unwrap_or(DEFAULT_REQUEST);
    let idle = milliseconds(IDLE_LIMIT).unwrap_or(SHORTEST_IDLE).clamp(SHORTEST_IDLE, LONGEST_IDLE);
    request.min(idle + AFTER_IDLE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Managed,
    Settings,
    Environment,
}

/// One settings file, or the value of `--settings`.
struct Layer {
    origin: String,
    kind: Kind,
    settings: Map<String, Value>,
}

impl Layer {
    fn variable(&self, name: &str) -> Option<String> {
        match self.settings.get("env")?.get(name)? {
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// All settings that Claude Code would read, strongest first.
fn layers(given: &Given, around: Surroundings<'_>, notices: &mut Vec<String>) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut file = |layers: &mut Vec<Layer>, path: PathBuf, kind: Kind| match around
        .text(&path)
        .map(|text| text.map(|text| serde_json::from_str(&text)))
    {
        Ok(None) => {}
        Ok(Some(Ok(settings))) => {
            layers.push(Layer { origin: path.display().to_string(), kind, settings });
        }
        Ok(Some(Err(_))) => {
            let format = words::run::json_object(words::lang());
            let shown = path.display().to_string();
            notices.push(words::run::not_valid(words::lang(), &shown, &format, "Claude Code"));
        }
        Err(error) => {
            let shown = path.display().to_string();
            notices.push(words::run::unreadable(words::lang(), &shown, &error.to_string()));
        }
    };
    file(&mut layers, PathBuf::from(MANAGED_FILE), Kind::Managed);
    if let Some(settings) = &given.settings {
        let origin = "--settings".to_owned();
        layers.push(Layer { origin, kind: Kind::Settings, settings: settings.clone() });
    }
    let project = around.folder.join(".claude");
    let user = match around.variable("CLAUDE_CONFIG_DIR") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => around.home().map(|home| home.join(".claude")),
    };
    let files = [
        ("local", Some(project.join("settings.local.json"))),
        ("project", Some(project.join("settings.json"))),
        ("user", user.map(|folder| folder.join("settings.json"))),
    ];
    for (source, path) in files {
        let read = given.sources.as_ref().is_none_or(|sources| sources.iter().any(|named| named == source));
        if let Some(path) = path.filter(|_| read) {
            file(&mut layers, path, Kind::Settings);
        }
    }
    layers
}

/// What the user's own arguments say about settings.
#[derive(Default)]
struct Given {
    /// The settings of the last `--settings`.
    settings: Option<Map<String, Value>>,
    /// Whether they come from a file.
    from_file: bool,
    /// Where it stands among the arguments, its value included.
    at: Option<std::ops::Range<usize>>,
    /// The files that `--setting-sources` leaves, where it is given.
    sources: Option<Vec<String>>,
}

impl Given {
    fn read(
        args: &[OsString],
        around: Surroundings<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let mut given = Self::default();
        let mut value = None;
        let mut at = 0;
        while let Some(arg) = args.get(at).filter(|arg| *arg != "--") {
            let text = arg.to_str().unwrap_or_default();
            let (name, inside) = text.split_once('=').map_or((text, None), |(name, rest)| (name, Some(rest)));
            let next = || args.get(at + 1).and_then(|next| next.to_str());
            let end = if inside.is_some() { at + 1 } else { at + 2 };
            match name {
                "--settings" => {
                    value = inside.or_else(next);
                    given.at = Some(at..end.min(args.len()));
                    at = end;
                }
                "--setting-sources" => {
                    let sources = inside.or_else(next).unwrap_or_default();
                    given.sources = Some(sources.split(',').map(|name| name.trim().to_owned()).collect());
                    at = end;
                }
                _ => at += 1,
            }
        }
        if let Some(value) = value {
            let file = around.folder.join(value);
            let inline = value.trim_start().starts_with('{');
            let text = if inline { Some(value.to_owned()) } else { around.text(&file).ok().flatten() };
            given.from_file = !inline;
            given.settings = text.and_then(|text| serde_json::from_str(&text).ok());
            if given.settings.is_none() {
                // Claude Code stops over it, and says why.
                notices.push(words::run::claude_settings_unread(words::lang()));
            }
        }
        Ok(given)
    }

    /// Refuses where merging would carry a secret from a file into the arguments, which every user of the
    /// machine can read.
    fn keeps_secrets(&self) -> Result<(), RunError> {
        let names =
            self.settings.as_ref().filter(|_| self.from_file).and_then(|all| all.get("env")?.as_object());
        let secret =
            |name: &&String| SECRET_WORDS.iter().any(|word| name.to_ascii_uppercase().contains(word));
        let Some(name) = names.and_then(|names| names.keys().find(secret)) else { return Ok(()) };
        Err(RunError::Immovable {
            client: "claude",
            why: words::run::claude_secret(words::lang(), name),
            hint: words::run::claude_keep_secret(words::lang(), name, BASE_URL),
        })
    }

    /// The arguments with our base URL in `--settings`, the user's own ones kept beside it.
    fn with_settings(&self, mut args: Vec<OsString>, base: &str) -> Vec<OsString> {
        let mut settings = self.settings.clone().unwrap_or_default();
        let env = settings.entry("env").or_insert_with(|| Value::Object(Map::new()));
        if !env.is_object() {
            *env = Value::Object(Map::new());
        }
        env[BASE_URL] = Value::String(base.to_owned());
        let ours = ["--settings".to_owned(), Value::Object(settings).to_string()].map(OsString::from);
        let at = if self.settings.is_some() { self.at.clone() } else { None };
        args.splice(at.unwrap_or(0..0), ours);
        args
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Machine, upstreams, variable};
    use super::*;

    const USER: &str = "/home/u/.claude/settings.json";
    const PROJECT: &str = "/project/.claude/settings.json";
    const LOCAL: &str = "/project/.claude/settings.local.json";
    const OURS: &str = "http://127.0.0.1:4567/~000000000000000000000000000000ab";
    /// Where there is an upstream of the user's own.
    const OWN: &str = "http://127.0.0.1:4567/~000000000000000000000000000000ab/to/claude";

    fn claude(machine: &Machine, args: &[&str]) -> Plan {
        machine.plan(&[&["claude"], args].concat()).unwrap()
    }

    fn args(plan: &Plan) -> Vec<&str> {
        plan.args.iter().map(|arg| arg.to_str().unwrap()).collect()
    }

    fn base(url: &str) -> String {
        format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{url}"}}}}"#)
    }

    fn upstream(plan: &Plan) -> Option<&str> {
        upstreams(plan).first().map(|(_, url)| *url)
    }

    #[test]
    fn without_settings_of_its_own_variables_do() {
        let plan = claude(&Machine::new(), &["-p", "hi"]);
        assert_eq!(args(&plan), ["-p", "hi"]);
        assert_eq!(variable(&plan, BASE_URL), Some(OURS));
        assert_eq!(variable(&plan, REQUEST_LIMIT), Some("3600000"));
        assert_eq!(variable(&plan, IDLE_LIMIT), Some("1800000"));
        assert_eq!((upstream(&plan), plan.notices.len()), (None, 0));
        assert_eq!(plan.claude_limit, Some(Duration::from_secs(1857)));
    }

    #[test]
    fn a_subscription_is_told_what_is_off_and_a_key_is_not() {
        const STATE: &str = "/home/u/.claude.json";
        let login = Machine::new().file(STATE, r#"{"oauthAccount":{"emailAddress":"me@hush.example"}}"#);
        let plan = claude(&login, &[]);
        let told = plan.notices.join("\n");
        assert_eq!(plan.notices.len(), 3, "{told}");
        for part in ["Remote Control", "tool search", "CLAUDE_CODE_RETRY_WATCHDOG", "without `run`"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("hush"));
        for login in [
            Machine::new().env("CLAUDE_CODE_OAUTH_TOKEN", "x"),
            Machine::new().file("/home/u/.claude/.credentials.json", r#"{"claudeAiOauth":{}}"#),
            Machine::new().env("CLAUDE_CONFIG_DIR", "/c").file("/c/.claude.json", r#"{"oauthAccount":{}}"#),
        ] {
            assert_eq!(claude(&login, &[]).notices.len(), 3);
        }
        for other in [
            Machine::new(),
            Machine::new().file(STATE, r#"{"oauthAccount":null}"#),
            Machine::new().file(STATE, r#"{"oauthAccount":{}}"#).env("ANTHROPIC_API_KEY", "k"),
            Machine::new().file(STATE, r#"{"oauthAccount":{}}"#).file(USER, r#"{"apiKeyHelper":"x"}"#),
            Machine::new()
                .file(STATE, r#"{"oauthAccount":{}}"#)
                .file(USER, r#"{"env":{"ANTHROPIC_AUTH_TOKEN":"k"}}"#),
        ] {
            assert_eq!(claude(&other, &[]).notices, [""; 0]);
        }
    }

    #[test]
    fn the_readme_names_the_limits_that_are_set() {
        const README: &str = include_str!("../../../../README.md");
        for (name, value) in LONG_LIMITS {
            assert!(README.contains(&format!("`{name}={value}`")), "{name}");
        }
        assert_eq!(LONGEST_IDLE, Duration::from_secs(30 * 60), "half an hour");
    }

    #[test]
    fn limits_of_the_user_stay_and_the_relay_knows_them() {
        let rows = [
            (None, None, 1857),
            (Some("600000"), None, 600),
            (None, Some("600000"), 657),
            (Some("3600000"), Some("1"), 357),
            (Some("3600000"), Some("99999999"), 1857),
            (Some("rubbish"), None, 600),
            (Some("30000"), Some("300000"), 30),
        ];
        for (request, idle, seconds) in rows {
            let set = [(REQUEST_LIMIT, request), (IDLE_LIMIT, idle)];
            let (mut shell, mut block) = (Machine::new(), Map::new());
            for (name, value) in set {
                if let Some(value) = value {
                    shell = shell.env(name, value);
                    block.insert(name.to_owned(), value.into());
                }
            }
            let file = Machine::new().file(USER, &serde_json::json!({ "env": block }).to_string());
            for plan in [claude(&shell, &[]), claude(&file, &[])] {
                assert_eq!(plan.claude_limit, Some(Duration::from_secs(seconds)), "{set:?}");
                for (name, value) in set {
                    assert_eq!(variable(&plan, name).is_none(), value.is_some(), "{name}");
                }
            }
        }
    }

    #[test]
    fn a_base_url_in_the_shell_is_the_upstream() {
        let plan = claude(&Machine::new().env(BASE_URL, "https://gw.example/anthropic"), &[]);
        assert_eq!(upstream(&plan), Some("https://gw.example/anthropic"));
        assert_eq!(variable(&plan, BASE_URL), Some(OWN));
        assert!(plan.args.is_empty());
    }

    #[test]
    fn a_base_url_in_a_settings_file_is_overridden_by_settings() {
        for (path, url) in [(USER, "https://user"), (PROJECT, "https://project"), (LOCAL, "https://local")] {
            let machine = Machine::new().env(BASE_URL, "https://shell").file(path, &base(url));
            let plan = claude(&machine, &["-p", "hi"]);
            assert_eq!(args(&plan), ["--settings", &base(OWN), "-p", "hi"]);
            assert_eq!(upstream(&plan), Some(url));
            assert!(plan.notices[0].contains(path), "{:?}", plan.notices);
        }
        let all = Machine::new()
            .file(USER, &base("https://user"))
            .file(PROJECT, &base("https://project"))
            .file(LOCAL, &base("https://local"));
        assert_eq!(upstream(&claude(&all, &[])), Some("https://local"));
        let user_only = claude(&all, &["--setting-sources", "user"]);
        assert_eq!(upstream(&user_only), Some("https://user"));
        let moved = Machine::new()
            .env("CLAUDE_CONFIG_DIR", "/srv/claude")
            .file(USER, &base("https://no"))
            .file("/srv/claude/settings.json", &base("https://yes"));
        assert_eq!(upstream(&claude(&moved, &[])), Some("https://yes"));
    }

    #[test]
    fn settings_on_the_command_line_are_kept_beside_ours() {
        let own = r#"{"model":"opus","env":{"A":"1"}}"#;
        let merged = format!(r#"{{"model":"opus","env":{{"A":"1","ANTHROPIC_BASE_URL":"{OWN}"}}}}"#);
        let user = Machine::new().file(USER, &base("https://user")).file("/project/own.json", own);
        for given in [&["--settings", own, "hi"][..], &["--settings", "own.json", "hi"]] {
            let plan = claude(&user, given);
            let [flag, settings, last] = args(&plan)[..] else { panic!("{plan:?}") };
            assert_eq!((flag, last), ("--settings", "hi"));
            let value: Value = serde_json::from_str(settings).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(&merged).unwrap());
            assert_eq!(upstream(&plan), Some("https://user"));
            // Without a base URL in any file there is no need to touch them.
            let machine = Machine::new().file("/project/own.json", own);
            assert_eq!(args(&claude(&machine, given)), given);
        }
        let inside = format!("--settings={}", base("https://flag"));
        let plan = claude(&user, &["-p", &inside]);
        assert_eq!(args(&plan), ["-p", "--settings", &base(OWN)]);
        assert_eq!(upstream(&plan), Some("https://flag"));
        let behind = claude(&Machine::new(), &["--", "--settings", &base("https://no")]);
        assert_eq!(upstream(&behind), None);
    }

    #[test]
    fn a_secret_in_a_file_stays_out_of_the_arguments() {
        let own = r#"{"env":{"ANTHROPIC_AUTH_TOKEN":"hush"}}"#;
        let user = Machine::new().file(USER, &base("https://user")).file("/project/own.json", own);
        let error = user.plan(&["claude", "--settings", "own.json"]).unwrap_err();
        assert!(error.to_string().contains("ANTHROPIC_AUTH_TOKEN") && !error.to_string().contains("hush"));
        // Where nothing has to be merged the file stays a file; what is inline already is visible anyway.
        let alone = Machine::new().file("/project/own.json", own);
        assert_eq!(args(&claude(&alone, &["--settings", "own.json"])), ["--settings", "own.json"]);
        assert!(user.plan(&["claude", "--settings", own]).is_ok());
    }

    #[test]
    fn managed_settings_cannot_be_moved() {
        let machine = Machine::new().file(MANAGED_FILE, &base("https://corp.example"));
        let error = machine.plan(&["claude"]).unwrap_err();
        assert!(matches!(error, RunError::Immovable { .. }), "{error}");
        assert!(error.to_string().contains(MANAGED_FILE));
        let harmless = Machine::new().file(MANAGED_FILE, "{}");
        assert!(harmless.plan(&["claude"]).is_ok());
    }

    #[test]
    fn the_relay_is_no_upstream_of_itself() {
        let shell = Machine::new().env(BASE_URL, "http://localhost:4567");
        let file = Machine::new().file(USER, &base("http://127.0.0.1:4567/"));
        for machine in [shell, file] {
            assert!(matches!(machine.plan(&["claude"]), Err(RunError::Itself { .. })));
        }
        let odd = Machine::new().env(BASE_URL, "gw.example");
        assert!(matches!(odd.plan(&["claude"]), Err(RunError::Url { .. })));
    }

    #[test]
    fn what_cannot_be_read_is_left_to_claude_with_a_notice() {
        for text in ["{", "[]", "<unreadable>"] {
            let plan = claude(&Machine::new().file(USER, text), &[]);
            assert_eq!(plan.notices.len(), 1, "{:?}", plan.notices);
            assert!(plan.args.is_empty());
        }
        let plan = claude(&Machine::new(), &["--settings", "missing.json"]);
        assert_eq!((args(&plan).len(), plan.notices.len()), (2, 1));
    }

    #[test]
    fn other_clouds_are_named() {
        for (value, notices) in [("1", 1), ("true", 1), ("0", 0), ("", 0)] {
            let plan = claude(&Machine::new().env("CLAUDE_CODE_USE_BEDROCK", value), &[]);
            assert_eq!(plan.notices.len(), notices, "{value}");
        }
    }
}
