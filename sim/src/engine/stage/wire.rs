//! The bytes of connections, where clients speak them: requests as they arrive, answers as they
//! leave. What travels through the world are packets, one for each request and each answer; a
//! connection loses nothing out of its middle, so that the next packet is about the next bytes.

use std::collections::{BTreeMap, VecDeque};

use super::Stage;
use super::plan::Plan;
use super::request::{command, encode};
use crate::history::Writer;
use crate::master::resp::Requests;
use crate::master::{Command, Executed, Reply};
use crate::subject::Request;

/// The servers' ends of all connections, by number.
#[derive(Debug, Default)]
pub(in crate::engine) struct Wire {
    ends: BTreeMap<u16, End>,
    /// The ends that have something for their host to carry.
    pub(in crate::engine) spoke: Vec<u16>,
}

/// A server's end of a connection.
#[derive(Debug, Default)]
pub(in crate::engine) struct End {
    /// What the kernel has taken in and the process has not.
    pub(in crate::engine) requests: Requests,
    /// Answers that wait for the disk, oldest first.
    held: VecDeque<Vec<u8>>,
    /// Answers for the host to carry.
    pub(in crate::engine) outgoing: Vec<u8>,
    /// How long each answer is that was sent and has not arrived.
    pub(in crate::engine) lengths: VecDeque<usize>,
    /// Requests that the server did not take in their form: they will come again in another.
    pub(in crate::engine) again: VecDeque<Request>,
}

impl Wire {
    /// The server's end of a connection.
    pub(in crate::engine) fn end(&mut self, connection: u16) -> &mut End {
        self.ends.entry(connection).or_default()
    }

    /// The next answer of the connection leaves.
    pub(super) fn send(&mut self, connection: u16) {
        let end = self.end(connection);
        let answer = end.held.pop_front().expect("what is sent has been answered");
        end.lengths.push_back(answer.len());
        end.outgoing.extend_from_slice(&answer);
        self.spoke.push(connection);
    }
}

impl Stage {
    /// Answers what is about no key: part of a handshake, or `INFO`. Whether there was something
    /// to answer.
    pub(super) fn speak_of_itself(&mut self, plan: &Plan, server: u8, connection: u16) -> bool {
        let said = self.introduction_of(plan, server);
        let Some(wire) = &mut self.wire else { return false };
        let end = wire.end(connection);
        let request = end.requests.next_request().expect("clients send requests");
        let Some(request) = request else { return false };
        let mut answer = Vec::new();
        match command(&request) {
            Some(Command::Info) => encode(&Reply::Introduction(said), &mut answer),
            _ => answer.extend(b"-ERR unknown command\r\n"),
        }
        end.held.push_back(answer);
        true
    }

    /// Answers whatever part of a handshake has arrived, without the network between: time stands
    /// still for who asks.
    pub(in crate::engine) fn answer_at_once(&mut self, plan: &Plan, server: u8, connection: u16) {
        while self.speak_of_itself(plan, server, connection) {
            let wire = self.wire.as_mut().expect("there are bytes");
            wire.send(connection);
            wire.end(connection).lengths.clear();
        }
    }

    /// A replica refuses what might write.
    pub(super) fn refuse_bytes(&mut self, connection: u16) {
        let Some(wire) = &mut self.wire else { return };
        let end = wire.end(connection);
        let _ = end.requests.next_request();
        end.held.push_back(b"-READONLY You can't write against a read only replica.\r\n".to_vec());
    }

    /// Executes what the bytes say. `None` if the server does not take the form that they have.
    pub(super) fn execute_bytes(
        &mut self,
        server: u8,
        connection: u16,
        asked: &Request,
        wall_ms: u64,
    ) -> Option<Executed> {
        let wire = self.wire.as_mut().expect("there are bytes");
        let end = wire.end(connection);
        let request = end.requests.next_request().expect("clients send requests");
        let request = request.expect("what has arrived is whole");
        let Some(command) = command(&request) else {
            end.again.push_back(*asked);
            end.held.push_back(b"-NOSCRIPT No matching script.\r\n".to_vec());
            return None;
        };
        let writer = Writer::Attempt(asked.attempt);
        let done = self.nodes[usize::from(server)].master.execute(command, wall_ms, writer);
        let mut answer = Vec::new();
        encode(&done.reply, &mut answer);
        end.held.push_back(answer);
        Some(done)
    }
}
