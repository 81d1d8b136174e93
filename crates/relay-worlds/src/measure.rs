//! What a run comes to, and what several runs of one cell come to.

use std::time::Duration;

use relay_core::moment::Moment;

/// What happened in one world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Requests that came.
    pub came: usize,
    /// Requests that failed.
    pub failed: usize,
    /// The wait of each request that was served, in seconds: from its coming until it was sent for the last time, or
    /// until the service began with it.
    pub waits: Vec<f64>,
    /// Those of the heaviest session.
    pub heavy: Vec<f64>,
    /// Those of all others.
    pub light: Vec<f64>,
    /// Sends.
    pub sends: usize,
    /// When each send was made that was refused.
    pub refused: Vec<Moment>,
    /// Sends that were cut off without an answer: what is sent again then may run twice.
    pub cut: usize,
    /// Sends before the moment the service had asked for.
    pub early: usize,
    /// How long it took.
    pub took: Duration,
}

impl Run {
    /// A request was served.
    pub(crate) fn served(&mut self, waited: Duration, heavy: bool) {
        let waited = waited.as_secs_f64();
        self.waits.push(waited);
        if heavy { self.heavy.push(waited) } else { self.light.push(waited) }
    }

    /// The most sends within 60 s that were refused.
    #[must_use]
    pub fn peak(&self) -> usize {
        let mut first = 0;
        let mut most = 0;
        for (last, moment) in self.refused.iter().enumerate() {
            while self.refused.get(first).is_some_and(|first| moment.since(*first).as_secs_f64() > 60.0) {
                first += 1;
            }
            most = most.max(last + 1 - first);
        }
        most
    }
}

/// A mean over seeds, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// It lies within so much of this, with 95 % probability.
    pub within: f64,
}

impl Figure {
    /// Of one value per seed.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let within = if values.len() > 1 { 1.96 * (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
        Self { mean, within }
    }
}

/// What the runs of one scene under one policy come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The mean wait of each seed.
    pub wait_by_seed: Vec<f64>,
    /// The share of requests that were served, of each seed.
    pub success_by_seed: Vec<f64>,
    /// The sends per success of each seed.
    pub sends_by_seed: Vec<f64>,
    /// The mean wait.
    pub wait: Figure,
    /// The middle wait.
    pub median: f64,
    /// 95 % of all waits are no longer.
    pub p95: f64,
    /// 99 % of all waits are no longer.
    pub p99: f64,
    /// Sends per success.
    pub sends: Figure,
    /// The share of requests that were served.
    pub success: Figure,
    /// Refused sends a minute.
    pub refused_a_minute: f64,
    /// The most refused sends within 60 s, in the mean over seeds.
    pub peak: f64,
    /// The longest wait, in mean waits.
    pub longest: f64,
    /// The mean wait of the heaviest session.
    pub heavy: f64,
    /// The mean wait of the others.
    pub light: f64,
    /// 95 % of the others' waits are no longer, in the mean over seeds.
    pub light_p95: f64,
    /// Sends that were cut off without an answer, in all seeds.
    pub cut: usize,
    /// Sends before the moment the service had asked for, in all seeds.
    pub early: usize,
}

