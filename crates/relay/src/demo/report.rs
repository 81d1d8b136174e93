//! What came of the demo, as a table for people and as JSON for programs.

use std::time::Duration;

use relay_core::{Lang, Profile};
use relay_sim::overload::{EPISODE_FOR, SLOTS, Speed};
use relay_sim::scene::Scene;
use relay_sim::sdk;
use serde_json::{Value, json};

use crate::terminal::{padded, padded_left};
use crate::words::demo;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// How one scene went on one way. Times are the service's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    /// Calls whose client got a whole answer.
    pub(super) served: usize,
    /// Calls that the end of the scene cut off.
    pub(super) unfinished: usize,
    /// Requests that the service got.
    pub(super) sends: u32,
    /// What the served calls waited for a slot, all together.
    pub(super) extra: Duration,
    /// What the unluckiest of them waited.
    pub(super) longest: Duration,
}

impl Side {
    fn mean(&self) -> Option<f64> {
        (self.served > 0).then(|| self.extra.as_secs_f64() / self.served as f64)
    }

    fn sends_per_success(&self) -> Option<f64> {
        (self.served > 0).then(|| f64::from(self.sends) / self.served as f64)
    }

    fn json(&self, calls: usize) -> Value {
        json!({
            "served": self.served,
            "share": rounded(self.served as f64 / calls.max(1) as f64),
            "unfinished": self.unfinished,
            "sends": self.sends,
            "sends_per_success": self.sends_per_success().map(rounded),
            "extra_wait_mean_s": self.mean().map(rounded),
            "extra_wait_longest_s": rounded(self.longest.as_secs_f64()),
        })
    }
}

/// One scene on both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SceneReport {
    name: &'static str,
    id: &'static str,
    calls: usize,
    without: Side,
    with: Side,
}

impl SceneReport {
    pub(super) const fn of(scene: &Scene, without: Side, with: Side) -> Self {
        Self { name: scene.name, id: scene.id, calls: scene.asks.len(), without, with }
    }

    const fn ok(&self) -> bool {
        self.with.served >= self.without.served
    }

    fn name(&self, lang: Lang) -> String {
        demo::scene(lang, self.id, self.name)
    }

    fn row(&self, lang: Lang) -> String {
        let percent = |side: &Side| format!("{:.0} %", side.served as f64 * 100.0 / self.calls.max(1) as f64);
        let of = |number: Option<f64>, unit: &str| match number {
            Some(number) => format!("{number:.1}{unit}"),
            None => "-".to_owned(),
        };
        let colour = if self.ok() { GREEN } else { RED };
        format!(
            "{}{:>6}{:>11}{colour}{:>8}{PLAIN}{:>10}{:>10}{:>11}{:>7}",
            padded(&self.name(lang), 16),
            self.calls,
            percent(&self.without),
            percent(&self.with),
            of(self.with.mean(), " s"),
            of((self.with.served > 0).then_some(self.with.longest.as_secs_f64()), " s"),
            of(self.without.sends_per_success(), ""),
            of(self.with.sends_per_success(), ""),
        )
    }
}

/// The whole run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    /// Which episodes there were.
    pub(super) seed: u64,
    /// Whether the run was short.
    pub(super) quick: bool,
    /// How fast time ran.
    pub(super) speed: Speed,
    /// The relay's profile, as it ships.
    pub(super) profile: Profile,
    /// How long it took, on the wall.
    pub(super) took: Duration,
    /// The scenes.
    pub(super) scenes: Vec<SceneReport>,
}

impl Report {
    /// Whether the relay did no harm.
    pub(super) fn ok(&self) -> bool {
        self.scenes.iter().all(SceneReport::ok)
    }

