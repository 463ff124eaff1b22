// The lock under the faults of `scenarios/`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use little_lock::{Connect, LittleLock};
use redlock_sim_test::{Connection, Host};
use tokio::time::sleep;

/// Opens the connections of a simulated machine.
struct OnHost(Host);

impl Connect for OnHost {
    type Stream = Connection;

    async fn connect(&self, node: SocketAddr) -> io::Result<Connection> {
        self.0.connect(node).await
    }
}

/// The work is done in steps, which take this long.
const STEP: Duration = Duration::from_millis(20);

/// Takes the lock three times, and does up to twenty steps of work each time.
async fn worker(host: Host) {
    let lock = LittleLock {
        connect: OnHost(host.clone()),
        nodes: host.nodes(),
        resource: host.resource().to_owned(),
        ttl: host.ttl(),
    };
    for _ in 0..3 {
        let lease = lock.lock(|| format!("{}-{:016x}", host.name(), host.random())).await;
        let section = host.enter(&lease.token);
        // A step must fit into what is left of the lease.
        for _ in 0..20 {
            if lease.remaining() < 2 * STEP {
                break;
            }
            sleep(STEP).await;
        }
        drop(section);
        lock.unlock(lease).await;
        sleep(5 * STEP).await;
    }
}

redlock_sim_test::main!("scenarios", worker);
