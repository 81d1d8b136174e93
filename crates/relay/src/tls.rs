//! Whom the relay trusts when it speaks TLS to an upstream: the system's roots, and the files a user names on top.
//! What it is not: a place to turn checking off. There is no such switch.
//!
//! `SSL_CERT_FILE` adds to the system's roots here. The crate that reads the system's roots lets that variable
//! *replace* them, so it is not asked wherever the variable could reach it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::words::{lang, start};

/// Why there is no TLS. Each one is the user's to mend, so each names its file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that was named cannot be read as PEM.
    #[error("{}", start::unreadable_certificates(lang(), &path.display().to_string(), detail))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What reading it said.
        detail: String,
    },
    /// A file that was named holds no certificate that can be trusted.
    #[error("{}", start::no_certificate(lang(), &path.display().to_string(), detail))]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// Why its certificates are not usable, if it has any.
        detail: String,
    },
    /// The TLS library refuses what it was given.
    #[error("{}", start::no_tls(lang(), .0))]
    Setup(String),
}

/// The settings of all TLS connections to upstreams, and notices for the user. Which protocols are asked for is up to
/// whoever connects.
///
/// # Errors
/// Where a file in `extra_ca` is missing, unreadable or without a certificate.
pub fn client_config(extra_ca: &[PathBuf]) -> Result<(Arc<ClientConfig>, Vec<String>), TlsError> {
    let Trusted { roots, named, notices } = trusted(extra_ca)?;
    // Chosen by hand: the process-wide default is whatever some crate put there.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let web_pki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| TlsError::Setup(error.to_string()))?;
    let verifier = Arc::new(Verifier { web_pki, named });
    let config = with_provider(provider)?
        .dangerous() // The name of the door for any verifier of one's own; ours asks for all that WebPKI asks.
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((Arc::new(config), notices))
}

fn with_provider(
    provider: Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, TlsError> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Setup(error.to_string()))
}

struct Trusted {
    roots: RootCertStore,
    /// The certificates of the files that the user named.
    named: Vec<CertificateDer<'static>>,
    notices: Vec<String>,
}

fn trusted(extra_ca: &[PathBuf]) -> Result<Trusted, TlsError> {
    let mut all = Trusted { roots: RootCertStore::empty(), named: Vec::new(), notices: Vec::new() };
    let (system, mut notice) = system_roots();
    let (added, _unusable) = all.roots.add_parsable_certificates(system);
    if added == 0 {
        all.roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        notice.get_or_insert_with(|| start::no_roots(lang()));
    }
    all.notices.extend(notice);
    for path in extra_ca {
        add_file(path, &mut all)?;
    }
    Ok(all)
}

