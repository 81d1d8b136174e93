//! Moving Codex: one `-c` override in front of everything else.
//!
//! `openai_base_url` moves every model request in both login modes; a provider of the user's own is moved by
//! its `base_url`. Measured with Codex 0.171: later `-c` win over earlier ones and a whole table wipes out the
//! keys below it, so the user's own overrides of these keys are moved in front of ours; `-c` wins over
//! profiles and files; files of a project cannot set these keys; built-in providers cannot be overridden;
//! a key with a dot in it cannot be written at all. `OPENAI_BASE_URL` is ignored and `chatgpt_base_url` must
//! be left alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Own, Plan, RelayAddr, RunError, Surroundings};
use crate::client_facts::{CODEX_BASE_URL, CODEX_BUILT_IN as BUILT_IN, CODEX_PROVIDER, codex_managed};
use crate::setup::here::SYSTEM;
use crate::words::{lang, run};

const SYSTEM_FILE: &str = "/etc/codex/config.toml";

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    let given = Given::read(&plan.args);
    let folder = match around.variable("CODEX_HOME") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => around.home().map(|home| home.join(".codex")),
    };
    is_not_managed(folder.as_deref(), around, &mut plan.notices)?;
    let settings = Settings::gather(folder.as_deref(), &given, around, &mut plan.notices);
    let (key, old) = match settings.provider(&given) {
        Provider::BuiltIn => ("openai_base_url".to_owned(), settings.text(&["openai_base_url"])),
        Provider::Own(id) => {
            let old = settings.text(&["model_providers", &id, "base_url"]);
            (own_key(&id)?, old)
        }
        Provider::Elsewhere(id) => {
            plan.notices.push(run::codex_elsewhere(lang(), &id));
            return Ok(());
        }
    };
    let mut base = format!("{}/v1", relay.base());
    if let Some((url, place)) = old {
        let own = Own { url, origin: place.of(&format!("`{key}`")) };
        if relay.has_upstream {
            plan.passes_over(&own);
        } else {
            base = plan.stand_in("codex", &own, relay)?;
        }
    }
    if given.remote {
        plan.notices.push(run::codex_remote(lang()));
    }
    let ours = [OsString::from("-c"), OsString::from(format!("{key}={}", quoted(&base)))];
    plan.args = given.first.into_iter().chain(ours).chain(given.rest).collect();
    Ok(())
}

/// Whether it is started with its screen: all that asks a model without one is `exec`, also called `e`, and `review`.
pub(super) fn has_screen(args: &[OsString]) -> bool {
    !args.iter().any(|arg| arg == "exec" || arg == "e" || arg == "review")
}

/// Whether nothing wins over what a session says. A file of an organisation's that names an address or a provider does,
/// over each `-c`, too.
fn is_not_managed(
    folder: Option<&Path>,
    around: Surroundings<'_>,
    notices: &mut Vec<String>,
) -> Result<(), RunError> {
    let file = codex_managed(SYSTEM, folder.unwrap_or(Path::new("")));
    let Some(table) = read(&file, around, notices) else { return Ok(()) };
    let Some(key) = [CODEX_BASE_URL, CODEX_PROVIDER].into_iter().find(|key| table.contains_key(*key)) else {
        return Ok(());
    };
    let origin = run::in_place(lang(), &format!("`{key}`"), &file.display().to_string());
    Err(RunError::Immovable {
        client: "codex",
        why: run::managed(lang(), &origin),
        hint: run::ask_manager(lang(), CODEX_BASE_URL),
    })
}

/// A file of settings, if there is one. Where it cannot be read, that is noted.
fn read(file: &Path, around: Surroundings<'_>, notices: &mut Vec<String>) -> Option<Table> {
    match around.text(file).map(|text| text.map(|text| text.parse::<Table>())) {
        Ok(None) => None,
        Ok(Some(Ok(table))) => Some(table),
        // Codex says itself what is wrong, and better.
        Ok(Some(Err(_))) => {
            let format = run::valid_toml(lang());
            notices.push(run::not_valid(lang(), &file.display().to_string(), &format, "Codex"));
            None
        }
        Err(error) => {
            notices.push(run::unreadable(lang(), &file.display().to_string(), &error.to_string()));
            None
        }
    }
}

/// The key that moves a provider of the user's own.
fn own_key(id: &str) -> Result<String, RunError> {
    if id.contains(['.', '=', '"', '\'']) || id.trim() != id || id.is_empty() {
        return Err(RunError::Immovable {
            client: "codex",
            why: run::codex_odd_name(lang(), &format!("{id:?}")),
            hint: run::codex_rename(lang()),
        });
    }
    Ok(format!("model_providers.{id}.base_url"))
}

