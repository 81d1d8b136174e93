//! Looking after a session while its client runs: how it is, from the relay that has it, and who is shown that.

use std::time::Duration;

use relay_core::config::{Desktop, Waiting};

use super::Plan;
use super::join::Joined;
use super::title::Title;
use crate::app::Relay;
use crate::clock::{Clock as _, SystemClock};
use crate::held::{Telling, show};
use crate::sessions::Holder;
use crate::sessions::said::{Page, Sums};
use crate::terminal::controlling;
use crate::words;

/// How often it is looked at: seldom; more often where calls are held, since the seconds in the title count; and while it
/// is shown. A title that comes back after the client has written its last one for a turn says for good that it works.
const EVERY: Duration = Duration::from_secs(2);
const HELD: Duration = Duration::from_secs(1);
const SHOWN: Duration = Duration::from_millis(250);

/// The session of a client.
pub enum Link {
    /// At a relay of its own.
    Own(Box<Relay>, Holder),
    /// At one that already ran.
    Joined(Joined),
}

impl std::fmt::Debug for Link {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Own(..) => "Own",
            Self::Joined(_) => "Joined",
        })
    }
}

impl Link {
    async fn page(&self) -> Option<Page> {
        match self {
            Self::Own(relay, holder) => Some(relay.session_page(holder)),
            Self::Joined(joined) => joined.page().await,
        }
    }

    /// Waits until a call of its is held no longer, as far as that is told before somebody asks.
    async fn eased(&self) {
        match self {
            Self::Own(_, holder) => holder.session().status.eased().await,
            Self::Joined(_) => std::future::pending().await,
        }
    }

    /// Whether its end has to wait for a credential that is being renewed.
    #[must_use]
    pub fn is_renewing(&self) -> bool {
        match self {
            Self::Own(relay, _) => relay.is_renewing(),
            Self::Joined(_) => false,
        }
    }

    /// Ends the session, since its client is gone: what it came to. Where a credential is being renewed, that comes to its
    /// end before, unless `hurry` is ready.
    pub async fn end(self, hurry: impl Future<Output = ()>) -> Sums {
        match self {
            Self::Own(relay, holder) => {
                tokio::select! {
                    () = relay.renewals_over() => {}
                    () = hurry => {}
                }
                // Nobody is left to be answered.
                relay.drain(std::future::ready(())).await;
                holder.session().status.sums()
            }
            Self::Joined(joined) => joined.settled().await,
        }
    }
}

/// Who is shown how the session is.
#[derive(Debug, Default)]
pub struct Watch {
    title: Option<Title>,
    desktop: Option<Telling>,
    /// Whether the desktop is told of what the client shows as well.
    all: bool,
}

impl Watch {
    /// Whatever the settings want, where there is something to show it on, and the client leaves it to us.
    #[must_use]
    pub fn by(waiting: &Waiting, plan: &Plan) -> Self {
        let title = (waiting.title && !plan.has_title() && controlling().is_some()).then(Title::default);
        let desktop = tells_desktop(waiting.desktop, title.is_some()).then(Telling::default);
        Self { title, desktop, all: waiting.desktop == Desktop::On }
    }

    /// Looks at it again and again; never ends.
    pub async fn over(&mut self, link: &Link) -> std::convert::Infallible {
        loop {
            let page = link.page().await;
            if let Some(title) = &mut self.title {
                title.show(words::lang(), page.as_ref()).await;
            }
            if let (Some(desktop), Some(page)) = (&mut self.desktop, &page) {
                let message = desktop.look(words::lang(), SystemClock.now(), &page.held, self.all);
                // It may wait for whoever shows it. Where nobody does there is nowhere to say so: the screen is the client's.
                if let Some(message) = message {
                    tokio::spawn(async move { show(&message).await.ok() });
                }
            }
            let is_held = page.is_some_and(|page| !page.held.is_empty());
            let is_shown = self.title.as_ref().is_some_and(Title::is_shown);
            let pause = if is_shown {
                SHOWN
            } else if is_held {
                HELD
            } else {
                EVERY
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = link.eased() => {}
            }
        }
    }

    /// Leaves everything as it was.
    pub async fn end(self) {
        if let Some(title) = self.title {
            title.restore().await;
        }
    }
}

/// Whether the desktop is told, too.
const fn tells_desktop(desktop: Desktop, has_title: bool) -> bool {
    match desktop {
        // Where nothing else beside the client's screen says it.
        Desktop::Auto => !has_title,
        Desktop::On => true,
        Desktop::Off => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_desktop_is_told_where_no_title_is_or_where_it_is_wanted() {
        let tells = |desktop| [true, false].map(|has_title| tells_desktop(desktop, has_title));
        assert_eq!(tells(Desktop::Auto), [false, true]);
        assert_eq!(tells(Desktop::On), [true, true]);
        assert_eq!(tells(Desktop::Off), [false, false]);
    }
}