fn add_file(path: &Path, all: &mut Trusted) -> Result<(), TlsError> {
    let unreadable = |error: pem::Error| {
        let io = if let pem::Error::Io(error) = &error { Some(error.to_string()) } else { None };
        TlsError::Unreadable { path: path.to_owned(), detail: io.unwrap_or_else(|| error.to_string()) }
    };
    let (mut usable, mut refused) = (0_u32, None);
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let certificate = certificate.map_err(unreadable)?;
        match all.roots.add(certificate.clone()) {
            Ok(()) => {
                usable += 1;
                all.named.push(certificate);
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    match (usable, refused) {
        (0, refused) => {
            let detail = refused.map(|error| format!(": {error}")).unwrap_or_default();
            Err(TlsError::NoCertificate { path: path.to_owned(), detail })
        }
        (_, Some(error)) => {
            all.notices.push(start::unusable_certificate(lang(), &path.display().to_string(), &error));
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

/// The system's roots from where they lie, since [`rustls_native_certs::load_native_certs`] looks at
/// `SSL_CERT_FILE` first. The places are those of the `openssl-probe` crate.
#[cfg(all(unix, not(target_os = "macos")))]
fn system_roots() -> (Vec<CertificateDer<'static>>, Option<String>) {
    const BUNDLES: [&str; 9] = [
        "/etc/ssl/certs/ca-certificates.crt", // Debian, Ubuntu, Arch, Alpine
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
        "/etc/pki/tls/certs/ca-bundle.crt",   // older RHEL
        "/etc/ssl/ca-bundle.pem",             // openSUSE
        "/etc/pki/tls/cacert.pem",            // OpenELEC
        "/etc/ssl/cert.pem",                  // Alpine, OpenBSD
        "/usr/local/etc/ssl/cert.pem",        // FreeBSD
        "/etc/openssl/certs/ca-certificates.crt", // NetBSD
        "/data/data/com.termux/files/usr/etc/tls/cert.pem", // Termux
    ];
    const FOLDERS: [&str; 4] = [
        "/etc/ssl/certs",
        "/etc/pki/tls/certs",
        "/var/lib/ca-certificates/openssl",
        "/usr/local/share/certs",
    ];

    let bundle = BUNDLES.iter().map(Path::new).find(|path| path.exists());
    let folders: Vec<_> = FOLDERS.iter().map(Path::new).filter(|path| path.is_dir()).collect();
    let mut found = rustls_native_certs::load_certs_from_paths(bundle, folders.first().copied());
    for folder in folders.iter().skip(1) {
        found.certs.extend(rustls_native_certs::load_certs_from_paths(None, Some(folder)).certs);
    }
    found.certs.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
    found.certs.dedup();
    let unreadable = found.errors.first().filter(|_| found.certs.is_empty());
    let notice = unreadable.map(|error| start::unreadable_roots(lang(), &error.to_string()));
    (found.certs, notice)
}

/// Windows and macOS keep their roots behind an interface, which only the crate that looks at the two variables
/// first can ask. Where one is set, the built-in list stands in.
#[cfg(not(all(unix, not(target_os = "macos"))))]
fn system_roots() -> (Vec<CertificateDer<'static>>, Option<String>) {
    let replaced = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if replaced("SSL_CERT_FILE") || replaced("SSL_CERT_DIR") {
        return (Vec::new(), Some(start::replaced_roots(lang())));
    }
    (rustls_native_certs::load_native_certs().certs, None)
}

/// WebPKI, with one addition: a server may present exactly a certificate that the user named.
///
/// WebPKI refuses a certificate that says it is an authority as a server's own, yet that is what
/// `openssl req -x509` makes and what people name for a service on their own machine. It checks the dates before it
/// comes to that refusal, so what is left to check is the name; the handshake proves that the server has the key.
#[derive(Debug)]
struct Verifier {
    web_pki: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked =
            self.web_pki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(error) = checked else { return checked };
        if !is_authority_as_server(&error) || !self.named.iter().any(|named| named == end_entity) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web_pki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web_pki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.web_pki.supported_verify_schemes()
    }
}

fn is_authority_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) = error else { return false };
    matches!(inner.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    fn self_signed(is_ca: IsCa, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn verify(
        named: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &'static str,
    ) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(named.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let web_pki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let verifier = Verifier { web_pki, named: vec![named.clone()] };
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
        verifier.verify_server_cert(shown, &[], &ServerName::try_from(name).unwrap(), &[], now).map(|_| ())
    }

    const AUTHORITY: IsCa = IsCa::Ca(BasicConstraints::Unconstrained);

    #[test]
    fn a_named_self_signed_certificate_is_trusted_for_its_own_name_and_time() {
        for is_ca in [AUTHORITY, IsCa::NoCa, IsCa::ExplicitNoCa] {
            let named = self_signed(is_ca, 2090);
            verify(&named, &named, "localhost").unwrap();
            assert!(verify(&named, &named, "elsewhere.example").is_err(), "{is_ca:?}: another name");
            let stale = self_signed(is_ca, 2021);
            let refusal = verify(&stale, &stale, "localhost").unwrap_err();
            assert!(
                matches!(refusal, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })),
                "{is_ca:?}: {refusal}"
            );
            let other = self_signed(is_ca, 2090);
            assert!(verify(&named, &other, "localhost").is_err(), "{is_ca:?}: another certificate");
        }
    }

    fn file(name: &str, content: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("steady-relay-tls-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn a_bad_file_is_an_error_that_names_it() {
        let empty = file("empty.pem", "no certificate here\n");
        let broken = file("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        for path in [PathBuf::from("/nowhere/ca.pem"), empty.clone(), broken.clone()] {
            let error = client_config(std::slice::from_ref(&path)).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
        std::fs::remove_file(empty).unwrap();
        std::fs::remove_file(broken).unwrap();
    }

    #[test]
    fn a_named_file_adds_to_the_roots() {
        let pem = |certificate: &CertificateDer<'_>| {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(certificate);
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let path = file("one.pem", &pem(&self_signed(AUTHORITY, 2090)));
        let (without, with) = (trusted(&[]).unwrap(), trusted(std::slice::from_ref(&path)).unwrap());
        assert_eq!((with.roots.len(), with.named.len()), (without.roots.len() + 1, 1));
        assert!(without.roots.len() > 20, "system roots, or the built-in ones");
        std::fs::remove_file(path).unwrap();
    }

    /// Runs itself again with the variables set: they must not take the system's roots away.
    #[test]
    fn the_variables_do_not_replace_the_system_roots() {
        let wanted = std::env::var("STEADY_RELAY_TEST_ROOTS").ok();
        let found = trusted(&[]).unwrap().roots.len().to_string();
        if let Some(wanted) = wanted {
            assert_eq!(found, wanted);
            return;
        }
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tls::tests::the_variables_do_not_replace_the_system_roots"])
            .env("STEADY_RELAY_TEST_ROOTS", found)
            .env("SSL_CERT_FILE", "/nowhere/ca.pem")
            .env("SSL_CERT_DIR", "/nowhere")
            .output()
            .unwrap();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    }
}
