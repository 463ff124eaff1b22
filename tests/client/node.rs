//! A node in memory that understands the client's commands, and misbehaves on request.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// Behaviour of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Habit {
    #[default]
    Answers,
    /// Executes, but sends no replies.
    Mute,
    /// Accepts connections and does nothing.
    Hangs,
    /// Accepts no connections.
    Refuses,
    /// Makes the environment panic that opens a connection.
    Panics,
    /// Writes the first part of every reply one step before the rest.
    SplitsAt(usize),
    /// Replies to every SET with these bytes.
    Says(Vec<u8>),
    /// Replies to every command with these bytes.
    Forbids(Vec<u8>),
}

pub(crate) struct Node {
    pub(crate) habit: Habit,
    pub(crate) uptime_s: u64,
    /// Byte of which the run id is made.
    pub(crate) run: u8,
    /// Identity of the data set.
    pub(crate) memory: u8,
    /// Number of connections accepted so far.
    pub(crate) accepted: usize,
    /// Names of the executed commands, in order, without those of the handshake.
    pub(crate) executed: Vec<String>,
    /// True if the node knows the client's scripts by their hashes.
    pub(crate) has_scripts: bool,
    /// True if the node knows no command of the handshake.
    pub(crate) is_old: bool,
    /// Redis version, if the node reports one.
    pub(crate) version: Option<&'static str>,
    /// True if the key that is used to test pushes was deleted, so that a push is due.
    tells_a_change: bool,
    keys: BTreeMap<Vec<u8>, (Vec<u8>, Duration)>,
    connections: Vec<Connection>,
    /// Keys that connections have read, and want to hear changes of.
    readers: BTreeMap<Vec<u8>, BTreeSet<usize>>,
    /// The connection whose command is being executed.
    current: usize,
    /// Pushes that are due, each with its connection and its key.
    pushes: Vec<(usize, Vec<u8>)>,
}

struct Connection {
    number: usize,
    /// The next read is registered (`CLIENT CACHING YES`).
    is_caching: bool,
    stream: DuplexStream,
    received: Vec<u8>,
    to_write: Vec<Vec<u8>>,
}

impl Node {
    /// Creates a node whose run id is made of the byte `run`.
    pub(crate) fn new(run: u8) -> Self {
        Self {
            habit: Habit::Answers,
            uptime_s: 86_400,
            run,
            memory: 1,
            accepted: 0,
            executed: Vec::new(),
            has_scripts: true,
            is_old: false,
            version: None,
            tells_a_change: false,
            keys: BTreeMap::new(),
            connections: Vec::new(),
            readers: BTreeMap::new(),
            current: 0,
            pushes: Vec::new(),
        }
    }

    pub(crate) fn accept(&mut self) -> io::Result<DuplexStream> {
        if self.habit == Habit::Refuses {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.accepted += 1;
        let (ours, theirs) = duplex(1 << 16);
        let (received, to_write) = (Vec::new(), Vec::new());
        let (number, is_caching) = (self.accepted, false);
        let connection = Connection { number, is_caching, stream: ours, received, to_write };
        self.connections.push(connection);
        Ok(theirs)
    }

    pub(crate) fn value(&self, key: &[u8], now: Duration) -> Option<&[u8]> {
        let (value, until) = self.keys.get(key)?;
        (now <= *until).then_some(value)
    }

    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.set_until(key, value, Duration::MAX);
    }

    pub(crate) fn set_until(&mut self, key: &str, value: &str, until: Duration) {
        self.keys.insert(key.as_bytes().to_vec(), (value.as_bytes().to_vec(), until));
        self.changed(key.as_bytes(), 0);
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.keys.remove(key.as_bytes());
        self.changed(key.as_bytes(), 0);
    }

    /// Makes a push to every connection that has read `key` due, except to the one that changed it.
    fn changed(&mut self, key: &[u8], by: usize) {
        let readers = self.readers.remove(key).into_iter().flatten();
        self.pushes.extend(readers.filter(|&it| it != by).map(|it| (it, key.to_vec())));
    }

