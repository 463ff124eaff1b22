//! One connection, as the server sees it.

use bytes::Bytes;

use super::{Answer, Server, Touched, Turn};
use crate::master::keyspace::parse_integer;
use crate::master::resp::{Protocol, Value};
use crate::master::{Command, KeyCommand, Reply, SetCondition, SetExpiry, SmallBytes};

/// What the server knows of a connection.
#[derive(Clone, Debug)]
pub struct Session {
    id: u64,
    protocol: Protocol,
}

impl Session {
    /// A fresh connection; servers number them from 1.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self { id, protocol: Protocol::default() }
    }

    /// The version of the protocol that it speaks.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it has still to say who it is.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        false
    }

    /// Executes one request.
    ///
    /// # Panics
    ///
    /// If the server's process is dead, or the request is empty.
    pub fn execute(&mut self, server: &mut Server, request: &[Bytes], turn: Turn<'_>) -> Answer {
        let (name, arguments) = request.split_first().expect("requests are not empty");
        let wall_ms = turn.wall_ns / 1_000_000;
        let command = match (name.to_ascii_uppercase().as_slice(), arguments) {
            (b"PING", []) => return Answer::Reply(Value::Simple(String::from("PONG"))),
            (b"GET", [_]) => KeyCommand::Get,
            (b"DEL", [_]) => KeyCommand::Del,
            (b"SET", [_, value, nx, px, ttl_ms])
                if nx.eq_ignore_ascii_case(b"NX") && px.eq_ignore_ascii_case(b"PX") =>
            {
                let expiry = SetExpiry::Px(parse_integer(ttl_ms).unwrap_or(0));
                KeyCommand::Set { value, condition: SetCondition::Missing, expiry, get: false }
            }
            _ => {
                let name = String::from_utf8_lossy(name);
                let error = format!("ERR unknown command '{name}', with args beginning with: ");
                return Answer::Reply(Value::Error(error));
            }
        };
        let key = &arguments[0];
        let executed = server.master.execute(Command::Key { key, command }, wall_ms, turn.writer);
        let value = match &executed.reply {
            Reply::Bulk(bytes) => Value::bulk(bytes),
            Reply::Error(error) => Value::error(error.text()),
            Reply::Integer(number) => Value::Integer(*number),
            Reply::Introduction(_) | Reply::Nil => Value::Null,
            Reply::Ok => Value::ok(),
        };
        turn.touched.push(Touched { database: 0, key: SmallBytes::new(key), executed });
        Answer::Reply(value)
    }
}
