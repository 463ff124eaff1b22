//! A simple client for served masters and their observer.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time after which something expected counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that speaks as much of RESP as the tests need.
pub(crate) struct Talk(BufReader<TcpStream>);

impl Talk {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Connects as `client`.
    pub(crate) fn of(address: SocketAddr, client: &str) -> Self {
        let mut talk = Self::to(address);
        assert_eq!(talk.ask(&format!("CLIENT SETNAME {client}")), "+OK");
        talk
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.write(format!("{line}\r\n").as_bytes());
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Receives the next reply: its line, or the text of a bulk string, or the joined elements of
    /// an aggregate, preceded by `>` if it is a push.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the connection was closed");
        let line = line.trim_end().to_owned();
        let mark = line.chars().next().unwrap_or_default();
        if matches!(mark, '*' | '>' | '~' | '%') {
            let each = if mark == '%' { 2 } else { 1 };
            let count = line[1..].parse::<usize>().unwrap_or(0) * each;
            let parts: Vec<_> = (0..count).map(|_| self.hear()).collect();
            return if mark == '>' { ">" } else { "" }.to_owned() + &parts.join("\n");
        }
        match line.strip_prefix('$') {
            Some("-1") | None => line,
            Some(length) => {
                let mut text = vec![0; length.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                String::from_utf8(text).unwrap()
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// Returns true if nothing arrives for 30 ms.
    pub(crate) fn is_silent(&mut self) -> bool {
        let stream = self.0.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let silent = self.0.fill_buf().is_err_and(|error| {
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        });
        self.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// Returns everything that is received until the connection closes, in whatever way.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8(rest).unwrap()
    }

    /// Waits for the end of the connection. Returns true if the other side has closed or reset it.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Waits until the fault has reached this stage.
pub(crate) fn await_fault(observer: &mut Talk, fault: &str, stage: &str) {
    let line = format!("{fault} {stage}");
    until(&line, || observer.ask("FAULTS").lines().any(|it| it == line));
}
