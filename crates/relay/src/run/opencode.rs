//! Moving opencode: `OPENCODE_CONFIG_CONTENT`, in which each provider has a `baseURL`.
//!
//! Measured with 1.18.33: the variable is merged over every settings file; of files the nearest wins, one in a
//! `.opencode` folder over one beside it, and those of a project over `OPENCODE_CONFIG` and over the user's. Paths are
//! appended to `baseURL` without a version. `GOOGLE_GEMINI_BASE_URL` is not read. A ChatGPT login goes to chatgpt.com,
//! whatever the provider's address is. Providers that are given no address by anybody, and are not of a service
//! that the relay knows, stay where they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::files::{jsonc, parsed_jsonc};
use super::{Own, Plan, RelayAddr, RunError, Surroundings, variables};
use crate::words;

const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// The providers of services that a request reaches by its credential, what each appends its paths to, and the
/// variable that its SDK reads.
const KNOWN: [(&str, &str, Option<&str>); 3] = [
    ("openai", "/v1", Some("OPENAI_BASE_URL")),
    ("anthropic", "/v1", Some("ANTHROPIC_BASE_URL")),
    ("google", "/v1beta", None),
];

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    let mut content = match around.variable(CONTENT).map(|text| (parsed_jsonc(&text), text)) {
        Some((Some(Value::Object(content)), _)) => content,
        Some(_) => {
            return Err(RunError::Immovable {
                client: "opencode",
                why: words::run::not_json(words::lang(), CONTENT),
                hint: words::run::mend_or_unset(words::lang(), CONTENT),
            });
        }
        None => Map::new(),
    };
    let mut all = own_addresses(around, &content, &mut plan.notices);
    for (provider, _, variable) in KNOWN {
        let by_variable = variable.and_then(|name| variables::of_environment(around, name));
        if let Some(own) = by_variable {
            all.entry(provider.to_owned()).or_insert(own);
        }
    }
    if logged_in_to_chatgpt(around, &mut plan.notices) {
        plan.notices.push(words::run::opencode_chatgpt(words::lang()));
    }
    for (provider, version, _) in KNOWN {
        if relay.has_upstream || !all.contains_key(provider) {
            set(&mut content, provider, format!("{}{version}", relay.base()));
        }
    }
    for (at, (provider, own)) in all.iter().enumerate() {
        if relay.has_upstream {
            plan.passes_over(own);
        }
        let is_known = KNOWN.iter().any(|(known, ..)| known == provider);
        let base = match (relay.has_upstream, is_known) {
            (false, _) => plan.stand_in(&path_name(provider, at), own, relay)?,
            (true, true) => continue,
            (true, false) => format!("{}/v1", relay.base()),
        };
        set(&mut content, provider, base);
    }
    plan.set(CONTENT, &Value::Object(content).to_string());
    Ok(())
}

/// What paths call a provider: its name may hold what no path can.
fn path_name(provider: &str, at: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if provider.len() <= 40 && provider.chars().all(is_plain) && !provider.is_empty() {
        provider.to_owned()
    } else {
        format!("provider_{at}")
    }
}

fn set(content: &mut Map<String, Value>, provider: &str, base: String) {
    let mut here = content;
    for step in ["provider", provider, "options"] {
        let entry = here.entry(step).or_insert_with(|| json!({}));
        if !entry.is_object() {
            *entry = json!({});
        }
        let Some(next) = entry.as_object_mut() else { return };
        here = next;
    }
    here.insert("baseURL".to_owned(), Value::String(base));
}

/// The address of each provider that has one, by the strongest of the settings.
fn own_addresses(
    around: Surroundings<'_>,
    content: &Map<String, Value>,
    notices: &mut Vec<String>,
) -> BTreeMap<String, Own> {
    let mut all = BTreeMap::new();
    let mut take = |settings: &Value, place: &str| {
        let providers = settings.get("provider").and_then(Value::as_object);
        for (provider, entry) in providers.into_iter().flatten() {
            let url = entry.pointer("/options/baseURL").and_then(Value::as_str);
            if let Some(url) = url.and_then(|url| with_variables(url, around)) {
                let key = format!("provider.{provider}.options.baseURL");
                let origin = words::run::in_place(words::lang(), &key, place);
                all.insert(provider.clone(), Own { url, origin });
            }
        }
    };
    for file in files(around) {
        if let Some(settings) = jsonc(around, &file, notices) {
            take(&settings, &file.display().to_string());
        }
    }
    take(&Value::Object(content.clone()), CONTENT);
    all
}

