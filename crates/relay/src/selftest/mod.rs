//! `steady-relay selftest`: one small request through a relay in this process, and how long each part of it took.
//! Without an upstream a pretend service is asked, in this process too; with one, the real one.
//!
//! Here is what is asked ([`plan`]), [`measure`] carries it out, [`report`] tells of it.

pub mod measure;
pub mod report;

use bytes::Bytes;
use clap::Args;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{HeaderName, Method};
use serde_json::{Value, json};

use crate::credential::{self, Verdict, judge};
use crate::headers::OUR_NAME;
use crate::key_variables;
use crate::send::request::{Data, Request};
use crate::target::Upstream;

/// What the self-test is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct Options {
    /// Ask this model for a few words, with --upstream
    ///
    /// That may cost a fraction of a cent. Without it the list of models is asked for, which costs nothing.
    #[arg(long, value_name = "NAME", requires = "upstream")]
    pub model: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What is asked of a service.
#[derive(Debug)]
pub struct Plan {
    /// The request.
    pub request: Request,
    /// It carries a key, of its own or of the settings.
    pub has_key: bool,
    /// The service may ask money for it.
    pub costs: bool,
}

/// What is asked of this upstream: the model, or else the list of models. A key of the environment is used where the
/// upstream is the one that issued it, and nowhere else.
#[must_use]
pub fn plan(upstream: &Upstream, model: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> Plan {
    let (method, path, body) = match model {
        None => (Method::GET, "/v1/models".to_owned(), None),
        Some(model) => {
            let (path, body) = generation(&upstream.name, model);
            (Method::POST, path, Some(body))
        }
    };
    let mut headers = HeaderMap::new();
    headers.extend([(USER_AGENT, OUR_NAME.clone()), (ACCEPT, HeaderValue::from_static("*/*"))]);
    if upstream.name == "anthropic" {
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    }
    if upstream.lends_nothing() {
        add_key(&upstream.name, &path, variable, &mut headers);
    }
    let has_key = !upstream.lends_nothing() || judge(&headers, &path) != Verdict::None;
    let data = match body {
        None => Data::None,
        Some(body) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Data::Bytes(Bytes::from(body.to_string()))
        }
    };
    let request = Request { method, path_and_query: path, upstream: None, headers, data };
    Plan { request, has_key, costs: model.is_some() }
}

/// A few words of a model, in the protocol of this upstream.
fn generation(upstream: &str, model: &str) -> (String, Value) {
    const WORDS: &str = "Say hello.";
    match upstream {
        "openai" | "chatgpt" => {
            let body = json!({"model": model, "input": WORDS, "max_output_tokens": 16, "stream": true, "store": false});
            ("/v1/responses".to_owned(), body)
        }
        "anthropic" => {
            let messages = json!([{"role": "user", "content": WORDS}]);
            let body = json!({"model": model, "max_tokens": 16, "stream": true, "messages": messages});
            ("/v1/messages".to_owned(), body)
        }
        "gemini" => {
            let name: String =
                model.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).collect();
            let body = json!({"contents": [{"role": "user", "parts": [{"text": WORDS}]}],
                              "generationConfig": {"maxOutputTokens": 16}});
            (format!("/v1beta/models/{name}:streamGenerateContent?alt=sse"), body)
        }
        _ => {
            let messages = json!([{"role": "user", "content": WORDS}]);
            let body = json!({"model": model, "max_tokens": 16, "stream": true, "messages": messages});
            ("/v1/chat/completions".to_owned(), body)
        }
    }
}

fn add_key(upstream: &str, path: &str, variable: &dyn Fn(&str) -> Option<String>, headers: &mut HeaderMap) {
    let keys = key_variables::of_upstream(upstream).filter(|key| key.is_api_key);
    for key in keys.filter_map(|key| variable(key.name)) {
        let mut with_key = headers.clone();
        credential::lend(key.trim(), &mut with_key, path);
        let is_theirs =
            matches!(judge(&with_key, path), Verdict::One(issuer) if issuer.upstream() == upstream);
        if is_theirs {
            *headers = with_key;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(name: &str, url: &str, model: Option<&str>, keys: &[(&str, &str)]) -> Plan {
        let variable =
            |name: &str| keys.iter().find(|(known, _)| *known == name).map(|(_, key)| (*key).to_owned());
        plan(&Upstream::parse(name, url).unwrap(), model, &variable)
    }

    #[test]
    fn a_key_goes_to_the_house_that_issued_it_and_to_no_other() {
        let key = ("OPENAI_API_KEY", "sk-proj-abc");
        let openai = planned("openai", "https://api.openai.com/v1", None, &[key]);
        assert!(openai.has_key && openai.request.headers["authorization"] == "Bearer sk-proj-abc");
        for (name, url) in [("gw", "https://gw.example"), ("anthropic", "https://api.anthropic.com")] {
            let plan = planned(name, url, None, &[key, ("ANTHROPIC_API_KEY", "sk-proj-abc")]);
            assert!(!plan.has_key && !plan.request.headers.contains_key("authorization"), "{name}");
        }
        // The token of a sign-in is the client's alone.
        let token = ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-abc");
        assert!(!planned("anthropic", "https://api.anthropic.com", None, &[token]).has_key);
        let google = planned("gemini", "https://g.example", None, &[("GOOGLE_API_KEY", "AIzaX")]);
        assert_eq!(google.request.headers["x-goog-api-key"], "AIzaX");
    }

    #[test]
    fn the_list_costs_nothing_and_a_model_is_asked_in_its_own_protocol() {
        let list = planned("openai", "https://api.openai.com/v1", None, &[]);
        assert_eq!(
            (list.request.method, list.request.path_and_query.as_str(), list.costs),
            (Method::GET, "/v1/models", false)
        );
        for (name, path) in [
            ("openai", "/v1/responses"),
            ("anthropic", "/v1/messages"),
            ("gemini", "/v1beta/models/m-1:streamGenerateContent?alt=sse"),
            ("gw", "/v1/chat/completions"),
        ] {
            let plan = planned(name, "https://up.example", Some("m-1"), &[]);
            assert!(plan.costs && plan.request.path_and_query == path, "{name}");
            assert!(path.parse::<http::Uri>().is_ok());
        }
        // What no path can hold is left out of one.
        let odd = planned("gemini", "https://up.example", Some("a/../ b?"), &[]).request.path_and_query;
        assert_eq!(odd, "/v1beta/models/a..b:streamGenerateContent?alt=sse");
    }
}
