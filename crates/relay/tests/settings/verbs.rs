//! `steady-relay config …`.

use std::path::Path;

use serde_json::Value;

use crate::program::{CONFIG, Home, run};

#[tokio::test]
async fn show_prints_every_key_and_with_origin_who_set_it() {
    let home = Home::with_config(
        "[relay]\nport = 3\ntoken = \"hunter2hunter2hunter2\"\n[[route]]\nmodel = \"o3\"\nsends = 1\n",
    );
    let (code, shown, _) = home.run(&["config", "show"]).await;
    assert_eq!(code, 0);
    assert!(shown.contains("[relay]\nlisten = \"localhost\"\nport = 3\ntoken = \"…\"\n"), "{shown}");
    let (code, checked, said) =
        home.run(&["config", "check", home.write("again.toml", &shown).to_str().unwrap()]).await;
    assert!((code, checked.as_str()) == (2, ""), "a masked token is none: {said}");
    let mut command = home.program(&["config", "show", "--origin", "--listen", "127.0.0.1"]);
    let (_, shown, said) = run(command.env("PORT", "4")).await;
    assert!(shown.contains("listen = \"127.0.0.1\"  # --listen\nport = 4  # PORT\n"), "{shown}");
    assert!(shown.contains("[[route]]\nmodel = \"o3\"  # "), "{shown}");
    assert!(shown.contains("config.toml:5") && shown.contains("# upstream is not set\n"), "{shown}");
    assert!(shown.contains("drain = \"300s\"  # default\n") && !shown.contains("hunter2"), "{shown}");
    assert!(said.contains("PORT is an older name"), "{said}");
    let mut command = home.program(&["config", "show", "--origin"]);
    let (_, shown, _) = run(command.env("STEADY_RELAY_GATE", "off")).await;
    assert!(shown.contains("\ngate = false  # STEADY_RELAY_GATE\npark_quota"), "{shown}");
    assert!(shown.contains("[profile.strict]\ngate = false  # STEADY_RELAY_GATE\n# park_quota"), "{shown}");
    let (_, shown, _) = home.run(&["config", "show", "--origin", "--gate", "on"]).await;
    assert!(shown.contains("\ngate = true  # --gate\n") && shown.contains("# base is not set\n"), "{shown}");
    home.write("empty.toml", "[[route]]\nmodel = \"o3\"\n[[route]]\n");
    let (_, shown, _) = home.run(&["config", "show", "--config", "empty.toml"]).await;
    assert!(shown.ends_with("\n[[route]]\nmodel = \"o3\"\n\n[[route]]\n# sets nothing\n"), "{shown}");
    let (_, shown, _) = home.run(&["config", "show", "--json"]).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["v"], 1);
    let keys = shown["keys"].as_array().unwrap();
    let port = keys.iter().find(|key| key["key"] == "port").unwrap();
    assert_eq!((&port["section"], &port["value"]), (&"[relay]".into(), &"3".into()));
    assert!(port["origin"].as_str().unwrap().ends_with("config.toml:2"));
}

#[tokio::test]
async fn check_says_all_that_is_wrong_or_ok() {
    let home = Home::with_config("[relay]\nprofile = \"batch\"\n");
    assert_eq!(home.run(&["config", "check"]).await, (0, "ok\n".to_owned(), String::new()));
    let (code, out, said) = run(home.program(&["config", "check"]).env("https_proxy", "foo://x")).await;
    let note = "note: https_proxy in the environment names no proxy that can be used, and is passed over: ";
    assert!((code, out.as_str()) == (0, "ok\n") && said.starts_with(note), "{said}");
    home.write("bad.toml", "[relay]\nprot = 1\n[hold]\ntime = 3\n");
    let (code, out, said) = home.run(&["config", "check", "bad.toml"]).await;
    assert_eq!((code, out.as_str(), said.matches("error: bad.toml:").count()), (2, "", 2), "{said}");
    let (code, out, _) = home.run(&["config", "check", "bad.toml", "--json"]).await;
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &out["ok"], out["errors"].as_array().map(Vec::len)), (2, &false.into(), Some(2)));
    assert_eq!(out["errors"][0]["at"], "bad.toml:2:1");
    let certificates = "[relay]\nca_file = \"none.pem\"\nprot = 1\n";
    home.write("bad.toml", certificates);
    let (code, _, said) = home.run(&["config", "check", "bad.toml"]).await;
    let told = "error: bad.toml:2:11: the certificate file none.pem: there is no such file\n";
    assert!(code == 2 && said.starts_with(told) && said.matches("error: ").count() == 2, "{said}");
    home.write("none.pem", "not PEM");
    home.write("bad.toml", certificates.replace("prot = 1\n", ""));
    let (code, _, said) = home.run(&["config", "check", "bad.toml"]).await;
    let hint =
        "\nhint: `ca_file` below [relay] names it, or SSL_CERT_FILE; it has to hold certificates in PEM\n";
    assert!(code == 2 && said.contains("none.pem") && said.ends_with(hint), "{said}");
    let (code, out, _) = home.run(&["config", "check", "bad.toml", "--json"]).await;
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &out["ok"], out["errors"].as_array().map(Vec::len)), (2, &false.into(), Some(1)));
    assert!(out["errors"][0]["what"].as_str().unwrap().contains("none.pem"), "{out}");
}

