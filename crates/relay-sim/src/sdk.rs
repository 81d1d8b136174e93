//! A client that behaves as the usual SDKs do: after a failure that may pass it asks again, twice at most, after
//! half a second and a second. (The real ones take up to a quarter off these waits, by chance.)
//!
//! Measured with the openai and anthropic SDKs: 408, 409, 429, every 5xx and a broken connection are asked again,
//! unless the answer says `x-should-retry: false`. What comes with a 200 is the answer, whatever it says.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use crate::overload::{Speed, is_whole};
use crate::scene::Ask;
use crate::{Answer, Client};

/// The waits before the second and the third request.
pub const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];
/// How long an answer may keep it waiting; as good as for ever.
const PATIENCE: Duration = Duration::from_secs(600);

/// The client, pointed at a service or at a relay.
#[derive(Debug, Clone, Copy)]
pub struct Sdk {
    /// The address it was given.
    pub addr: SocketAddr,
    /// How fast its time runs.
    pub speed: Speed,
}

impl Sdk {
    /// Makes a call. True: it got what it asked for.
    pub async fn call(&self, ask: &Ask, number: usize) -> bool {
        let mut waits = WAITS.into_iter();
        for resend in 0_u32.. {
            let answer = self.request(ask, number, resend).await;
            if let Some(answer) = &answer
                && !asks_again(answer)
            {
                return is_whole(ask, answer);
            }
            let Some(wait) = waits.next() else { break };
            sleep(self.speed.wall(wait)).await;
        }
        false
    }

    /// The answer; `None`: the connection broke before there was one.
    async fn request(&self, ask: &Ask, number: usize, resend: u32) -> Option<Answer> {
        let request = ask
            .request(number)
            .header("user-agent", "OpenAI/Python (demo)")
            .header("x-stainless-lang", "python")
            .header("x-stainless-retry-count", resend);
        let mut client = Client::connect(self.addr).await.ok()?.patience(PATIENCE);
        let answer = client.ask(&request).await.ok()?;
        (answer.status != 0).then_some(answer)
    }
}

fn asks_again(answer: &Answer) -> bool {
    match answer.header("x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(answer.status, 408 | 409 | 429 | 500..),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::fixtures::{chat, codex};
    use crate::{Reply, Script, Upstream};

    const ASK: Ask = Ask { streams: false, takes: Duration::ZERO, words: 1 };

    async fn call(replies: Vec<Reply>) -> (bool, usize) {
        let up = Upstream::start(Script::of(replies)).await.unwrap();
        let sdk = Sdk { addr: up.addr(), speed: Speed(NonZeroU32::new(100).unwrap()) };
        (sdk.call(&ASK, 0).await, up.requests().len())
    }

    #[tokio::test]
    async fn it_asks_three_times_at_most_and_only_where_that_may_help() {
        let good = || Reply::status(200).json(chat::completion("hi"));
        let busy = codex::overloaded_503;
        assert_eq!(call(vec![busy(), busy(), good()]).await, (true, 3));
        assert_eq!(call(vec![busy(), busy(), busy(), good()]).await, (false, 3));
        assert_eq!(call(vec![Reply::reset_after_request(), good()]).await, (true, 2));
        assert_eq!(call(vec![busy().header("x-should-retry", "false"), good()]).await, (false, 1));
        assert_eq!(call(vec![Reply::status(400).text("no"), good()]).await, (false, 1));
        let error_with_200 = Reply::status(200).json(codex::overloaded_body());
        assert_eq!(call(vec![error_with_200, good()]).await, (false, 1));
    }
}
