//! `steady-relay top`: watches a relay that runs.

use steady_relay::cli::Flags;

use super::Failure;

/// Shows it until somebody leaves.
#[cfg(feature = "top")]
pub(crate) fn top(flags: &Flags) -> Result<u8, Failure> {
    use std::sync::Arc;

    use relay_core::config::Secret;
    use steady_relay::clock::SystemClock;
    use steady_relay::running::address;
    use steady_relay::settings::Loaded;
    use steady_relay::top::run::{End, Options, Stopped, run, terminal};
    use steady_relay::words::{lang, top as words};

    use super::status::not_there;
    use super::{block_on, failed, files, load};

    let Loaded { config, .. } = load(flags, &files(flags))?;
    let at = address(&config);
    let token = config.token.as_ref().map(Secret::expose);
    let colours = anstream::AutoStream::choice(&std::io::stdout());
    let options = Options {
        at,
        token: token.map(str::to_owned),
        is_coloured: colours != anstream::ColorChoice::Never,
        clock: Arc::new(SystemClock),
    };
    let watched = async {
        terminal()?;
        run(options).await
    };
    block_on(async {
        match watched.await {
            Ok(End::Left) => Ok(0),
            Ok(End::Interrupted) => Ok(130),
            Err(Stopped::NoTerminal) => Err(failed(2, &words::no_terminal(lang()))),
            Err(Stopped::Dumb) => Err(failed(2, &words::dumb(lang()))),
            Err(Stopped::NotThere(who)) => Err(not_there(who, &at.to_string())),
            Err(Stopped::Terminal(error)) => Err(failed(1, &words::not_drawn(lang(), &error.to_string()))),
        }
    })
}

/// Says that it is not there.
#[cfg(not(feature = "top"))]
pub(crate) fn top(_flags: &Flags) -> Result<u8, Failure> {
    use steady_relay::words::{lang, top as words};
    Err(super::failed(2, &words::not_built(lang())))
}
