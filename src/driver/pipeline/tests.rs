//! Rules of the pipeline, one a test.

use core::time::Duration;

use redlock_protocol::{ResourceId, Token};

use super::*;

const RESOURCE: ResourceId = ResourceId(0);
const NOSCRIPT: Frame<'_> = Frame::Error(b"NOSCRIPT No matching script.");

/// A pipeline and its two ends.
#[derive(Default)]
struct Bench {
    pipeline: Pipeline,
    encoder: Encoder,
    outgoing: BytesMut,
    last_error: Option<Arc<str>>,
}

impl Bench {
    fn write(&mut self, op: Op) -> String {
        self.pipeline.write(op, b"name", &mut self.encoder, &mut self.outgoing);
        self.written()
    }

    /// Names of the commands written since the last call.
    fn written(&mut self) -> String {
        let written = self.outgoing.split().escape_ascii().to_string();
        let commands = ["DELEX", "DELIFEQ", "EVALSHA", "EVAL", "GET", "INFO", "SCRIPT", "SET"];
        let words = written.split(r"\r\n");
        words.filter(|word| commands.contains(word)).collect::<Vec<_>>().join(" ")
    }

    fn receive(&mut self, frame: Frame<'_>) -> Result<Vec<Reply>, Malformed> {
        let Self { pipeline, outgoing, last_error, .. } = self;
        let endpoint = "redis://locksmith:secret@a".parse().unwrap();
        let first = pipeline.receive(frame, |_| b"name", outgoing, &endpoint, last_error)?;
        let answered = core::iter::successors(first, |_| pipeline.take());
        Ok(answered.map(|(_, answer)| answer.reply).collect())
    }

    fn introduce(&mut self, version: &str) {
        assert_eq!(self.write(Op::Introduce), "EVALSHA");
        let run_id = "0a".repeat(20);
        let info =
            format!("{version}\r\nrun_id:{run_id}\r\nuptime_in_seconds:7\r\nrole:master\r\n");
        let replies = self.receive(Frame::Text(info.as_bytes())).unwrap();
        assert!(matches!(replies[..], [Reply::Introduction(it)] if it.uptime.as_secs() == 7));
    }
}

fn token(byte: u8) -> Token {
    Token::from_bytes([byte; 20])
}

fn set() -> Op {
    Op::Set { resource: RESOURCE, token: token(1), ttl: Duration::from_secs(1) }
}

fn release() -> Op {
    Op::Release { resource: RESOURCE, token: token(1) }
}

fn read() -> Op {
    Op::Read { resource: RESOURCE, token: token(1) }
}

fn extend() -> Op {
    Op::Extend { resource: RESOURCE, token: token(1), ttl: Duration::from_secs(1), plain: false }
}

#[test]
fn answers_are_handed_on_as_they_come() {
    let mut bench = Bench::default();
    assert_eq!(bench.write(set()), "SET");
    assert_eq!(bench.write(release()), "EVALSHA");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![Reply::Ok]));
    assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![Reply::Integer(1)]));
    assert_eq!(bench.receive(Frame::Ok), Err(Malformed), "nothing was asked");
}

#[test]
fn forgotten_script_is_sent_in_full_and_answered_in_order() {
    let mut bench = Bench::default();
    bench.write(release());
    bench.write(set());
    bench.write(extend());
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.written(), "EVAL");
    bench.write(set());
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "the first SET's, kept back");
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.written(), "EVAL");
    let replies = bench.receive(Frame::Integer(1));
    assert_eq!(replies, Ok(vec![Reply::Integer(1), Reply::Ok]), "the release's and the SET's");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "the second SET's");
    assert_eq!(bench.receive(Frame::Integer(0)), Ok(vec![Reply::Integer(0), Reply::Ok]));
    assert!(bench.last_error.is_none(), "nothing went wrong");
    assert_eq!(bench.write(release()), "EVALSHA", "the server knows it now");
}

#[test]
fn a_script_that_is_refused_in_full_is_an_error() {
    let mut bench = Bench::default();
    bench.write(release());
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![Reply::Error]));
}

