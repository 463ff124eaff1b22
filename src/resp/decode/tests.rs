use proptest::prelude::*;

use super::super::scan::{FRAME_MAX, KEPT};
use super::*;

/// An owned [`Frame`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Error(Vec<u8>),
    KeysFlushed,
    KeysChanged(Vec<Vec<u8>>),
    Integer(i64),
    Nil,
    Ok,
    Text(Vec<u8>),
    Other,
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Error(text) => Self::Error(text.to_vec()),
            Frame::KeysFlushed => Self::KeysFlushed,
            Frame::KeysChanged(push) => {
                Self::KeysChanged(push.keys().map(<[u8]>::to_vec).collect())
            }
            Frame::Integer(number) => Self::Integer(number),
            Frame::Nil => Self::Nil,
            Frame::Ok => Self::Ok,
            Frame::Text(text) => Self::Text(text.to_vec()),
            Frame::Many(_) | Frame::Other => Self::Other,
        }
    }
}

/// Returns all replies until the end or an error, and true if there was an error. Asserts that the
/// buffer stays bounded.
fn decode<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Owned>, bool) {
    let mut decoder = Decoder::default();
    let mut replies = Vec::new();
    for part in parts {
        decoder.room().extend_from_slice(part);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => replies.push(Owned::from(frame)),
                Ok(None) => break,
                Err(Malformed) => return (replies, true),
            }
        }
        assert!(decoder.buffer.len() <= FRAME_MAX, "no more than a frame is kept");
    }
    (replies, false)
}

fn all(bytes: &[u8]) -> Vec<Owned> {
    let (replies, failed) = decode([bytes]);
    assert!(!failed, "{}", bytes.escape_ascii());
    replies
}

fn text(text: &str) -> Owned {
    Owned::Text(text.as_bytes().to_vec())
}

fn error(text: &str) -> Owned {
    Owned::Error(text.as_bytes().to_vec())
}

#[test]
fn replies_of_version_2_are_distinguished() {
    let replies =
        all(b"+OK\r\n$-1\r\n:1\r\n:-3\r\n-NOSCRIPT no\r\n$2\r\nhi\r\n+PONG\r\n*-1\r\n*0\r\n");
    let expected = [
        Owned::Ok,
        Owned::Nil,
        Owned::Integer(1),
        Owned::Integer(-3),
        error("NOSCRIPT no"),
        text("hi"),
        text("PONG"),
        Owned::Nil,
        Owned::Other,
    ];
    assert_eq!(replies, expected);
}

#[test]
fn replies_of_version_3_are_distinguished() {
    let others = b"#t\r\n,1.5\r\n,inf\r\n(123456789012345678901234567890\r\n%1\r\n+a\r\n:1\r\n\
        ~1\r\n:1\r\n*2\r\n_\r\n|1\r\n+a\r\n:1\r\n:2\r\n";
    assert_eq!(all(others), vec![Owned::Other; 7]);
    let replies = all(b"_\r\n!9\r\nERR a\r\nbc\r\n=6\r\ntxt:hi\r\n:9223372036854775807\r\n");
    let expected = [Owned::Nil, error("ERR a\r\nbc"), text("hi"), Owned::Integer(i64::MAX)];
    assert_eq!(replies, expected);
}

#[test]
fn pushes_and_attributes_answer_nothing() {
    let bytes =
        b">2\r\n+invalidate\r\n*1\r\n+key\r\n+OK\r\n|1\r\n+ttl\r\n:3600\r\n:1\r\n>0\r\n|0\r\n";
    assert_eq!(all(bytes), [Owned::Ok, Owned::Integer(1)]);
}

#[test]
fn bytes_outside_of_resp_are_malformed() {
    for bytes in [
        &b"$2\r\nhixx"[..],
        b":x\r\n",
        b":\r\n",
        b":9223372036854775808\r\n",
        b"\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$-2\r\n",
        b"$+1\r\n",
        b"$\r\n",
        b"*12345678\r\n",
        b"_x\r\n",
        b"#x\r\n",
        b",x\r\n",
        b"=2\r\nhi\r\n",
        b"*?\r\n",
    ] {
        assert_eq!(decode([bytes]), (vec![], true), "{}", bytes.escape_ascii());
    }
}

/// Generates any frame that a server can send.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let line = "[ -~]{0,20}";
    let leaf = prop_oneof![
        Just(b"+OK\r\n".to_vec()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"_\r\n".to_vec()),
        Just(b"#f\r\n".to_vec()),
        Just(b",-1.25\r\n".to_vec()),
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        line.prop_map(|line| format!("+{line}\r\n").into_bytes()),
        line.prop_map(|line| format!("-ERR {line}\r\n").into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(|body| [
            format!("${}\r\n", body.len()).as_bytes(),
            &body,
            b"\r\n"
        ]
        .concat()),
        line.prop_map(|line| format!("={}\r\ntxt:{line}\r\n", line.len() + 4).into_bytes()),
    ];
    leaf.prop_recursive(5, 40, 6, |inside| {
        let kind = prop_oneof![Just(b'*'), Just(b'%'), Just(b'>'), Just(b'|'), Just(b'~')];
        (kind, proptest::collection::vec(inside, 0..6)).prop_map(|(kind, inside)| {
            let pairs = matches!(kind, b'%' | b'|');
            let inside = &inside[..if pairs { inside.len() & !1 } else { inside.len() }];
            let count = if pairs { inside.len() / 2 } else { inside.len() };
            let header = format!("{}{count}\r\n", char::from(kind)).into_bytes();
            [header, inside.concat()].concat()
        })
    })
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(frames(), 0..8).prop_map(|frames| frames.concat())
}

