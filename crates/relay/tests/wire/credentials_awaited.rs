//! Credentials that are not at hand yet: how long a call waits for one, and where it goes meanwhile.

use relay_core::config::{Config, Credential, Held, Pool, Upstream as Entry, UpstreamChoice};
use relay_core::gate::Preset;
use relay_core::router::Strategy;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Reply, Script, Seen, Signal, Upstream};
use serde_json::json;

use crate::credentials::{
    bare, first_token, is_untouched, issuer, oauth, secret, service, with, with_a_kept_token,
};
use crate::lanes::{gets, sent};
use crate::started::Folder;
use crate::support::{Bench, ms};

/// An issuer that takes requests and does not answer.
pub(crate) async fn silent() -> Upstream {
    Upstream::start(Script::by(|_, _| Reply::status(200).json("{}").when(Signal::new())))
        .await
        .expect("it starts")
}

/// No patience, and little time for what belongs to sending.
pub(crate) fn in_haste(config: &mut Config) {
    config.timeouts.connect = ms(600);
    for profile in config.profiles.values_mut() {
        profile.patience = std::time::Duration::ZERO;
    }
}

#[tokio::test]
async fn an_issuer_that_is_silent_is_waited_for_no_longer_than_the_call_waits() {
    let (service, issuer) = (service(&["at-1"], 401).await, silent().await);
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    in_haste(&mut config);
    let bench = Bench::with(config).await;
    let told = bench.ask(&bare()).await;
    let words = told.text();
    assert!(words.contains("credential `mine`: its renewal still goes on"), "{} {words}", told.status);
    assert!(words.contains("try again later, or raise `patience`") && !words.contains("mend"), "{words}");
    // Nothing was sent, and no send is counted.
    assert_eq!(bench.story(1).await, "opened, gave_up");
    assert!(bench.recorder().closing(1).waited >= ms(600));
    assert_eq!((issuer.requests().len(), service.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_refused_key_whose_issuer_is_silent_goes_back_as_the_401_that_it_is() {
    let reply = |_: &Seen, number: usize| match number {
        0 => Reply::status(200).json(r#"{"access_token":"at-1","expires_in":3600}"#),
        _ => Reply::status(200).json("{}").when(Signal::new()),
    };
    let (service, issuer) = (service(&[], 401).await, Upstream::start(Script::by(reply)).await.unwrap());
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    in_haste(&mut config);
    let bench = with_a_kept_token(&config, &issuer).await;
    is_untouched(&bench.ask(&bare()).await, 401);
    assert_eq!((issuer.requests().len(), service.requests().len()), (2, 2));
}

/// Two members in order, the first with a credential from there.
fn pooled(one: &Upstream, two: &Upstream, issuer: &Upstream, folder: &Folder) -> Config {
    let mut config = with(&one.url(), first_token(issuer), folder);
    let mut entry = Entry::at(two.url().parse().expect("it is a URL"));
    entry.api_key = Some(secret("sk-two"));
    config.upstreams.insert("two".to_owned(), entry);
    let members = vec!["mine".to_owned(), "two".to_owned()];
    let weights = vec![std::num::NonZeroU32::MIN; 2];
    let pool = Pool { members, strategy: Strategy::InOrder, weights };
    config.pools.insert("both".to_owned(), pool);
    config.upstream = Some(UpstreamChoice::Pool("both".to_owned()));
    config
}

#[tokio::test]
async fn while_a_key_is_renewed_another_member_takes_the_call() {
    let (one, two, issuer) = (service(&["at-1"], 401).await, service(&["sk-two"], 401).await, silent().await);
    let folder = Folder::new();
    let bench = Bench::with(pooled(&one, &two, &issuer, &folder)).await;
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(bench.story(1).await, "opened, renewing, credential to two, send 1, 200, committed, served");
    assert_eq!((issuer.requests().len(), one.requests().len(), two.requests().len()), (1, 0, 1));
    // Who comes when that is known goes there at once.
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(bench.story(2).await, "opened, credential to two, send 1, 200, committed, served");
}

#[tokio::test]
async fn it_waits_in_the_line_of_another_member_rather_than_for_a_key() {
    let busy = |_: &Seen, number: usize| match number {
        0 | 1 => Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded"}}"#),
        _ => Reply::sse(wire::turn("hi")),
    };
    let two = Upstream::start(Script::by(busy)).await.unwrap();
    let (one, issuer) = (service(&["at-1"], 401).await, silent().await);
    let folder = Folder::new();
    let mut config = pooled(&one, &two, &issuer, &folder);
    for profile in config.profiles.values_mut() {
        profile.patience = std::time::Duration::from_secs(25);
        profile.gate = Some(Preset::Interactive);
    }
    let bench = Bench::with(config).await;
    let mut clients = Vec::new();
    for number in 0..4 {
        clients.push(sent(&bench, &bare().header("thread-id", number.to_string())).await);
    }
    for client in &mut clients {
        gets(client, &stream_bytes(&wire::turn("hi"))).await;
    }
    assert_eq!((one.requests().len(), two.requests().len()), (0, 6));
}

#[tokio::test]
async fn many_keys_that_are_not_had_are_waited_for_no_longer_than_one() {
    let (one, two, issuer) = (service(&[], 401).await, service(&[], 401).await, silent().await);
    let folder = Folder::new();
    let mut config = pooled(&one, &two, &issuer, &folder);
    for name in ["two", "three", "four"] {
        let url = format!("{}/{name}", two.url());
        let entry = Entry { credential: Some(name.to_owned()), ..Entry::at(url.parse().unwrap()) };
        config.upstreams.insert(name.to_owned(), entry);
        let source = first_token(&issuer);
        config.credentials.insert(name.to_owned(), Credential { source, header: None });
    }
    let pool = config.pools.get_mut("both").unwrap();
    pool.members = ["mine", "two", "three", "four"].map(str::to_owned).into();
    pool.weights = vec![std::num::NonZeroU32::MIN; 4];
    for profile in config.profiles.values_mut() {
        profile.patience = std::time::Duration::ZERO;
    }
    config.timeouts.connect = ms(3000);
    let bench = Bench::with(config).await;
    let told = bench.ask(&bare()).await;
    assert!(told.text().contains("its renewal still goes on"), "{}", told.text());
    let took = bench.recorder().closing(1).took;
    assert!(took >= ms(3000) && took < ms(5000), "{took:?}");
}

#[tokio::test]
async fn a_key_that_cannot_be_had_costs_no_send() {
    let (one, two, issuer) =
        (service(&["at-1"], 401).await, service(&["sk-two"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let mut config = pooled(&one, &two, &issuer, &folder);
    config.credentials.get_mut("mine").unwrap().source = oauth(&issuer, Held::Text(secret("rt-unknown")));
    for profile in config.profiles.values_mut() {
        (profile.sends, profile.gated_sends) = (Some(1), None);
    }
    let bench = Bench::with(config).await;
    for call in 1..=2 {
        assert_eq!(bench.ask(&bare()).await.status, 200);
        assert_eq!(bench.story(call).await, "opened, credential to two, send 1, 200, committed, served");
    }
    assert_eq!((bench.totals().sends, one.requests().len(), issuer.requests().len()), (2, 0, 1));
}

#[tokio::test]
async fn a_turn_that_is_held_for_a_key_says_so() {
    let (service, issuer) = (service(&["at-1"], 401).await, silent().await);
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    config.waiting.notice = Some(ms(100));
    let bench = Bench::with(config).await;
    let metadata = json!({ "turn_id": "turn-1", "thread_source": "user" });
    let watched = bare()
        .header("originator", "codex-tui")
        .header("user-agent", "codex-tui/0.171.0 (Linux 6.1; x86_64) xterm")
        .header("thread-id", "thread-1")
        .header("x-codex-turn-metadata", metadata.to_string());
    let notice = bench.ask(&watched).await;
    assert_eq!(notice.status, 200);
    assert!(notice.text().contains("Steady Relay holds this turn"), "{}", notice.text());
    assert_eq!(service.requests().len(), 0);
}
