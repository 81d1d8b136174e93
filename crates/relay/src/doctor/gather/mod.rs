//! Finds the facts out, all side by side, and none of it for longer than some ten seconds: what is not known by then is not
//! known. Nothing is written, and no request carries a credential.

mod asked;
mod clients;
mod machine;
mod upstreams;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use relay_core::config::{Config, Secret};

use super::facts::{Clients, Facts, Here, Service, Settings};
use crate::files::Files;
use crate::installed::About;
use crate::listen;
use crate::proxy::{Proxies, SystemProxies};
use crate::running::{self, Who};
use crate::service::ServiceError;
use crate::service::act::Manager;
use crate::settings::{Env, Places};
use crate::setup::{Folders, RelayAt, here as on_this};
use crate::{tls, words};

/// How long anything may take that is looked at.
const WITHIN: Duration = Duration::from_secs(10);

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
    let env = patient.env;
    let text = |name: &str| env.value(name).and_then(|value| value.into_string().ok());
    let folders = Folders::on(&on_this::machine());
    let read = read_text;
    let plan = folders.as_ref().and_then(|folders| machine::plan(&folders.codex, &read));
    let Patient { config, places, folder, .. } = &patient;
    let about = About::this();
    let seen = Facts {
        catching: crate::proxy::catching_clients(&text).map(str::to_owned),
        plan: plan.map(|plan| plan.name()),
        is_routed: config.upstreams.get("chatgpt").is_some_and(|entry| !entry.headers.is_empty()),
        open_files: machine::open_files(config, places),
        odd_env_files: machine::odd_env_files(places, folder, folders.as_ref()),
        has_tls: config.tls,
        history: machine::history(config),
        alerts: machine::alerts(config, folder, &text),
        credentials: config.credentials.len(),
        flaws: crate::credentials::all_flaws(config).collect(),
        installed: about.installed,
        update: about.update,
        ..Facts::default()
    };
    let relay = RelayAt::of(config);
    let manager = Manager::here(env, words::lang());
    let nobody = BTreeSet::new();
    let (way, clients, service, (versions, silent_clients), localhost, wsl) = tokio::join!(
        way(patient, &nobody),
        clients(relay),
        service(manager),
        machine::versions(),
        machine::localhost(),
        machine::wsl(),
    );
    let mut certificates = way.certificates;
    certificates.extend(machine::certificates(&text));
    let Facts { settings, at, here, memory, upstreams, more_upstreams, own_proxy, .. } = way;
    Facts {
        settings,
        at,
        here,
        memory,
        upstreams,
        more_upstreams,
        own_proxy,
        certificates,
        clients,
        service,
        versions,
        silent_clients,
        localhost,
        wsl,
        ..seen
    }
}

/// Gathers what lies between the relay and the services, and nothing of the clients. Where calls went to some upstreams
/// of the settings, these are asked.
pub async fn way(patient: Patient<'_>, called: &BTreeSet<String>) -> Facts {
    let Patient { config, settings, env, proxies, .. } = patient;
    let at = running::address(&config);
    let text = |name: &str| env.value(name).and_then(|value| value.into_string().ok());
    let folders = Folders::on(&on_this::machine());
    let signed_in = upstreams::signed_in(folders.as_ref(), &read_text, &text);
    let known = upstreams::Known { signed_in, called };
    let own_proxy = own_proxy(&config, &proxies, at);
    let (tls, certificates) = match tls::client_config(&config.ca_files) {
        Ok((tls, _notices)) => (Some(tls), Vec::new()),
        Err(error) => {
            let words = error.to_string();
            let what = words.lines().next().unwrap_or_default().to_owned();
            // Without them no service can be asked.
            (None, vec![("ca_file, SSL_CERT_FILE".to_owned(), what)])
        }
    };
    let asked = async {
        match tls {
            Some(tls) => upstreams::ask(&config, known, (&tls, Arc::new(proxies)), at).await,
            None => (Vec::new(), 0),
        }
    };
    let token = config.token.as_ref().map(Secret::expose);
    let ((here, memory), (upstreams, more_upstreams)) = tokio::join!(here(at, token), asked);
    Facts {
        settings,
        at: at.to_string(),
        here,
        memory,
        upstreams,
        more_upstreams,
        own_proxy,
        certificates,
        ..Facts::default()
    }
}

fn read_text(path: &Path) -> Option<String> {
    Files::anew().read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// What is at the relay's address, and how much memory it takes. The relay takes `[::1]` beside 127.0.0.1.
async fn here(at: SocketAddr, token: Option<&str>) -> (Here, Option<u64>) {
    let beside = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), at.port());
    let (mut there, beside_it) = tokio::join!(running::look(at, token), running::look(beside, None));
    let mut at = at;
    if there == Err(Who::Nobody) && at.ip() == Ipv4Addr::LOCALHOST && beside_it == Err(Who::Stranger) {
        (there, at) = (beside_it, beside);
    }
    let holder = async || tokio::task::spawn_blocking(move || listen::holder(at)).await.ok().flatten();
    match there {
        Ok(page) => {
            let holder = holder().await;
            (Here::Relay(page), holder.and_then(|holder| machine::memory(holder.pid)))
        }
        Err(Who::Nobody) => (Here::Free, None),
        Err(Who::Relay) => (Here::Locked, None),
        Err(Who::Stranger) => (Here::Taken(holder().await), None),
        Err(Who::Silent | Who::StandIn) => (Here::Held(holder().await), None),
    }
}

/// What clients were told. Their files are read, and their addresses asked, where waiting holds nobody up.
async fn clients(relay: RelayAt) -> Clients {
    let looked = tokio::task::spawn_blocking(move || clients::found(&on_this::machine(), &relay));
    looked.await.unwrap_or_default()
}

/// The service of this user.
async fn service(manager: Result<Manager, ServiceError>) -> Service {
    let manager = match manager {
        Ok(manager) => manager,
        Err(error) => return Service::Unknown(error.to_string()),
    };
    match tokio::task::spawn_blocking(move || manager.status()).await {
        Ok(Ok(status)) if status.installed.is_some() => Service::Installed(status),
        Ok(Err(error @ (ServiceError::NotOurs(_) | ServiceError::File(..)))) => {
            Service::Odd(error.to_string())
        }
        Ok(Ok(_) | Err(ServiceError::NotInstalled)) => Service::Absent,
        Ok(Err(error)) => Service::Unknown(error.to_string()),
        Err(error) => Service::Unknown(error.to_string()),
    }
}

/// The proxy on the way to services that is the relay itself.
fn own_proxy(config: &Config, proxies: &SystemProxies, at: SocketAddr) -> Option<String> {
    Proxies::new(proxies.clone(), config.proxy.clone(), vec![at]).itself().map(|proxy| proxy.to_string())
}
