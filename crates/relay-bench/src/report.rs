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

/// What a figure is to be.
pub(crate) enum Goal {
    /// So many times the bare proxy's.
    AtMost(f64),
    AtLeast(f64),
    /// The relay's own, whatever the bare proxy's is.
    RelayAtMost(f64),
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

    /// The table, and whether every goal is met; `bare` says what the yardstick is. Ratios are medians of the ratios of
    /// each round.
    #[expect(clippy::print_stdout, reason = "the table is what was asked for")]
    pub(crate) fn print(&self, bare: &str, goals: &dyn Fn(&str) -> Goal) -> bool {
        println!("{:<34} {:>12} {:>12} {:>12} {:>9}  goal", "median", "direct", bare, "relay", "ratio");
        let mut met = true;
        for figure in &self.order {
            let cell =
                |way| self.of(figure, way).map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
            let ratio = self.ratio(figure);
            let (words, holds) = match (goals(figure), ratio, self.of(figure, "relay")) {
                (Goal::AtMost(most), Some(ratio), _) => (format!("ratio <= {most}"), ratio <= most),
                (Goal::AtLeast(least), Some(ratio), _) => (format!("ratio >= {least}"), ratio >= least),
                (Goal::RelayAtMost(most), _, Some(own)) => (format!("relay <= {most}"), own <= most),
                (Goal::None, ..) => (String::new(), true),
                (Goal::AtMost(_) | Goal::AtLeast(_) | Goal::RelayAtMost(_), ..) => {
                    ("was not measured".to_owned(), false)
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_for_the_ratio_or_for_the_relay_alone() {
        let print = |report: &Report, goal: fn() -> Goal| report.print("bare", &|_| goal());
        let mut report = Report::default();
        report.add("a", "bare", 2.0);
        report.add("a", "relay", 6.0);
        assert!(print(&report, || Goal::AtMost(3.0)) && !print(&report, || Goal::AtMost(2.9)));
        assert!(print(&report, || Goal::AtLeast(3.0)) && !print(&report, || Goal::AtLeast(3.1)));
        assert!(print(&report, || Goal::RelayAtMost(6.0)) && !print(&report, || Goal::RelayAtMost(5.9)));
        report.add("b", "bare", 1.0);
        assert!(print(&report, || Goal::None) && !print(&report, || Goal::AtLeast(0.0)), "b has no ratio");
    }
}
