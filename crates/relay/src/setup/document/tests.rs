use super::*;
use proptest::prelude::*;

fn path(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|step| (*step).to_owned()).collect()
}

fn put(format: Format, text: &str, steps: &[&str], value: &Value, comment: &str) -> (Document, Splice) {
    let document = Document::read(format, text).unwrap();
    document.put(&path(steps), value, comment).unwrap_or_else(|stuck| panic!("{stuck:?} in {text:?}"))
}

/// What is put in, and taken out again from another text.
struct Case<'a> {
    format: Format,
    steps: &'a [&'a str],
    comment: &'a str,
}

const ADDRESS: &str = "http://127.0.0.1:8787/v1";
const TOML: Case<'_> = Case { format: Format::Toml, steps: &["openai_base_url"], comment: "# ours" };
const CLAUDE: Case<'_> = Case { format: Format::Json, steps: &["env", "ANTHROPIC_BASE_URL"], comment: "" };
const CODE: Case<'_> =
    Case { format: Format::Json, steps: &["claudeCode.environmentVariables", "[URL]"], comment: "// ours" };
const ENV: Case<'_> = Case { format: Format::Env, steps: &["OPENAI_BASE_URL"], comment: "# ours" };

impl Case<'_> {
    fn put(&self, text: &str) -> (String, Splice) {
        let (after, splice) = put(self.format, text, self.steps, &ADDRESS.into(), self.comment);
        (after.text().to_owned(), splice)
    }

    /// Undoes the edit of `before` in `text`.
    fn back(&self, before: &str, splice: &Splice, text: &str) -> Result<String, Stuck> {
        let before = Document::read(self.format, before).unwrap();
        let path = path(self.steps);
        let old = before.get(&path).unwrap().cloned();
        let raw = before.raw(&path).unwrap_or_default();
        let back = Back { path: &path, old: old.as_ref(), raw, splice, comment: self.comment };
        Document::read(self.format, text).unwrap().put_back(&back).map(|done| done.text().to_owned())
    }

    /// Puts it in, compares, and takes it out again.
    fn there_and_back(&self, before: &str, expected: &str) {
        let (after, splice) = self.put(before);
        assert_eq!(after, expected, "{before:?}");
        assert_eq!(self.back(before, &splice, &after).unwrap(), before);
    }
}

#[test]
fn toml_gets_its_key_above_the_first_table() {
    let ours = "# ours\nopenai_base_url = \"http://127.0.0.1:8787/v1\"\n";
    TOML.there_and_back("", ours.trim_start());
    TOML.there_and_back("[a]\nb = 1\n", &format!("{ours}\n[a]\nb = 1\n"));
    TOML.there_and_back("\n[a]\nb = 1", &format!("{ours}\n[a]\nb = 1"));
    TOML.there_and_back("a = 1 # note\n\n[b]\n", &format!("a = 1 # note\n{ours}\n[b]\n"));
    TOML.there_and_back("a = 1", &format!("a = 1\n{}", ours.trim_end()));
    TOML.there_and_back("a = \"\"\"\n[x]\n\"\"\"\n[b]\n", &format!("a = \"\"\"\n[x]\n\"\"\"\n{ours}[b]\n"));
    TOML.there_and_back("a = 1\r\n[b]\r\n", &format!("a = 1\r\n{}[b]\r\n", ours.replace('\n', "\r\n")));
    TOML.there_and_back("list = [\n  1,\n]\n", &format!("{ours}\nlist = [\n  1,\n]\n"));
}

#[test]
fn a_value_that_is_there_gives_way_in_place() {
    TOML.there_and_back(
        "openai_base_url = 'https://gw.example/v1' # mine\n[b]\n",
        "# ours\nopenai_base_url = \"http://127.0.0.1:8787/v1\" # mine\n[b]\n",
    );
    CLAUDE.there_and_back(
        "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://gw.example\", \"A\": \"b\"}}",
        "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8787/v1\", \"A\": \"b\"}}",
    );
    ENV.there_and_back(
        "export OPENAI_BASE_URL='https://gw.example'\r\nA=1\r\n",
        "# ours\r\nexport OPENAI_BASE_URL=http://127.0.0.1:8787/v1\r\nA=1\r\n",
    );
    let case = Case { format: Format::Toml, steps: &["model_providers", "x", "base_url"], comment: "# ours" };
    case.there_and_back(
        "[model_providers]\nx = { name = \"x\", base_url = \"https://gw.example\" }\n",
        "[model_providers]\nx = { name = \"x\", base_url = \"http://127.0.0.1:8787/v1\" }\n",
    );
    case.there_and_back(
        "[model_providers.x]\n  base_url = \"https://gw.example\"\n",
        "[model_providers.x]\n  # ours\n  base_url = \"http://127.0.0.1:8787/v1\"\n",
    );
}

