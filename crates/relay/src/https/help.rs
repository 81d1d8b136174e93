//! How clients and systems come to trust the relay's certificate. What works for which client was measured.

use std::path::Path;

use relay_core::Lang;
use serde_json::{Value, json};

use crate::words::https as say;

/// One way.
struct Way {
    /// Who comes to trust it.
    who: String,
    /// The variable that does it for a client.
    variable: Option<&'static str>,
    /// The commands that do it for a system, without the file; `{file}` stands for it.
    commands: &'static [&'static str],
    note: Option<String>,
}

/// Nothing of it depends on where this program runs: a file may be meant for a container, or for the other side of WSL.
fn ways(lang: Lang) -> (Vec<Way>, Vec<Way>) {
    let client = |who: String, variable, note| Way { who, variable: Some(variable), commands: &[], note };
    let system = |who: &str, commands| Way { who: who.to_owned(), variable: None, commands, note: None };
    let clients = vec![
        client(say::node_sdks(lang), "NODE_EXTRA_CA_CERTS", Some(say::node_note(lang))),
        client(say::python_sdks(lang), "SSL_CERT_FILE", Some(say::python_note(lang))),
        client(say::requests_library(lang), "REQUESTS_CA_BUNDLE", None),
        client("Codex".to_owned(), "SSL_CERT_FILE", None),
        client("curl".to_owned(), "CURL_CA_BUNDLE", None),
        client("git".to_owned(), "GIT_SSL_CAINFO", None),
    ];
    let systems = vec![
        system(
            "Debian, Ubuntu",
            &[
                "sudo cp {file} /usr/local/share/ca-certificates/steady-relay.crt",
                "sudo update-ca-certificates",
            ],
        ),
        system(
            "Fedora, RHEL",
            &["sudo cp {file} /etc/pki/ca-trust/source/anchors/steady-relay.pem", "sudo update-ca-trust"],
        ),
        system("Arch", &["sudo trust anchor --store {file}"]),
        system(
            "macOS",
            &["security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db {file}"],
        ),
        system("Windows", &["certutil -user -addstore Root {file}"]),
    ];
    (clients, systems)
}

/// A path in a command line; one with a blank in it needs quotes, in every shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(|sign: char| sign.is_whitespace() || "'&;()$".contains(sign)) {
        format!("\"{text}\"")
    } else {
        text
    }
}

impl Way {
    fn lines(&self, file: &str) -> Vec<String> {
        match self.variable {
            Some(variable) => vec![format!("{variable}={file}")],
            None => self.commands.iter().map(|command| command.replace("{file}", file)).collect(),
        }
    }

    fn in_words(&self, file: &str, into: &mut Vec<String>) {
        into.push(format!("  {}", self.who));
        into.extend(self.lines(file).into_iter().map(|line| format!("      {line}")));
        into.extend(self.note.iter().map(|note| format!("      ({note})")));
    }
}

/// In words.
#[must_use]
pub fn words(lang: Lang, certificate: &Path) -> String {
    let file = quoted(certificate);
    let (clients, systems) = ways(lang);
    let mut lines = vec![say::help_title(lang, &certificate.display().to_string()), String::new()];
    lines.push(say::help_clients(lang));
    clients.iter().for_each(|way| way.in_words(&file, &mut lines));
    lines.extend([String::new(), say::help_systems(lang)]);
    systems.iter().for_each(|way| way.in_words(&file, &mut lines));
    lines.extend([String::new(), say::bounded(lang), say::never_off(lang)]);
    lines.join("\n")
}

/// For programs.
#[must_use]
pub fn page(certificate: &Path) -> Value {
    let file = certificate.display().to_string();
    let (clients, systems) = ways(Lang::English);
    let each = |way: &Way| json!({"who": way.who, "variable": way.variable, "lines": way.lines(&file)});
    json!({
        "v": 1,
        "file": file,
        "clients": clients.iter().map(each).collect::<Vec<_>>(),
        "systems": systems.iter().map(each).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_names_the_file() {
        let path = Path::new("/home/a b/ca.pem");
        for lang in Lang::ALL {
            let words = words(lang, path);
            for part in
                ["NODE_EXTRA_CA_CERTS=\"/home/a b/ca.pem\"", "SSL_CERT_FILE=", "certutil", "security add"]
            {
                assert!(words.contains(part), "{part}: {words}");
            }
            assert!(!words.contains("{file}"), "{words}");
        }
        let page = page(path);
        assert_eq!(page["clients"][1]["lines"][0], "SSL_CERT_FILE=/home/a b/ca.pem");
        assert_eq!(page["systems"].as_array().map(Vec::len), Some(5));
    }
}
