//! Codex and Claude Code with their screens, as a person has them: keys, window, title, Ctrl-C, Ctrl-Z, exit codes, and
//! what is left when they are gone. `run` in front of them changes nothing of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use relay_sim::fixtures::{anthropic, codex as wire};
use relay_sim::{Event, Reply, Script, Seen, Signal, Upstream};
use serde_json::json;
use tokio::time::Instant;

use crate::answers::{WORD, always, messages, responses, script};
use crate::claude::Claude;
use crate::codex::Codex;
use crate::home::Home;
use crate::scene::{LONGEST, Tools};
use crate::terminal::{COLUMNS, Terminal};
use crate::{Client, Line, Via};

/// Whether a client that has this title works: both turn a sign in it then.
fn works(title: &str) -> bool {
    title.contains(|letter| matches!(letter, '\u{2800}'..='\u{28ff}' | '◐' | '◑'))
}

/// A client with its screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnScreen {
    Codex,
    Claude,
}

impl Client for OnScreen {
    fn furnish(&self, home: &Path) -> Result<()> {
        let work = fs::canonicalize(home)?.join("work");
        match self {
            Self::Codex => {
                Codex::Key.furnish(home)?;
                let file = home.join(".codex/config.toml");
                let trusts = format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", work.display());
                fs::write(&file, fs::read_to_string(&file)? + &trusts).context("cannot write its settings")
            }
            Self::Claude => {
                Claude.furnish(home)?;
                let known = json!({
                    "hasCompletedOnboarding": true, "hasSeenAutoDefaultNotice": true, "theme": "dark",
                    "customApiKeyResponses": {"approved": ["sk-ant-test"], "rejected": []},
                    "projects": {work.display().to_string(): {"hasTrustDialogAccepted": true}},
                });
                fs::write(home.join(".claude/.claude.json"), known.to_string())
                    .context("cannot write what it knows")
            }
        }
    }

    fn line(&self, tools: &Tools, home: &Path, base: Option<&str>) -> Line {
        let Line { mut words, mut env } = match self {
            Self::Codex => Codex::Key.line(tools, home, base),
            Self::Claude => Claude.line(tools, home, base),
        };
        let without_screen = words.iter().position(|word| word == "exec" || word == "-p");
        words.truncate(without_screen.unwrap_or(words.len()));
        if *self == Self::Claude {
            // Whether it looks for a newer version before it ends, by npm, is a matter of seconds.
            env.push(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()));
        }
        Line { words, env }
    }
}

