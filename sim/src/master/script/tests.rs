//! What scripts may do, and what is said to those that may not.

use super::*;
use bytes::Bytes;

/// A server that knows three commands.
#[derive(Default)]
struct Stub {
    kept: Option<Vec<u8>>,
    asked: u32,
    patience: Option<u32>,
}

impl Caller for Stub {
    fn call(&mut self, arguments: &[&[u8]], _: Protocol) -> Value {
        match (arguments[0].to_ascii_lowercase().as_slice(), &arguments[1..]) {
            (b"set", [_, value]) => {
                self.kept = Some(value.to_vec());
                Value::ok()
            }
            (b"get", [_]) => self.kept.as_deref().map_or(Value::Null, Value::bulk),
            (b"get", _) => {
                Value::error("ERR Wrong number of args calling Redis command from script")
            }
            (b"echo", [word]) => Value::bulk(word),
            _ => Value::error("ERR Unknown Redis command called from script"),
        }
    }

    fn interrupt(&mut self) -> Option<String> {
        self.asked += 1;
        let patience = self.patience?;
        (self.asked > patience).then(|| String::from("ERR enough"))
    }
}

/// What a client of version 2 is sent.
fn sent(script: &str) -> String {
    let text = Bytes::copy_from_slice(script.as_bytes());
    let mut stub = Stub { patience: Some(10_000), ..Stub::default() };
    let reply = run(&text, &sha_of(&text), &[b"k"], &[b"a", b"b"], &REDIS_7_0, &mut stub);
    let mut out = Vec::new();
    reply.encode(Protocol::Resp2, &mut out);
    out.escape_ascii().to_string()
}

/// Scripts, and what a real server of this version sent for each (with the digits of the hash
/// left out).
const TRANSCRIPT: &str = include_str!("transcript.txt");

#[test]
fn scripts_are_answered_as_a_real_server_did() {
    let mut wrong = String::new();
    for exchange in TRANSCRIPT.split("\n---\n") {
        let (script, expected) = exchange.rsplit_once("\n> ").expect("a script and its answer");
        let text = Bytes::copy_from_slice(script.as_bytes());
        let sha = String::from_utf8(sha_of(&text).to_vec()).unwrap();
        let sent = sent(script).replace(&sha, "<sha>");
        if sent != expected.trim_end() {
            wrong.push_str(&format!("{script}\n  expected {expected}\n  sent     {sent}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