    /// Ends all connections, as `CLIENT KILL` does.
    pub(crate) fn disconnect(&mut self) {
        self.connections.clear();
    }

    /// Writes one part of the pending replies, then executes the commands that have arrived.
    pub(crate) fn step(&mut self, now: Duration, context: &mut Context<'_>) {
        let mut connections = std::mem::take(&mut self.connections);
        connections.retain_mut(|connection| self.serve(connection, now, context));
        if std::mem::take(&mut self.tells_a_change) {
            let push = b">2\r\n+invalidate\r\n*1\r\n+redlock-client:inspect\r\n";
            connections.iter_mut().for_each(|it| it.to_write.push(push.to_vec()));
        }
        for (number, key) in std::mem::take(&mut self.pushes) {
            let push = [&b">2\r\n$10\r\ninvalidate\r\n*1\r\n"[..], &bulk(&key)].concat();
            let told = connections.iter_mut().find(|it| it.number == number);
            told.into_iter().for_each(|it| it.to_write.push(push.clone()));
            context.waker().wake_by_ref();
        }
        self.connections = connections;
    }

    fn serve(
        &mut self,
        connection: &mut Connection,
        now: Duration,
        context: &mut Context<'_>,
    ) -> bool {
        if self.habit == Habit::Hangs {
            return true;
        }
        if !connection.to_write.is_empty() {
            let part = connection.to_write.remove(0);
            let written = Pin::new(&mut connection.stream).poll_write(context, &part);
            assert!(!matches!(written, Poll::Ready(Ok(length)) if length < part.len()));
            context.waker().wake_by_ref();
        }
        let mut chunk = [0; 4_096];
        let mut chunk = ReadBuf::new(&mut chunk);
        match Pin::new(&mut connection.stream).poll_read(context, &mut chunk) {
            Poll::Pending => return true,
            Poll::Ready(_) if chunk.filled().is_empty() => return false,
            Poll::Ready(_) => connection.received.extend_from_slice(chunk.filled()),
        }
        context.waker().wake_by_ref();
        while let Some(arguments) = command(&mut connection.received) {
            let is_read = arguments[0] == b"PTTL" || arguments[0] == b"GET";
            if std::mem::take(&mut connection.is_caching) && is_read {
                let readers = self.readers.entry(arguments[1].clone()).or_default();
                readers.insert(connection.number);
            }
            connection.is_caching = arguments[0] == b"CLIENT" && arguments[1] == b"CACHING";
            self.current = connection.number;
            let greeted = self.greet(&arguments);
            let reply = match (&self.habit, greeted) {
                (Habit::Forbids(bytes), _) => bytes.clone(),
                (_, Some(reply)) => reply,
                (_, None) => self.execute(&arguments, now),
            };
            match self.habit {
                Habit::Mute => {}
                Habit::SplitsAt(at) => {
                    let (first, rest) = reply.split_at(at.min(reply.len()));
                    connection.to_write.extend([first.to_vec(), rest.to_vec()]);
                }
                _ => connection.to_write.push(reply),
            }
        }
        true
    }

    fn info(&self) -> String {
        let (run_id, uptime) = (format!("{:02x}", self.run).repeat(20), self.uptime_s);
        let version = self.version.map(|it| format!("redis_version:{it}\r\n"));
        let version = version.unwrap_or_default();
        format!(
            "# Server\r\n{version}run_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n\
             # Replication\r\nrole:master\r\n"
        )
    }

    /// Returns the reply to a command of the handshake; `None` for other commands.
    fn greet(&mut self, arguments: &[Vec<u8>]) -> Option<Vec<u8>> {
        let reply = match &arguments[0][..] {
            b"CLIENT" | b"HELLO" | b"SCRIPT" if self.is_old => "-ERR unknown command\r\n",
            b"HELLO" => ">1\r\n+hello\r\n%2\r\n+proto\r\n:3\r\n+modules\r\n*0\r\n",
            b"CLIENT" | b"SCRIPT" | b"SELECT" => "+OK\r\n",
            _ => return None,
        };
        Some(reply.as_bytes().to_vec())
    }

