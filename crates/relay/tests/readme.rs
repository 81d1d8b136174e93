//! What README.md, CONTRIBUTING.md and `docs/` say is true: examples load, tables equal the code, links lead
//! somewhere, and the program has the flags and exit codes that are shown.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use relay_core::Profile;
use relay_core::config::{Config, shipped_profiles};
use steady_relay::credential::{Verdict, judge};
use steady_relay::settings::{Flags, NO_VARIABLES, load};

const README: &str = include_str!("../../../README.md");

/// Flags of other programs that the README shows.
const FOREIGN: [&str; 3] = ["--locked", "--path", "--release"];

/// Files that links may name although they, or the tests in them, are not there: they come with those tests.
const EXPECTED: [&str; 3] = ["budget.rs", "leaks.rs", "world.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The settings that `text` makes as the file, or all that is wrong with it.
fn settings(text: &str) -> Result<Config, String> {
    let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
    let loaded = load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec()));
    loaded.map(|loaded| loaded.config).map_err(|error| error.to_string())
}

/// The rows of the first table under a heading, without its line of dashes and without backticks.
fn table(heading: &str) -> Vec<Vec<String>> {
    let (_, section) = README.split_once(&format!("# {heading}\n")).unwrap_or_default();
    let cells = |line: &str| {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|').replace('`', "");
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .filter(|line| !line.starts_with("|---"))
        .map(cells)
        .collect()
}

/// The program, told nothing by the surroundings of the test.
fn program(args: &[&str]) -> Output {
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nowhere");
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STEADY_RELAY_") {
            command.env_remove(name);
        }
    }
    for name in ["PORT", "UPSTREAM_URL", "SSL_CERT_FILE"] {
        command.env_remove(name);
    }
    for name in ["HOME", "XDG_CONFIG_HOME", "APPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
        command.env(name, &nowhere);
    }
    command.env("LC_ALL", "C").args(args).output().expect("the program was built before its tests")
}

/// README.md, in both languages, CONTRIBUTING.md and `docs/`.
fn pages() -> Vec<PathBuf> {
    let docs =
        std::fs::read_dir(root().join("docs")).into_iter().flatten().flatten().map(|entry| entry.path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    ["README.md", "README.zh.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .into_iter()
        .chain(docs)
        .collect()
}

#[test]
fn every_toml_example_can_be_copied_as_it_is() {
    let mut shown = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap().replace("\r\n", "\n");
        for example in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let config = settings(example).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            assert_ne!(config, Config::default(), "{}: {example} sets nothing", page.display());
            let switched_off =
                |line: &str| line.starts_with("# [") || line.starts_with('#') && line.contains(" = ");
            assert!(!example.lines().any(switched_off), "{}: {example} is not in force", page.display());
            shown.push(page.file_name().unwrap().to_owned());
        }
    }
    for (page, least) in [("README.md", 1), ("rules.md", 2)] {
        assert!(
            shown.iter().filter(|name| *name == page).count() >= least,
            "{page} shows no settings: {shown:?}"
        );
    }
}

#[test]
fn the_table_of_profiles_has_the_numbers_of_the_code() {
    let table = table("Profiles");
    let [names, rows @ ..] = table.as_slice() else { panic!("no table of profiles") };
    let shown: BTreeSet<&String> = names.iter().skip(1).collect();
    let shipped = shipped_profiles();
    assert_eq!(shown, shipped.keys().collect());
    for (column, name) in names.iter().enumerate().skip(1) {
        // The cells are values of the settings, so settings can read them.
        let mut text = "[profile.shown]\nbased_on = \"interactive\"\n".to_owned();
        for row in rows.iter().filter(|row| row[0] != "in the gate") {
            let value = &row[column];
            let bare = value == "true" || value == "false" || value.parse::<f64>().is_ok();
            let value = if bare { value.clone() } else { format!("\"{value}\"") };
            text += &format!("{} = {value}\n", row[0]);
        }
        let config = settings(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let shown = config.profiles.get("shown").unwrap();
        let shipped = &shipped[name];
        // Whoever writes the curves down has no gate, and the preset of the profile that it stands on.
        let written = Profile { gate: None, gated_sends: None, preset: shown.preset, ..shipped.clone() };
        assert_eq!(shown, &written, "{name}");
        let in_gate = match (shipped.gate, shipped.most_sends()) {
            (None, _) => "-".to_owned(),
            (Some(_), None) => "unlimited".to_owned(),
            (Some(_), Some(sends)) => sends.to_string(),
        };
        let row = rows.iter().find(|row| row[0] == "in the gate").unwrap();
        assert_eq!(row[column], in_gate, "{name}");
    }
}

/// The links of a page that are paths: what is shown, and the file that is meant.
fn links(page: &Path) -> Vec<(String, PathBuf)> {
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let folder = page.parent().unwrap_or(page);
    let starts = text.match_indices("](").map(|(at, _)| at);
    let link = |at: usize| {
        let shown = text[..at].rsplit('[').next()?.trim_matches('`');
        let target = text[at + 2..].split([')', '#']).next()?;
        let is_path = !target.is_empty() && !target.contains("://");
        is_path.then(|| (shown.to_owned(), folder.join(target)))
    };
    starts.filter_map(link).collect()
}

