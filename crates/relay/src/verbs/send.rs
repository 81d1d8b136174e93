//! `steady-relay send`: one request through a relay in this process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use relay_core::config::LogFormat;
use relay_core::plain;
use steady_relay::app::Relay;
use steady_relay::cli::Flags;
use steady_relay::clock::SystemClock;
use steady_relay::observe::Observer;
use steady_relay::observe::log::Log;
use steady_relay::send::Options;
use steady_relay::send::exchange::{Door, Written, ask};
use steady_relay::send::outcome::{Came, Watcher};
use steady_relay::send::request::Request;
use steady_relay::settings::Loaded;
use steady_relay::target::Upstream;
use steady_relay::words::{credentials, lang, send, start};

use super::signals::Signals;
use super::{Failure, block_on, failed, files, load, private, say};

/// Sends it; the exit code says what came of it.
pub(crate) fn send(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let Loaded { mut config, .. } = load(flags, &files(flags))?;
    if flags.state_dir.is_none() {
        // It leaves nothing behind, unless it is told to.
        config.state_dir = None;
    }
    if options.json {
        config.log.format = LogFormat::Json;
    }
    // Read before there is a relay: standard input may take its time, and an interrupt ends the program as ever.
    let mut request = Request::of(options, &config).map_err(|why| failed(2, &why))?;
    let output = options.output.as_deref().map(open).transpose()?;
    block_on(async {
        let mut stop = Stop { signals: Signals::new()? };
        let begun = tokio::select! {
            // First, so that an interrupt is heard from the start.
            biased;
            code = stop.told() => return Ok(code),
            begun = Exchange::begin(config, options, request.upstream.take()) => begun?,
        };
        let Exchange { relay, log, .. } = &begun;
        let sent = tokio::select! {
            biased;
            code = stop.told() => Ok(code),
            sent = begun.carry_out(options, request, output) => sent,
        };
        // However it ended: a token that is being issued is good only where it is kept.
        if relay.is_renewing() && !options.quiet && !options.json {
            say(&start::note(lang(), &credentials::ends_after_it(lang())));
        }
        let ended = tokio::select! {
            biased;
            code = stop.told() => Ok(code),
            () = relay.renewals_over() => sent,
        };
        log.close();
        ended
    })
}

/// What ends the program before its time.
struct Stop {
    signals: Signals,
}

impl Stop {
    /// Waits until somebody wants that; with what exit code.
    async fn told(&mut self) -> u8 {
        tokio::select! {
            _interrupted = tokio::signal::ctrl_c() => 130,
            () = self.signals.terminated() => 143,
        }
    }
}

/// What the request goes through.
struct Exchange {
    relay: Relay,
    log: Arc<Log>,
    watcher: Arc<Watcher>,
    door: Door,
}

impl Exchange {
    async fn begin(
        config: relay_core::Config,
        options: &Options,
        upstream: Option<Upstream>,
    ) -> Result<Self, Failure> {
        let log = Log::start(&config.log, Arc::new(SystemClock), !options.quiet)
            .map_err(|error| failed(2, &error))?;
        let log = Arc::new(log);
        let watcher = Arc::new(Watcher::default());
        let observers = vec![Arc::clone(&log) as Arc<dyn Observer>, Arc::clone(&watcher) as _];
        let (relay, door) = private::start(config, upstream, observers).await?;
        log.show_lanes(relay.lanes(0)).map_err(|error| failed(2, &error))?;
        Ok(Self { relay, log, watcher, door })
    }

    /// Sends it, and says what came of it.
    async fn carry_out(
        &self,
        options: &Options,
        request: Request,
        output: Option<File>,
    ) -> Result<u8, Failure> {
        let Self { log, watcher, .. } = self;
        let written = carry(self.door, request, options, output).await;
        let came = match &written {
            Ok((_, Written::Unwanted)) => {
                log.close();
                return Ok(0);
            }
            Ok((status, written)) => {
                let whole = matches!(written, Written::Whole);
                Came { status: Some(*status), whole, end: watcher.end().await }
            }
            Err(_) => Came { end: watcher.end().await, ..Came::default() },
        };
        // What is said of it comes last.
        log.close();
        if options.json {
            say(&plain::json(&came.json().to_string()));
        } else if let Some(words) = came.words(lang()) {
            say(&words);
        }
        if let Ok((_, Written::Failed(error))) = written {
            return Err(failed(1, &send::unwritten(lang(), &error.to_string())));
        }
        Ok(came.exit_code())
    }
}

async fn carry(
    door: Door,
    request: Request,
    options: &Options,
    output: Option<File>,
) -> io::Result<(u16, Written)> {
    let answer = ask(door, request).await?;
    let status = answer.response.status().as_u16();
    let head = if options.include { answer.head() } else { Vec::new() };
    let out: Box<dyn Write + Send> = match output {
        Some(file) => {
            // What is there stays until there is something in its place. What is no file has no length.
            let _no_file = file.set_len(0);
            Box::new(file)
        }
        None => Box::new(io::stdout()),
    };
    Ok((status, answer.write(head, out).await))
}

/// Opened before anything is sent: an answer that is paid for has a place to go.
fn open(path: &Path) -> Result<File, Failure> {
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    open.map_err(|error| failed(2, &send::output(lang(), &path.display().to_string(), &error.to_string())))
}
