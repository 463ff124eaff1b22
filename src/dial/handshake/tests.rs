use core::pin::pin;
use core::task::Poll;
use std::io;

use tokio::io::{AsyncReadExt, DuplexStream, duplex};

use super::super::tests::poll;
use super::*;

const OK: &str = "+OK\r\n";
const UNKNOWN: &str = "-ERR unknown command\r\n";
const HELLO: &str = "%1\r\n+proto\r\n:3\r\n";

/// Returns the commands that the server received, one line per burst, and the outcome.
fn talk(url: &str, answers: &[&[&str]]) -> (Vec<String>, Result<bool, DialError>) {
    let endpoint: Endpoint = url.parse().unwrap();
    let (mut ours, mut theirs) = duplex(1 << 16);
    let credentials = credentials(&endpoint);
    let mut shaking = pin!(handshake(&mut ours, &endpoint, credentials.as_ref()));
    let mut bursts = Vec::new();
    for answers in answers {
        assert!(poll(shaking.as_mut()).is_pending());
        bursts.push(burst(&mut theirs));
        match poll(pin!(theirs.write_all(answers.concat().as_bytes()))) {
            Poll::Ready(written) => written.unwrap(),
            Poll::Pending => panic!("there is room"),
        }
    }
    drop(theirs);
    match poll(shaking) {
        Poll::Ready(outcome) => (bursts, outcome.map(|(_, is_tracked)| is_tracked)),
        Poll::Pending => panic!("it waits for more: {bursts:?}"),
    }
}

/// Returns the credentials of the URL, which nobody has to be asked for.
fn credentials(endpoint: &Endpoint) -> Option<Credentials> {
    match poll(pin!(endpoint.credentials())) {
        Poll::Ready(credentials) => credentials.unwrap(),
        Poll::Pending => panic!("nobody is asked"),
    }
}

