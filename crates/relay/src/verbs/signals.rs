//! The signals that end the relay, and the one that makes it read its settings anew.

use super::Failure;

/// The signals that end the relay.
pub(super) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn on(kind: tokio::signal::unix::SignalKind) -> Result<tokio::signal::unix::Signal, Failure> {
    tokio::signal::unix::signal(kind).map_err(|error| {
        Failure(1, steady_relay::words::start::no_signals(steady_relay::words::lang(), &error.to_string()))
    })
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::SignalKind;
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    pub(super) const fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _end = self.terminate.recv() => {}
            _end = self.interrupt.recv() => {}
        }
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Signals {
    /// Waits until somebody ends this program. Ctrl-C on a terminal is for the program that it serves.
    #[cfg(unix)]
    pub(super) async fn terminated(&mut self) {
        if self.terminate.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// The same where that cannot be told.
    #[cfg(not(unix))]
    pub(super) async fn terminated(&mut self) {
        loop {
            self.next().await;
        }
    }
}

/// SIGHUP, where the system has it.
pub(super) struct Hangups {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Hangups {
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self { hangup: on(tokio::signal::unix::SignalKind::hangup())? })
    }

    #[cfg(not(unix))]
    pub(super) const fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if self.hangup.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}