#[test]
fn toml_tables_are_used_or_made() {
    let case = Case { format: Format::Toml, steps: &["upstream", "own-codex", "url"], comment: "# ours" };
    let made = "[upstream.own-codex]\n# ours\nurl = \"http://127.0.0.1:8787/v1\"\n";
    case.there_and_back("", made);
    case.there_and_back("[relay]\nport = 1", &format!("[relay]\nport = 1\n\n{made}"));
    let port = Case { format: Format::Toml, steps: &["relay", "port"], comment: "" };
    port.there_and_back(
        "# top\n[relay] # here\nprofile = \"batch\"\n",
        "# top\n[relay] # here\nport = \"http://127.0.0.1:8787/v1\"\nprofile = \"batch\"\n",
    );
    // Written in other ways, they are not edited.
    for odd in ["upstream = {}\n", "upstream.own-codex = 1\n", "[[upstream]]\n", "relay = 1\nupstream = 2\n"]
    {
        let document = Document::read(Format::Toml, odd).unwrap();
        let stuck = document.put(&path(case.steps), &"x".into(), "");
        assert_eq!(stuck.err(), Some(Stuck::Shape), "{odd}");
    }
}

#[test]
fn json_is_written_in_the_manner_of_its_neighbours() {
    let ours = "\"env\": {\n    \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8787/v1\"\n  }";
    CLAUDE.there_and_back("", &format!("{{\n  {ours}\n}}\n"));
    CLAUDE.there_and_back(" \n", &format!("{{\n  {ours}\n}}\n"));
    CLAUDE.there_and_back("{}", &format!("{{\n  {ours}\n}}"));
    CLAUDE.there_and_back("{\n}\n", &format!("{{\n  {ours}\n}}\n"));
    CLAUDE.there_and_back("{\n  \"a\": 1\n}\n", &format!("{{\n  \"a\": 1,\n  {ours}\n}}\n"));
    CLAUDE.there_and_back(
        "{\"a\":[1]}",
        "{\"a\":[1], \"env\": {\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8787/v1\"}}",
    );
    CLAUDE.there_and_back(
        "{\r\n\t\"env\": {\r\n\t\t\"A\": \"b\"\r\n\t}\r\n}",
        "{\r\n\t\"env\": {\r\n\t\t\"A\": \"b\",\r\n\t\t\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:8787/v1\"\r\n\t}\r\n}",
    );
    CODE.there_and_back(
        "{\n    // mine\n    \"a\": 1, // note\n    /* end */\n}\n",
        "{\n    // mine\n    \"a\": 1, // note\n    // ours\n    \"claudeCode.environmentVariables\": [\n        { \"name\": \"URL\", \"value\": \"http://127.0.0.1:8787/v1\" }\n    ],\n    /* end */\n}\n",
    );
    CODE.there_and_back(
        "{\n  \"a\": 1 // note\n}\n",
        "{\n  \"a\": 1, // note\n  // ours\n  \"claudeCode.environmentVariables\": [\n    { \"name\": \"URL\", \"value\": \"http://127.0.0.1:8787/v1\" }\n  ]\n}\n",
    );
    CODE.there_and_back(
        "{\"claudeCode.environmentVariables\": [{\"name\": \"A\", \"value\": \"b\"}]}",
        "{\"claudeCode.environmentVariables\": [{\"name\": \"A\", \"value\": \"b\"}, {\"name\": \"URL\", \"value\": \"http://127.0.0.1:8787/v1\"}]}",
    );
    CODE.there_and_back(
        "{\"claudeCode.environmentVariables\": [{\"name\": \"URL\", \"value\": \"\"}]}",
        "{\"claudeCode.environmentVariables\": [{\"name\": \"URL\", \"value\": \"http://127.0.0.1:8787/v1\"}]}",
    );
}

#[test]
fn env_files_get_a_line() {
    let ours = "# ours\nOPENAI_BASE_URL=http://127.0.0.1:8787/v1\n";
    ENV.there_and_back("", ours);
    ENV.there_and_back("A=1\n", &format!("A=1\n{ours}"));
    ENV.there_and_back("A=1", &format!("A=1\n{ours}"));
    ENV.there_and_back("A=\"x\nOPENAI_BASE_URL=1\"\n", &format!("A=\"x\nOPENAI_BASE_URL=1\"\n{ours}"));
    ENV.there_and_back("A=1\r\n", &format!("A=1\r\n{}", ours.replace('\n', "\r\n")));
}