#[test]
fn a_native_command_that_is_refused_gives_way_to_scripts() {
    for (version, native) in [("redis_version:8.4.0", "DELEX"), ("valkey_version:9.0.0", "DELIFEQ")]
    {
        let mut bench = Bench::default();
        bench.introduce(version);
        assert_eq!(bench.write(release()), native);
        assert_eq!(bench.write(extend()), "EVALSHA");
        assert_eq!(bench.receive(Frame::Error(b"NOPERM no")), Ok(vec![]));
        assert_eq!(bench.written(), "EVALSHA");
        assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![]), "the extension's");
        assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
        assert_eq!(bench.written(), "EVAL");
        let replies = bench.receive(Frame::Integer(0));
        assert_eq!(replies, Ok(vec![Reply::Integer(0), Reply::Integer(1)]));
        assert_eq!(bench.write(release()), "EVALSHA", "it is not tried again");
        bench.pipeline.clear();
        bench.introduce(version);
        assert_eq!(bench.write(release()), native, "but on the next connection");
    }
}

#[test]
fn a_plain_extension_is_answered_like_any_other() {
    let mut bench = Bench::default();
    bench.introduce("redis_version:8.4.0");
    let op = Op::Extend {
        resource: RESOURCE,
        token: token(1),
        ttl: Duration::from_secs(1),
        plain: true,
    };
    for (frame, number) in [(Frame::Ok, 1), (Frame::Nil, 0)] {
        assert_eq!(bench.write(op), "SET");
        assert_eq!(bench.receive(frame), Ok(vec![Reply::Integer(number)]));
    }
    bench.write(op);
    assert_eq!(bench.receive(Frame::Error(b"ERR syntax error")), Ok(vec![]));
    assert_eq!(bench.written(), "EVALSHA");
}

const REDIS_7: &str = "redis_version:7.0.15";

#[test]
fn refusal_without_a_value_asks_behind_the_written_commands() {
    let mut bench = Bench::default();
    assert_eq!(bench.write(set()), "SET");
    bench.write(set());
    assert_eq!(bench.receive(Frame::Nil), Ok(vec![]));
    assert_eq!(bench.written(), "GET");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "the second SET's, kept back");
    let held = Reply::Held(Holder::of(b"somebody"));
    assert_eq!(bench.receive(Frame::Text(b"somebody")), Ok(vec![held, Reply::Ok]));
    for (frame, reply) in [
        (Frame::Nil, Reply::Gone),
        (Frame::Error(b"NOPERM no GET"), Reply::Nil),
        (Frame::Error(b"WRONGTYPE a list"), Reply::Nil),
    ] {
        bench.write(set());
        assert_eq!(bench.receive(Frame::Nil), Ok(vec![]));
        assert_eq!(bench.receive(frame), Ok(vec![reply]), "{frame:?}");
    }
    assert!(bench.last_error.is_none(), "a refusal is no error");
}

#[test]
fn null_means_set_only_for_set_with_get() {
    let mut bench = Bench::default();
    bench.introduce(REDIS_7);
    bench.write(set());
    assert_eq!(bench.receive(Frame::Nil), Ok(vec![Reply::Ok]));
    bench.write(set());
    let held = Reply::Held(Holder::of(b"somebody"));
    assert_eq!(bench.receive(Frame::Text(b"somebody")), Ok(vec![held]));
    bench.write(set());
    assert_eq!(bench.receive(Frame::Error(b"WRONGTYPE a list")), Ok(vec![Reply::Nil]));
    bench.write(set());
    assert_eq!(bench.receive(Frame::Error(b"OOM command")), Ok(vec![Reply::Error]));
    bench.write(set());
    assert_eq!(bench.receive(Frame::Ok), Err(Malformed), "it passes over the last word");
}

#[test]
fn a_server_that_will_not_show_the_holder_is_asked_bare() {
    for refusal in [&b"NOPERM no"[..], b"ERR syntax error"] {
        let mut bench = Bench::default();
        bench.introduce(REDIS_7);
        bench.write(set());
        bench.write(set());
        assert_eq!(bench.receive(Frame::Error(refusal)), Ok(vec![]));
        assert_eq!(bench.receive(Frame::Error(refusal)), Ok(vec![]));
        assert_eq!(bench.written(), "SET SET");
        assert_eq!(bench.receive(Frame::Ok), Ok(vec![Reply::Ok]));
        assert_eq!(bench.receive(Frame::Nil), Ok(vec![]));
        assert_eq!(bench.written(), "GET");
        let held = Reply::Held(Holder::of(b"x"));
        assert_eq!(bench.receive(Frame::Text(b"x")), Ok(vec![held]));
        bench.write(set());
        assert_eq!(bench.receive(Frame::Ok), Ok(vec![Reply::Ok]), "it is not tried again");
        bench.pipeline.clear();
        bench.introduce(REDIS_7);
        bench.write(set());
        assert_eq!(bench.receive(Frame::Nil), Ok(vec![Reply::Ok]), "but afresh");
    }
}

