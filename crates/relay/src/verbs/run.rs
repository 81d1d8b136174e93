//! `steady-relay run -- CLIENT`: starts a client with a relay of its own, and ends the relay with it. Settings are
//! read once: such a relay lives as long as its client.

use std::ffi::OsString;
use std::sync::Arc;

use relay_core::Listen;
use relay_core::client::Kind;
use relay_core::config::Secret;
use steady_relay::app::{Parts, Relay};
use steady_relay::cli::Flags;
use steady_relay::clock::SystemClock;
use steady_relay::observe::Observer;
use steady_relay::observe::log::Log;
use steady_relay::proxy::SystemProxies;
use steady_relay::run::{self, RelayAddr, SessionKey, Summary, Surroundings, closing_line};
use steady_relay::settings::Loaded;
use steady_relay::words;

use super::{Failure, block_on, files, listen, load, say, targets, tls_config};

/// Runs the client; its exit code is ours.
pub(crate) fn run(flags: &Flags, command: &[OsString]) -> Result<u8, Failure> {
    block_on(run_client(flags, command))
}

async fn run_client(flags: &Flags, command: &[OsString]) -> Result<u8, Failure> {
    let mut flags = flags.clone();
    // A relay of the session's own: the port that clients are pointed at for good stays free.
    flags.port.get_or_insert_with(|| "0".to_owned());
    let Loaded { mut config, notices, .. } = load(&flags, &files(&flags))?;
    let (tls, tls_notices) = tls_config(&config)?;
    // Its client is pointed at loopback, wherever a relay that serves many listens.
    config.listen = Listen::Localhost;
    if flags.state_dir.is_none() {
        // It leaves nothing behind, unless it is told to.
        config.state_dir = None;
    }
    let key = config.token.is_some().then(|| session_key(&tls)).transpose()?;
    config.token = key.map(|key| Secret::new(key.to_string()));
    let bound = listen(&config)?;
    let mut targets = targets(&config, &bound.addresses()).await?;
    let Some((client, arguments)) = command.split_first() else {
        return Err(Failure(2, "error: no client named\nhint: steady-relay run -- codex".to_owned()));
    };
    let folder = std::env::current_dir().unwrap_or_default();
    let surroundings = Surroundings {
        env: &|name| std::env::var_os(name),
        read: &|path| std::fs::read_to_string(path),
        folder: &folder,
    };
    let relay = RelayAddr { port: bound.port, key, has_upstream: config.upstream.is_some() };
    let plan = run::plan(client, arguments, surroundings, relay)
        .map_err(|error| Failure(error.exit_code(), format!("error: {error}")))?;
    if let Some(upstream) = plan.upstream.clone() {
        targets.send_everything_to(upstream);
    }
    if let Some(limit) = plan.claude_limit {
        config.clients.entry(Kind::ClaudeCode).or_default().limit.get_or_insert(limit);
    }
    for words in notices.iter().chain(&tls_notices).chain(&plan.notices) {
        say(&format!("steady-relay: {words}"));
    }
    let clock = Arc::new(SystemClock);
    // The terminal is the client's; a file is free.
    let log = Log::start(&config.log, clock.clone(), false)
        .map_err(|error| Failure(2, format!("error: {error}")))?;
    let log = Arc::new(log);
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock,
        observers: vec![log.clone() as Arc<dyn Observer>],
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
        https: None,
    });
    let status = relay.status();
    let ended = run::supervise(&plan).await;
    // The client is gone: nobody is left to be answered.
    relay.drain(std::future::ready(())).await;
    log.close();
    let totals = status.totals();
    if let Some(line) = closing_line(
        words::lang(),
        &Summary {
            calls: totals.met_fault,
            at_capacity: totals.calls_short_of_capacity,
            recovered: totals.calls_saved,
            waited: std::time::Duration::from_secs_f64(totals.waited_s.max(0.0)),
            sends: totals.retried_sends,
            lost: totals.calls_lost,
            maybe_billed_twice: totals.maybe_billed_twice,
        },
    ) {
        say(&line);
    }
    match ended {
        Ok(ended) => Ok(u8::try_from(ended.exit_code()).unwrap_or(1)),
        Err(error) => Err(Failure(error.exit_code(), format!("error: {error}"))),
    }
}

fn session_key(tls: &rustls::ClientConfig) -> Result<SessionKey, Failure> {
    let mut key = [0; 16];
    let filled = tls.crypto_provider().secure_random.fill(&mut key);
    filled.map_err(|_none| Failure(1, "error: the system gives no random numbers for a key".to_owned()))?;
    Ok(SessionKey(u128::from_ne_bytes(key)))
}
