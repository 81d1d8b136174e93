//! The tables: which cells each needs, and how it is printed. Cells are mean wait / 95th percentile / sends per success,
//! in seconds, with the share of requests that were served where that is not all of them.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::clients::Clients;
use crate::gate_policy::Setup;
use crate::jobs::{BASELINES, Contender, FULL_JITTER, Job};
use crate::measure::Cell;
use crate::service::{self, Model, Overload};
use crate::targets::{self, Measured, Target};
use crate::world::Scene;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Services that are short of capacity or limit the rate, with targets.
    Capacity,
    /// Services that refuse now one and now another, with targets.
    Intermittent,
    /// An own server that queues what it cannot run.
    Own,
    /// Outages of a quarter of an hour, and clients with an hour of patience.
    Long,
    /// Every policy on every service.
    Policies,
}

/// Which cells are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Of these clients alone.
    pub clients: Option<Clients>,
    /// Of services whose name contains this.
    pub service: Option<String>,
    /// Which gate.
    pub gate: Setup,
}

/// The name of a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The service.
    pub service: &'static str,
    /// The clients.
    pub clients: Clients,
    /// The policy.
    pub policy: &'static str,
}

/// What was played.
pub type Cells = BTreeMap<Key, Cell>;

/// How a target came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The target.
    pub target: Target,
    /// What was missed.
    pub misses: Vec<String>,
}

impl Verdict {
    /// Whether it fails a check.
    #[must_use]
    pub fn fails(&self) -> bool {
        !self.misses.is_empty() && self.target.known.is_none()
    }

    const fn word(&self) -> &'static str {
        match (self.misses.is_empty(), self.target.known) {
            (true, _) => "yes",
            (false, None) => "NO",
            (false, Some(_)) => "known",
        }
    }
}

const GATE: &str = "gate";
const ORACLE: &str = "oracle";
const MORE: &str = "gate, a fifth more";
const COMPARED: [&str; 5] = ["none", "node-proxy", "codex-retry", "opencodex", "full-jitter"];
const COLUMNS: [(Clients, &str); 5] = [
    (Clients::OneUser, "1 user"),
    (Clients::TenAgents, "10 agents"),
    (Clients::FiveSessions, "5 sessions"),
    (Clients::HundredAtOnce, "100 at once"),
    (Clients::Batch, "4 workers"),
];
/// Own servers: the clients, and how many requests it runs at once.
const OWN: [(&str, Clients, usize); 2] =
    [("own-server-12", Clients::FiveSessions, 12), ("own-server-20", Clients::Mixed, 20)];
const LONG: &str = "U2XL-outages";

impl Table {
    /// What has to be played for it.
    #[must_use]
    pub fn jobs(self, wanted: &Wanted) -> Vec<(Key, Job)> {
        let gate = || (GATE, Contender::Gate(wanted.gate.clone()));
        let compared = || COMPARED.into_iter().filter_map(baseline);
        let all = || BASELINES.iter().map(|(name, policy)| (*name, Contender::Alone(*policy)));
        let full_jitter = ("full-jitter", Contender::Alone(FULL_JITTER));
        let oracle = (ORACLE, Contender::Oracle);
        match self {
            Self::Capacity => {
                let policies: Vec<_> = compared().chain([gate(), oracle]).collect();
                self.targets(wanted).iter().flat_map(|target| cells(target, &policies)).collect()
            }
            Self::Intermittent => {
                let policies = [full_jitter, gate()];
                self.targets(wanted).iter().flat_map(|target| cells(target, &policies)).collect()
            }
            Self::Own => OWN
                .iter()
                .filter(|own| wanted.has(own.0, own.1))
                .flat_map(|own| own_jobs(own, wanted))
                .collect(),
            Self::Long => {
                let groups = [Clients::OneUser, Clients::TenAgents];
                let groups = groups.into_iter().filter(|clients| wanted.has(LONG, *clients));
                let policies: Vec<_> = all().skip(1).chain([gate(), oracle]).collect();
                groups.flat_map(|clients| jobs(LONG, long_scene(clients), &policies)).collect()
            }
            Self::Policies => {
                let policies: Vec<_> = all().chain([gate(), oracle]).collect();
                wanted.scenes().into_iter().flat_map(|(name, scene)| jobs(name, scene, &policies)).collect()
            }
        }
    }

    /// The targets it holds the gate against.
    #[must_use]
    pub fn targets(self, wanted: &Wanted) -> Vec<Target> {
        let mut targets: Vec<Target> = match self {
            Self::Capacity => targets::CAPACITY.to_vec(),
            Self::Intermittent => {
                let groups = |service| COLUMNS.map(|(clients, _)| targets::intermittent(service, clients));
                targets::INTERMITTENT.into_iter().flat_map(groups).flatten().collect()
            }
            Self::Own | Self::Long | Self::Policies => Vec::new(),
        };
        targets.retain(|target| wanted.has(target.service, target.clients));
        targets
    }