impl Cell {
    /// From one run per seed.
    #[must_use]
    pub fn of(runs: &[Run]) -> Self {
        let by_seed = |value: &dyn Fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
        let over = |value: &dyn Fn(&Run) -> f64| mean(&by_seed(value));
        let wait_by_seed = by_seed(&|run| mean(&run.waits));
        let sends_by_seed = by_seed(&|run| run.sends as f64 / run.waits.len().max(1) as f64);
        let success_by_seed = by_seed(&|run| run.waits.len() as f64 / run.came.max(1) as f64);
        let mut all: Vec<f64> = runs.iter().flat_map(|run| run.waits.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        let longest = |run: &Run| {
            run.waits.iter().copied().fold(0.0, f64::max) / mean(&run.waits).max(f64::MIN_POSITIVE)
        };
        let light_p95 = |run: &Run| {
            let mut light = run.light.clone();
            light.sort_by(f64::total_cmp);
            quantile(&light, 0.95)
        };
        Self {
            wait: Figure::of(&finite(&wait_by_seed)),
            median: quantile(&all, 0.5),
            p95: quantile(&all, 0.95),
            p99: quantile(&all, 0.99),
            sends: Figure::of(&sends_by_seed),
            success: Figure::of(&success_by_seed),
            refused_a_minute: over(&|run| run.refused.len() as f64 / (run.took.as_secs_f64() / 60.0)),
            peak: over(&|run| run.peak() as f64),
            longest: over(&longest),
            heavy: over(&|run| mean(&run.heavy)),
            light: over(&|run| mean(&run.light)),
            light_p95: over(&light_p95),
            cut: runs.iter().map(|run| run.cut).sum(),
            early: runs.iter().map(|run| run.early).sum(),
            wait_by_seed,
            success_by_seed,
            sends_by_seed,
        }
    }

    /// How much longer the waits are than another policy's with the same seeds.
    #[must_use]
    pub fn longer_than(&self, other: &Self) -> Figure {
        more(&self.wait_by_seed, &other.wait_by_seed)
    }

    /// How much larger the share of failures is than another policy's with the same seeds.
    #[must_use]
    pub fn fails_more_than(&self, other: &Self) -> Figure {
        more(&other.success_by_seed, &self.success_by_seed)
    }
}

/// How much more the first are than the second, seed by seed.
fn more(first: &[f64], second: &[f64]) -> Figure {
    let pairs = first.iter().zip(second);
    Figure::of(&finite(&pairs.map(|(first, second)| first - second).collect::<Vec<_>>()))
}

/// The values that are numbers: a seed in which nobody was served has no mean wait.
fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

/// The mean of the values that are numbers.
fn mean(values: &[f64]) -> f64 {
    Figure::of(&finite(values)).mean
}

/// The value below which this share of sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_mean_and_its_interval() {
        let figure = Figure::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((figure.mean - 2.5).abs() < 1e-12);
        // Deviation 1.29, divided by the root of 4, times 1.96.
        assert!((figure.within - 1.2651).abs() < 1e-4, "{}", figure.within);
        assert_eq!(Figure::of(&[7.0]), Figure { mean: 7.0, within: 0.0 });
    }

    #[test]
    fn the_peak_is_the_fullest_minute() {
        let at = |second| Moment::after_start(Duration::from_secs(second));
        let refused = [0, 50, 100, 105, 110, 161, 400].map(at).to_vec();
        assert_eq!(Run { refused, ..Run::default() }.peak(), 4, "from 50 to 110");
        assert_eq!(Run::default().peak(), 0);
    }

    #[test]
    fn a_cell_is_the_mean_over_seeds_and_the_quantiles_of_all() {
        let run = |waits: &[f64], failed| Run {
            came: waits.len() + failed,
            failed,
            waits: waits.to_vec(),
            sends: 2 * waits.len() + failed,
            took: Duration::from_secs(60),
            ..Run::default()
        };
        let cell = Cell::of(&[run(&[0.0, 2.0], 2), run(&[3.0; 100], 0)]);
        assert!((cell.wait.mean - 2.0).abs() < 1e-12);
        assert!((cell.median - 3.0).abs() < 1e-12 && (cell.p95 - 3.0).abs() < 1e-12);
        assert!((cell.success.mean - 0.75).abs() < 1e-12);
        assert!((cell.sends.mean - 2.5).abs() < 1e-12);
        let other = Cell::of(&[run(&[0.0], 0), run(&[1.0], 0)]);
        assert!((cell.longer_than(&other).mean - 1.5).abs() < 1e-12);
        assert!((cell.fails_more_than(&other).mean - 0.25).abs() < 1e-12);
    }
}
