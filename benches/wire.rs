//! What a lock cycle costs a master byte by byte: `SET NX PX`, then the release script by its hash.
//!
//! `wire`: encoded requests are parsed and executed, the script in Lua, and the replies are encoded.
//! `native`: the same cycle as the `event` engine has it, without bytes and without Lua.

use core::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use redlock_client::scripts::RELEASE;
use redlock_sim::history::Writer;
use redlock_sim::master::resp::{Protocol, Requests, Value};
use redlock_sim::master::script::{Caller, REDIS_7_0, run, sha_of};
use redlock_sim::master::{KeyCommand, Keyspace, Reply, SetCondition, SetExpiry};

const KEY: &[u8] = b"resource";
const TOKEN: &[u8] = b"01234567890123456789";
const NOW_MS: u64 = 1_700_000_000_000;

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend_from_slice(word);
        out.extend(b"\r\n");
    }
    out
}

const SET: KeyCommand<'_> = KeyCommand::Set {
    value: TOKEN,
    condition: SetCondition::Missing,
    expiry: SetExpiry::Px(30_000),
    get: false,
};

/// A keyspace that a script reaches.
struct Node(Keyspace);

impl Node {
    fn ask(&mut self, key: &[u8], command: KeyCommand<'_>) -> Value {
        match self.0.execute(key, command, NOW_MS, Writer::Operator).reply {
            Reply::Bulk(bytes) => Value::bulk(&bytes),
            Reply::Integer(number) => Value::Integer(number),
            Reply::Ok => Value::ok(),
            _ => Value::Null,
        }
    }
}

impl Caller for Node {
    fn call(&mut self, arguments: &[&[u8]], _: Protocol) -> Value {
        let command = if arguments[0] == b"get" { KeyCommand::Get } else { KeyCommand::Del };
        self.ask(arguments[1], command)
    }

    fn interrupt(&mut self) -> Option<String> {
        None
    }
}

fn cycles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lock cycle");
    group.throughput(Throughput::Elements(1));
    let script = Bytes::from_static(RELEASE);
    let sha = sha_of(&script);

    let set = request(&[b"SET", KEY, TOKEN, b"NX", b"PX", b"30000"]);
    let release = request(&[b"EVALSHA", &sha, b"1", KEY, TOKEN]);
    let (mut node, mut requests, mut out) =
        (Node(Keyspace::default()), Requests::default(), vec![]);
    group.bench_function("wire", |bencher| {
        bencher.iter(|| {
            out.clear();
            requests.push(&set);
            let words = requests.next_request().unwrap().expect("a whole request");
            node.ask(&words[1], SET).encode(Protocol::Resp2, &mut out);
            requests.push(&release);
            let words = requests.next_request().unwrap().expect("a whole request");
            let (keys, arguments) = ([&words[3][..]], [&words[4][..]]);
            run(&script, &sha, &keys, &arguments, &REDIS_7_0, &mut node)
                .encode(Protocol::Resp2, &mut out);
            assert_eq!(out, b"+OK\r\n:1\r\n");
        });
    });
    group.bench_function("script", |bencher| {
        bencher.iter(|| run(&script, &sha, &[KEY], &[TOKEN], &REDIS_7_0, &mut node));
    });
    let mut keys = Keyspace::default();
    group.bench_function("native", |bencher| {
        bencher.iter(|| {
            black_box(keys.execute(KEY, SET, NOW_MS, Writer::Operator));
            let release = KeyCommand::CompareAndDelete { value: TOKEN };
            black_box(keys.execute(KEY, release, NOW_MS, Writer::Operator))
        });
    });
    group.finish();
}

criterion_group!(benches, cycles);
criterion_main!(benches);
