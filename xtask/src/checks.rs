//! The checks in their order: cheap before dear, the first failure ends the run.
//!
//! Two profiles are built and no more: `dev` for the lints and the tests, `release` for everything that starts
//! the relay as a program.

use crate::{bench, packages, python as package, setup};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::command::{cargo, output, succeed, words, works};

/// One step: its name in `--only`, what it does for a human, and the doing.
struct Check {
    name: &'static str,
    what: &'static str,
    run: fn(&Path) -> Result<Done>,
}

/// How a step ended that did not fail.
enum Done {
    Passed,
    /// It had nothing to run on; why.
    Skipped(String),
}

const CHECKS: [Check; 19] = [
    Check { name: "setup", what: "real clients in target/test-env", run: setup },
    Check { name: "fmt", what: "formatting", run: fmt },
    Check { name: "clippy", what: "lints", run: clippy },
    Check { name: "doc", what: "documentation, private items too", run: doc },
    Check {
        name: "core",
        what: "the deciding core depends on nothing that acts, and the layer on no client",
        run: core,
    },
    Check { name: "workflows", what: "what hosted machines do is well-formed", run: workflows },
    Check {
        name: "dashboard",
        what: "the page: types, tests, and the build that is committed",
        run: dashboard,
    },
    Check { name: "unit", what: "tests of the workspace", run: unit },
    Check { name: "otlp", what: "the feature that is off by default", run: otlp },
    Check { name: "python", what: "the package for Python: its wheel, types and tests", run: python },
    Check { name: "release", what: "the program as it is shipped", run: release },
    Check { name: "dist", what: "packages, installed where nothing else is", run: dist },
    Check { name: "cases", what: "wire cases on the release program", run: cases },
    Check {
        name: "peers",
        what: "WebSocket peers written elsewhere, around the release program",
        run: peers,
    },
    Check { name: "soak", what: "nothing grows and nothing stays open under load", run: soak },
    Check { name: "instructions", what: "a request costs no more than it did", run: instructions },
    Check {
        name: "crowd",
        what: "a crowd at a service short of capacity is served, and spares it",
        run: crowd,
    },
    Check {
        name: "chaos",
        what: "behind services that misbehave nothing runs twice, and nothing is lost",
        run: chaos,
    },
    Check { name: "clients", what: "real clients on the release program", run: clients },
];

/// Steps that a later one cannot do without.
const NEEDS: [(&str, &[&str]); 8] = [
    ("workflows", &["setup"]),
    ("python", &["setup"]),
    ("dashboard", &["setup"]),
    ("dist", &["release"]),
    ("cases", &["release"]),
    ("peers", &["setup", "release"]),
    ("soak", &["release"]),
    ("clients", &["setup", "release"]),
];

/// What may not be reached from the libraries: from the core whatever acts, tells the time, rolls dice or writes logs;
/// from the layer a client, a runtime that opens sockets, or the relay.
const NOT_IN: [(&str, &[&str]); 2] = [
    ("relay-core", &["tokio", "hyper", "tracing", "rand"]),
    ("steady-relay-tower", &["hyper", "mio", "rustls", "steady-relay", "tracing"]),
];

/// How the runner of the wire cases starts the relay; `RELAY` and `REPOSITORY` are filled in here,
/// `{config}` and `{envfile}` by the runner.
const CASES: Playing = Playing {
    relay: "'RELAY' serve --config {config} --env-file {envfile} --gate",
    runner: "--env-template REPOSITORY/tests/cases/env.tmpl --features tls,slow-attempt,h2,envfile,logfile,ws,ws-retry",
};
/// The same for cases with two upstreams, which an env file would make one.
const FAILOVER: Playing =
    Playing { relay: "'RELAY' serve --config {config} --gate", runner: "--features failover" };

/// How cases are played: what starts the relay, and what the runner is told.
struct Playing {
    relay: &'static str,
    runner: &'static str,
}

/// Makes a test fail that would pass untested for want of a program, all of which `setup` installs.
pub(crate) const NEEDS_TOOLS: &str = "STEADY_NEEDS_TOOLS";

/// The feature that builds the tests with real clients.
const CLIENT_TESTS: &str = "--workspace --features steady-relay/client-tests";

