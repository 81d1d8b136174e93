//! Adding records up, one by one: the memory does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};

use relay_core::Fault;

use super::{By, Slot};
use crate::history::fate::Fate;
use crate::history::record::{CallRecord, ClosedRecord, SendRecord, Tokens};

/// The most rows, and the most models with hours of their own; what comes beyond is in [`OTHERS`].
const MOST_ROWS: usize = 200;
/// The name of what has no row of its own.
pub const OTHERS: &str = "(others)";
/// The name of what has none.
pub const NAMELESS: &str = "-";

/// Where a moment lies in the week of the user.
pub type SlotOf<'a> = &'a dyn Fn(u64) -> Slot;

/// What calls come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// All of them.
    pub all: Sums,
    /// The rows that were asked for.
    pub rows: BTreeMap<String, Sums>,
    /// The hours of all sends.
    pub hours: Hours,
    /// The hours of each model's sends.
    pub models: BTreeMap<String, Hours>,
}

impl Tally {
    /// One more call.
    pub fn see(&mut self, call: &CallRecord, by: Option<By>, slot_of: SlotOf<'_>) {
        let sent = Sent::all(call);
        self.all.see(call);
        self.all.sent(sent);
        let moved = moves(call).count() as u64;
        self.all.moved_here += moved;
        self.all.moved_away += moved;
        match by {
            Some(By::Hour) => self.row(format!("{:02}", slot_of(call.opened).hour), call, sent),
            Some(By::Model) => self.row(models(call), call, sent),
            Some(By::Client) => self.row(call.client.clone(), call, sent),
            Some(By::Upstream) => self.upstreams(call, sent),
            None => {}
        }
        let mut at = call.first_at();
        for of in &call.sends {
            // A call for another model says nothing of the one that was asked for.
            at = of.at(at);
            let model = at.1.unwrap_or(NAMELESS);
            let Some(began) = of.began else { continue };
            let slot = slot_of(call.opened.saturating_add(began));
            let refused = of.failed.as_ref().is_some_and(|failed| is_capacity(&failed.fault));
            self.hours.see(slot, refused);
            row(&mut self.models, model.to_owned()).see(slot, refused);
        }
    }

    fn row(&mut self, name: String, call: &CallRecord, sent: Sent) {
        let row = row(&mut self.rows, name);
        row.see(call);
        row.sent(sent);
    }

    /// A call counts for the upstream that had it at last, which is the one that served it if any did, and each send for
    /// the one that it went to.
    fn upstreams(&mut self, call: &CallRecord, all: Sent) {
        let mut known = Sent::default();
        let mut at = call.first_at();
        for of in &call.sends {
            at = of.at(at);
            let sent = Sent::one(of);
            known = known.and(sent);
            if sent != Sent::default() {
                row(&mut self.rows, at.0.to_owned()).sent(sent);
            }
        }
        let counted = row(&mut self.rows, call.last_at().0.to_owned());
        counted.see(call);
        // Where those went that are left out of a long call is not told.
        counted.sent(all.less(known));
        for (from, to) in moves(call) {
            row(&mut self.rows, from.to_owned()).moved_away += 1;
            row(&mut self.rows, to.to_owned()).moved_here += 1;
        }
    }
}

/// What sends come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sent {
    sends: u64,
    refusals: u64,
    failed: Tokens,
}

impl Sent {
    /// Those of a call.
    fn all(call: &CallRecord) -> Self {
        let known = call.sends.iter().map(Self::one).fold(Self::default(), Self::and);
        match &call.closed {
            Some(closed) => {
                Self { sends: u64::from(closed.sends), refusals: u64::from(closed.capacity_faults), ..known }
            }
            None => Self { sends: known.sends + u64::from(call.left_out), ..known },
        }
    }

    fn one(of: &SendRecord) -> Self {
        let failed = of.failed.as_ref();
        let mut tokens = Tokens::default();
        add(&mut tokens, failed.and_then(|failed| failed.tokens));
        Self {
            sends: u64::from(of.began.is_some()),
            refusals: u64::from(failed.is_some_and(|failed| is_capacity(&failed.fault))),
            failed: tokens,
        }
    }

    fn and(self, other: Self) -> Self {
        let mut failed = self.failed;
        add(&mut failed, Some(other.failed));
        Self { sends: self.sends + other.sends, refusals: self.refusals + other.refusals, failed }
    }