fn is_expected(file: &Path) -> bool {
    EXPECTED.iter().any(|name| file.ends_with(name))
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let links: Vec<_> = pages().iter().flat_map(|page| links(page)).collect();
    assert!(links.len() > 20, "links are not found any more");
    let broken: Vec<_> = links.iter().filter(|(_, file)| !file.exists() && !is_expected(file)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_promise_is_the_name_of_a_test() {
    let links = links(&root().join("README.md"));
    let promises: Vec<_> = links.iter().filter(|(shown, _)| shown.starts_with("never_")).collect();
    assert_eq!(promises.len(), 6);
    for (name, file) in promises.into_iter().filter(|(_, file)| !is_expected(file)) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("fn {name}")), "no test {name} in {}", file.display());
    }
}

#[test]
fn the_help_knows_every_flag_and_variable_that_is_shown() {
    let pages: [&[&str]; 6] = [
        &["--help"],
        &["demo", "--help"],
        &["setup", "--help"],
        &["config", "show", "--help"],
        &["stats", "--help"],
        &["replay", "--help"],
    ];
    let help: String = pages.map(|words| String::from_utf8(program(words).stdout).unwrap()).concat();
    let words: BTreeSet<&str> = README
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '_')
        .filter(|word| {
            let flag = word.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphabetic));
            flag && !FOREIGN.contains(word) || word.starts_with("STEADY_RELAY_")
        })
        .collect();
    assert!(words.contains("--upstream") && words.contains("STEADY_RELAY_TOKEN"), "{words:?}");
    let unknown: Vec<_> = words.iter().filter(|word| !help.contains(**word)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not in\n{help}");
}

/// A credential as the table writes it: `…` stands for any letters, and what is in braces for the claims of a JWT.
fn credential(example: &str) -> String {
    let letters = example.replace('…', "Ab1");
    if example.starts_with('{') {
        relay_sim::fixtures::openai_jwt(&serde_json::from_str(example).expect("the claims are JSON"))
    } else {
        letters
    }
}

#[test]
fn the_table_of_credentials_is_what_the_relay_recognises() {
    let rows = table("Recognised credentials");
    let mut goes_to = BTreeSet::new();
    for row in rows.iter().skip(1) {
        let [_, examples, to] = row.as_slice() else { panic!("{row:?}") };
        goes_to.insert(to.as_str());
        for example in examples.split(", ") {
            let mut headers = http::HeaderMap::new();
            headers.insert("authorization", format!("Bearer {}", credential(example)).parse().unwrap());
            match judge(&headers, "/v1/responses") {
                Verdict::One(issuer) => assert_eq!(to, issuer.upstream(), "{example}"),
                Verdict::Unknown { .. } => assert!(to.starts_with("nowhere: a 400"), "{example}"),
                verdict @ (Verdict::None | Verdict::Disagree { .. }) => panic!("{example}: {verdict:?}"),
            }
        }
    }
    let shipped = Config::default();
    let names: BTreeSet<_> = shipped.upstreams.keys().map(String::as_str).collect();
    assert!(names.is_subset(&goes_to) && goes_to.len() == names.len() + 1, "{goes_to:?}");
}

#[test]
fn the_demo_takes_the_same_time_wherever_it_is_said() {
    let help = String::from_utf8(program(&["demo", "--help"]).stdout).unwrap();
    let page = include_str!("../../../docs/demo.md");
    let times = |text: &str| -> BTreeSet<u32> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let after = text.split("about ").skip(1).map(|rest| rest.split(' ').collect::<Vec<_>>());
        let seconds = |words: Vec<&str>| {
            let unit = words.get(1)?.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
            words.first()?.parse().ok().filter(|_| unit == "seconds")
        };
        after.filter_map(seconds).collect()
    };
    for (name, text) in [("demo --help", help.as_str()), ("README.md", README), ("docs/demo.md", page)] {
        assert_eq!(times(text), BTreeSet::from([8, 35]), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn the_exit_codes_are_those_of_the_table() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let settings = file("misspelt.toml", "[relay]\nprot = 1\n");
    // Named like a client, and no program.
    let plain = file("codex", "not a program");
    let missing = folder.join("nowhere/codex").into_os_string().into_string().unwrap();
    let rows: [(i32, &[&str]); 6] = [
        (0, &["--version"]),
        (1, &["--port", &port]),
        (2, &["--no-such-flag"]),
        (2, &["--config", &settings]),
        (126, &["run", "--", &plain]),
        (127, &["run", "--", &missing]),
    ];
    for (code, args) in rows {
        let ended = program(args);
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    let documented: BTreeSet<i32> =
        table("Exit codes").iter().filter_map(|row| row.first()?.parse().ok()).collect();
    assert_eq!(documented, rows.iter().map(|(code, _)| *code).collect());
}
