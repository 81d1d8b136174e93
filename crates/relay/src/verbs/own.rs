//! A relay of one client's own, which ends with it: when there is one although another could be joined, and how it is
//! started. Not who the client is (that is `run` and `session`).

use std::sync::Arc;

use relay_core::Listen;
use relay_core::config::{Config, LogLevel, Secret};
use steady_relay::app::{Parts, Relay};
use steady_relay::cli::Flags;
use steady_relay::clock::SystemClock;
use steady_relay::history::{self, Recorder};
use steady_relay::listen::Bound;
use steady_relay::observe::log::Log;
use steady_relay::observe::{Notice, Observer};
use steady_relay::proxy::SystemProxies;
use steady_relay::run::{RelayAddr, SessionKey};
use steady_relay::settings::Shown;
use steady_relay::target::Upstreams;
use steady_relay::words;

use super::{Failure, failed, listen, say, targets, tls_config};

/// Why no relay is joined, for those who look into it.
pub(super) fn tell_why(config: &Config, why: &str) {
    if config.log.level >= LogLevel::Debug {
        say(&format!("steady-relay: [own] {why}"));
    }
}

/// Why the client gets a relay of its own without looking for another: somebody said so, or said how its relay is to
/// be, which one that runs would not heed.
pub(super) fn wants_its_own(flags: &Flags, own: bool, shown: &[Shown]) -> Option<&'static str> {
    // These say where a relay is, who may use it and how it reaches the world, which holds for one that runs as well;
    // the log is its own affair, https is for clients that were told of it, and the language is that of what we say.
    let is_neutral = |set: &Shown| {
        let neutral = ["listen", "port", "token", "state_dir", "proxy", "ca_file", "tls", "lang"];
        set.section == "[log]" || neutral.contains(&set.key.as_str())
    };
    let by_variable = |set: &&Shown| !is_neutral(set) && std::env::var_os(&set.origin).is_some();
    if own {
        Some("--own")
    } else if (Flags { lang: None, ..flags.clone() }) != Flags::default() {
        Some("a flag says how the relay is to be")
    } else if shown.iter().find(by_variable).is_some() {
        Some("a variable of the environment says how the relay is to be")
    } else {
        None
    }
}

/// One that has its port, and does not serve yet.
pub(super) struct Own {
    config: Config,
    bound: Bound,
    targets: Upstreams,
    tls: Arc<rustls::ClientConfig>,
    notices: Vec<String>,
}

/// One that serves.
pub(super) struct OwnRelay {
    pub(super) relay: Relay,
    pub(super) log: Arc<Log>,
    pub(super) recorder: Arc<Recorder>,
}

impl Own {
    /// Takes a port for it. `key` is that of the client's session.
    pub(super) async fn bind(flags: &Flags, mut config: Config, key: SessionKey) -> Result<Self, Failure> {
        let (tls, notices) = tls_config(&config)?;
        // Its client is pointed at loopback, wherever a relay that serves many listens, and the port that clients are
        // pointed at for good stays free.
        config.listen = Listen::Localhost;
        if flags.port.is_none() {
            config.port = 0;
        }
        if flags.state_dir.is_none() {
            // It leaves nothing behind, unless it is told to.
            config.state_dir = None;
        }
        // The client's arguments show the key to others on the machine, so it takes the token's place.
        config.token = config.token.map(|_| Secret::new(key.to_string()));
        let bound = listen(&config)?;
        let targets = targets(&config, &bound.addresses()).await?;
        Ok(Self { config, bound, targets, tls, notices })
    }

    /// Where its client finds it.
    pub(super) const fn addr(&self, key: SessionKey) -> RelayAddr {
        RelayAddr { port: self.bound.port, key, has_upstream: self.config.upstream.is_some() }
    }

    /// Starts it; with it comes what the user should know.
    pub(super) fn start(self) -> Result<(OwnRelay, Vec<String>), Failure> {
        let Self { config, bound, targets, tls, notices } = self;
        let clock = Arc::new(SystemClock);
        // The terminal is the client's; a file is free.
        let log = Log::start(&config.log, clock.clone(), false).map_err(|error| failed(2, &error))?;
        let log = Arc::new(log);
        let told_by = Arc::clone(&log);
        let told = move |words: String| {
            told_by.notice(&Notice::Advice(words::start::note(words::lang(), &words)));
        };
        let recorder = history::start(&config, "run", clock.clone(), told)
            .map_err(|error| failed(2, &words::history::no_thread(words::lang(), &error.to_string())))?;
        let relay = Relay::start(Parts {
            config,
            targets,
            tls,
            clock,
            observers: vec![log.clone() as Arc<dyn Observer>],
            recorder: Some(Arc::clone(&recorder)),
            sockets: bound.sockets,
            system_proxies: SystemProxies::found(),
            https: None,
        });
        relay.show_log(log.tail());
        Ok((OwnRelay { relay, log, recorder }, notices))
    }
}
