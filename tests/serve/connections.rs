//! Beginning, waiting and end of connections.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis_sim::profile::VALKEY_9;
use redlock_sim::serve::Fleet;

use crate::talk::{Talk, await_fault, until};
use crate::{scenario, serve, setup};

#[test]
fn a_waiting_connection_can_be_closed() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut other = Talk::to(address);
    for _ in 0..20 {
        let mut talk = Talk::to(address);
        assert_eq!(talk.ask("PING"), "+PONG");
        talk.say("WAIT 1 0");
    }
    until("they are gone", || other.ask("CLIENT LIST").trim_end().lines().count() == 1);
}

#[test]
fn an_unidentified_worker_may_not_send_much() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut before = Talk::to(address);
    assert_eq!(before.ask("CONFIG SET requirepass secret"), "+OK");
    for (bytes, answer) in [
        ("*11\r\n", "-ERR Protocol error: unauthenticated multibulk length"),
        ("*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length"),
    ] {
        let mut talk = Talk::to(address);
        talk.write(bytes.as_bytes());
        assert_eq!(talk.hear(), answer);
        assert!(talk.is_closed());
        let mut talk = Talk::to(address);
        talk.write(format!("PING\r\n{bytes}").as_bytes());
        assert_eq!(talk.hear(), "-NOAUTH Authentication required.");
        assert_eq!(talk.hear(), answer);
    }
    let mut talk = Talk::to(address);
    assert!(talk.ask("GET key").starts_with("-NOAUTH"));
    let del = format!("*12\r\n$3\r\nDEL\r\n{}", "$1\r\nk\r\n".repeat(11));
    talk.write(format!("AUTH secret\r\n{del}PING\r\n").as_bytes());
    assert_eq!([talk.hear(), talk.hear(), talk.hear()], ["+OK", ":0", "+PONG"]);
    assert_eq!(before.ask("PING"), "+PONG", "who was there before need not say");
}

#[test]
fn the_longest_argument_is_what_the_server_is_told() {
    let fleet = serve("");
    let mut talk = Talk::to(fleet.addresses()[0]);
    assert_eq!(talk.ask("CONFIG SET proto-max-bulk-len 1mb"), "+OK");
    talk.write(b"*1\r\n$1048577\r\n");
    assert_eq!(talk.hear(), "-ERR Protocol error: invalid bulk length");
    assert!(talk.is_closed());
}

#[test]
fn all_that_came_is_answered_however_much_it_is() {
    const COUNT: usize = 100_000;
    let fleet = serve("");
    let stream = TcpStream::connect(fleet.addresses()[0]).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut talk = Talk::over(stream);
    let writing = std::thread::spawn(move || writer.write_all(&b"A\n".repeat(COUNT)).unwrap());
    for nth in 0..COUNT {
        assert!(talk.hear().starts_with("-ERR unknown command 'A'"), "{nth}");
    }
    writing.join().unwrap();
}

/// A stopped master's input is not buffered without limit: it stays with the sender.
#[test]
fn an_unserved_connection_cannot_send_without_limit() {
    const MUCH: usize = 400;
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(b"WAIT 1 0\r\n").unwrap();
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n{}\r\n", "v".repeat(1_000_000));
    let sent = (0..MUCH).map(|_| stream.write_all(set.as_bytes()));
    let stuck = sent.filter_map(Result::err).next().expect("something is not taken");
    assert!(matches!(stuck.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{stuck}");
    assert_eq!(Talk::to(address).ask("PING"), "+PONG");
}

/// A Valkey with an append-only file that is synced once a second.
#[test]
fn a_write_is_answered_when_it_is_on_disk() {
    let faults = "[cluster.disk]\nsync-takes = \"900ms\"\n\
         [cluster.node.A]\npersistence = \"everysec\"\n\
         [[fault]]\nid = \"syncs\"\nat = \"100ms\"\nclock-jump = { host = \"B\", by = \"1s\" }\n\
         [[fault]]\nid = \"dark\"\nat = \"4s\"\n\
         power = { host = \"A\", restart-after = \"10ms\" }";
    let mut setup = setup(scenario(faults));
    setup.profile = &VALKEY_9;
    let fleet = Fleet::start(&setup).unwrap();
    let address = fleet.addresses()[0];
    let (mut talk, mut observer) = (Talk::to(address), Talk::to(fleet.observer()));
    assert_eq!(talk.ask("WAITAOF 1 0 0"), ":1\n:0", "there is nothing to wait for");
    assert_eq!(talk.ask("SET other 1"), "+OK");
    assert_eq!(talk.ask("WAITAOF 1 0 10"), ":0\n:0", "nobody has begun to sync");
    assert_eq!(talk.ask("WAITAOF 0 1 10"), ":0\n:0", "there is no replica");
    for request in ["MULTI", "WAITAOF 1 0 0"] {
        talk.ask(request);
    }
    assert_eq!(talk.ask("EXEC"), ":0\n:0", "nobody waits in a transaction");
    observer.ask("START");
    await_fault(&mut observer, "syncs", "over");
    assert_eq!(talk.ask("WAITAOF 1 0 0"), ":1\n:0", "the sync that began with the scenario");
    assert_eq!(talk.ask("SET another 1"), "+OK");
    assert_eq!(talk.ask("WAITAOF 1 0 0"), ":1\n:0", "the next one");
    await_fault(&mut observer, "dark", "over");
    assert_eq!(Talk::to(address).ask("MGET other another"), "1\n1");
}

#[test]
fn config_set_cannot_change_the_persistence() {
    let fleet = serve("[cluster.node.B]\npersistence = \"everysec\"\n");
    for (address, is, other) in [(0, "no", "yes"), (1, "yes", "no")] {
        let mut talk = Talk::to(fleet.addresses()[address]);
        assert_eq!(talk.ask(&format!("CONFIG SET appendonly {is}")), "+OK");
        let refused = talk.ask(&format!("CONFIG SET appendonly {other}"));
        assert!(refused.starts_with("-ERR CONFIG SET failed"), "{refused}");
        assert_eq!(talk.ask("CONFIG GET appendonly"), format!("appendonly\n{is}"));
    }
}