pub(crate) fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// Runs the steps named in `only`, or all of them if it is empty.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
pub(crate) fn run(root: &Path, only: &[&str]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !names().contains(name)) {
        bail!("there is no step {unknown}\nsteps: {}", names().join(" "));
    }
    let wanted = |check: &&Check| {
        let needed = NEEDS.iter().any(|(step, needs)| only.contains(step) && needs.contains(&check.name));
        only.is_empty() || only.contains(&check.name) || needed
    };
    let mut report = Vec::new();
    for check in CHECKS.iter().filter(wanted) {
        eprintln!("\n== {}: {}", check.name, check.what);
        let start = Instant::now();
        let ended = (check.run)(root);
        report.push(line(check.name, &ended, start.elapsed()));
        if let Err(error) = ended {
            eprintln!("\n{}", report.join("\n"));
            return Err(error.context(format!("step {} failed", check.name)));
        }
    }
    eprintln!("\n{}", report.join("\n"));
    Ok(())
}

fn line(name: &str, ended: &Result<Done>, took: Duration) -> String {
    let word = match ended {
        Ok(Done::Passed) => "ok".to_owned(),
        Ok(Done::Skipped(why)) => format!("skipped: {why}"),
        Err(_) => "FAILED".to_owned(),
    };
    format!("{name:<12} {:>7.1} s  {word}", took.as_secs_f64())
}

fn setup(root: &Path) -> Result<Done> {
    setup::install(root)?;
    Ok(Done::Passed)
}

fn fmt(root: &Path) -> Result<Done> {
    passed(&mut cargo(root, "fmt --all --check"))
}

fn clippy(root: &Path) -> Result<Done> {
    // The program without what can be left out of it.
    succeed(&mut cargo(root, "clippy -p steady-relay --no-default-features -- -D warnings"))?;
    passed(&mut cargo(
        root,
        &format!(
            "clippy {CLIENT_TESTS},xtask/soak,xtask/dist,relay-bench/chaos --all-targets -- -D warnings"
        ),
    ))
}

fn doc(root: &Path) -> Result<Done> {
    let mut command = cargo(root, "doc --workspace --no-deps --document-private-items");
    passed(command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

fn core(root: &Path) -> Result<Done> {
    for (name, forbidden) in NOT_IN {
        let line = format!("tree -p {name} -e normal --prefix none --locked");
        let tree = output(&mut cargo(root, &line))?;
        let crates: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let found: Vec<_> = forbidden.iter().filter(|name| crates.contains(name)).collect();
        ensure!(found.is_empty(), "{name} depends on {found:?}\n{tree}");
    }
    Ok(Done::Passed)
}

/// Checks the page and builds it anew: what is committed has to be just that.
/// Holds the workflows of hosted machines, which cannot run here, against the schema of their language.
fn workflows(root: &Path) -> Result<Done> {
    let checker = root.join("target/test-env/lint/bin/check-jsonschema");
    let mut check = Command::new(checker);
    check.current_dir(root).args(["--builtin-schema", "vendor.github-workflows"]);
    for entry in fs::read_dir(root.join(".github/workflows")).context("there are workflows")? {
        check.arg(entry?.path());
    }
    passed(&mut check)
}

fn dashboard(root: &Path) -> Result<Done> {
    let page = root.join("dashboard");
    let built = root.join("target/dashboard");
    succeed(&mut words(&page, "npm run --silent check"))?;
    succeed(&mut words(&page, "npm run --silent test"))?;
    let mut build = words(&page, "npm run --silent build -- --emptyOutDir --outDir");
    succeed(build.arg(&built))?;
    let differ = differing(&built, &page.join("dist"))?;
    ensure!(
        differ.is_empty(),
        "dashboard/dist is not what its sources make: {}\nhint: `npm run build` in dashboard/, and commit what it changes",
        differ.join(", ")
    );
    Ok(Done::Passed)
}

/// The files of two folders that are in one alone, or not the same.
fn differing(one: &Path, other: &Path) -> Result<Vec<String>> {
    let names = |folder: &Path| -> Result<BTreeSet<String>> {
        let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        read.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect()
    };
    let all = &names(one)? | &names(other)?;
    let same = |name: &String| {
        fs::read(one.join(name))
            .is_ok_and(|bytes| fs::read(other.join(name)).is_ok_and(|there| there == bytes))
    };
    Ok(all.into_iter().filter(|name| !same(name)).collect())
}

fn unit(root: &Path) -> Result<Done> {
    passed(cargo(root, "test --workspace").env(NEEDS_TOOLS, "1"))
}

/// What the feature adds: its own tests, and those of the settings that differ by it.
fn otlp(root: &Path) -> Result<Done> {
    succeed(&mut cargo(root, "clippy -p steady-relay --features otlp --all-targets -- -D warnings"))?;
    succeed(&mut cargo(root, "test -p steady-relay --features otlp --test otlp"))?;
    passed(&mut cargo(root, "test -p steady-relay --features otlp --lib -- otlp opentelemetry"))
}

fn python(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("its tests look into /proc".to_owned()));
    }
    package::check(root)?;
    Ok(Done::Passed)
}