    fn execute(&mut self, arguments: &[Vec<u8>], now: Duration) -> Vec<u8> {
        let mut name = String::from_utf8(arguments[0].clone()).unwrap();
        self.has_scripts |= name == "EVAL";
        if name.starts_with("EVAL") && arguments.len() == 4 && self.has_scripts {
            name = String::from("INTRODUCE");
        }
        self.executed.push(name.clone());
        match name.as_str() {
            "INFO" => bulk(self.info().as_bytes()),
            "INTRODUCE" => {
                assert_eq!(arguments[3], b"redlock-client:canary");
                let (memory, age_s) = (self.memory, self.uptime_s);
                bulk(format!("{}canary:history {memory} {age_s}000000\r\n", self.info()).as_bytes())
            }
            "SET" => {
                assert_eq!(arguments[3..5], [b"NX".to_vec(), b"PX".to_vec()]);
                if let Habit::Says(bytes) = &self.habit {
                    return bytes.clone();
                }
                let shows = arguments.get(6).is_some_and(|it| it == b"GET");
                match self.value(&arguments[1], now) {
                    Some(value) if shows => return bulk(value),
                    Some(_) => return b"$-1\r\n".to_vec(),
                    None => {}
                }
                let ttl_ms = String::from_utf8(arguments[5].clone()).unwrap().parse().unwrap();
                let until = now + Duration::from_millis(ttl_ms);
                self.keys.insert(arguments[1].clone(), (arguments[2].clone(), until));
                self.changed(&arguments[1], self.current);
                if shows { b"$-1\r\n".to_vec() } else { b"+OK\r\n".to_vec() }
            }
            "PTTL" => {
                let left = match self.keys.get(&arguments[1]) {
                    Some(&(_, Duration::MAX)) => -1,
                    Some(&(_, until)) if until > now => (until - now).as_millis() as i64,
                    _ => -2,
                };
                format!(":{left}\r\n").into_bytes()
            }
            "GET" => self.value(&arguments[1], now).map_or_else(|| b"$-1\r\n".to_vec(), bulk),
            "EVALSHA" if !self.has_scripts => b"-NOSCRIPT No matching script.\r\n".to_vec(),
            "EVAL" | "EVALSHA" => {
                self.has_scripts = true;
                let script = match (name.as_str(), arguments.len()) {
                    ("EVAL", _) => "if redis.call('get'",
                    (_, 5) => "b998f9df",
                    _ => "e37e0986",
                };
                assert!(arguments[1].starts_with(script.as_bytes()));
                let owned = self.value(&arguments[3], now) == Some(&arguments[4][..]);
                match arguments.get(5) {
                    _ if !owned => {}
                    None => {
                        self.keys.remove(&arguments[3]);
                        self.changed(&arguments[3], self.current);
                    }
                    Some(ttl_ms) => {
                        let ttl_ms = String::from_utf8(ttl_ms.clone()).unwrap().parse().unwrap();
                        let until = &mut self.keys.get_mut(&arguments[3]).unwrap().1;
                        *until = (*until).max(now + Duration::from_millis(ttl_ms));
                        self.changed(&arguments[3], self.current);
                    }
                }
                format!(":{}\r\n", u8::from(owned)).into_bytes()
            }
            "DEL" => {
                self.tells_a_change = true;
                b":1\r\n".to_vec()
            }
            "PEXPIRE" => b":0\r\n".to_vec(),
            "CONFIG" => b"-ERR unknown command\r\n".to_vec(),
            other => panic!("the client does not say {other}"),
        }
    }
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Removes the first complete command from `received`.
fn command(received: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let mut rest = &received[..];
    let count = header(&mut rest, b'*')?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        let length = header(&mut rest, b'$')?;
        arguments.push(rest.get(..length)?.to_vec());
        rest = rest.get(length + 2..)?;
    }
    *received = rest.to_vec();
    Some(arguments)
}

fn header(rest: &mut &[u8], kind: u8) -> Option<usize> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    assert_eq!(rest[0], kind);
    let number = std::str::from_utf8(&rest[1..end - 1]).unwrap().parse().unwrap();
    *rest = &rest[end + 1..];
    Some(number)
}
