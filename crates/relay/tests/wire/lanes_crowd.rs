//! Very many calls that wait in one lane.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use relay_core::Moment;
use relay_core::gate::Preset;
use relay_sim::{Client, Ending};
use steady_relay::clock::{Clock, RatedClock, SystemClock};
use tokio::time::Instant;

use crate::lanes::{Busy, asks, bytes_for, careful, gated, gets, in_line, lane_until, of, sent, shut};
use crate::support::{Bench, SOON, TURN, bounded, ms};

/// A clock that stands.
struct Stands;

impl Clock for Stands {
    fn now(&self) -> Moment {
        Moment::after_start(Duration::from_secs(60))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[tokio::test]
async fn of_a_moment_in_the_line_of_a_healthy_lane_nobody_is_told() {
    let busy = Busy::start().await;
    busy.back.release();
    let bench = Bench::by(Arc::new(Stands), gated(&busy.up.url(), ms(700))).await;
    let mut clients = Vec::new();
    for name in (0..15).map(|number| format!("conversation {number}")) {
        clients.push((sent(&bench, &of(&name)).await, name));
    }
    lane_until(&bench, |lane| lane["waiting"].as_u64().is_some_and(|count| count > 0)).await;
    busy.door.release();
    for (call, (client, name)) in (1..).zip(&mut clients) {
        gets(client, &bytes_for(name)).await;
        assert_eq!(bench.story(call).await, "opened, send 1, 200, committed, served");
    }
}

const MANY: usize = 2000;
/// A multiple of what a call takes that waits, and of what its client and the other end take in this process.
const EACH: usize = 200 << 10;

/// What this process holds of memory; `None` where the system does not tell.
fn held() -> Option<usize> {
    let told = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = told.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_calls_wait_in_one_lane_and_all_are_answered() {
    let _limit = steady_relay::descriptors::raise();
    let busy = Busy::start().await;
    let mut config = bounded(&busy.up.url(), |profile| {
        careful(profile, SOON * 60);
        profile.gate = Some(Preset::Interactive);
        profile.patience = Duration::from_secs(3600);
    });
    config.limits.connections = 4096;
    // A lane lets fifty a second go, of its own seconds.
    let clock = RatedClock::new(Arc::new(SystemClock), NonZeroU32::new(10).unwrap());
    let bench = Bench::by(Arc::new(clock), config).await;
    let _two = shut(&bench).await;
    let before = held();
    let mut clients = Vec::new();
    for number in 0..MANY {
        let mut client = Client::connect(bench.addr()).await.unwrap().patience(SOON * 12);
        // A hundred conversations of twenty calls.
        let name = format!("conversation {}", number % 100);
        client.send(&asks(&name, TURN)).await.unwrap();
        clients.push((name, client));
    }
    in_line(&bench, 100).await;
    lane_until(&bench, |lane| lane["waiting"].as_u64().is_some_and(|count| count + 10 >= MANY as u64)).await;
    if let (Some(before), Some(now)) = (before, held()) {
        let each = now.saturating_sub(before) / MANY;
        assert!(each < EACH, "{each} bytes for each call that waits");
    }
    busy.back.release();
    busy.door.release();
    let began = Instant::now();
    for (name, client) in &mut clients {
        let answer = client.read().await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{name}: {}", answer.text());
        assert!(answer.body == bytes_for(name), "{name}: {}", answer.text());
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let lane = lane_until(&bench, |lane| lane["waiting"] == 0 && lane["running"] == 0).await;
    assert_eq!(lane["state"], "open", "{lane}");
    assert_eq!(bench.totals().calls_lost, 0);
}