#[test]
fn what_was_edited_since_stays() {
    let rows: &[(&Case<'_>, &str, &str, &str, &str)] = &[
        // (before, changed in the text after setup, into, what undo leaves)
        (&TOML, "a = 1\n", "a = 1\n", "a = 2 # new\n", "a = 2 # new\n"),
        (&TOML, "a = 1\n", "# ours\n", "# ours\n# theirs\n", "a = 1\n# ours\n# theirs\n"),
        (&TOML, "a = 1\n", "openai_base_url =", "openai_base_url  =", "a = 1\n"),
        (
            &TOML,
            "openai_base_url = 'x'\n",
            "openai_base_url =",
            "openai_base_url   =",
            "openai_base_url   = 'x'\n",
        ),
        (&CLAUDE, "{}", "\n}", ",\n  \"new\": 1\n}", "{\n  \"new\": 1\n}"),
        (
            &CLAUDE,
            "{\n  \"a\": 1\n}\n",
            "/v1\"\n  }",
            "/v1\",\n    \"K\": \"v\"\n  }",
            "{\n  \"a\": 1,\n  \"env\": {\n    \"K\": \"v\"\n  }\n}\n",
        ),
        (&CLAUDE, "{\n  \"a\": 1\n}\n", "  \"a\": 1,\n", "", "{\n}\n"),
        (&CLAUDE, "{\n  \"a\": 1\n}\n", "    \"ANTH", "      \"ANTH", "{\n  \"a\": 1\n}\n"),
        (&ENV, "A=1\n", "A=1\n", "A=1\nB=2\n", "A=1\nB=2\n"),
        (&ENV, "A=1\n", "OPENAI_BASE_URL=", "OPENAI_BASE_URL = ", "A=1\n"),
    ];
    for (case, before, from, into, left) in rows {
        let (after, splice) = case.put(before);
        let edited = after.replacen(from, into, 1);
        assert_ne!(edited, after, "{before:?}");
        assert_eq!(case.back(before, &splice, &edited).as_deref(), Ok(*left), "{edited}");
    }
}

#[test]
fn flaws_have_a_place_and_no_text() {
    let rows = [
        (Format::Toml, "a = 1\nb = [secret7\n", 2),
        (Format::Toml, "a = 1\na = \"secret7\"\n", 2),
        (Format::Json, "{\n  \"a\": secret7\n}", 2),
        (Format::Json, "{\"a\": \"secret7", 1),
        (Format::Json, "{\"a\": 1} secret7", 1),
        (Format::Json, "{'a': 1}", 1),
        (Format::Env, "A=1\nB=\"secret7\n", 2),
    ];
    for (format, text, line) in rows {
        let flaw = Document::read(format, text).unwrap_err();
        assert_eq!(flaw.line, line, "{text:?}: {flaw:?}");
        assert!(!flaw.what.contains("secret7") && !flaw.what.is_empty(), "{flaw:?}");
    }
    for (format, text) in [
        (Format::Json, "{\"env\": {\"K\": \"a\",\n\"K\": \"b\"}}"),
        (Format::Json, "{\"env\": {},\n\"env\": {\"K\": \"b\"}}"),
    ] {
        let document = Document::read(format, text).unwrap();
        let Err(Stuck::Flaw(flaw)) = document.put(&path(&["env", "K"]), &"x".into(), "") else {
            panic!("{text}")
        };
        assert_eq!((flaw.line, flaw.column), (2, 1));
    }
    for shape in ["[]", "\"env\"", "{\"env\": []}", "{\"env\": \"x\"}", "{\"env\": {\"K\": {}}}", "null"] {
        let document = Document::read(Format::Json, shape).unwrap();
        assert_eq!(document.put(&path(&["env", "K"]), &"x".into(), "").err(), Some(Stuck::Shape), "{shape}");
    }
}

#[test]
fn other_values_are_hidden() {
    let text = "{\"env\": {\"TOKEN\": \"secret7\", \"URL\": \"https://me:secret7@gw.example/v1\"}, \"n\": [\"secret7\", 5]}";
    let document = Document::read(Format::Json, text).unwrap();
    let masked = document.masked(&[path(&["env", "URL"])], &[]);
    assert_eq!(
        masked,
        "{\"env\": {\"TOKEN\": \"…\", \"URL\": \"https://…@gw.example/v1\"}, \"n\": [\"…\", …]}"
    );
}

/// Texts with comments, blanks and line ends of all kinds.
fn json_text() -> impl Strategy<Value = String> {
    let blank = prop_oneof![
        Just(String::new()),
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n\t".to_owned()),
        Just(" // note, \"x\": {\n".to_owned()),
        Just("/* , } */".to_owned()),
    ];
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("\"a\\\"b\"".to_owned()),
        Just("null".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("\"\u{4f60}\"".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let item = (inner, blank.clone(), blank.clone());
        (proptest::collection::vec(item, 0..3), any::<bool>(), any::<bool>()).prop_map(
            |(items, is_list, comma)| {
                let keys = ["a", "env", "claudeCode.environmentVariables"];
                let key = |at: usize| if is_list { String::new() } else { format!("\"{}\":", keys[at]) };
                let item = |(at, (value, before, after)): (usize, &(String, String, String))| {
                    format!("{before}{}{before}{value}{after}", key(at))
                };
                let inside: Vec<String> = items.iter().enumerate().map(item).collect();
                let comma = if comma && !items.is_empty() { "," } else { "" };
                let (open, close) = if is_list { ("[", "]") } else { ("{", "}") };
                format!("{open}{}{comma}{close}", inside.join(","))
            },
        )
    })
}

fn toml_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a = 1"),
        Just("# [relay]"),
        Just(""),
        Just("  b.c = \"x\" # y"),
        Just("d = '''\n[relay]\nopenai_base_url = 1\n'''"),
        Just("openai_base_url = \"https://gw.example\""),
        Just("[relay]"),
        Just("[relay] # z"),
        Just("port = 1"),
        Just("[[relay.x]]"),
        Just("[e]"),
    ];
    (proptest::collection::vec(line, 0..8), any::<bool>(), any::<bool>()).prop_map(|(lines, crlf, ended)| {
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

fn env_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("A=1"),
        Just("# OPENAI_BASE_URL=x"),
        Just(""),
        Just("export OPENAI_BASE_URL = 'https://gw.example' # x"),
        Just("B=\"x\ny\""),
        Just("nonsense"),
        Just("  C = d # e"),
    ];
    (proptest::collection::vec(line, 0..6), any::<bool>()).prop_map(|(lines, crlf)| {
        let text = lines.join("\n");
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

/// What must hold for any text and any edit of it between: what is put in comes out again byte for byte, and an edit in
/// between is kept whatever undo does.
fn holds(case: &Case<'_>, before: &str, (at, edit): (usize, &str)) {
    let Ok(document) = Document::read(case.format, before) else { return };
    let path = path(case.steps);
    let value = Value::from(ADDRESS);
    let Ok((after, splice)) = document.put(&path, &value, case.comment) else { return };
    if document.get(&path).ok().flatten() == Some(&value) {
        return;
    }
    assert_eq!(after.get(&path).unwrap(), Some(&value));
    assert_eq!(case.back(before, &splice, after.text()).unwrap(), before, "{before:?}");
    // An edit by somebody else, anywhere.
    let at = (0..=at % (after.text().len() + 1)).rev().find(|at| after.text().is_char_boundary(*at)).unwrap();
    let mut edited = after.text().to_owned();
    edited.insert_str(at, edit);
    let Ok(theirs) = Document::read(case.format, &edited) else { return };
    if theirs.get(&path).ok().flatten() != Some(&value) {
        return;
    }
    let Ok(left) = case.back(before, &splice, &edited) else { return };
    let (mut now, old) =
        (Document::read(case.format, &left).unwrap().root.said(), document.get(&path).unwrap());
    // All that they have stays, but for this key and what was made for it.
    let mut expected = changed(theirs.root.said(), &path, old).unwrap();
    for level in (1..path.len()).rev() {
        expected = pruned(expected.clone(), &path[..level]).unwrap_or(expected);
        now = pruned(now.clone(), &path[..level]).unwrap_or(now);
    }
    assert_eq!(now, expected, "{edited:?}");
}

const EDITS: [&str; 9] =
    ["\n", " ", "# x\n", "// x\n", ", \"z\": 1", "\"z\": 1,", "z = 1\n", "\nZ=1\n", "/* } */"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn json_comes_back(text in json_text(), at in any::<usize>(), edit in 0..EDITS.len()) {
        holds(&CLAUDE, &text, (at, EDITS[edit]));
        holds(&CODE, &text, (at, EDITS[edit]));
    }

    #[test]
    fn toml_comes_back(text in toml_text(), at in any::<usize>(), edit in 0..EDITS.len()) {
        holds(&TOML, &text, (at, EDITS[edit]));
        let port = Case { format: Format::Toml, steps: &["relay", "port"], comment: "# ours" };
        holds(&port, &text, (at, EDITS[edit]));
    }

    #[test]
    fn env_files_come_back(text in env_text(), at in any::<usize>(), edit in 0..EDITS.len()) {
        holds(&ENV, &text, (at, EDITS[edit]));
    }
}