/// Generates bytes that mostly look like frames.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => proptest::sample::select(&b"+-:$*_#,(!=%~>|\r\n0123456789?H;."[..]),
        1 => any::<u8>(),
    ];
    proptest::collection::vec(byte, 0..400)
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let cuts = proptest::option::of(any::<prop::sample::Index>());
    (streams(), changes, cuts).prop_map(|(mut stream, changes, cut)| {
        for (place, byte) in changes {
            if !stream.is_empty() {
                let place = place.index(stream.len());
                stream[place] = byte;
            }
        }
        if let Some(cut) = cut {
            stream.truncate(cut.index(stream.len() + 1));
        }
        stream
    })
}

/// Asserts that the replies and the error do not depend on how `bytes` are split.
fn splits_change_nothing(bytes: &[u8], cuts: &[prop::sample::Index]) {
    let whole = decode([bytes]);
    assert_eq!(decode(bytes.chunks(1)), whole);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    assert_eq!(decode(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), whole);
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap();
    thread.join().unwrap();
}

proptest! {
    #[test]
    fn noise_gives_replies_or_an_error_whatever_the_split(
        bytes in noise(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        on_a_small_stack(move || splits_change_nothing(&bytes, &cuts));
    }

    #[test]
    fn damaged_replies_give_replies_or_an_error_whatever_the_split(
        bytes in mutated(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        on_a_small_stack(move || splits_change_nothing(&bytes, &cuts));
    }
}

#[test]
fn the_deepest_frame_fits_a_small_stack() {
    on_a_small_stack(|| {
        for kind in ["*1\r\n", "%1\r\n+a\r\n", "~1\r\n"] {
            let nested = [kind.repeat(8).into_bytes(), b":1\r\n".to_vec()].concat();
            // Elements of a set and keys of a map must be hashable: the outcome may be an error or
            // not.
            decode([&nested[..]]);
        }
    });
}

#[test]
fn a_long_frame_byte_by_byte_is_not_searched_again_and_again() {
    let long = [b"+".to_vec(), vec![b'x'; FRAME_MAX - 3], b"\r\n".to_vec()].concat();
    assert_eq!(decode(long.chunks(1)).0.len(), 1);
    let blob = [b"$65000\r\n".to_vec(), vec![b'\r'; 65_000], b"\r\n".to_vec()].concat();
    assert_eq!(decode(blob.chunks(1)).0.len(), 1);
}

/// A key of the application can have the name of a lock, and any value.
#[test]
fn a_string_of_any_length_is_one_reply() {
    for (head, skipped) in [("$", ""), ("=", "txt:")] {
        let body = [skipped.as_bytes(), &vec![b'\r'; 200_000]].concat();
        let long =
            [format!("{head}{}\r\n", body.len()).into_bytes(), body, b"\r\n".to_vec()].concat();
        let bytes =
            [b":1\r\n".to_vec(), long.clone(), b":2\r\n".to_vec(), long, b"+OK\r\n".to_vec()]
                .concat();
        for chunk in [1, 7, 4_096, bytes.len()] {
            let (replies, failed) = decode(bytes.chunks(chunk));
            assert!(!failed);
            let [
                Owned::Integer(1),
                Owned::Text(first),
                Owned::Integer(2),
                Owned::Text(_),
                Owned::Ok,
            ] = &replies[..]
            else {
                panic!("{} replies by {chunk} bytes", replies.len())
            };
            assert!((KEPT - 20..KEPT).contains(&first.len()), "{}", first.len());
            assert!(first.iter().all(|byte| *byte == b'\r'));
        }
    }
    let broken = [b"$200000\r\n".to_vec(), vec![b'x'; 200_002], b":1\r\n".to_vec()].concat();
    assert!(decode(broken.chunks(4_096)).1, "no line break ends the string");
}

#[test]
fn only_pushes_that_invalidate_keys_are_reported() {
    let gone = b">2\r\n$10\r\ninvalidate\r\n_\r\n";
    let one = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    let other = b">2\r\n$7\r\nmessage\r\n_\r\n";
    let bytes = [&b"+OK\r\n"[..], gone, one, b":1\r\n", other, gone].concat();
    let changed = Owned::KeysChanged(vec![b"k".to_vec()]);
    let gone = Owned::KeysFlushed;
    assert_eq!(all(&bytes), [Owned::Ok, gone.clone(), changed, Owned::Integer(1), gone]);
}

#[test]
fn a_push_names_the_keys_that_have_changed() {
    let push = |keys: &str| format!(">2\r\n$10\r\ninvalidate\r\n{keys}:1\r\n");
    let one = |keys: &str| match &all(push(keys).as_bytes())[..] {
        [Owned::KeysChanged(keys), Owned::Integer(1)] => keys.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(one("*1\r\n$3\r\nres\r\n"), [b"res"]);
    assert_eq!(one("*2\r\n$2\r\n\r\n\r\n$0\r\n\r\n"), [&b"\r\n"[..], b""]);
    assert_eq!(one("*0\r\n"), [[0; 0]; 0]);
    assert_eq!(one("*2\r\n:7\r\n$3\r\nres\r\n"), [[0; 0]; 0], "nonsense names no key");
    assert_eq!(one("*2\r\n$3\r\nres\r\n$-1\r\n"), [b"res"]);
    assert_eq!(all(push("+all\r\n").as_bytes()), [Owned::Integer(1)]);
}
