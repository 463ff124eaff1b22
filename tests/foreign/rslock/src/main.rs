//! rslock under test: runs the part that the runner selects, against the nodes that the runner
//! gives.

use std::env;
use std::io::{Read, Write, stdin};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rslock::{Lock, LockError, LockManager};
use serde_json::{Value, json};

const WARM_TTL: Duration = Duration::from_secs(10);

fn say(step: &str, mut what: Value) {
    what["step"] = step.into();
    println!("{what}");
}

/// Waits until the runner says to go on.
fn told() {
    let length = stdin().read_line(&mut String::new()).expect("the runner speaks");
    assert_ne!(length, 0, "the runner is gone");
}

struct Observer(TcpStream);

impl Observer {
    fn tell(&mut self, verb: &str, who: &str, resource: &str) {
        write!(self.0, "{verb} {resource} {who}\r\n").expect("the observer hears");
        let mut answer = [0; 64];
        let length = self.0.read(&mut answer).expect("the observer answers");
        assert!(answer[..length].starts_with(b"+OK"), "the observer answered {answer:?}");
    }
}

struct Parts {
    nodes: Vec<String>,
    resource: String,
    who: String,
    ttl: Duration,
    observer: Observer,
}

impl Parts {
    /// Creates a client that tries once.
    fn manager(&self) -> LockManager {
        let mut manager = LockManager::new(self.nodes.clone());
        manager.set_retry(1, Duration::from_millis(200));
        manager
    }

    async fn cycle(&mut self) -> Result<(), LockError> {
        let (first, second) = (self.manager(), self.manager());
        let lock = first.lock(self.resource.as_bytes(), self.ttl).await?;
        say("acquired", json!({ "validity_ms": lock.validity_time }));
        self.observer.tell("ENTER", "first", &self.resource);
        // Try again, because the first client's keys must outlive the release after a refused
        // attempt.
        for step in ["refused", "refused again"] {
            let granted = second.lock(self.resource.as_bytes(), self.ttl).await.is_ok();
            say(if granted { "granted twice" } else { step }, json!({}));
        }
        let lock = first.extend(&lock, 2 * self.ttl).await?;
        say("extended", json!({ "validity_ms": lock.validity_time }));
        self.observer.tell("LEAVE", "first", &self.resource);
        lock.release().await;
        say("released", json!({}));
        let lock = second.lock(self.resource.as_bytes(), self.ttl).await?;
        self.observer.tell("ENTER", "second", &self.resource);
        say("acquired by the second", json!({}));
        self.observer.tell("LEAVE", "second", &self.resource);
        lock.release().await;
        Ok(())
    }

    /// Creates a client that has connections and scripts at every node before the faults begin.
    async fn warm(&self) -> Result<LockManager, LockError> {
        let manager = self.manager();
        let resource = format!("warm-{}", self.who);
        manager.lock(resource.as_bytes(), WARM_TTL).await?.release().await;
        say("ready", json!({}));
        told();
        Ok(manager)
    }

    async fn late(&mut self) -> Result<(), LockError> {
        let manager = self.warm().await?;
        let began = Instant::now();
        let answer = manager.lock(self.resource.as_bytes(), self.ttl).await;
        let after_ms = u64::try_from(began.elapsed().as_millis()).expect("a short wait");
        match answer {
            Err(error) => {
                say(
                    "late",
                    json!({ "outcome": "refuses", "after_ms": after_ms, "why": error.to_string() }),
                );
            }
            Ok(lock) => {
                let validity_ms = lock.validity_time;
                say(
                    "late",
                    json!({ "outcome": "granted", "after_ms": after_ms, "validity_ms": validity_ms }),
                );
                self.hold(lock).await;
            }
        }
        Ok(())
    }

    async fn section(&mut self) -> Result<(), LockError> {
        let manager = self.warm().await?;
        match manager.lock(self.resource.as_bytes(), self.ttl).await {
            Err(_) => say("refused", json!({})),
            Ok(lock) => self.hold(lock).await,
        }
        Ok(())
    }

    async fn hold(&mut self, lock: Lock) {
        self.observer.tell("ENTER", &self.who, &self.resource);
        say("entered", json!({}));
        told();
        self.observer.tell("LEAVE", &self.who, &self.resource);
        lock.release().await;
        say("left", json!({}));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is set"));
    let observer = format!("127.0.0.1:{}", variable("FOREIGN_OBSERVER"));
    let mut parts = Parts {
        nodes: variable("FOREIGN_NODES")
            .split(',')
            .map(|port| format!("redis://127.0.0.1:{port}"))
            .collect(),
        resource: variable("FOREIGN_RESOURCE"),
        who: variable("FOREIGN_WHO"),
        ttl: Duration::from_millis(
            variable("FOREIGN_TTL_MS").parse().expect("a number of milliseconds"),
        ),
        observer: Observer(TcpStream::connect(observer).expect("the observer listens")),
    };
    let played = match variable("FOREIGN_PART").as_str() {
        "cycle" => parts.cycle().await,
        "late" => parts.late().await,
        "section" => parts.section().await,
        part => panic!("there is no part {part}"),
    };
    if let Err(error) = played {
        say("failed", json!({ "why": error.to_string() }));
        std::process::exit(1);
    }
}