#[test]
fn an_error_is_kept_without_token_user_and_password() {
    let mut bench = Bench::default();
    let text = [b"ERR \n", &token(1).as_bytes()[..]].concat();
    let user = b"NOPERM User locksmith (secret) has no permissions".to_vec();
    for (text, kept) in [(text, "ERR \\n…"), (user, "NOPERM User … (…) has no permissions")] {
        bench.write(set());
        assert_eq!(bench.receive(Frame::Error(&text)), Ok(vec![Reply::Error]));
        assert_eq!(bench.last_error.as_deref(), Some(kept));
    }
}

#[test]
fn an_error_that_repeats_itself_is_kept_once() {
    let mut bench = Bench::default();
    let mut errors = Vec::new();
    for _ in 0..2 {
        bench.write(set());
        bench.receive(Frame::Error(b"OOM command not allowed")).unwrap();
        errors.push(bench.last_error.clone().unwrap());
    }
    assert!(Arc::ptr_eq(&errors[0], &errors[1]));
}

#[test]
fn an_introduction_that_says_nothing_is_a_refusal() {
    let mut bench = Bench::default();
    bench.write(Op::Introduce);
    assert_eq!(bench.receive(Frame::Text(b"hello")), Ok(vec![Reply::Error]));
    assert!(bench.last_error.unwrap().contains("run_id"));
}

#[test]
fn a_server_that_has_just_started_is_taught_all_scripts_at_once() {
    let mut bench = Bench::default();
    bench.write(Op::Introduce);
    bench.write(set());
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.written(), "SCRIPT SCRIPT EVAL");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "the SET's, kept back");
    assert_eq!(bench.receive(Frame::Text(b"b998f9df")), Ok(vec![]));
    assert_eq!(bench.receive(Frame::Error(b"NOPERM no")), Ok(vec![]), "matters to nobody");
    assert_eq!(bench.receive(Frame::Text(b"hello")), Ok(vec![Reply::Error, Reply::Ok]));
    assert_eq!(bench.receive(Frame::Ok), Err(Malformed), "nothing was asked");
}

#[test]
fn server_without_scripts_is_asked_for_info_from_then_on() {
    let mut bench = Bench::default();
    bench.write(Op::Introduce);
    assert_eq!(bench.receive(Frame::Error(b"NOPERM no script")), Ok(vec![]));
    assert_eq!(bench.written(), "INFO");
    let info = format!("run_id:{}\r\nuptime_in_seconds:7\r\nrole:master\r\n", "0a".repeat(20));
    let replies = bench.receive(Frame::Text(info.as_bytes())).unwrap();
    assert!(matches!(replies[..], [Reply::Introduction(it)] if it.canary.is_none()));
    assert_eq!(bench.write(Op::Introduce), "INFO");
    assert!(bench.last_error.is_none());
}

#[test]
fn a_server_that_is_loading_refuses_every_command() {
    let mut bench = Bench::default();
    for op in [Op::Introduce, set(), release(), extend()] {
        for text in [&b"LOADING Redis"[..], b"MASTERDOWN Link", b"READONLY You can't"] {
            bench.write(op);
            assert_eq!(bench.receive(Frame::Error(text)), Ok(vec![Reply::NotServing]));
        }
    }
}

#[test]
fn an_unrequested_reply_is_malformed() {
    for frame in [Frame::Text(b"QUEUED"), Frame::Other] {
        let mut bench = Bench::default();
        bench.write(set());
        assert_eq!(bench.receive(frame), Err(Malformed));
    }
}

#[test]
fn a_read_compares_the_value_with_the_token() {
    let mut bench = Bench::default();
    for (frame, has_token) in [
        (Frame::Text(&[1; 20]), 1),
        (Frame::Text(&[2; 20]), 0),
        (Frame::Ok, 0),
        (Frame::Nil, 0),
        (Frame::Error(b"WRONGTYPE Operation against a key"), 0),
    ] {
        assert_eq!(bench.write(read()), "GET");
        assert_eq!(bench.receive(frame), Ok(vec![Reply::Integer(has_token)]));
    }
    bench.pipeline.set_tracked(true);
    assert_eq!(bench.write(read()), "GET");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "to `CLIENT CACHING`");
    assert_eq!(bench.receive(Frame::Text(&[1; 20])), Ok(vec![Reply::Registered(1)]));
    let mut bench = Bench::default();
    bench.write(read());
    assert_eq!(bench.receive(Frame::Integer(1)), Err(Malformed));
}

