#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blocked;
mod bytes;
mod command;
mod commands;
mod content;
mod databases;
mod disk;
mod entry;
mod events;
mod glob;
mod integer;
mod keyspace;
mod master;
pub mod profile;
mod pushes;
mod refusal;
pub mod resp;
pub mod script;
pub mod server;
mod storage;
mod stream;
mod subscribed;
mod tracked;
mod trees;
mod watched;
mod writer;

pub use self::bytes::{INLINE_MAX, SmallBytes};
pub use self::command::{
    Change, Command, Effect, Ended, ErrorReply, Executed, ExpireCondition, HashCommand,
    Introduction, KeyCommand, ListCommand, ListEnd, Reply, SetCondition, SetExpiry,
    SortedSetCommand,
};
pub use self::commands::{KeyUse, keys_of};
pub use self::content::{Content, Fields, Members, Score};
pub use self::databases::Databases;
pub use self::disk::Disk;
pub use self::entry::Entry;
pub use self::keyspace::{Keyspace, NativeKey};
pub use self::master::{Master, run_id};
pub use self::storage::{Persistence, Storage};
pub use self::stream::Stream;
pub use self::writer::{KeyEnd, Writer};
