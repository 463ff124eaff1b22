//! What `WAIT` and `WAITAOF` make a connection wait for.

use crate::master::resp::Value;

/// A request that is answered later. Those behind it wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// It is answered then at the latest.
    pub(super) until_ns: u64,
    /// How many replicas it wants; there never are any.
    pub(super) replicas: i64,
    /// What it wants of the disk, if it is about the disk.
    pub(super) disk: Option<Kept>,
}

/// When a disk has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// When the sync of this number is done.
    By(u64),
    /// Never: nothing is appended.
    Never,
}

impl Waiting {
    /// The answer, if it is time, and the `synced`-th sync is done.
    pub(super) fn answer(self, now_ns: u64, synced: u64) -> Option<Value> {
        let Self { until_ns, replicas, disk } = self;
        let is_kept = matches!(disk, Some(Kept::By(number)) if number <= synced);
        let is_over = until_ns <= now_ns || (is_kept && replicas <= 0);
        let nobody = Value::Integer(0);
        is_over.then(|| match disk {
            Some(_) => Value::Array(vec![Value::Integer(is_kept.into()), nobody]),
            None => nobody,
        })
    }
}
