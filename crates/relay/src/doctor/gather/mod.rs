//! Finds the facts out, all side by side, and none of it for longer than some ten seconds: what is not known by then is not
//! known. Nothing is written, and no request carries a credential.

mod machine;
mod upstreams;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use relay_core::config::{Config, Secret};

use super::clients::{self, ClientFiles, ClientSetting, OnThisMachine};
use super::facts::{Answers, Facts, Here, Settings, VsCodeProxy};
use crate::files::Files;
use crate::listen;
use crate::proxy::{Proxies, SystemProxies};
use crate::running::{self, There};
use crate::settings::{Env, Places};
use crate::tls;

/// How long anything may take that is looked at.
const WITHIN: Duration = Duration::from_secs(10);
/// The most settings of clients that are looked at.
const MOST_SETTINGS: usize = 64;

/// What the doctor is shown.
pub struct Patient<'a> {
    /// The settings, or those that would hold without any.
    pub config: Config,
    /// What reading them came to.
    pub settings: Settings,
    /// Where they are looked for.
    pub places: Places,
    /// The environment.
    pub env: Env<'a>,
    /// What the environment or the system says about proxies.
    pub proxies: SystemProxies,
    /// The working directory.
    pub folder: PathBuf,
}

/// Gathers everything.
pub async fn gather(patient: Patient<'_>) -> Facts {
    let Patient { config, settings, places, env, proxies, folder } = patient;
    let at = running::address(&config);
    let text = |name: &str| env.value(name).and_then(|value| value.into_string().ok());
    let path = |name: &str| env.value(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let client_places = clients::Places::by(&path);
    let read = |path: &Path| Files::anew().read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let on_this_machine = OnThisMachine { places: client_places.clone(), read: &read, variable: &text };
    let mut told = on_this_machine.settings();
    told.truncate(MOST_SETTINGS);
    let plan = machine::plan(&client_places.codex, &read);
    let known = upstreams::Known { signed_in: upstreams::signed_in(&client_places, &read, &text) };
    let mut facts = Facts {
        settings,
        at: at.to_string(),
        own_proxy: own_proxy(&config, &proxies, at),
        catching: machine::catching(&text),
        plan: plan.map(|plan| plan.name()),
        is_routed: config.upstreams.get("chatgpt").is_some_and(|entry| !entry.headers.is_empty()),
        open_files: machine::open_files(&config, &places),
        odd_env_files: machine::odd_env_files(&places, &folder, &client_places.home),
        vscode_proxy: told
            .iter()
            .find(|setting| setting.key == "http.proxy")
            .map(|setting| vscode_proxy(setting, at)),
        ..Facts::default()
    };
    told.retain(|setting| setting.key != "http.proxy");
    let (tls, mut certificates) = match tls::client_config(&config.ca_files) {
        Ok((tls, _notices)) => (Some(tls), Vec::new()),
        Err(error) => {
            let words = error.to_string();
            let what = words.lines().next().unwrap_or_default().to_owned();
            // Without them no service can be asked.
            (None, vec![("ca_file, SSL_CERT_FILE".to_owned(), what)])
        }
    };
    certificates.extend(machine::certificates(&text));
    facts.certificates = certificates;
    let asked = async {
        match tls {
            Some(tls) => upstreams::ask(&config, known, (&tls, Arc::new(proxies)), at).await,
            None => (Vec::new(), 0),
        }
    };
    let token = config.token.as_ref().map(Secret::expose);
    let (here, asked, answers, versions, localhost, wsl) = tokio::join!(
        here(at, token),
        asked,
        join_all(told.iter().map(|setting| answers(setting, at, token))),
        machine::versions(),
        machine::localhost(),
        machine::wsl(),
    );
    (facts.here, facts.memory) = here;
    (facts.upstreams, facts.more_upstreams) = asked;
    facts.clients = told.into_iter().zip(answers).collect();
    (facts.versions, facts.localhost, facts.wsl) = (versions, localhost, wsl);
    facts
}

/// What is at the relay's address, and how much memory it takes. The relay takes `[::1]` beside 127.0.0.1.
async fn here(at: SocketAddr, token: Option<&str>) -> (Here, Option<u64>) {
    let beside = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), at.port());
    let (mut there, beside_it) = tokio::join!(running::look(at, token), running::look(beside, None));
    let mut at = at;
    if there == There::Nothing && at.ip() == Ipv4Addr::LOCALHOST && beside_it == There::Other {
        (there, at) = (There::Other, beside);
    }
    let holder = || tokio::task::spawn_blocking(move || listen::holder(at));
    match there {
        There::Nothing => (Here::Free, None),
        There::Locked => (Here::Locked, None),
        There::Other => (Here::Taken(holder().await.ok().flatten()), None),
        There::Relay(page) => {
            let holder = holder().await.ok().flatten();
            (Here::Relay(page), holder.and_then(|holder| machine::memory(holder.pid)))
        }
    }
}

/// What is at the address that a client was told, where that is this machine.
async fn answers(setting: &ClientSetting, relay: SocketAddr, token: Option<&str>) -> Answers {
    let Some((host, port)) = setting.host_and_port() else { return Answers::Elsewhere };
    let mut best = Answers::Elsewhere;
    for ip in on_this_machine(&host) {
        let at = SocketAddr::new(ip, port);
        // The token is for our own relay and nobody else.
        match running::look(at, token.filter(|_| at == relay)).await {
            There::Relay(_) | There::Locked => return Answers::Relay,
            There::Other => return Answers::Other,
            There::Nothing => best = Answers::Nothing,
        }
    }
    best
}

/// The addresses of a host that is this machine; of any other, none.
fn on_this_machine(host: &str) -> Vec<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    let here = |ip: &IpAddr| ip.is_loopback() || ip.is_unspecified();
    host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()).filter(here).into_iter().collect()
}

/// The proxy of VS Code, and whether it is the relay at this address.
fn vscode_proxy(setting: &ClientSetting, relay: SocketAddr) -> VsCodeProxy {
    let is_relay = setting.host_and_port().is_some_and(|(host, port)| {
        port == relay.port() && (host == relay.ip().to_string() || !on_this_machine(&host).is_empty())
    });
    VsCodeProxy { proxy: setting.shown(), file: setting.place.clone(), is_relay }
}

/// The proxy on the way to services that is the relay itself.
fn own_proxy(config: &Config, proxies: &SystemProxies, at: SocketAddr) -> Option<String> {
    Proxies::new(proxies.clone(), config.proxy.clone(), vec![at]).itself().map(|proxy| proxy.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_is_the_relay_is_known_in_every_spelling() {
        let relay: SocketAddr = "127.0.0.1:8787".parse().unwrap();
        let is_relay = |url: &str| {
            let (client, place, key) =
                ("VS Code".to_owned(), "settings.json".to_owned(), "http.proxy".to_owned());
            vscode_proxy(&ClientSetting { client, place, key, url: url.to_owned() }, relay).is_relay
        };
        for ours in [
            "http://127.0.0.1:8787",
            "http://LOCALHOST:8787/",
            "http://[::1]:8787",
            "http://me:pw@0.0.0.0:8787",
        ] {
            assert!(is_relay(ours), "{ours}");
        }
        for other in ["http://127.0.0.1:8788", "http://proxy.example:8787", "http://10.0.0.1:8787", ""] {
            assert!(!is_relay(other), "{other}");
        }
    }
}
