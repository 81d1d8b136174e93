//! `steady-relay serve`: listens and relays until it is told to stop; follows its settings while it runs.

use std::net::SocketAddr;
use std::sync::Arc;

use relay_core::config::{Config, UpstreamChoice};
use steady_relay::app::{Parts, Relay};
use steady_relay::cli::Flags;
use steady_relay::clock::SystemClock;
use steady_relay::observe::log::Log;
use steady_relay::observe::{Notice, Observer};
use steady_relay::proxy::SystemProxies;
use steady_relay::reload::{Watch, needs_restart};
use steady_relay::settings::Loaded;

use super::signals::{Hangups, Signals};
use super::{Failure, block_on, listen, load, places, targets, tls_config};

/// Serves until told to stop.
pub(crate) fn serve(flags: &Flags) -> Result<u8, Failure> {
    block_on(serve_until_told(flags))
}

async fn serve_until_told(flags: &Flags) -> Result<u8, Failure> {
    // Before they are read: a file that changes meanwhile is read again.
    let watch = Watch::over(&places(flags));
    let Loaded { config, notices, .. } = load(flags)?;
    let (tls, tls_notices) = tls_config(&config)?;
    let bound = listen(&config)?;
    let listening = bound.addresses();
    let targets = targets(&config, &listening).await?;
    let mut signals = Signals::new()?;
    let hangups = Hangups::new()?;
    let clock = Arc::new(SystemClock);
    let log = Log::start(&config.log, clock.clone(), true)
        .map_err(|error| Failure(2, format!("error: {error}")))?;
    let log = Arc::new(log);
    let told: Vec<String> = notices.into_iter().chain(tls_notices).collect();
    for words in told.iter().chain(&bound.notices) {
        log.notice(&Notice::Advice(format!("note: {words}")));
    }
    let url = match listening.first() {
        Some(address) => format!("http://{address}"),
        None => format!("port {}", bound.port),
    };
    let upstream = config.upstream.as_ref().map(|choice| match choice {
        // A path may be a secret.
        UpstreamChoice::Url(upstream) => {
            format!("{}://{}", upstream.url.scheme().name(), upstream.url.authority())
        }
        UpstreamChoice::Named(name) => format!("[upstream.{name}]"),
    });
    log.notice(&Notice::Listening { url, upstream });
    let started_with = config.clone();
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock,
        observers: vec![log.clone()],
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
    });
    let following = Following { flags, relay: &relay, log: &log, listening, started_with, told };
    tokio::select! {
        () = signals.next() => {}
        () = following.follow(watch, hangups) => {}
    }
    relay.drain(signals.next()).await;
    log.close();
    Ok(0)
}

/// A relay that follows its settings.
struct Following<'a> {
    flags: &'a Flags,
    relay: &'a Relay,
    log: &'a Log,
    listening: Vec<SocketAddr>,
    started_with: Config,
    /// What was said at the start, and is not said again at every change.
    told: Vec<String>,
}

impl Following<'_> {
    /// Reloads whenever a file changes or somebody asks; never ends.
    async fn follow(&self, mut watch: Watch, mut hangups: Hangups) {
        loop {
            let asked = tokio::select! {
                () = hangups.next() => {
                    watch.look_now();
                    true
                }
                () = watch.changed() => false,
            };
            self.reload(asked).await;
            // The files themselves may be others now.
            watch.now_over(&places(self.flags));
        }
    }

    async fn reload(&self, asked: bool) {
        match self.try_reload(asked).await {
            Ok(()) => {}
            Err(Failure(_, words)) => self.relay.notice(&Notice::ReloadRefused(words)),
        }
    }

    async fn try_reload(&self, asked: bool) -> Result<(), Failure> {
        let Loaded { config, notices, .. } = load(self.flags)?;
        let old = self.relay.config();
        if config == *old {
            if asked {
                self.relay.notice(&Notice::Advice("note: the settings are as they were".to_owned()));
            }
            return Ok(());
        }
        let targets = targets(&config, &self.listening).await?;
        let mut tls = None;
        let mut words = notices;
        if config.ca_files != old.ca_files {
            let (fresh, notices) = tls_config(&config)?;
            tls = Some(fresh);
            words.extend(notices);
        }
        let kept = needs_restart(&self.started_with, &config);
        self.log.set_level(config.log.level);
        self.relay.reload(config, targets, tls);
        for words in words.into_iter().filter(|words| !self.told.contains(words)) {
            self.relay.notice(&Notice::Advice(format!("note: {words}")));
        }
        self.relay.notice(&Notice::Reloaded { kept });
        Ok(())
    }
}
