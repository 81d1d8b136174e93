//! The pretend upstream as a program, to try the relay without an account.
//!
//! ```text
//! cargo run -p relay-sim -- upstream --busy 3
//! ```

use std::io::{self, Write as _};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use relay_sim::busy::{self, Busy, Turn};
use relay_sim::{Seen, Upstream};

/// Pretend services for trying Steady Relay.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A model service that is busy before it answers. Responses, Chat Completions or Messages, by path.
    Upstream(UpstreamArgs),
}

#[derive(Debug, Args)]
struct UpstreamArgs {
    /// Port of 127.0.0.1 to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 9901)]
    port: u16,
    /// How often each request is refused before it is answered.
    #[arg(long, default_value_t = 3)]
    busy: usize,
    /// Where a request that streams is refused.
    #[arg(long, value_enum, default_value_t = Refuse::Stream)]
    refuse: Refuse,
    /// Milliseconds between two events of a stream.
    #[arg(long, default_value_t = 30)]
    pace: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Refuse {
    /// Inside a 200 stream.
    Stream,
    /// With a 503 or 529.
    Status,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let Command::Upstream(args) = Cli::parse().command;
    let busy = Busy {
        times: args.busy,
        in_stream: args.refuse == Refuse::Stream,
        pace: Duration::from_millis(args.pace),
    };
    let up = Upstream::start_on(args.port, busy::script(busy, move |seen, turn| tell(seen, turn, args.busy)))
        .await?;
    writeln!(io::stdout(), "{}", up.url())?;
    tokio::signal::ctrl_c().await?;
    up.stop().await;
    Ok(())
}

fn tell(seen: &Seen, turn: Turn, times: usize) {
    let what = match turn {
        Turn::Refused(number) => format!("busy, {number} of {times}"),
        Turn::Served => "served".to_owned(),
        Turn::Aside => "answered aside".to_owned(),
    };
    // A closed terminal is no reason to stop serving.
    drop(writeln!(io::stderr(), "{} {}: {what}", seen.method, seen.path()));
}
