//! Plays the wire cases on the release program, each also in the gate, and those of failover with a pool.

use crate::steps::Done;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use xtask::command::words;

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

/// Plays the wire cases, if their folder lies beside the repository: as they are, each call by itself on the curve of
/// the template, and once more in the gate, which has times of its own. Every case of level `must` or `should`
/// has to pass; those that need a feature which is not built are skipped by the runner.
pub(crate) fn check(root: &Path) -> Result<Done> {
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
}
