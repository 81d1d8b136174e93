//! The program as a child, for tests of several kinds: run to its end, or serving.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use relay_sim::{Answer, Client, Request};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Long enough for anything that should happen.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Runs it to its end: exit code, standard output, standard error.
pub(crate) async fn run(command: &mut Command) -> (i32, String, String) {
    let ended = timeout(SOON, command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code().unwrap_or(-1), text(ended.stdout), text(ended.stderr))
}

/// The program while it serves.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) addr: SocketAddr,
    pub(crate) said: watch::Receiver<String>,
}

impl Serving {
    /// Starts it, and waits until it says where it listens.
    pub(crate) async fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, mut said) = watch::channel(String::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|said| *said += &(line + "\n"));
            }
        });
        let url = |said: &str| {
            let mut begins = ["listening on http://", "正在监听 http://"].iter();
            let url = begins.find_map(|words| said.split(words).nth(1))?;
            url.split(|c: char| c.is_whitespace() || c == '\\' || c == '"').next()?.parse().ok()
        };
        let listening = timeout(SOON, said.wait_for(|said| url(said).is_some())).await;
        let addr = listening.unwrap().ok().and_then(|said| url(&said));
        let addr = addr.unwrap_or_else(|| panic!("it does not listen: {}", *said.borrow()));
        Self { child, addr, said }
    }

    /// What it said so far.
    pub(crate) fn said(&self) -> String {
        self.said.borrow().clone()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await.unwrap().patience(SOON)
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        self.client().await.ask(request).await.unwrap()
    }
}
