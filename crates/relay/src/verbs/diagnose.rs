//! `steady-relay diagnose`: me, my account, or the model?

use std::path::Path;

use steady_relay::cli::Flags;
use steady_relay::diagnose::issue::{Hidden, markdown, write};
use steady_relay::diagnose::judge::judge;
use steady_relay::diagnose::{Options, gather, report};
use steady_relay::settings::Environment as _;
use steady_relay::words::{diagnose as words, lang};

use super::doctor::patient;
use super::{Failure, Process, block_on, failed, lang_of_data, print, print_json, say};

/// Looks, and prints the verdict. A verdict of any kind is what was asked for.
pub(crate) fn diagnose(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let (patient, shown) = patient(flags, options.json);
    let facts = block_on(async { Ok(gather::gather(patient, options.since).await) })?;
    let verdict = judge(lang_of_data(options.json), &facts);
    if let Some(path) = &options.report {
        let hidden = Hidden::found(|name| Process.value(name)?.into_string().ok());
        let text = markdown(&judge(relay_core::Lang::English, &facts), &facts, &shown, &hidden);
        if path == Path::new("-") {
            return print(text.trim_end());
        }
        let file = path.display().to_string();
        write(path, &text)
            .map_err(|error| failed(1, &words::unwritten(lang(), &file, &error.to_string())))?;
        say(&words::written(lang(), &file));
    }
    if options.json {
        print_json(&report::json(&verdict, &facts))
    } else {
        print(&report::text(lang(), &verdict))
    }
}