    /// For programs: one object.
    pub(super) fn json(&self) -> Value {
        let seconds = |time: &Duration| rounded(time.as_secs_f64());
        let scenes = self.scenes.iter().map(|scene| {
            json!({
                "scene": scene.id,
                "calls": scene.calls,
                "without": scene.without.json(scene.calls),
                "with": scene.with.json(scene.calls),
            })
        });
        json!({
            "v": 1,
            "seed": self.seed,
            "quick": self.quick,
            "time_factor": self.speed.0.get(),
            "took_s": seconds(&self.took),
            "service": {"slots": SLOTS, "episode_s": [EPISODE_FOR.start(), EPISODE_FOR.end()]},
            "client": {"resend_waits_s": sdk::WAITS.iter().map(seconds).collect::<Vec<_>>()},
            "relay": {
                "profile": "interactive",
                "sends": self.profile.most_sends(),
                "patience_s": seconds(&self.profile.patience),
            },
            "scenes": scenes.collect::<Vec<_>>(),
            "ok": self.ok(),
        })
    }

    /// For people.
    pub(super) fn text(&self, lang: Lang) -> String {
        let mut text = heads(lang);
        for scene in &self.scenes {
            text.push_str(&scene.row(lang));
            text.push('\n');
        }
        text.push_str(&self.caveats(lang));
        text.push_str(&self.what_was_pretended(lang));
        text.push_str(&demo::for_real(lang));
        text
    }

    /// What the table alone would not say.
    fn caveats(&self, lang: Lang) -> String {
        let mut text = String::new();
        let unfinished: usize =
            self.scenes.iter().map(|scene| scene.with.unfinished + scene.without.unfinished).sum();
        if unfinished > 0 {
            text.push_str(&format!("{}\n", demo::unfinished(lang, unfinished)));
        }
        for scene in self.scenes.iter().filter(|scene| !scene.ok()) {
            text.push_str(&format!("{RED}{}{PLAIN}\n", demo::did_worse(lang, &scene.name(lang))));
        }
        text
    }

    fn what_was_pretended(&self, lang: Lang) -> String {
        let [first, second] = sdk::WAITS.map(|wait| wait.as_secs_f64());
        let episodes = demo::episodes(lang, *EPISODE_FOR.start(), *EPISODE_FOR.end());
        let sends = self.profile.most_sends().map_or_else(String::new, |sends| demo::at_most(lang, sends));
        format!(
            "{DIM}{}\n\n{}\n{}\n{}{PLAIN}\n",
            demo::extra_wait(lang),
            demo::simulated(lang, SLOTS, &episodes, &demo::retries(lang, first, second)),
            demo::real(lang, &sends, self.speed.0.get()),
            demo::seed(lang, self.seed, &format!("{:.0}", self.took.as_secs_f64())),
        )
    }
}

