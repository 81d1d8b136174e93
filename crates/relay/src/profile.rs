//! Which profile bounds a call: by its route, by the settings, or by what is known of the client.

use std::time::Duration;

use relay_core::Profile;
use relay_core::client::{Client, Kind};
use relay_core::config::{Config, ProfileChoice, Route};

/// How long an attended Codex call is held: it has no limit of its own for a head, and a person can press Esc.
const ATTENDED_CODEX: Duration = Duration::from_secs(30 * 60);

/// The profile's name and its numbers.
pub(crate) fn of(config: &Config, route: Option<&Route>, client: &Client) -> (String, Profile) {
    let (name, profile) = match config.profile_choice(route, client.kind) {
        ProfileChoice::Named(name) => (name.clone(), named(config, name)),
        ProfileChoice::Auto => automatic(config, client),
    };
    let profile = match route.map(|route| route.overrides.apply(&profile)) {
        Some(Ok(changed)) => changed,
        // A contradiction is refused when the settings are read.
        Some(Err(_)) | None => profile,
    };
    (name, profile)
}

fn named(config: &Config, name: &str) -> Profile {
    config.profiles.get(name).cloned().unwrap_or_else(Profile::interactive)
}

fn automatic(config: &Config, client: &Client) -> (String, Profile) {
    if client.unattended {
        return ("patient".to_owned(), named(config, "patient"));
    }
    let mut profile = named(config, "interactive");
    match client.kind {
        Kind::Codex => {
            profile.sends = None;
            profile.patience = profile.patience.max(ATTENDED_CODEX);
        }
        Kind::ClaudeCode => profile.sends = None,
        Kind::Stainless | Kind::GeminiCli | Kind::GoogleGenai | Kind::Ollama | Kind::Other => {}
    }
    ("interactive".to_owned(), profile)
}

/// The longest that this client waits for the head of an answer, less the margin that ours needs.
pub(crate) fn client_limit(config: &Config, client: &mut Client) -> Option<Duration> {
    if let Some(limit) = config.client(client.kind).limit {
        client.limit = Some(limit);
    }
    client.limit.map(Client::less_margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(kind: Kind, unattended: bool) -> Client {
        Client { unattended, ..Client::unknown(kind) }
    }

    #[test]
    fn auto_knows_who_waits() {
        let config = Config::default();
        let of = |kind, unattended| of(&config, None, &client(kind, unattended)).1;
        assert_eq!(of(Kind::Codex, true), Profile::patient());
        let tui = of(Kind::Codex, false);
        assert_eq!((tui.sends, tui.patience), (None, Duration::from_secs(1800)));
        assert_eq!((of(Kind::ClaudeCode, false).sends, of(Kind::Stainless, false).sends), (None, Some(8)));
    }

    #[test]
    fn a_named_profile_and_a_limit_win_over_what_is_known() {
        let mut config = Config { profile: ProfileChoice::Named("strict".into()), ..Config::default() };
        assert_eq!(of(&config, None, &client(Kind::Codex, true)).1, Profile::strict());
        let limit = Duration::from_secs(1800);
        config.clients.entry(Kind::ClaudeCode).or_default().limit = Some(limit);
        let mut claude = client(Kind::ClaudeCode, false);
        assert_eq!(client_limit(&config, &mut claude), Some(Client::less_margin(limit)));
        assert_eq!(claude.limit, Some(limit));
    }

    /// How long a call of `client` is held against a service that always answers like this.
    fn held(client: &mut Client, status: u16) -> Duration {
        use relay_core::call::{Call, Plan, Step};
        use relay_core::evidence::{Nature, Operation};
        let config = Config::default();
        let client_limit = client_limit(&config, client);
        let (_, profile) = of(&config, None, client);
        let nature = Nature { operation: Operation::Generation, self_contained: true, kept: true };
        let mut now = relay_core::Moment::ZERO;
        let mut dice = relay_core::SeededDice::new(1);
        let plan = Plan { profile, nature, client_limit, before: Default::default(), not_before: None };
        let mut call = Call::new(plan, now);
        let dialect = relay_core::dialect::route(&http::Method::POST, "/v1/messages").dialect;
        loop {
            match call.next(now) {
                Step::Send { .. } => {
                    let reply = relay_core::dialect::Reply {
                        told: relay_core::failure::Told::ByStatus,
                        status,
                        headers: &http::HeaderMap::new(),
                        body: b"",
                        rules: &[],
                        took: Duration::from_millis(200),
                        wall: std::time::SystemTime::UNIX_EPOCH,
                    };
                    now = now + Duration::from_millis(200);
                    call.failed(relay_core::dialect::judge(dialect, &reply), now, &mut dice);
                }
                Step::Wait(until) => now = until,
                Step::End(_) => return now.since_start(),
            }
        }
    }

    #[test]
    fn no_client_is_held_for_less_than_it_would_hold_out_alone() {
        // Measured alone: Codex 0.171.0 gives up after 25 s of a plain 503, Claude Code 2.1.332 after 180 s of it
        // and 2 s of 529, the SDKs with their two retries after 2 s.
        let rows: [(Kind, Option<u64>, u16, u64); 7] = [
            (Kind::Codex, None, 503, 25),
            (Kind::Codex, None, 529, 25),
            (Kind::ClaudeCode, Some(357), 503, 180),
            (Kind::ClaudeCode, Some(357), 529, 2),
            (Kind::Stainless, Some(600), 503, 2),
            (Kind::Stainless, Some(300), 429, 2),
            (Kind::Other, None, 503, 2),
        ];
        for (kind, limit, status, alone) in rows {
            let mut client = Client { limit: limit.map(Duration::from_secs), ..Client::unknown(kind) };
            let held = held(&mut client, status);
            assert!(held >= Duration::from_secs(alone), "{kind:?} {status}: {held:?}");
            if let Some(limit) = limit {
                assert!(held < Duration::from_secs(limit), "{kind:?} {status}: answered before it hangs up");
            }
        }
    }

    #[test]
    fn a_failing_service_is_left_to_the_client_after_three_sends() {
        // Alone, Codex and Claude Code ride out 25 s and 180 s of 500s by sending again: each of those sends is
        // served, so the relay need not hold them.
        let held = held(&mut client(Kind::ClaudeCode, false), 500);
        assert!(held < Duration::from_secs(10), "{held:?}");
    }
}
