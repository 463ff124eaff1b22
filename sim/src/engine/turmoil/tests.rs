use std::io::ErrorKind;
use std::task::Poll;

use lock_judge::history::{
    AttemptId, ClientId, CommandId, Event, EventKind, NodeId, OpKind, Settlement,
};
use lock_judge::ids::{ConnectionId, ServerId};
use lock_judge::oracle::{Blame, Judgement, Violation};
use lock_judge::scenario::{Property, Span};
use redlock_client::scripts::RELEASE;

use super::shared::{Readable, Shared, State};
use super::*;
use crate::subject::{CommandKind, Request, token_of};

/// Returns the case `slug` of the scenario `name`; an empty `slug` means the base case.
fn case(name: &str, slug: &str) -> Case {
    let files = crate::library::embedded().unwrap();
    let file = files.iter().find(|file| file.scenario().name == name).unwrap();
    let cases = file.cases(&[]).unwrap();
    cases.into_iter().find(|case| case.slug.as_deref().unwrap_or("") == slug).unwrap()
}

fn play(case: &Case) -> (Outcome, Vec<Event>) {
    let mut kept = Vec::new();
    let outcome = run(case, 0, Some(&mut kept)).unwrap();
    (outcome, kept)
}

fn violation(outcome: &Outcome, property: Property) -> Violation {
    match outcome.verdicts.of(property) {
        Judgement::Violated(violation) => violation,
        other => panic!("{}: {other:?}", property.name()),
    }
}

