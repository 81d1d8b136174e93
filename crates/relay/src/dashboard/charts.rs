//! What the charts show: the calls of a time, added up. Out of the history's file, or out of memory where there is none;
//! read on a thread where that may take its time, and kept for some seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use relay_core::Moment;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::clock::wall_ms;
use crate::history::fate::Fate;
use crate::history::{self, Point};
use crate::query::{number, value};
use crate::reply::{ReplyBody, text, typed};
use crate::shared::Shared;
use crate::words::{door, lang};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The heat map looks so far back.
const BACK: u64 = 28 * DAY;
/// The most models of the heat map: those that were short of capacity most often.
const MODELS: usize = 12;
/// No place is further from UTC, in minutes.
const FURTHEST: i64 = 14 * 60;
/// Monday's place in a week that begins where days are counted from, which was a Thursday.
const MONDAY: i64 = 3;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Span {
    Hour,
    Day,
    Week,
}

impl Span {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            _ => return None,
        })
    }

    /// How long each of its parts is, and how many there are.
    const fn parts(self) -> (u64, u64) {
        match self {
            Self::Hour => (MINUTE, 60),
            Self::Day => (15 * MINUTE, 96),
            Self::Week => (HOUR, 168),
        }
    }

    const fn kept(self) -> Duration {
        Duration::from_secs(match self {
            Self::Hour => 3,
            Self::Day => 10,
            Self::Week => 30,
        })
    }
}

/// What was added up a moment ago: a chart, or the heat map of a place.
#[derive(Default)]
pub(super) struct Cache(Mutex<BTreeMap<Option<Span>, Kept>>);

struct Kept {
    at: Moment,
    offset: i64,
    page: Vec<u8>,
}

/// Sums, part by part. All lists are of one length.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Chart {
    v: u32,
    /// When the first part begins, in milliseconds since 1970.
    from: u64,
    /// How long each is.
    step: u64,
    /// Calls that came.
    calls: Vec<u64>,
    /// Those of them that got a real answer.
    served: Vec<u64>,
    /// Those of them that their first send alone would not have served.
    saved: Vec<u64>,
    /// Those that are judged and were not served.
    failed: Vec<u64>,
    /// How often they were told of a want of capacity.
    refusals: Vec<u64>,
    /// What they waited, in milliseconds.
    waited: Vec<u64>,
    /// Those that waited.
    waits: Vec<u64>,
    /// How often they were sent.
    sends: Vec<u64>,
}

impl Chart {
    fn of(span: Span, now: u64) -> Self {
        let (step, count) = span.parts();
        let from = (now / step + 1).saturating_sub(count) * step;
        let none = || vec![0; usize::try_from(count).unwrap_or(0)];
        Self {
            v: 1,
            from,
            step,
            calls: none(),
            served: none(),
            saved: none(),
            failed: none(),
            refusals: none(),
            waited: none(),
            waits: none(),
            sends: none(),
        }
    }

    fn add(&mut self, point: &Point) {
        let part = point.opened.checked_sub(self.from).map(|since| since / self.step);
        let Some(part) = part.and_then(|part| usize::try_from(part).ok()) else { return };
        let add = |list: &mut Vec<u64>, count: u64| {
            if let Some(sum) = list.get_mut(part) {
                *sum += count;
            }
        };
        add(&mut self.calls, 1);
        add(&mut self.refusals, point.capacity_faults.into());
        add(&mut self.waited, point.waited);
        add(&mut self.sends, point.sends.into());
        add(&mut self.waits, u64::from(point.waited > 0));
        let Some(fate) = point.fate else { return };
        add(&mut self.served, u64::from(fate.is_served()));
        add(&mut self.saved, u64::from(fate == Fate::Saved));
        add(&mut self.failed, u64::from(fate.is_judged() && !fate.is_served()));
    }
}

/// How often a model had no capacity, hour by hour of a week that begins on Monday.
#[derive(Debug, PartialEq, Serialize)]
struct Heat {
    v: u32,
    /// Since when, in milliseconds since 1970.
    from: u64,
    models: Vec<OfModel>,
}

#[derive(Debug, PartialEq, Serialize)]
struct OfModel {
    model: String,
    /// Its calls, in 168 hours.
    calls: Vec<u32>,
    /// Those of them that were told of a want of capacity.
    short: Vec<u32>,
}

