//! `steady-relay run -- CLIENT`: starts a client so that its requests come through a relay, the one that runs or one of
//! its own, and ends its session with it. Settings are read once: a session lives as long as its client.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

use relay_core::config::Config;
use steady_relay::cli::{self, Flags};
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::files::Files;
use steady_relay::history::Recorder;
use steady_relay::observe::log::Log;
use steady_relay::run::join::{NotJoined, Running};
use steady_relay::run::{self, Link, Plan, RelayAddr, SessionKey, Surroundings, Watch, closing_line};
use steady_relay::settings::Loaded;
use steady_relay::words;

use super::own::{Own, OwnRelay, tell_why, wants_its_own};
use super::signals::Signals;
use super::{Failure, block_on, failed, files, load, say, session_key};

/// Runs the client; its exit code is ours.
pub(crate) fn run(flags: &Flags, client: &cli::Run) -> Result<u8, Failure> {
    block_on(run_client(flags, client))
}

/// A client that can be started.
struct Ready {
    plan: Plan,
    link: Link,
    /// What the user should know beside what the plan says.
    notices: Vec<String>,
    /// The log and the records of a relay of its own.
    own: Option<(Arc<Log>, Arc<Recorder>)>,
}

async fn run_client(flags: &Flags, client: &cli::Run) -> Result<u8, Failure> {
    let Loaded { config, notices, shown, .. } = load(flags, &files(flags))?;
    let Some((program, arguments)) = client.command.split_first() else {
        return Err(failed(2, &words::run::no_client(words::lang())));
    };
    let start = Start { program, arguments, key: session_key()? };
    let own = || start.with_a_relay_of_its_own(flags, config.clone(), notices);
    let ready = match wants_its_own(flags, client.own, &shown) {
        Some(why) => {
            tell_why(&config, why);
            own().await?
        }
        None => match start.joining(&config).await {
            Ok(ready) => ready,
            Err(NotReady::NotJoined(why)) => {
                tell_why(&config, &why.to_string());
                own().await?
            }
            Err(NotReady::Failed(failure)) => return Err(failure),
        },
    };
    let Ready { plan, link, notices, own } = ready;
    let mut watch = Watch::by(&config.waiting, &plan);
    for what in notices.iter().chain(&plan.notices) {
        say(&words::run::told(words::lang(), what));
    }
    let began = SystemClock.now();
    let ended = tokio::select! {
        ended = run::supervise(&plan) => ended,
        never = watch.over(&link) => match never {},
    };
    watch.end().await;
    // From now on: what came before was for the client.
    let mut signals = Signals::new()?;
    if link.is_renewing() {
        let told = words::credentials::ends_after_it(words::lang());
        say(&words::start::note(words::lang(), &told));
    }
    let sums = link.end(signals.next()).await;
    if let Some((log, recorder)) = own {
        recorder.close();
        log.close();
    }
    if let Some(line) = closing_line(words::lang(), &sums, SystemClock.now().since(began)) {
        say(&line);
    }
    match ended {
        Ok(ended) => Ok(u8::try_from(ended.exit_code()).unwrap_or(1)),
        Err(error) => Err(failed(error.exit_code(), &error)),
    }
}

/// Why a client is not ready to be started with the relay that runs.
enum NotReady {
    /// It gets a relay of its own.
    NotJoined(NotJoined),
    /// Nor would it be with any other.
    Failed(Failure),
}

impl From<NotJoined> for NotReady {
    fn from(why: NotJoined) -> Self {
        Self::NotJoined(why)
    }
}

/// What is to be started.
struct Start<'a> {
    program: &'a OsStr,
    arguments: &'a [OsString],
    key: SessionKey,
}

impl Start<'_> {
    fn plan(&self, relay: RelayAddr) -> Result<Plan, Failure> {
        let folder = std::env::current_dir().unwrap_or_default();
        let files = Files::anew();
        let read = |path: &Path| {
            let bytes = files.read(path)?;
            String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        let env = |name: &str| std::env::var_os(name);
        let surroundings = Surroundings { env: &env, read: &read, folder: &folder };
        run::plan(self.program, self.arguments, surroundings, relay)
            .map_err(|error| failed(error.exit_code(), &error))
    }

    /// With a session at the relay that runs.
    async fn joining(&self, config: &Config) -> Result<Ready, NotReady> {
        let running = Running::find(config.port, config.state_dir.as_deref(), config.token.as_ref()).await?;
        let relay = RelayAddr { port: running.port(), key: self.key, has_upstream: running.has_upstream };
        let plan = self.plan(relay).map_err(NotReady::Failed)?;
        let joined = running.open(plan.wanted(self.key)).await?;
        Ok(Ready { plan, link: Link::Joined(joined), notices: Vec::new(), own: None })
    }

    async fn with_a_relay_of_its_own(
        &self,
        flags: &Flags,
        config: Config,
        notices: Vec<String>,
    ) -> Result<Ready, Failure> {
        let bound = Own::bind(flags, config, self.key).await?;
        let plan = self.plan(bound.addr(self.key))?;
        let (relay, own_notices) = bound.start()?;
        let OwnRelay { relay, log, recorder } = relay;
        let holder = relay.sessions().open(&plan.wanted(self.key));
        let holder = holder.map_err(|error| failed(1, &error))?;
        let notices = notices.into_iter().chain(own_notices).collect();
        Ok(Ready { plan, link: Link::Own(Box::new(relay), holder), notices, own: Some((log, recorder)) })
    }
}
