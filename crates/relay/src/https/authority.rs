//! The relay's own certificate authority: one key and one certificate in the state folder, made on first use. It can
//! vouch for `localhost`, the names of the settings, and addresses, and for no other name (name constraints). Addresses
//! are not constrained, since Claude Code then takes no certificate that holds for one (measured, 2.1).
//! What is there and not whole, or not ours, is told and never replaced, unless somebody asks for that by name.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData as _,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use crate::private;
use crate::words::{self, https as say};

/// The folder in the state folder.
const FOLDER: &str = "tls";
/// The certificate that clients trust.
const CERTIFICATE: &str = "ca.pem";
/// Its key.
const KEY: &str = "ca-key.pem";
/// Neither is longer.
const LONGEST: u64 = 64 * 1024;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long the authority holds: whoever trusts it by hand does not want to do so every year.
const AUTHORITY_LIFE: Duration = Duration::from_secs(5 * 365 * 24 * 3600);
/// How long what it vouches for holds.
const LEAF_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Clocks that are a little behind take it, too.
const SLACK: Duration = DAY;

/// What the authority calls itself.
const AUTHORITY: &str = "Steady Relay local authority";

/// Names of this machine for itself.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why there is no https.
#[derive(Debug)]
pub enum HttpsError {
    /// Nothing says where keys could be kept.
    NoFolder,
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
    /// A file is there and holds something else than it should.
    Damaged(PathBuf, String),
    /// The library refuses.
    Library(String),
    /// Nothing was made yet.
    NoneYet(PathBuf),
}

impl std::fmt::Display for HttpsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lang = words::lang();
        f.write_str(&match self {
            Self::NoFolder => say::no_folder(lang),
            Self::File(path, error) => {
                say::file_failed(lang, &path.display().to_string(), &error.to_string())
            }
            Self::Damaged(path, why) => say::damaged(lang, &path.display().to_string(), why),
            Self::Library(why) => say::library(lang, why),
            Self::NoneYet(path) => say::none_yet(lang, &path.display().to_string()),
        })
    }
}

/// What is worth knowing of the authority's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The file.
    pub path: PathBuf,
    /// From when it holds.
    pub begins: SystemTime,
    /// Until when.
    pub ends: SystemTime,
    /// Its SHA-256, as others print it.
    pub fingerprint: String,
    /// The names that it may vouch for, beside addresses.
    pub names: Vec<String>,
    /// Whether the relay made it, rather than somebody who put another one in its place.
    is_own: bool,
}

/// The authority.
pub struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    facts: Facts,
}

/// A certificate that the authority vouches for, with its key.
pub(super) struct Leaf {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivatePkcs8KeyDer<'static>,
    /// When the next one should be made: well before its end.
    pub(super) renew_at: SystemTime,
}

/// Where the certificate is that clients have to trust.
#[must_use]
pub fn certificate_path(state: &Path) -> PathBuf {
    paths(state).0
}

fn paths(state: &Path) -> (PathBuf, PathBuf) {
    let folder = state.join(FOLDER);
    (folder.join(CERTIFICATE), folder.join(KEY))
}

fn library(error: rcgen::Error) -> HttpsError {
    HttpsError::Library(error.to_string())
}

impl Authority {
    /// The authority of this state folder; `None` where none was made yet.
    ///
    /// # Errors
    /// Where a file cannot be read, or holds what it should not.
    pub fn look(state: &Path) -> Result<Option<Self>, HttpsError> {
        let (at, key_at) = paths(state);
        match (read(&at, private::read_open)?, read(&key_at, private::read)?) {
            (None, _) => Ok(None),
            (Some(_), None) => Err(HttpsError::Damaged(key_at, say::key_missing(words::lang()))),
            (Some(certificate), Some(key)) => {
                let key = parse_key(&key_at, &key)?;
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
                    .map_err(|error| HttpsError::Damaged(at.clone(), error.to_string()))?;
                let facts = facts(&at, &certificate, &key)?;
                Ok(Some(Self { certificate, key, facts }))
            }
        }
    }

