//! `master`: one simulated master as a process, in the place of `redis-server`.

use super::arguments::Master;
use super::exit::{Exit, Stop};
use super::lines::say;
use crate::master::profile::REDIS_7_0;
use crate::serve::Alone;

/// Serves until the process ends.
pub(super) fn master(arguments: &Master) -> Result<Exit, Stop> {
    let options = &arguments.options;
    if options.iter().any(|option| option == "--version" || option == "-v") {
        let version = REDIS_7_0.redis_version;
        say(format_args!("redlock-sim master {}, as Redis {version}", env!("CARGO_PKG_VERSION")));
        return Ok(Exit::Met);
    }
    let master = Alone::start(options, &REDIS_7_0)
        .map_err(|misuse| Stop::usage(format!("error: {misuse}")))?;
    say(format_args!("master    {}", master.address()));
    master.serve()
}
