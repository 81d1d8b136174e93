//! Whoever leaves a lane, wherever its call was, holds nobody up; and those that wait are lost neither by a reload nor
//! told wrongly by an end.

use relay_core::gate::Preset;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Reply, Script, Upstream};
use steady_relay::observe::Notice;

use crate::lanes::{
    Busy, answer_to, bytes_for, careful, gated, gets, in_line, lane_until, of, sent, shut, waits, whose,
};
use crate::lanes_places::places;
use crate::support::{Bench, SOON, bounded, ms};

async fn leave(client: Client, by_reset: bool) {
    if by_reset {
        client.leave_by_reset();
    } else {
        client.leave().await;
    }
}

#[tokio::test]
async fn in_line_it_leaves_the_line_and_nothing_is_sent_for_it() {
    for by_reset in [false, true] {
        let busy = Busy::start().await;
        let bench = Bench::with(gated(&busy.up.url(), ms(1500))).await;
        let [mut a, b] = shut(&bench).await;
        let c = sent(&bench, &of("c")).await;
        in_line(&bench, 3).await;
        let lane = waits(&bench, 3).await;
        assert!(lane["line"].as_array().unwrap().iter().any(|place| place["call"] == "c3"), "{lane}");
        let before = busy.up.requests().len();
        // One that was never sent, and one that was refused.
        leave(c, by_reset).await;
        assert_eq!(bench.story(3).await, "opened, line, client_left");
        leave(b, by_reset).await;
        assert!(bench.story(2).await.ends_with("refused, line, client_left"), "{}", bench.story(2).await);
        let lane = waits(&bench, 1).await;
        assert_eq!((&lane["line"][0]["call"], &lane["line"][0]["position"]), (&"c1".into(), &1.into()));
        assert_eq!(lane["line"].as_array().unwrap().len(), 1, "{lane}");
        busy.back.release();
        busy.door.release();
        gets(&mut a, &bytes_for("a")).await;
        assert_eq!(busy.after(before), ["a"], "sent for a client that is gone");
    }
}

#[tokio::test]
async fn under_way_to_ask_it_lets_another_one_ask() {
    for by_reset in [false, true] {
        let busy = Busy::but(|seen| (whose(seen) == "c").then(Reply::silence)).await;
        let config = bounded(&busy.up.url(), |profile| {
            careful(profile, ms(1500));
            profile.gate = Some(Preset::Interactive);
        });
        let bench = Bench::with(config).await;
        let [mut a, mut b] = shut(&bench).await;
        let c = sent(&bench, &of("c")).await;
        in_line(&bench, 3).await;
        let before = busy.up.requests().len();
        busy.back.release();
        busy.door.release();
        assert!(busy.up.wait_for_requests(before + 1, SOON).await);
        assert_eq!(busy.after(before), ["c"], "it is the one that asks");
        leave(c, by_reset).await;
        assert_eq!(bench.story(3).await, "opened, line, send 1, client_left");
        gets(&mut a, &bytes_for("a")).await;
        gets(&mut b, &bytes_for("b")).await;
        let lane = lane_until(&bench, |lane| lane["state"] == "open").await;
        assert_eq!((&lane["sending"], &lane["running"], &lane["waiting"]), (&0.into(), &0.into(), &0.into()));
    }
}

#[tokio::test]
async fn in_the_middle_of_its_answer_it_frees_its_place_at_once() {
    for by_reset in [false, true] {
        let up = Upstream::start(Script::by(|seen, _| match &*whose(seen) {
            "a" => Reply::sse(wire::partial("hello")).hang(),
            _ => answer_to(seen),
        }))
        .await
        .unwrap();
        let bench = Bench::with(places(&up.url(), 1)).await;
        let mut a = sent(&bench, &of("a")).await;
        assert!(a.read_until(b"hello").await);
        let mut b = sent(&bench, &of("b")).await;
        in_line(&bench, 2).await;
        let lane = waits(&bench, 1).await;
        assert_eq!((&lane["running"], &lane["state"]), (&1.into(), &"open".into()), "{lane}");
        assert_eq!(up.requests().len(), 1);
        leave(a, by_reset).await;
        gets(&mut b, &bytes_for("b")).await;
        assert!(bench.story(1).await.ends_with("committed, client_left"));
    }
}

#[tokio::test]
async fn before_its_answer_begins_it_frees_its_place_at_once() {
    let up = Upstream::start(Script::by(|seen, _| match &*whose(seen) {
        "a" => Reply::silence(),
        _ => answer_to(seen),
    }))
    .await
    .unwrap();
    let bench = Bench::with(places(&up.url(), 1)).await;
    let a = sent(&bench, &of("a")).await;
    assert!(up.wait_for_requests(1, SOON).await);
    let mut b = sent(&bench, &of("b")).await;
    in_line(&bench, 2).await;
    a.leave_by_reset();
    gets(&mut b, &bytes_for("b")).await;
    let lane = waits(&bench, 0).await;
    assert_eq!((&lane["running"], &lane["sending"]), (&0.into(), &0.into()));
}

#[tokio::test]
async fn a_relay_that_stops_cuts_those_in_line_and_counts_them() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), SOON)).await;
    let [a, b] = shut(&bench).await;
    let c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    let before = busy.up.requests().len();
    let seen = bench.recorder();
    bench.drain().await;
    for mut client in [a, b, c] {
        let answer = client.read().await;
        assert_eq!((answer.status, answer.body.len()), (0, 0), "{answer:?}");
    }
    assert_eq!(seen.story(3), "opened, line, gave_up");
    assert!(seen.story(1).ends_with("refused, line, gave_up"), "{}", seen.story(1));
    let within = relay_core::config::Timeouts::default().drain;
    let notices = seen.notices();
    let told: Vec<_> = notices.iter().filter(|it| !matches!(it, Notice::Lane(_))).collect();
    assert_eq!(told, [&Notice::Draining { open: 3, waiting: 3, within }, &Notice::Stopping { open: 0 }]);
    assert_eq!(busy.up.requests().len(), before);
}

#[tokio::test]
async fn a_reload_loses_none_of_those_that_wait() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), ms(1500))).await;
    let [mut a, mut b] = shut(&bench).await;
    let mut c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    let mut other = gated(&busy.up.url(), ms(1500));
    // The connections are made anew, and the numbers are others.
    other.timeouts.connect = ms(4321);
    other.timeouts.pool_idle = ms(4321);
    if let Some(profile) = other.profiles.get_mut("tested") {
        profile.patience = ms(7654);
    }
    bench.reload(other);
    let mut d = sent(&bench, &of("d")).await;
    in_line(&bench, 4).await;
    let lane = waits(&bench, 4).await;
    assert_eq!(lane["state"], "shut", "a new call comes to the lane that there was: {lane}");
    busy.back.release();
    busy.door.release();
    for (client, name) in [(&mut a, "a"), (&mut b, "b"), (&mut c, "c"), (&mut d, "d")] {
        gets(client, &bytes_for(name)).await;
    }
    assert_eq!(bench.totals().calls_lost, 0);
}