/// A TOML string. Codex reads the value of `-c` as TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out += &format!("\\u{:04X}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// The arguments, looked through.
#[derive(Default)]
struct Given {
    /// The user's overrides of the keys that we override: they go in front of ours.
    first: Vec<OsString>,
    /// All else, as it came.
    rest: Vec<OsString>,
    /// The overrides in `first`, taken apart.
    overrides: Vec<(String, Value)>,
    profile: Option<String>,
    oss: bool,
    remote: bool,
}

impl Given {
    fn read(args: &[OsString]) -> Self {
        let mut given = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let text = arg.to_str().unwrap_or_default();
            if text == "--" {
                given.rest.push(arg.clone());
                given.rest.extend(args.cloned());
                break;
            }
            given.oss |= text == "--oss";
            given.remote |= text == "--remote" || text.starts_with("--remote=");
            let Some((flag, inside)) = flag(text) else {
                given.rest.push(arg.clone());
                continue;
            };
            let next = if inside.is_none() { args.next() } else { None };
            let value = inside.or_else(|| next?.to_str()).unwrap_or_default();
            let pair = if flag == Flag::Config { relevant(value) } else { None };
            if flag == Flag::Profile {
                given.profile = Some(value.to_owned());
            }
            let whole = std::iter::once(arg).chain(next).cloned();
            match pair {
                Some(pair) => {
                    given.overrides.push(pair);
                    given.first.extend(whole);
                }
                None => given.rest.extend(whole),
            }
        }
        given
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    Config,
    Profile,
}

/// `-c`, `-cVALUE`, `-c=VALUE`, `--config`, `--config=VALUE`, and the same for `-p` and `--profile`.
fn flag(arg: &str) -> Option<(Flag, Option<&str>)> {
    for (flag, short, long) in [(Flag::Config, "-c", "--config"), (Flag::Profile, "-p", "--profile")] {
        if arg == short || arg == long {
            return Some((flag, None));
        }
        if let Some(inside) = arg.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            return Some((flag, Some(inside)));
        }
        if let Some(inside) = arg.strip_prefix(short) {
            return Some((flag, Some(inside.strip_prefix('=').unwrap_or(inside))));
        }
    }
    None
}

/// An override of a key that says where requests go, as Codex reads it: what is no TOML is a string.
fn relevant(pair: &str) -> Option<(String, Value)> {
    let (key, value) = pair.split_once('=')?;
    let key = key.trim();
    let top = key.split('.').next().unwrap_or_default();
    if !matches!(top, "openai_base_url" | "model_provider" | "model_providers" | "profile") {
        return None;
    }
    let parsed =
        toml::from_str::<Table>(&format!("value = {value}")).ok().and_then(|mut all| all.remove("value"));
    let plain = || Value::String(value.trim().trim_matches(['"', '\'']).to_owned());
    Some((key.to_owned(), parsed.unwrap_or_else(plain)))
}

/// Where Codex sends its requests.
enum Provider {
    BuiltIn,
    Own(String),
    Elsewhere(String),
}

/// Where a setting stands.
#[derive(Clone)]
enum Place {
    File(PathBuf),
    CommandLine,
    Profile(String, Box<Self>),
}

impl Place {
    /// The words for a key that stands there.
    fn of(&self, key: &str) -> String {
        match self {
            Self::File(path) => run::in_place(lang(), key, &path.display().to_string()),
            Self::CommandLine => run::on_command_line(lang(), key),
            Self::Profile(name, place) => place.of(&run::of_profile(lang(), key, name)),
        }
    }
}

/// All layers that say where requests go, weakest first, each with where it stands.
struct Settings(Vec<(Place, Table)>);

impl Settings {
    fn gather(
        folder: Option<&Path>,
        given: &Given,
        around: Surroundings<'_>,
        notices: &mut Vec<String>,
    ) -> Self {
        let mut layers = Vec::new();
        let mut files = vec![PathBuf::from(SYSTEM_FILE)];
        files.retain(|_| cfg!(unix));
        files.extend(folder.map(|folder| folder.join("config.toml")));
        let profile = given.profile.as_ref().filter(|name| !name.contains(['/', '\\']));
        files.extend(folder.zip(profile).map(|(folder, name)| folder.join(format!("{name}.config.toml"))));
        for file in files {
            if let Some(table) = read(&file, around, notices) {
                layers.push((Place::File(file), table));
            }
        }
        let mut all = Self(layers);
        if let Some(legacy) = all.legacy_profile(given) {
            all.0.push(legacy);
        }
        let mut overrides = Table::new();
        for (key, value) in &given.overrides {
            set(&mut overrides, key, value.clone());
        }
        all.0.push((Place::CommandLine, overrides));
        all
    }

