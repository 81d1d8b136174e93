//! `steady-relay demo`.

use steady_relay::demo::{self, Options};

use super::{Failure, block_on};

pub(crate) fn demo(options: &Options) -> Result<u8, Failure> {
    block_on(async { demo::run(options).await.map_err(|words| Failure(1, words)) })
}