impl OnScreen {
    /// What it shows when it waits for the first prompt.
    const fn ready(self) -> &'static str {
        match self {
            Self::Codex => "? for shortcuts",
            Self::Claude => "shift+tab to cycle",
        }
    }

    /// The person's turns get the reply that is found for their number, or a good one; what it asks for a title gets that
    /// at once.
    pub(crate) fn script(self, reply: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static) -> Script {
        let turns = AtomicUsize::new(0);
        Script::by(move |seen, _| match (seen.method.as_str(), seen.path()) {
            ("POST", _) => {
                let reply = self.is_turn(seen).then(|| reply(turns.fetch_add(1, Ordering::Relaxed)));
                reply.flatten().unwrap_or_else(|| self.good(seen))
            }
            _ if seen.header("upgrade").is_some() => Reply::status(426),
            ("GET", "/v1/models") => Reply::status(200).json(wire::models()),
            _ => Reply::status(404),
        })
    }

    /// Whether this is what the person asked for: Codex names its own threads, and Claude Code hands no tools along for
    /// a title.
    fn is_turn(self, seen: &Seen) -> bool {
        match self {
            Self::Codex => {
                let metadata = seen.header("x-codex-turn-metadata").unwrap_or_default();
                seen.method == "POST" && !metadata.contains("thread_title")
            }
            Self::Claude => seen.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty()),
        }
    }

    /// How many sends the person's turns have cost.
    fn turns(self, seen: &[Seen]) -> usize {
        seen.iter().filter(|seen| self.is_turn(seen)).count()
    }

    fn good(self, seen: &Seen) -> Reply {
        match self {
            Self::Codex => responses::good(seen),
            Self::Claude => messages::good(seen),
        }
    }

    pub(crate) fn overloaded(self) -> Reply {
        match self {
            Self::Codex => responses::overloaded_in_stream(),
            Self::Claude => anthropic::overloaded_529(),
        }
    }

    /// An answer that begins and does not end until it is told to.
    fn endless(self, end: &Signal) -> Reply {
        let begun: Vec<Event> = match self {
            Self::Codex => wire::partial("first words"),
            Self::Claude => anthropic::stream("first words").into_iter().take(4).collect(),
        };
        Reply::sse(begun.into_iter().chain([Event::wait_for(end.clone())]))
    }

    /// Starts it, and waits until it takes a prompt.
    pub(crate) async fn starts(self, terminal: &Terminal) -> Result<()> {
        terminal.starts()?;
        terminal.until_shows(self.ready()).await.map(drop)
    }

    /// Types a prompt, and sends it once it is there to be read.
    pub(crate) async fn is_asked(self, terminal: &Terminal, prompt: &str) -> Result<()> {
        terminal.types_until_shown(prompt).await?;
        terminal.presses("Enter")
    }

    /// Ctrl-C while it works, and it does so no more.
    async fn is_interrupted(self, terminal: &Terminal) -> Result<()> {
        terminal.until_title("it works", works).await?;
        terminal.presses("C-c")?;
        terminal.until_title("it has stopped", |title| !works(title)).await.map(drop)
    }

    /// Whether this line of `ps` is that of its program: Codex is started by a script, which ends as it does.
    fn is_program(self, line: &str) -> bool {
        match self {
            Self::Codex => line.contains("/vendor/"),
            Self::Claude => line.starts_with("claude"),
        }
    }

    /// Ends it by the keys that people use; its exit code.
    async fn quits(self, terminal: &Terminal) -> Result<i32> {
        let before = terminal.prompts().len();
        let command = match self {
            Self::Codex => "/quit",
            Self::Claude => "/exit",
        };
        self.is_asked(terminal, command).await?;
        terminal.until_over(before).await
    }
}

/// From the start to the end with one turn that is at capacity first, and the home that it leaves.
async fn visit(client: OnScreen, via: Via) -> Result<Option<Home>> {
    let refused = if via == Via::Run { 2 } else { 0 };
    let script = client.script(move |number| (number < refused).then(|| client.overloaded()));
    let service = Upstream::start(script).await?;
    let Some(terminal) = Terminal::open(&client, via, service.addr(), None).await? else { return Ok(None) };
    let modes = terminal.modes().await?;
    client.starts(&terminal).await?;
    client.is_asked(&terminal, "say the word").await?;
    terminal.until_shows(WORD).await?;
    assert_eq!(client.turns(&service.requests()), refused + 1);
    follows_the_window(&terminal).await?;
    assert_eq!(client.quits(&terminal).await?, 0);
    if via == Via::Run {
        let screen = terminal.screen()?;
        assert!(screen.contains("steady-relay: 1 call met capacity errors, recovered, "), "{screen}");
    }
    is_as_before(&terminal, &modes).await?;
    Home::of(&terminal.home()).map(Some)
}

/// A client under `run`, in front of a service that answers by this script, before it is started.
struct Stage {
    client: OnScreen,
    service: Upstream,
    terminal: Terminal,
    modes: String,
    /// How many prompts of the shell there were.
    before: usize,
}

impl Stage {
    /// `None`: what it takes is not here.
    async fn set(client: OnScreen, script: Script, settings: Option<&str>) -> Result<Option<Self>> {
        let service = Upstream::start(script).await?;
        let Some(terminal) = Terminal::open(&client, Via::Run, service.addr(), settings).await? else {
            return Ok(None);
        };
        let (modes, before) = (terminal.modes().await?, terminal.prompts().len());
        Ok(Some(Self { client, service, terminal, modes, before }))
    }

    /// The client is started, and asked for the first time.
    async fn begins(&self) -> Result<()> {
        self.client.starts(&self.terminal).await?;
        self.client.is_asked(&self.terminal, "say the word").await
    }