#[test]
fn only_a_refusal_ends_the_registration_of_keys() {
    for (error, registers) in [
        (Frame::Error(b"BUSY Redis is busy running a script."), true),
        (Frame::Error(b"ERR unknown subcommand"), false),
        (Frame::Error(b"NOPERM no permissions"), false),
    ] {
        let mut bench = Bench::default();
        bench.pipeline.set_tracked(true);
        bench.write(read());
        assert_eq!(bench.receive(error), Ok(vec![]), "to `CLIENT CACHING`");
        let replies = bench.receive(Frame::Text(&[1; 20]));
        assert_eq!(replies, Ok(vec![Reply::Integer(1)]), "nothing is registered");
        bench.write(read());
        if registers {
            assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "to `CLIENT CACHING`");
        }
        let reply = if registers { Reply::Registered(1) } else { Reply::Integer(1) };
        assert_eq!(bench.receive(Frame::Text(&[1; 20])), Ok(vec![reply]));
    }
}

#[test]
fn a_read_follows_a_command_that_is_written_again() {
    let mut bench = Bench::default();
    bench.pipeline.set_tracked(true);
    let of_another = Op::Read { resource: ResourceId(1), token: token(2) };
    assert_eq!(bench.write(extend()), "EVALSHA");
    assert_eq!(bench.write(read()), "GET");
    assert_eq!(bench.write(of_another), "GET");
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.written(), "EVAL");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "to `CLIENT CACHING`");
    assert_eq!(bench.receive(Frame::Text(&[1; 20])), Ok(vec![]), "read in front of the extension");
    assert_eq!(bench.written(), "GET");
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "to `CLIENT CACHING`");
    assert_eq!(bench.receive(Frame::Text(&[2; 20])), Ok(vec![]), "kept back");
    assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![Reply::Integer(1)]));
    assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "to `CLIENT CACHING`");
    let replies = bench.receive(Frame::Nil);
    assert_eq!(replies, Ok(vec![Reply::Registered(0), Reply::Registered(1)]));
    assert_eq!(bench.written(), "", "of another key");
    assert_eq!(bench.receive(Frame::Ok), Err(Malformed), "nothing was asked");
}

#[test]
fn a_read_follows_as_often_as_the_command_is_written_again() {
    let mut bench = Bench::default();
    bench.introduce("redis_version:8.4.0");
    assert_eq!(bench.write(release()), "DELEX");
    assert_eq!(bench.write(read()), "GET");
    assert_eq!(bench.receive(Frame::Error(b"NOPERM no")), Ok(vec![]));
    assert_eq!(bench.written(), "EVALSHA");
    assert_eq!(bench.receive(Frame::Text(&[1; 20])), Ok(vec![]));
    assert_eq!(bench.written(), "GET");
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.written(), "EVAL");
    assert_eq!(bench.receive(Frame::Text(&[1; 20])), Ok(vec![]));
    assert_eq!(bench.written(), "GET");
    assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![Reply::Integer(1)]));
    assert_eq!(bench.receive(Frame::Nil), Ok(vec![Reply::Integer(0)]));
}

#[test]
fn a_look_follows_a_release_but_not_a_refused_set() {
    let look = Op::Look { resource: RESOURCE, token: token(1) };
    let mut bench = Bench::default();
    bench.write(release());
    bench.write(look);
    assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
    assert_eq!(bench.receive(Frame::Integer(9_000)), Ok(vec![]), "in front of the release");
    assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![Reply::Integer(1)]));
    assert_eq!(bench.receive(Frame::Integer(-2)), Ok(vec![Reply::Integer(-2)]));
    bench.write(set());
    bench.write(look);
    assert_eq!(bench.receive(Frame::Nil), Ok(vec![]));
    assert_eq!(bench.written(), "GET", "the SET changes nothing any more");
    assert_eq!(bench.receive(Frame::Integer(9_000)), Ok(vec![]), "kept back");
    let held = Reply::Held(Holder::of(b"somebody"));
    let replies = bench.receive(Frame::Text(b"somebody"));
    assert_eq!(replies, Ok(vec![held, Reply::Integer(9_000)]));
}