#[tokio::test]
async fn path_tells_where_the_file_is_looked_for() {
    let home = Home::new();
    let (code, out, said) = home.run(&["config", "path"]).await;
    assert_eq!((code, Path::new(out.trim_end())), (0, home.path(CONFIG).as_path()));
    assert_eq!(said, "note: there is no such file yet, so the defaults hold\n");
    for (flag, variable) in [(&["--config", "NOPE"][..], ""), (&[], "NOPE")] {
        let mut command = home.program(&[&["config", "path"], flag].concat());
        let (code, out, said) = run(command.env("STEADY_RELAY_CONFIG", variable)).await;
        assert_eq!((code, out.as_str()), (0, "NOPE\n"));
        let words = "note: there is no such file, and the relay does not start without a file that is named";
        assert!(said.starts_with(words), "{said}");
    }
    home.write(CONFIG, "");
    let (_, out, said) = home.run(&["config", "path", "--json", "--env-file", "x.env"]).await;
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&out["config"]["exists"], &out["env_file"]["path"], said.as_str()),
        (&true.into(), &"x.env".into(), "")
    );
}

#[tokio::test]
async fn schema_is_json_and_names_the_sections() {
    let (code, out, _) = Home::new().run(&["config", "schema"]).await;
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &schema["properties"]["timeouts"]["properties"]["idle"]["type"]),
        (0, &"string".into())
    );
}

#[tokio::test]
async fn test_rule_says_of_a_file_that_it_cannot_use_what_and_how_to_mend_it() {
    let home = Home::new();
    home.write("empty", "");
    home.write("binary", [0x1f, 0x8b, 0x08, 0x00, 0xff]);
    home.write("huge", vec![b'x'; (16 << 20) + 1]);
    for (file, told) in [
        ("none.http", "error: none.http: there is no such file\nhint: record an answer into it: `curl -i"),
        ("config", "error: config: this is a folder, not a file\nhint: name one file"),
        ("empty", "error: empty: the file is empty\nhint: record it with `curl -i"),
        ("binary", "error: binary: the file is no text, and no head says how it is encoded\nhint: "),
        ("huge", "error: huge: the file is longer than the 16 MiB that are read\nhint: "),
        // It never ends.
        #[cfg(unix)]
        ("/dev/zero", "error: /dev/zero: the file is longer than the 16 MiB that are read\nhint: "),
    ] {
        let (code, out, said) = home.run(&["config", "test-rule", file]).await;
        assert!(code == 2 && out.is_empty() && said.starts_with(told), "{file}: {code} {out} {said}");
    }
    for (flag, value, told) in [
        ("--status", "42", "error: invalid value '42' for '--status <N>': 42 is not in 100..=999"),
        ("--dialect", "openai", "tip: a similar value exists: 'openai_chat'"),
    ] {
        let (code, _, said) = home.run(&["config", "test-rule", "x", flag, value]).await;
        assert!(code == 2 && said.contains(told), "{said}");
    }
    home.write("good", "{\"error\":{\"code\":503}}");
    let (code, out, said) = home.run(&["config", "test-rule", "good"]).await;
    assert!(code == 0 && out.starts_with("taken for  at_capacity"), "{out}");
    assert!(said.starts_with("note: the file has no head: taken for a body of application/json"), "{said}");
    let rule = "[[rule]]\nstatus = 503\ninside = true\nfault = \"overloaded\"\n";
    home.write("rules.toml", rule);
    let (_, out, _) = home.run(&["config", "test-rule", "good", "--config", "rules.toml"]).await;
    assert!(out.contains(", by [[rule]] number 1 (rules.toml:1)\n"), "{out}");
    let (_, _, said) = home.run(&["config", "test-rule", "good", "--json"]).await;
    assert_eq!(said, "");
}
