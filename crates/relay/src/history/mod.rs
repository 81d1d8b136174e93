//! The history of calls: what events tell of each is put together to a [`record::CallRecord`], on a thread of its own,
//! which keeps the last ones at hand for the dashboard and writes all of them to a file.
//!
//! ```text
//!  events --> queue (bounded) --> thread: assemble --> recent (memory) --> dashboard, top
//!                                                  \-> store (SQLite)  --> why, stats, replay
//! ```
//!
//! A record holds labels, numbers and names of ours: no header, no body, no words of a service, by the types of
//! [`relay_core::event`].

pub(crate) mod assemble;
pub mod fate;
#[cfg(feature = "history")]
mod file;
pub mod name;
pub mod place;
mod point;
pub mod recent;
pub mod record;
mod recorder;
mod single;
#[cfg(feature = "history")]
pub mod store;
mod writer;

#[cfg(feature = "otlp")]
pub(crate) use assemble::Assembler;
#[cfg(feature = "history")]
pub use file::File;
pub use name::Name;
pub use point::Point;
pub use recorder::Recorder;
pub(crate) use single::Single;
pub use writer::Writer;

use std::sync::Arc;

use relay_core::config::Config;

use crate::clock::Clock;

/// Begins to record the calls of a relay of this kind as the settings say; `say` tells what a person should know of the
/// file. Where there is none for whatever reason, the last calls are kept in memory all the same.
///
/// # Errors
/// Where the system gives no thread for it.
pub fn start(
    config: &Config,
    kind: &str,
    clock: Arc<dyn Clock>,
    say: impl Fn(String) + Send + 'static,
) -> std::io::Result<Arc<Recorder>> {
    let writer = writer(config, kind, &clock, say);
    Recorder::start(writer).map(Arc::new)
}

/// The calls in the file that were accepted before this moment, the newest first.
///
/// # Errors
/// Where there is no file, or it cannot be read; in words for people.
#[cfg(feature = "history")]
pub async fn before(config: &Config, opened: u64, most: usize) -> Result<Vec<record::CallRecord>, String> {
    let Some(path) = config.history_file() else { return Ok(Vec::new()) };
    let read = move || store::Reader::open(&path)?.before(opened, most);
    match tokio::task::spawn_blocking(read).await {
        Ok(found) => found.map_err(|why| why.to_string()),
        Err(stopped) => Err(stopped.to_string()),
    }
}

/// Without a history there are none.
///
/// # Errors
/// None.
#[cfg(not(feature = "history"))]
pub fn before(
    _config: &Config,
    _opened: u64,
    _most: usize,
) -> std::future::Ready<Result<Vec<record::CallRecord>, String>> {
    std::future::ready(Ok(Vec::new()))
}

/// Shows each call in the file that was accepted at this moment or later; `None`: there is no file.
#[cfg(feature = "history")]
pub(crate) fn points(config: &Config, from: u64, see: impl FnMut(Point)) -> Option<Result<(), String>> {
    match store::Reader::open(&config.history_file()?) {
        Err(store::StoreError::Missing(_)) => None,
        Err(why) => Some(Err(why.to_string())),
        Ok(reader) => Some(reader.points(from, see).map_err(|why| why.to_string())),
    }
}

/// Without a history there is no file.
#[cfg(not(feature = "history"))]
pub(crate) fn points(_config: &Config, _from: u64, _see: impl FnMut(Point)) -> Option<Result<(), String>> {
    None
}

#[cfg(feature = "history")]
fn writer(
    config: &Config,
    kind: &str,
    clock: &Arc<dyn Clock>,
    say: impl Fn(String) + Send + 'static,
) -> Writer {
    let Some(path) = config.history_file() else { return Writer::default() };
    let run = store::Run {
        kind: kind.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
    };
    let bounds = store::Bounds { age: config.history.max_age, size: config.history.max_size };
    Writer::to(File::new(path, run, bounds, Arc::clone(clock), Box::new(say)))
}

#[cfg(not(feature = "history"))]
fn writer(
    _config: &Config,
    _kind: &str,
    _clock: &Arc<dyn Clock>,
    _say: impl Fn(String) + Send + 'static,
) -> Writer {
    Writer::default()
}

#[cfg(test)]
pub(crate) mod tests;
