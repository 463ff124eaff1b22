//! Connections that are held, reset, ended or pushed on.

use std::io::ErrorKind;
use std::task::Poll;

use lock_judge::history::CommandId;
use lock_judge::ids::{ConnectionId, ResourceId, ServerId};
use redlock_client::scripts::RELEASE;

use super::*;
use crate::engine::turmoil::shared::{Readable, Shared, State};
use crate::subject::{CommandKind, Request, token_of};

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
fn messages_held_on_a_reset_connection_never_arrive() {
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

/// Counterexample D11: a server that does not know the script executes nothing; the client sends the
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
        let request = Request { command, attempt, resource: ResourceId(0), kind, token };
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
        while let Some((at_ns, what)) = state.world.agenda.pop_until(u64::MAX) {
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
    let (command, token) = (CommandId(1), token_of(attempt, 1));
    let request = Request { command, attempt, resource: ResourceId(0), kind, token };
    state.world.execute(writer, request);
    assert_eq!(sent(state, writer), "+OK\r\n");
    let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nres\r\n";
    assert_eq!(sent(state, reader), push, "at once");
    // The key is read again, it expires, and the database is flushed.
    requests(state, reader, b"GET res\r\n");
    let greeting = Request { kind: CommandKind::Greet, ..request };
    state.world.execute(reader, greeting);
    while let Some((at_ns, what)) = state.world.agenda.pop_until(u64::MAX) {
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

#[test]
fn a_round_that_fails_without_a_command_begins_before_it_ends() {
    let case = case("failed-before-its-first-command", "");
    for seed in 0..10 {
        let mut history = Vec::new();
        run(&case, seed, Some(&mut history)).unwrap();
        let mut under_way = None;
        for event in &history {
            match event.kind {
                EventKind::ExtensionBegan { round, .. } => {
                    assert_eq!(under_way.replace(round), None, "seed {seed}: {event:?}");
                }
                EventKind::ExtensionSettled { round, .. } => {
                    assert_eq!(under_way.take(), Some(round), "seed {seed}: {event:?}");
                }
                _ => {}
            }
        }
    }
}
