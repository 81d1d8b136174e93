//! Medians, ratios, and the table.

use std::collections::BTreeMap;

/// The middle of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    percentile(&mut figures, 0.5)
}

/// The figure below which a share of all lies.
pub(crate) fn percentile(figures: &mut [f64], share: f64) -> f64 {
    if figures.is_empty() {
        return f64::NAN;
    }
    figures.sort_by(f64::total_cmp);
    let at = ((figures.len() - 1) as f64 * share).round() as usize;
    figures[at.min(figures.len() - 1)]
}

/// What was measured, by figure and by way.
#[derive(Default)]
pub(crate) struct Report {
    figures: BTreeMap<&'static str, BTreeMap<&'static str, Vec<f64>>>,
    order: Vec<&'static str>,
}

/// What a figure is to be: at most, or at least, so many times the bare proxy's.
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    None,
}

impl Report {
    pub(crate) fn add(&mut self, figure: &'static str, way: &'static str, value: f64) {
        if !self.order.contains(&figure) {
            self.order.push(figure);
        }
        self.figures.entry(figure).or_default().entry(way).or_default().push(value);
    }

    fn of(&self, figure: &str, way: &str) -> Option<f64> {
        self.figures.get(figure)?.get(way).map(|values| median(values.clone()))
    }

    /// The table, and whether every goal is met. Ratios are medians of the ratios of each round.
    #[expect(clippy::print_stdout, reason = "the table is what was asked for")]
    pub(crate) fn print(&self, goals: &dyn Fn(&str) -> Goal) -> bool {
        println!(
            "{:<34} {:>12} {:>12} {:>12} {:>9}  goal",
            "median", "direct", "bare proxy", "relay", "ratio"
        );
        let mut met = true;
        for figure in &self.order {
            let cell =
                |way| self.of(figure, way).map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
            let ratio = self.ratio(figure);
            let (words, holds) = match (goals(figure), ratio) {
                (Goal::AtMost(most), Some(ratio)) => (format!("<= {most}"), ratio <= most),
                (Goal::AtLeast(least), Some(ratio)) => (format!(">= {least}"), ratio >= least),
                (Goal::None, _) | (_, None) => (String::new(), true),
            };
            met &= holds;
            println!(
                "{figure:<34} {:>12} {:>12} {:>12} {:>9}  {words}{}",
                cell("direct"),
                cell("bare"),
                cell("relay"),
                ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
                if holds { "" } else { "  MISSED" }
            );
        }
        met
    }

    fn ratio(&self, figure: &str) -> Option<f64> {
        let ways = self.figures.get(figure)?;
        let (bare, relay) = (ways.get("bare")?, ways.get("relay")?);
        Some(median(bare.iter().zip(relay).map(|(bare, relay)| relay / bare).collect()))
    }
}
