//! Throughput of a served master on one core, and a check that masters serve for a minute without
//! error.
//!
//! `cargo bench -p redlock-sim --bench serve [-- SECONDS]`: first `SET NX PX`, 16 in a pipeline, on
//! four connections, with the master's threads on their own core if there are two; then the same on
//! fifty connections to five masters for SECONDS (60).

#![expect(clippy::disallowed_methods, reason = "real time and real sockets are measured")]
#![expect(clippy::disallowed_types, reason = "real time and real sockets are measured")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lock_judge::scenario::{Case, Scenario};
use redis_sim::profile::REDIS_7_0;
use redlock_sim::serve::{Fleet, Setup};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Requests in a pipeline.
const PIPELINE: usize = 16;

/// Encoded replies: `+OK` and a null.
const ANSWERS: [&[u8]; 2] = [b"+OK\r\n", b"$-1\r\n"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` passes no `--bench` and only checks that the program runs.
    let is_test = !arguments.iter().any(|it| it == "--bench");
    let asked = arguments.iter().find_map(|it| it.parse().ok());
    let seconds = asked.unwrap_or(if is_test { 1 } else { 60 });
    let cores = sched_getaffinity(None).expect("the affinity of this process");
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| cores.is_set(core)).collect();

    pin(&all[..1]);
    let fleet = fleet(1);
    pin(if all.len() > 1 { &all[1..] } else { &all });
    let shared = if all.len() > 1 { "" } else { ", which it shares with its clients" };
    let requests = load(&fleet.addresses(), 4, Duration::from_secs(seconds.min(10)));
    println!(
        "one master on one core{shared}: {requests} SET NX PX a second, {PIPELINE} in a pipeline"
    );
    drop(fleet);

    pin(&all);
    let fleet = self::fleet(5);
    let requests = load(&fleet.addresses(), 50, Duration::from_secs(seconds));
    println!("five masters, 50 connections, {seconds} s: {requests} a second, no error");
}

fn pin(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    sched_setaffinity(None, &set).expect("cores of our own");
}

fn fleet(nodes: usize) -> Fleet {
    let text = "schema = 1\nname = \"load\"\ntitle = \"Load\"\n";
    let mut scenario: Scenario = toml::from_str(text).expect("a scenario");
    scenario.cluster.nodes.truncate(nodes);
    scenario.cluster.network.delay = "0ms".parse().expect("a span");
    let setup = Setup {
        case: Case { slug: None, name: None, scenario, overrides: Vec::new() },
        seed: 0,
        base_port: 0,
        observer_port: 0,
        profile: &REDIS_7_0,
        waits_for_start: false,
        owns_workers: false,
        describe: |_| Vec::new(),
        out: std::path::PathBuf::new(),
    };
    Fleet::start(&setup).expect("free ports")
}

/// Runs `connections` clients for `time`. Returns the number of answered requests per second.
fn load(addresses: &[SocketAddr], connections: usize, time: Duration) -> u64 {
    let began = Instant::now();
    let clients = (0..connections).map(|number| {
        let address = addresses[number % addresses.len()];
        thread::spawn(move || client(address, number, time))
    });
    let clients: Vec<_> = clients.collect();
    let done: u64 = clients.into_iter().map(|client| client.join().expect("no error")).sum();
    done * 1_000 / u64::try_from(began.elapsed().as_millis()).expect("a short run")
}

fn client(address: SocketAddr, number: usize, time: Duration) -> u64 {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let began = Instant::now();
    let (mut done, mut requests) = (0, Vec::new());
    let mut answers = [0; PIPELINE * 5];
    while began.elapsed() < time {
        requests.clear();
        for _ in 0..PIPELINE {
            // Keys expire and are set again; some thousands exist at a time.
            let key = format!("{number}:{}", done % 4_096);
            let token = "0123456789abcdef0123";
            let length = key.len();
            write!(
                requests,
                "*6\r\n$3\r\nSET\r\n${length}\r\n{key}\r\n$20\r\n{token}\r\n$2\r\nNX\r\n$2\r\nPX\r\n$3\r\n100\r\n"
            )
            .expect("memory");
            done += 1;
        }
        stream.write_all(&requests).expect("the master reads");
        stream.read_exact(&mut answers).expect("the master answers");
        assert!(answers.chunks(5).all(|it| ANSWERS.contains(&it)), "an error");
    }
    done
}
