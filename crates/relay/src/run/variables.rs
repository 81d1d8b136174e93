//! Moving any program by the variables that SDKs read.
//!
//! Those of one family are read by different programs, or by one of them in a certain order (of LiteLLM 1.81: measured),
//! so none is left that would lead elsewhere: a variable that the user has not set inherits the address of its family.
//! What only some programs know is set only where the user has set it, and so is `OLLAMA_HOST`: a request to Ollama
//! carries no credential, so nothing but the user's own address says where it goes.

use super::{Own, Plan, RelayAddr, RunError, Surroundings};
use crate::words::{lang, run};

/// A variable that holds a base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    /// Another one, whose address holds where this is not set.
    like: Option<&'static str>,
    /// What a client expects behind the address of the service; `None`: without an address of the user's own the
    /// variable stays as it is.
    version: Option<&'static str>,
}

const fn variable(name: &'static str, like: Option<&'static str>, version: Option<&'static str>) -> Variable {
    Variable { name, like, version }
}

const OPENAI: [Variable; 2] = [
    variable("OPENAI_BASE_URL", Some("OPENAI_API_BASE"), Some("/v1")),
    variable("OPENAI_API_BASE", Some("OPENAI_BASE_URL"), Some("/v1")),
];
const ANTHROPIC: Variable = variable("ANTHROPIC_BASE_URL", Some("ANTHROPIC_API_BASE"), Some(""));
const OLLAMA: &str = "OLLAMA_HOST";

/// Those of the SDKs of OpenAI, Anthropic, Google and Ollama, and of LiteLLM.
pub(super) const OF_SDKS: [Variable; 8] = [
    OPENAI[0],
    OPENAI[1],
    ANTHROPIC,
    variable("ANTHROPIC_API_BASE", None, None),
    variable("GOOGLE_GEMINI_BASE_URL", None, Some("")),
    variable("GEMINI_API_BASE", None, None),
    variable(OLLAMA, None, None),
    variable("OLLAMA_API_BASE", None, None),
];

/// Those of LiteLLM alone, which has no other address for Anthropic and Gemini to fall back on.
pub(super) const OF_LITELLM: [Variable; 6] = [
    OPENAI[0],
    OPENAI[1],
    ANTHROPIC,
    variable("ANTHROPIC_API_BASE", Some("ANTHROPIC_BASE_URL"), Some("")),
    variable("GEMINI_API_BASE", None, Some("/v1beta")),
    variable("OLLAMA_API_BASE", None, None),
];

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    for (name, value) in values(plan, &OF_SDKS, relay, &|name| of_environment(around, name))? {
        plan.set(name, &value);
    }
    Ok(())
}

/// The address that the environment holds.
pub(super) fn of_environment(around: Surroundings<'_>, name: &str) -> Option<Own> {
    let url = around.variable(name)?;
    Some(Own { url, origin: run::in_environment(lang(), name) })
}

/// What each of these variables is to be, with the user's own address for each as `own` finds it.
pub(super) fn values(
    plan: &mut Plan,
    variables: &[Variable],
    relay: RelayAddr,
    own: &dyn Fn(&str) -> Option<Own>,
) -> Result<Vec<(&'static str, String)>, RunError> {
    let mut values = Vec::new();
    for Variable { name, like, version } in variables.iter().copied() {
        let (from, found) = match (own(name), like) {
            (Some(found), _) => (name, Some(found)),
            (None, Some(like)) => (like, own(like)),
            (None, None) => (name, None),
        };
        let value = match (found, version) {
            (Some(mut own), _) if !relay.has_upstream => {
                if from == OLLAMA {
                    own.url = ollama_url(&own.url);
                }
                plan.stand_in(&from.to_ascii_lowercase(), &own, relay)?
            }
            (Some(own), version) => {
                plan.passes_over(&own);
                format!("{}{}", relay.base(), version.unwrap_or_default())
            }
            (None, Some(version)) => format!("{}{version}", relay.base()),
            (None, None) => continue,
        };
        values.push((name, value));
    }
    Ok(values)
}

