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
        Kind::Stainless | Kind::Other => {}
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
}
