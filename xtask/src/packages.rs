//! The step `dist`: packages are made of the release program, installed where nothing else is, and used.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use xtask::command::{cargo, output, succeed, words, works};

use crate::python;

/// Makes the packages; `words` are those of `cargo xtask dist`.
pub(crate) fn make(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = cargo(root, "run --quiet -p xtask --features dist --bin dist --");
    succeed(command.args(words))
}

/// Makes them of this program, and tries each that this machine has the means for.
pub(crate) fn check(root: &Path, program: &Path) -> Result<()> {
    let folder = root.join("target/dist-check");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot clear target/dist-check")?;
    }
    let made = Made { out: folder.join("out"), folder };
    let again = made.folder.join("again");
    // What looks like a program of Windows: it is packed and not started.
    let pretended = made.empty("windows")?.join("steady-relay.exe");
    let mut head = [0; 80];
    // Its magic number, and where its header begins, which tells the processor.
    for (at, byte) in [(0, b'M'), (1, b'Z'), (60, 64), (68, 0x64), (69, 0x86)] {
        head[at] = byte;
    }
    fs::write(&pretended, head)?;
    let windows = "x86_64-pc-windows-msvc";
    for (target, program, out) in
        [("", program, &made.out), ("", program, &again), (windows, &*pretended, &made.out)]
    {
        let mut words = vec!["--binary", text(program)?, "--out", text(out)?];
        if !target.is_empty() {
            words.extend(["--target", target]);
        }
        make(root, &words)?;
    }
    made.sums()?;
    for name in fs::read_dir(&again)? {
        let name = name?.file_name();
        if name == "SHA256SUMS" {
            continue;
        }
        let (one, other) = (fs::read(made.out.join(&name))?, fs::read(again.join(&name))?);
        ensure!(one == other, "{} is another one the second time", name.to_string_lossy());
    }
    made.archive()?;
    made.manifests()?;
    made.sbom()?;
    made.npm()?;
    python::installs_alone(root, &made.file("steady_relay-", &format!("{}.whl", std::env::consts::ARCH))?)?;
    if works(&mut words(root, "dpkg --version")) {
        made.deb()?;
    }
    Ok(())
}

/// What was made.
struct Made {
    folder: PathBuf,
    out: PathBuf,
}

