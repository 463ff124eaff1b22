use proptest::prelude::*;

use super::*;

/// Returns all requests parsed from `pieces`, and the error at the end, if any.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Request>, Option<ProtocolError>) {
    let (mut requests, mut read) = (Requests::default(), Vec::new());
    for piece in pieces {
        requests.push(piece);
        loop {
            match requests.next_request() {
                Ok(Some(request)) => read.push(request),
                Ok(None) => break,
                Err(error) => return (read, Some(error)),
            }
        }
    }
    (read, None)
}

fn said(bytes: &[u8]) -> Option<String> {
    read([bytes].into_iter()).1.map(|error| error.to_string())
}

#[test]
fn malformed_requests_get_the_errors_of_redis() {
    let table: [(&[u8], &str); 8] = [
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*x\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"set \"a\r\n", "unbalanced quotes in request"),
        (&[b'a'; 65_537], "too big inline request"),
        (&[b'*'; 65_537], "too big mbulk count string"),
    ];
    for (bytes, error) in table {
        assert_eq!(said(bytes), Some(format!("ERR Protocol error: {error}")));
    }
}

#[test]
fn nothing_is_asked_by_empty_requests() {
    let (requests, error) = read([b"*0\r\n*-1\r\n\r\nPING\r\n".as_slice()].into_iter());
    assert_eq!((requests, error), (vec![vec!["PING".into()]], None));
}

#[test]
fn a_count_that_is_announced_takes_no_memory() {
    assert_eq!(said(b"*2147483647\r\n$1\r\na\r\n"), None);
}

#[test]
fn an_unauthenticated_connection_may_not_send_much() {
    for (bytes, error) in [
        (b"*11\r\n".as_slice(), "unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", "unauthenticated bulk length"),
    ] {
        let mut requests = Requests::default();
        requests.set_unauthenticated(true);
        requests.push(bytes);
        assert_eq!(requests.next_request(), Err(ProtocolError(error.into())));
    }
}

#[test]
fn ends_of_lines_in_errors_and_words_are_sent_as_spaces() {
    let table: [(Value, &[u8]); 2] =
        [(Value::error("ERR a\r\nb"), b"-ERR a  b\r\n"), (Value::simple("a\nb"), b"+a b\r\n")];
    for (value, expected) in table {
        let mut out = Vec::new();
        value.encode(Protocol::Resp2, &mut out);
        assert_eq!(out, expected);
    }
}

proptest! {
    #[test]
    fn requests_are_the_same_however_they_are_split(
        requests in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 1..6), 1..6),
        cut in 1..40_usize,
    ) {
        let mut bytes = Vec::new();
        for request in &requests {
            bytes.extend(format!("*{}\r\n", request.len()).into_bytes());
            for word in request {
                bytes.extend(format!("${}\r\n", word.len()).into_bytes());
                bytes.extend(word);
                bytes.extend(b"\r\n");
            }
        }
        let (read, error) = read(bytes.chunks(cut));
        prop_assert_eq!(error, None);
        let expected: Vec<Request> = requests
            .into_iter()
            .map(|request| request.into_iter().map(bytes::Bytes::from).collect())
            .collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn arbitrary_bytes_mean_the_same_however_they_are_split(
        bytes in prop::collection::vec(
            prop_oneof![3 => prop::sample::select(b"*$\r\n0123\"' a".to_vec()), 1 => any::<u8>()], 0..200),
        cut in 1..20_usize,
    ) {
        prop_assert_eq!(read(bytes.chunks(cut)), read(core::iter::once(&*bytes)));
    }
}

#[test]
fn the_memory_of_a_long_argument_goes_with_its_request() {
    const LENGTH: usize = 1 << 20;
    let mut requests = Requests::default();
    requests.push(format!("*1\r\n${LENGTH}\r\n").as_bytes());
    for _ in 0..16 {
        requests.push(&[b'x'; LENGTH / 16]);
    }
    requests.push(b"\r\n*1\r\n$4\r\nPI");
    let request = requests.next_request().expect("well-formed").expect("whole");
    let argument = request.into_iter().next().expect("an argument");
    assert!(argument.is_unique(), "nobody else keeps the buffer");
    requests.push(b"NG\r\n");
    let next = requests.next_request().expect("well-formed").expect("whole");
    assert_eq!(next, [bytes::Bytes::from_static(b"PING")]);
}
