//! `steady-relay top` on a terminal of tmux, with a relay in front of a service that runs out of capacity.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relay_sim::{Client, Request, Script, Signal, Upstream};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::child::{SOON, Serving};
use crate::program::{Home, good, refusal};
use crate::tools::missing;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steady-relay");

/// A terminal of its own, gone at the end.
struct Tmux(String);

impl Tmux {
    /// Starts this script of a shell in a terminal of 80 x 24; `None` where there is no tmux.
    fn start(home: &Home, script: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            missing("tmux");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tmux{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let tmux = Self(home.path(&name).display().to_string());
        let place = home.path("").display().to_string();
        let script = format!(
            "cd {place}; export HOME={place} XDG_CONFIG_HOME={place}config XDG_STATE_HOME={place}state LANG=C.UTF-8\n\
             unset NO_COLOR CLICOLOR_FORCE STEADY_RELAY_LANG LC_ALL LC_MESSAGES ENV\n\
             PS1='$ '; export PS1\n{script}\n"
        );
        let script = format!("sh {}", home.write("line", script).display());
        let started =
            tmux.ask(&["-u", "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", &script]);
        assert!(started.status.success(), "{started:?}");
        Some(tmux)
    }

    /// Starts `top` there, between two looks at how the terminal is set; its code ends up in `ended`.
    fn top(home: &Home, before: &str, flags: &str) -> Option<Self> {
        let script = format!(
            "echo BEFORE; stty -g > set-before\n\
             {before} sh -c 'echo $$ > pid; exec {PROGRAM} top {flags}' 2> said\n\
             echo \"code $?\" > code; stty -g > set-after; mv code ended; cat said; sleep 60"
        );
        Self::start(home, &script)
    }

    fn ask(&self, words: &[&str]) -> Output {
        Command::new("tmux").arg("-S").arg(&self.0).args(words).output().unwrap()
    }

    fn told(&self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.ask(words).stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.told(&["capture-pane", "-p"])
    }

    /// Presses keys, by the names that tmux has for them.
    fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    fn type_in(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
    }

    fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.ask(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Waits until the screen is so.
    async fn until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let until = tokio::time::Instant::now() + SOON;
        loop {
            let screen = self.screen();
            if fits(&screen) {
                return screen;
            }
            assert!(tokio::time::Instant::now() < until, "{what} never comes:\n{screen}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn shows(&self, words: &str) -> String {
        self.until(words, |screen| screen.contains(words)).await
    }

    /// Waits until a shell asks for the next line, below all else.
    async fn prompts(&self) -> String {
        self.until("the shell", |screen| screen.trim_end().lines().last() == Some("$")).await
    }

    /// Whether a program draws on it, and whether its cursor is seen.
    fn state(&self) -> String {
        self.told(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim().to_owned()
    }

    /// Waits until `top` has ended, with this code, and the terminal is as it was.
    async fn ended(&self, home: &Home, code: u8) {
        let until = tokio::time::Instant::now() + SOON;
        while !home.path("ended").exists() {
            assert!(tokio::time::Instant::now() < until, "it does not end:\n{}", self.screen());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(home.read("ended").trim(), format!("code {code}"), "{}", home.read("said"));
        assert_eq!(home.read("set-before"), home.read("set-after"));
        assert_eq!(self.state(), "0 1", "it shows what it showed before, and its cursor");
        let screen = self.screen();
        assert!(screen.contains("BEFORE\n") && !screen.contains("live"), "{screen}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

/// A service that has no capacity until this is released.
async fn full_until(go: &Signal) -> Upstream {
    let gone = go.clone();
    let answer = move || if gone.released() { good() } else { refusal(503, "server_is_overloaded") };
    Upstream::start(Script::by(move |_, _| answer())).await.unwrap()
}

/// A relay whose time goes five times as fast, at this port.
async fn relay(home: &Home, up: &Upstream, port: &str) -> Serving {
    let url = up.url();
    let flags = ["--upstream", &url, "--clock-rate", "5", "--port", port, "--profile", "patient"];
    Serving::start(&mut home.program(&flags)).await
}

/// Asks a model, and waits for its answer meanwhile.
fn ask(relay: &Serving, model: &str) -> JoinHandle<bool> {
    let request = Request::post("/v1/responses")
        .json(json!({"model": model, "stream": true, "input": "SECRET-PROMPT"}));
    let addr = relay.addr;
    tokio::spawn(async move {
        let mut client = Client::connect(addr).await.unwrap().patience(3 * SOON);
        client.ask(&request).await.is_ok_and(|answer| answer.status == 200)
    })
}

#[tokio::test]
async fn an_overload_is_watched_filtered_paused_and_left() {
    let go = Signal::new();
    let up = full_until(&go).await;
    let home = Home::new();
    let mut relay = relay(&home, &up, "0").await;
    let asked: Vec<_> =
        ["gpt-x", "gpt-x", "gpt-y", "claude-z"].iter().map(|model| ask(&relay, model)).collect();
    let port = relay.addr.port().to_string();
    let Some(tmux) = Tmux::top(&home, "", &format!("--port {port}")) else { return };
    // The list.
    let listed = |screen: &str| {
        screen.contains("CALLS 4 of 4: all, open first") && screen.contains("shut: at_capacity")
    };
    let screen = tmux.until("the overload", listed).await;
    for words in ["Steady Relay 0.1.0 at 127.0.0.1:", "live", "LANES 3", "claude-z", "saved 0", "? help"] {
        assert!(screen.contains(words), "{words}:\n{screen}");
    }
    assert_eq!(tmux.state(), "1 0");
    // A filter, and back.
    tmux.type_in("/claude capac");
    let screen = tmux.shows("CALLS 1 of 4").await;
    assert!(screen.contains("filter: claude capac_"), "{screen}");
    tmux.press(&["Enter"]);
    tmux.shows("s sort").await;
    // Details of what was found.
    tmux.press(&["Enter"]);
    let screen = tmux.shows("Call c").await;
    for words in
        ["claude-z at ", "0.00 s  accepted", "send 1", "answers with 503", "fault at_capacity (refused"]
    {
        assert!(screen.contains(words), "{words}:\n{screen}");
    }
    tmux.press(&["?"]);
    tmux.shows("this help").await;
    tmux.press(&["Escape"]);
    tmux.shows("accepted").await;
    tmux.press(&["Escape"]);
    tmux.shows("CALLS 1 of 4").await;
    tmux.press(&["Escape"]);
    tmux.shows("CALLS 4 of 4").await;
    // Nothing moves while it is paused.
    tmux.press(&["p"]);
    let paused = tmux.shows("PAUSED").await;
    go.release();
    for answer in asked {
        assert!(answer.await.unwrap());
    }
    assert_eq!(tmux.screen(), paused);
    tmux.press(&["p"]);
    let screen = tmux.shows("saved 4").await;
    assert!(screen.contains("success 100 % (0 % without)"), "{screen}");
    tmux.until("all served", |screen| screen.matches(" served ").count() == 4).await;
    // Other sizes.
    tmux.resize(40, 12);
    let screen =
        tmux.until("the small one", |screen| screen.lines().count() <= 12 && screen.contains("served")).await;
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    assert!(screen.contains("CALLS 4 of 4") && screen.contains("LANES 1 of 3"), "{screen}");
    tmux.resize(120, 40);
    tmux.until("the large one", |screen| screen.contains("LANES 3") && screen.contains("Tab lanes")).await;
    // A relay that is started anew.
    relay.child.kill().await.unwrap();
    let screen = tmux.shows("no answer from the relay for ").await;
    assert!(screen.contains("CALLS 4 of 4"), "{screen}");
    let relay = self::relay(&home, &up, &port).await;
    assert!(ask(&relay, "gpt-z").await.unwrap());
    let screen = tmux.shows("CALLS 1 of 1").await;
    assert!(screen.contains("gpt-z") && screen.contains("live"), "{screen}");
    assert!(!screen.contains("SECRET"), "{screen}");
    tmux.press(&["q"]);
    tmux.ended(&home, 0).await;
}

#[tokio::test]
async fn signals_and_ctrl_c_give_the_terminal_back() {
    for how in ["C-c", "TERM", "HUP"] {
        let up = Upstream::start(good()).await.unwrap();
        let home = Home::new();
        let relay = relay(&home, &up, "0").await;
        let flags = format!("--lang zh --port {}", relay.addr.port());
        let Some(tmux) = Tmux::top(&home, "", &flags) else { return };
        let screen = tmux.shows("还没有请求").await;
        assert!(screen.contains("已运行") && screen.contains("q 退出"), "{screen}");
        if how == "C-c" {
            tmux.press(&["C-c"]);
        } else {
            let pid = home.read("pid");
            let sent = Command::new("kill").args([&format!("-{how}"), pid.trim()]).status().unwrap();
            assert!(sent.success());
        }
        tmux.ended(&home, 130).await;
    }
}

#[tokio::test]
async fn ctrl_z_suspends_it_and_fg_goes_on() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let relay = relay(&home, &up, "0").await;
    let Some(tmux) = Tmux::start(&home, "exec sh -i") else { return };
    let port = relay.addr.port();
    tmux.shows("$").await;
    tmux.type_in(&format!("stty -g > set-before; {PROGRAM} top --port {port}\n"));
    tmux.shows("no call yet").await;
    tmux.press(&["C-z"]);
    let screen = tmux.prompts().await;
    assert!(screen.contains("topped"), "{screen}");
    assert_eq!(tmux.state(), "0 1");
    tmux.type_in("stty -g > set-after; echo and-$((40 + 2))\n");
    tmux.shows("and-42").await;
    tmux.type_in("fg\n");
    tmux.shows("no call yet").await;
    assert_eq!(tmux.state(), "1 0");
    tmux.press(&["C-l"]);
    assert!(ask(&relay, "gpt-x").await.unwrap());
    tmux.shows("CALLS 1 of 1").await;
    tmux.press(&["q"]);
    // What is typed before the shell asks is read by who leaves. It asks below what it showed before.
    let screen = tmux.prompts().await;
    assert!(screen.contains("\n[1] + Stopped") && screen.contains("\n$ fg\n"), "{screen}");
    tmux.type_in("echo code-$?\n");
    tmux.shows("code-0").await;
    assert_eq!(tmux.state(), "0 1");
    assert_eq!(home.read("set-before"), home.read("set-after"));
}

#[tokio::test]
async fn colours_are_used_where_they_are_wanted() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let relay = relay(&home, &up, "0").await;
    assert!(ask(&relay, "gpt-x").await.unwrap());
    let port = relay.addr.port();
    for (before, flag, is_coloured) in [
        ("", "", true),
        ("NO_COLOR=1", "", false),
        ("", "--color never", false),
        ("NO_COLOR=1", "--color always", true),
    ] {
        let Some(tmux) = Tmux::top(&home, before, &format!("--port {port} {flag}")) else { return };
        tmux.shows(" served ").await;
        let drawn = tmux.told(&["capture-pane", "-p", "-e"]);
        let green = ["[32m", ";32m", "38;5;2m"].iter().any(|green| drawn.contains(green));
        assert_eq!(green, is_coloured, "{before} {flag}: {drawn:?}");
        tmux.press(&["q"]);
        tmux.ended(&home, 0).await;
        std::fs::remove_file(home.path("ended")).unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_told_in_words() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let relay = relay(&home, &up, "0").await;
    let port = relay.addr.port().to_string();
    let (code, out, said) = home.run(&["top", "--port", &port]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    let told =
        "error: `top` needs a terminal for its keys and its picture\nhint: `steady-relay status` prints";
    assert!(said.starts_with(told) && said.contains("`steady-relay status --json`"), "{said}");
    let Some(tmux) = Tmux::top(&home, "TERM=dumb", &format!("--port {port}")) else { return };
    tmux.ended(&home, 2).await;
    assert!(home.read("said").starts_with("error: this terminal cannot be drawn on: TERM is `dumb`\nhint: "));
    drop(relay);
    std::fs::remove_file(home.path("ended")).unwrap();
    drop(tmux);
    let free = relay_sim::upstream::Refused::port().unwrap();
    let port = free.release();
    let Some(tmux) = Tmux::top(&home, "", &format!("--port {port}")) else { return };
    tmux.ended(&home, 6).await;
    assert!(home.read("said").starts_with(&format!("error: no relay runs at 127.0.0.1:{port}\nhint: ")));
}

#[tokio::test]
async fn a_relay_with_a_token_is_watched_by_whoever_has_it() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config("[relay]\ntoken = \"0123456789abcdef\"\n");
    home.write("none.toml", "");
    let relay = relay(&home, &up, "0").await;
    let port = relay.addr.port();
    let Some(tmux) = Tmux::top(&home, "", &format!("--port {port}")) else { return };
    tmux.shows("no call yet").await;
    tmux.press(&["q"]);
    tmux.ended(&home, 0).await;
    std::fs::remove_file(home.path("ended")).unwrap();
    let Some(tmux) = Tmux::top(&home, "", &format!("--port {port} --config none.toml")) else { return };
    tmux.ended(&home, 2).await;
    assert!(home.read("said").contains("asks for a token\nhint: set STEADY_RELAY_TOKEN"));
}

/// Takes the terminal over and panics, in a process of its own: this test, started anew on a terminal.
#[tokio::test]
async fn a_panic_gives_the_terminal_back_and_is_read() {
    if std::env::var_os("PANICS_ON_A_TERMINAL").is_some() {
        let mut screen = steady_relay::top::screen::Screen::enter(true).unwrap();
        screen.draw(|_| ()).unwrap();
        panic!("on purpose");
    }
    let home = Home::new();
    let test = std::env::current_exe().unwrap();
    let script = format!(
        "echo BEFORE; stty -g > set-before\n\
         RUST_BACKTRACE=0 PANICS_ON_A_TERMINAL=1 {} top::a_panic_gives_the_terminal_back_and_is_read --exact --nocapture 2> said\n\
         echo \"code $?\" > code; stty -g > set-after; mv code ended; cat said; sleep 60",
        test.display()
    );
    let Some(tmux) = Tmux::start(&home, &script) else { return };
    tmux.ended(&home, 101).await;
    assert!(home.read("said").contains("on purpose"));
}
