//! Rules of one connection, tested through the client that owns it.

mod dials;
mod introductions;
mod owed_releases;
mod releases;
mod resets;
mod room;
mod timeouts;

use super::*;
use crate::Drift;
use crate::command::{LockId, ResourceId};
use crate::lock::{
    AttemptError, ExtendError, Fresh, Limit, LockConfig, NodeVerdict, ReleaseOutcome,
};
use crate::node_set::Event;
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, decided, failed, fresh, held, lock_config, mask, ms, node,
    token,
};
use crate::token::Token;
