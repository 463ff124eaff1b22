//! `master`: runs one simulated server as a process that accepts `redis-server`'s options.

use redis_sim::profile::{Profile, REDIS_7_0};
use redlock_sim::serve::Alone;

use super::arguments::Master;
use super::exit::{Exit, Stop};
use super::say::say;
use super::select::profile;

/// Serves until the process ends.
pub(super) fn master(arguments: &Master) -> Result<Exit, Stop> {
    let mut options = arguments.options.clone();
    let mut which = arguments.profile;
    if let Some(place) = options.iter().position(|option| option == "--profile") {
        if place + 1 == options.len() {
            return Err(Stop::usage("error: `--profile` needs a value"));
        }
        which = options.drain(place..place + 2).nth(1).map(|name| profile(&name)).transpose()?;
    }
    let profile = which.unwrap_or(&REDIS_7_0);
    if options.iter().any(|option| option == "--version" || option == "-v") {
        let Profile { server, version, .. } = profile;
        say(format_args!(
            "redlock-sim {} as {server} server v={version}",
            env!("CARGO_PKG_VERSION")
        ));
        return Ok(Exit::Met);
    }
    let master = Alone::start(&options, profile)
        .map_err(|misuse| Stop::usage(format!("error: {misuse}")))?;
    say(format_args!("master    {}", master.address()));
    master.serve()
}
