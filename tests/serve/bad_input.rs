//! Invalid input on one connection does not affect the service of the others.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::leases::begin;
use crate::serve;
use crate::talk::Talk;

#[test]
fn malformed_input_is_named_and_ends_only_its_connection() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut good = Talk::to(address);
    let too_long = "x".repeat(100_000);
    for (bad, named) in [
        ("*99999999999", "invalid multibulk length"),
        ("*2147483648", "invalid multibulk length"),
        ("*x", "invalid multibulk length"),
        ("*1\r\n:1", "expected '$', got ':'"),
        ("*1\r\n$-5", "invalid bulk length"),
        ("*1\r\n$536870913", "invalid bulk length"),
        ("*1\r\n$999999999999", "invalid bulk length"),
        ("PING \"", "unbalanced quotes in request"),
        (too_long.as_str(), "too big inline request"),
    ] {
        let mut talk = Talk::to(address);
        let answer = talk.ask(bad);
        assert_eq!(answer, format!("-ERR Protocol error: {named}"), "{bad:.20}");
        assert!(talk.is_closed());
        assert_eq!(good.ask("PING"), "+PONG");
    }
}

#[test]
fn an_array_of_negative_length_is_nothing() {
    let fleet = serve("");
    let mut talk = Talk::to(fleet.addresses()[0]);
    for nothing in ["*0", "*-1", "*-2147483648", ""] {
        talk.say(nothing);
        assert_eq!(talk.ask("PING"), "+PONG", "{nothing}");
    }
}

#[test]
fn unknown_requests_are_errors_and_nothing_more() {
    let fleet = serve("");
    let mut talk = Talk::to(fleet.addresses()[0]);
    for (bad, error) in [
        ("NOSUCH a b", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'"),
        ("CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("SET k v PX", "-ERR syntax error"),
    ] {
        assert_eq!(talk.ask(bad), error);
        assert_eq!(talk.ask("PING"), "+PONG");
    }
}

#[test]
fn half_a_request_and_a_close_leave_nothing() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut good = Talk::to(address);
    let whole = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nvalue\r\n";
    for length in 1..whole.len() {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&whole[..length]).unwrap();
        drop(stream);
        assert_eq!(good.ask("EXISTS half"), ":0", "after {length} bytes");
    }
}

#[test]
fn values_are_large_and_binary() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut talk, mut other) = (Talk::to(address), Talk::to(address));
    let value = "\u{0}\r\n$1".repeat(2_000_000);
    let set = format!("*3\r\n$3\r\nSET\r\n$4\r\nk\0\r\n\r\n${}\r\n{value}", value.len());
    talk.say(&set);
    assert_eq!(other.ask("PING"), "+PONG");
    assert_eq!(talk.hear(), "+OK");
    assert!(talk.ask("*2\r\n$3\r\nGET\r\n$4\r\nk\0\r\n") == value);
}

#[test]
fn connection_that_does_not_read_delays_no_other() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let value = "v".repeat(100_000);
    let mut other = Talk::to(address);
    let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{value}", value.len());
    assert_eq!(other.ask(&set), "+OK");
    let mut deaf = Talk::to(address);
    let many = "GET big\r\n".repeat(1_000);
    deaf.write(many.as_bytes());
    assert_eq!(other.ask("PING"), "+PONG");
    // All replies arrive once the client reads.
    assert!((0..1_000).all(|_| deaf.hear().len() == 100_000));
}

/// A master in its own process, so that its memory can be measured.
struct Process(Child, SocketAddr);

impl Process {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_redlock-sim"))
            .args(["master", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
        Self(process, address)
    }

    /// Peak memory of the process, in MiB.
    fn most_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn announced_bytes_take_no_memory_and_unread_ones_little() {
    let process = Process::start();
    let mut good = Talk::to(process.1);
    let mut bad = Vec::new();
    for _ in 0..50 {
        for announced in ["*1\r\n$536870912\r\n", "*2147483647\r\n$1\r\n"] {
            let mut talk = Talk::to(process.1);
            talk.write(announced.as_bytes());
            talk.write(&[b'x'; 10_000]);
            bad.push(talk);
        }
    }
    let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$1000000\r\n{}", "v".repeat(1_000_000));
    assert_eq!(good.ask(&set), "+OK");
    for _ in 0..10 {
        let mut deaf = Talk::to(process.1);
        deaf.write("GET big\r\n".repeat(1_000).as_bytes());
        bad.push(deaf);
    }
    let allocates =
        "EVAL \"local t = {} while true do t[#t + 1] = string.rep('x', 1e6) .. #t end\" 0";
    assert!(good.ask(allocates).starts_with("-ERR"));
    assert_eq!(good.ask("PING"), "+PONG");
    assert!(process.most_mib() < 400, "{} MiB", process.most_mib());
}

/// Pseudo-random numbers, the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    /// Draws bytes that resemble a request.
    fn bytes(&mut self) -> Vec<u8> {
        const PARTS: [&[u8]; 16] = [
            b"*",
            b"$",
            b":",
            b"-",
            b"0",
            b"1",
            b"3",
            b"99999",
            b"\r\n",
            b"\n",
            b"\0",
            b"\"",
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
            b"EVAL \"return {1, {2}}\" 0\r\n",
            b"MULTI\r\nSET k v\r\nEXEC\r\n",
        ];
        let mut bytes = Vec::new();
        for _ in 0..self.below(20) {
            bytes.extend_from_slice(PARTS[self.below(PARTS.len())]);
        }
        if !bytes.is_empty() && self.below(2) == 0 {
            let place = self.below(bytes.len());
            bytes[place] = self.below(256) as u8;
        }
        bytes
    }
}

#[test]
fn others_are_answered_whatever_some_say() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let fuzzers = (0..4).map(|seed| {
        thread::spawn(move || {
            let mut draw = Draw(seed);
            for _ in 0..150 {
                let mut stream = TcpStream::connect(address).unwrap();
                for _ in 0..draw.below(4) {
                    // The server may have closed the connection meanwhile, and rightly.
                    let _ = stream.write_all(&draw.bytes());
                }
                if draw.below(2) == 0 {
                    let _ = stream.shutdown(Shutdown::Write);
                    Talk::over(stream).is_closed();
                }
            }
        })
    });
    let fuzzers: Vec<_> = fuzzers.collect();
    let mut good = Talk::to(address);
    while fuzzers.iter().any(|it| !it.is_finished()) {
        assert_eq!(good.ask("ECHO hello"), "hello");
    }
    fuzzers.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(good.ask("SET good 1"), "+OK");
    assert_eq!(Talk::to(address).ask("GET good"), "1");
}

/// Masters without sets refuse the script, so the client's release fails.
#[test]
fn commands_that_the_masters_do_not_know_are_named() {
    let (fleet, _observer, mut c1, _c2) = begin();
    let replies = c1.ask("EVAL \"redis.call('sadd',KEYS[1],'1')\" 1 res");
    assert!(replies.iter().all(|it| it.starts_with("-ERR Unknown")), "{replies:?}");
    let told = "c1 sent commands that the masters do not know: SADD (in a script, 5 times); see \
                docs/masters.md";
    assert_eq!(fleet.unknown_commands(), [told]);
}
