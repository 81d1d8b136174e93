//! The checks in their order: cheap before dear.
//!
//! Two profiles are built and no more: `dev` for the lints and the tests, `release` for everything that starts
//! the relay as a program.

use crate::steps::{Begins, Check, Done};
use crate::{bench, cases, packages, python as package, setup, steps};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::command::{cargo, output, succeed, words, works};

const CHECKS: [Check; 19] = [
    Check { name: "fmt", what: "formatting", begins: Begins::InTurn, run: fmt },
    Check { name: "clippy", what: "lints", begins: Begins::InTurn, run: clippy },
    Check { name: "doc", what: "documentation, private items too", begins: Begins::InTurn, run: doc },
    Check {
        name: "core",
        what: "the deciding core depends on nothing that acts, and the layer on no client",
        begins: Begins::InTurn,
        run: core,
    },
    Check { name: "setup", what: "real clients in target/test-env", begins: Begins::Early, run: setup },
    Check {
        name: "workflows",
        what: "what hosted machines do is well-formed",
        begins: Begins::InTurn,
        run: workflows,
    },
    Check {
        name: "dashboard",
        what: "the page: types, tests, and the build that is committed",
        begins: Begins::InTurn,
        run: dashboard,
    },
    Check { name: "unit", what: "tests of the workspace", begins: Begins::InTurn, run: unit },
    Check { name: "otlp", what: "the feature that is off by default", begins: Begins::InTurn, run: otlp },
    Check { name: "release", what: "the program as it is shipped", begins: Begins::Early, run: release },
    Check {
        name: "dist",
        what: "packages, installed where nothing else is",
        begins: Begins::InTurn,
        run: dist,
    },
    Check {
        name: "clients",
        what: "real clients on the release program",
        begins: Begins::InTurn,
        run: clients,
    },
    Check {
        name: "cases",
        what: "wire cases on the release program",
        begins: Begins::With("clients"),
        run: cases::check,
    },
    Check {
        name: "peers",
        what: "WebSocket peers written elsewhere, around the release program",
        begins: Begins::With("clients"),
        run: peers,
    },
    Check {
        name: "python",
        what: "the package for Python: its wheel, types and tests",
        begins: Begins::With("clients"),
        run: python,
    },
    Check {
        name: "instructions",
        what: "a request costs no more than it did",
        begins: Begins::With("clients"),
        run: instructions,
    },
    Check {
        name: "soak",
        what: "nothing grows and nothing stays open under load",
        begins: Begins::InTurn,
        run: soak,
    },
    Check {
        name: "crowd",
        what: "a crowd at a service short of capacity is served, and spares it",
        begins: Begins::InTurn,
        run: crowd,
    },
    Check {
        name: "chaos",
        what: "behind services that misbehave nothing runs twice, and nothing is lost",
        begins: Begins::InTurn,
        run: chaos,
    },
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

/// Makes a test fail that would pass untested for want of a program, all of which `setup` installs.
pub(crate) const NEEDS_TOOLS: &str = "STEADY_NEEDS_TOOLS";

/// The tests with real clients, which are run only where they are named.
const CLIENT_TESTS: &str = "--workspace --test clients";

pub(crate) fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// Runs the steps named in `only` and those that they need, or all if it is empty.
pub(crate) fn run(root: &Path, only: &[&str]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !names().contains(name)) {
        bail!("there is no step {unknown}\nsteps: {}", names().join(" "));
    }
    let wanted = |check: &&Check| {
        let needed = NEEDS.iter().any(|(step, needs)| only.contains(step) && needs.contains(&check.name));
        only.is_empty() || only.contains(&check.name) || needed
    };
    steps::run(root, &CHECKS.iter().filter(wanted).collect::<Vec<_>>())
}

/// Runs one step for a run that goes on beside it.
pub(crate) fn run_beside(root: &Path, name: &str) -> Result<()> {
    let check = CHECKS.iter().find(|check| check.name == name);
    steps::run_beside(root, check.with_context(|| format!("there is no step {name}"))?)
}

fn setup(root: &Path) -> Result<Done> {
    setup::install(root)?;
    Ok(Done::Passed)
}

fn fmt(root: &Path) -> Result<Done> {
    passed(&mut cargo(root, "fmt --all --check"))
}

fn clippy(root: &Path) -> Result<Done> {
    const ALL: &str =
        "clippy --workspace --features steady-relay/otlp,xtask/soak,xtask/dist,relay-bench/chaos";
    // The program without what can be left out of it, and with all.
    succeed(&mut cargo(root, "clippy -p steady-relay --no-default-features -- -D warnings"))?;
    succeed(&mut cargo(root, &format!("{ALL} --all-targets -- -D warnings")))?;
    passed(&mut cargo(root, &format!("{ALL} --test clients -- -D warnings")))
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

/// Checks the page and builds it anew: what is committed has to be just that.
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

/// What the feature adds: its own tests, and those of the settings that differ by it. Of the whole workspace, so that
/// what was built for the other tests serves these.
fn otlp(root: &Path) -> Result<Done> {
    const BUILT: &str = "test --workspace --features steady-relay/otlp";
    succeed(&mut cargo(root, &format!("{BUILT} --test otlp")))?;
    passed(&mut cargo(root, &format!("{BUILT} --lib -- otlp opentelemetry")))
}

fn python(root: &Path) -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::Skipped("its tests look into /proc".to_owned()));
    }
    package::check(root)?;
    Ok(Done::Passed)
}

/// Builds the program as it is shipped, and then what measures it.
fn release(root: &Path) -> Result<Done> {
    succeed(&mut cargo(root, &format!("build {}", bench::RELAY)))?;
    passed(&mut cargo(root, &format!("build {}", bench::MEASURES)))
}

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

/// Plays `websockets` and `wsproto` as clients of the release program and as the service behind it.
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
    succeed(&mut cargo(root, &format!("test {CLIENT_TESTS} --no-run")))?;
    let run = cargo(root, &format!("test {CLIENT_TESTS} --offline"));
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
        for check in &CHECKS {
            if let Begins::With(other) = check.begins {
                assert!(place(other) < place(check.name), "{}", check.name);
            }
        }
    }
}
