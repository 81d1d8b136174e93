//! Clients that are installed here, each as `cert trust-help` says. One that is missing is skipped, and named.

use std::process::Stdio;

use tokio::process::Command;

use crate::program::serve;
use crate::support::{Folder, soon};
use crate::tools::missing;

/// Runs it; `None`: it is not installed.
async fn run(line: &[&str], variable: Option<(&str, &str)>) -> Option<String> {
    let (program, arguments) = line.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(variable).stdin(Stdio::null()).kill_on_drop(true);
    match soon(command.output()).await {
        Ok(ended) => Some(String::from_utf8_lossy(&ended.stdout).into_owned()),
        Err(_missing) => {
            missing(program);
            None
        }
    }
}

const PYTHON: &str = "import sys, urllib.request as r\nprint(r.urlopen(sys.argv[1]).read().decode())";
const NODE: &str = "fetch(process.argv[1]).then(a => a.text()).then(console.log, e => console.error(e))";

#[tokio::test]
async fn each_trusts_it_by_its_variable_alone() {
    let folder = Folder::new();
    let (_child, at, _) = serve(&folder, &["--tls"]).await;
    let ca = folder.ca();
    let ca = ca.to_str().unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{}/healthz", at.port());
        let clients: [(&[&str], &str); 3] = [
            (&["curl", "-sS", "-m", "10", &url], "CURL_CA_BUNDLE"),
            (&["python3", "-c", PYTHON, &url], "SSL_CERT_FILE"),
            (&["node", "-e", NODE, &url], "NODE_EXTRA_CA_CERTS"),
        ];
        for (line, variable) in clients {
            let Some(alone) = run(line, None).await else { continue };
            assert!(!alone.contains("ok"), "{} trusts it unasked", line[0]);
            let told = run(line, Some((variable, ca))).await.unwrap_or_default();
            assert_eq!(told.trim(), "ok", "{} with {variable}", line[0]);
        }
        let by_flag = run(&["curl", "-sS", "-m", "10", "--cacert", ca, "--http2", &url], None).await;
        assert_eq!(by_flag.as_deref().map_or("ok", str::trim), "ok");
    }
}
