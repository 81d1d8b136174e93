//! The program in a home of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

const CODEX: &str = ".codex/config.toml";
const CLAUDE: &str = ".claude/settings.json";
const CONFIG: &str = ".config/steady-relay/config.toml";
/// A port at which no relay is, and which none of these tests opens.
const PORT: &str = "18787";

/// The folder of one test, gone at its end.
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// How the program ended.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("setup-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// With Codex and Claude Code, and a secret beside the key of each.
    fn with_clients() -> Self {
        let home = Self::new();
        home.write(CODEX, "# mine\nmodel = \"gpt-x\"\n[mcp_servers.a]\nenv = { TOKEN = \"secret7\" }\n");
        home.write(CLAUDE, "{\"env\": {\"ANTHROPIC_AUTH_TOKEN\": \"secret7\"}}");
        home
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// All files but those of the state folder.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.ends_with(".local") {
                    folders.push(path);
                } else if path.is_file() {
                    found.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    fn program(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
        command.args(line.split(' ')).env_clear().current_dir(&self.0).stdin(Stdio::null());
        command.env("HOME", &self.0).env("USERPROFILE", &self.0);
        command.env("XDG_CONFIG_HOME", self.0.join(".config")).env("APPDATA", self.0.join(".config"));
        command.env("XDG_STATE_HOME", self.0.join(".local")).env("LOCALAPPDATA", self.0.join(".local"));
        command.env("STEADY_RELAY_PORT", PORT);
        command
    }

    fn run(&self, line: &str) -> Ended {
        ended(&mut self.program(line))
    }
}

fn ended(command: &mut Command) -> Ended {
    let done = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: done.status.code().unwrap_or(-1), out: text(done.stdout), err: text(done.stderr) }
}

#[test]
fn a_dry_run_shows_a_diff_without_secrets_and_writes_nothing() {
    let home = Home::with_clients();
    let before = home.files();
    let shown = home.run("setup --dry-run");
    let costs =
        "note: with any address of its own Claude Code turns some things off, such as Remote Control\n";
    assert_eq!((shown.code, shown.err), (0, format!("{costs}nothing was written\n")));
    let codex = home.0.join(CODEX).display().to_string();
    let expected = format!(
        "--- {codex}\n+++ {codex}\n@@ -2,0 +3,2 @@\n+# set by steady-relay; to undo: `steady-relay undo codex`, or delete this line and the next\n+openai_base_url = \"http://127.0.0.1:18787/v1\"\n"
    );
    assert!(shown.out.contains(&expected), "{}", shown.out);
    assert!(shown.out.contains(
        "+{\"env\": {\"ANTHROPIC_AUTH_TOKEN\": \"…\", \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:18787\"}}"
    ));
    assert!(!shown.out.contains("secret7"));
    assert_eq!(home.files(), before);
    assert!(!home.0.join(".local").exists(), "not even a folder");
}

#[test]
fn a_comment_on_a_line_that_is_edited_is_not_shown() {
    let home = Home::new();
    home.write(
        CODEX,
        "openai_base_url = \"https://gw.example.com/v1\" # token sk-proj-CANARYC1234567890123456 pass=hunter2\n",
    );
    home.write(
        CLAUDE,
        "{ /* sk-proj-CANARYC1234567890123456 */ \"env\": {\"PIN\": 7351, \"ANTHROPIC_BASE_URL\": \"https://gw.example.com\"}} // pass=hunter2\n",
    );
    home.write(
        ".env",
        "# pass=hunter2\nOPENAI_BASE_URL=https://gw.example.com/v1 # key sk-proj-CANARYC1234567890123456, pass=hunter2\n",
    );
    for line in ["setup --dry-run codex", "setup --dry-run claude", "setup --dry-run env-file .env"] {
        let shown = home.run(line);
        let all = format!("{}{}", shown.out, shown.err);
        assert!(shown.code == 0 && shown.out.contains("gw.example.com"), "{line}: {all}");
        assert!(shown.out.contains(&format!("http://127.0.0.1:{PORT}")), "{line}: {all}");
        for secret in ["CANARY", "hunter2", "7351"] {
            assert!(!all.contains(secret), "{line}: {all}");
        }
    }
}

