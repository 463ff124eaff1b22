//! A real server, as a child process on loopback, and connections to it.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::reply::{self, Reply};

/// Maximum time for a server to start, and to reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server, killed when dropped.
pub(crate) struct Server {
    port: u16,
    directory: PathBuf,
    process: Child,
}

/// Returns true if `program` can be run.
pub(crate) fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

impl Server {
    /// Starts `program` without persistence. Active expiry is off, because its timing is
    /// unpredictable: an expired key stays until a command accesses it.
    pub(crate) fn start(program: &str) -> io::Result<Self> {
        loop {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            let name = format!("redlock-judge-{}-{port}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir(&directory)?;
            let mut command = Command::new(program);
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
            command.args(["--enable-debug-command", "local", "--dir"]).arg(&directory);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let process = command.spawn()?;
            let mut server = Self { port, directory, process };
            if server.comes_up() {
                server.connect()?.ask(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])?;
                return Ok(server);
            }
        }
    }

    pub(crate) fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, received: Vec::new() })
    }

    /// Waits until the server replies. Returns false if the process ended, or if another process
    /// that took the port replies instead.
    fn comes_up(&mut self) -> bool {
        let line = format!("process_id:{}\r\n", self.process.id());
        while self.process.try_wait().is_ok_and(|status| status.is_none()) {
            let info = self.connect().and_then(|mut it| it.ask(&["INFO", "server"]));
            match info {
                Ok(Reply::One(b'$', text)) => {
                    return String::from_utf8_lossy(&text).contains(&line);
                }
                _ => std::thread::yield_now(),
            }
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A connection that returns replies byte for byte.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Receives the next reply, parsed and as raw bytes.
    pub(crate) fn receive(&mut self) -> io::Result<(Reply, Vec<u8>)> {
        loop {
            if let Some((reply, length)) = reply::parse(&self.received) {
                let bytes = self.received.drain(..length).collect();
                return Ok((reply, bytes));
            }
            let mut buffer = [0; 16 * 1_024];
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => self.received.extend_from_slice(&buffer[..length]),
            }
        }
    }

    /// Receives the next reply like [`Connection::receive`], and the pushes that come before it.
    pub(crate) fn receive_reply(&mut self) -> io::Result<(Vec<u8>, Reply, Vec<u8>)> {
        let mut pushes = Vec::new();
        loop {
            let (reply, bytes) = self.receive()?;
            if bytes[0] != b'>' {
                return Ok((pushes, reply, bytes));
            }
            pushes.extend(bytes);
        }
    }

    /// Receives this number of bytes; fewer if the server sends no more.
    pub(crate) fn receive_exactly(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = [0; 16 * 1_024];
        while self.received.len() < length {
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
            }
        }
        let length = length.min(self.received.len());
        self.received.drain(..length).collect()
    }

    /// Sends a request and waits for the reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.send(request.as_bytes())?;
        Ok(self.receive()?.0)
    }

    /// Sends all bytes at once and returns everything that is received, up to `end`, or until the
    /// server closes the connection. Without an `end`, closes the sending side to make the server
    /// do so.
    pub(crate) fn exchange(mut self, bytes: &[u8], end: Option<&[u8]>) -> io::Result<Vec<u8>> {
        let mut writer = self.stream.try_clone()?;
        std::thread::scope(|scope| {
            // Writing may fail: a server that has closed the connection need not read the rest.
            scope.spawn(move || {
                let _ = writer.write_all(bytes);
                if end.is_none() {
                    let _ = writer.shutdown(Shutdown::Write);
                }
            });
            let mut buffer = vec![0; 1 << 20];
            loop {
                match self.stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                    Err(error) => return Err(error),
                }
                if end.is_some_and(|end| self.received.ends_with(end)) {
                    break;
                }
            }
            Ok(self.received)
        })
    }

    /// Reads the server's clock, in µs.
    pub(crate) fn time_us(&mut self) -> io::Result<i64> {
        let reply = self.ask(&["TIME"])?;
        reply::time_us(&reply).ok_or_else(|| io::Error::other(format!("TIME: {reply:?}")))
    }

    /// Returns true if the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.receive() {
            Ok(_) => false,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}
