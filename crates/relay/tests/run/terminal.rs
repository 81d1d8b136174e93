//! On a terminal: the title while a call is held, Ctrl-C, and the client's own screen. By tmux, which has to be there.

use std::process::{Command, Output};
use std::time::Duration;

use relay_sim::{Reply, Script, Signal, Upstream};

use crate::place::{ASKS, Place, SOON, Serving, good};
use crate::tools::missing;

/// A terminal of its own, gone at the end.
struct Tmux(String);

impl Tmux {
    /// Starts this in a terminal; `None` where there is no tmux.
    fn start(place: &Place, line: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            missing("tmux");
            return None;
        }
        let tmux = Self(place.path("tmux").display().to_string());
        let home = place.home();
        let bin = place.path("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let script = place.write(
            "line",
            &format!(
                "cd {out}; export HOME={} OUT={out} PATH={}:{path}; unset XDG_CONFIG_HOME XDG_STATE_HOME\n\
                 trap : INT; printf '\\033]2;before\\007'; {line}; echo \"code $?\" > {out}/ended; sleep 60",
                home.display(),
                bin.display(),
                out = place.path("").display()
            ),
        );
        let script = format!("sh {}", script.display());
        let started = tmux.ask(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", &script]);
        assert!(started.status.success(), "{started:?}");
        Some(tmux)
    }

    /// A shell with job control, which writes the exit code of each command to `codes` before its next prompt.
    fn shell(place: &Place) -> Option<Self> {
        if Command::new("bash").arg("--version").output().is_err() {
            missing("bash");
            return None;
        }
        let codes = "echo $? >> \"$OUT/codes\"";
        Self::start(place, &format!("HISTFILE= PROMPT_COMMAND='{codes}' bash --norc --noprofile -i"))
    }

    /// Types this and presses Enter.
    fn types(&self, line: &str) {
        self.ask(&["send-keys", "-l", "--", line]);
        self.ask(&["send-keys", "Enter"]);
    }

    fn ask(&self, words: &[&str]) -> Output {
        Command::new("tmux").arg("-S").arg(&self.0).args(words).output().unwrap()
    }

    fn title(&self) -> String {
        let told = self.ask(&["display-message", "-p", "#{pane_title}"]);
        String::from_utf8(told.stdout).unwrap().trim().to_owned()
    }