fn release(root: &Path) -> Result<Done> {
    passed(&mut cargo(root, "build --release --locked"))
}

/// Plays the wire cases, if their folder lies beside the repository: as they are, each call by itself on the curve of
/// the template, and once more in the gate, which has times of its own. Every case of level `must` or `should`
/// has to pass; those that need a feature which is not built are skipped by the runner.
fn cases(root: &Path) -> Result<Done> {
    let cases = root.join("../shared/cases");
    if !cases.join("run.py").exists() {
        return Ok(Done::Skipped("no folder of wire cases beside the repository".to_owned()));
    }
    let template = root.join("tests/cases/relay.toml.tmpl");
    play(root, &CASES, "off", (&cases, &template))?;
    let gated = root.join("target/cases-in-the-gate");
    let in_gate = in_the_gate(&cases, &template, &gated).context("the cases of the gate")?;
    play(root, &CASES, "on", (&gated, &in_gate))?;
    let failover = root.join("target/cases-with-failover");
    let pooled = with_failover(&cases, &template, &failover).context("the cases of failover")?;
    for gate in ["off", "on"] {
        play(root, &FAILOVER, gate, (&failover, &pooled))?;
    }
    Ok(Done::Passed)
}

/// Takes the cases that need a second upstream, which the others have for a trap, and writes a template that has both in
/// a pool; where that is.
fn with_failover(cases: &Path, template: &Path, to: &Path) -> Result<PathBuf> {
    const TO_ALL: &str = "upstream = \"{upstream}\"";
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for case in fs::read_dir(cases)? {
        let path = case?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let case: Value = serde_json::from_slice(&fs::read(&path)?)?;
            let needs = case["requires"].as_array();
            if needs.is_some_and(|needs| needs.iter().any(|need| need == "failover")) {
                fs::copy(&path, to.join(path.file_name().context("a case has a name")?))?;
            }
        }
    }
    let text = fs::read_to_string(template)?;
    ensure!(text.contains(TO_ALL), "the template sends everything to no upstream");
    let pool = "\n[upstream.one]\nurl = \"{upstream}\"\n\n[upstream.two]\nurl = \"{upstream2}\"\n\n\
                [pool.both]\nmembers = [\"one\", \"two\"]\n";
    let pooled = to.join("relay.toml.tmpl");
    fs::write(&pooled, text.replace(TO_ALL, "upstream = \"both\"") + pool)?;
    Ok(pooled)
}

/// Writes the cases as they have to pass in the gate, and the template that has one; where that is.
fn in_the_gate(cases: &Path, template: &Path, to: &Path) -> Result<PathBuf> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for case in fs::read_dir(cases)? {
        let path = case?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let mut case: Value = serde_json::from_slice(&fs::read(&path)?)?;
            forget_how_long(&mut case["expect"]);
            wait_longer(&mut case);
            fs::write(to.join(path.file_name().context("a case has a name")?), case.to_string())?;
        }
    }
    // A route has the last word: the profile of the template sets a curve, and has no gate for that.
    let gated = to.join("relay.toml.tmpl");
    let route = format!("\n[[route]]\ngate = true\npatience = \"{GATED_PATIENCE_S}s\"\n");
    fs::write(&gated, fs::read_to_string(template)? + &route)?;
    Ok(gated)
}

/// How long a call of a case waits in the gate, in seconds: a crowd that comes through one after the other, a second
/// apart, needs more than the nine seconds that suffice where each waits by itself.
const GATED_PATIENCE_S: u64 = 40;

/// Gives the caller of a case, and the case, time for a wait of that length, unless it says by itself how long it waits.
fn wait_longer(case: &mut Value) {
    let longer = GATED_PATIENCE_S * 1_000 + 10_000;
    if case["client"].is_null() {
        case["client"] = json!({});
    }
    if case["client"]["timeout_ms"].is_null() {
        case["client"]["timeout_ms"] = json!(longer);
    }
    case["limit_s"] = json!(60 + longer / 1_000);
}

