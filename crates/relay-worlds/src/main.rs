//! Plays the worlds and prints the tables.
//!
//! ```text
//! cargo xtask simulate                          every target, and an own server
//! cargo xtask simulate --check                  fails where a target is missed
//! cargo xtask simulate --service U1 --without random
//! cargo xtask simulate policies --clients 10-agents --service U2-overload-p1
//! ```
#![expect(clippy::print_stdout, reason = "the tables are what was asked for")]
#![expect(clippy::print_stderr, reason = "what goes wrong is for the terminal it was started from")]

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::ops::Range;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use relay_core::gate::{Preset, Rules};
use relay_worlds::clients::Clients;
use relay_worlds::gate_policy::Setup;
use relay_worlds::jobs::{Job, play_all};
use relay_worlds::measure::{Cell, Figure};
use relay_worlds::table::{Cells, Key, Table, Verdict, Wanted};
use serde_json::{Value, json};

/// Plays the capacity gate in virtual time against services that run short, beside other policies, and holds it
/// against its targets.
///
/// One seed gives the same run on every machine. Waits are means over requests that were served, in seconds; a request
/// waits from its coming until it is sent for the last time.
#[derive(Debug, Parser)]
#[command(name = "relay-worlds", max_term_width = 110)]
struct Cli {
    /// What to print; without one: capacity, intermittent and own.
    #[arg(value_enum)]
    tables: Vec<TableName>,
    /// The first seed.
    #[arg(long, default_value_t = 70_000)]
    seed: u64,
    /// How many seeds each cell is played with.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// These clients alone.
    #[arg(long, value_name = "NAME", value_parser = clients)]
    clients: Option<Clients>,
    /// Services alone whose name contains this, as in U2 or R-random.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Take a part out of the gate; may stand several times.
    #[arg(long, value_enum, value_name = "PART")]
    without: Vec<PartName>,
    /// How hard the gate's calls ask.
    #[arg(long, value_enum, default_value_t = PresetName::Interactive)]
    preset: PresetName,
    /// Fail where a target is missed that is not known to be.
    #[arg(long)]
    check: bool,
    /// Print everything that was measured as one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// Services that are short of capacity or limit the rate, with targets.
    Capacity,
    /// Services that refuse now one and now another, with targets.
    Intermittent,
    /// An own server that queues what it cannot run.
    Own,
    /// Outages of a quarter of an hour, and clients with an hour of patience.
    Long,
    /// Every policy on every service, in detail.
    Policies,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartName {
    /// A call of our own that ends frees its place for the next.
    Completions,
    /// How many ran when the lane was full.
    #[value(alias = "remembered-limit")]
    Room,
    /// A lane that refuses at random stays open.
    Random,
    /// A rate limit is paced, not shut out.
    Rate,
    /// A send that stays silent for too long shuts the lane.
    Suspicion,
    /// The lane learns how long it takes to recover.
    Recovery,
    /// A send that outlives every usual refusal counts as accepted.
    Presumption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresetName {
    /// A person waits.
    Interactive,
    /// Nobody waits for a single call.
    Batch,
    /// As few wasted sends as can be.
    Strict,
}

fn clients(name: &str) -> Result<Clients, String> {
    let names = || Clients::ALL.map(Clients::name).join(", ");
    let found = Clients::ALL.into_iter().find(|clients| clients.name() == name);
    found.ok_or_else(|| format!("there are {}", names()))
}

impl Cli {
    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self
            .tables
            .iter()
            .map(|name| match name {
                TableName::Capacity => Table::Capacity,
                TableName::Intermittent => Table::Intermittent,
                TableName::Own => Table::Own,
                TableName::Long => Table::Long,
                TableName::Policies => Table::Policies,
            })
            .collect();
        if tables.is_empty() {
            tables = vec![Table::Capacity, Table::Intermittent, Table::Own];
        }
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn wanted(&self) -> Wanted {
        let mut rules = Rules::default();
        for part in &self.without {
            let there = match part {
                PartName::Completions => &mut rules.completions,
                PartName::Room => &mut rules.room,
                PartName::Random => &mut rules.random,
                PartName::Rate => &mut rules.rate,
                PartName::Suspicion => &mut rules.suspicion,
                PartName::Recovery => &mut rules.recovery,
                PartName::Presumption => &mut rules.presumption,
            };
            *there = false;
        }
        let preset = match self.preset {
            PresetName::Interactive => Preset::Interactive,
            PresetName::Batch => Preset::Batch,
            PresetName::Strict => Preset::Strict,
        };
        Wanted { clients: self.clients, service: self.service.clone(), gate: Setup { preset, rules } }
    }

    const fn seeds(&self) -> Range<u64> {
        self.seed..self.seed.saturating_add(self.seeds)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    let (tables, wanted) = (cli.tables(), cli.wanted());
    let targets = tables.iter().any(|table| !table.targets(&wanted).is_empty());
    ensure!(targets || !cli.check, "there is no target among these tables, services and clients to check");
    let cells = play(&tables, &wanted, &cli.seeds())?;
    let verdicts: Vec<Verdict> = tables.iter().flat_map(|table| table.verdicts(&wanted, &cells)).collect();
    if cli.json {
        println!("{:#}", document(&cli, &cells, &verdicts));
    } else {
        println!("seeds {} to {}\n", cli.seed, cli.seeds().end.saturating_sub(1));
        for table in &tables {
            println!("{}", table.show(&wanted, &cells));
        }
        tell(&verdicts);
    }
    let failed = verdicts.iter().filter(|verdict| verdict.fails()).count();
    if cli.check && !cli.json {
        let known = verdicts.iter().filter(|it| it.target.known.is_some() && !it.misses.is_empty()).count();
        println!("{} passed, {failed} failed", verdicts.len() - failed - known);
    }
    Ok(if cli.check && failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Plays what the tables need, each cell once.
fn play(tables: &[Table], wanted: &Wanted, seeds: &Range<u64>) -> Result<Cells> {
    let cells: BTreeMap<Key, Job> = tables.iter().flat_map(|table| table.jobs(wanted)).collect();
    ensure!(!cells.is_empty(), "no service of these tables has such a name and such clients");
    let (keys, jobs): (Vec<Key>, Vec<Job>) = cells.into_iter().unzip();
    let shown = stderr().is_terminal();
    let progress = |text: &str| {
        if shown {
            // A closed terminal is no reason to stop.
            drop(stderr().write_all(text.as_bytes()));
        }
    };
    let all = jobs.len();
    let cells = play_all(&jobs, seeds, &|done| progress(&format!("\r{done} of {all} cells ")));
    progress("\r                        \r");
    Ok(keys.into_iter().zip(cells).collect())
}

/// Says what was missed, cell by cell.
fn tell(verdicts: &[Verdict]) {
    for verdict in verdicts.iter().filter(|verdict| !verdict.misses.is_empty()) {
        let Verdict { target, misses } = verdict;
        let why = target.known.map(|why| format!(" (known: {why})")).unwrap_or_default();
        println!("missed: {} x {}: {}{why}", target.service, target.clients.name(), misses.join(", "));
    }
}

fn document(cli: &Cli, cells: &Cells, verdicts: &[Verdict]) -> Value {
    let cells: Vec<Value> = cells.iter().map(|(key, cell)| measured(key, cell)).collect();
    let verdict = |verdict: &Verdict| {
        json!({
            "service": verdict.target.service,
            "clients": verdict.target.clients.name(),
            "target": verdict.target.to_string(),
            "misses": verdict.misses,
            "known": verdict.target.known,
        })
    };
    let verdicts: Vec<Value> = verdicts.iter().map(verdict).collect();
    json!({ "first_seed": cli.seed, "seeds": cli.seeds, "cells": cells, "targets": verdicts })
}

fn measured(key: &Key, cell: &Cell) -> Value {
    let figure = |figure: Figure| json!({ "mean": figure.mean, "within": figure.within });
    json!({
        "service": key.service,
        "clients": key.clients.name(),
        "policy": key.policy,
        "wait_s": figure(cell.wait),
        "p50_s": cell.median,
        "p95_s": cell.p95,
        "p99_s": cell.p99,
        "sends_per_success": figure(cell.sends),
        "served": figure(cell.success),
        "refused_a_minute": cell.refused_a_minute,
        "most_refused_in_60_s": cell.peak,
        "longest_in_means": cell.longest,
        "heaviest_session_s": cell.heavy,
        "light_sessions_s": cell.light,
        "light_sessions_p95_s": cell.light_p95,
        "cut": cell.cut,
        "early": cell.early,
    })
}