#[test]
fn two_clients_take_turns() {
    let (outcome, history) = play(&case("canonical", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    assert_eq!(outcome.verdicts.of(Property::ExclusiveSection), Judgement::Holds);
    assert_eq!(outcome.verdicts.of(Property::SoundGrant), Judgement::Holds);
    assert_eq!(outcome.counters.granted, 2);
    assert!(outcome.counters.contended > 0, "the second client was refused first");
    assert!(history.is_sorted_by_key(|event| event.at_ns));
    let applied = |event: &&Event| matches!(event.kind, EventKind::WriteApplied { .. });
    assert_eq!(history.iter().filter(applied).count(), 2);
}

/// Catalogue K1.
#[test]
fn a_pause_after_the_check_lets_two_into_the_section() {
    let (outcome, _) = play(&case("pause-after-the-check", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let overlap = violation(&outcome, Property::ExclusiveSection);
    assert!(overlap.blamed.iter().eq([Blame::Pause]), "{overlap:?}");
}

/// Catalogue K3: a false promise of durability breaks exclusion; the default, the quarantine, needs
/// no promise.
#[test]
fn failover_breaks_a_false_promise_and_not_the_quarantine() {
    let (outcome, _) = play(&case("replica-within-redlock", ""));
    let overlap = violation(&outcome, Property::MutualExclusion);
    let node = lock_judge::history::HostId(2);
    assert!(overlap.blamed.iter().eq([Blame::Amnesia(node)]), "{overlap:?}");
    let (outcome, history) = play(&case("restart-without-persistence", "quarantine"));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let from = history.iter().find_map(|event| match event.kind {
        EventKind::Eligible { client: ClientId(1), node: NodeId(2), from_local_ns } => {
            Some(from_local_ns)
        }
        _ => None,
    });
    let boot_ns = crate::world::BOOT_AT_START_NS;
    assert!(from > Some(boot_ns + 11_000_000_000), "one TTL after the restart: {from:?}");
}

#[test]
fn what_an_open_connection_hides_is_found_out() {
    for (name, slug) in [
        ("restart-behind-a-proxy", ""),
        ("demoted-on-a-live-connection", ""),
        ("demoted-on-a-live-connection", "filled-again-by-its-own-former-replica"),
    ] {
        let (outcome, history) = play(&case(name, slug));
        assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds, "{name}");
        let quarantined = |event: &Event| {
            let boot_ns = crate::world::BOOT_AT_START_NS;
            matches!(event.kind, EventKind::Eligible { client: ClientId(1), node: NodeId(2), from_local_ns }
                if from_local_ns != u64::MAX && from_local_ns > boot_ns + 11_000_000_000)
        };
        assert!(history.iter().any(quarantined), "{name} {slug}");
    }
}

#[test]
fn nobody_waits_where_nothing_was_lost() {
    for slug in [
        "",
        "another-database-is-emptied-while-nodes-are-asked",
        "two-other-databases-change-places",
        "durable-masters-restart-behind-a-proxy",
    ] {
        let (_, history) = play(&case("nothing-was-lost", slug));
        let granted = history.iter().find(|event| {
            matches!(event.kind, EventKind::GrantDecided { attempt, .. } if attempt.client == ClientId(1))
        });
        assert!(granted.is_some_and(|event| event.at_ns < 3_020_000_000), "{slug}");
    }
}

/// Catalogue K5.
#[test]
fn a_pause_while_the_replies_are_in_flight_is_refused_by_step_3() {
    let (outcome, history) = play(&case("pause-in-flight", ""));
    assert_eq!(outcome.verdicts.of(Property::MutualExclusion), Judgement::Holds);
    let settled = history.iter().find_map(|event| match event.kind {
        EventKind::AttemptSettled { attempt, outcome } if attempt.client == ClientId(0) => {
            Some((event.at_ns, outcome))
        }
        _ => None,
    });
    assert_eq!(settled, Some((12_000_000_000, Settlement::TooSlow)), "when the pause is over");
}

#[test]
fn a_seed_is_a_history() {
    let case = case("canonical", "");
    let hash = |seed| run(&case, seed, None).unwrap().hash;
    assert_eq!(hash(0), hash(0));
    assert_ne!(hash(0), hash(1));
}

#[test]
fn what_cannot_be_played_is_named_in_the_words_of_the_scenario() {
    let refused = |case: &Case| run(case, 0, None).unwrap_err().to_string();
    let cannot = "the engine `turmoil` does not support ";
    let mut other = case("canonical", "");
    other.scenario.clients[1].subject = String::from("redlock-literal");
    assert_eq!(refused(&other), format!("{cannot}the subject `redlock-literal`"));
    let mut slow = case("canonical", "");
    slow.scenario.lock.node_timeout = Span::from_ms(2_500);
    assert!(refused(&slow).contains("a quarter of the TTL"), "{}", refused(&slow));
    let mut hasty = case("canonical", "");
    hasty.scenario.lock.node_timeout = Span::from_ms(2);
    assert_eq!(refused(&hasty), format!("{cannot}`node-timeout = \"2ms\"`, no two ticks"));
    let mut newer = case("canonical", "");
    newer.scenario.cluster.server = lock_judge::scenario::Server::Redis84;
    assert_eq!(refused(&newer), format!("{cannot}`plain-extensions = false` on this server"));
}

/// Returns a case with one client and five nodes, 1 ms away, and these faults.
fn inline(steps: &str, faults: &str) -> Case {
    let text = format!(
        "schema = 1\nname = \"inline\"\ntitle = \"t\"\n[lock]\nttl = \"10s\"\n\
         [[client]]\nid = \"c1\"\nsteps = [{steps}]\n{faults}"
    );
    let scenario = toml::from_str(&text).unwrap();
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
}

fn history_of(steps: &str, faults: &str) -> Vec<Event> {
    play(&inline(steps, faults)).1
}

/// Returns the times of the events of client 0 that `what` selects, in milliseconds.
fn times_ms(history: &[Event], what: impl Fn(&EventKind) -> bool) -> Vec<u64> {
    history.iter().filter(|it| what(&it.kind)).map(|it| it.at_ns / 1_000_000).collect()
}

fn is_executed_set(kind: &EventKind, on: u8) -> bool {
    let EventKind::Executed { attempt, node, op, .. } = *kind else { return false };
    attempt.client == ClientId(0) && node.0 == on && op == OpKind::Set
}

#[test]
fn a_held_message_arrives_after_the_heal() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"150ms\"\n\
        partition = { between = [[\"c1\"], [\"A\"]] }";
    let history = history_of("{ acquire = {} }, { sleep = \"1s\" }", faults);
    let on_a = times_ms(&history, |kind| is_executed_set(kind, 0));
    assert!(on_a.len() == 1 && (150..=350).contains(&on_a[0]), "{on_a:?}");
}

/// The client gives up a silent connection after half a second; the bytes held on it are lost.
#[test]
fn what_a_reset_connection_held_never_arrives() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"2s\"\n\
        partition = { between = [[\"c1\"], [\"A\"]] }";
    let history = history_of("{ acquire = {} }, { sleep = \"3s\" }, { release = {} }", faults);
    assert!(times_ms(&history, |kind| is_executed_set(kind, 0)).is_empty());
    assert_eq!(times_ms(&history, |kind| is_executed_set(kind, 1)), [1]);
}

#[test]
fn resetting_partition_breaks_connections_not_their_effects() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"100ms\"\nuntil = \"200ms\"\n\
        partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }";
    let history = history_of("{ acquire = {} }, { at = \"1s\", release = {} }", faults);
    let introduced = |kind: &EventKind| {
        matches!(kind, EventKind::Written { node: NodeId(0), op: OpKind::Introduce, attempt, .. }
            if attempt.client == ClientId(0))
    };
    let again = times_ms(&history, introduced);
    assert!(again.len() == 1 && again[0] >= 200, "a new connection after the heal: {again:?}");
    let released = |kind: &EventKind| {
        matches!(kind, EventKind::Executed { node: NodeId(0), op: OpKind::Release, changed: true, attempt, .. }
            if attempt.client == ClientId(0))
    };
    assert_eq!(times_ms(&history, released).len(), 1);
}