/// Its settings files, weakest first.
fn files(around: Surroundings<'_>) -> Vec<PathBuf> {
    let user = around
        .variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| around.home().map(|home| home.join(".config")));
    let user = user.map(|folder| folder.join("opencode"));
    let mut files: Vec<PathBuf> = ["config.json", "opencode.json", "opencode.jsonc"]
        .iter()
        .filter_map(|name| Some(user.as_ref()?.join(name)))
        .collect();
    files.extend(around.variable("OPENCODE_CONFIG").map(PathBuf::from));
    let mut projects: Vec<PathBuf> = around.folder.ancestors().map(PathBuf::from).collect();
    projects.reverse();
    for folder in ["", ".opencode"] {
        for project in &projects {
            files.extend(["opencode.json", "opencode.jsonc"].map(|name| project.join(folder).join(name)));
        }
    }
    files
}

/// An address with `{env:NAME}` put in. `None` where it takes more than the environment to know it.
fn with_variables(url: &str, around: Surroundings<'_>) -> Option<String> {
    let mut whole = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once("{env:") {
        let (name, behind) = after.split_once('}')?;
        whole.push_str(before);
        whole.push_str(&around.variable(name.trim()).unwrap_or_default());
        rest = behind;
    }
    whole.push_str(rest);
    (!whole.is_empty() && !whole.contains("{file:")).then_some(whole)
}

