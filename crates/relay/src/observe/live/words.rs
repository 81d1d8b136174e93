//! What the lines say of lanes. Not when they say it.

use std::collections::BTreeMap;
use std::time::Duration;

use relay_core::gate::{Shut, View};
use relay_core::{Fault, Lang, Moment};

use crate::observe::LaneName;
use crate::terminal::{fitting, width};
use crate::words::live;

/// No more lanes than this have a line of their own.
const MOST: usize = 5;
/// What is due within this time is looked at more often.
const SOON: Duration = Duration::from_secs(2);

/// A line for each lane that is shut and does something about it, or at which calls wait. Those come first.
pub(super) fn lines(lang: Lang, lanes: &[(LaneName, View)], now: Moment) -> Vec<String> {
    let mut shown: Vec<_> = lanes.iter().filter(|(_, view)| is_told_of(view, now)).collect();
    shown.sort_by_key(|(_, view)| view.waiting == 0);
    let mut names = BTreeMap::<_, usize>::new();
    for (name, _) in &shown {
        *names.entry((&name.model, &name.upstream)).or_default() += 1;
    }
    let line = |(name, view): &&(LaneName, View)| {
        let is_alone = names.get(&(&name.model, &name.upstream)) == Some(&1);
        // The same model at the same place, for another account.
        let which =
            if is_alone { String::new() } else { format!(" ({})", name.id.get(..4).unwrap_or(&name.id)) };
        live::line(lang, &format!("{}{which}", label(lang, name)), &state(lang, view, now))
    };
    let mut lines: Vec<_> = shown.iter().take(MOST).map(line).collect();
    match shown.len().saturating_sub(MOST) {
        0 => {}
        more => lines.push(live::more(lang, u64::try_from(more).unwrap_or(u64::MAX))),
    }
    lines
}

/// Whether one of them sends again soon.
pub(super) fn is_due_soon(lanes: &[(LaneName, View)], now: Moment) -> bool {
    let is_soon = |next: Moment| next > now && next < now + SOON;
    lanes.iter().any(|(_, view)| is_told_of(view, now) && view.next.is_some_and(is_soon))
}

/// A lane that is shut, with nobody in line and nothing due, would stand there for ever.
fn is_told_of(view: &View, now: Moment) -> bool {
    let does_something = view.pending > 0 || view.next.is_some_and(|next| next > now);
    view.waiting > 0 || view.shut.is_some() && (does_something || view.parked.is_some())
}

fn label(lang: Lang, name: &LaneName) -> String {
    let upstream = short(&name.upstream);
    name.model.as_deref().map_or(upstream.clone(), |model| live::place(lang, &short(model), &upstream))
}

/// The beginning of a long name: what follows it matters more.
fn short(name: &str) -> String {
    const LONG: usize = 30;
    if width(name) > LONG { format!("{}…", fitting(name, Some(LONG))) } else { name.to_owned() }
}

fn state(lang: Lang, view: &View, now: Moment) -> String {
    let running = view.running + view.pending;
    let mut parts = Vec::new();
    match (view.shut, view.max_running, view.rate) {
        (Some((Shut::Refused(fault), _)), _, _) => parts.push(refused(lang, fault)),
        (Some((Shut::Spent, _)), _, _) => parts.push(refused(lang, Fault::QuotaSpent)),
        (Some((Shut::Slow, _)), _, _) => parts.push(live::slow(lang)),
        (Some((Shut::Full, _)), None, _) => parts.push(live::full(lang, running)),
        (Some((Shut::Full, _)) | None, Some(most), _) => parts.push(live::running(lang, running, most)),
        (None, None, Some(rate)) => {
            parts.push(live::rate(lang, &format!("{:.0}", (rate * 60.0).max(1.0))));
        }
        (None, None, None) => {}
    }
    if view.waiting > 0 {
        parts.push(live::waiting(lang, view.waiting));
    }
    parts.extend(next(lang, view, now));
    if let (Some(_), Some(recovery)) = (view.shut.filter(|(why, _)| *why != Shut::Spent), view.recovery) {
        parts.push(live::recovery(lang, &span(lang, recovery)));
    }
    parts.join(match lang {
        Lang::English => ", ",
        Lang::Chinese => "，",
    })
}

