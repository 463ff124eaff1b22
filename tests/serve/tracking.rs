//! Pushes to connections that track keys.

use std::net::SocketAddr;

use crate::serve;
use crate::talk::Talk;

/// Connects with RESP3, and tracks the keys that are read.
fn tracking(address: SocketAddr, options: &str) -> Talk {
    let mut talk = Talk::to(address);
    assert!(talk.ask("HELLO 3").contains("proto\n:3"));
    assert_eq!(talk.ask(&format!("CLIENT TRACKING ON {options}")), "+OK");
    talk
}

#[test]
fn change_is_pushed_at_once_to_connections_that_read_the_key() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut one, mut two) = (tracking(address, ""), tracking(address, "NOLOOP"));
    let mut other = Talk::to(address);
    for talk in [&mut one, &mut two] {
        assert_eq!(talk.ask("GET k"), "_");
    }
    assert_eq!(other.ask("SET k 1"), "+OK");
    for talk in [&mut one, &mut two] {
        assert_eq!(talk.hear(), ">invalidate\nk");
        assert_eq!(talk.ask("GET k"), "1");
    }
    two.say("DEL k");
    assert_eq!(two.hear(), ":1");
    assert!(two.is_silent(), "its own change");
    assert_eq!(one.hear(), ">invalidate\nk");
    one.say("GET k\r\nSET k 2\r\nGET k");
    assert_eq!([one.hear(), one.hear()], ["_", "+OK"]);
    assert_eq!([one.hear(), one.hear()], [">invalidate\nk", "2"], "behind the answer");
    assert!(other.is_silent());
}

/// A push that came after a later reply would be taken for a change of what was just read.
#[test]
fn pushes_and_answers_are_in_the_order_of_execution() {
    const CHANGES: usize = 300;
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut listener = tracking(address, "");
    assert_eq!(listener.ask("GET k"), "_");
    let mut other = Talk::to(address);
    let changing = std::thread::spawn(move || {
        for number in 1..=CHANGES {
            assert_eq!(other.ask(&format!("SET k {number}")), "+OK");
        }
    });
    let mut seen = 0;
    while seen < CHANGES {
        assert_eq!(listener.hear(), ">invalidate\nk", "behind {seen}");
        let number = listener.ask("GET k").parse().unwrap();
        assert!(number > seen, "{number} behind {seen}");
        seen = number;
    }
    changing.join().unwrap();
    assert!(listener.is_silent());
}

#[test]
fn expiry_and_operators_are_pushed_and_a_flush_is_a_null() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"10ms\"\nflush = { host = \"A\" }\n";
    let fleet = serve(faults);
    let address = fleet.addresses()[0];
    let mut listener = tracking(address, "OPTIN");
    assert_eq!(listener.ask("SET k 1 PX 20"), "+OK");
    assert_eq!(listener.ask("CLIENT CACHING YES"), "+OK");
    listener.ask("EXISTS k");
    assert_eq!(listener.hear(), ">invalidate\nk", "the active expiry cycle");
    let mut other = Talk::to(address);
    assert_eq!(other.ask("SELECT 3"), "+OK");
    assert_eq!(other.ask("FLUSHDB"), "+OK");
    assert_eq!(listener.hear(), ">invalidate\n_");
    Talk::to(fleet.observer()).ask("START");
    assert_eq!(listener.hear(), ">invalidate\n_", "the fault of the scenario");
}

#[test]
fn a_closed_connection_tracks_nothing() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    drop(tracking(address, "").ask("GET k"));
    let mut other = Talk::to(address);
    crate::talk::until("it is gone", || other.ask("INFO clients").contains("tracking_clients:0"));
    assert_eq!(other.ask("SET k 1"), "+OK");
    assert_eq!(other.ask("PING"), "+PONG");
}
