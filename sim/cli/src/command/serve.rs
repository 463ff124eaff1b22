//! `serve`: serves masters on loopback TCP.

use std::collections::BTreeMap;

use lock_judge::scenario::{Case, Property};
use redlock_sim::search::{CaseResult, Observed, PropertyResult};
use redlock_sim::serve::{self, Fleet, Refusal, Setup, Verdict};
use serde_json::json;

use super::arguments::Serve;
use super::exit::{Exit, Stop};
use super::lines;
use super::replay::the_one;
use super::say::{emit, emit_case, say};
use super::select;
use crate::report;

/// Scenario that is served if none is named: masters and a network without faults.
const PLAIN: &str = "schema = 1\nname = \"serve\"\ntitle = \"Masters without faults\"\n\
                     [cluster]\nnetwork = { delay = \"0ms\" }\n\
                     [[client]]\nid = \"nobody\"\nsubject = \"worker\"\n";

/// Serves until asked to end, then judges the run.
pub(super) fn serve(arguments: &Serve) -> Result<Exit, Stop> {
    let case = case(arguments)?;
    check_ports(arguments.base_port, case.scenario.cluster.nodes.len())?;
    let profile = arguments.profile.unwrap_or_else(|| serve::profile(&case.scenario));
    let out = &arguments.out.out;
    let pages = [case.scenario.name.as_str()];
    report::check_writable(out, pages).map_err(|error| Stop::unwritable(out, &error))?;
    let _claim = report::Claim::new(out).map_err(|error| Stop::unwritable(out, &error))?;
    let setup = Setup {
        case,
        seed: arguments.seed,
        base_port: arguments.base_port,
        observer_port: arguments.observer_port.unwrap_or(observer_port(arguments.base_port)),
        profile,
        waits_for_start: arguments.wait_for_start,
        owns_workers: false,
        describe,
        out: out.clone(),
    };
    let which = arguments.which.as_deref().unwrap_or_default();
    let fleet = Fleet::start(&setup).map_err(|refusal| unserved(which, refusal))?;
    fleet
        .end_at_signals()
        .map_err(|error| Stop { exit: Exit::Internal, message: format!("error: {error}") })?;
    tell_begin(&setup, &fleet);
    fleet.wait(arguments.limit.map(|limit| limit.duration()));
    let unknown = fleet.unknown_commands();
    let verdict = fleet.finish();
    describe(&verdict).into_iter().for_each(say);
    unknown.iter().for_each(|it| say(format_args!("note: {it}")));
    let played = core::slice::from_ref(&verdict.played);
    report::write(out, played).map_err(|error| Stop::unwritable(out, &error))?;
    say(format_args!("reports: {}", out.join("index.html").display()));
    let exit = exit(&verdict);
    emit_case(&verdict.played, exit);
    Ok(exit)
}

/// Returns the selected case, or [`PLAIN`] if none is named.
fn case(arguments: &Serve) -> Result<Case, Stop> {
    let mut case = match &arguments.which {
        Some(which) => {
            let overrides = &arguments.settings.overrides;
            let (cases, _) = select::select(core::slice::from_ref(which), overrides)?;
            the_one(which, cases)?.case
        }
        None => {
            let file =
                lock_judge::scenario::File::parse("serve.toml", PLAIN).map_err(Stop::usage)?;
            let cases = file.cases(&arguments.settings.overrides).map_err(Stop::usage)?;
            let mut case = cases.into_iter().next().expect("the file has a base");
            // The client in `PLAIN` only makes the scenario valid. Real clients connect over TCP.
            case.scenario.clients.clear();
            case
        }
    };
    let scenario = &mut case.scenario;
    if let Some(count) = arguments.nodes {
        let names = "ABCDEFGHI".chars().map(String::from);
        let nodes: Vec<String> = names.take(usize::from(count)).collect();
        if arguments.which.is_some() && scenario.cluster.nodes.len() != nodes.len() {
            let message = "error: `--nodes` cannot be combined with a scenario: it has its own number of nodes";
            return Err(Stop::usage(message));
        }
        if arguments.which.is_none() {
            scenario.cluster.nodes = nodes;
        }
    }
    if let Some(resource) = &arguments.resource {
        scenario.lock.resource.clone_from(resource);
    }
    Ok(case)
}

/// Default port of the observer; 0, any free port, if there is none a hundred above the first master's.
const fn observer_port(base_port: u16) -> u16 {
    match base_port.checked_add(100) {
        Some(port) if base_port > 0 => port,
        _ => 0,
    }
}

/// Checks that there is a port for each master.
fn check_ports(base_port: u16, masters: usize) -> Result<(), Stop> {
    let most = 65_536 - masters;
    if usize::from(base_port) <= most {
        return Ok(());
    }
    let message = format!("error: there are no ports for {masters} masters from {base_port} on");
    Err(Stop::usage(format!("{message}\n  = help: `--base-port` is at most {most} then")))
}

/// Names the case that cannot be served, and what to do instead. `which` selects the case.
fn unserved(which: &str, refusal: Refusal) -> Stop {
    let Refusal::Unsupported(why) = refusal else { return refused(refusal) };
    let help = format!("`redlock-sim run {which}` plays it in simulated time");
    let message = format!("error: `{which}` cannot be served: {why}\n  = help: {help}");
    Stop { exit: Exit::Inconclusive, message }
}

