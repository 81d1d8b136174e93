//! Which profile bounds a call: by its own wish, by its route, by the settings, or by what is known of the client.

use std::time::Duration;

use relay_core::client::{Client, Kind};
use relay_core::config::{Config, ProfileChoice, Route};
use relay_core::{ClientLimit, Profile, ProfileOverrides};

use crate::wishes::Wishes;

/// How long an attended Codex call is held: it has no limit of its own for a head, and a person can press Esc.
pub(crate) const ATTENDED_CODEX: Duration = Duration::from_secs(30 * 60);

/// The profile's name and its numbers.
pub(crate) fn of(
    config: &Config,
    route: Option<&Route>,
    client: &Client,
    wishes: &Wishes,
) -> (String, Profile) {
    if wishes.off {
        return ("off".to_owned(), hands_off());
    }
    let (name, mut profile) = match &wishes.profile {
        // Whoever names a profile gets just that.
        Some(choice) => chosen(config, choice, client),
        None => {
            let (name, profile) = chosen(config, config.profile_choice(route, client.kind), client);
            let changed = changed(&config.numbers, profile);
            (name, route.map_or(changed.clone(), |route| self::changed(&route.overrides, changed)))
        }
    };
    if let Some(patience) = wishes.patience {
        profile.patience = patience;
        // The wish holds even where the client would bear more.
        profile.client_limit = ClientLimit::Shortens;
    }
    kept(client, &mut profile);
    (name, profile)
}

fn chosen(config: &Config, choice: &ProfileChoice, client: &Client) -> (String, Profile) {
    match choice {
        ProfileChoice::Named(name) => (name.clone(), named(config, name)),
        ProfileChoice::Auto => automatic(config, client),
    }
}

pub(crate) fn changed(by: &ProfileOverrides, profile: Profile) -> Profile {
    // A contradiction is refused when the settings are read.
    by.apply(&profile).unwrap_or(profile)
}

