//! https for clients that insist on it, on the same port as http: the first byte tells which one it is. The certificate
//! is the relay's own ([`authority`]) and renewed while the relay runs. Not TLS towards upstreams (that is `tls`).

pub mod authority;
pub mod help;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use clap::{Args, Subcommand};
use relay_core::config::Config;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) use wire::{Opening, Wire, begins_tls, is_distrust};

use crate::words::{self, https as say};
use authority::{Authority, HttpsError};

/// What to do with the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Print what it holds for, until when, and its fingerprint.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say for each client and system how it comes to trust the certificate.
    TrustHelp {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a new one in place of what is there; clients have to trust it anew.
    ///
    /// Only needed where `names` were added, a file is damaged, or somebody else has seen the key: its end is seen to by
    /// the relay itself.
    Renew {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// TLS for clients.
#[derive(Debug)]
pub struct Https {
    /// What a handshake goes by.
    pub(crate) server: Arc<ServerConfig>,
    shelf: Arc<Shelf>,
}

/// The certificate that is shown to clients; another one takes its place before its end.
#[derive(Debug)]
struct Shelf {
    state: PathBuf,
    names: Vec<String>,
    held: ArcSwap<Held>,
}

#[derive(Debug)]
struct Held {
    key: Arc<CertifiedKey>,
    renew_at: SystemTime,
    /// The certificate of the authority that vouches for it.
    by: CertificateDer<'static>,
}

impl ResolvesServerCert for Shelf {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.held.load().key))
    }
}

impl Https {
    /// TLS by these settings, with the authority of their state folder, which is made where there is none; and what the
    /// user should know.
    ///
    /// # Errors
    /// Where there is no folder, or its files cannot be used.
    pub fn open(config: &Config, now: SystemTime) -> Result<(Self, Vec<String>), HttpsError> {
        let state = config.state_dir.as_deref().ok_or(HttpsError::NoFolder)?;
        let authority = Authority::open(state, &config.names, now)?;
        let refused = authority.refused(&config.names);
        let notices = if refused.is_empty() {
            Vec::new()
        } else {
            vec![say::names_refused(words::lang(), &refused.join(", "))]
        };
        let held = ArcSwap::from_pointee(held(&authority, &config.names, now)?);
        let shelf = Arc::new(Shelf { state: state.to_owned(), names: config.names.clone(), held });
        let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpsError::Library(error.to_string()))?
            .with_no_client_auth();
        let mut server = server.with_cert_resolver(Arc::clone(&shelf) as Arc<dyn ResolvesServerCert>);
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok((Self { server: Arc::new(server), shelf }, notices))
    }

    /// Takes on another certificate where it is time, or where `cert renew` made another authority.
    ///
    /// # Errors
    /// Where the files cannot be used; what was shown before stays.
    pub fn refresh(&self, now: SystemTime) -> Result<(), HttpsError> {
        let Shelf { state, names, held: current } = &*self.shelf;
        let old = current.load();
        let is_due = now >= old.renew_at;
        let authority =
            if is_due { Some(Authority::open(state, names, now)?) } else { Authority::look(state)? };
        if let Some(authority) = authority.filter(|it| is_due || *it.certificate() != old.by) {
            current.store(Arc::new(held(&authority, names, now)?));
        }
        Ok(())
    }
}

fn held(authority: &Authority, names: &[String], now: SystemTime) -> Result<Held, HttpsError> {
    let leaf = authority.leaf(names, now)?;
    let key = default_provider()
        .key_provider
        .load_private_key(PrivateKeyDer::Pkcs8(leaf.key))
        .map_err(|error| HttpsError::Library(error.to_string()))?;
    let key = Arc::new(CertifiedKey::new(vec![leaf.certificate], key));
    Ok(Held { key, renew_at: leaf.renew_at, by: authority.certificate().clone() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_certificate_is_replaced_before_its_end_and_when_the_authority_is_another() {
        let state = std::env::temp_dir().join(format!("steady-relay-https-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&state));
        let config = Config { state_dir: Some(state.clone()), ..Config::default() };
        let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let day = |n: u64| begin + Duration::from_secs(n * 24 * 3600);
        let (https, notices) = Https::open(&config, day(0)).unwrap();
        assert_eq!(notices, [""; 0]);
        let shown = || https.shelf.held.load().key.cert[0].clone();
        let first = shown();
        https.refresh(day(59)).unwrap();
        assert_eq!(shown(), first);
        https.refresh(day(60)).unwrap();
        let second = shown();
        assert_ne!(second, first);
        Authority::renew(&state, &[], day(60)).unwrap();
        https.refresh(day(60)).unwrap();
        let third = shown();
        assert_ne!(third, second);
        // What is damaged meanwhile is told, and the old one goes on.
        std::fs::write(authority::certificate_path(&state), "x").unwrap();
        assert!(https.refresh(day(61)).is_err());
        assert_eq!(shown(), third);
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn names_that_the_authority_may_not_vouch_for_are_told() {
        let state = std::env::temp_dir().join(format!("steady-relay-https-names-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&state));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let config = Config { state_dir: Some(state.clone()), ..Config::default() };
        Https::open(&config, now).unwrap();
        let more = Config { names: vec!["relay.lan".to_owned()], ..config };
        let (_, notices) = Https::open(&more, now).unwrap();
        assert!(notices[0].contains("relay.lan") && notices[0].contains("cert renew"), "{notices:?}");
        std::fs::remove_dir_all(&state).unwrap();
        let nowhere = Config { state_dir: None, ..Config::default() };
        assert!(matches!(Https::open(&nowhere, now), Err(HttpsError::NoFolder)));
    }
}
