//! Servers that can compare a key's value by themselves: the client sends them no scripts.

use redlock_client::Released;

use crate::fleet::{Fleet, TTL};
use crate::server::{deletes_if_equal, version};
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[on_tokio!(a_server_that_compares_by_itself_runs_no_scripts)];

const ROUNDS: usize = 3;

async fn a_server_that_compares_by_itself_runs_no_scripts() {
    let command = version().and_then(|version| deletes_if_equal(&version)).unwrap();
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    for _ in 0..ROUNDS {
        let lease = redlock.acquire("res").await.unwrap();
        fleet.all_hold("res", &lease).await;
        lease.extend(TTL).await.unwrap();
        assert_eq!(lease.release().await, Released::Confirmed);
        assert_eq!(fleet.keys(), [0; 3]);
    }
    for server in &*fleet {
        assert_eq!(server.calls(command), ROUNDS, "releases");
        assert_eq!(server.calls("set"), 2 * ROUNDS + 1, "acquisitions, extensions and the canary");
        // Commands that the scripts would have executed.
        assert_eq!(server.calls("del") + server.calls("pexpire"), 0);
    }
}