    /// The authority of this state folder, made if there is none, and with a new certificate for the same key where the
    /// old one is near its end: who trusts the old one then trusts it until its end.
    ///
    /// # Errors
    /// Where files cannot be read, written or used.
    pub fn open(state: &Path, names: &[String], now: SystemTime) -> Result<Self, HttpsError> {
        let (at, key_at) = paths(state);
        match Self::look(state)? {
            Some(found) if found.facts.ends > now + LEAF_LIFE => Ok(found),
            Some(other) if !other.facts.is_own => {
                let ended = || HttpsError::Damaged(at, say::has_ended(words::lang()));
                (other.facts.ends > now).then_some(other).ok_or_else(ended)
            }
            Some(old) => {
                write_certificate(&at, &certificate_of(&old.key, &old.facts.names, now)?, private::replace)?;
                Self::look(state)?.ok_or(HttpsError::NoneYet(at))
            }
            None => {
                let fresh = KeyPair::generate().map_err(library)?;
                write(&key_at, &fresh.serialize_pem(), private::put)?;
                // Another relay may have been faster, or left a key without its certificate.
                let text =
                    read(&key_at, private::read)?.ok_or_else(|| HttpsError::NoneYet(key_at.clone()))?;
                let key = parse_key(&key_at, &text)?;
                write_certificate(&at, &certificate_of(&key, names, now)?, private::put)?;
                Self::look(state)?.ok_or(HttpsError::NoneYet(at))
            }
        }
    }

    /// A new authority in place of whatever is there. Clients have to trust it anew.
    ///
    /// # Errors
    /// Where files cannot be written.
    pub fn renew(state: &Path, names: &[String], now: SystemTime) -> Result<Self, HttpsError> {
        let (at, key_at) = paths(state);
        let key = KeyPair::generate().map_err(library)?;
        let certificate = certificate_of(&key, names, now)?;
        // The old certificate first: between the two steps there is none, which is in order, and not a wrong one.
        match std::fs::remove_file(&at) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(HttpsError::File(at, error)),
            Ok(()) | Err(_) => {}
        }
        write(&key_at, &key.serialize_pem(), private::replace)?;
        write_certificate(&at, &certificate, private::replace)?;
        Self::look(state)?.ok_or(HttpsError::NoneYet(at))
    }

    /// What is worth knowing of it.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Those of these names that it may not vouch for.
    #[must_use]
    pub fn refused<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        let may = |name: &str| is_address(name) || self.facts.names.iter().any(|own| own == name);
        names.iter().map(String::as_str).filter(|name| !may(name)).collect()
    }

    /// A certificate for this machine and for those of the names that the authority may vouch for.
    pub(super) fn leaf(&self, names: &[String], now: SystemTime) -> Result<Leaf, HttpsError> {
        let refused = self.refused(names);
        let others = names.iter().filter(|name| !refused.contains(&name.as_str())).cloned();
        let all: Vec<String> = OWN.iter().map(|name| (*name).to_owned()).chain(others).collect();
        let mut params = CertificateParams::new(all).map_err(library)?;
        params.distinguished_name = subject("Steady Relay on this machine");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let ends = (now + LEAF_LIFE).min(self.facts.ends);
        params.not_before = (now - SLACK).into();
        params.not_after = ends.into();
        let key = KeyPair::generate().map_err(library)?;
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key).map_err(library)?;
        let certificate = params.signed_by(&key, &issuer).map_err(library)?;
        let left = ends.duration_since(now).unwrap_or_default();
        Ok(Leaf {
            certificate: certificate.der().clone(),
            key: key.serialize_der().into(),
            renew_at: now + left * 2 / 3,
        })
    }

    /// Tells this authority from any other.
    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }
}

fn read(path: &Path, by: fn(&Path, u64) -> io::Result<Vec<u8>>) -> Result<Option<String>, HttpsError> {
    match by(path, LONGEST) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_binary) => Err(HttpsError::Damaged(path.to_owned(), say::no_pem(words::lang()))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HttpsError::File(path.to_owned(), error)),
    }
}

fn write(path: &Path, text: &str, by: fn(&Path, &[u8]) -> io::Result<()>) -> Result<(), HttpsError> {
    let folder = path.parent().unwrap_or(path);
    let written = private::folder(folder).and_then(|()| by(path, text.as_bytes()));
    written.map_err(|error| HttpsError::File(path.to_owned(), error))
}