/// The calls of each model. `offset` is how many minutes clocks there are before UTC.
#[derive(Default)]
struct Heats(BTreeMap<String, OfModel>);

impl Heats {
    fn add(&mut self, point: &Point, offset: i64) {
        let Some(model) = &point.model else { return };
        let hours = (i64::try_from(point.opened).unwrap_or(0) / 60_000 + offset).div_euclid(60);
        let place = usize::try_from((hours + MONDAY * 24).rem_euclid(168)).unwrap_or(0);
        let of = self.0.entry(model.clone()).or_insert_with(|| OfModel {
            model: model.clone(),
            calls: vec![0; 168],
            short: vec![0; 168],
        });
        if let Some(calls) = of.calls.get_mut(place) {
            *calls += 1;
        }
        if let Some(short) = of.short.get_mut(place) {
            *short += u32::from(point.capacity_faults > 0);
        }
    }

    fn page(self, from: u64) -> Heat {
        let mut models: Vec<_> = self.0.into_values().collect();
        let sums = |of: &OfModel| (of.short.iter().sum::<u32>(), of.calls.iter().sum::<u32>());
        models.sort_by_key(|of| std::cmp::Reverse(sums(of)));
        models.truncate(MODELS);
        Heat { v: 1, from, models }
    }
}

/// One chart: `span=hour`, `day` or `week`.
pub(super) async fn answer(shared: &Arc<Shared>, query: &str) -> Response<ReplyBody> {
    let Some(span) = Span::named(value(query, "span").unwrap_or("hour")) else {
        return text(StatusCode::BAD_REQUEST, &door::no_span(lang()));
    };
    let mut chart = Chart::of(span, wall_ms(&*shared.clock));
    let read = read(shared, chart.from, move |points| {
        points(&mut |point| chart.add(&point))?;
        Ok(serde_json::to_vec(&chart))
    });
    cached(shared, (Some(span), 0), span.kept(), read).await
}

/// The heat map: `offset=MINUTES` is how far the reader's clock is before UTC.
pub(super) async fn heat(shared: &Arc<Shared>, query: &str) -> Response<ReplyBody> {
    let Ok(offset) = number::<i64>(query, "offset") else {
        return text(StatusCode::BAD_REQUEST, &door::no_number(lang()));
    };
    let offset = offset.unwrap_or(0).clamp(-FURTHEST, FURTHEST);
    let from = wall_ms(&*shared.clock).saturating_sub(BACK);
    let read = read(shared, from, move |points| {
        let mut heats = Heats::default();
        points(&mut |point| heats.add(&point, offset))?;
        Ok(serde_json::to_vec(&heats.page(from)))
    });
    cached(shared, (None, offset), Duration::from_secs(60), read).await
}

type Found = Result<serde_json::Result<Vec<u8>>, String>;

/// The calls of a time, one by one.
type Points<'a> = dyn FnMut(&mut dyn FnMut(Point)) -> Result<(), String> + 'a;

