//! `steady-relay demo`.

use steady_relay::demo::{self, Options};

use super::{Failure, runtime};

pub(crate) fn demo(options: &Options) -> Result<u8, Failure> {
    runtime()?.block_on(demo::run(options)).map_err(|words| Failure(1, words))
}
