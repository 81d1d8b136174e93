//! `steady-relay demo`: a pretend service that keeps running out of capacity, asked by the same client twice at
//! the same time: straight, and through a real relay. No account, and no network but loopback.
//!
//! ```text
//!  client -------------------> service          both services: same seed, same episodes, same start
//!  client ------> relay -----> service          (the service, the client, the scenes: relay-sim)
//! ```
//!
//! Time runs faster than on the wall, for the service, the client and the relay alike. This file plays the
//! scenes; `progress` shows how far they are, `report` what came of them.

mod progress;
mod report;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use relay_core::Profile;
use relay_core::config::{Config, Upstream, UpstreamChoice};
use relay_sim::overload::{Overloaded, Speed};
use relay_sim::scene::{self, Board, Played, Scene, Stage};
use relay_sim::sdk::Sdk;

use self::progress::{Progress, Waiting};
use self::report::{Report, SceneReport, Side};
use crate::app::{Parts, Relay};
use crate::clock::{Clock as _, RatedClock, SystemClock};
use crate::listen::{Place, bind};
use crate::proxy::SystemProxies;
use crate::target::Upstreams;
use crate::words::{demo, lang};
use crate::{terminal, tls};

/// What the demo is told.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// Which service is asked: the same number, the same service, but not the same figures
    ///
    /// It fixes when the service is full, how long each answer takes, and how each try of each call is refused if it
    /// is. When a request arrives is not fixed: sockets, timers and the chance in the relay's waits are real, so the
    /// figures move a little from run to run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fewer calls and faster time: about 8 seconds
    #[arg(long)]
    quick: bool,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
}

/// The pace of a run.
#[derive(Debug, Clone, Copy)]
struct Tempo {
    speed: Speed,
    /// The longest that a scene takes, on the wall.
    scene: Duration,
}

impl Tempo {
    const fn of(options: &Options) -> Self {
        const TEN: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
        const THIRTY: NonZeroU32 = NonZeroU32::new(30).expect("not zero");
        if options.quick {
            Self { speed: Speed(THIRTY), scene: Duration::from_millis(4800) }
        } else {
            Self { speed: Speed(TEN), scene: Duration::from_secs(19) }
        }
    }
}

/// Plays the demo and prints what came of it; the exit code. Ctrl-C ends it at once.
///
/// # Errors
/// Words for the user, where the system gives it no sockets.
pub async fn run(options: &Options) -> Result<u8, String> {
    tokio::select! {
        // First, so that an interrupt is heard from the start.
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            let words = if interrupted.is_ok() { demo::stopped(lang()) } else { demo::deaf(lang()) };
            let _unread = writeln!(io::stderr(), "{words}");
            Ok(130)
        }
        ended = play(options) => match ended {
            Ok(report) => Ok(tell(&report, options.json)),
            Err(error) => Err(demo::cannot_run(lang(), &error.to_string())),
        },
    }
}

/// The report is data, so it goes to standard output.
fn tell(report: &Report, json: bool) -> u8 {
    let told = if json {
        writeln!(io::stdout(), "{}", report.json())
    } else {
        write!(anstream::AutoStream::auto(io::stdout()), "{}", report.text(lang()))
    };
    u8::from(told.is_err() || !report.ok())
}

async fn play(options: &Options) -> io::Result<Report> {
    let tempo = Tempo::of(options);
    let (tls, _notices) = tls::client_config(&[]).map_err(io::Error::other)?;
    let mut progress = Progress::new(terminal::can_rewrite());
    progress.say(&demo::opening(lang(), tempo.speed.0.get()));
    let began = SystemClock.now();
    let mut scenes = Vec::new();
    for scene in scene::all(options.seed, options.quick) {
        // Every scene has episodes of its own.
        let seed = options.seed.wrapping_add(scenes.len() as u64);
        scenes.push(play_scene(scene, seed, tempo, (&tls, &mut progress)).await?);
    }
    Ok(Report {
        seed: options.seed,
        quick: options.quick,
        speed: tempo.speed,
        profile: Profile::interactive(),
        took: SystemClock.now().since(began),
        scenes,
    })
}

/// One scene, on both ways at once.
async fn play_scene(
    scene: Scene,
    seed: u64,
    tempo: Tempo,
    (tls, progress): (&Arc<rustls::ClientConfig>, &mut Progress),
) -> io::Result<SceneReport> {
    let scene = Arc::new(scene);
    let socket = bind(Place::At(SocketAddr::from(([127, 0, 0, 1], 0)))).map_err(io::Error::other)?;
    let waiting = Arc::new(Waiting::default());
    let direct = Arc::new(Overloaded::start(Arc::clone(&scene), tempo.speed, seed).await?);
    let behind = Arc::new(Overloaded::start(Arc::clone(&scene), tempo.speed, seed).await?);
    let config = config(behind.addr())?;
    let front = socket.addresses().first().copied().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let relay = Relay::start(Parts {
        targets: Upstreams::of(&config),
        config,
        tls: Arc::clone(tls),
        clock: Arc::new(RatedClock::new(Arc::new(SystemClock), tempo.speed.0)),
        observers: vec![Arc::clone(&waiting) as _],
        recorder: None,
        sockets: socket.sockets,
        system_proxies: SystemProxies::none(),
        https: None,
    });
    let began = SystemClock.now();
    let stage = |addr, service| Stage {
        scene: Arc::clone(&scene),
        sdk: Sdk { addr, speed: tempo.speed },
        service,
        board: Arc::new(Board::default()),
        within: tempo.scene,
    };
    let without = stage(direct.addr(), Arc::clone(&direct));
    let with = stage(front, behind);
    let boards = (Arc::clone(&without.board), Arc::clone(&with.board));
    let view = progress::View { scene: &scene, without: &boards.0, with: &boards.1, waiting: &waiting };
    let mut both = std::pin::pin!(async { tokio::join!(without.play(tempo.speed), with.play(tempo.speed)) });
    let (without, with) = loop {
        tokio::select! {
            ended = &mut both => break ended,
            () = tokio::time::sleep(progress::EVERY) => progress.show(&view, direct.in_episode()),
        }
    };
    relay.drain(std::future::ready(())).await;
    progress.close(&view, SystemClock.now().since(began));
    Ok(SceneReport::of(&scene, side(&without), side(&with)))
}

fn side(played: &[Played]) -> Side {
    let served: Vec<Duration> = played.iter().filter(|call| call.served).map(|call| call.extra).collect();
    Side {
        served: served.len(),
        unfinished: played.iter().filter(|call| call.unfinished).count(),
        sends: played.iter().map(|call| call.sends).sum(),
        extra: served.iter().sum(),
        longest: served.iter().max().copied().unwrap_or_default(),
    }
}

/// The settings that ship, and the one upstream. Its times are those of a clock that runs faster.
fn config(upstream: SocketAddr) -> io::Result<Config> {
    let url = format!("http://{upstream}").parse().map_err(io::Error::other)?;
    Ok(Config { upstream: Some(UpstreamChoice::Url(Upstream::at(url))), ..Config::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_upstream_is_changed() {
        let config = config(SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        assert_eq!(Config { upstream: None, ..config }, Config::default());
    }
}
