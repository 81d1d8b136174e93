//! Credentials of the relay's own, and the upstreams that name them.

use super::*;
use relay_core::config::{Credential, Held, Secret, Source, TokenRequest};

/// A sign-in of ChatGPT: a token of its issuer, whose claims are `{"iss":"https://auth.openai.com"}`.
const SIGN_IN: &str = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2F1dGgub3BlbmFpLmNvbSJ9.c2ln";

fn of(text: &str, variables: &[(&str, &str)]) -> Credential {
    let loaded = load_all(&format!("[credential.mine]\n{text}"), variables, Flags::default());
    loaded.unwrap_or_else(|error| panic!("{error}")).config.credentials["mine"].clone()
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

#[test]
fn a_key_comes_from_where_the_settings_say() {
    assert_eq!(of("key = \"k\"", &[]).source, Source::Key(Held::Text(secret("k"))));
    let by_variable = Held::Variable { name: "MINE".into(), value: Some(secret("v")) };
    assert_eq!(of("key_env = \"MINE\"", &[("MINE", " v\n")]).source, Source::Key(by_variable));
    assert_eq!(of("key_file = \"a/key\"", &[]).source, Source::Key(Held::File("a/key".into())));
    let argv = vec!["pass".to_owned(), "show".to_owned()];
    let ttl = Some(Duration::from_secs(60));
    let source = of("key_command = [\"pass\", \"show\"]\nkey_ttl = \"60s\"", &[]).source;
    assert_eq!(source, Source::Command { argv, ttl });
    assert_eq!(of("key = \"k\"\nheader = \"Api-Key\"", &[]).header.unwrap(), "api-key");
}

#[test]
fn a_variable_of_an_env_file_is_read_too_and_one_that_is_unset_is_told_of() {
    let flags =
        Flags { env_file: Some("x.env".into()), config: Some("config.toml".into()), ..Flags::default() };
    let text = "[credential.mine]\nkey_env = \"MINE\"\n[credential.other]\nkey_env = \"OTHER\"\n\
                [upstream.openai]\ncredential = \"mine\"\n[upstream.gemini]\ncredential = \"other\"\n";
    let read = |path: &Path| Ok(if path == Path::new("x.env") { "MINE=k\n" } else { text }.into());
    let loaded = load(&flags, &NO_VARIABLES, &read).unwrap();
    let held = Held::Variable { name: "MINE".into(), value: Some(secret("k")) };
    assert_eq!(loaded.config.credentials["mine"].source, Source::Key(held));
    assert_eq!(loaded.notices, ["credential `other`: the variable OTHER is not set"]);
}

#[test]
fn tokens_are_issued_against_a_refresh_token() {
    let Source::OAuth(oauth) = of(
        "token_url = \"https://a.example/t\"\nclient_id = \"me\"\nclient_secret_env = \"S\"\nscope = \"x y\"\n\
         token_request = \"json\"\nrefresh_before = \"5min\"",
        &[("REFRESH_TOKEN", "rt"), ("S", "shh")],
    )
    .source
    else {
        panic!("it is a token");
    };
    let variable = |name: &str, value| Held::Variable { name: name.into(), value: Some(secret(value)) };
    assert_eq!(oauth.refresh_token, variable("REFRESH_TOKEN", "rt"));
    assert_eq!(oauth.client_secret, Some(variable("S", "shh")));
    assert_eq!((oauth.client_id.as_deref(), oauth.scope.as_deref()), (Some("me"), Some("x y")));
    assert_eq!((oauth.form, oauth.before), (TokenRequest::Json, Duration::from_secs(300)));
    let Source::OAuth(oauth) =
        of("token_url = \"https://a.example/t\"\nrefresh_token_file = \"r\"", &[]).source
    else {
        panic!("it is a token");
    };
    assert_eq!(oauth.refresh_token, Held::File("r".into()));
    assert_eq!((oauth.form, oauth.before), (TokenRequest::Form, Duration::from_secs(60)));
}

#[test]
fn what_does_not_go_together_is_told() {
    let url = "token_url = \"https://a.example/t\"\n";
    for (text, what, hint) in [
        ("header = \"api-key\"", "names nothing that its key comes from", "write one of `key`"),
        ("key = \"a\"\nkey_env = \"B\"", "has both `key` and `key_env`", "keep the one"),
        (&format!("{url}key = \"a\""), "has both `key` and `token_url`", "keep the one"),
        ("key_ttl = \"1s\"\nkey = \"a\"", "has a `key_ttl` and no `key_command`", "leave it out"),
        ("client_id = \"a\"\nkey = \"a\"", "has a `client_id` and no `token_url`", "leave it out"),
        ("refresh_token = \"a\"", "has a refresh token and no `token_url`", "where tokens are issued"),
        (
            &format!("{url}refresh_token = \"a\"\nrefresh_token_file = \"b\""),
            "has both `refresh_token`",
            "one of",
        ),
        (
            &format!("{url}client_secret = \"a\"\nclient_secret_env = \"B\""),
            "has both `client_secret`",
            "one of",
        ),
        ("key = \"two words\"", "`credential.mine.key` is no key", "one word"),
        ("key_env = \"A-B\"", "is no name of a variable", "MY_API_KEY"),
        ("key_file = \"\"", "is no path", "where the file is"),
        ("key_command = []", "is no command", "the program and its arguments"),
        ("key_command = \"pass show\"", "is text, not a list of texts", "[\"one\", \"two\"]"),
        ("key_command = [\"a\"]\nkey_ttl = 5", "has no unit", "seconds"),
        ("key = \"a\"\nheader = \"a b\"", "is no header name", "letters"),
        ("key = \"a\"\nheader = \"Host\"", "belongs to the connection or to the request", "api-key"),
        (&format!("{url}scope = \"\""), "is empty, too long", "as the issuer tells it"),
        (&format!("{url}token_request = \"xml\""), "is none of the choices", "form, json"),
        ("token_url = \"http://a.example/t\"", "is plain http to another machine", "https"),
        ("token_url = \"https://auth.openai.com/oauth/token\"", "sign-ins of ChatGPT", "the client"),
        ("token_url = \"https://console.anthropic.com/v1/oauth/token\"", "sign-ins of Claude", "the client"),
        (&format!("key = \"{SIGN_IN}\""), "a sign-in of ChatGPT", "a key of the API"),
        ("key = \"sk-ant-oat01-abc\"", "a sign-in of Claude", "a key of the API"),
        (&format!("{url}refresh_token = \"sk-ant-ort01-abc\""), "a sign-in of Claude", "a key of the API"),
        ("kee = \"a\"", "unknown key `kee`", "did you mean `key`?"),
    ] {
        let told = bad(&format!("[credential.mine]\n{text}\n"));
        assert!(told.contains(what) && told.contains(hint), "{text}\n{told}");
    }
    let by_variable = |value| {
        let text = "[credential.mine]\nkey_env = \"MINE\"\n";
        load_all(text, &[("MINE", value)], Flags::default()).unwrap_err().to_string()
    };
    assert!(by_variable("two words").contains("the variable MINE is no key"));
    assert!(by_variable("sk-ant-oat01-abc").contains("a sign-in of Claude"));
}

#[test]
fn upstreams_name_their_credential() {
    let mine = "[credential.mine]\nkey = \"k\"\nheader = \"x-own\"\n";
    let config =
        good(&format!("{mine}[upstream.openai]\ncredential = \"mine\"\nreplace_credential = true\n"));
    let upstream = &config.upstreams["openai"];
    assert_eq!((upstream.credential.as_deref(), upstream.replace_credential), (Some("mine"), true));
    for (text, what) in [
        ("credential = \"mein\"", "names no credential"),
        ("credential = \"mine\"\napi_key = \"k\"", "has both `api_key` and `credential`"),
        ("replace_credential = true", "has `replace_credential` and no `credential`"),
        ("credential = \"mine\"\nheaders = { X-Own = \"a\" }", "adds the header `x-own`"),
        ("credential = \"mine\"\nheaders = { Authorization = \"a\" }", "adds the header `authorization`"),
        ("credential = \"mine\"\nurl = \"http://a.example\"", "over plain http"),
    ] {
        let told = bad(&format!("{mine}[upstream.openai]\n{text}\n"));
        assert!(told.contains(what), "{text}\n{told}");
    }
    let flags =
        Flags { env_file: Some("x.env".into()), config: Some("config.toml".into()), ..Flags::default() };
    let text = format!("{mine}[upstream.openai]\ncredential = \"mine\"\n");
    let env = "STEADY_RELAY_UPSTREAM=openai\nCODEX_API_KEY=sk-hunter2\n";
    let read =
        |path: &Path| Ok(if path == Path::new("x.env") { env.into() } else { text.clone().into_bytes() });
    let told = load(&flags, &NO_VARIABLES, &read).unwrap_err().to_string();
    assert!(told.contains("has a `credential` of its own already") && !told.contains("hunter2"), "{told}");
}

#[test]
fn no_secret_of_a_credential_is_shown() {
    let url = "token_url = \"https://a.example/t\"";
    let texts = [
        "key = \"hunter2\"".to_owned(),
        "key_command = [\"echo\", \"hunter2\"]".to_owned(),
        format!("{url}\nrefresh_token = \"hunter2\"\nclient_id = \"me\"\nclient_secret = \"hunter2\""),
    ];
    for text in &texts {
        let whole = format!("[credential.mine]\n{text}\n");
        let loaded = load_all(&whole, &[], Flags::default()).unwrap();
        let shown = format!("{:?} {:?}", loaded.shown, loaded.config);
        // What is to be run is no secret by itself: it is masked where it is shown, not in a debug print.
        assert!(!format!("{:?}", loaded.shown).contains("hunter2"), "{text}");
        assert!(text.contains("key_command") || !shown.contains("hunter2"), "{text}");
        for broken in ["sends = 1\n", "key_file = 3\n", "= 1\n"] {
            let told = bad(&format!("{whole}{broken}"));
            assert!(!told.contains("hunter2"), "{text}\n{told}");
        }
    }
}