/// Catalogue D11: a server that does not know the script executes nothing; the client sends the
/// request again.
#[test]
fn a_script_that_the_server_does_not_know_is_asked_for_again() {
    let shared = Shared::new(Plan::new(&inline("{ acquire = {} }", "")).unwrap(), 0, true);
    let mut guard = shared.lock();
    let state = &mut *guard;
    state.open_nodes(ClientId(0));
    let number = state.clients[ClientId(0)].connected[NodeId(0)].unwrap();
    let attempt = AttemptId { client: ClientId(0), number: 1 };
    let token = token_of(attempt, 1);
    let mut release = |words: &[&[u8]]| {
        let before = state.world.recorder.hash();
        let end = state.world.wire.as_mut().unwrap().end(number);
        end.requests.push(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            end.requests.push(&[format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
        }
        let (command, kind) = (CommandId(7), CommandKind::CompareAndDelete);
        let request = Request { command, attempt, kind, token };
        state.world.execute(number, request);
        let again = state.world.wire.as_mut().unwrap().end(number).again.pop_front();
        (again.map(|it| it.command), before != state.world.recorder.hash())
    };
    let sha: &[u8] = b"b998f9dfb154cdbea8cda65ad5177aadf0e945a2";
    let named: [&[u8]; 5] = [b"EVALSHA", sha, b"1", b"res", token.as_bytes()];
    assert_eq!(release(&named), (Some(CommandId(7)), false), "nothing is told of it");
    assert_eq!(release(&[b"EVAL", RELEASE, b"1", b"res", token.as_bytes()]), (None, true));
    assert_eq!(release(&named), (None, true), "it is known from then on");
}

/// The kernel of a killed server closes its connections; a connection that no process holds is
/// reset.
#[test]
fn connections_end_in_the_way_that_servers_do() {
    let ended = |fault: &str| {
        let plan = Plan::new(&inline("{ at = \"2s\", acquire = {} }", fault)).unwrap();
        let shared = Shared::new(plan, 0, false);
        let mut guard = shared.lock();
        let state = &mut *guard;
        state.open_nodes(ClientId(0));
        let number = state.clients[ClientId(0)].connected[NodeId(0)].unwrap();
        state.lines.get_mut(&number).unwrap().still = false;
        while let Some((at_ns, what)) = state.world.agenda.pop() {
            state.world.agenda.advance_to(at_ns);
            state.world.happen(what);
        }
        state.hand_over();
        drop(guard);
        let Poll::Ready(read) = shared.poll_readable(number) else { panic!("it has ended") };
        let written = shared.poll_writable(number, b"PING\r\n");
        (read.map(|it| it == Readable::End).map_err(|error| error.kind()), written)
    };
    let (read, written) = ended("[[fault]]\nid = \"f\"\nat = \"1s\"\nkill = { host = \"A\" }");
    assert_eq!(read, Ok(true));
    assert!(!matches!(written, Poll::Ready(Err(_))), "its kernel would only find out then");
    let (read, written) = ended(
        "[[fault]]\nid = \"f\"\nat = \"1s\"\nuntil = \"2s\"\n\
         partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }",
    );
    assert_eq!(read, Err(ErrorKind::ConnectionReset));
    assert!(matches!(written, Poll::Ready(Err(_))));
}

#[test]
fn a_killed_client_says_nothing_more() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"500ms\"\nkill = { host = \"c1\" }";
    let history = history_of("{ acquire = {} }, { hold = \"2s\" }, { release = {} }", faults);
    let own = |kind: &EventKind| match *kind {
        EventKind::Written { attempt, .. } | EventKind::ReleaseCalled { attempt } => {
            attempt.client == ClientId(0)
        }
        _ => false,
    };
    assert!(times_ms(&history, own).iter().all(|&at_ms| at_ms < 500));
    let expired = |kind: &EventKind| matches!(kind, EventKind::KeyEnded { .. });
    let first = times_ms(&history, expired)[0];
    assert!((10_001..=10_003).contains(&first), "nobody released them: {first}");
}

#[test]
fn a_dead_process_says_goodbye_and_a_dead_host_does_not() {
    // A client that knows that three nodes are gone fails at once; otherwise it waits for the
    // timeout.
    for (kind, settled_ms) in [("kill", 100..110), ("power", 150..160)] {
        let fault = |node: &str| {
            format!("[[fault]]\nid = \"{node}\"\nat = \"50ms\"\n{kind} = {{ host = \"{node}\" }}\n")
        };
        let faults: String = ["A", "B", "C"].map(fault).concat();
        let history = history_of("{ at = \"100ms\", acquire = {} }", &faults);
        let failed = |kind: &EventKind| {
            matches!(kind, EventKind::AttemptSettled { outcome: Settlement::TooFewNodes, attempt }
                if attempt.client == ClientId(0))
        };
        let failed = times_ms(&history, failed);
        assert!(failed.len() == 1 && settled_ms.contains(&failed[0]), "{kind}: {failed:?}");
    }
}

#[test]
fn a_stalled_node_executes_afterwards() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"200ms\"\nstall = { host = \"A\" }";
    let history = history_of("{ acquire = {} }, { sleep = \"1s\" }", faults);
    assert_eq!(times_ms(&history, |kind| is_executed_set(kind, 0)), [200]);
}

