//! What came of the demo, as a table for people and as JSON for programs.

use std::fmt::Write as _;
use std::time::Duration;

use relay_core::Profile;
use relay_sim::overload::{EPISODE_FOR, SLOTS, Speed};
use relay_sim::scene::Scene;
use relay_sim::sdk;
use serde_json::{Value, json};

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

    fn row(&self) -> String {
        let percent = |side: &Side| format!("{:.0} %", side.served as f64 * 100.0 / self.calls.max(1) as f64);
        let of = |number: Option<f64>, unit: &str| match number {
            Some(number) => format!("{number:.1}{unit}"),
            None => "-".to_owned(),
        };
        let colour = if self.ok() { GREEN } else { RED };
        format!(
            "{:<16}{:>6}{:>11}{colour}{:>8}{PLAIN}{:>10}{:>10}{:>11}{:>7}",
            self.name,
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

/// What is about to happen.
pub(super) fn opening(speed: Speed) -> String {
    format!(
        "A pretend model service that keeps running out of capacity, asked by the same\n\
         client twice at once: without the relay and with it. Time runs {} times faster;\n\
         \"full\" marks an episode in which the service has next to no room.\n",
        speed.0
    )
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
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\n{BOLD}{:>37}{:>21}{:>21}{PLAIN}\n{BOLD}{:<16}{:>6}{:>11}{:>8}{:>10}{:>10}{:>11}{:>7}{PLAIN}\n",
            "served",
            "extra wait",
            "sends per success",
            "scene",
            "calls",
            "without",
            "with",
            "mean",
            "longest",
            "without",
            "with"
        );
        for scene in &self.scenes {
            text.push_str(&scene.row());
            text.push('\n');
        }
        text.push_str(&self.caveats());
        text.push_str(&self.what_was_pretended());
        text.push_str(FOR_REAL);
        text
    }

    /// What the table alone would not say.
    fn caveats(&self) -> String {
        let mut text = String::new();
        let unfinished: usize =
            self.scenes.iter().map(|scene| scene.with.unfinished + scene.without.unfinished).sum();
        if unfinished > 0 {
            text.push_str(&format!(
                "Calls cut off by the end of their scene, counted as not served: {unfinished}\n"
            ));
        }
        for scene in self.scenes.iter().filter(|scene| !scene.ok()) {
            let name = scene.name;
            text.push_str(&format!("{RED}The relay did worse than the client alone: {name}{PLAIN}\n"));
        }
        text
    }

    fn what_was_pretended(&self) -> String {
        let [first, second] = sdk::WAITS.map(|wait| wait.as_secs_f64());
        let sends =
            self.profile.most_sends().map_or_else(String::new, |sends| format!("at most {sends} sends,"));
        let mut text = String::new();
        // A string cannot refuse what is written to it.
        let _written = write!(
            text,
            "{DIM}Extra wait: of the calls served with the relay, from asking to being taken on.\n\n\
             Simulated: a service with {SLOTS} slots, of which other customers take next to all in\n\
             episodes of {} to {} s, and which refuses with 503, with 529, in a 200 stream\n\
             or with an error in a 200 body; and a client with the two retries of the usual\n\
             SDKs, after {first} s and {second} s. Both ways met the same episodes, at the same time.\n\
             Real: the relay and its sockets, with its default profile: {sends}\n\
             and calls that wait in line: few ask, the rest follows. All these times, and\n\
             the table's, went by {} times faster. Other services have other numbers.\n\
             Seed {}; took {:.0} s.\n\
             The same seed is the same service, and not the same figures: sockets, timers\n\
             and the chance in the relay's waits are real.{PLAIN}\n",
            EPISODE_FOR.start(),
            EPISODE_FOR.end(),
            self.speed.0,
            self.seed,
            self.took.as_secs_f64(),
        );
        text
    }
}

const FOR_REAL: &str = "
For real:
  steady-relay run -- codex     Codex, with a relay of its own
  steady-relay run -- claude    Claude Code, likewise
  steady-relay                  for every other client; point it there:
                                OPENAI_BASE_URL=http://127.0.0.1:8787/v1
                                ANTHROPIC_BASE_URL=http://127.0.0.1:8787
";

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

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
        let text = anstream::adapter::strip_str(&report(24).text()).to_string();
        assert_eq!(text, SHOWN);
        assert!(text.lines().all(|line| line.len() <= 79 && line.is_ascii()), "{text}");
        assert!(opening(report(24).speed).lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn a_relay_that_does_harm_is_named() {
        let bad = report(13);
        assert!((report(14).ok(), bad.ok()) == (true, false));
        let text = anstream::adapter::strip_str(&bad.text()).to_string();
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
