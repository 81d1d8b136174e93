//! Measures the relay beside a direct connection and a bare hyper reverse proxy, interleaved in one run, so that
//! what is compared was measured on the same machine in the same minute. `cargo xtask bench` builds and starts it.
//!
//! ```text
//! relay-bench origin           a service that answers at once, streams, and sends in bulk
//! relay-bench bare URL         a reverse proxy of hyper's own client and server, and nothing else
//! relay-bench tunnel URL       the yardstick for WebSocket: carries bytes, and knows nothing of them
//! relay-bench run RELAY        starts a service, the proxy and the relay, measures, prints a table
//! relay-bench ws RELAY         the same over WebSocket, with the tunnel in place of the proxy
//! relay-bench instructions RELAY  starts them under valgrind, counts instructions, prints a table
//! relay-bench gate             measures the capacity gate alone, with many calls in it
//! relay-bench crowd RELAY      thirty agents at a service that is short of capacity, with the gate and without
//! relay-bench chaos RELAY      fifty clients at a pool of services that misbehave in every way (feature `chaos`)
//! relay-bench subscribers RELAY  the relay with all that can be told, beside one that tells nothing
//! relay-bench load URL SECONDS asks a relay that runs already, for a profiler to look at
//! ```

mod bare;
#[cfg(feature = "chaos")]
mod chaos;
mod crowd;
mod gate;
mod instructions;
mod load;
mod origin;
mod process;
mod report;
mod scenes;
mod subscribers;
mod websocket;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words.as_slice() {
        ["origin"] => runtime.block_on(origin::serve()),
        ["bare", upstream] => runtime.block_on(bare::serve(upstream)),
        ["tunnel", upstream] => runtime.block_on(bare::tunnel(upstream)),
        ["ws", relay, rest @ ..] => runtime.block_on(websocket::run(relay, rest)),
        ["run", relay, rest @ ..] => runtime.block_on(scenes::run(relay, rest)),
        ["instructions", relay] => runtime.block_on(instructions::run(relay)),
        ["gate"] => gate::run(),
        ["crowd", relay, rest @ ..] => runtime.block_on(crowd::run(relay, rest)),
        #[cfg(feature = "chaos")]
        ["chaos", relay, rest @ ..] => runtime.block_on(chaos::run(relay, rest)),
        ["subscribers", relay, rest @ ..] => runtime.block_on(subscribers::run(relay, rest)),
        ["load", url, seconds] => runtime.block_on(load(url, seconds.parse()?)),
        _ => bail!(
            "usage: relay-bench origin | bare URL | tunnel URL | run RELAY [--rounds N] [--quick] | \
             ws RELAY [--rounds N] [--quick] | \
             instructions RELAY | gate | crowd RELAY | chaos RELAY | subscribers RELAY [--otlp] | \
             load URL SECONDS"
        ),
    }
}

/// Asks for some seconds and says how often.
#[expect(clippy::print_stdout, reason = "the count is what was asked for")]
async fn load(url: &str, seconds: u64) -> Result<()> {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let (count, _) = load::ask_for(address, 16, std::time::Duration::from_secs(seconds)).await?;
    println!("{count} requests");
    Ok(())
}