#[test]
fn a_fast_clock_makes_short_work_of_a_sleep() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"2s\"\n\
        clock-rate = { host = \"c1\", ppm = 250000 }";
    let history = history_of("{ acquire = {} }, { hold = \"1s\" }, { release = {} }", faults);
    let entered = times_ms(&history, |kind| matches!(kind, EventKind::SectionEntered { .. }));
    let left = times_ms(&history, |kind| matches!(kind, EventKind::SectionLeft { .. }));
    assert_eq!(left[0] - entered[0], 800);
}

#[test]
fn sleep_ends_in_the_millisecond_its_own_clock_reaches() {
    let slept_ms = |faults: &str| {
        let history = history_of("{ acquire = {} }, { hold = \"1s\" }, { release = {} }", faults);
        let entered = times_ms(&history, |kind| matches!(kind, EventKind::SectionEntered { .. }));
        let left = times_ms(&history, |kind| matches!(kind, EventKind::SectionLeft { .. }));
        assert_eq!(entered, [2], "there and back");
        left[0] - entered[0]
    };
    let faster = |at: &str, ppm| {
        format!(
            "[[fault]]\nid = \"f\"\nat = \"{at}\"\nuntil = \"2s\"\n\
             clock-rate = {{ host = \"c1\", ppm = {ppm} }}"
        )
    };
    assert_eq!(slept_ms(""), 1000);
    // 400 ms have passed; the remaining 600 ms take 480 ms.
    assert_eq!(slept_ms(&faster("402ms", 250_000)), 880);
    // After 544 ms, 598.4 ms of the remaining 600 ms have passed; all 600 ms have passed after
    // 545.45 ms.
    assert_eq!(slept_ms(&faster("402ms", 100_000)), 946);
}