/// The URL that an Ollama client makes of a host: scheme and port may be missing, and every address of a server is
/// reached on this machine.
fn ollama_url(host: &str) -> String {
    let host = host.trim();
    let (scheme, rest) = host.split_once("://").unwrap_or(("", host));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let name_end = authority.rfind(']').map_or(0, |end| end + 1);
    let (name, port) = match authority.get(name_end..).unwrap_or_default().rfind(':') {
        Some(colon) => authority.split_at(name_end + colon),
        None => (authority, if scheme.is_empty() { ":11434" } else { "" }),
    };
    let name = if matches!(name, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { name };
    let scheme = if scheme.is_empty() { "http" } else { scheme };
    format!("{scheme}://{name}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BASE, Machine, RELAY, upstreams, variable};
    use super::*;

    fn python(machine: &Machine) -> Plan {
        machine.plan(&["python", "job.py"]).unwrap()
    }

    #[test]
    fn without_addresses_of_its_own_a_program_is_told_the_relays() {
        let plan = python(&Machine::new());
        let v1 = format!("{BASE}/v1");
        for (name, value) in [
            ("OPENAI_BASE_URL", Some(&*v1)),
            ("OPENAI_API_BASE", Some(&*v1)),
            ("ANTHROPIC_BASE_URL", Some(BASE)),
            ("ANTHROPIC_API_BASE", None),
            ("GOOGLE_GEMINI_BASE_URL", Some(BASE)),
            ("GEMINI_API_BASE", None),
            ("OLLAMA_HOST", None),
            ("OLLAMA_API_BASE", None),
        ] {
            assert_eq!(super::super::tests::variable(&plan, name), value, "{name}");
        }
        assert_eq!((upstreams(&plan), plan.notices.len(), plan.args.len()), (vec![], 0, 1));
    }

    #[test]
    fn each_variable_has_its_own_upstream() {
        let machine = Machine::new()
            .env("OPENAI_BASE_URL", "https://one.example/openai/v1")
            .env("ANTHROPIC_BASE_URL", "https://two.example")
            .env("OLLAMA_HOST", "10.0.0.9");
        let plan = python(&machine);
        let to = |name: &str, rest: &str| Some(format!("{BASE}/to/{name}{rest}"));
        let value = |name| variable(&plan, name).map(str::to_owned);
        assert_eq!(value("OPENAI_BASE_URL"), to("openai_base_url", "/v1"));
        assert_eq!(value("OPENAI_API_BASE"), to("openai_base_url", "/v1"), "it inherits the address");
        assert_eq!(value("ANTHROPIC_BASE_URL"), to("anthropic_base_url", ""));
        assert_eq!(value("GOOGLE_GEMINI_BASE_URL").as_deref(), Some(BASE));
        assert_eq!(value("OLLAMA_HOST"), to("ollama_host", ""));
        let all = [
            ("openai_base_url", "https://one.example/openai/v1"),
            ("anthropic_base_url", "https://two.example"),
            ("ollama_host", "http://10.0.0.9:11434"),
        ];
        assert_eq!(upstreams(&plan), all);
        assert_eq!(plan.notices.len(), 3, "{:?}", plan.notices);
        // Two of one family may differ.
        let both = machine.env("OPENAI_API_BASE", "https://three.example/v1");
        assert_eq!(upstreams(&python(&both)).len(), 4);
    }

    #[test]
    fn the_relays_own_upstream_comes_first() {
        let machine = Machine::new().env("OPENAI_BASE_URL", "https://one.example/v4").env("OLLAMA_HOST", "x");
        let relay = RelayAddr { has_upstream: true, ..RELAY };
        let plan = machine.plan_for(relay, &["python"]).unwrap();
        assert_eq!(variable(&plan, "OPENAI_BASE_URL"), Some(&*format!("{BASE}/v1")));
        assert_eq!(variable(&plan, "OLLAMA_HOST"), Some(BASE));
        assert_eq!(upstreams(&plan), []);
        assert!(
            plan.notices.iter().any(|told| told.contains("the relay's own `upstream`")),
            "{:?}",
            plan.notices
        );
    }

    #[test]
    fn what_may_be_a_secret_in_an_address_is_not_said() {
        let nested = Machine::new().env("OPENAI_BASE_URL", "http://relay.lan:8787/~0123456789abcdef/v1");
        let plan = nested.plan(&["sh"]).unwrap();
        assert!(plan.notices.iter().all(|told| !told.contains("0123456789abcdef")), "{:?}", plan.notices);
        let itself = Machine::new().env("OPENAI_BASE_URL", "http://127.0.0.1:4567/~0123456789abcdef/v1");
        let told = itself.plan(&["sh"]).unwrap_err().to_string();
        assert!(told.contains("/~") && !told.contains("0123456789abcdef"), "{told}");
    }

    #[test]
    fn an_address_that_is_the_relay_or_none_is_refused() {
        let itself = Machine::new().env("ANTHROPIC_BASE_URL", "http://localhost:4567");
        assert!(matches!(itself.plan(&["sh"]), Err(RunError::Itself { .. })));
        let odd = Machine::new().env("OPENAI_API_BASE", "gw.example");
        let error = odd.plan(&["sh"]).unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_BASE in the environment"), "{error}");
    }

    #[test]
    fn hosts_are_read_as_ollama_reads_them() {
        for (host, url) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("gpu.lan", "http://gpu.lan:11434"),
            (":99", "http://127.0.0.1:99"),
            ("http://gpu.lan", "http://gpu.lan"),
            ("https://gpu.lan/ollama", "https://gpu.lan/ollama"),
            ("[::1]:5", "http://[::1]:5"),
            ("[fe80::1]", "http://[fe80::1]:11434"),
        ] {
            assert_eq!(ollama_url(host), url, "{host}");
        }
    }
}