    /// How its targets came out, as far as they were played.
    #[must_use]
    pub fn verdicts(self, wanted: &Wanted, cells: &Cells) -> Vec<Verdict> {
        let judge = |target: Target| {
            let cell = |policy| cells.get(&Key { service: target.service, clients: target.clients, policy });
            let (gate, full_jitter) = (cell(GATE)?, cell("full-jitter")?);
            let misses = target.misses(Measured { gate, full_jitter, oracle: cell(ORACLE) });
            Some(Verdict { target, misses })
        };
        self.targets(wanted).into_iter().filter_map(judge).collect()
    }

    /// The table in Markdown.
    #[must_use]
    pub fn show(self, wanted: &Wanted, cells: &Cells) -> String {
        let grid = match self {
            Self::Capacity => self.capacity(wanted, cells),
            Self::Intermittent => self.intermittent(wanted, cells),
            Self::Own => own(cells),
            Self::Long | Self::Policies => policies(cells, self == Self::Long),
        };
        let title = match self {
            Self::Capacity => "Short of capacity: mean wait s / 95th percentile s / sends per success",
            Self::Intermittent => {
                "Intermittent refusals, full jitter -> gate: mean wait s / sends per success"
            }
            Self::Own => "Own server that queues what it cannot run: who waits, in s",
            Self::Long => "Outages of 15 min in the mean, an hour of patience",
            Self::Policies => "Every policy",
        };
        format!("{title}\n\n{grid}")
    }

    fn capacity(self, wanted: &Wanted, cells: &Cells) -> Grid {
        let head = ["service", "clients"].into_iter().chain(COMPARED);
        let mut grid = Grid::new(head.chain([GATE, ORACLE, "target", "met"]));
        let verdicts = self.verdicts(wanted, cells);
        for target in self.targets(wanted) {
            let (service, clients) = (target.service, target.clients);
            let text =
                |policy| cells.get(&Key { service, clients, policy }).map_or_else(|| "-".to_owned(), three);
            let verdict = verdicts.iter().find(|verdict| verdict.target == target).map_or("-", Verdict::word);
            let start = [service.to_owned(), clients.name().to_owned()];
            let figures = COMPARED.into_iter().chain([GATE, ORACLE]).map(text);
            grid.row(start.into_iter().chain(figures).chain([target.to_string(), verdict.to_owned()]));
        }
        grid
    }

    fn intermittent(self, wanted: &Wanted, cells: &Cells) -> Grid {
        let mut grid = Grid::new(["service"].into_iter().chain(COLUMNS.map(|(_, name)| name)));
        let verdicts = self.verdicts(wanted, cells);
        for service in targets::INTERMITTENT {
            let text = |clients| {
                let cell = |policy| cells.get(&Key { service, clients, policy }).map(two);
                let verdict =
                    verdicts.iter().find(|it| it.target.service == service && it.target.clients == clients);
                let word = match verdict.map(Verdict::word) {
                    Some("yes") | None => String::new(),
                    Some(word) => format!(" ({word})"),
                };
                let gate = cell(GATE).unwrap_or_else(|| "-".to_owned());
                cell("full-jitter").map_or_else(|| "-".to_owned(), |full| format!("{full} -> {gate}{word}"))
            };
            let texts = COLUMNS.map(|(clients, _)| text(clients));
            if texts.iter().any(|text| text != "-") {
                grid.row([service.to_owned()].into_iter().chain(texts));
            }
        }
        grid
    }
}

impl Wanted {
    fn has(&self, service: &str, clients: Clients) -> bool {
        self.clients.is_none_or(|wanted| wanted == clients)
            && self.service.as_ref().is_none_or(|part| service.contains(part.as_str()))
    }

    /// Every service and every group but the one that is made for an own server.
    fn scenes(&self) -> Vec<(&'static str, Scene)> {
        let groups = Clients::ALL.into_iter().filter(|clients| *clients != Clients::Mixed);
        let scenes = groups.flat_map(|clients| {
            let scene = move |named: &'static service::Named| {
                named.model(clients).map(|model| (named.name, Scene::new(clients, model)))
            };
            service::ALL.iter().filter_map(scene)
        });
        scenes.filter(|(name, scene)| self.has(name, scene.clients)).collect()
    }
}

fn baseline(name: &'static str) -> Option<(&'static str, Contender)> {
    BASELINES.iter().find(|row| row.0 == name).map(|row| (row.0, Contender::Alone(row.1)))
}