/// Returns the words of the written commands, without lengths and scripts.
fn burst(theirs: &mut DuplexStream) -> String {
    let mut bytes = BytesMut::new();
    while let Poll::Ready(Ok(1..)) = poll(pin!(theirs.read_buf(&mut bytes))) {}
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let words = text.split("\r\n").filter(|word| !word.starts_with(['*', '$']));
    words.collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn refused(outcome: Result<bool, DialError>) -> String {
    match outcome {
        Err(DialError::Refused(text)) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_goes_out_in_one_burst() {
    let (bursts, outcome) = talk("redis://me:secret@a/7", &[&[HELLO, OK, OK, OK, OK, OK]]);
    outcome.unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "HELLO 3 AUTH me secret SELECT 7 CLIENT SETNAME redlock-client \
         CLIENT SETINFO LIB-NAME redlock-client CLIENT SETINFO LIB-VER {version} \
         CLIENT TRACKING ON OPTIN NOLOOP"
    );
    assert_eq!(bursts, [expected]);
}

#[test]
fn tracking_is_turned_off_on_servers_that_it_can_crash() {
    let hello =
        |version: &str| format!("%2\r\n$7\r\nversion\r\n$5\r\n{version}\r\n$5\r\nproto\r\n:3\r\n");
    for (version, is_told) in
        [("6.2.6", false), ("6.2.7", true), ("7.0.8", true), ("7.0.9", false), ("8.4.0", false)]
    {
        let hello = hello(version);
        let mut bursts = vec![vec![&hello[..], OK, OK, OK, OK]];
        bursts.extend(is_told.then(|| vec![OK]));
        let bursts: Vec<&[&str]> = bursts.iter().map(|it| &it[..]).collect();
        let (bursts, outcome) = talk("redis://a", &bursts);
        assert_eq!(outcome.unwrap(), !is_told, "{version}");
        let told = bursts.get(1).map(|burst| &burst[..]);
        assert_eq!(told, is_told.then_some("CLIENT TRACKING OFF"), "{version}");
    }
}

#[test]
fn without_options_the_handshake_is_minimal() {
    let (bursts, outcome) = talk("redis://a", &[&[HELLO, OK, OK, OK, OK]]);
    outcome.unwrap();
    assert!(bursts[0].starts_with("HELLO 3 CLIENT SETNAME"), "{bursts:?}");
    let (bursts, _) = talk("redis://:secret@a", &[&[HELLO, OK, OK, OK, OK]]);
    assert!(bursts[0].starts_with("HELLO 3 AUTH default secret CLIENT"), "{bursts:?}");
}

#[test]
fn a_server_pushes_only_in_version_3_and_only_if_it_agrees_to() {
    let refuses = "-NOPERM\r\n";
    let tracked = |hello, tracking| talk("redis://a", &[&[hello, OK, OK, OK, tracking]]).1.unwrap();
    assert!(tracked(HELLO, OK));
    assert!(!tracked(HELLO, refuses));
    assert!(!tracked(UNKNOWN, OK));
    assert!(!tracked("*2\r\n+proto\r\n:2\r\n", OK));
}

#[test]
fn a_server_that_knows_none_of_it_is_taken_as_it_is() {
    let (_, outcome) = talk("redis://a", &[&[UNKNOWN; 5]]);
    outcome.unwrap();
    let (_, outcome) = talk("redis://a/3", &[&[UNKNOWN, OK, UNKNOWN, UNKNOWN, UNKNOWN, OK]]);
    outcome.unwrap();
}

#[test]
fn a_server_without_hello_is_given_the_password_in_the_old_way() {
    let noauth = ["-NOAUTH Authentication required.\r\n"; 5];
    let first = [&[UNKNOWN][..], &noauth].concat();
    for (url, auth) in [
        ("redis://:secret@a/1", "AUTH secret SELECT 1 CLIENT"),
        ("redis://default:secret@a/1", "AUTH secret SELECT 1 CLIENT"),
        ("redis://me:secret@a/1", "AUTH me secret SELECT 1 CLIENT"),
    ] {
        let (bursts, outcome) = talk(url, &[&first, &[OK; 6]]);
        outcome.unwrap();
        assert!(bursts[1].starts_with(auth), "{bursts:?}");
        let invalid = ["-ERR invalid password\r\n", noauth[0], OK, OK, OK, OK];
        let (_, outcome) = talk(url, &[&first, &invalid]);
        assert_eq!(refused(outcome), "ERR invalid password");
    }
}

#[test]
fn wrong_or_missing_password_fails_with_the_servers_error() {
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let answers = [&[wrong][..], &["-NOAUTH x\r\n"; 4]].concat();
    let (_, outcome) = talk("redis://me:secret@a", &[&answers]);
    assert_eq!(refused(outcome), wrong[1..].trim());
    let missing = "-NOAUTH HELLO must be called with the client already authenticated\r\n";
    let (_, outcome) = talk("redis://a", &[&[missing; 5]]);
    assert_eq!(refused(outcome), missing[1..].trim());
}

#[test]
fn a_database_that_is_not_there_ends_it_in_the_servers_words() {
    for greeting in [HELLO, UNKNOWN] {
        let range = "-ERR DB index is out of range\r\n";
        let (_, outcome) = talk("redis://a/99", &[&[greeting, range, OK, OK, OK, OK]]);
        assert_eq!(refused(outcome), "ERR DB index is out of range");
    }
}

#[test]
fn no_error_shows_the_password() {
    let echo = "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `secret`\r\n";
    let auth = "-ERR what is 'secret'?\r\n";
    let (_, outcome) = talk("redis://:secret@a", &[&[echo; 5], &[auth; 5]]);
    assert_eq!(refused(outcome), "ERR what is '…'?");
}

#[test]
fn a_server_that_goes_away_or_talks_nonsense_is_an_error() {
    let (_, outcome) = talk("redis://a", &[&[HELLO, OK]]);
    assert!(
        matches!(outcome, Err(DialError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof)
    );
    for nonsense in ["HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x03\0\x02\x02\x46"] {
        let (_, outcome) = talk("redis://a", &[&[nonsense]]);
        let error = outcome.expect_err("no reply");
        assert!(error.text().contains("does the server expect TLS"), "{}", error.text());
    }
}

#[test]
fn pushes_in_between_do_not_count() {
    let push = ">2\r\n+x\r\n+y\r\n";
    let (_, outcome) = talk("redis://a", &[&[push, HELLO, OK, push, OK, OK, OK]]);
    outcome.unwrap();
}

#[test]
fn connection_to_a_server_too_busy_to_push_is_opened_later() {
    let busy = "-BUSY Redis is busy running a script.\r\n";
    let (_, outcome) = talk("redis://a", &[&[HELLO, busy, busy, busy, busy]]);
    assert_eq!(refused(outcome), busy[1..].trim());
    let (_, outcome) = talk("redis://a", &[&[HELLO, busy, busy, busy, OK]]);
    assert!(outcome.unwrap(), "it will push");
}

#[test]
fn a_server_that_refuses_and_closes_is_quoted() {
    let full = "-ERR max number of clients reached\r\n";
    for url in ["redis://a", "redis://me:secret@a/7"] {
        let (_, outcome) = talk(url, &[&[full]]);
        assert_eq!(refused(outcome), "ERR max number of clients reached");
    }
}

#[test]
fn a_server_that_closes_before_it_is_asked_is_quoted() {
    let endpoint: Endpoint = "redis://a".parse().unwrap();
    let (mut ours, mut theirs) = duplex(1 << 16);
    let denied = b"-DENIED Redis is running in protected mode\r\n";
    assert!(poll(pin!(theirs.write_all(denied))).is_ready());
    drop(theirs);
    let Poll::Ready(outcome) = poll(pin!(handshake(&mut ours, &endpoint, None))) else {
        panic!("the server has closed the connection")
    };
    let outcome = outcome.map(|(_, is_tracked)| is_tracked);
    assert_eq!(refused(outcome), "DENIED Redis is running in protected mode");
}
