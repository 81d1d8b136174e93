//! A million seeded calls against the promises. Each life is one client and one thing that it wants answered: it asks,
//! the service behaves as it likes, the client leaves or asks again, the relay is stopped. What was done is written
//! down from outside, and the promises are read off that.
//!
//! A failure prints the seed of its life: put it into [`one_life`] to play it again.

#![expect(clippy::panic, reason = "a test says which promise fell")]

use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use relay_core::budget::Spent;
use relay_core::call::{Call, Ending, Plan, Step, Stop, Waiting};
use relay_core::client::Turn;
use relay_core::config::shipped_profiles;
use relay_core::dialect::{Reply, judge, route};
use relay_core::event::{Closing, Outcome};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::{Bar, Failure, Told};
use relay_core::ledger::{Identity, Ledger};
use relay_core::notice::Notices;
use relay_core::retry_after::Advice;
use relay_core::wait::floor;
use relay_core::{ClientLimit, Dice, Event, Evidence, Fault, Moment, Profile, SeededDice};

/// Each is the start of its own row of lives.
const SEEDS: [u64; 8] = [1, 2, 3, 0xC0DE, 0xFEED, 31_415_926, 271_828_182, u64::MAX / 3];
const CALLS: u32 = 1_000_000;

#[test]
fn a_million_calls_keep_the_promises() {
    let pool = failures();
    let each = CALLS / u32::try_from(SEEDS.len()).unwrap() + 1;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let halves = SEEDS.chunks(SEEDS.len() / 2).map(|seeds| {
            let pool = &pool;
            scope.spawn(move || seeds.iter().map(|seed| row_of_lives(*seed, each, pool)).collect::<Vec<_>>())
        });
        let running: Vec<_> = halves.collect();
        running.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    let mut all = Tally::default();
    for tally in &tallies {
        all.add(tally);
    }
    assert!(all.calls >= CALLS, "{all:?}");
    // A world in which nothing happens proves nothing.
    for count in
        [all.resent, all.granted, all.heirs, all.left, all.gave_up, all.refused, all.passed, all.served]
    {
        assert!(count > CALLS / 500, "{all:?}");
    }
    assert!(all.parked > CALLS / 2000, "{all:?}");
}

/// Put the seed of a failure here.
#[test]
fn one_life() {
    life(42, &failures(), &mut Tally::default()).unwrap();
}

#[derive(Debug, Default)]
struct Tally {
    calls: u32,
    resent: u32,
    granted: u32,
    heirs: u32,
    left: u32,
    gave_up: u32,
    refused: u32,
    passed: u32,
    served: u32,
    parked: u32,
}

impl Tally {
    const fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.resent += other.resent;
        self.granted += other.granted;
        self.heirs += other.heirs;
        self.left += other.left;
        self.gave_up += other.gave_up;
        self.refused += other.refused;
        self.passed += other.passed;
        self.served += other.served;
        self.parked += other.parked;
    }
}

fn row_of_lives(seed: u64, calls: u32, pool: &[Failure]) -> Tally {
    let mut tally = Tally::default();
    let mut seeds = SeededDice::new(seed);
    while tally.calls < calls {
        let seed = seeds.bits();
        if let Err(why) = life(seed, pool, &mut tally) {
            panic!("seed {seed}: {why}");
        }
    }
    tally
}

// ---- what is written down ----

/// One send, from outside.
#[derive(Debug, Clone, Copy)]
struct Sent<'p> {
    at: Moment,
    ended: Moment,
    /// How it failed; `None`: it was answered, or the client left.
    failure: Option<&'p Failure>,
}

/// One call, from outside.
#[derive(Debug)]
struct Record<'p> {
    plan: Plan,
    opened: Moment,
    closed: Moment,
    sends: Vec<Sent<'p>>,
    ending: Ending,
    /// The client went away.
    left: bool,
    events: Vec<Event>,
    closing: Closing,
    bequest: Spent,
}

