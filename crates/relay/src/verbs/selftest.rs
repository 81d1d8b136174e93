//! `steady-relay selftest`: one small request through a relay in this process.

use std::sync::Arc;
use std::time::Duration;

use relay_core::ClientLimit;
use relay_core::config::{self, Config, UpstreamChoice};
use steady_relay::cli::Flags;
use steady_relay::observe::Observer;
use steady_relay::proxy::{SystemProxies, on_the_way};
use steady_relay::selftest::measure::{
    Stopwatch, added, came_in_pieces, exchange, pretend, pretend_turn, steps,
};
use steady_relay::selftest::report::Measured;
use steady_relay::selftest::{Options, Plan, plan};
use steady_relay::send::outcome::{Came, Watcher};
use steady_relay::settings::Loaded;
use steady_relay::target::Upstream;
use steady_relay::words::{lang, selftest as words};

use super::{Failure, block_on, failed, files, load, print, print_json, private, say, tls_config};

/// So long it waits between sends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks, and prints how long each part took.
pub(crate) fn selftest(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let Loaded { mut config, .. } = load(flags, &files(flags))?;
    // It leaves nothing behind.
    config.state_dir = None;
    // Whoever asks whether it works wants to know that soon, and why not.
    config.numbers.patience = Some(config.numbers.patience.map_or(PATIENCE, |own| own.min(PATIENCE)));
    config.numbers.client_limit = Some(ClientLimit::Shortens);
    let measured = block_on(async {
        tokio::select! {
            // First, so that an interrupt is heard from the start.
            biased;
            _interrupted = tokio::signal::ctrl_c() => Ok(None),
            measured = measured(flags, config, options) => measured.map(Some),
        }
    })?;
    let Some(measured) = measured else { return Ok(130) };
    let printed = if options.json { print_json(&measured.json()) } else { print(&measured.text(lang())) };
    printed.map(|_printed| measured.exit_code())
}

async fn measured(flags: &Flags, config: Config, options: &Options) -> Result<Measured, Failure> {
    // The settings may name one as well: asking it takes the flag.
    match config.upstream.clone().filter(|_| flags.upstream.is_some()) {
        None => of_pretend(config).await,
        Some(choice) => of_service(config, &choice, options).await,
    }
}

async fn of_pretend(mut config: Config) -> Result<Measured, Failure> {
    let unready = |error: std::io::Error| failed(1, &error);
    let (service, at) = pretend().await.map_err(unready)?;
    let upstream = Upstream::parse("pretend", &service.url()).map_err(|why| failed(1, &why))?;
    config.upstream = None;
    let (tls, _notices) = tls_config(&config)?;
    let steps = steps(&upstream, None, &tls).await;
    let (stopwatch, watcher) = (Arc::new(Stopwatch::default()), Arc::new(Watcher::default()));
    let observers = vec![Arc::clone(&stopwatch) as Arc<dyn Observer>, Arc::clone(&watcher) as _];
    let (_relay, door) = private::start(config, Some(upstream), observers).await?;
    let turn = exchange(door, pretend_turn()).await;
    let in_pieces = turn.as_ref().is_ok_and(came_in_pieces);
    let came = Came {
        status: turn.as_ref().ok().map(|turn| turn.status),
        whole: turn.as_ref().is_ok_and(|turn| turn.whole),
        end: watcher.end().await,
    };
    Ok(Measured {
        asked: "POST /v1/responses".to_owned(),
        steps,
        added: added(door, at).await.ok(),
        before_send: stopwatch.before_send(),
        in_pieces: Some(in_pieces),
        exchange: turn.map_err(|error| error.to_string()),
        exit: came.exit_code(),
        ..Measured::default()
    })
}

async fn of_service(config: Config, choice: &UpstreamChoice, options: &Options) -> Result<Measured, Failure> {
    let upstream = named(&config, choice)?;
    let variable = |name: &str| std::env::var(name).ok();
    let Plan { request, has_key, costs } = plan(&upstream, options.model.as_deref(), &variable);
    let service = format!("{} ({})", upstream.name, upstream.shown());
    say(&if costs { words::asks_for_money(lang(), &service) } else { words::asks(lang(), &service) });
    if !has_key {
        say(&words::no_key(lang()));
    }
    let (tls, _notices) = tls_config(&config)?;
    let via = on_the_way(&SystemProxies::found(), &config.proxy, &upstream);
    let steps = steps(&upstream, via.as_deref(), &tls).await;
    let (stopwatch, watcher) = (Arc::new(Stopwatch::default()), Arc::new(Watcher::default()));
    let observers = vec![Arc::clone(&stopwatch) as Arc<dyn Observer>, Arc::clone(&watcher) as _];
    let asked = format!("{} {}", request.method, request.path_and_query);
    let (_relay, door) = private::start(config, Some(upstream), observers).await?;
    let answer = exchange(door, request).await;
    let came = Came {
        status: answer.as_ref().ok().map(|answer| answer.status),
        whole: answer.as_ref().is_ok_and(|answer| answer.whole),
        end: watcher.end().await,
    };
    Ok(Measured {
        service: Some(service),
        asked,
        via: via.map(|proxy| proxy.to_string()),
        has_key,
        steps,
        exchange: answer.map_err(|error| error.to_string()),
        before_send: stopwatch.before_send(),
        exit: came.exit_code(),
        ..Measured::default()
    })
}

fn named(config: &Config, choice: &UpstreamChoice) -> Result<Upstream, Failure> {
    match (choice, config::Upstream::chosen(choice, &config.upstreams)) {
        (choice, Some(entry)) => Ok(Upstream::of(&choice.name(), entry)),
        (UpstreamChoice::Named(name) | UpstreamChoice::Pool(name), None) => {
            let known: Vec<_> = config.upstreams.keys().map(String::as_str).collect();
            Err(failed(2, &words::unknown(lang(), name, &known.join(", "))))
        }
        (UpstreamChoice::Url(_), None) => Err(failed(2, &words::no_upstream(lang()))),
    }
}
