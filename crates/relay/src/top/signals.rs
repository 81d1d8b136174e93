//! Signals: those that end the program, the one that lets it go on, and how it suspends itself.

use std::io;

/// What the system tells the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is to end.
    End,
    /// It goes on after it was stopped.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing stops a program there"))]
    GoesOn,
}

#[cfg(unix)]
mod platform {
    use super::{Told, io};
    use rustix::process::{Signal as Name, kill_current_process_group};
    use std::time::Duration;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// How long it takes at most until a process stops that asked for it. One that nobody could wake again never does.
    const UNTIL_STOPPED: Duration = Duration::from_millis(500);

    pub(in super::super) struct Signals {
        ends: [Signal; 3],
        goes_on: Signal,
    }

    impl Signals {
        pub(in super::super) fn new() -> io::Result<Self> {
            let ends = [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
            ];
            Ok(Self { ends, goes_on: signal(SignalKind::from_raw(Name::CONT.as_raw()))? })
        }

        pub(in super::super) async fn next(&mut self) -> Told {
            let [terminate, interrupt, hangup] = &mut self.ends;
            tokio::select! {
                _ = terminate.recv() => Told::End,
                _ = interrupt.recv() => Told::End,
                _ = hangup.recv() => Told::End,
                _ = self.goes_on.recv() => Told::GoesOn,
            }
        }

        /// Stops this process and those that were started with it, as the terminal does; returns once it goes on.
        pub(in super::super) async fn suspend(&mut self) -> io::Result<()> {
            kill_current_process_group(Name::TSTP)?;
            // The signal may take a moment to arrive.
            let goes_on = self.goes_on.recv();
            let _on = tokio::time::timeout(UNTIL_STOPPED, goes_on).await;
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use super::{Told, io};

    pub(in super::super) struct Signals;

    impl Signals {
        pub(in super::super) const fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(in super::super) async fn next(&mut self) -> Told {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Told::End,
                Err(_) => std::future::pending().await,
            }
        }

        /// Nothing suspends a program here.
        pub(in super::super) async fn suspend(&mut self) -> io::Result<()> {
            std::future::ready(Ok(())).await
        }
    }
}

pub(super) use platform::Signals;