    /// A profile as Codex had them before they got files of their own: a table in config.toml.
    fn legacy_profile(&self, given: &Given) -> Option<(Place, Table)> {
        let chosen = given.overrides.iter().rev().find(|(key, _)| key == "profile").map(|(_, name)| name);
        let chosen = chosen.and_then(Value::as_str).map(str::to_owned);
        let name = given.profile.clone().or(chosen).or_else(|| Some(self.text(&["profile"])?.0))?;
        let (place, table) = self.find(&["profiles", &name])?;
        let place = Place::Profile(name, Box::new(place.clone()));
        Some((place, table.as_table()?.clone()))
    }

    /// The value that wins, and where it stands.
    fn find(&self, path: &[&str]) -> Option<(&Place, &Value)> {
        let (first, rest) = path.split_first()?;
        self.0.iter().rev().find_map(|(place, table)| {
            let value = rest.iter().try_fold(table.get(*first)?, |here, step| here.as_table()?.get(*step))?;
            Some((place, value))
        })
    }

    fn text(&self, path: &[&str]) -> Option<(String, Place)> {
        let (place, value) = self.find(path)?;
        Some((value.as_str()?.to_owned(), place.clone()))
    }

    fn provider(&self, given: &Given) -> Provider {
        if given.oss {
            return Provider::Elsewhere(run::codex_oss(lang()));
        }
        match self.text(&["model_provider"]) {
            None => Provider::BuiltIn,
            Some((id, _)) if id == BUILT_IN => Provider::BuiltIn,
            Some((id, _)) if self.find(&["model_providers", &id]).is_some() => Provider::Own(id),
            Some((id, _)) => Provider::Elsewhere(id),
        }
    }
}

