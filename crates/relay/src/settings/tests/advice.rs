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
    is_told(&format!("{both}[profile.mine]\ngate = true\npatience = \"2h\"\n"), &[]);
    is_told("[relay]\npark_quota = true\nprofile = \"patient\"\n", &[]);
    is_told("[relay]\ngate = false\n", &[]);
    let curve = "[relay]\npark_quota = true\nprofile = \"patient\"\n[profile.mine]\nbase = \"1s\"\n";
    is_told(curve, &["`park_quota` has no effect with profile `mine`"]);
    is_told(&format!("{curve}park_quota = false\n"), &[]);
    is_told("[relay]\ngate = false\n[[route]]\npark_quota = true\n", &["`park_quota` has no effect without"]);
    let based = "[profile.mine]\nbased_on = \"codex-retry\"\npark_quota = true\n";
    is_told(based, &["`park_quota` has no effect with profile `mine`"]);
    let shipped = "[relay]\npark_quota = true\n[profile.patient]\ngate = false\n[profile.interactive]\npatience = \"1h\"\n";
    is_told(shipped, &["`park_quota` has no effect with profile `patient`"]);
}

#[test]
fn parking_needs_patience() {
    let words = ["`park_quota` makes hardly any call wait for a quota, since profile `interactive` has less"];
    let parks = "[relay]\npark_quota = true\n";
    is_told(parks, &words);
    is_told("[[route]]\nmodel = \"m\"\npark_quota = true\n", &words);
    is_told("[profile.interactive]\npark_quota = true\n", &words);
    for fine in [
        "profile = \"patient\"\n",
        "[profile.interactive]\npatience = \"3h\"\n",
        "[[route]]\nmodel = \"m\"\npatience = \"3h\"\n",
        "[client.codex]\nprofile = \"patient\"\n",
        // Whoever calls by its name.
        "[profile.night]\npatience = \"8h\"\n",
    ] {
        is_told(&format!("{parks}{fine}"), &[]);
    }
    is_told("[profile.patient]\npark_quota = true\n", &[]);
}

#[test]
fn breakers_and_fallbacks_that_do_nothing_are_told_of() {
    let words = ["[breaker] has no effect"];
    let breaker = "[breaker]\nfailures = 11\n";
    let fallback = |rest: &str| format!("[[fallback]]\nmodel = \"a\"\nto = [\"b\"]\n{rest}");
    is_told(breaker, &words);
    is_told(&format!("{breaker}alone = true\n"), &[]);
    is_told(&format!("{breaker}{}", fallback("")), &[]);
    let places = "[upstream.home]\nurl = \"http://127.0.0.1:1\"\nmax_running = 2\n";
    let words = ["the fallback of `a` has no effect at `home`, where `max_running`"];
    let of_home = fallback("upstream = \"home\"\n");
    is_told(&format!("{of_home}{places}"), &words);
    let everything = format!("[relay]\nupstream = \"home\"\n{}{places}", fallback(""));
    is_told(&everything, &words);
    is_told(&format!("{}{places}", fallback("")), &[]);
    is_told(&format!("{everything}[[route]]\nmodel = \"a\"\nupstream = \"openai\"\n"), &[]);
    is_told(&format!("{everything}[[route]]\nmodel = \"b\"\nmax_running = 1\n"), &[]);
    let pool = |member: &str| {
        let of_pool = fallback("upstream = \"both\"\n");
        format!(
            "{of_pool}{places}[upstream.other]\nurl = \"http://127.0.0.1:2\"\n{member}[pool.both]\nmembers = [\"home\", \"other\"]\n"
        )
    };
    is_told(&pool(""), &[]);
    is_told(&pool("max_running = 1\n"), &["the fallback of `a` has no effect at `both`"]);
}

#[test]
fn a_member_that_a_person_signs_in_at_is_told_of_and_asked_for_no_key() {
    let words =
        ["`chatgpt` of pool `main` takes a person's sign-in of ChatGPT and no key, and a pool refuses that"];
    is_told(&pool("", ", \"chatgpt\""), &words);
    let first = "[pool.main]\nmembers = [\"chatgpt\", \"openai\"]\n[upstream.openai]\napi_key = \"k\"\n";
    is_told(first, &words);
    // By this name, somewhere else.
    is_told(
        &pool("[upstream.chatgpt]\nurl = \"https://gw.example\"\napi_key = \"k\"\n", ", \"chatgpt\""),
        &[],
    );
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