/// Drops what a case expects of how long the relay's own waits are at most, and of how they scatter. That none is
/// shorter than it may be stays.
fn forget_how_long(expected: &mut Value) {
    const TIMES: [&str; 5] =
        ["max_wait_ms", "max_total_ms", "max_head_ms", "max_contains_ms", "spread_ms_min"];
    match expected {
        Value::Object(checks) => {
            checks.retain(|name, _| !TIMES.contains(&name.as_str()));
            checks.values_mut().for_each(forget_how_long);
        }
        Value::Array(sets) => sets.iter_mut().for_each(forget_how_long),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Plays the cases of a folder with the gate `on` or `off`.
fn play(root: &Path, how: &Playing, gate: &str, (cases, template): (&Path, &Path)) -> Result<()> {
    let runner = root.join("../shared/cases/run.py");
    let filled = |text: &str| {
        let relay = root.join("target/release/steady-relay");
        text.replace("RELAY", &relay.to_string_lossy()).replace("REPOSITORY", &root.to_string_lossy())
    };
    let mut command = words(root, "python3");
    command.arg(&runner).arg("--cases").arg(cases).arg("--config-template").arg(template);
    command.arg("--relay-cmd").arg(format!("{} {gate}", filled(how.relay)));
    command.args(how.runner.split(' ').map(filled));
    let mut run = command.stdout(Stdio::piped()).spawn().context("cannot start python3")?;
    let lines = BufReader::new(run.stdout.take().context("the runner has a stdout")?).lines();
    let failed = failed_cases(lines.map_while(Result::ok));
    let status = run.wait().context("the runner of the wire cases")?;
    ensure!(failed.is_empty(), "wire cases failed with the gate {gate}: {}", failed.join(", "));
    ensure!(status.success(), "the runner of the wire cases ended with {status}");
    Ok(())
}

/// Shows the runner's lines and picks the cases that failed and count: `FAIL id [kind/level]: reasons`.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
fn failed_cases(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut failed = Vec::new();
    for line in lines {
        eprintln!("{line}");
        let counts = line.contains("/must]") || line.contains("/should]");
        if let Some(rest) = line.strip_prefix("FAIL ").filter(|_| counts) {
            failed.extend(rest.split_whitespace().next().map(str::to_owned));
        }
    }
    failed
}

/// Plays `websockets` and `wsproto` as clients of the release program and as the service behind it.
fn dist(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("packages are tried on Linux".to_owned()));
    }
    succeed(&mut cargo(root, "test --quiet -p xtask --features dist --bin dist"))?;
    packages::check(root, &root.join("target/release/steady-relay"))?;
    Ok(Done::Passed)
}

/// Builds what is handed out twice, from sources that lie in two places, and tries it, in an empty root as well.
pub(crate) fn dist_twice(root: &Path) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "packages are tried on Linux");
    packages::make(root, &[])?;
    let elsewhere = root.join("target/dist-elsewhere");
    if elsewhere.exists() {
        fs::remove_dir_all(&elsewhere).context("cannot clear target/dist-elsewhere")?;
    }
    succeed(words(root, "git clone --quiet . target/dist-elsewhere").env_remove("GIT_DIR"))?;
    packages::make(&elsewhere, &[])?;
    let built = format!("target/dist-build/{}/release/steady-relay", packages::triple());
    let (one, other) = (root.join(&built), elsewhere.join(&built));
    ensure!(fs::read(&one)? == fs::read(&other)?, "built in another place the program is another one");
    packages::check(root, &one)?;
    let mut empty = Command::new("python3");
    empty.current_dir(root).arg("tests/peers/empty_root.py").arg(&one);
    succeed(&mut isolated(root, &empty)?)?;
    fs::remove_dir_all(&elsewhere).context("cannot clear target/dist-elsewhere")
}

fn peers(root: &Path) -> Result<Done> {
    let python = root.join("target/test-env/python/bin/python");
    if !works(Command::new(&python).args(["-c", "import websockets, wsproto"])) {
        return Ok(Done::Skipped("no Python with websockets and wsproto in target/test-env".to_owned()));
    }
    // In a network of their own they have the right to lose a connection without a word.
    let mut play = Command::new(python);
    play.current_dir(root)
        .arg("tests/peers/websocket_peers.py")
        .arg(root.join("target/release/steady-relay"));
    passed(&mut isolated(root, &play)?)
}

/// Long enough to warm up and to see two plateaus; `cargo xtask soak` runs for longer.
const SOAK_SECONDS: u64 = 20;