#[test]
fn nothing_is_written_without_a_yes() {
    let home = Home::with_clients();
    let before = home.files();
    let asked = home.run("setup");
    assert_eq!(asked.code, 2);
    assert!(
        asked.err.contains("error: nothing was written: there is no terminal to ask at\nhint: add --yes")
    );
    assert_eq!(home.files(), before);
}

#[test]
fn setup_and_undo_are_harmless_twice_and_leave_every_byte() {
    let home = Home::with_clients();
    let before = home.files();
    let done = home.run("setup --yes");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("claude, codex will ask the relay"), "{}", done.err);
    assert!(
        done.err.contains("the relay does not run yet: start it with `steady-relay`,\nor for good with"),
        "{}",
        done.err
    );
    let after = home.files();
    assert_eq!(after.len(), before.len());
    let again = home.run("setup --yes");
    assert_eq!((again.code, again.out.as_str()), (0, ""));
    assert!(
        again.err.contains("Codex: points to the relay already\nClaude Code: points to the relay already")
    );
    assert_eq!(home.files(), after);

    let looked = home.run("undo --dry-run");
    assert!(looked.out.contains("openai_base_url in ") && looked.out.contains(": would be taken out"));
    assert_eq!(looked.err, "nothing was written\n");
    assert_eq!(home.files(), after);
    let one = home.run("undo claude");
    assert_eq!((one.code, one.out.lines().count()), (0, 1));
    let undone = home.run("undo");
    assert_eq!((undone.code, undone.out.lines().count()), (0, 1), "{}", undone.out);
    assert_eq!(home.files(), before);
    let nothing = home.run("undo");
    assert_eq!((nothing.code, nothing.out.as_str(), nothing.err.as_str()), (0, "", "nothing to undo\n"));
}

#[test]
fn undo_needs_no_settings_that_can_be_read() {
    let home = Home::with_clients();
    let before = home.files();
    assert_eq!(home.run("setup --yes codex").code, 0);
    home.write(CONFIG, "[relay\n");
    assert_eq!(home.run("setup --yes").code, 2);
    assert_eq!(home.run("undo").code, 0);
    fs::remove_file(home.0.join(CONFIG)).unwrap();
    assert_eq!(home.files(), before);
}

#[test]
fn a_conflict_is_left_and_told() {
    let home = Home::with_clients();
    home.run("setup --yes");
    let theirs = home.read(CODEX).replace("http://127.0.0.1:18787/v1", "https://me:secret7@other.example/v1");
    home.write(CODEX, &theirs);
    let undone = home.run("undo --json");
    assert_eq!(undone.code, 1);
    let json: Value = serde_json::from_str(&undone.out).unwrap();
    let fates: Vec<_> = json["keys"].as_array().unwrap().iter().map(|key| key["fate"].as_str()).collect();
    assert_eq!((fates, &json["v"]), (vec![Some("restored"), Some("left")], &Value::from(1)));
    assert!(json["keys"][1]["why"].as_str().unwrap().contains("somebody changed it since"));
    assert!(!undone.out.contains("secret7"));
    assert_eq!(home.read(CODEX), theirs);
}