fn jobs(service: &'static str, scene: Scene, policies: &[(&'static str, Contender)]) -> Vec<(Key, Job)> {
    let job = |(policy, contender): &(&'static str, Contender)| {
        (Key { service, clients: scene.clients, policy }, Job { scene, contender: contender.clone() })
    };
    policies.iter().map(job).collect()
}

/// The cells of a target.
fn cells(target: &Target, policies: &[(&'static str, Contender)]) -> Vec<(Key, Job)> {
    let model = service::named(target.service).and_then(|named| named.model(target.clients));
    let scene = |model| jobs(target.service, Scene::new(target.clients, model), policies);
    model.map(scene).unwrap_or_default()
}

fn own_jobs(own: &(&'static str, Clients, usize), wanted: &Wanted) -> Vec<(Key, Job)> {
    let &(name, clients, slots) = own;
    let gate = |most| Contender::Gate(wanted.gate.with_places(most));
    let policies = [(GATE, gate(slots)), (MORE, gate(slots + slots / 5))];
    let policies: Vec<_> = baseline("none").into_iter().chain(policies).collect();
    jobs(name, Scene::new(clients, Model::Queue { slots }), &policies)
}

fn long_scene(clients: Clients) -> Scene {
    let overload = Overload { healthy: 3600.0, overloaded: 900.0, refuses: 1.0, slow: false, prolongs: 0.0 };
    let (until, patience) = (Duration::from_secs(6 * 3600), Duration::from_secs(3600));
    Scene { clients, until, model: Model::Overload(overload), patience, way: Duration::ZERO }
}

fn own(cells: &Cells) -> Grid {
    let head = ["clients", "policy", "light: mean / p95", "heaviest: mean", "all: mean / p95"];
    let mut grid = Grid::new(head);
    for (service, clients, slots) in OWN {
        for (policy, what) in [
            ("none", "passed through".to_owned()),
            (GATE, format!("gate, {slots} stated")),
            (MORE, format!("gate, {} stated", slots + slots / 5)),
        ] {
            let Some(cell) = cells.get(&Key { service, clients, policy }) else { continue };
            grid.row([
                format!("{}, runs {slots}", clients.name()),
                what,
                format!("{:.1} / {:.1}", cell.light, cell.light_p95),
                format!("{:.1}", cell.heavy),
                format!("{:.2} / {:.1}", cell.wait.mean, cell.p95),
            ]);
        }
    }
    grid
}

fn policies(cells: &Cells, long: bool) -> Grid {
    let head = [
        "service",
        "clients",
        "policy",
        "served %",
        "wait",
        "p50",
        "p95",
        "p99",
        "sends",
        "refused/min",
        "peak/60 s",
        "longest/mean",
        "cut",
    ];
    let mut grid = Grid::new(head);
    for (key, cell) in cells
        .iter()
        .filter(|(key, _)| (key.service == LONG) == long && OWN.iter().all(|own| own.0 != key.service))
    {
        grid.row([
            key.service.to_owned(),
            key.clients.name().to_owned(),
            key.policy.to_owned(),
            format!("{:.2}", 100.0 * cell.success.mean),
            format!("{:.2} ±{:.2}", cell.wait.mean, cell.wait.within),
            format!("{:.1}", cell.median),
            format!("{:.1}", cell.p95),
            format!("{:.1}", cell.p99),
            format!("{:.2} ±{:.2}", cell.sends.mean, cell.sends.within),
            format!("{:.2}", cell.refused_a_minute),
            format!("{:.0}", cell.peak),
            format!("{:.1}", cell.longest),
            cell.cut.to_string(),
        ]);
    }
    grid
}

/// Seconds, as precise as is worth reading.
fn short(seconds: f64) -> String {
    if seconds < 9.995 { format!("{seconds:.2}") } else { format!("{seconds:.1}") }
}

fn three(cell: &Cell) -> String {
    let text = format!("{} / {:.1} / {:.2}", short(cell.wait.mean), cell.p95, cell.sends.mean);
    with_success(text, cell)
}

fn two(cell: &Cell) -> String {
    with_success(format!("{} / {:.2}", short(cell.wait.mean), cell.sends.mean), cell)
}

fn with_success(mut text: String, cell: &Cell) -> String {
    let percent = 100.0 * cell.success.mean;
    if percent < 99.95 {
        write!(text, " ({percent:.1} %)").expect("a string takes all");
    }
    text
}

/// Rows in Markdown, padded for the eye.
struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![head.into_iter().map(str::to_owned).collect()] }
    }

    fn row(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let wide = |column| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|text: &String| text.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (text, width) in row.iter().zip(&widths) {
                write!(f, "| {text:<width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                for width in &widths {
                    write!(f, "|{:-<1$}", "", width + 2)?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}
