//! A holder does not notice that its lease has ended, and the table loses no update all the same.
//!
//! No lock that expires can stop a write that is under way when the lock expires: the process may
//! be stopped between its last check of the lease and the write. So the table checks: each row has
//! a version, and a write names the version that was read under the lock. The lock keeps two
//! holders from doing the same work; the version keeps the data correct.
//!
//! ```console
//! $ cargo run --example fenced_sqlite -- redis://a:6379 redis://b:6379 redis://c:6379
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use redlock_client::Redlock;
use rusqlite::{Connection, params};

/// In-memory database that both workers open.
const DATABASE: &str = "file:accounts?mode=memory&cache=shared";

struct Account {
    balance: i64,
    version: i64,
}

/// Stands for one of several processes: each worker has its own client and database connection.
struct Worker {
    redlock: Redlock,
    database: Connection,
}

impl Worker {
    fn new() -> Result<Self, Box<dyn Error>> {
        let redlock = common::builder()?
            .ttl(Duration::from_secs(2))
            .fleet_max_ttl(Duration::from_secs(30))
            .node_timeout(Duration::from_millis(400))
            .wait(Duration::from_secs(10))
            .build()?;
        Ok(Self { redlock, database: Connection::open(DATABASE)? })
    }

    fn read(&self) -> rusqlite::Result<Account> {
        let query = "SELECT balance, version FROM account WHERE id = 1";
        let account = |row: &rusqlite::Row<'_>| {
            Ok(Account { balance: row.get("balance")?, version: row.get("version")? })
        };
        self.database.query_row(query, [], account)
    }

    /// Writes the balance. Returns true if the write was applied, that is, if nobody has written
    /// since `read`.
    fn write(&self, balance: i64, read: &Account) -> rusqlite::Result<bool> {
        let update = "UPDATE account SET balance = ?1, version = version + 1 \
                      WHERE id = 1 AND version = ?2";
        Ok(self.database.execute(update, params![balance, read.version])? == 1)
    }

    /// Reads, computes and writes under the lock. `pause` marks the place where the process may be
    /// stopped.
    async fn deposit(
        &self,
        amount: i64,
        pause: impl AsyncFn(&redlock_client::Lease),
    ) -> Result<bool, Box<dyn Error>> {
        let lease = self.redlock.acquire("account/1").await?;
        let account = self.read()?;
        // This check avoids useless work. It does not protect the data.
        lease.check(Duration::from_millis(100))?;
        pause(&lease).await;
        let applied = self.write(account.balance + amount, &account)?;
        lease.release().await;
        Ok(applied)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let (slow, quick) = (Worker::new()?, Worker::new()?);
    slow.database.execute_batch(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, version INTEGER);
         INSERT INTO account VALUES (1, 0, 0);",
    )?;

    // The slow worker is stopped from its last check of the lease until the quick one is done.
    let stopped = async |lease: &redlock_client::Lease| {
        println!("slow: read version 0, stopped: {}", lease.lost().await);
        let applied = quick.deposit(50, async |_| ()).await;
        println!("quick: deposited 50: {}", applied.is_ok_and(|applied| applied));
    };
    if !slow.deposit(100, stopped).await? {
        println!("slow: refused, somebody has written since; once more from the beginning");
        let applied = slow.deposit(100, async |_| ()).await?;
        println!("slow: deposited 100: {applied}");
    }

    let Account { balance, version } = slow.read()?;
    println!("balance {balance} after {version} writes");
    for worker in [slow, quick] {
        let _left_to_expire = worker.redlock.close(Duration::from_secs(2)).await;
    }
    if balance == 150 { Ok(()) } else { Err("an update was lost".into()) }
}