/// Sets `a.b.c` as one `-c` does: what stood there, tables included, is gone.
fn set(table: &mut Table, key: &str, value: Value) {
    let Some((top, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let inner = table.entry(top).or_insert_with(|| Value::Table(Table::new()));
    if !inner.is_table() {
        *inner = Value::Table(Table::new());
    }
    if let Some(inner) = inner.as_table_mut() {
        set(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BASE, Machine, upstreams, variable};
    use super::*;

    const CONFIG: &str = "/home/u/.codex/config.toml";
    const SHORT: &str = "openai_base_url=\"http://127.0.0.1:4567/v1\"";
    const OURS: &str = "openai_base_url=\"http://127.0.0.1:4567/~000000000000000000000000000000ab/v1\"";

    fn codex(machine: &Machine, args: &[&str]) -> Plan {
        machine.plan(&[&["codex"], args].concat()).unwrap()
    }

    fn args(plan: &Plan) -> Vec<&str> {
        plan.args.iter().map(|arg| arg.to_str().unwrap()).collect()
    }

    fn upstream(plan: &Plan) -> Option<&str> {
        upstreams(plan).first().map(|(name, url)| {
            assert_eq!(*name, "codex");
            *url
        })
    }

    #[test]
    fn the_override_stands_right_behind_the_program() {
        for rest in
            [&[][..], &["exec", "--json", "hi"], &["-m", "gpt-x", "resume", "--last"], &["--", "-c", "x"]]
        {
            let plan = codex(&Machine::new(), rest);
            assert_eq!(args(&plan), [&["-c", OURS], rest].concat());
            assert_eq!((upstream(&plan), plan.notices.len()), (None, 0));
            assert_eq!(variable(&plan, "OPENAI_BASE_URL"), None);
        }
    }

    #[test]
    fn its_title_is_its_own_where_it_has_a_screen() {
        let plan = |line: &[&str]| Machine::new().plan(line).unwrap().has_title();
        assert!(plan(&["codex"]) && plan(&["codex", "fix it"]) && plan(&["codex", "resume", "--last"]));
        assert!(!plan(&["codex", "exec", "fix it"]) && !plan(&["codex", "-m", "x", "e", "fix it"]));
        assert!(!plan(&["codex", "review"]) && !plan(&["claude"]));
    }

    #[test]
    fn settings_of_the_user_become_the_upstream() {
        let provider =
            "model_provider = 'x'\n[model_providers.x]\nbase_url = 'https://gw.example/openai/v1'\n";
        let plain = "model_provider = 'x'\n[model_providers.x]\nbase_url = 'http://10.0.0.5:4000/gateway/'\n";
        let nameless = "model_provider = 'x'\n[model_providers.x]\nname = 'X'\n";
        let legacy = "profile = 'p'\nmodel_provider = 'x'\n[profiles.p]\nmodel_provider = 'y'\n\
                      [model_providers.x]\nbase_url = 'https://x'\n[model_providers.y]\nbase_url = 'https://y/v4'\n";
        let x = "model_providers.x.base_url";
        let rows: [(&str, &[&str], String, Option<&str>); 13] = [
            ("model = 'gpt-x'", &[], SHORT.to_owned(), None),
            ("openai_base_url = 'https://o.example/v1'", &[], SHORT.to_owned(), Some("https://o.example/v1")),
            (
                "openai_base_url = 'https://o.example/codex'",
                &[],
                "openai_base_url=\"http://127.0.0.1:4567\"".to_owned(),
                Some("https://o.example/codex"),
            ),
            (
                provider,
                &[],
                format!("{x}=\"http://127.0.0.1:4567/v1\""),
                Some("https://gw.example/openai/v1"),
            ),
            (plain, &[], format!("{x}=\"http://127.0.0.1:4567\""), Some("http://10.0.0.5:4000/gateway")),
            (nameless, &[], format!("{x}=\"http://127.0.0.1:4567/v1\""), None),
            (
                legacy,
                &[],
                "model_providers.y.base_url=\"http://127.0.0.1:4567/v4\"".to_owned(),
                Some("https://y/v4"),
            ),
            (provider, &["-c", "model_provider=openai"], SHORT.to_owned(), None),
            (
                provider,
                &["-c", "model_provider=\"openai\"", "exec", "-copenai_base_url=https://c/v1"],
                SHORT.to_owned(),
                Some("https://c/v1"),
            ),
            (
                provider,
                &["exec", "--config", "model_providers.x={base_url=\"https://c/v2\"}", "hi"],
                format!("{x}=\"http://127.0.0.1:4567/v2\""),
                Some("https://c/v2"),
            ),
            (
                "",
                &["--config=openai_base_url='https://one/v1'", "-c=openai_base_url=https://two/v3"],
                "openai_base_url=\"http://127.0.0.1:4567/v3\"".to_owned(),
                Some("https://two/v3"),
            ),
            (
                provider,
                &["-c", "model_providers.x.base_url=https://c/v2", "-c", "model_providers.x={name='x'}"],
                format!("{x}=\"http://127.0.0.1:4567/v1\""),
                Some("https://gw.example/openai/v1"),
            ),
            ("", &["-c", "model_reasoning_effort=high"], SHORT.to_owned(), None),
        ];
        for (config, given, ours, there) in rows {
            let plan = codex(&Machine::new().file(CONFIG, config), given);
            let args = args(&plan);
            let base = format!("{BASE}{}", if there.is_some() { "/to/codex" } else { "" });
            let ours = ours.replace("http://127.0.0.1:4567", &base);
            let at = args.iter().position(|arg| *arg == ours).unwrap_or_else(|| panic!("{config}: {args:?}"));
            assert_eq!(args[at - 1], "-c");
            assert_eq!(upstream(&plan), there, "{config}");
            assert_eq!(args.len(), given.len() + 2);
            let loses = |arg: &str| arg.contains("base_url");
            assert!(!args[at + 1..].iter().any(|arg| loses(arg)), "something later wins: {args:?}");
        }
    }

    #[test]
    fn the_users_other_arguments_keep_their_order() {
        let given = ["-c", "a=1", "exec", "-c", "openai_base_url=https://c/v1", "-p", "x", "-c", "b=2", "hi"];
        let plan = codex(&Machine::new(), &given);
        let ours = OURS.replace("/v1", "/to/codex/v1");
        let expected = ["-c", given[4], "-c", &ours, "-c", "a=1", "exec", "-p", "x", "-c", "b=2", "hi"];
        assert_eq!(args(&plan), expected);
    }

    #[test]
    fn the_final_path_is_the_one_codex_would_have_used() {
        for (old, path) in [
            ("https://gw.example/openai/v1", "/openai/v1/responses"),
            ("https://gw.example/codex", "/codex/responses"),
            ("https://gw.example", "/responses"),
            ("https://gw.example/backend-api/codex", "/backend-api/codex/responses"),
            ("https://gw.example/v1/acc/openai", "/v1/acc/openai/responses"),
            ("https://gw.example/v1beta", "/v1beta/responses"),
        ] {
            let plan = codex(&Machine::new().file(CONFIG, &format!("openai_base_url = '{old}'")), &[]);
            let base = args(&plan)[1].split('"').nth(1).unwrap().to_owned();
            let client = format!("{}/responses", base.strip_prefix(&format!("{BASE}/to/codex")).unwrap());
            let upstream =
                std::sync::Arc::new(crate::sessions::forwarding(upstream(&plan).unwrap()).unwrap());
            let ask = crate::target::Ask {
                method: &http::Method::POST,
                path_and_query: &client,
                verdict: &crate::credential::Verdict::None,
            };
            let target = crate::target::to(&upstream, ask).unwrap();
            assert_eq!(target.path_and_query, path, "{old}");
        }
    }

    #[test]
    fn files_are_found_and_layered() {
        let elsewhere = Machine::new()
            .env("CODEX_HOME", "/srv/codex")
            .file(CONFIG, "openai_base_url = 'https://no/v1'")
            .file("/srv/codex/config.toml", "openai_base_url = 'https://yes/v1'")
            .file("/srv/codex/p.config.toml", "openai_base_url = 'https://profile/v1'");
        assert_eq!(upstream(&codex(&elsewhere, &[])), Some("https://yes/v1"));
        for profile in [&["-p", "p"][..], &["exec", "--profile", "p"], &["--profile=p"], &["-pp"]] {
            assert_eq!(upstream(&codex(&elsewhere, profile)), Some("https://profile/v1"));
        }
        let overridden = codex(&elsewhere, &["-p", "p", "-c", "openai_base_url=https://c/v1"]);
        assert_eq!(upstream(&overridden), Some("https://c/v1"));
        if cfg!(unix) {
            let system = Machine::new().file(SYSTEM_FILE, "openai_base_url = 'https://system/v1'");
            assert_eq!(upstream(&codex(&system, &[])), Some("https://system/v1"));
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_to_codex_with_a_notice() {
        for (text, notice) in [("model = ", "is not valid TOML"), ("<unreadable>", "cannot be read")] {
            let plan = codex(&Machine::new().file(CONFIG, text), &[]);
            assert_eq!(args(&plan), ["-c", OURS]);
            assert!(plan.notices[0].contains(notice), "{:?}", plan.notices);
        }
    }

    #[test]
    fn the_relay_is_no_upstream_of_itself() {
        for url in ["http://127.0.0.1:4567/v1", "http://localhost:4567"] {
            let machine = Machine::new().file(CONFIG, &format!("openai_base_url = '{url}'"));
            let error = machine.plan(&["codex"]).unwrap_err();
            assert!(matches!(error, RunError::Itself { .. }), "{error}");
        }
        let other = Machine::new().file(CONFIG, "openai_base_url = 'http://127.0.0.1:4568/v1'");
        assert!(other.plan(&["codex"]).is_ok());
        let broken = Machine::new().file(CONFIG, "openai_base_url = 'gw.example/v1'");
        assert!(matches!(broken.plan(&["codex"]), Err(RunError::Url { .. })));
        let secret = Machine::new().file(CONFIG, "openai_base_url = 'https://me:hush@gw.example/v1'");
        let error = secret.plan(&["codex"]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }

    #[test]
    fn a_managed_file_wins_over_a_session() {
        let file = codex_managed(SYSTEM, Path::new("/home/u/.codex"));
        let file = file.to_str().unwrap();
        for text in ["openai_base_url = 'https://corp/v1'", "model_provider = 'corp'"] {
            let error = Machine::new().file(file, text).plan(&["codex"]).unwrap_err();
            assert!(matches!(error, RunError::Immovable { .. }), "{error}");
            assert!(error.to_string().contains(file), "{error}");
        }
        let harmless = codex(&Machine::new().file(file, "approval_policy = 'never'"), &[]);
        assert_eq!((args(&harmless), harmless.notices.len()), (vec!["-c", OURS], 0));
    }

    #[test]
    fn what_cannot_be_moved_is_said() {
        let dotted = "model_provider = 'a.b'\n[model_providers.'a.b']\nbase_url = 'https://x/v1'";
        let error = Machine::new().file(CONFIG, dotted).plan(&["codex"]).unwrap_err();
        assert!(matches!(error, RunError::Immovable { .. }), "{error}");
        for given in [&["--oss"][..], &["-c", "model_provider=ollama"]] {
            let plan = codex(&Machine::new(), given);
            assert_eq!(args(&plan), given);
            assert!(plan.notices[0].contains("around the relay"));
        }
        assert!(codex(&Machine::new(), &["--remote", "ws://x"]).notices[0].contains("--remote"));
    }

    #[test]
    fn values_are_quoted_as_toml() {
        for text in ["http://127.0.0.1:1/v1", "a\"b\\c", "tab\there", "\u{7f}"] {
            let table: Table = format!("x = {}", quoted(text)).parse().unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }
}
