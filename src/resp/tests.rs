use core::time::Duration;

use super::*;
use crate::protocol::{ResourceId, Token};

const RESOURCE: ResourceId = ResourceId(0);

fn decoder() -> Decoder {
    Decoder { introduced: true, ..Decoder::default() }
}

fn all(bytes: &[u8]) -> Result<Vec<Reply>, Malformed> {
    let mut decoder = decoder();
    decoder.push(bytes);
    core::iter::from_fn(|| decoder.next().transpose()).collect()
}

#[test]
fn a_set_carries_binary_keys_and_tokens() {
    let mut buffer = BytesMut::new();
    let token = Token::from_bytes(*b"\r\n\0\xff$*1234567890abcd");
    let op = Op::Set { resource: RESOURCE, token, ttl: Duration::from_millis(12_345) };
    encode(&mut buffer, &op, b"a\r\nb");
    let expected = b"*6\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$20\r\n\r\n\0\xff$*1234567890abcd\r\n\
        $2\r\nNX\r\n$2\r\nPX\r\n$5\r\n12345\r\n";
    assert_eq!(buffer[..], expected[..]);
}

#[test]
fn a_release_compares_before_it_deletes() {
    let mut buffer = BytesMut::from(&b"before"[..]);
    let token = Token::from_bytes([b't'; 20]);
    encode(&mut buffer, &Op::Release { resource: RESOURCE, token }, b"res");
    let script = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) \
        else return 0 end";
    let expected = format!(
        "before*5\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n1\r\n$3\r\nres\r\n$20\r\n{}\r\n",
        script.len(),
        "t".repeat(20)
    );
    assert_eq!(buffer[..], *expected.as_bytes());
}

#[test]
fn replies_are_told_apart() {
    let replies = all(b"+OK\r\n$-1\r\n:1\r\n:-3\r\n-NOSCRIPT no\r\n").unwrap();
    let expected = [Reply::Ok, Reply::Nil, Reply::Integer(1), Reply::Integer(-3), Reply::Error];
    assert_eq!(replies, expected);
}

#[test]
fn what_nobody_asked_for_is_malformed() {
    for bytes in [
        &b"+QUEUED\r\n"[..],
        b"$2\r\nhi\r\n",
        b"$2\r\nhixx",
        b"*1\r\n:1\r\n",
        b":x\r\n",
        b"\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$-2\r\n",
        b"$+1\r\n",
        b"*12345678\r\n",
    ] {
        assert_eq!(all(bytes), Err(Malformed), "{}", bytes.escape_ascii());
    }
}

#[test]
fn only_the_first_reply_of_a_connection_introduces() {
    let info = format!("run_id:{}\r\nuptime_in_seconds:7\r\nrole:master\r\n", "0a".repeat(20));
    let frame = format!("${}\r\n{info}\r\n", info.len());
    let mut decoder = Decoder::default();
    decoder.push(frame.as_bytes());
    let first = decoder.next().unwrap();
    assert!(matches!(first, Some(Reply::Introduction(it)) if it.uptime.as_secs() == 7));
    decoder.push(frame.as_bytes());
    assert_eq!(decoder.next(), Err(Malformed));
}

#[test]
fn an_introduction_that_says_nothing_is_a_refusal() {
    let mut decoder = Decoder::default();
    decoder.push(b"$5\r\nhello\r\n");
    assert_eq!(decoder.next(), Ok(Some(Reply::Error)));
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    let bytes = b"+OK\r\n:1\r\n-ERR x\r\n$-1\r\n";
    for split in 0..=bytes.len() {
        let mut decoder = decoder();
        let mut replies = Vec::new();
        for part in [&bytes[..split], &bytes[split..]] {
            decoder.push(part);
            while let Some(reply) = decoder.next().unwrap() {
                replies.push(reply);
            }
        }
        assert_eq!(replies, [Reply::Ok, Reply::Integer(1), Reply::Error, Reply::Nil], "{split}");
    }
}

#[test]
fn nesting_is_bounded_before_it_is_complete() {
    let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert!(scan(&nested(DEPTH_MAX)).unwrap().is_some());
    assert_eq!(scan(&nested(DEPTH_MAX + 1)), Err(Malformed));
    assert_eq!(scan(&b"*1\r\n".repeat(10_000)), Err(Malformed));
}

#[test]
fn elements_are_bounded_over_all_arrays() {
    let flat =
        |count: usize| [format!("*{count}\r\n").into_bytes(), b":1\r\n".repeat(count)].concat();
    assert!(scan(&flat(ELEMENTS_MAX)).unwrap().is_some());
    assert_eq!(scan(&flat(ELEMENTS_MAX + 1)), Err(Malformed));
    let two = [b"*2\r\n".to_vec(), flat(ELEMENTS_MAX / 2), flat(ELEMENTS_MAX / 2)].concat();
    assert_eq!(scan(&two), Err(Malformed));
}

#[test]
fn length_is_bounded_by_the_header_and_without_one() {
    assert_eq!(scan(format!("${}\r\n", FRAME_MAX + 1).as_bytes()), Err(Malformed));
    assert_eq!(scan(format!("${FRAME_MAX}\r\n").as_bytes()), Err(Malformed));
    assert_eq!(scan(&[b"+".to_vec(), vec![b'x'; FRAME_MAX]].concat()), Err(Malformed));
    assert_eq!(scan(&[b"+".to_vec(), vec![b'x'; FRAME_MAX - 3]].concat()), Ok(None));
}

#[test]
fn an_empty_array_and_a_null_array_are_complete() {
    assert_eq!(scan(b"*0\r\n"), Ok(Some(4)));
    assert_eq!(scan(b"*-1\r\n"), Ok(Some(5)));
    assert_eq!(scan(b"*2\r\n*0\r\n$-1\r\n+"), Ok(Some(13)));
}