/// What `sum` makes of the calls since then.
async fn read(
    shared: &Arc<Shared>,
    from: u64,
    sum: impl FnOnce(&mut Points<'_>) -> Found + Send + 'static,
) -> Found {
    let (config, recorder) = (Arc::clone(&shared.config), shared.recorder.clone());
    let reading = tokio::task::spawn_blocking(move || {
        sum(&mut |see| match history::points(&config, from, &mut *see) {
            Some(read) => read,
            None => {
                let calls = recorder.iter().flat_map(|recorder| recorder.recent().since(0).1);
                let since = calls.filter(|call| call.record.opened >= from);
                since.map(|call| Point::of(&call.record)).for_each(see);
                Ok(())
            }
        })
    });
    reading.await.unwrap_or_else(|stopped| Err(stopped.to_string()))
}

/// What is kept of this, or what is read now; whoever asks meanwhile waits for that.
async fn cached(
    shared: &Shared,
    (span, offset): (Option<Span>, i64),
    within: Duration,
    read: impl Future<Output = Found>,
) -> Response<ReplyBody> {
    let page = |page: &[u8]| typed(StatusCode::OK, "application/json", page.to_vec());
    let mut kept = shared.board.charts.0.lock().await;
    let now = shared.clock.now();
    let fresh = |it: &&Kept| it.offset == offset && now.since(it.at) < within;
    if let Some(found) = kept.get(&span).filter(fresh) {
        return page(&found.page);
    }
    match read.await {
        Ok(Ok(bytes)) => {
            let response = page(&bytes);
            kept.insert(span, Kept { at: now, offset, page: bytes });
            response
        }
        Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("steady-relay: {error}\n")),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("steady-relay: {why}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::fate::Way;

    fn point(opened: u64, outcome: &str, sends: u32) -> Point {
        let way = Way { was_helped: sends > 1, was_troubled: sends > 1 };
        Point {
            opened,
            model: Some("m".to_owned()),
            fate: Some(Fate::named(outcome, way)),
            sends,
            waited: 500 * u64::from(sends - 1),
            capacity_faults: sends - 1,
        }
    }

    #[test]
    fn calls_are_added_up_part_by_part() {
        let now = 100 * HOUR + 30_000;
        let mut chart = Chart::of(Span::Hour, now);
        assert_eq!((chart.from, chart.step, chart.calls.len()), (99 * HOUR + MINUTE, MINUTE, 60));
        for point in [
            point(now, "served", 1),
            point(now, "served", 3),
            point(now, "gave_up", 2),
            point(now, "client_left", 1),
            point(now, "client_left", 2),
            point(chart.from, "returned", 1),
            // Before all of it, and after.
            point(chart.from - 1, "served", 1),
            point(now + HOUR, "served", 1),
        ] {
            chart.add(&point);
        }
        let last = |list: &[u64]| (list[0], list[59], list.iter().sum::<u64>());
        assert_eq!(last(&chart.calls), (1, 5, 6));
        assert_eq!(last(&chart.served), (0, 2, 2));
        assert_eq!(last(&chart.saved), (0, 1, 1));
        assert_eq!(last(&chart.failed), (1, 2, 3));
        assert_eq!(last(&chart.refusals), (0, 4, 4));
        assert_eq!(last(&chart.waited), (0, 2000, 2000));
        assert_eq!(last(&chart.waits), (0, 3, 3));
        assert_eq!(last(&chart.sends), (1, 9, 10));
        for (span, count) in [(Span::Day, 96), (Span::Week, 168)] {
            let chart = Chart::of(span, now);
            assert_eq!((chart.calls.len(), chart.from % chart.step), (count, 0));
            assert!(chart.from + chart.step * count as u64 > now);
        }
        assert_eq!(Chart::of(Span::Week, 5).from, 0, "a clock at its beginning");
    }

    #[test]
    fn hours_are_those_of_the_readers_clock() {
        // Thursday, 1 January 1970, 23:45 UTC.
        let at = 23 * HOUR + 45 * MINUTE;
        for (offset, place) in [(0, 3 * 24 + 23), (330, 4 * 24 + 5), (-1, 3 * 24 + 23), (-360, 3 * 24 + 17)] {
            let mut heats = Heats::default();
            heats.add(&point(at, "served", 2), offset);
            heats.add(&Point { model: None, ..point(at, "served", 2) }, offset);
            let page = heats.page(0);
            assert_eq!(page.models.len(), 1);
            let hot: Vec<_> = (0..168).filter(|hour| page.models[0].short[*hour] > 0).collect();
            assert_eq!((hot, page.models[0].calls[place]), (vec![place], 1), "{offset}");
        }
        let mut heats = Heats::default();
        heats.add(&point(0, "served", 1), -600);
        assert_eq!(heats.page(0).models[0].calls[2 * 24 + 14], 1, "the day before");
    }

    #[test]
    fn the_models_that_are_short_most_come_first() {
        let mut heats = Heats::default();
        for nth in 0..20 {
            let model = Some(format!("m{nth}"));
            for _ in 0..=nth {
                heats.add(&Point { model: model.clone(), ..point(0, "served", 1 + nth % 2) }, 0);
            }
        }
        let models: Vec<_> = heats.page(0).models.into_iter().map(|of| of.model).collect();
        assert_eq!((models.len(), models[0].as_str(), models[10].as_str()), (12, "m19", "m18"));
    }
}