    /// The rest of the sends, whose tokens nobody knows.
    fn less(self, known: Self) -> Self {
        Self {
            sends: self.sends.saturating_sub(known.sends),
            refusals: self.refusals.saturating_sub(known.refusals),
            failed: Tokens::default(),
        }
    }
}

/// From which upstream to which one a call went on, as often as it did, also where it came back in the end.
fn moves(call: &CallRecord) -> impl Iterator<Item = (&str, &str)> {
    let places = call.sends.iter().scan(call.first_at(), |at, of| {
        let from = at.0;
        *at = of.at(*at);
        Some((from, at.0))
    });
    places.filter(|(from, to)| from != to)
}

/// The model that a call asked for, and the one that was asked at last, where that is another one.
fn models(call: &CallRecord) -> String {
    let [asked, last] = [call.first_at().1, call.last_at().1].map(|model| model.unwrap_or(NAMELESS));
    if asked == last { asked.to_owned() } else { format!("{asked} > {last}") }
}

/// The row of this name, or of all that have none any more.
fn row<T: Default>(rows: &mut BTreeMap<String, T>, name: String) -> &mut T {
    let has_room = rows.len() < MOST_ROWS || rows.contains_key(&name);
    rows.entry(if has_room { name } else { OTHERS.to_owned() }).or_default()
}

fn is_capacity(fault: &str) -> bool {
    Fault::ALL.into_iter().any(|known| known.is_capacity() && known.name() == fault)
}

/// The sums of calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// Calls.
    pub calls: u64,
    /// Those of them that have no end.
    pub open: u64,
    /// Calls of which it is known whether the relay, or the service alone, did well.
    pub judged: u64,
    /// Calls whose client got a real answer.
    pub served: u64,
    /// Those of them that the first send alone would have served.
    pub served_by_first: u64,
    /// Calls whose client got a definite error of the service; they say nothing of its capacity.
    pub passed: u64,
    /// Calls whose failure went back as it was.
    pub returned: u64,
    /// Calls that were refused or given up.
    pub lost: u64,
    /// Calls whose answer broke off.
    pub broken: u64,
    /// How often a call came here from another upstream.
    pub moved_here: u64,
    /// How often one went on elsewhere from this upstream.
    pub moved_away: u64,
    /// Calls that were cut; the client resumes in another one, and that one counts.
    pub cut: u64,
    /// Calls whose client left after a fault or a wait.
    pub left_waiting: u64,
    /// Calls whose client left before either.
    pub left: u64,
    /// Sends.
    pub sends: u64,
    /// Sends that were refused for want of capacity.
    pub refusals: u64,
    /// The waits of calls that waited, in milliseconds.
    pub waits: Spread,
    /// Calls that may have been billed twice.
    pub billed_twice: u64,
    /// Sends of theirs that may have been the second to run.
    pub second_runs: u64,
    /// The tokens of answers that were served.
    pub tokens: Tokens,
    /// The tokens of failed sends, and of answers that were not served.
    pub failed_tokens: Tokens,
}

impl Sums {
    fn see(&mut self, call: &CallRecord) {
        self.calls += 1;
        let Some(closed) = &call.closed else {
            self.open += 1;
            return;
        };
        self.billed_twice += u64::from(closed.maybe_billed_twice > 0);
        self.second_runs += u64::from(closed.maybe_billed_twice);
        if closed.waited > 0 {
            self.waits.see(closed.waited);
        }
        self.see_outcome(call, closed);
    }

    fn sent(&mut self, sent: Sent) {
        self.sends += sent.sends;
        self.refusals += sent.refusals;
        add(&mut self.failed_tokens, Some(sent.failed));
    }

    fn see_outcome(&mut self, call: &CallRecord, closed: &ClosedRecord) {
        let Some(fate) = Fate::of_call(call) else { return };
        if fate.is_served() {
            self.served += 1;
            self.served_by_first += u64::from(fate == Fate::ServedByFirst);
            add(&mut self.tokens, closed.tokens);
        } else {
            let last = call.sends.last().and_then(|of| of.failed.as_ref()?.tokens);
            // An answer that was given back tells the tokens of the failed send once more.
            add(&mut self.failed_tokens, closed.tokens.filter(|tokens| last != Some(*tokens)));
        }
        self.judged += u64::from(fate.is_judged());
        match fate {
            Fate::ServedByFirst | Fate::Saved => {}
            Fate::Passed => self.passed += 1,
            Fate::Returned => self.returned += 1,
            Fate::Lost => self.lost += 1,
            Fate::Broken => self.broken += 1,
            Fate::Cut => self.cut += 1,
            Fate::LeftWaiting => self.left_waiting += 1,
            Fate::Left => self.left += 1,
        }
    }