#[test]
fn the_users_own_service_becomes_an_upstream() {
    let home = Home::new();
    home.write(CODEX, "openai_base_url = \"https://gw.example/codex\"\n");
    home.write(CONFIG, "# relay\n[upstream.own-codex]\nurl = \"https://another.example/v1\"\n");
    let before = home.files();
    let done = home.run("setup --yes --json");
    assert_eq!(done.code, 0, "{}", done.err);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    let keys: Vec<_> =
        json["edits"].as_array().unwrap().iter().map(|edit| edit["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["upstream.own-codex-2.url", "upstream.own-codex-2.strip_v1", "openai_base_url"]);
    assert_eq!(
        (&json["written"], &json["edits"][2]["old"]),
        (&true.into(), &"https://gw.example/codex".into())
    );
    assert!(home.read(CODEX).contains("openai_base_url = \"http://127.0.0.1:18787/to/own-codex-2/v1\"\n"));
    let put_back = "# set by steady-relay; to undo: `steady-relay undo codex`, or put back \"https://gw.example/codex\"\n";
    assert!(home.read(CODEX).contains(put_back), "{}", home.read(CODEX));
    assert_eq!(home.run("config check").out, "ok\n");
    // It goes on naming its upstream.
    assert_eq!(home.run("setup --yes").out, "");
    assert_eq!(home.run("undo").code, 0);
    assert_eq!(home.files(), before);
}

#[test]
fn a_taken_port_is_replaced_in_settings_and_clients_alike() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = Home::with_clients();
    home.write(CONFIG, &format!("[relay]\nport = {port}\n"));
    let before = home.files();
    let mut line = home.program("setup --yes");
    let done = ended(line.env_remove("STEADY_RELAY_PORT"));
    assert_eq!(done.code, 0, "{}", done.err);
    let told = format!("port {port} is taken by another program, so the relay gets port ");
    let chosen = done.err.split(&told).nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(home.read(CONFIG).ends_with(&format!("port = {chosen}\n")), "{}", home.read(CONFIG));
    assert!(home.read(CODEX).contains(&format!("http://127.0.0.1:{chosen}/v1")));
    assert!(home.read(CLAUDE).contains(&format!("http://127.0.0.1:{chosen}\"")));
    assert_eq!(home.run("undo").code, 0);
    assert_eq!(home.files(), before);

    // Where something else names the port, nobody is moved.
    let named = ended(home.program("setup --yes").env("STEADY_RELAY_PORT", port.to_string()));
    assert_eq!(named.code, 2);
    assert!(named.err.contains("STEADY_RELAY_PORT names it"), "{}", named.err);
    assert_eq!(home.files(), before);
    drop(taken);
}

#[test]
fn status_tells_where_clients_point() {
    let home = Home::with_clients();
    home.run("setup --yes codex");
    let status = home.run("setup --status --json");
    let json: Value = serde_json::from_str(&status.out).unwrap();
    let standing: Vec<_> = json["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| (client["client"].as_str().unwrap(), client["standing"].as_str().unwrap()))
        .collect();
    assert_eq!(standing, [("codex", "relay_down"), ("claude", "unset")]);
    let told = home.run("setup --status");
    assert_eq!(told.code, 0);
    assert!(told.out.contains("Claude Code is not set up: it asks its service directly\n"), "{}", told.out);

    // Without the journal nobody knows at which ports the relay has been.
    home.write(".local/steady-relay/setup.json", "{");
    let broken = home.run("setup --status");
    assert_eq!((broken.code, broken.out.as_str()), (1, ""));
    assert!(broken.err.contains("setup.json"), "{}", broken.err);
}

#[test]
fn a_proxy_that_clients_would_ask_is_told() {
    let home = Home::with_clients();
    let told = |no_proxy: &str| {
        let mut line = home.program("setup --dry-run");
        ended(line.env("HTTP_PROXY", "http://me:secret7@proxy:1").env("NO_PROXY", no_proxy)).err
    };
    assert!(told("").contains("note: HTTP_PROXY is set, and clients ask it for this machine, too"));
    assert!(!told("").contains("secret7"));
    assert!(!told("corp, 127.0.0.1").contains("HTTP_PROXY"));
}

/// A relay that runs, ended at its end.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn a_relay_that_runs_is_known_with_a_token_and_without() {
    for token in ["", "secret7-secret7-secret7-secret7"] {
        let home = Home::with_clients();
        let mut line = home.program("serve");
        line.env("STEADY_RELAY_PORT", "0").env("STEADY_RELAY_TOKEN", token).stderr(Stdio::piped());
        let mut relay = Serving(line.spawn().unwrap());
        let said = BufReader::new(relay.0.stderr.take().unwrap()).lines().map_while(Result::ok);
        let port = said
            .filter_map(|line| Some(line.split_once("listening on http://127.0.0.1:")?.1.to_owned()))
            .next();
        let port = port.unwrap().trim().to_owned();
        let run = |line: &str| {
            let mut line = home.program(line);
            ended(line.env("STEADY_RELAY_PORT", &port).env("STEADY_RELAY_TOKEN", token))
        };
        let done = run("setup --yes");
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(
            !done.err.contains("does not run") && !done.out.contains("secret7"),
            "{}{}",
            done.err,
            done.out
        );
        let path = if token.is_empty() { String::new() } else { format!("/~{token}") };
        assert!(home.read(CODEX).contains(&format!("http://127.0.0.1:{port}{path}/v1")));
        let status = run("setup --status --json");
        assert_eq!(status.out.matches("\"standing\":\"relay\"").count(), 2, "{}", status.out);
        assert!(!status.out.contains("secret7"));
    }
}

#[test]
fn two_at_once_do_not_get_in_each_others_way() {
    let home = Home::with_clients();
    home.write(".local/steady-relay/setup.lock", "");
    let held = fs::File::open(home.0.join(".local/steady-relay/setup.lock")).unwrap();
    held.lock().unwrap();
    for line in ["setup --yes", "undo"] {
        let second = home.run(line);
        assert!(
            second.code == 1 && second.err.contains("another setup or undo is at work"),
            "{}",
            second.err
        );
    }
    assert_eq!(home.run("setup --dry-run").code, 0);
    drop(held);
    assert_eq!(home.run("setup --yes").code, 0);
}

#[test]
fn an_env_file_gets_its_lines() {
    let home = Home::new();
    home.write(".env", "OPENAI_API_KEY=sk-secret7\n");
    let done = home.run("setup env-file .env --yes");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(home.read(".env").ends_with("\nOPENAI_BASE_URL=http://127.0.0.1:18787/v1\n"));
    assert!(!home.read(".env").contains("ANTHROPIC"), "only what the file is about");
    assert!(!done.out.contains("secret7"));
    // It is no client that could be found, and yet one that was set up.
    let status = home.run("setup --status");
    assert!(status.out.contains(".env points to the relay at http://127.0.0.1:18787/v1"), "{}", status.out);
    assert!(status.out.contains("  OPENAI_BASE_URL") && !status.out.contains("secret7"), "{}", status.out);
    home.run("undo");
    assert_eq!(home.read(".env"), "OPENAI_API_KEY=sk-secret7\n");
    assert!(!home.run("setup --status").out.contains(".env"));
}

#[test]
fn wrong_words_are_told() {
    let home = Home::new();
    for (line, code, words) in [
        (
            "setup nobody",
            2,
            "error: `nobody` is not a client that setup knows\nhint: it knows codex, claude,",
        ),
        ("setup env-file", 2, "error: `env-file` needs a path\n"),
        ("undo nobody", 2, "`nobody` is not a client"),
        ("setup vscode --yes", 1, "vscode: not set up: was not found on this machine"),
        ("setup", 1, "error: no client was found on this machine\nhint: "),
        ("setup --status", 1, "error: no client was found"),
        ("setup --port 0", 2, "error: the relay has no port of its own"),
    ] {
        let ended = home.run(line);
        assert_eq!(ended.code, code, "{line}: {}", ended.err);
        assert!(ended.err.contains(words), "{line}: {}", ended.err);
    }
}

#[test]
fn it_speaks_chinese_where_its_user_does() {
    let home = Home::with_clients();
    let done = ended(home.program("setup --yes").env("LANG", "zh_CN.UTF-8"));
    assert!(done.err.contains("完成：claude, codex 下次启动后将使用中继"), "{}", done.err);
    // What stands in the file is known to undo in any language.
    assert_eq!(home.run("undo").code, 0);
    assert!(!home.read(CODEX).contains("openai_base_url"));
}

#[test]
fn a_client_that_was_never_started_is_set_up_and_leaves_nothing_behind() {
    // By its name, or by its program on the PATH.
    for (line, is_installed) in [("setup codex claude opencode --yes", false), ("setup --yes", true)] {
        let home = Home::new();
        for client in ["codex", "claude", "opencode"].iter().filter(|_| is_installed) {
            home.write(&format!("bin/{client}"), "");
            home.write(&format!("bin/{client}.exe"), "");
        }
        let before = home.files();
        let set_up = ended(home.program(line).env("PATH", home.0.join("bin")));
        assert_eq!(set_up.code, 0, "{}{}", set_up.out, set_up.err);
        assert!(
            home.read(CODEX).contains("openai_base_url") && home.read(CLAUDE).contains("ANTHROPIC_BASE_URL")
        );
        let undone = home.run("undo");
        assert_eq!((undone.code, home.files()), (0, before), "{}", undone.err);
        assert!(!home.0.join(".codex").exists(), "the folder was made for the file");
    }
    let nobody = Home::new().run("setup --yes");
    assert_eq!((nobody.code, nobody.out.as_str()), (1, ""), "{}", nobody.err);
    let told = Home::new().run("setup continue cline --yes");
    assert!(told.out.contains("config.yaml") || told.err.contains("config.yaml"), "{}{}", told.out, told.err);
}
