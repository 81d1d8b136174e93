//! Installs what the tests need into `target/test-env`: Python SDKs, LiteLLM, Codex CLI, Claude Code, Gemini CLI, opencode,
//! each pinned; and what the dashboard is built and looked at with.
//!
//! Idempotent: a folder is left alone if it works and the list of pins it was made from has not changed. Debian packages
//! are asked for only if a program is missing, and named in the message where we may not install them.

use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::{download, output, succeed, words, works};

/// (program, how to see that it works, Debian package)
type Program = (&'static str, &'static str, &'static str);

const PROGRAMS: [Program; 14] = [
    ("python3", "python3 --version", "python3"),
    ("python3 -m venv", "python3 -c 'import ensurepip,venv'", "python3-venv"),
    ("node", "node --version", "nodejs"),
    ("npm", "npm --version", "npm"),
    ("openssl", "openssl version", "openssl"),
    ("ip", "ip -Version", "iproute2"),
    ("unshare", "unshare --version", "util-linux"),
    ("tmux", "tmux -V", "tmux"),
    ("chromium", "chromium --version", "chromium"),
    ("curl", "curl --version", "curl"),
    ("zsh", "zsh --version", "zsh"),
    ("fish", "fish --version", "fish"),
    ("mandoc", "command -v mandoc", "mandoc"),
    ("groff", "groff --version", "groff"),
];

/// Start and check services there.
const SYSTEMD: [Program; 2] = [
    ("systemd-socket-activate", "systemd-socket-activate --version", "systemd"),
    ("systemd-analyze", "systemd-analyze --version", "systemd"),
];

/// What the SDKs are imported by.
const SDKS: &str = "openai, anthropic, google.genai, ollama, websockets, wsproto";

/// LiteLLM's proxy, apart because it wants other versions. Of its extra `proxy` there is what it needs to start and to
/// translate, and not what is for clouds, data bases and reports.
const GATEWAY: &str = "litellm.proxy.proxy_server, nacl";

/// Holds files against their schema.
const LINTER: &str = "check_jsonschema";

/// What builds and tests the package for Python, apart: the wheel of the day is installed into it. Its folder in the test
/// environment, and in that the source of `requests`, whose own tests are run.
pub(crate) const PACKAGE: &str = "package";
pub(crate) const REQUESTS: &str = "requests-source";
const PACKAGE_TOOLS: &str = "httpx, httpx2, openai, anthropic, mypy, pytest, pytest_httpbin, trustme";

/// Counts instructions; apart, since it is not to be had on every system.
const VALGRIND: Program = ("valgrind", "valgrind --tool=callgrind --version", "valgrind");

/// Installs everything and returns the folder.
pub(crate) fn install(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/test-env");
    let pins = root.join("tests/clients");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    debian_packages(root, &PROGRAMS)?;
    if cfg!(target_os = "linux") {
        debian_packages(root, &SYSTEMD)?;
        valgrind(root)?;
    }
    python_packages(&pins.join("requirements.txt"), &folder.join("python"), SDKS)?;
    python_packages(&pins.join("gateway-requirements.txt"), &folder.join("gateway"), GATEWAY)?;
    python_packages(&pins.join("lint-requirements.txt"), &folder.join("lint"), LINTER)?;
    package_tools(&root.join("python/tests"), &folder.join(PACKAGE))?;
    node_packages(&pins, &folder.join("node"))?;
    dashboard_packages(&root.join("dashboard"))?;
    Ok(folder)
}

/// Sees to it that there is a valgrind.
pub(crate) fn valgrind(root: &Path) -> Result<()> {
    debian_packages(root, &[VALGRIND])
}

fn debian_packages(root: &Path, programs: &[Program]) -> Result<()> {
    let missing: Vec<_> = programs.iter().filter(|(_, test, _)| !works(&mut shell(root, test))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs = missing.iter().map(|(program, ..)| *program).collect::<Vec<_>>().join(", ");
    let packages = missing.iter().map(|(.., package)| *package).collect::<Vec<_>>().join(" ");
    let hint =
        format!("the tests need {programs}\nhint: install them, on Debian with: apt-get install {packages}");
    if !works(&mut words(root, "apt-get --version")) {
        bail!(hint);
    }
    let Some(as_root) = as_root(root) else { bail!(hint) };
    download(|| words(root, &format!("{as_root} apt-get update -q"))).context(hint.clone())?;
    // Under `sudo` a variable reaches the program only this way.
    let install = format!("{as_root} env DEBIAN_FRONTEND=noninteractive apt-get install -q -y");
    download(|| words(root, &format!("{install} --no-install-recommends {packages}"))).context(hint)
}

/// What to write before a command that only root may run: nothing for root, `sudo` where it asks for no password.
fn as_root(root: &Path) -> Option<&'static str> {
    let is_root = output(&mut words(root, "id -u")).is_ok_and(|id| id.trim() == "0");
    if is_root {
        return Some("");
    }
    works(&mut words(root, "sudo -n true")).then_some("sudo -n")
}

/// A virtual environment with the pinned packages and all that they depend on, seen to import `modules`.
fn python_packages(list: &Path, folder: &Path, modules: &str) -> Result<()> {
    if is_made_from(folder, list)? && works(Command::new(folder.join("bin/python")).arg("--version")) {
        return Ok(());
    }
    start_afresh(folder)?;
    succeed(words(folder, "python3 -m venv").arg(folder))?;
    download(|| {
        let mut command = Command::new(folder.join("bin/python"));
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"]);
        command.arg(list);
        command
    })?;
    let mut trial = Command::new(folder.join("bin/python"));
    trial.arg("-c").arg(format!("import {modules}")).env("HOME", folder.join("home"));
    // LiteLLM asks for its list of prices otherwise.
    succeed(trial.env("LITELLM_LOCAL_MODEL_COST_MAP", "True"))?;
    mark_made_from(folder, list)
}

/// What the package for Python is built and tested with; the wheels that it needs where there is no network; and the source
/// distribution of `requests`.
fn package_tools(pins: &Path, folder: &Path) -> Result<()> {
    let list = pins.join("requirements.txt");
    python_packages(&list, folder, PACKAGE_TOOLS)?;
    let (wheels, source) = (folder.join("wheels"), folder.join(REQUESTS));
    let needs = fs::read_to_string(pins.join("runtime-requirements.txt"))?;
    let requests = needs.lines().find(|line| line.starts_with("requests==")).context("no pin of requests")?;
    if fs::read_to_string(folder.join("wheels-of")).is_ok_and(|made| made == needs) && source.exists() {
        return Ok(());
    }
    let pip = |line: &str| {
        let python = folder.join("bin/python");
        words(
            pins,
            &format!(
                "{} -m pip download --quiet --disable-pip-version-check --no-deps {line}",
                python.display()
            ),
        )
    };
    download(|| {
        let mut command = pip("-r runtime-requirements.txt --dest");
        command.arg(&wheels);
        command
    })?;
    let archives = folder.join("archives");
    download(|| {
        let mut command = pip(&format!("--no-binary requests {requests} --dest"));
        command.arg(&archives);
        command
    })?;
    let version = requests.trim_start_matches("requests==");
    let archive = archives.join(format!("requests-{version}.tar.gz"));
    fs::create_dir_all(&source)?;
    succeed(words(&source, "tar --strip-components=1 -xzf").arg(archive))?;
    fs::write(folder.join("wheels-of"), needs).context("cannot mark the wheels")
}

/// Codex CLI, Claude Code, Gemini CLI and opencode, as the lock file names them. All but Gemini CLI are native programs inside npm
/// packages. Install scripts are left out: those of Gemini CLI compile what its tests here do without.
fn node_packages(pins: &Path, folder: &Path) -> Result<()> {
    let lock = pins.join("package-lock.json");
    if is_made_from(folder, &lock)? && works(&mut at_home_here(folder, "codex")) {
        return Ok(());
    }
    start_afresh(folder)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(pins.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    // Not `npm ci`: it refuses a lock that lacks what a client has for other systems, and no registry has to have all of
    // that. What is in the lock is installed as it is there.
    download(|| {
        words(folder, "npm install --ignore-scripts --no-audit --no-fund --no-progress --loglevel=error")
    })?;
    program_in_place(folder, "claude", ("@anthropic-ai/claude-code", "install.cjs"))?;
    program_in_place(folder, "opencode", ("opencode-ai", "postinstall.mjs"))?;
    for program in ["codex", "claude", "gemini", "opencode"] {
        let version = output(&mut at_home_here(folder, program))?;
        ensure!(!version.trim().is_empty(), "{program} --version says nothing");
    }
    mark_made_from(folder, &lock)
}

/// What the dashboard is built and tested with, as its lock file names it. No install script runs: a browser comes with
/// the system's packages.
fn dashboard_packages(folder: &Path) -> Result<()> {
    let (lock, modules) = (folder.join("package-lock.json"), folder.join("node_modules"));
    if is_made_from(&modules, &lock)? {
        return Ok(());
    }
    download(|| {
        words(folder, "npm ci --ignore-scripts --no-audit --no-fund --no-progress --loglevel=error")
    })?;
    mark_made_from(&modules, &lock)
}

/// Some packages put their program in place in an install script.
fn program_in_place(folder: &Path, program: &str, (package, script): (&str, &str)) -> Result<()> {
    if works(&mut at_home_here(folder, program)) {
        return Ok(());
    }
    succeed(words(&folder.join("node_modules").join(package), "node").arg(script))
}

/// `PROGRAM --version` with a home of its own, since these clients write to the user's at any start.
fn at_home_here(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(folder.join("node_modules/.bin").join(program));
    command.arg("--version").current_dir(folder).env("HOME", folder.join("home"));
    command.env("CODEX_HOME", folder.join("home")).env("CLAUDE_CONFIG_DIR", folder.join("home"));
    command
}

fn shell(folder: &Path, line: &str) -> Command {
    let mut command = words(folder, "sh -c");
    command.arg(line);
    command
}

/// The mark is a copy of the list, written when all of it was installed and seen to start.
fn is_made_from(folder: &Path, list: &Path) -> Result<bool> {
    let wanted = fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
    Ok(fs::read(folder.join("made-from")).is_ok_and(|made| made == wanted))
}

fn mark_made_from(folder: &Path, list: &Path) -> Result<()> {
    fs::copy(list, folder.join("made-from")).with_context(|| format!("cannot mark {}", folder.display()))?;
    Ok(())
}

fn start_afresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder.join("home")).with_context(|| format!("cannot make {}", folder.display()))
}
