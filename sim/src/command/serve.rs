//! `serve`: masters on loopback TCP.

use super::arguments::Serve;
use super::exit::{Exit, Stop};
use super::lines::say;
use crate::master::profile::{PROFILES, Profile};
use crate::serve::{Fleet, Setup};

/// Serves until it is told to end.
pub(super) fn serve(arguments: &Serve) -> Result<Exit, Stop> {
    let profile = Profile::named(&arguments.profile).ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        Stop::usage(format!(
            "error: there is no profile `{}`\n  = help: there are {}",
            arguments.profile,
            known.join(", ")
        ))
    })?;
    let setup =
        Setup { nodes: usize::from(arguments.nodes), base_port: arguments.base_port, profile };
    let fleet = Fleet::start(&setup).map_err(Stop::usage)?;
    for (place, port) in fleet.ports().iter().enumerate() {
        say(format_args!("node {place}  127.0.0.1:{port}"));
    }
    loop {
        std::thread::park();
    }
}
