//! Cost of a lock cycle on a master, from bytes to bytes: `SET NX PX`, then the release script by
//! its hash.
//!
//! `wire`: encoded requests are split and executed by a session, with the script in Lua, and the
//! replies are encoded, as in `turmoil` and `serve`. `script`: the release alone, without encoding.
//! `native`: the same cycle as in the `event` engine, without bytes and without Lua.

use core::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use redis_sim::profile::REDIS_7_0;
use redis_sim::resp::{Protocol, Requests, Value};
use redis_sim::script::sha_of;
use redis_sim::server::{Answer, Server, Session, Touched, Turn};
use redis_sim::{KeyCommand, Keyspace, Master, SetCondition, SetExpiry, Storage, Writer, run_id};

const RELEASE: &[u8] =
    b"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const KEY: &[u8] = b"resource";
const TOKEN: &[u8] = b"01234567890123456789";
const NOW_MS: u64 = 1_700_000_000_000;

fn encoded(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let words = words.iter().map(|word| Value::bulk(word)).collect();
    Value::Array(words).encode(Protocol::Resp2, &mut out);
    out
}

/// A server and a connection to it.
struct Node {
    server: Server,
    session: Session,
    touched: Vec<Touched>,
    requests: Requests,
}

impl Node {
    fn new() -> Self {
        let master = Master::new(Storage::default(), run_id(0, 0), NOW_MS);
        let server = Server::new(master, &REDIS_7_0);
        let (session, requests) = (Session::new(1), Requests::default());
        let mut node = Self { server, session, touched: Vec::new(), requests };
        let load = [&b"SCRIPT"[..], b"LOAD", RELEASE].map(Bytes::from_static);
        node.execute(&load);
        node
    }

    fn execute(&mut self, request: &[Bytes]) -> Value {
        self.touched.clear();
        let wall_ns = NOW_MS * 1_000_000;
        let turn = Turn { wall_ns, writer: Writer::Operator, touched: &mut self.touched };
        match self.session.execute(&mut self.server, request, turn) {
            Answer::Reply(value) => value,
            other => panic!("{other:?} is no answer to this"),
        }
    }

    /// Executes the requests in `bytes`, and appends the encoded replies to `out`.
    fn hear(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.requests.push(bytes);
        while let Some(request) = self.requests.next_request().expect("well-formed") {
            self.execute(&request).encode(self.session.protocol(), out);
        }
    }
}

fn cycles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lock cycle");
    group.throughput(Throughput::Elements(1));
    let sha = sha_of(RELEASE);
    let release = [&b"EVALSHA"[..], &sha, b"1", KEY, TOKEN];

    let cycle =
        [encoded(&[b"SET", KEY, TOKEN, b"NX", b"PX", b"30000"]), encoded(&release)].concat();
    let (mut node, mut out) = (Node::new(), Vec::new());
    group.bench_function("wire", |bencher| {
        bencher.iter(|| {
            out.clear();
            node.hear(&cycle, &mut out);
            assert_eq!(out, b"+OK\r\n:1\r\n");
        });
    });
    let release = release.map(Bytes::copy_from_slice);
    group.bench_function("script", |bencher| bencher.iter(|| node.execute(&release)));
    let mut keys = Keyspace::default();
    group.bench_function("native", |bencher| {
        bencher.iter(|| {
            let set = KeyCommand::Set {
                value: TOKEN,
                condition: SetCondition::Missing,
                expiry: SetExpiry::Px(30_000),
                get: false,
            };
            black_box(keys.execute(KEY, set, NOW_MS, Writer::Operator));
            let release = KeyCommand::CompareAndDelete { value: TOKEN };
            black_box(keys.execute(KEY, release, NOW_MS, Writer::Operator))
        });
    });
    group.finish();
}

criterion_group!(benches, cycles);
criterion_main!(benches);