/// A certificate is no secret, and whoever is to trust it reads it. A mode that somebody gave it stays.
fn write_certificate(
    path: &Path,
    text: &str,
    by: fn(&Path, &[u8]) -> io::Result<()>,
) -> Result<(), HttpsError> {
    #[cfg(unix)]
    let mode = std::fs::metadata(path).map_or_else(
        |_none| std::os::unix::fs::PermissionsExt::from_mode(0o644),
        |found| found.permissions(),
    );
    write(path, text, by)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, mode).map_err(|error| HttpsError::File(path.to_owned(), error))?;
    Ok(())
}

/// What a parser says of a key is not repeated: it could hold a part of it.
fn parse_key(path: &Path, text: &str) -> Result<KeyPair, HttpsError> {
    KeyPair::from_pem(text)
        .map_err(|_secret| HttpsError::Damaged(path.to_owned(), say::no_private_key(words::lang())))
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// The certificate of an authority, in PEM.
fn certificate_of(key: &KeyPair, names: &[String], now: SystemTime) -> Result<String, HttpsError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let own = OWN.iter().copied();
    let others = names.iter().map(String::as_str).filter(|name| !OWN.contains(name));
    let all = own.chain(others).filter(|name| !is_address(name));
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: all.map(|name| GeneralSubtree::DnsName(name.to_owned())).collect(),
        excluded_subtrees: Vec::new(),
    });
    params.not_before = (now - SLACK).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    Ok(params.self_signed(key).map_err(library)?.pem())
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// Reads a certificate, which has to be that of an authority with this key.
fn facts(path: &Path, certificate: &CertificateDer<'_>, key: &KeyPair) -> Result<Facts, HttpsError> {
    let damaged = |why: String| HttpsError::Damaged(path.to_owned(), why);
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|_unreadable| damaged(say::no_certificate(words::lang())))?;
    if !parsed.is_ca() {
        return Err(damaged(say::no_authority(words::lang())));
    }
    if parsed.public_key().raw != key.subject_public_key_info() {
        return Err(damaged(say::other_key(words::lang())));
    }
    let at = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let fingerprint: Vec<_> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(Facts {
        path: path.to_owned(),
        begins: at(parsed.validity().not_before.timestamp()),
        ends: at(parsed.validity().not_after.timestamp()),
        fingerprint: fingerprint.join(":"),
        names: permitted(&parsed),
        is_own: parsed.subject().iter_common_name().any(|name| name.as_str() == Ok(AUTHORITY)),
    })
}

