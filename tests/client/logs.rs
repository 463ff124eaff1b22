//! Events and spans that a client writes to `tracing`.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::Once;

use redlock_client::{KeepAlive, LostReason, Redlock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::node::Habit;
use crate::world::{MS, SECOND, World};

thread_local! {
    /// Level that this thread logs at, and the lines logged so far.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

struct Log {
    level: Level,
    lines: Vec<String>,
}

/// The only subscriber of the process. `tracing` caches the interest of subscribers for all
/// threads, so tests that install their own subscribers disturb each other.
struct Logs;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.0, " {value:?};"),
            name => write!(self.0, " {name}={value:?}"),
        }
        .unwrap();
    }
}

impl Subscriber for Logs {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        LOG.with_borrow(|log| log.as_ref().is_some_and(|log| *metadata.level() <= log.level))
            && metadata.target().starts_with("redlock_client")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert_eq!(event.metadata().target(), "redlock_client", "one target for all");
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LOG.with_borrow_mut(|log| log.as_mut().unwrap().lines.push(line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn logged(level: Level, act: impl FnOnce(&World, Redlock)) -> String {
    logged_in(level, |world| {
        let nodes = ["a", "b", "c"].map(|it| format!("redis://someone:secret@{it}"));
        let redlock = world.builder().nodes(nodes).build().unwrap();
        act(world, redlock);
    })
}

/// Returns the lines that the clients of a world log while `act` runs.
pub(crate) fn logged_in(level: Level, act: impl FnOnce(&World)) -> String {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Logs).unwrap());
    LOG.set(Some(Log { level, lines: Vec::new() }));
    act(&World::new());
    LOG.take().unwrap().lines.join("\n")
}

#[test]
fn a_course_without_faults_warns_of_nothing() {
    let lines = logged(Level::INFO, |world, redlock| {
        let lease = world.block_on(redlock.acquire("res")).unwrap();
        world.block_on(lease.release());
        drop(redlock);
        world.settle();
        assert_eq!(world.tasks(), 0);
    });
    assert_eq!(lines, "");
}

#[test]
fn seldom_meant_settings_are_warned_of_at_build() {
    let lines = logged_in(Level::WARN, |world| {
        let builder = world.builder().nodes(["redis://a", "redis://b"]);
        builder.fleet_max_ttl(3_600 * SECOND).build().unwrap();
    });
    let lines: Vec<_> = lines.lines().collect();
    assert!(
        lines[0].contains("an even number of nodes") && lines[0].contains("nodes=2"),
        "{lines:?}"
    );
    assert!(lines[1].contains("a long fleet_max_ttl") && lines.len() == 2, "{lines:?}");
    let harmless = logged_in(Level::WARN, |world| {
        world.builder().fleet_max_ttl(3_599 * SECOND).build().unwrap();
    });
    assert_eq!(harmless, "");
}

#[test]
fn two_nodes_that_are_one_server_are_warned_of_once() {
    let lines = logged(Level::WARN, |world, redlock| {
        world.node("b", |node| node.run = b'a');
        for _ in 0..3 {
            let lease = world.block_on(redlock.acquire("res")).unwrap();
            world.block_on(lease.release());
            world.pass(2 * SECOND);
        }
    });
    assert!(lines.contains("two nodes are the same server"), "{lines}");
    assert_eq!(lines.lines().count(), 1, "{lines}");
}

#[test]
fn an_operator_is_warned_of_nodes_and_losses() {
    let lines = logged(Level::WARN, |world, redlock| {
        world.node("b", |node| node.uptime_s = 1);
        world.node("c", |node| node.habit = Habit::Refuses);
        let error = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
        assert!(error.retry_after().is_some());
        let lease = world.block_on(redlock.acquire("res\n").wait(12 * SECOND)).unwrap();
        world.block_on(lease.lost());
        world.node("a", |node| node.habit = Habit::Hangs);
        world.block_on(lease.release());
        let _closed = world.block_on(redlock.close(10 * SECOND));
    });
    insta::assert_snapshot!(lines);
}

#[test]
fn an_outage_is_logged_once_and_so_is_its_end() {
    let lines = logged(Level::INFO, |world, redlock| {
        world.node("c", |node| node.habit = Habit::Refuses);
        let keep_alive = KeepAlive::at_most(60 * SECOND);
        let lease = world.block_on(redlock.acquire("res").keep_alive(keep_alive)).unwrap();
        let hang =
            |habit: Habit| ["a", "b"].map(|it| world.node(it, |node| node.habit = habit.clone()));
        let live_for = |time| {
            let end = world.now() + time;
            while world.now() < end {
                world.pass(10 * MS);
                world.settle();
            }
        };
        hang(Habit::Hangs);
        live_for(6 * SECOND);
        hang(Habit::Answers);
        world.node("c", |node| (node.habit, node.uptime_s) = (Habit::Answers, 1));
        live_for(15 * SECOND);
        hang(Habit::Hangs);
        world.node("c", |node| node.habit = Habit::Hangs);
        assert_eq!(world.block_on(lease.lost()), LostReason::KeepAliveFailed);
    });
    insta::assert_snapshot!(lines);
}

#[test]
fn debug_logs_show_each_attempt() {
    let lines = logged(Level::TRACE, |world, redlock| {
        world.node("c", |node| node.set("res", "somebody"));
        let lease = world.block_on(redlock.acquire("res")).unwrap();
        world.settle();
        world.pass(SECOND);
        world.block_on(lease.extend(10 * SECOND)).unwrap();
        world.block_on(lease.release());
        world.each_node(|node| node.set("res", "somebody"));
        world.block_on(redlock.try_acquire("res")).unwrap_err();
    });
    insta::assert_snapshot!(lines);
    for hidden in ["someone", "secret", "Token"] {
        assert!(!lines.contains(hidden), "{hidden}");
    }
}