/// One send, whatever comes of it. A client that sends again by itself gets one more each time.
fn hands_off() -> Profile {
    Profile { gate: None, sends: Some(1), ambiguous_resends: 0, ..Profile::interactive() }
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

/// Takes the limit of the settings, where they name one for this client: it holds in silence and in company.
pub(crate) fn limit(config: &Config, client: &mut Client) {
    if let Some(limit) = config.client(client.kind).limit {
        client.limit = Some(limit);
        client.limit_in_company = Some(limit);
    }
}

/// The longest that this client waits for the head of an answer, less the margin that ours needs.
pub(crate) fn client_limit(client: &Client) -> Option<Duration> {
    client.head_limit().map(Client::less_margin)
}

/// The same of a client that says so of this call, where nothing else is known of it. It bounds waits alone: how long a
/// send may be silent, such a client sees to itself.
pub(crate) fn limit_of_call(client: &Client, wishes: &Wishes) -> Option<Duration> {
    let stated = wishes.limit.filter(|_| client.limit.is_none());
    client_limit(client).or(stated.map(Client::less_margin))
}

/// A client that interim answers keep waiting has no limit that could take the place of the profile's patience. It
/// is held no shorter for that than it would be without them.
fn kept(client: &Client, profile: &mut Profile) {
    if let (ClientLimit::Replaces, None, Some(limit)) =
        (profile.client_limit, client.head_limit(), client.limit)
    {
        profile.patience = profile.patience.max(Client::less_margin(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relay_core::gate::Preset;

    const NONE: Wishes = Wishes { profile: None, patience: None, limit: None, report: false, off: false };

    fn client(kind: Kind, unattended: bool) -> Client {
        Client { unattended, ..Client::unknown(kind) }
    }

    #[test]
    fn auto_knows_who_waits() {
        let config = Config::default();
        let of = |kind, unattended| of(&config, None, &client(kind, unattended), &NONE).1;
        assert_eq!(of(Kind::Codex, true), Profile::patient());
        let tui = of(Kind::Codex, false);
        assert_eq!((tui.sends, tui.patience), (None, Duration::from_secs(1800)));
        assert_eq!((of(Kind::ClaudeCode, false).sends, of(Kind::Stainless, false).sends), (None, Some(8)));
        let most = [Kind::Codex, Kind::ClaudeCode, Kind::Stainless].map(|kind| of(kind, false).most_sends());
        assert_eq!(most, [None, None, Some(40)]);
    }

    #[test]
    fn a_named_profile_and_a_limit_win_over_what_is_known() {
        let mut config = Config { profile: ProfileChoice::Named("strict".into()), ..Config::default() };
        assert_eq!(of(&config, None, &client(Kind::Codex, true), &NONE).1, Profile::strict());
        let limit = Duration::from_secs(1800);
        config.clients.entry(Kind::ClaudeCode).or_default().limit = Some(limit);
        let mut claude = client(Kind::ClaudeCode, false);
        super::limit(&config, &mut claude);
        assert_eq!(client_limit(&claude), Some(Client::less_margin(limit)));
        assert_eq!(claude.limit, Some(limit));
    }

    #[test]
    fn interim_answers_lift_a_limit_and_leave_patience() {
        let config = Config::default();
        let seconds = Duration::from_secs;
        let known = |kind, limit, limit_in_company| Client {
            limit: Some(seconds(limit)),
            limit_in_company,
            ..Client::unknown(kind)
        };
        let (gemini, python) = (known(Kind::GeminiCli, 60, None), known(Kind::Stainless, 600, None));
        let (node, claude) = (
            known(Kind::Stainless, 300, Some(seconds(600))),
            known(Kind::ClaudeCode, 357, Some(seconds(357))),
        );
        let named = |name: &str| Wishes { profile: Some(ProfileChoice::from_name(name)), ..NONE };
        let short = Wishes { patience: Some(seconds(30)), ..NONE };
        let rows = [
            // (client, wish, patience and limit in silence, the same in company)
            (&gemini, &NONE, (120, Some(57.6)), (120, None)),
            (&python, &NONE, (120, Some(576.0)), (576, None)),
            (&node, &NONE, (120, Some(288.0)), (120, Some(576.0))),
            (&claude, &NONE, (120, Some(342.72)), (120, Some(342.72))),
            (&gemini, &named("batch"), (480, Some(57.6)), (480, None)),
            // Where the limit only shortens, or is ignored, patience stays as it is.
            (&python, &named("strict"), (60, Some(576.0)), (60, None)),
            (&gemini, &named("patient"), (21_600, Some(57.6)), (21_600, None)),
            (&python, &short, (30, Some(576.0)), (30, None)),
        ];
        for (client, wishes, silent, kept) in rows {
            let bounds = |company| {
                let client = Client { company, ..client.clone() };
                let (_, profile) = of(&config, None, &client, wishes);
                (profile.patience.as_secs(), client_limit(&client).map(|limit| limit.as_secs_f64()))
            };
            assert_eq!(bounds(None), silent, "{client:?}");
            assert_eq!(bounds(config.waiting.interim), kept, "{client:?}");
        }
    }

    #[test]
    fn a_limit_of_the_settings_holds_in_company_too() {
        let mut config = Config::default();
        let limit = Duration::from_secs(40);
        config.clients.entry(Kind::GeminiCli).or_default().limit = Some(limit);
        let mut gemini = Client { company: config.waiting.interim, ..client(Kind::GeminiCli, false) };
        super::limit(&config, &mut gemini);
        assert_eq!(client_limit(&gemini), Some(Client::less_margin(limit)));
        // What a request states itself gives way, too, be it shorter or longer.
        for (stated, lang) in [("10", "python"), ("600", "python"), ("10", "js"), ("600", "js")] {
            let mut headers = http::HeaderMap::new();
            headers.insert("x-stainless-timeout", http::HeaderValue::from_static(stated));
            headers.insert("x-stainless-lang", http::HeaderValue::from_static(lang));
            for company in [None, Some(Duration::from_secs(5))] {
                let mut sdk = Client { company, ..Client::of(&headers) };
                config.clients.entry(sdk.kind).or_default().limit = Some(limit);
                super::limit(&config, &mut sdk);
                assert_eq!(client_limit(&sdk), Some(Client::less_margin(limit)), "{stated} {lang}");
            }
        }
    }

    #[test]
    fn numbers_of_older_tools_hold_in_every_profile_and_a_route_comes_after_them() {
        let numbers = ProfileOverrides { sends: Some(Some(4)), ..ProfileOverrides::default() };
        let config = Config { numbers, ..Config::default() };
        let codex = client(Kind::Codex, false);
        assert_eq!(of(&config, None, &codex, &NONE).1.sends, Some(4));
        let overrides = ProfileOverrides { sends: Some(Some(2)), ..ProfileOverrides::default() };
        let route = Route { overrides, ..Route::default() };
        assert_eq!(of(&config, Some(&route), &codex, &NONE).1.sends, Some(2));
    }

    #[test]
    fn what_is_set_by_hand_holds_in_the_gate_and_a_route_has_the_last_word_on_it() {
        let older = ProfileOverrides { sends: Some(Some(4)), ..ProfileOverrides::default() };
        let mut config = Config { numbers: older, ..Config::default() };
        let sdk = client(Kind::Stainless, false);
        let (_, profile) = of(&config, None, &sdk, &NONE);
        assert_eq!((profile.most_sends(), profile.gate), (Some(4), Some(Preset::Interactive)));
        let base = Some(Duration::from_secs(2));
        let own = ProfileOverrides { base, ..ProfileOverrides::default() };
        let batch = changed(&own, Profile::batch());
        config.profiles.insert("batch".to_owned(), batch);
        let routed = |gate| {
            let overrides = ProfileOverrides { gate, ..ProfileOverrides::default() };
            let profile = Some(ProfileChoice::from_name("batch"));
            let route = Route { overrides, profile, ..Route::default() };
            of(&config, Some(&route), &sdk, &NONE).1.gate
        };
        assert_eq!(
            [routed(None), routed(Some(false)), routed(Some(true))],
            [None, None, Some(Preset::Batch)]
        );
    }

    #[test]
    fn a_wish_comes_before_everything() {
        let numbers = ProfileOverrides { sends: Some(Some(4)), ..ProfileOverrides::default() };
        let route = Route { overrides: numbers.clone(), ..Route::default() };
        let config = Config { numbers, ..Config::default() };
        let codex = client(Kind::Codex, false);
        let of = |wishes: &Wishes| of(&config, Some(&route), &codex, wishes);
        let batch = Wishes { profile: Some(ProfileChoice::from_name("batch")), ..NONE };
        assert_eq!(of(&batch), ("batch".to_owned(), Profile::batch()));
        let second = Some(Duration::from_secs(1));
        let (_, short) = of(&Wishes { patience: second, ..batch });
        assert_eq!((short.sends, short.patience), (Some(12), Duration::from_secs(1)));
        assert_eq!(short.client_limit, ClientLimit::Shortens);
        let (name, off) = of(&Wishes { off: true, ..NONE });
        assert_eq!((name.as_str(), off.most_sends(), off.ambiguous_resends), ("off", Some(1), 0));
        assert_eq!(off.gate, None);
    }

    /// How long a call of `client` is held, alone in its lane, against a service that always answers like this.
    fn held(client: &mut Client, status: u16) -> Duration {
        use relay_core::call::{Call, Plan, Step};
        use relay_core::event::CallId;
        use relay_core::evidence::{Nature, Operation};
        use relay_core::gate::{Arrival, Gate, Poll, Report, Rules, Settled};
        let config = Config::default();
        limit(&config, client);
        let client_limit = client_limit(client);
        let (_, profile) = of(&config, None, client, &NONE);
        let nature = Nature { operation: Operation::Generation, self_contained: true, kept: true };
        let mut now = relay_core::Moment::ZERO;
        let mut dice = relay_core::SeededDice::new(1);
        let before = relay_core::budget::Spent::default();
        let plan =
            Plan { profile, nature, client_limit, before, not_before: None, places: false, notices: None };
        let (mut call, id, mut gate) = (Call::new(plan, now), CallId(1), Gate::new(Rules::default()));
        let Step::Wait(waiting) = call.next(now) else { panic!("a call waits first") };
        let (sends, budget) = call.counted();
        gate.arrive(
            Arrival {
                call: id,
                session: 1,
                since: now,
                deadline: waiting.deadline(),
                preset: call.profile().gate.unwrap(),
                weight: 1.0,
                sends,
                budget,
                not_before: waiting.not_before,
                streams: true,
                plain: waiting.plain,
            },
            now,
        );
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
                    let failure = relay_core::dialect::judge(dialect, &reply);
                    let report = Report::of(&failure, call.profile(), &mut dice);
                    call.failed(failure, now, &mut dice);
                    let back = call.waiting().map(|waiting| waiting.not_before.unwrap_or(now));
                    gate.settled(id, Settled { report, back }, now, &mut dice);
                }
                Step::Wait(waiting) => match gate.poll(now, &mut dice) {
                    Poll::Send(_) => call.granted(now),
                    Poll::Wait(at) => now = at.min(waiting.until),
                    Poll::Idle => now = waiting.until,
                },
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