    async fn until_title(&self, fits: impl Fn(&str) -> bool) -> String {
        let until = tokio::time::Instant::now() + SOON;
        loop {
            let title = self.title();
            if fits(&title) {
                return title;
            }
            assert!(tokio::time::Instant::now() < until, "the title stays {title:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

/// A relay whose time goes so fast that a call is held for long at once.
async fn hurried(place: &Place, up: &Upstream) -> Serving {
    let url = up.url();
    let flags = ["serve", "--port", "0", "--upstream", &url, "--clock-rate", "20"];
    let relay = Serving::start(&mut place.program(&flags)).await;
    place.settings(&format!("[relay]\nport = {}\n", relay.addr.port()));
    relay
}

const RUN: &str = env!("CARGO_BIN_EXE_steady-relay");

#[tokio::test]
async fn the_title_says_what_is_held_and_comes_back() {
    let go = Signal::new();
    let gone = go.clone();
    let up =
        Upstream::start(Script::by(move |_, _| if gone.released() { good() } else { full() })).await.unwrap();
    let place = Place::new();
    let _relay = hurried(&place, &up).await;
    place.client("job", ASKS);
    let Some(tmux) = Tmux::start(&place, &format!("{RUN} run -- job")) else {
        return;
    };
    let title = tmux.until_title(|title| title.contains("at capacity, held ")).await;
    assert!(title.starts_with("gpt-x at capacity, held "), "{title}");
    tmux.until_title(|title| title.contains("next try in ") || title.contains("trying now")).await;
    go.release();
    place.until("ended").await;
    assert_eq!(tmux.until_title(|title| title == "before").await, "before");
    assert_eq!(place.read("ended").trim(), "code 0");
}

/// Its clock is the real one: a call is held for ten seconds first.
#[tokio::test]
async fn a_relay_of_the_clients_own_has_the_title_as_well() {
    let up = Upstream::start(full()).await.unwrap();
    let place = Place::new();
    place.client("job", ASKS);
    let Some(tmux) = Tmux::start(&place, &format!("{RUN} run --upstream {} -- job", up.url())) else {
        return;
    };
    let title = tmux.until_title(|title| title.contains("held ")).await;
    assert!(title.starts_with("gpt-x at capacity, held 1"), "{title}");
}

#[tokio::test]
async fn the_title_stays_where_it_is_switched_off() {
    let up =
        Upstream::start(Script::by(|seen, _| if seen.at < Duration::from_secs(3) { full() } else { good() }))
            .await
            .unwrap();
    let place = Place::new();
    let relay = hurried(&place, &up).await;
    place.settings(&format!("[relay]\nport = {}\n[waiting]\ntitle = \"off\"\n", relay.addr.port()));
    place.client("job", ASKS);
    let Some(tmux) = Tmux::start(&place, &format!("{RUN} run -- job")) else {
        return;
    };
    let until = tokio::time::Instant::now() + SOON;
    while place.read("ended").is_empty() {
        assert!(
            ["before", ""].contains(&&*tmux.title()) || !tmux.title().contains("gpt-x"),
            "{}",
            tmux.title()
        );
        assert!(tokio::time::Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(up.requests().len() > 1, "nothing was held");
}

#[tokio::test]
async fn ctrl_c_reaches_the_client_and_its_code_is_ours() {
    let up = Upstream::start(good()).await.unwrap();
    for own in [true, false] {
        let place = Place::new();
        let _relay = hurried(&place, &up).await;
        let script = "trap 'echo caught > \"$OUT/caught\"; exit 9' INT\n[ -t 1 ] && echo x > \"$OUT/tty\"\n\
                      while [ -d \"$OUT\" ]; do sleep 0.05; done";
        place.client("job", script);
        let flag = if own { "--own " } else { "" };
        let Some(tmux) = Tmux::start(&place, &format!("{RUN} run {flag}-- job")) else {
            return;
        };
        place.until("tty").await;
        tmux.ask(&["send-keys", "C-c"]);
        assert_eq!(place.until("ended").await.trim(), "code 9");
        assert_eq!(place.read("caught").trim(), "caught");
    }
}

/// The exit code of each command so far, as soon as there are so many.
async fn codes(place: &Place, count: usize) -> Vec<i32> {
    let until = tokio::time::Instant::now() + SOON;
    loop {
        let codes = place.read("codes");
        if codes.lines().count() >= count && codes.ends_with('\n') {
            return codes.lines().map(|code| code.parse().unwrap()).collect();
        }
        assert!(tokio::time::Instant::now() < until, "{codes:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The shell sees nothing but us: unless we stop with it, nobody has the terminal.
#[tokio::test]
async fn a_client_that_stops_itself_gives_the_terminal_back_until_fg() {
    let place = Place::new();
    place.client("job", "kill -STOP $$; exit 7");
    let Some(tmux) = Tmux::shell(&place) else {
        return;
    };
    codes(&place, 1).await;
    tmux.types(&format!("{RUN} run --own -- job"));
    assert!(codes(&place, 2).await[1] > 128);
    tmux.types("fg");
    assert_eq!(codes(&place, 3).await[2], 7);
}

/// A shell restores its terminal after a program that a signal ended, which it does not see here.
#[tokio::test]
async fn a_client_that_is_killed_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let Some(tmux) = Tmux::shell(&place) else {
        return;
    };
    codes(&place, 1).await;
    tmux.types("stty -a > \"$OUT/before\"");
    // Whoever changes it and ends in order wants it so.
    for (script, code, ixon) in
        [("stty raw -echo; kill -KILL $$", 137, " ixon"), ("stty -ixon; exit 3", 3, " -ixon")]
    {
        place.client("job", script);
        let done = codes(&place, 2).await.len();
        tmux.types(&format!("{RUN} run --own -- job"));
        assert_eq!(codes(&place, done + 1).await[done], code);
        tmux.types("stty -a > \"$OUT/after\"");
        codes(&place, done + 2).await;
        let expected = place.read("before").replace(" ixon", ixon);
        assert_eq!(place.read("after"), expected, "{script}");
    }
}

fn full() -> Reply {
    Reply::status(503)
        .json(serde_json::json!({"error": {"code": "server_is_overloaded", "message": "at capacity"}}))
}