fn soak(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("only Linux tells what a program holds".to_owned()));
    }
    load(root, SOAK_SECONDS)?;
    Ok(Done::Passed)
}

/// Builds the release program and keeps it under load for so long.
pub(crate) fn soak_for(root: &Path, seconds: u64) -> Result<()> {
    release(root)?;
    load(root, seconds)
}

fn load(root: &Path, seconds: u64) -> Result<()> {
    let relay = root.join("target/release/steady-relay");
    let mut command = cargo(root, "run --quiet -p xtask --features soak --bin soak --");
    succeed(command.arg(relay).arg(seconds.to_string()))
}

fn instructions(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("valgrind is asked to count on Linux only".to_owned()));
    }
    bench::instructions(root)?;
    Ok(Done::Passed)
}

fn crowd(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("only Linux tells what a program uses".to_owned()));
    }
    bench::crowd(root)?;
    Ok(Done::Passed)
}

fn chaos(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("only Linux tells what a program uses".to_owned()));
    }
    bench::chaos(root)?;
    Ok(Done::Passed)
}

/// Runs the tests with real clients in a network that has only loopback: they can reach nothing else.
fn clients(root: &Path) -> Result<Done> {
    succeed(&mut cargo(root, &format!("test {CLIENT_TESTS} --test clients --no-run")))?;
    let run = cargo(root, &format!("test {CLIENT_TESTS} --test clients --offline"));
    let mut command = isolated(root, &run)?;
    command
        .env(NEEDS_TOOLS, "1")
        .env("RUST_LIB_BACKTRACE", "0")
        .env("STEADY_CLIENTS", root.join("target/test-env"));
    command.env("STEADY_RELAY", root.join("target/release/steady-relay"));
    passed(&mut command)
}

/// A command in a network of its own, without the variables that name a proxy: one outside is no business of a client in
/// there.
fn isolated(root: &Path, run: &Command) -> Result<Command> {
    let enters = ["unshare --net", "unshare --user --map-root-user --net"];
    let Some(enter) =
        enters.iter().find(|enter| works(&mut words(root, &format!("{enter} ip link set lo up"))))
    else {
        bail!(
            "cannot make a network without an outside\nhint: run as root, or allow unprivileged user namespaces"
        )
    };
    let mut command = words(root, enter);
    command.args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(run.get_program()).args(run.get_args());
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(command)
}

fn passed(command: &mut Command) -> Result<Done> {
    succeed(command)?;
    Ok(Done::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_count_are_named() {
        let lines = [
            "PASS a [recognise/must] (3 ms)",
            "FAIL b [recognise/must]: sends 2, expected 1",
            "FAIL c [http2/may]: no",
            "FAIL d [body/should]: bytes differ",
            "SKIP e: needs h2",
        ];
        assert_eq!(failed_cases(lines.map(str::to_owned).into_iter()), ["b", "d"]);
    }

    #[test]
    fn in_the_gate_no_case_asks_how_long_a_wait_is_at_most() {
        let mut case = serde_json::json!({
            "min_wait_ms": 80, "max_wait_ms": 900, "client_status": 200,
            "any_of": [{"max_total_ms": 5000, "upstream_sends": 2}, {"relay_exit": {"within_ms": 50}}],
        });
        forget_how_long(&mut case);
        let kept = serde_json::json!({
            "min_wait_ms": 80, "client_status": 200,
            "any_of": [{"upstream_sends": 2}, {"relay_exit": {"within_ms": 50}}],
        });
        assert_eq!(case, kept);
    }

    #[test]
    fn a_file_more_or_less_or_another_one_is_a_difference() {
        let folder = std::env::temp_dir().join(format!("steady-relay-differing-{}", std::process::id()));
        let (one, other) = (folder.join("one"), folder.join("other"));
        for (place, name, text) in [
            (&one, "same", "a"),
            (&other, "same", "a"),
            (&one, "changed", "a"),
            (&other, "changed", "b"),
            (&one, "new", "a"),
            (&other, "gone", "a"),
        ] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join(name), text).unwrap();
        }
        let differ = differing(&one, &other).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(differ, ["changed", "gone", "new"]);
    }

    #[test]
    fn every_step_that_is_needed_exists_and_comes_first() {
        let place = |name: &str| CHECKS.iter().position(|check| check.name == name).unwrap();
        for (step, needs) in NEEDS {
            assert!(needs.iter().all(|need| place(need) < place(step)), "{step}");
        }
    }
}