/// Whether its login for OpenAI is that of ChatGPT. Nothing else of the file is looked at.
fn logged_in_to_chatgpt(around: Surroundings<'_>, notices: &mut Vec<String>) -> bool {
    let data = around
        .variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| around.home().map(|home| home.join(".local/share")));
    let logins = data.and_then(|data| jsonc(around, &data.join("opencode/auth.json"), notices));
    logins.is_some_and(|logins| logins.pointer("/openai/type").and_then(Value::as_str) == Some("oauth"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BASE, Machine, RELAY, upstreams, variable};
    use super::*;

    const USER: &str = "/home/u/.config/opencode/opencode.jsonc";

    fn content(plan: &Plan) -> Value {
        serde_json::from_str(variable(plan, CONTENT).unwrap()).unwrap()
    }

    fn base(plan: &Plan, provider: &str) -> Option<String> {
        let base =
            content(plan).pointer(&format!("/provider/{provider}/options/baseURL"))?.as_str()?.to_owned();
        Some(base.replace(BASE, "~"))
    }

    fn opencode(machine: &Machine) -> Plan {
        machine.plan(&["opencode", "run", "hi"]).unwrap()
    }

    #[test]
    fn the_services_that_are_known_are_moved() {
        let plan = opencode(&Machine::new());
        for (provider, at) in [("openai", "~/v1"), ("anthropic", "~/v1"), ("google", "~/v1beta")] {
            assert_eq!(base(&plan, provider).as_deref(), Some(at), "{provider}");
        }
        assert_eq!((upstreams(&plan), plan.notices.len(), plan.args.len()), (vec![], 0, 2));
    }

    #[test]
    fn addresses_of_the_users_own_are_the_upstreams() {
        let machine = Machine::new()
            .env("GATEWAY", "https://gw.example/v1")
            .env("OPENAI_BASE_URL", "https://no.example/v1")
            .file(
                USER,
                "{ // mine\n\"provider\":{\"a b\":{\"options\":{\"baseURL\":\"{env:GATEWAY}\"}},\n\
                   \"openai\":{\"options\":{\"baseURL\":\"https://user\"}},},}",
            )
            .file(
                "/project/opencode.json",
                r#"{"provider":{"openai":{"options":{"baseURL":"https://o/v4"}}}}"#,
            );
        let plan = opencode(&machine);
        assert_eq!(upstreams(&plan), [("provider_0", "https://gw.example/v1"), ("openai", "https://o/v4")]);
        assert_eq!(base(&plan, "a b").as_deref(), Some("~/to/provider_0/v1"));
        assert_eq!(base(&plan, "openai").as_deref(), Some("~/to/openai/v4"));
        assert_eq!(base(&plan, "anthropic").as_deref(), Some("~/v1"));
        assert!(plan.notices[0].contains("opencode.jsonc"), "{:?}", plan.notices);
        let relay = RelayAddr { has_upstream: true, ..RELAY };
        let plan = machine.plan_for(relay, &["opencode"]).unwrap();
        assert_eq!((base(&plan, "openai").as_deref(), upstreams(&plan)), (Some("~/v1"), vec![]));
        assert_eq!(base(&plan, "a b").as_deref(), Some("~/v1"));
        assert!(
            plan.notices.iter().any(|told| told.contains("the relay's own `upstream`")),
            "{:?}",
            plan.notices
        );
        // Braces in a text nest nothing.
        let prompt = format!(
            r#"{{"x":"{}","provider":{{"openai":{{"options":{{"baseURL":"https://o/v4"}}}}}}}}"#,
            "{".repeat(120)
        );
        let plan = opencode(&Machine::new().file("/project/opencode.json", &prompt));
        assert_eq!((upstreams(&plan), plan.notices.len()), (vec![("openai", "https://o/v4")], 1));
        let shell = Machine::new().env("ANTHROPIC_BASE_URL", "https://two.example/v1");
        assert_eq!(upstreams(&opencode(&shell)), [("anthropic", "https://two.example/v1")]);
    }

    #[test]
    fn the_strongest_file_wins() {
        let at = |url: &str| format!(r#"{{"provider":{{"x":{{"options":{{"baseURL":"https://{url}"}}}}}}}}"#);
        let mut machine = Machine::new().env("OPENCODE_CONFIG", "/srv/own.json");
        for (file, host) in [
            ("/home/u/.config/opencode/config.json", "config"),
            ("/home/u/.config/opencode/opencode.json", "user"),
            ("/srv/own.json", "named"),
            ("/opencode.json", "above"),
            ("/project/opencode.json", "project"),
            ("/project/.opencode/opencode.json", "dotted"),
        ] {
            machine = machine.file(file, &at(host));
            assert_eq!(upstreams(&opencode(&machine)), [("x", &*format!("https://{host}"))], "{file}");
        }
        let inline = machine.env(CONTENT, &at("inline"));
        assert_eq!(upstreams(&opencode(&inline)), [("x", "https://inline")]);
    }

    #[test]
    fn what_the_variable_holds_already_is_kept() {
        let machine =
            Machine::new().env(CONTENT, r#"{"model":"a/b","provider":{"openai":{"name":"N","options":7}}}"#);
        let content = content(&opencode(&machine));
        assert_eq!(content["model"], "a/b");
        assert_eq!(content["provider"]["openai"]["name"], "N");
        let odd = Machine::new().env(CONTENT, "[]").plan(&["opencode"]).unwrap_err();
        assert!(odd.to_string().contains(CONTENT), "{odd}");
    }

    #[test]
    fn a_chatgpt_login_is_named_and_not_shown() {
        let logins = r#"{"openai":{"type":"oauth","access":"hush"}}"#;
        let plan = opencode(&Machine::new().file("/home/u/.local/share/opencode/auth.json", logins));
        assert!(plan.notices[0].contains("chatgpt.com"), "{:?}", plan.notices);
        assert!(!format!("{plan:?}").contains("hush"));
        let key = r#"{"openai":{"type":"api","key":"hush"}}"#;
        let plan = opencode(&Machine::new().file("/home/u/.local/share/opencode/auth.json", key));
        assert_eq!(plan.notices.len(), 0);
    }
}
