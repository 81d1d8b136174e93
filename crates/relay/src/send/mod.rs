//! `steady-relay send`: one request from the command line, with everything that a relay does for a call.
//!
//! There is no second loop of retries here. A relay is started in this process, on a port of its own and with a key
//! that nobody else has, and asked like any other: [`request`] reads what is to be sent, [`exchange`] asks the relay,
//! [`outcome`] watches what becomes of the call and says how the program ends.

pub mod exchange;
pub mod outcome;
pub mod request;

use std::fmt;
use std::path::PathBuf;

use clap::Args;

/// What is to be sent, and what becomes of the answer.
#[derive(Clone, PartialEq, Eq, Default, Args)]
pub struct Options {
    /// The method, where it is not to be GET without data and POST with some; then the URL
    ///
    /// A URL of http or https is asked as it is. What begins with a slash goes where the relay's own settings would
    /// send it.
    #[arg(value_name = "[METHOD] URL", required = true, num_args = 1..=2)]
    pub target: Vec<String>,
    /// The method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub method: Option<String>,
    /// A header, `name: value`; `@FILE` for a file with one on each line
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// The data to send; `@FILE` for a file, `@-` for standard input
    ///
    /// It is sent as it is. Where no header says what it is, it is taken for JSON.
    #[arg(short = 'd', long = "data", value_name = "DATA")]
    pub data: Option<String>,
    /// A file with the data to send
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub data_file: Option<PathBuf>,
    /// The longest wait between sends, such as 30s or 5min
    #[arg(long, value_name = "TIME")]
    pub patience: Option<String>,
    /// Print the head of the answer, too
    #[arg(short = 'i', long)]
    pub include: bool,
    /// Write the answer to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Say nothing while it waits
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Write what happens to standard error as JSON, an object per line; the last one is the summary
    #[arg(long)]
    pub json: bool,
}

/// Without target, headers and data: each may hold a credential or a prompt.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Options");
        out.field("method", &self.method).field("headers", &self.headers.len());
        out.field("patience", &self.patience).finish_non_exhaustive()
    }
}