fn next(lang: Lang, view: &View, now: Moment) -> Option<String> {
    let held = view.hold.filter(|hold| *hold > now && view.next.is_none_or(|next| next <= *hold));
    match (held, view.next) {
        (Some(hold), _) if view.parked.is_some() => Some(live::next_in(lang, &span(lang, hold.since(now)))),
        (Some(hold), _) => Some(live::held(lang, &span(lang, hold.since(now)))),
        (None, Some(next)) if next > now => Some(live::next_in(lang, &span(lang, next.since(now)))),
        (None, Some(_)) => Some(live::next_now(lang)),
        (None, None) => {
            let is_probed = view.pending > 0 && matches!(view.shut, Some((Shut::Refused(_), _)));
            is_probed.then(|| live::trying(lang))
        }
    }
}

/// Nothing that lasts is shown as nothing.
fn span(lang: Lang, time: Duration) -> String {
    let seconds = time.as_millis().div_ceil(1000).max(1);
    match seconds {
        0..120 => live::seconds(lang, seconds),
        120..7200 => live::minutes(lang, seconds.div_ceil(60)),
        _ => live::hours(lang, seconds.div_ceil(3600)),
    }
}

/// The shortest word for it.
fn refused(lang: Lang, fault: Fault) -> String {
    match fault {
        Fault::AtCapacity => live::at_capacity(lang),
        Fault::Overloaded => live::overloaded(lang),
        Fault::ModelLoading => live::being_loaded(lang),
        Fault::Throttled => live::throttled(lang),
        Fault::QuotaSpent
        | Fault::Authentication
        | Fault::BadRequest
        | Fault::TooLong
        | Fault::ContentRefused
        | Fault::Challenge
        | Fault::ServerFailed
        | Fault::BrokenStream
        | Fault::EmptyAnswer
        | Fault::NoAnswer
        | Fault::NeverSent => fault.meaning_in(lang).to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn lines(lanes: &[(LaneName, View)], now: Moment) -> Vec<String> {
        super::lines(Lang::English, lanes, now)
    }

    pub(in super::super) fn named(model: &str) -> LaneName {
        LaneName {
            id: "9f86d081884c7d65".to_owned(),
            model: Some(model.into()),
            upstream: "api.example".into(),
        }
    }

    /// A lane whose quota is spent for so long.
    fn parked(seconds: f64) -> View {
        let (since, until) = (at(0.0), at(seconds));
        let parked = Some(relay_core::gate::Parked { since, until });
        View { shut: Some((Shut::Spent, since)), hold: Some(until), parked, ..open() }
    }

    /// A lane that is shut, with so many in line.
    pub(in super::super) fn at_capacity(waiting: usize) -> View {
        View { shut: Some((Shut::Refused(Fault::AtCapacity), at(0.0))), waiting, ..open() }
    }

    fn open() -> View {
        View {
            circuit: relay_core::breaker::Circuit::Closed,
            shut: None,
            next: None,
            hold: None,
            parked: None,
            waiting: 0,
            line: Vec::new(),
            pending: 0,
            running: 0,
            max_running: None,
            recovery: None,
            rate: None,
            random: false,
        }
    }

    fn at(seconds: f64) -> Moment {
        Moment::after_start(Duration::from_secs_f64(100.0 + seconds))
    }

    fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn a_line_says_why_who_when_and_how_long() {
        let shut = |why| Some((why, at(-9.0)));
        let rows = [
            (
                View { next: Some(at(3.2)), recovery: secs(14), ..at_capacity(6) },
                "at capacity, 6 waiting, next try in 4 s, usually back in about 14 s",
            ),
            (View { next: Some(at(3.2)), ..at_capacity(6) }, "at capacity, 6 waiting, next try in 4 s"),
            (View { next: Some(at(0.001)), ..at_capacity(1) }, "at capacity, 1 waiting, next try in 1 s"),
            (View { next: Some(at(-1.0)), ..at_capacity(1) }, "at capacity, 1 waiting, next try now"),
            (View { pending: 1, ..at_capacity(2) }, "at capacity, 2 waiting, trying now"),
            (View { pending: 1, ..at_capacity(0) }, "at capacity, trying now"),
            (
                View { next: Some(at(30.0)), hold: Some(at(30.0)), ..at_capacity(6) },
                "at capacity, 6 waiting, service asked to wait 30 s more",
            ),
            (
                View { next: Some(at(31.0)), hold: Some(at(30.0)), ..at_capacity(6) },
                "at capacity, 6 waiting, next try in 31 s",
            ),
            (
                View { next: Some(at(4.0)), hold: Some(at(-30.0)), ..at_capacity(6) },
                "at capacity, 6 waiting, next try in 4 s",
            ),
            (
                View { hold: Some(at(300.0)), waiting: 1, ..open() },
                "1 waiting, service asked to wait 5 min more",
            ),
            (
                View { next: Some(at(2500.0)), waiting: 3, recovery: secs(14), ..parked(2500.0) },
                "the quota or plan is spent, 3 waiting, next try in 42 min",
            ),
            (parked(90.0), "the quota or plan is spent, next try in 90 s"),
            (View { shut: shut(Shut::Slow), waiting: 3, ..open() }, "slow to answer, 3 waiting"),
            (
                View { shut: shut(Shut::Full), running: 3, pending: 1, waiting: 3, ..open() },
                "full with 4 running, 3 waiting",
            ),
            (
                View { max_running: Some(4), running: 3, pending: 1, waiting: 6, ..open() },
                "4 of 4 running, 6 waiting",
            ),
            (
                View { max_running: Some(4), running: 4, next: Some(at(1.0)), ..at_capacity(6) },
                "at capacity, 6 waiting, next try in 1 s",
            ),
            (
                View { rate: Some(0.5), waiting: 6, next: Some(at(2.0)), ..open() },
                "about 30 sends a minute, 6 waiting, next try in 2 s",
            ),
            (
                View { shut: shut(Shut::Refused(Fault::ServerFailed)), waiting: 1, ..open() },
                "the service failed, 1 waiting",
            ),
        ];
        for (view, words) in rows {
            assert_eq!(lines(&[(named("gpt-x"), view)], at(0.0)), [format!("gpt-x at api.example: {words}")]);
        }
        let no_model = LaneName { model: None, ..named("") };
        let running = View { max_running: Some(1), running: 1, waiting: 1, ..open() };
        assert_eq!(lines(&[(no_model, running)], at(0.0)), ["api.example: 1 of 1 running, 1 waiting"]);
        let long = named("meta-llama/Llama-3.1-405B-Instruct-Turbo");
        let words = "meta-llama/Llama-3.1-405B-Ins… at api.example: at capacity, 1 waiting";
        assert_eq!(lines(&[(long, at_capacity(1))], at(0.0)), [words]);
    }

    #[test]
    fn in_chinese_a_line_says_the_same_and_is_cut_by_what_it_takes() {
        let shut = |why| Some((why, at(-9.0)));
        let rows = [
            (
                View { next: Some(at(3.2)), recovery: secs(14), ..at_capacity(6) },
                "容量已满，6 个等待中，4 秒后重试，通常约 14 秒恢复",
            ),
            (View { pending: 1, ..at_capacity(2) }, "容量已满，2 个等待中，正在重试"),
            (
                View { next: Some(at(30.0)), hold: Some(at(30.0)), ..at_capacity(6) },
                "容量已满，6 个等待中，服务要求再等 30 秒",
            ),
            (
                View { shut: shut(Shut::Full), running: 3, pending: 1, waiting: 3, ..open() },
                "4 个运行中，已满，3 个等待中",
            ),
            (View { max_running: Some(4), running: 4, waiting: 6, ..open() }, "4/4 个运行中，6 个等待中"),
            (
                View { rate: Some(0.5), waiting: 6, next: Some(at(200.0)), ..open() },
                "每分钟约 30 次发送，6 个等待中，4 分钟后重试",
            ),
        ];
        for (view, words) in rows {
            let lines = super::lines(Lang::Chinese, &[(named("gpt-x"), view)], at(0.0));
            assert_eq!(lines, [format!("api.example 上的 gpt-x：{words}")]);
            for columns in 2..80 {
                let shown = fitting(&lines[0], Some(columns));
                assert!(width(shown) < columns && lines[0].starts_with(shown), "{columns}: {shown}");
            }
        }
        let many: Vec<_> = (0..7).map(|number| (named(&format!("m{number}")), at_capacity(1))).collect();
        assert_eq!(super::lines(Lang::Chinese, &many, at(0.0)).last().unwrap(), "以及另外 2 条通道");
    }

    #[test]
    fn a_lane_without_anything_to_tell_has_no_line() {
        let busy = View { running: 3, max_running: Some(3), recovery: secs(3), ..open() };
        for view in [open(), busy, at_capacity(0), View { next: Some(at(-1.0)), ..at_capacity(0) }] {
            assert_eq!(lines(&[(named("gpt-x"), view)], at(0.0)), [] as [&str; 0]);
        }
        let due = View { next: Some(at(1.0)), ..at_capacity(0) };
        assert_eq!(
            lines(&[(named("gpt-x"), due)], at(0.0)),
            ["gpt-x at api.example: at capacity, next try in 1 s"]
        );
    }

    #[test]
    fn of_many_lanes_those_where_calls_wait_come_first_and_the_rest_is_counted() {
        let lane = |number: usize| {
            let view = View { pending: 1, ..at_capacity(number % 2) };
            (named(&format!("m{number}")), view)
        };
        let of = |count: usize| lines(&(0..count).map(lane).collect::<Vec<_>>(), at(0.0));
        let names = |lines: &[String]| {
            lines.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&of(5)), ["m1", "m3", "m0", "m2", "m4"]);
        assert_eq!(of(6).last().unwrap(), "and 1 more lane");
        assert_eq!((of(12).len(), of(12).last().unwrap().as_str()), (6, "and 7 more lanes"));
    }

    #[test]
    fn lanes_of_one_name_are_told_apart() {
        let other = LaneName { id: "abcdef0123456789".to_owned(), ..named("gpt-x") };
        let lanes = [(named("gpt-x"), at_capacity(1)), (other, at_capacity(2)), (named("o"), at_capacity(3))];
        let expected = [
            "gpt-x at api.example (9f86): at capacity, 1 waiting",
            "gpt-x at api.example (abcd): at capacity, 2 waiting",
            "o at api.example: at capacity, 3 waiting",
        ];
        assert_eq!(lines(&lanes, at(0.0)), expected);
    }

    #[test]
    fn what_is_due_soon_is_looked_at_more_often() {
        let next = |seconds| [(named("gpt-x"), View { next: Some(at(seconds)), ..at_capacity(1) })];
        assert_eq!(
            [-1.0, 0.5, 1.9, 2.0, 60.0].map(|it| is_due_soon(&next(it), at(0.0))),
            [false, true, true, false, false]
        );
    }

    #[test]
    fn a_span_is_short_and_never_nothing() {
        let shown = [0, 1, 1000, 1001, 119_000, 119_001, 7_199_000, 7_200_000]
            .map(|millis| span(Lang::English, Duration::from_millis(millis)));
        assert_eq!(shown, ["1 s", "1 s", "1 s", "2 s", "119 s", "2 min", "120 min", "2 h"]);
    }
}
