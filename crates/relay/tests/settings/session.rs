//! Settings that are made for a relay of many clients, in the relay of one session.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use relay_sim::{Client, Request};

use crate::program::Home;

/// A client that tells the base URL it was given, and ends when told to.
const CLIENT: &str = "#!/bin/sh\necho \"$ANTHROPIC_BASE_URL\" > base.new && mv base.new base\n\
                      while [ ! -e go ]; do sleep 0.05; done\n";

#[tokio::test]
async fn the_client_of_run_reaches_its_relay_whatever_listen_and_token_say() {
    const TOKEN: &str = "0123456789abcdef";
    for (settings, asks) in [
        ("listen = \"::1\"\n".to_owned(), false),
        (format!("token = \"{TOKEN}\"\n"), true),
        (format!("listen = \"0.0.0.0\"\nport = 1\ntoken = \"{TOKEN}\"\n"), true),
    ] {
        let home = Home::with_config(&format!("[relay]\n{settings}"));
        let client = home.write("claude", CLIENT);
        std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = home.program(&["run", "--", client.to_str().unwrap()]);
        let mut child = command.env("PATH", "/usr/bin:/bin").spawn().unwrap();
        while !home.path("base").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before its client began");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let base = home.read("base");
        let base = base.trim().strip_prefix("http://").unwrap();
        let (address, path) = base.split_at(base.find('/').unwrap_or(base.len()));
        assert!(address.starts_with("127.0.0.1:"), "{base}");
        let mut healthy = Client::connect(address.parse().unwrap()).await.unwrap();
        let answer = healthy.ask(&Request::get(&format!("{path}/healthz"))).await.unwrap();
        // The key lets calls through, and nothing else: the relay's own pages ask for the token.
        assert_eq!((answer.status, answer.text().contains("own pages")), (403, true), "{settings} {base}");
        let mut stranger = Client::connect(address.parse().unwrap()).await.unwrap();
        let answer = stranger.ask(&Request::get("/healthz")).await.unwrap();
        assert_eq!(answer.status, if asks { 401 } else { 200 }, "{settings}");
        // The client's arguments and environment show the key, so it is not the token.
        assert!(!base.contains(TOKEN) && path.starts_with("/~"), "{base}");
        home.write("go", "");
        assert!(child.wait().await.unwrap().success());
    }
}