/// Client-side caching: a push travels like a reply, and reaches the connection that reads the key.
#[test]
fn pushes_travel_to_the_connections_that_read_the_key() {
    let faults = "[[client]]\nid = \"c2\"\nsteps = [{ acquire = {} }]\n\
        [[fault]]\nid = \"f\"\nat = \"2s\"\nflush = { host = \"A\" }";
    let shared = Shared::new(Plan::new(&inline("{ acquire = {} }", faults)).unwrap(), 0, true);
    let mut guard = shared.lock();
    let state = &mut *guard;
    let connections = [0, 1].map(ClientId).map(|client| {
        state.open_nodes(client);
        state.clients[client].connected[NodeId(0)].unwrap()
    });
    let [reader, writer] = connections;
    let requests = |state: &mut State, number: ConnectionId, lines: &[u8]| {
        state.world.wire.as_mut().unwrap().end(number).requests.push(lines);
    };
    requests(state, reader, b"HELLO 3\r\nCLIENT TRACKING ON\r\nGET res\r\n");
    state.world.answer_at_once(ServerId(0), reader);
    state.lines.values_mut().for_each(|line| line.still = false);
    let sent = |state: &mut State, number: ConnectionId| {
        let end = state.world.wire.as_mut().unwrap().end(number);
        String::from_utf8(core::mem::take(&mut end.outgoing)).unwrap()
    };
    assert!(sent(state, reader).ends_with("+OK\r\n_\r\n"));
    requests(state, writer, b"SET res v PX 1000\r\n");
    let attempt = AttemptId { client: ClientId(1), number: 1 };
    let kind = CommandKind::Set { ttl_ms: Some(1_000) };
    let request = Request { command: CommandId(1), attempt, kind, token: token_of(attempt, 1) };
    state.world.execute(writer, request);
    assert_eq!(sent(state, writer), "+OK\r\n");
    let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nres\r\n";
    assert_eq!(sent(state, reader), push, "at once");
    // The key is read again, it expires, and the database is flushed.
    requests(state, reader, b"GET res\r\n");
    let greeting = Request { kind: CommandKind::Greet, ..request };
    state.world.execute(reader, greeting);
    while let Some((at_ns, what)) = state.world.agenda.pop() {
        state.world.agenda.advance_to(at_ns);
        state.world.happen(what);
    }
    let null = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
    assert_eq!(sent(state, reader), format!("$1\r\nv\r\n{push}{null}"));
    state.hand_over();
    let lengths = state.lines[&reader].readable.iter().map(|(length, _)| *length);
    let expected = [push.len(), 7, push.len(), null.len()];
    assert_eq!(lengths.collect::<Vec<_>>(), expected, "in this order");
    drop(guard);
    assert!(matches!(shared.poll_readable(reader), Poll::Ready(Ok(Readable::Bytes(1..)))));
}
