//! Parts of a campaign as files, and their union.
//!
//! A process that was given `--shard K/N` writes `shard-K-of-N.json.gz`: three lines of JSON, with a
//! header, the plan and the sums. `merge` adds the sums up and reports them as one process would
//! have, because sums do not depend on the order of addition.

mod file;
mod gather;

pub(crate) use file::{Kind, Shard, ShardError, write};
pub(crate) use gather::{Gathered, gather};
