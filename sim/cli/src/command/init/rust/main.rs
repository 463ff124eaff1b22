//! A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.
//!
//! Rust's standard library is enough. To judge your own client, replace `Redlock` with calls to it;
//! keep `Observer` and `main`.

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ROUNDS: usize = 2;
/// Time for one acquisition with all its attempts.
const PATIENCE: Duration = Duration::from_secs(20);

/// Deletes the key only if it is ours: after our lease it may be another client's.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Settings of the run, from the environment variables of `drive`.
struct Settings {
    client: String,
    nodes: Vec<SocketAddr>,
    observer: SocketAddr,
    resource: String,
    ttl: Duration,
}

impl Settings {
    fn read() -> Result<Self, Box<dyn Error>> {
        let nodes = env::var("DRIVE_NODES")?;
        Ok(Self {
            client: env::var("DRIVE_CLIENT")?,
            nodes: nodes.split(',').map(str::parse).collect::<Result<_, _>>()?,
            observer: env::var("DRIVE_OBSERVER")?.parse()?,
            resource: env::var("DRIVE_RESOURCE")?,
            ttl: Duration::from_millis(env::var("DRIVE_TTL_MS")?.parse()?),
        })
    }
}

/// A request in RESP.
fn encoded(words: &[&str]) -> String {
    let parts: Vec<_> = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    format!("*{}\r\n{}", words.len(), parts.concat())
}

/// The first line of a reply.
fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut text = String::new();
    stream.read_line(&mut text)?;
    let line = text
        .strip_suffix("\r\n")
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(line.to_owned())
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A connection to one node, dialled again after each failure.
struct Node {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
    introduced: bool,
}

impl Node {
    /// Sends a request.
    fn send(&mut self, client: &str, words: &[&str], within: Duration) -> io::Result<()> {
        let mut request = encoded(words);
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect_timeout(&self.address, within)?;
                // The name tells the masters whose connection it is.
                request.insert_str(0, &encoded(&["CLIENT", "SETNAME", client]));
                self.introduced = false;
                none.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request.as_bytes())
    }

    /// The reply to the request: its first line.
    fn reply(&mut self, until: Instant) -> io::Result<String> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let left = until.saturating_duration_since(Instant::now());
        stream
            .get_ref()
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        if !self.introduced {
            line(stream)?;
            self.introduced = true;
        }
        line(stream)
    }
}

/// The lock: a majority of the nodes, all asked at once.
struct Redlock<'s> {
    settings: &'s Settings,
    nodes: Vec<Node>,
}

impl<'s> Redlock<'s> {
    fn new(settings: &'s Settings) -> Self {
        let node = |&address| Node {
            address,
            stream: None,
            introduced: false,
        };
        Self {
            settings,
            nodes: settings.nodes.iter().map(node).collect(),
        }
    }

    /// The replies of all nodes; `None` for a node that gives none in time.
    fn ask(&mut self, words: &[&str]) -> Vec<Option<String>> {
        // Much less than the lease.
        let within = self.settings.ttl / 10;
        let until = Instant::now() + within;
        let send = |node: &mut Node| node.send(&self.settings.client, words, within).is_ok();
        let sent: Vec<bool> = self.nodes.iter_mut().map(send).collect();
        let reply = |(node, sent): (&mut Node, bool)| {
            let reply = if sent { node.reply(until).ok() } else { None };
            if reply.is_none() {
                // A reply that still comes would be taken for the next one.
                node.stream = None;
            }
            reply
        };
        self.nodes.iter_mut().zip(sent).map(reply).collect()
    }

    /// One attempt; its token if the lock is ours.
    fn acquire(&mut self) -> io::Result<Option<String>> {
        let token: String = random::<20>()?
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let ttl = self.settings.ttl;
        let began = Instant::now();
        let ttl_ms = ttl.as_millis().to_string();
        let replies = self.ask(&["SET", &self.settings.resource, &token, "NX", "PX", &ttl_ms]);
        let votes = replies
            .iter()
            .flatten()
            .filter(|reply| *reply == "+OK")
            .count();
        // The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
        let left = (ttl - ttl / 100).saturating_sub(Duration::from_millis(2) + began.elapsed());
        if votes > self.nodes.len() / 2 && !left.is_zero() {
            return Ok(Some(token));
        }
        self.release(&token);
        Ok(None)
    }

    fn release(&mut self, token: &str) {
        self.ask(&["EVAL", RELEASE, "1", &self.settings.resource, token]);
    }
}

/// Learns when this worker enters and leaves its critical section.
struct Observer(BufReader<TcpStream>);

impl Observer {
    fn tell(&mut self, words: &[&str]) -> Result<(), Box<dyn Error>> {
        self.0.get_mut().write_all(encoded(words).as_bytes())?;
        match line(&mut self.0)?.as_str() {
            "+OK" => Ok(()),
            reply => Err(format!("the observer refuses {}: {reply}", words.join(" ")).into()),
        }
    }
}

/// Attempts until the lock is ours.
fn acquired(redlock: &mut Redlock<'_>) -> Result<String, Box<dyn Error>> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(token) = redlock.acquire()? {
            return Ok(token);
        }
        let [byte] = random()?;
        sleep(Duration::from_millis(10) + Duration::from_millis(90) * byte.into() / 255);
    }
    Err(format!("no lock within {PATIENCE:?}").into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::read()?;
    let mut redlock = Redlock::new(&settings);
    let mut observer = Observer(BufReader::new(TcpStream::connect(settings.observer)?));
    for _ in 0..ROUNDS {
        let token = acquired(&mut redlock)?;
        observer.tell(&["ENTER", &settings.resource, &settings.client, &token])?;
        // A third of the lease.
        sleep(settings.ttl / 3);
        observer.tell(&["LEAVE", &settings.resource, &settings.client])?;
        redlock.release(&token);
    }
    Ok(())
}