    /// It has answered; it ends, and all is as before.
    async fn ends(&self) -> Result<()> {
        self.terminal.until_shows(WORD).await?;
        assert_eq!(self.client.quits(&self.terminal).await?, 0);
        is_as_before(&self.terminal, &self.modes).await
    }

    /// It has answered, and its title is its own and stays so; it ends.
    async fn ends_with_its_title(&self) -> Result<()> {
        stays(&self.terminal, |title| !works(title) && !title.contains("held")).await?;
        assert_eq!(self.client.quits(&self.terminal).await?, 0);
        self.terminal.until_empty().await
    }
}

/// Nothing runs any more, and the shell has its terminal back.
async fn is_as_before(terminal: &Terminal, modes: &str) -> Result<()> {
    terminal.until_empty().await?;
    assert_eq!(terminal.modes().await?, modes);
    terminal.does("echo $((6*7))-as-ever").await?;
    terminal.until_shows("\n42-as-ever").await.map(drop)
}

/// A prompt too long for one line breaks where the window ends, however wide it is made. It is dropped in the end.
async fn follows_the_window(terminal: &Terminal) -> Result<()> {
    let longest = |screen: &str| {
        let runs = screen.split(|letter| letter != 'x');
        runs.map(str::len).max().filter(|length| *length > 1)
    };
    terminal.types(&"x".repeat(2 * COLUMNS))?;
    let whole = |screen: &str| screen.matches('x').count() >= 2 * COLUMNS;
    let margin =
        COLUMNS - longest(&terminal.until_screen("it is all there", whole).await?).unwrap_or_default();
    assert!(margin < 10, "{}", terminal.screen()?);
    for columns in [80, 100] {
        terminal.resizes(columns)?;
        let what = format!("it is {columns} columns wide");
        terminal.until_screen(&what, |screen| longest(screen) == Some(columns - margin)).await?;
    }
    terminal.presses("C-c")?;
    terminal.until_screen("it is gone", |screen| longest(screen).is_none()).await.map(drop)
}

