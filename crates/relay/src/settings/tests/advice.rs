//! Settings that hold, and that are hardly meant.

use super::*;

fn told(text: &str) -> Vec<String> {
    load_all(text, &[], Flags::default()).unwrap_or_else(|error| panic!("{text}: {error}")).notices
}

/// The first words of each note.
fn is_told(text: &str, expected: &[&str]) {
    let told = told(text);
    let fits = told.len() == expected.len()
        && told.iter().zip(expected).all(|(told, begin)| told.starts_with(begin));
    assert!(fits, "{text}: {told:#?}");
}

#[test]
fn parking_needs_the_gate() {
    let both = "[relay]\npark_quota = true\ngate = false\n";
    is_told(both, &["`park_quota` has no effect without the gate"]);
    // Here something is parked.
    is_told(&format!("{both}[profile.mine]\ngate = true\n"), &[]);
    is_told("[relay]\npark_quota = true\n", &[]);
    is_told("[relay]\ngate = false\n", &[]);
    let curve = "[relay]\npark_quota = true\n[profile.mine]\nbase = \"1s\"\n";
    is_told(curve, &["`park_quota` has no effect with profile `mine`"]);
    is_told(&format!("{curve}park_quota = false\n"), &[]);
    is_told("[relay]\ngate = false\n[[route]]\npark_quota = true\n", &["`park_quota` has no effect without"]);
    let based = "[profile.mine]\nbased_on = \"codex-retry\"\npark_quota = true\n";
    is_told(based, &["`park_quota` has no effect with profile `mine`"]);
    let shipped = "[relay]\npark_quota = true\n[profile.patient]\ngate = false\n";
    is_told(shipped, &["`park_quota` has no effect with profile `patient`"]);
}

#[test]
fn a_credential_that_nobody_uses_is_told_of() {
    let unused = "[credential.mine]\nkey = \"k\"\n";
    is_told(unused, &["credential `mine` is for no upstream: write `credential = \"mine\"`"]);
    is_told(&format!("{unused}[upstream.openai]\ncredential = \"mine\"\n"), &[]);
}

/// A pool of these members, the first of which is OpenAI.
fn pool(rest: &str, members: &str) -> String {
    format!("[pool.main]\nmembers = [\"openai\"{members}]\n{rest}")
}

#[test]
fn a_pool_that_does_less_than_it_seems_to_is_told_of() {
    is_told(&pool("", ""), &["pool `main` has one member"]);
    let twin = "\n[upstream.twin]\nurl = \"https://api.openai.com/v2\"\n";
    let weights = |strategy: &str| {
        pool(&format!("strategy = \"{strategy}\"\nweights = {{ twin = 3 }}{twin}"), ", \"twin\"")
    };
    is_told(&weights("in_order"), &["the `weights` of pool `main` have no effect"]);
    for strategy in ["weighted", "least_waiting", "sticky"] {
        is_told(&weights(strategy), &[]);
    }
}

#[test]
fn a_member_that_no_key_gets_to_is_told_of() {
    let other = |entry: &str| pool(&format!("[upstream.other]\n{entry}\n"), ", \"other\"");
    let elsewhere = "url = \"https://gateway.example/v1\"";
    let words = ["`other` of pool `main` is asked without any key"];
    is_told(&other(elsewhere), &words);
    is_told(&other(&format!("{elsewhere}\nheaders = {{ x-team = \"blue\" }}")), &words);
    is_told(&other("url = \"http://gateway.example/v1\"\nallow_plaintext = true"), &words);
    let own = "[credential.c]\nkey = \"k\"\n";
    for fine in [
        format!("{elsewhere}\napi_key = \"k\""),
        format!("{elsewhere}\ncredential = \"c\"\n{own}"),
        format!("{elsewhere}\nheaders = {{ authorization = \"Bearer k\" }}"),
        "url = \"https://api.openai.com/other\"".to_owned(),
        // Servers of one's own.
        "url = \"http://127.0.0.1:11434\"".to_owned(),
        "url = \"http://10.0.0.7:8000/v1\"".to_owned(),
    ] {
        is_told(&other(&fine), &[]);
    }
    // For what the first does not speak, the second is the first.
    let split =
        "[upstream.openai]\ndialects = [\"openai_chat\"]\n[upstream.anthropic]\ndialects = [\"anthropic\"]\n";
    is_told(&pool(split, ", \"anthropic\""), &[]);
}
