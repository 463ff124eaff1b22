//! The observer's port: workers report there when they enter and leave, and users query the run.
//!
//! It speaks RESP and accepts inline requests, so that any Redis client, and `nc`, can talk to it.

use core::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use redis_sim::resp::{Protocol, Requests, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::limits::{OBSERVERS_MAX, READ_BYTES};
use super::node::RETRY;
use super::socket::{Door, Socket};
use super::world::{Stage, World};

/// Accepts and serves all connections to the observer.
#[expect(clippy::disallowed_methods, reason = "each observer has a task")]
pub(super) async fn accept(world: Arc<World>, door: Door) {
    let places = Arc::new(Semaphore::new(OBSERVERS_MAX));
    loop {
        // A connection above the limit waits until another one ends.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok(Socket::Tcp(stream)) = door.accept().await else {
            // Out of descriptors, until another connection ends.
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            // An error ends only this connection.
            let _ = serve(&world, stream).await;
            drop(place);
        });
    }
}

async fn serve(world: &World, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = Requests::default();
    // Requests to the observer are short, so the strict limits for unauthenticated clients suffice.
    requests.set_unauthenticated(true);
    let mut protocol = Protocol::default();
    let mut replies = Vec::new();
    loop {
        let (mut goes_on, mut ends) = (true, false);
        while goes_on {
            match requests.next_request() {
                Ok(None) => break,
                Ok(Some(request)) => {
                    let reply = answer(world, &mut protocol, &request);
                    reply.value.encode(protocol, &mut replies);
                    ends |= reply.ends;
                    goes_on = !reply.closes;
                }
                Err(error) => {
                    Value::error(error.to_string()).encode(protocol, &mut replies);
                    goes_on = false;
                }
            }
        }
        let written = stream.write_all(&replies).await;
        replies.clear();
        if ends {
            world.end();
        }
        written?;
        if !goes_on {
            return Ok(());
        }
        requests.buffer().reserve(*READ_BYTES.start());
        if stream.read_buf(requests.buffer()).await? == 0 {
            return Ok(());
        }
    }
}

struct Reply {
    value: Value,
    closes: bool,
    ends: bool,
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self { value, closes: false, ends: false }
    }
}

fn answer(world: &World, protocol: &mut Protocol, request: &[Bytes]) -> Reply {
    let name = request[0].to_ascii_uppercase();
    let arguments = &request[1..];
    let recorder = &world.recorder;
    let value = match (&name[..], arguments) {
        (b"ENTER", [resource, who]) => done(recorder.entered(resource, who, None)),
        (b"ENTER", [resource, who, token]) => done(recorder.entered(resource, who, Some(token))),
        (b"LEAVE", [resource, who]) => done(recorder.left(resource, who)),
        (b"START", []) => {
            recorder.start();
            Value::ok()
        }
        (b"FAULT", [name]) => done(world.ask_for_fault(name)),
        (b"WORKER", [who, pid]) => done(world.name_worker(who, pid)),
        (b"VERDICT", []) => verdict(world),
        (b"FAULTS", []) => lines(world.faults().iter().map(|(id, stage)| {
            let stage = match stage {
                Stage::Waiting => "waiting",
                Stage::Begun => "begun",
                Stage::Over => "over",
            };
            format!("{id} {stage}")
        })),
        (b"NODES", []) => lines(
            world
                .nodes
                .values()
                .zip(&world.plan.scenario.cluster.nodes)
                .map(|(node, name)| format!("{name} {} {}", node.address(), node.state())),
        ),
        (b"END" | b"SHUTDOWN", _) => {
            return Reply { value: verdict(world), closes: true, ends: true };
        }
        (b"QUIT", _) => return Reply { value: Value::ok(), closes: true, ends: false },
        _ => pleasantry(&name, arguments, protocol),
    };
    value.into()
}

fn done(done: Result<(), impl Display>) -> Value {
    match done {
        Ok(()) => Value::ok(),
        Err(why) => Value::error(format!("ERR {why}")),
    }
}

/// Returns the verdict so far, in words. Judging may take long, so other tasks must leave this
/// thread.
fn verdict(world: &World) -> Value {
    tokio::task::block_in_place(|| lines(world.describe(&world.verdict())))
}

/// Answers the commands that client libraries send when they connect.
fn pleasantry(name: &[u8], arguments: &[Bytes], protocol: &mut Protocol) -> Value {
    match (name, arguments) {
        (b"PING", []) => Value::simple("PONG"),
        (b"PING" | b"ECHO", [word]) => Value::Bulk(word.clone()),
        (b"HELLO", _) => {
            match arguments.first().map(|version| &version[..]) {
                Some(b"2") => *protocol = Protocol::Resp2,
                Some(b"3") => *protocol = Protocol::Resp3,
                None => {}
                Some(_) => return Value::error("NOPROTO unsupported protocol version"),
            }
            let version = if *protocol == Protocol::Resp3 { 3 } else { 2 };
            Value::Map(vec![
                (Value::bulk(b"server"), Value::bulk(b"redis")),
                (Value::bulk(b"version"), Value::bulk(b"7.0.15")),
                (Value::bulk(b"proto"), Value::Integer(version)),
                (Value::bulk(b"id"), Value::Integer(1)),
                (Value::bulk(b"mode"), Value::bulk(b"standalone")),
                (Value::bulk(b"role"), Value::bulk(b"master")),
                (Value::bulk(b"modules"), Value::Array(Vec::new())),
            ])
        }
        (b"CLIENT", [what, ..]) if what.eq_ignore_ascii_case(b"ID") => Value::Integer(1),
        (b"CLIENT" | b"SELECT" | b"AUTH" | b"RESET", _) => Value::ok(),
        (b"COMMAND", _) => Value::Array(Vec::new()),
        (b"INFO", _) => Value::bulk(b"# Server\r\nredis_version:7.0.15\r\nloading:0\r\n"),
        _ => Value::error(
            "ERR expected ENTER resource who [token], LEAVE resource who, WORKER who pid, START, \
             FAULT name, FAULTS, NODES, VERDICT or END",
        ),
    }
}

fn lines(lines: impl IntoIterator<Item = String>) -> Value {
    Value::Array(lines.into_iter().map(|line| Value::Bulk(line.into())).collect())
}