/// The two lines above the table.
fn heads(lang: Lang) -> String {
    let heads = demo::heads(lang);
    let mut heads = heads.split('|');
    let mut right = |columns| padded_left(heads.next().unwrap_or_default(), columns);
    let over = [37, 21, 21].map(&mut right).concat();
    let scene = right(0);
    let calls = right(6);
    let (without, with) = (right(0), right(0));
    let (mean, longest) = (right(10), right(10));
    format!(
        "\n{BOLD}{over}{PLAIN}\n{BOLD}{}{calls}{}{}{mean}{longest}{}{}{PLAIN}\n",
        padded(&scene, 16),
        padded_left(&without, 11),
        padded_left(&with, 8),
        padded_left(&without, 11),
        padded_left(&with, 7),
    )
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::terminal::width;

    const fn side(served: usize, sends: u32, extra: u64, longest: u64) -> Side {
        Side {
            served,
            unfinished: 0,
            sends,
            extra: Duration::from_secs(extra),
            longest: Duration::from_secs(longest),
        }
    }

    fn report(with_of_the_last: usize) -> Report {
        let scene = |name, id, calls, without, with| SceneReport { name, id, calls, without, with };
        Report {
            seed: u64::MAX,
            quick: false,
            speed: Speed(NonZeroU32::new(10).unwrap()),
            profile: Profile::interactive(),
            took: Duration::from_millis(31_760),
            scenes: vec![
                scene("single dialogue", "dialogue", 16, side(0, 48, 0, 0), side(16, 20, 37, 21)),
                scene("batch of 100", "batch", 100, side(55, 165, 9, 1), side(97, 143, 369, 1065)),
                scene("long streams", "streams", 24, side(14, 40, 9, 1), side(with_of_the_last, 42, 46, 9)),
            ],
        }
    }

    const SHOWN: &str = "
                               served           extra wait    sends per success
scene            calls    without    with      mean   longest    without   with
single dialogue     16        0 %   100 %     2.3 s    21.0 s          -    1.2
batch of 100       100       55 %    97 %     3.8 s  1065.0 s        3.0    1.5
long streams        24       58 %   100 %     1.9 s     9.0 s        2.9    1.8
Extra wait: of the calls served with the relay, from asking to being taken on.

Simulated: a service with 8 slots, of which other customers take next to all in
episodes of 4 to 16 s, and which refuses with 503, with 529, in a 200 stream
or with an error in a 200 body; and a client with the two retries of the usual
SDKs, after 0.5 s and 1 s. Both ways met the same episodes, at the same time.
Real: the relay and its sockets, with its default profile: at most 40 sends,
and calls that wait in line: few ask, the rest follows. All these times, and
the table's, went by 10 times faster. Other services have other numbers.
Seed 18446744073709551615; took 32 s.
The same seed is the same service, and not the same figures: sockets, timers
and the chance in the relay's waits are real.

For real:
  steady-relay run -- codex     Codex, with a relay of its own
  steady-relay run -- claude    Claude Code, likewise
  steady-relay                  for every other client; point it there:
                                OPENAI_BASE_URL=http://127.0.0.1:8787/v1
                                ANTHROPIC_BASE_URL=http://127.0.0.1:8787
";

    #[test]
    fn the_table_says_it_all_within_80_columns() {
        let text = anstream::adapter::strip_str(&report(24).text(Lang::English)).to_string();
        assert_eq!(text, SHOWN);
        assert!(text.lines().all(|line| line.len() <= 79 && line.is_ascii()), "{text}");
        assert!(demo::opening(Lang::English, 10).lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn the_chinese_table_stands_in_line_too() {
        let text = anstream::adapter::strip_str(&report(24).text(Lang::Chinese)).to_string();
        insta::assert_snapshot!(text);
        let widest = |text: &str| text.lines().map(width).max();
        assert!(widest(&text) <= Some(79) && widest(&demo::opening(Lang::Chinese, 10)) <= Some(80));
        let rows: Vec<_> = text.lines().skip(2).take(4).map(width).collect();
        assert_eq!(rows, [79; 4]);
    }

    #[test]
    fn a_relay_that_does_harm_is_named() {
        let bad = report(13);
        assert!((report(14).ok(), bad.ok()) == (true, false));
        let text = anstream::adapter::strip_str(&bad.text(Lang::English)).to_string();
        assert!(text.contains("\nThe relay did worse than the client alone: long streams\n"), "{text}");
        assert_eq!(bad.json()["ok"], false);
    }

    #[test]
    fn the_json_has_a_version_and_every_number_of_the_table() {
        let json = report(24).json();
        assert_eq!(
            (&json["v"], &json["seed"], &json["time_factor"]),
            (&1.into(), &u64::MAX.into(), &10.into())
        );
        assert_eq!(json["relay"], json!({"profile": "interactive", "sends": 40, "patience_s": 120.0}));
        assert_eq!(
            json["scenes"][0]["without"],
            json!({
                "served": 0, "share": 0.0, "unfinished": 0, "sends": 48, "sends_per_success": null,
                "extra_wait_mean_s": null, "extra_wait_longest_s": 0.0,
            })
        );
        assert_eq!(json["scenes"][1]["with"]["sends_per_success"], 1.47);
    }
}