impl Made {
    /// A folder that is empty.
    fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// The one file that was made with this beginning and this end.
    fn file(&self, begins: &str, ends: &str) -> Result<PathBuf> {
        let mut found = None;
        for entry in fs::read_dir(&self.out)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(begins) && name.ends_with(ends) {
                ensure!(found.is_none(), "there are two of {begins}…{ends}");
                found = Some(path);
            }
        }
        found.with_context(|| format!("there is no {begins}…{ends}"))
    }

    fn sums(&self) -> Result<()> {
        succeed(&mut words(&self.out, "sha256sum --check --quiet SHA256SUMS"))
    }

    fn archive(&self) -> Result<()> {
        let folder = self.empty("archive")?;
        let archive = self.file("steady-relay-", &format!("{}.tar.gz", triple()))?;
        succeed(words(&folder, "tar --strip-components=1 -xzf").arg(archive))?;
        about(&folder.join("steady-relay"), "by_hand")?;
        for file in
            ["README.md", "LICENSE-MIT", "man/man1/steady-relay-run.1", "completions/zsh/_steady-relay"]
        {
            ensure!(folder.join(file).is_file(), "the archive has no {file}");
        }
        succeed(&mut words(&folder, "bash -n completions/bash/steady-relay"))
    }

    fn manifests(&self) -> Result<()> {
        let zip = self.file("steady-relay-", ".zip")?;
        let sums = fs::read_to_string(self.out.join("SHA256SUMS"))?;
        let name = zip.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = sums.lines().find(|line| line.ends_with(&name)).context("the zip has a sum")?;
        let sum = line.split_whitespace().next().unwrap_or_default();
        let scoop: Value =
            serde_json::from_str(&fs::read_to_string(self.file("steady-relay.scoop", ".json")?)?)?;
        ensure!(scoop["architecture"]["64bit"]["hash"] == sum, "Scoop is told another sum: {scoop}");
        let winget = fs::read_to_string(self.file("SteadyRelay", ".installer.yaml")?)?;
        ensure!(winget.contains(&sum.to_uppercase()), "winget is told another sum: {winget}");
        let formula = fs::read_to_string(self.file("steady-relay", ".rb")?)?;
        let tar = self.file("steady-relay-", &format!("{}.tar.gz", triple()))?;
        let url = tar.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ensure!(formula.contains(&url), "Homebrew is told of another archive: {formula}");
        // It reads a zip whole.
        let listed = output(words(&self.out, "python3 -m zipfile -l").arg(&zip))?;
        ensure!(listed.contains("steady-relay.exe") && listed.contains("LICENSE-APACHE"), "{listed}");
        Ok(())
    }

    fn sbom(&self) -> Result<()> {
        let sbom: Value = serde_json::from_str(&fs::read_to_string(
            self.file("steady-relay", &format!("{}.cdx.json", triple()))?,
        )?)?;
        let components = sbom["components"].as_array().context("it lists components")?;
        let has = |name: &str| components.iter().any(|one| one["name"] == name);
        ensure!(has("tokio") && has("rustls") && has("relay-core"), "what is linked in is missing");
        ensure!(!has("proptest") && !has("insta"), "what only tests use is listed");
        let unlicensed = components.iter().filter(|one| one["licenses"][0]["expression"] == "");
        let unlicensed: Vec<_> = unlicensed.map(|one| &one["name"]).collect();
        ensure!(unlicensed.is_empty(), "without a licence: {unlicensed:?}");
        Ok(())
    }

    fn npm(&self) -> Result<()> {
        let folder = self.empty("npm")?;
        fs::write(folder.join("package.json"), "{}")?;
        let (system, processor) = ("linux", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" });
        let version = env!("CARGO_PKG_VERSION");
        let platform = self.file(&format!("steady-relay-{system}-{processor}-"), ".tgz")?;
        let launcher = self.file(&format!("steady-relay-{version}"), ".tgz")?;
        let mut install = words(&folder, "npm install --offline --no-audit --no-fund --loglevel=error");
        succeed(install.arg(platform).arg(launcher))?;
        let started = folder.join("node_modules/.bin/steady-relay");
        about(&started, "npm")?;
        // It ends as what it starts does, by a code or by a signal.
        let ended = |script: &str| {
            let mut run = Command::new(&started);
            run.args(["run", "--own", "--", "sh", "-c", script]).env("HOME", &folder);
            run.status().with_context(|| format!("cannot start {}", started.display()))
        };
        ensure!(ended("exit 7")?.code() == Some(7), "the exit code is lost");
        // Without a terminal an interrupt is for it alone, and handed on.
        let mut run = Command::new(&started);
        run.args(["session", "--own"]).env("HOME", &folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut held = run.stderr(Stdio::null()).spawn().context("cannot start the launcher")?;
        // Both stay open until it has ended: where one is closed, it ends by itself.
        let (input, output) = (held.stdin.take(), held.stdout.take());
        let mut ready = String::new();
        let mut output = BufReader::new(output.context("it has an output")?);
        output.read_line(&mut ready)?;
        ensure!(ready.contains("\"url\""), "it is not ready: {ready}");
        succeed(words(&folder, "kill -USR1").arg(held.id().to_string()))?;
        let ended = held.wait()?;
        drop((input, output));
        ensure!(!ended.success(), "a signal to the launcher is not handed on: {ended}");
        Ok(())
    }

    /// Installs it where nothing else is, and has somebody use it who owns nothing there.
    fn deb(&self) -> Result<()> {
        let fresh = self.empty("root")?;
        let package = self.file("steady-relay_", ".deb")?;
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
            fs::create_dir_all(fresh.join(folder))?;
        }
        fs::write(fresh.join("var/lib/dpkg/status"), "")?;
        let is_root = output(&mut words(&fresh, "id -u"))?.trim() == "0";
        let mut dpkg = Command::new("dpkg");
        // There is no libc there, which a program that is linked otherwise asks for.
        dpkg.arg("--root").arg(&fresh).args([
            "--force-script-chrootless",
            "--force-depends",
            "--log=/dev/null",
        ]);
        if !is_root {
            dpkg.arg("--force-not-root");
        }
        succeed(dpkg.arg("--install").arg(&package))?;
        let program = fresh.join("usr/bin/steady-relay");
        ensure!(program.is_file(), "dpkg has placed no program");
        let mut used = if is_root { Command::new("setpriv") } else { Command::new("env") };
        if is_root {
            used.args(["--reuid=65534", "--regid=65534", "--clear-groups", "env"]);
        }
        let told = output(used.arg("HOME=/nonexistent").arg(&program).args(["--version", "--json"]))?;
        ensure!(told.contains(env!("CARGO_PKG_VERSION")), "{told}");
        let page = output(words(&fresh, "zcat").arg(fresh.join("usr/share/man/man1/steady-relay.1.gz")))?;
        ensure!(page.contains(".TH"), "the manual is no manual");
        let verifies = works(&mut words(&fresh, "systemd-analyze --version"));
        let unit = fresh.join("usr/lib/systemd/user/steady-relay.service");
        if verifies {
            // It looks for the program, which lies elsewhere here.
            let unit_text = fs::read_to_string(&unit)?.replace("/usr/bin/steady-relay", text(&program)?);
            let here = self.folder.join("steady-relay.service");
            fs::write(&here, unit_text)?;
            let mut verify = words(&fresh, "systemd-analyze verify --user --man=no");
            succeed(verify.arg(&here).env("XDG_RUNTIME_DIR", &self.folder))?;
        }
        succeed(Command::new("dpkg").arg("--root").arg(&fresh).args([
            "--log=/dev/null",
            "--purge",
            "steady-relay",
        ]))?;
        ensure!(!program.exists() && !unit.exists(), "something is left after the package was removed");
        Ok(())
    }
}

/// What the program says of itself, and that it came in this way.
fn about(program: &Path, way: &str) -> Result<()> {
    let told = output(Command::new(program).args(["--version", "--json"]))?;
    let told: Value =
        serde_json::from_str(&told).with_context(|| format!("{} said {told}", program.display()))?;
    ensure!(told["version"] == env!("CARGO_PKG_VERSION") && told["installed"] == way, "{told}");
    Ok(())
}

/// The name of this system's target.
pub(crate) fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