/// Alone and under `run` the same is left.
async fn visited(client: OnScreen) -> Result<()> {
    let (Some(alone), Some(wrapped)) = (visit(client, Via::Direct).await?, visit(client, Via::Run).await?)
    else {
        return Ok(());
    };
    assert_eq!(wrapped.differences(&alone), [""; 0]);
    assert_eq!(wrapped.naming_a_session(), &BTreeSet::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_on_a_terminal_answers_and_leaves_all_as_it_does_alone() -> Result<()> {
    visited(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_on_a_terminal_answers_and_leaves_all_as_it_does_alone() -> Result<()> {
    visited(OnScreen::Claude).await
}

/// The settings of a relay that holds a call for so long between two sends, of which there are enough, and shows Codex that it does after so long.
fn holding(wait: &str, notice: &str) -> String {
    format!(
        "[relay]\nprofile = \"held\"\n[profile.held]\nbased_on = \"interactive\"\nbase = \"{wait}\"\n\
         cap = \"{wait}\"\noverloaded_base = \"{wait}\"\noverloaded_cap = \"{wait}\"\njitter = \"0ms\"\n\
         sends = 90\n[waiting]\nnotice = \"{notice}\"\n"
    )
}

/// Ctrl-C ends the turn, upstream too, and neither the client nor its relay: while an answer comes, and while none can.
async fn interrupted(client: OnScreen) -> Result<()> {
    let (healed, end) = (Signal::new(), Signal::new());
    let (well, endless) = (healed.clone(), client.endless(&end));
    let script = client.script(move |number| match number {
        0 => Some(endless.clone()),
        _ => (!well.released()).then(|| client.overloaded()),
    });
    let Some(stage) = Stage::set(client, script, Some(&holding("1s", "1h"))).await? else { return Ok(()) };
    let Stage { service, terminal, .. } = &stage;
    stage.begins().await?;
    assert!(service.wait_for(LONGEST, |seen| client.turns(seen) == 1).await, "nothing is asked");
    let pressed = service.now();
    client.is_interrupted(terminal).await?;
    let gone =
        |seen: &[Seen]| seen.iter().find(|seen| client.is_turn(seen)).and_then(|turn| turn.client_gone_at);
    assert!(service.wait_for(LONGEST, |seen| gone(seen).is_some()).await, "its connection stays");
    let took = gone(&service.requests()).unwrap_or_default().saturating_sub(pressed);
    assert!(took < Duration::from_secs(10), "{took:?}");

    client.is_asked(terminal, "and again").await?;
    assert!(service.wait_for(LONGEST, |seen| client.turns(seen) > 1).await, "nothing is asked");
    client.is_interrupted(terminal).await?;
    let sent = client.turns(&service.requests());
    let more = service.wait_for(Duration::from_secs(3), |seen| client.turns(seen) > sent).await;
    assert!(!more, "it is sent again for nobody");

    healed.release();
    client.is_asked(terminal, "one more time").await?;
    stage.ends().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_turn_of_codex_and_nothing_else() -> Result<()> {
    interrupted(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_turn_of_claude_code_and_nothing_else() -> Result<()> {
    interrupted(OnScreen::Claude).await
}

/// Ctrl-Z gives the shell its terminal, and `fg` takes it up again.
async fn suspended(client: OnScreen) -> Result<()> {
    let Some(stage) = Stage::set(client, client.script(|_| None), None).await? else { return Ok(()) };
    let Stage { terminal, modes, before, .. } = &stage;
    client.starts(terminal).await?;
    terminal.presses("C-z")?;
    let code = terminal.until_over(*before).await?;
    assert!(code > 128, "{code}: it has not stopped");
    assert_eq!(terminal.modes().await?, *modes);
    terminal.does("clear").await?;
    terminal.types("fg")?;
    terminal.presses("Enter")?;
    terminal.until_shows(client.ready()).await?;
    client.is_asked(terminal, "say the word").await?;
    stage.ends().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_stops_codex_until_fg() -> Result<()> {
    suspended(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_stops_claude_code_until_fg() -> Result<()> {
    suspended(OnScreen::Claude).await
}

/// The shell hears of a client that was killed, and has a terminal that works.
async fn killed(client: OnScreen) -> Result<()> {
    let Some(stage) = Stage::set(client, client.script(|_| None), None).await? else { return Ok(()) };
    let Stage { terminal, modes, before, .. } = &stage;
    stage.begins().await?;
    terminal.until_shows(WORD).await?;
    terminal.kills("KILL", &terminal.process(|line| client.is_program(line))?)?;
    assert_eq!(terminal.until_over(*before).await?, 128 + 9);
    is_as_before(terminal, modes).await
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_killed_at_its_screen_leaves_a_terminal_that_works() -> Result<()> {
    killed(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_killed_at_its_screen_leaves_a_terminal_that_works() -> Result<()> {
    killed(OnScreen::Claude).await
}

/// What the shell is told of a client without its screen: of one that succeeds, one that fails, and of one that is ended
/// by Ctrl-C and by a signal to what the shell has started.
async fn codes(client: OnScreen, via: Via) -> Result<Vec<i32>> {
    let silent: &dyn Client = match client {
        OnScreen::Codex => &Codex::Key,
        OnScreen::Claude => &Claude,
    };
    let good = match client {
        OnScreen::Codex => responses::good,
        OnScreen::Claude => messages::good,
    };
    let mut codes = Vec::new();
    for script in [script(Vec::new(), good), always(&Reply::status(400).text("no such thing"))] {
        let service = Upstream::start(script).await?;
        let Some(terminal) = Terminal::open(silent, via, service.addr(), None).await? else {
            return Ok(codes);
        };
        let before = terminal.prompts().len();
        terminal.starts()?;
        codes.push(terminal.until_over(before).await?);
        terminal.until_empty().await?;
    }
    for signal in [None, Some("TERM"), Some("HUP")] {
        let service = Upstream::start(always(&Reply::silence())).await?;
        let Some(terminal) = Terminal::open(silent, via, service.addr(), None).await? else {
            return Ok(codes);
        };
        let (modes, before) = (terminal.modes().await?, terminal.prompts().len());
        terminal.starts()?;
        assert!(service.wait_for(LONGEST, |seen| client.turns(seen) > 0).await, "nothing is asked");
        match signal {
            None => terminal.presses("C-c")?,
            Some(signal) => {
                let is_first = |line: &str| match (via, client) {
                    (Via::Run, _) => line.contains("steady-relay run "),
                    (_, OnScreen::Codex) => line.starts_with("node "),
                    (_, OnScreen::Claude) => client.is_program(line),
                };
                terminal.kills(signal, &terminal.process(is_first)?)?;
            }
        }
        codes.push(terminal.until_over(before).await?);
        is_as_before(&terminal, &modes).await?;
    }
    Ok(codes)
}

/// Under `run` it is what it is alone.
async fn told(client: OnScreen) -> Result<()> {
    let alone = codes(client, Via::Direct).await?;
    assert_eq!(codes(client, Via::Run).await?, alone);
    if let [good, failed, _interrupted, terminated, hung_up] = alone[..] {
        assert_eq!((good, failed, terminated, hung_up), (0, 1, 128 + 15, 128 + 1));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_is_told_what_codex_tells() -> Result<()> {
    told(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_is_told_what_claude_code_tells() -> Result<()> {
    told(OnScreen::Claude).await
}

/// Whoever closes the window leaves nothing running.
async fn closed(client: OnScreen) -> Result<()> {
    let Some(stage) = Stage::set(client, client.script(|_| None), None).await? else { return Ok(()) };
    stage.begins().await?;
    stage.terminal.until_shows(WORD).await?;
    stage.terminal.closes()?;
    stage.terminal.until_empty().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_closed_ends_codex_and_its_relay() -> Result<()> {
    closed(OnScreen::Codex).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_closed_ends_claude_code_and_its_relay() -> Result<()> {
    closed(OnScreen::Claude).await
}

/// Claude Code shows no words of ours, so the title of its terminal says what is held. Its own comes back.
#[tokio::test(flavor = "multi_thread")]
async fn the_title_says_what_is_held_for_claude_code() -> Result<()> {
    let client = OnScreen::Claude;
    let healed = Signal::new();
    let well = healed.clone();
    let script = client.script(move |_| (!well.released()).then(|| client.overloaded()));
    let Some(stage) = Stage::set(client, script, Some(&holding("2s", "1h"))).await? else { return Ok(()) };
    let terminal = &stage.terminal;
    stage.begins().await?;
    let held = |title: &str| title.contains(" overloaded, held ");
    let title = terminal.until_title("it says what is held", held).await?;
    assert!(title.starts_with("claude-"), "{title}");
    // It writes its own in between, and ours is there again.
    for _ in 0..3 {
        terminal.until_title("it is the client's", |title| !held(title)).await?;
        terminal.until_title("it is ours", held).await?;
    }
    healed.release();
    terminal.until_shows(WORD).await?;
    stage.ends_with_its_title().await
}

/// Codex shows the notice, so its title stays its own, and does not say that it works when it is done.
#[tokio::test(flavor = "multi_thread")]
async fn codex_shows_what_is_held_and_keeps_its_title() -> Result<()> {
    let client = OnScreen::Codex;
    let script = client.script(move |number| (number < 2).then(|| client.overloaded()));
    // Longer than it takes until a title says so.
    let Some(stage) = Stage::set(client, script, Some(&holding("7s", "1s"))).await? else { return Ok(()) };
    let terminal = &stage.terminal;
    stage.begins().await?;
    let screen = terminal.until_shows("Steady Relay holds this").await?;
    assert!(screen.contains("Reconnecting... 1/5"), "{screen}");
    terminal
        .until("it has answered", || {
            let title = terminal.title()?;
            ensure!(!title.contains("held"), "the title is {title:?}");
            Ok(terminal.screen()?.contains(WORD).then_some(()))
        })
        .await?;
    stage.ends_with_its_title().await
}

/// The title becomes like this, and is so still after all that `run` does late is done.
async fn stays(terminal: &Terminal, fits: impl Fn(&str) -> bool) -> Result<()> {
    terminal.until_title("it is as it should be", &fits).await?;
    let until = Instant::now() + Duration::from_secs(4);
    terminal
        .until("it stays so", || {
            let title = terminal.title()?;
            ensure!(fits(&title), "the title became {title:?}");
            Ok((Instant::now() > until).then_some(()))
        })
        .await
}