/// The names that a certificate permits. One that permits all is not ours, and none is vouched for by it beside our own.
fn permitted(certificate: &X509Certificate<'_>) -> Vec<String> {
    let constraints = certificate.name_constraints().ok().flatten();
    let constraints = constraints.and_then(|found| found.value.permitted_subtrees.as_ref());
    let name = |name: &GeneralName<'_>| {
        if let GeneralName::DNSName(name) = name { Some((*name).to_owned()) } else { None }
    };
    constraints.into_iter().flatten().filter_map(|subtree| name(&subtree.base)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("steady-relay-tls-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        folder
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    #[test]
    fn it_is_made_once_private_and_bound_to_its_names() {
        let state = folder("made");
        let names = ["relay.lan".to_owned(), "192.168.1.5".to_owned()];
        assert!(Authority::look(&state).unwrap().is_none());
        let made = Authority::open(&state, &names, now()).unwrap();
        let again = Authority::open(&state, &[], now()).unwrap();
        assert_eq!(made.facts(), again.facts());
        assert_eq!(made.facts().names, ["localhost", "relay.lan"]);
        assert_eq!(made.facts().ends, now() + AUTHORITY_LIFE);
        let others = ["relay.lan", "example.com", "192.168.1.6"].map(str::to_owned);
        assert_eq!(made.refused(&others), ["example.com"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let (at, key) = paths(&state);
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&at), mode(&key)), (0o644, 0o600));
            // What somebody set stays, with a new certificate, too; the key is closed again.
            for path in [&at, &key] {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
            }
            Authority::look(&state).unwrap();
            assert_eq!((mode(&at), mode(&key)), (0o640, 0o600));
            Authority::open(&state, &[], now() + AUTHORITY_LIFE).unwrap();
            assert_eq!(mode(&at), 0o640);
        }
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn near_its_end_it_gets_a_new_certificate_for_the_same_key() {
        let state = folder("end");
        let old = Authority::open(&state, &[], now()).unwrap();
        let later = now() + AUTHORITY_LIFE - LEAF_LIFE;
        let new = Authority::open(&state, &[], later).unwrap();
        assert_eq!(new.facts().ends, later + AUTHORITY_LIFE);
        assert_eq!(old.key.serialize_der(), new.key.serialize_der());
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn an_authority_of_somebody_else_is_used_as_long_as_it_holds_and_never_replaced() {
        let state = folder("foreign");
        Authority::open(&state, &[], now()).unwrap();
        let (at, key_at) = paths(&state);
        let key = KeyPair::from_pem(&std::fs::read_to_string(key_at).unwrap()).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("The authority of our house");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = (now() - DAY).into();
        params.not_after = (now() + DAY).into();
        let pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(&at, &pem).unwrap();
        let theirs = Authority::open(&state, &[], now()).unwrap();
        assert_eq!(theirs.leaf(&[], now()).unwrap().renew_at, now() + DAY * 2 / 3);
        assert!(
            matches!(Authority::open(&state, &[], now() + DAY), Err(HttpsError::Damaged(path, _)) if path == at)
        );
        assert_eq!(std::fs::read_to_string(&at).unwrap(), pem);
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn what_is_damaged_or_foreign_is_told_and_kept_until_it_is_renewed() {
        let state = folder("damaged");
        Authority::open(&state, &[], now()).unwrap();
        let (at, key_at) = paths(&state);
        let [whole, whole_key] = [&at, &key_at].map(|path| std::fs::read_to_string(path).unwrap());
        let other = KeyPair::generate().unwrap();
        let leaf =
            CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&other).unwrap().pem();
        let rows = [
            (&at, String::new(), "PEM"),
            (&at, whole.replace("MII", "AAA"), "certificate"),
            (&at, leaf, "authority"),
            (&at, certificate_of(&other, &[], now()).unwrap(), "does not belong"),
            (&key_at, other.serialize_pem(), "does not belong"),
            (&key_at, "hunter2".to_owned(), "no private key"),
            (&key_at, whole_key[..whole_key.len() / 2].to_owned(), "no private key"),
        ];
        for (path, text, why) in rows {
            std::fs::write(&at, &whole).unwrap();
            std::fs::write(&key_at, &whole_key).unwrap();
            std::fs::write(path, &text).unwrap();
            let error = Authority::open(&state, &[], now()).err().unwrap().to_string();
            assert!(error.contains("\nhint: ") && error.contains("cert renew"), "{error}");
            assert!(why == "PEM" || error.contains(why), "{why}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
            assert_eq!(std::fs::read_to_string(path).unwrap(), text, "{why}: it is as it was");
        }
        std::fs::remove_file(&key_at).unwrap();
        assert!(
            matches!(Authority::open(&state, &[], now()), Err(HttpsError::Damaged(path, _)) if path == key_at)
        );
        assert!(Authority::renew(&state, &[], now()).is_ok());
        // A key without its certificate is half of a beginning.
        std::fs::remove_file(&at).unwrap();
        assert!(Authority::open(&state, &[], now()).is_ok());
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn relays_that_begin_at_the_same_time_have_the_same_authority() {
        let state = folder("together");
        let prints: Vec<_> = std::thread::scope(|scope| {
            let open = || Authority::open(&state, &[], now()).unwrap().facts().fingerprint.clone();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(prints.iter().all(|print| *print == prints[0]), "{prints:?}");
        std::fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    fn it_vouches_for_its_names_and_no_longer_than_it_holds() {
        let state = folder("leaf");
        let authority = Authority::open(&state, &[], now()).unwrap();
        let leaf = authority.leaf(&["example.com".to_owned()], now()).unwrap();
        assert_eq!(leaf.renew_at, now() + LEAF_LIFE * 2 / 3);
        let (_, parsed) = x509_parser::parse_x509_certificate(&leaf.certificate).unwrap();
        let names = parsed.subject_alternative_name().unwrap().unwrap().value.general_names.clone();
        assert_eq!(names.len(), OWN.len());
        let last = authority.facts().ends - DAY;
        let late = authority.leaf(&[], last).unwrap();
        assert_eq!(late.renew_at, last + DAY * 2 / 3);
        std::fs::remove_dir_all(&state).unwrap();
    }
}