    /// The share that was served.
    #[must_use]
    pub fn success(&self) -> Option<f64> {
        share(self.served, self.judged)
    }

    /// The share that the first send alone would have served.
    #[must_use]
    pub fn success_without(&self) -> Option<f64> {
        share(self.served_by_first, self.judged)
    }

    /// Calls that were served and would not have been.
    #[must_use]
    pub const fn saved(&self) -> u64 {
        self.served - self.served_by_first
    }

    /// Sends for each call that was served.
    #[must_use]
    pub fn sends_per_success(&self) -> Option<f64> {
        share(self.sends, self.served)
    }
}

/// One number as a share of another; `None`: of nothing.
#[expect(clippy::cast_precision_loss, reason = "a share is told to the tenth of a percent")]
#[must_use]
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn add(to: &mut Tokens, tokens: Option<Tokens>) {
    let Some(Tokens { input, cached, output }) = tokens else { return };
    to.input = to.input.saturating_add(input);
    to.cached = to.cached.saturating_add(cached);
    to.output = to.output.saturating_add(output);
}

/// Numbers, kept as how many there are of each size: exact in sum and count, and to a sixteenth in where one stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    count: u64,
    sum: u128,
    most: u64,
    sizes: BTreeMap<u32, u64>,
}

/// So many sizes between a power of two and the next.
const STEPS: u32 = 16;

impl Spread {
    fn see(&mut self, number: u64) {
        self.count += 1;
        self.sum += u128::from(number);
        self.most = self.most.max(number);
        *self.sizes.entry(size(number)).or_default() += 1;
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// What they are on average.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        u64::try_from(self.sum.checked_div(u128::from(self.count))?).ok()
    }

    /// What so many percent of them do not exceed, at most a sixteenth too much.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = self.count.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        let at = self.sizes.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        at.map(|(size, _)| largest(*size).min(self.most))
    }
}

/// The number of a size: exact below [`STEPS`], then so many between two powers of two.
const fn size(number: u64) -> u32 {
    if number < STEPS as u64 {
        return number as u32;
    }
    let power = number.ilog2();
    let within = (number >> (power - STEPS.ilog2())) as u32 - STEPS;
    (power - STEPS.ilog2() + 1) * STEPS + within
}

/// The largest number of a size.
const fn largest(size: u32) -> u64 {
    if size < STEPS {
        return size as u64;
    }
    let shift = size / STEPS - 1;
    let above = (size % STEPS + STEPS) as u64 + 1;
    match above.checked_shl(shift) {
        // The last one ends where numbers do.
        Some(first_above) if first_above >> shift == above => first_above - 1,
        Some(_) | None => u64::MAX,
    }
}

/// Sends, and how many of them were refused for want of capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cell {
    /// Sends.
    pub sends: u64,
    /// Those that were refused.
    pub refused: u64,
}

impl Cell {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { sends: self.sends + other.sends, refused: self.refused + other.refused }
    }

    /// The share that was refused.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        share(self.refused, self.sends)
    }
}

/// The hours of the week, Monday first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hours {
    cells: [[Cell; 24]; 7],
    /// The days of which something is known, for each hour.
    days: [BTreeSet<i32>; 24],
}

impl Hours {
    fn see(&mut self, slot: Slot, refused: bool) {
        let Slot { weekday, hour, day } = slot;
        if let (Some(cell), Some(days)) =
            (self.cells.get_mut(weekday).and_then(|hours| hours.get_mut(hour)), self.days.get_mut(hour))
        {
            *cell = cell.and(Cell { sends: 1, refused: u64::from(refused) });
            days.insert(day);
        }
    }

    /// The hours of each day of the week.
    #[must_use]
    pub const fn cells(&self) -> &[[Cell; 24]; 7] {
        &self.cells
    }

    /// An hour of the day, whatever the day; and of how many days something is known.
    #[must_use]
    pub fn of_day(&self, hour: usize) -> (Cell, usize) {
        let cells = self.cells.iter().filter_map(|hours| hours.get(hour));
        let days = self.days.get(hour).map_or(0, BTreeSet::len);
        (cells.fold(Cell::default(), |all, cell| all.and(*cell)), days)
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> Cell {
        self.cells.iter().flatten().fold(Cell::default(), |all, cell| all.and(*cell))
    }
}
