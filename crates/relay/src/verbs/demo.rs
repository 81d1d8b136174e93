//! `steady-relay demo`.

use steady_relay::cli::Flags;
use steady_relay::demo::{self, Options};

use super::{Failure, runtime};

pub(crate) fn demo(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    // A port, an upstream or a profile would go unheard.
    if *flags != Flags::default() {
        return Err(Failure(2, "error: the demo takes none of the relay's own flags".to_owned()));
    }
    runtime()?.block_on(demo::run(options)).map_err(|words| Failure(1, words))
}
