//! A relay for this process alone: on 127.0.0.1, at a port and with a key that nobody else is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use relay_core::Listen;
use relay_core::config::{Config, Secret};
use steady_relay::app::{Parts, Relay};
use steady_relay::clock::SystemClock;
use steady_relay::listen::{Place, bind};
use steady_relay::observe::Observer;
use steady_relay::proxy::SystemProxies;
use steady_relay::send::exchange::Door;
use steady_relay::target::Upstream;
use steady_relay::words::{lang, start};

use super::{Failure, failed, session_key, targets, tls_config};

/// Starts one under these settings, for requests that go to `upstream`, or else where the settings send them.
pub(super) async fn start(
    mut config: Config,
    upstream: Option<Upstream>,
    observers: Vec<Arc<dyn Observer>>,
) -> Result<(Relay, Door), Failure> {
    let (tls, _told_at_the_start_of_serve) = tls_config(&config)?;
    let key = session_key()?;
    config.listen = Listen::Localhost;
    config.token = Some(Secret::new(key.to_string()));
    // It is over before anybody could be told of it.
    config.alerts.kinds.clear();
    if upstream.is_some() {
        // The URL has said where to.
        for route in &mut config.routes {
            route.upstream = None;
        }
    }
    for entry in config.upstreams.values_mut() {
        // That is for relays that stay.
        entry.warm_on_start = false;
    }
    let bound =
        bind(Place::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))).map_err(|error| failed(1, &error))?;
    let listening = bound.addresses();
    let mut targets = targets(&config, &listening).await?;
    if let Some(upstream) = upstream {
        targets.set(upstream.clone());
        targets.send_everything_to(upstream);
    }
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock: Arc::new(SystemClock),
        observers,
        recorder: None,
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
        https: None,
    });
    let addr = listening.first().copied().ok_or_else(|| failed(1, &start::no_socket(lang())))?;
    Ok((relay, Door { addr, key }))
}