impl<'p> Record<'p> {
    /// The failures that a send followed, each with that send.
    fn resends(&self) -> impl Iterator<Item = (&'p Failure, Sent<'p>, Sent<'p>)> {
        self.sends.windows(2).filter_map(|pair| Some((pair[0].failure?, pair[0], pair[1])))
    }

    /// Whether it ended with a send under way.
    fn is_in_flight(&self) -> bool {
        self.sends.last().is_some_and(|sent| sent.failure.is_none() && sent.ended == self.closed)
    }

    fn resends_after(&self, evidence: Evidence) -> u32 {
        let count = self.resends().filter(|(failure, ..)| failure.evidence == Some(evidence)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

// ---- the promises ----

type Kept = Result<(), String>;

fn promise(kept: bool, name: &str, about: &Record<'_>) -> Kept {
    if kept { Ok(()) } else { Err(format!("{name} fell: {about:#?}")) }
}

/// What may have run is not sent again but by a counted grant, and what has no right to a resend is not sent again.
fn never_twice(record: &Record<'_>) -> Kept {
    let Nature { operation, self_contained, kept } = record.plan.nature;
    let cheap = operation != Operation::Other;
    for (failure, ..) in record.resends() {
        let named = failure.status == Some(429) || (failure.by_code && failure.fault.heals_by_waiting());
        let right = match failure.evidence {
            Some(Evidence::NeverSent) => failure.barred.is_none(),
            Some(Evidence::Refused) => kept && (cheap || named),
            Some(Evidence::Failed) => kept && cheap,
            Some(Evidence::MaybeRan) => kept && self_contained && operation == Operation::Generation,
            Some(Evidence::NoAnswer | Evidence::Committed) => false,
            None => {
                kept && failure.renews.is_some()
                    && record.plan.profile.parks()
                    && operation == Operation::Generation
            }
        };
        promise(right, "never twice", record)?;
    }
    let grants = record.resends_after(Evidence::MaybeRan);
    let limit = record.plan.profile.ambiguous_resends.saturating_sub(record.plan.before.ambiguous);
    promise(grants <= limit, "never twice (its grants)", record)?;
    promise(grants == record.closing.maybe_billed_twice, "never twice (counted and shown)", record)
}

/// No send before the moment that the upstream asked for.
fn never_early(record: &Record<'_>) -> Kept {
    let first = record.sends.first().map(|sent| sent.at);
    let waited = record.plan.not_before.is_none_or(|not_before| first.is_none_or(|at| at >= not_before));
    promise(waited, "never early (a resumed turn)", record)?;
    for (failure, before, after) in record.resends() {
        let floor = floor(failure.advice, &record.plan.profile);
        let due = before.ended + failure.renews.unwrap_or(floor);
        promise(after.at >= due, "never early", record)?;
    }
    Ok(())
}

/// No more sends than the profile allows, each counted before it is made.
fn never_many(record: &Record<'_>) -> Kept {
    let Plan { profile, before, .. } = &record.plan;
    let sends = u32::try_from(record.sends.len()).unwrap_or(u32::MAX);
    let spent =
        before.gave_up || (before.sends > 0 && profile.most_sends().is_some_and(|most| before.sends >= most));
    let limit = match profile.most_sends() {
        Some(0) => 0,
        _ if spent => u32::from(profile.serves_resends),
        Some(most) => most - before.sends,
        None => u32::MAX,
    };
    promise(sends <= limit, "never many", record)?;
    let failed = record.resends_after(Evidence::Failed) + before.failed;
    let most = profile.failed_sends.saturating_sub(1).max(before.failed);
    promise(failed <= most, "never many (failed sends)", record)?;
    let throttled: &[Fault] = &[Fault::Throttled];
    for (faults, most, spent) in [
        (throttled, profile.throttled_sends, before.throttled),
        (&[Fault::AtCapacity, Fault::Overloaded], profile.capacity_sends, before.capacity),
    ] {
        let refused = record.resends().filter(|(failure, ..)| {
            failure.evidence == Some(Evidence::Refused) && faults.contains(&failure.fault)
        });
        let refused = u32::try_from(refused.count()).unwrap_or(u32::MAX) + spent;
        let kept = most.is_none_or(|most| refused <= most.saturating_sub(1).max(spent));
        promise(kept, "never many (of one kind of refusal)", record)?;
    }
    let started = record.events.iter().filter(|event| matches!(event, Event::SendStarted { .. })).count();
    promise(started == record.sends.len() && record.closing.sends == sends, "never many (counted)", record)
}

/// Nobody is kept waiting beyond patience, nor until after they would have hung up.
fn never_forever(record: &Record<'_>) -> Kept {
    let Plan { profile, client_limit, .. } = &record.plan;
    let in_flight: Duration = record.sends.iter().map(|sent| sent.ended.since(sent.at)).sum();
    let waited = record.closed.since(record.opened).saturating_sub(in_flight);
    let (by_patience, by) = match (profile.client_limit, client_limit) {
        (ClientLimit::Replaces, Some(limit)) => (false, Some(*limit)),
        (ClientLimit::Shortens, Some(limit)) => (true, Some(*limit)),
        (ClientLimit::Ignored, _) | (_, None) => (true, None),
    };
    // The end of a wait may be noticed so late.
    let late = Duration::from_millis(100);
    promise(!by_patience || waited <= profile.patience + late, "never forever", record)?;
    let last = record.sends.last().map_or(record.opened, |sent| sent.at);
    let in_time = by.is_none_or(|limit| last.since(record.opened) <= limit + late);
    promise(in_time, "never forever (the client's limit)", record)?;
    promise(waited == record.closing.waited, "never forever (told as it was)", record)
}

/// After commit nothing is sent, nothing is decided, and nothing but the commit is the end.
fn never_altered(record: &Record<'_>) -> Kept {
    let mut after =
        record.events.iter().skip_while(|event| !matches!(event, Event::Committed { .. })).skip(1);
    promise(after.next().is_none(), "never altered", record)?;
    let committed = record.events.iter().any(|event| matches!(event, Event::Committed { .. }));
    promise(committed == (record.ending == Ending::Committed), "never altered (its end)", record)
}

/// No secret and no prompt is in an event.
fn never_leaked(record: &Record<'_>) -> Kept {
    let text = format!("{:?}{:?}", record.events, record.closing);
    promise(!text.contains(PLANTED), "never leaked", record)
}

/// What all calls of one life together may do, counted apart from the ledger.
#[derive(Debug, Default)]
struct Chain {
    calls: u32,
    sends: u32,
    failed: u32,
    grants: u32,
    /// Calls that were left with a send under way: it may have run, and the next one may be the second.
    in_flight: u32,
    gave_up: bool,
}

impl Chain {
    fn goes_on(&mut self, record: &Record<'_>, named: bool) -> Kept {
        let Plan { profile, before, .. } = &record.plan;
        let sends = u32::try_from(record.sends.len()).unwrap_or(u32::MAX);
        self.calls += 1;
        self.sends += sends;
        self.failed += record.resends_after(Evidence::Failed);
        let granted = record.resends_after(Evidence::MaybeRan);
        self.grants += granted;
        let grants = self.grants <= profile.ambiguous_resends.saturating_sub(self.in_flight);
        promise(granted == 0 || grants, "never twice (over all its re-sends)", record)?;
        self.in_flight += u32::from(record.left && record.is_in_flight());
        let failed = self.failed <= profile.failed_sends.saturating_sub(1);
        promise(failed, "never many (failed, over all its re-sends)", record)?;
        if !named {
            return promise(before.sends == 0 && !before.gave_up, "a weak heir inherits no sends", record);
        }
        promise(before.sends + sends == self.sends, "an heir inherits all sends", record)?;
        let most =
            profile.most_sends().map_or(u32::MAX, |most| if most == 0 { 0 } else { most + self.calls - 1 });
        promise(self.sends <= most, "never many (over all its re-sends)", record)?;
        promise(!self.gave_up || sends <= 1, "never many (after the end)", record)?;
        self.gave_up |= matches!(
            record.ending,
            Ending::Refused(..)
                | Ending::GaveUp(
                    Stop::SendsSpent | Stop::PatienceSpent | Stop::FloorTooFar | Stop::CircuitsOpen,
                    _
                )
        ) && !record.left;
        Ok(())
    }
}

// ---- one life ----

struct World<'p> {
    dice: SeededDice,
    pool: &'p [Failure],
    /// How often a send is answered well, is late, and makes its client leave.
    healthy: f64,
    slow: f64,
    restless: f64,
    /// Waits for a quota.
    parked: u32,
}

impl<'p> World<'p> {
    fn chance(&mut self, share: f64) -> bool {
        self.dice.share() < share
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.dice.bits() % from.len() as u64;
        from[usize::try_from(at).unwrap_or(0)].clone()
    }

    fn profile(&mut self) -> Profile {
        let all: Vec<_> = shipped_profiles().into_values().collect();
        let mut profile = self.pick(&all);
        profile.park_quota = self.chance(0.5);
        if self.chance(0.5) {
            profile.sends = self.pick(&[None, Some(0), Some(1), Some(2), Some(8)]);
            profile.gated_sends = self.pick(&[None, Some(1), Some(5)]);
            profile.failed_sends = self.pick(&[0, 1, 2, 3]);
            profile.throttled_sends = self.pick(&[None, None, Some(0), Some(2)]);
            profile.capacity_sends = self.pick(&[None, None, Some(1), Some(3)]);
            profile.ambiguous_resends = self.pick(&[0, 1, 2]);
            profile.patience = Duration::from_secs(self.pick(&[0, 5, 60, 120, 1800]));
            profile.client_limit =
                self.pick(&[ClientLimit::Replaces, ClientLimit::Shortens, ClientLimit::Ignored]);
            profile.serves_resends = self.chance(0.7);
        }
        profile
    }

    fn nature(&mut self) -> Nature {
        let operation = if self.chance(0.7) {
            Operation::Generation
        } else {
            self.pick(&[Operation::Pure, Operation::Other])
        };
        Nature { operation, self_contained: self.chance(0.8), kept: self.chance(0.95) }
    }

    /// A failure, more often than not one after which there is something to decide.
    fn failure(&mut self) -> &'p Failure {
        loop {
            let at = self.dice.bits() % self.pool.len() as u64;
            let failure = &self.pool[usize::try_from(at).unwrap_or(0)];
            if failure.evidence.is_some() || self.chance(if failure.renews.is_some() { 0.3 } else { 0.1 }) {
                return failure;
            }
        }
    }

    /// How long a call that waits has to, since its quota is spent.
    fn parks(&mut self, waiting: &Waiting, sends: &[Sent<'p>]) -> Option<Duration> {
        let spent =
            sends.last()?.failure?.renews.filter(|_| waiting.in_line && waiting.not_before.is_none())?;
        Some(spent + self.dice.up_to(Duration::from_secs(1)))
    }

    /// Plays one call to its end.
    fn play(&mut self, plan: Plan, opened: Moment) -> Record<'p> {
        let (mut now, mut sends, mut left) = (opened, Vec::new(), false);
        let mut call = Call::new(plan.clone(), opened);
        let ending = loop {
            match call.next(now) {
                Step::Wait(waiting) => {
                    let until = waiting.until;
                    assert!(until > now, "a wait that is over is no wait");
                    let mut due = waiting.not_before.unwrap_or(now);
                    if waiting.in_line && self.chance(0.7) {
                        // The lane has others before it; sometimes for too long.
                        let longest = self.pick(&[1, 20, 400]);
                        due = due + self.dice.up_to(Duration::from_secs(longest));
                        call.stands_in_line(3, None);
                    }
                    if let Some(spent) = self.parks(&waiting, &sends) {
                        due = due.max(now + spent);
                        self.parked += 1;
                    }
                    if waiting.parks && self.chance(0.02) || due > until && due > waiting.bears {
                        call.held_parked(self.pool[0].clone(), now);
                        continue;
                    }
                    let due = due.min(until);
                    if let Some(told) = call.notice_due().filter(|told| *told < due) {
                        now = now.max(told);
                        call.noticed();
                        assert_eq!(call.next(now), Step::Wait(waiting), "a notice changes no wait");
                    }
                    if self.chance(self.restless) {
                        now = now + self.dice.up_to(due.since(now));
                        left = true;
                        break Ending::ClientLeft;
                    }
                    if self.chance(0.003) {
                        now = now + self.dice.up_to(due.since(now));
                        call.drain(now);
                    } else {
                        now = due;
                        if due < until {
                            call.granted(now);
                        }
                    }
                }
                Step::Send { number, .. } => {
                    let slow = self.slow;
                    let longest = if self.chance(slow) { 400 } else { 12 };
                    let at = now;
                    now = now + self.dice.up_to(Duration::from_secs(longest));
                    let mut sent = Sent { at, ended: now, failure: None };
                    if self.chance(self.restless) {
                        left = true;
                    } else if self.chance(self.healthy) {
                        call.head_arrived(200, None);
                        call.committed();
                    } else {
                        let failure = self.failure();
                        sent.failure = Some(failure);
                        call.failed(failure.clone(), now, &mut self.dice);
                    }
                    sends.push(sent);
                    assert_eq!(number as usize, sends.len(), "sends are numbered in order");
                    if left {
                        break Ending::ClientLeft;
                    }
                }
                Step::End(ending) => break ending,
            }
        };
        if ending == Ending::Committed {
            // Whatever is said of a committed call, it stays that.
            call.failed(self.pool[0].clone(), now, &mut self.dice);
            call.drain(now);
            assert_eq!(call.next(now), Step::End(Ending::Committed), "never altered fell");
        }
        let outcome = if left { Outcome::ClientLeft } else { ending.outcome() };
        let (events, closing) = (call.take_events(), call.closing(outcome, now));
        let bequest = call.bequest(left);
        Record { plan, opened, closed: now, sends, ending, left, events, closing, bequest }
    }
}

fn life(seed: u64, pool: &[Failure], tally: &mut Tally) -> Kept {
    let mut dice = SeededDice::new(seed);
    let (healthy, slow, restless) = (0.05 + dice.share() * 0.3, dice.share() * 0.3, dice.share() * 0.06);
    let mut world = World { dice, pool, healthy, slow, restless, parked: 0 };
    let (profile, nature) = (world.profile(), world.nature());
    let client_limit = world.pick(&[None, Some(20), Some(342)]).map(Duration::from_secs);
    let turn = world.chance(0.4).then(|| Turn { thread: "thread".into(), turn: "turn".into() });
    // Who is known by its body alone says nothing of a re-send.
    let says_so = turn.is_none() && world.chance(0.5);
    let named = turn.is_some() || says_so;
    let mut ledger = Ledger::default();
    let mut chain = Chain::default();
    let mut now = Moment::after_start(Duration::from_secs(1000));
    for attempt in 0..world.pick(&[1, 2, 6, 12]) {
        let others_open = !named && world.chance(0.1);
        let pause = Duration::from_secs(world.pick(&[0, 1, 50, 70, 590, 610]));
        now = now + if attempt == 0 { Duration::ZERO } else { pause };
        let known = Duration::from_secs(if named { 600 } else { 60 });
        if attempt > 0 && (pause > known || others_open) {
            chain = Chain::default();
        }
        let says_resend = says_so && attempt > 0;
        let identity = Identity { credential: 1, body: 2, turn: turn.clone(), says_resend };
        let before = ledger.inherit(&identity, others_open, now);
        let not_before =
            if world.chance(0.05) { Some(now + world.dice.up_to(Duration::from_secs(200))) } else { None };
        let notices = world.chance(0.3).then(|| Notices::new(Duration::from_secs(15), world.chance(0.5), 3));
        let profile = profile.clone();
        let plan = Plan { profile, nature, client_limit, before, not_before, places: false, notices };
        let record = world.play(plan, now);
        judge_record(&record, tally)?;
        chain.goes_on(&record, named)?;
        tally.heirs += u32::from(before != Spent::default());
        now = record.closed;
        if record.ending == Ending::Committed {
            ledger.forget(&identity);
            chain = Chain::default();
        } else {
            ledger.remember(&identity, record.bequest, now);
        }
    }
    tally.parked += world.parked;
    Ok(())
}

fn judge_record(record: &Record<'_>, tally: &mut Tally) -> Kept {
    never_twice(record)?;
    never_early(record)?;
    never_many(record)?;
    never_forever(record)?;
    never_altered(record)?;
    // What an event can hold is the same in every call: writing it all out takes long, so some stand for all.
    if tally.calls.is_multiple_of(16) {
        never_leaked(record)?;
    }
    tally.calls += 1;
    tally.resent += u32::from(record.sends.len() > 1);
    tally.granted += record.closing.maybe_billed_twice;
    tally.left += u32::from(record.left);
    match &record.ending {
        Ending::Committed => tally.served += 1,
        Ending::Passed(_) | Ending::Parked(_) => tally.passed += 1,
        Ending::Refused(..) => tally.refused += 1,
        Ending::GaveUp(..) => tally.gave_up += 1,
        Ending::Returned(_) | Ending::ClientLeft => {}
    }
    Ok(())
}

// ---- what services answer ----

/// Stands in every secret and every prompt that a service gives back.
const PLANTED: &str = "PLANTED";

/// Answers of every kind, judged as they would be, with secrets in all places that a service could put them.
fn failures() -> Vec<Failure> {
    let mut pool = vec![
        Failure::of_transport(Fault::NeverSent, Evidence::NeverSent).saying("connect to PLANTED failed"),
        Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan).saying("PLANTED reset"),
        Failure::of_transport(Fault::EmptyAnswer, Evidence::MaybeRan),
        Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer),
        Failure {
            barred: Some(Bar::Certificate),
            ..Failure::of_transport(Fault::NeverSent, Evidence::NeverSent).saying("PLANTED issuer")
        },
    ];
    let statuses =
        [400, 401, 402, 404, 408, 413, 425, 429, 429, 429, 500, 500, 502, 503, 503, 503, 504, 522, 529, 529];
    let codes = [
        "",
        "server_is_overloaded",
        "ModelNotReadyException",
        "slow_down",
        "insufficient_quota",
        "sk-PLANTED-0001-code",
        "server_error",
    ];
    let headers = [
        "",
        "",
        "retry-after: 7",
        "retry-after: 0",
        "retry-after: 90",
        "retry-after-ms: 250",
        "x-should-retry: false",
    ];
    for (index, status) in statuses.into_iter().cycle().take(240).enumerate() {
        let (code, header) = (codes[index % codes.len()], headers[index % headers.len()]);
        let path = PATHS[index % PATHS.len()];
        let told = [Told::ByStatus, Told::ByStatus, Told::ByStatus, Told::InStream, Told::InBody][index % 5];
        let took = [1, 14, 60][index / 7 % 3];
        let body = format!(
            r#"{{"error":{{"code":"{code}","type":"t","message":"the prompt PLANTED and sk-PLANTED-0002 failed"}}}}"#
        );
        pool.push(answer(path, (told, status), header, (&body, took)));
    }
    for seconds in [3, 50, 4000] {
        let body = format!(
            r#"{{"error":{{"type":"usage_limit_reached","message":"PLANTED","resets_in_seconds":{seconds}}}}}"#
        );
        pool.push(answer(PATHS[0], (Told::ByStatus, 429), "", (&body, 1)));
    }
    assert!(pool.iter().any(|failure| matches!(failure.advice, Advice::Useless)));
    pool
}

const PATHS: [&str; 5] = [
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/messages",
    "/v1beta/models/m:generateContent",
    "/api/chat",
];

fn answer(path: &str, (told, status): (Told, u16), header: &str, (body, took): (&str, u64)) -> Failure {
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header.split_once(": ") {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let status = if told == Told::ByStatus { status } else { 200 };
    let took = Duration::from_secs(took);
    let (body, wall) = (body.as_bytes(), UNIX_EPOCH);
    let reply = Reply { told, status, headers: &headers, body, took, wall, rules: &[] };
    judge(route(&Method::POST, path).dialect, &reply)
}