pub(super) fn refused(refusal: Refusal) -> Stop {
    let (exit, help) = match refusal {
        Refusal::Unsupported(_) => (Exit::Inconclusive, ""),
        Refusal::Port { .. } => {
            (Exit::Usage, "\n  = help: `--base-port` chooses other ports; 0 means any free ports")
        }
        Refusal::ObserverPort { .. } => (
            Exit::Usage,
            "\n  = help: `--observer-port` chooses another port; 0 means any free port",
        ),
        Refusal::Runtime(_) => (Exit::Internal, ""),
    };
    Stop { exit, message: format!("error: {refusal}{help}") }
}

fn tell_begin(setup: &Setup, fleet: &Fleet) {
    let scenario = &setup.case.scenario;
    let masters = scenario.cluster.nodes.iter().zip(fleet.addresses());
    emit("serving", || {
        json!({
            "case": setup.case.full_name(),
            "masters": masters.map(|(name, it)| (name.clone(), it.to_string())).collect::<BTreeMap<_, _>>(),
            "observer": fleet.observer().to_string(),
            "resource": scenario.lock.resource,
        })
    });
    say(format_args!("serving   {}", setup.case.full_name()));
    for (name, address) in scenario.cluster.nodes.iter().zip(fleet.addresses()) {
        say(format_args!("master    {name}  {address}"));
    }
    say(format_args!("observer  {}", fleet.observer()));
    say(format_args!("resource  {}", scenario.lock.resource));
    let begins = if setup.waits_for_start {
        "when the observer receives START"
    } else {
        "with the first command that could change the resource’s key, or START"
    };
    say(format_args!("time 0    {begins}"));
}

/// Formats the verdicts of the properties that can be judged from outside. Names the others, and
/// those that should have been put to the test.
fn judged(result: &CaseResult) -> String {
    let mut judged = result.clone();
    let (seen, unseen): (Vec<_>, Vec<_>) =
        judged.properties.into_iter().partition(|it| it.observed != Observed::Unjudged);
    let unseen: Vec<&str> = unseen.iter().map(|it| it.property.name()).collect();
    judged.properties = seen;
    let mut text = lines::verdicts(&judged);
    text += &format!("\n  not judged from outside: {}", unseen.join(", "));
    if let Some(untested) = serve::untested_in_words(result) {
        text += &format!("\n  inconclusive: {untested}");
    }
    text
}

/// Returns true if two leases that were both held have already been told, and `found` says that they
/// were both used.
fn is_told(result: &CaseResult, found: &PropertyResult) -> bool {
    let pair = |it: &PropertyResult| it.shown.map(|(_, it)| (it.first, it.second));
    let mut told = result.properties.iter().filter(|it| it.property == Property::MutualExclusion);
    found.property == Property::ExclusiveSection && told.any(|it| pair(it) == pair(found))
}

/// Formats the verdict as lines.
pub(super) fn describe(verdict: &Verdict) -> Vec<String> {
    let result = &verdict.played.result;
    let mut text = if verdict.is_cut_short {
        String::from("not judged: too many events for a history")
    } else if verdict.is_empty() {
        String::from("not judged: no worker asked for the lock")
    } else {
        judged(result)
    };
    if !verdict.is_cut_short {
        for found in &result.properties {
            let Some((seed, violation)) = &found.shown else { continue };
            let Some((_, events)) = verdict.played.kept.first() else { continue };
            if is_told(result, found) {
                continue;
            }
            let history = verdict.history.display().to_string();
            let selector = &verdict.played.selector;
            let again =
                report::replay_command(&result.case, selector, result.engine, *seed, &history);
            let told = (events.as_slice(), again.as_str());
            let block = lines::block(result, found.property, (*seed, violation), told);
            text += &format!("\n\n{}", block.trim_end());
        }
    }
    text.lines().map(String::from).collect()
}

fn exit(verdict: &Verdict) -> Exit {
    if verdict.is_cut_short || verdict.is_empty() {
        return Exit::Inconclusive;
    }
    Exit::of(&verdict.played.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_observer_has_another_port_than_the_masters() {
        assert_eq!(
            [0, 17_000, 65_435, 65_436, 65_535].map(observer_port),
            [0, 17_100, 65_535, 0, 0]
        );
    }

    #[test]
    fn a_case_that_cannot_be_served_is_named() {
        let why = redlock_sim::engine::Unsupported { engine: "serve", what: String::from("this") };
        let stop = unserved("ideal-lease-service", Refusal::Unsupported(why));
        assert_eq!(stop.exit, Exit::Inconclusive);
        for told in ["error: `ideal-lease-service` cannot be served: ", "redlock-sim run ideal"] {
            assert!(stop.message.contains(told), "{}", stop.message);
        }
    }

    #[test]
    fn a_port_in_use_is_answered_with_the_option() {
        let address = ([127, 0, 0, 1], 7_000).into();
        let error = std::io::ErrorKind::AddrInUse.into();
        let stop = refused(Refusal::Port { address, error });
        assert_eq!(stop.exit, Exit::Usage);
        assert!(
            stop.message.contains("help: `--base-port` chooses other ports"),
            "{}",
            stop.message
        );
        let error = std::io::ErrorKind::AddrInUse.into();
        let stop = refused(Refusal::ObserverPort { address, error });
        assert_eq!(stop.exit, Exit::Usage);
        assert!(
            stop.message.contains("help: `--observer-port` chooses another port"),
            "{}",
            stop.message
        );
    }

    #[test]
    fn every_master_has_a_port() {
        assert!(check_ports(65_535, 1).is_ok() && check_ports(65_531, 5).is_ok());
        let stop = check_ports(65_532, 5).expect_err("four ports are left");
        assert!(stop.message.contains("`--base-port` is at most 65531"), "{}", stop.message);
    }
}
