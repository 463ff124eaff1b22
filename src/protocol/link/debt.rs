//! Releases that a node is owed because the connection they belonged to is gone.

use crate::protocol::command::ResourceId;
use crate::protocol::time::BootInstant;
use crate::protocol::token::Token;

/// Debts kept for one node. Beyond it a key lives until it expires by itself.
const DEBTS_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be written on the next connection.
    Owed,
    /// Written once; the answer is outstanding.
    Sent,
    /// Answered once. A SET that the dead connection left in the server's receive queue may
    /// still execute, so the release is sent once more at this instant (catalogue N2).
    AgainAt(BootInstant),
    /// Written for the second time.
    SentAgain,
}

/// One release owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Debt {
    pub(super) resource: ResourceId,
    pub(super) token: Token,
    /// The key is gone by itself then.
    pub(super) until: BootInstant,
    pub(super) stage: Stage,
}

/// All the releases owed to one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Debts(Vec<Debt>);

impl Debts {
    pub(super) fn owe(&mut self, resource: ResourceId, token: Token, until: BootInstant) {
        let known = self.0.iter().any(|debt| debt.token == token && debt.resource == resource);
        if !known && self.0.len() < DEBTS_MAX {
            self.0.push(Debt { resource, token, until, stage: Stage::Owed });
        }
    }

    /// The next debt that is to be written at `now`, now counted as written.
    pub(super) fn take_due(&mut self, now: BootInstant) -> Option<Debt> {
        self.0.iter_mut().find_map(|debt| {
            debt.stage = match debt.stage {
                Stage::Owed => Stage::Sent,
                Stage::AgainAt(at) if at <= now => Stage::SentAgain,
                _ => return None,
            };
            Some(*debt)
        })
    }

    /// A release of `token` was answered; if for the first time it is due again at `again_at`.
    pub(super) fn answered(&mut self, token: Token, again_at: BootInstant) {
        let Some(place) = self.0.iter().position(|debt| debt.token == token) else {
            return;
        };
        match self.0[place].stage {
            Stage::Sent => self.0[place].stage = Stage::AgainAt(again_at),
            Stage::SentAgain => {
                self.0.remove(place);
            }
            Stage::Owed | Stage::AgainAt(_) => {}
        }
    }

    /// Nothing that was not settled on the lost connection can be relied on: all is owed again.
    pub(super) fn connection_lost(&mut self) {
        for debt in &mut self.0 {
            debt.stage = Stage::Owed;
        }
    }

    /// Drops the debts whose keys are gone by `now`.
    pub(super) fn forget_until(&mut self, now: BootInstant) {
        self.0.retain(|debt| debt.until > now);
    }

    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        let due = self.0.iter().map(|debt| match debt.stage {
            Stage::AgainAt(at) => at.min(debt.until),
            _ => debt.until,
        });
        due.min()
    }

    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Debt> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn speak_of(&self, resource: ResourceId) -> bool {
        self.0.iter().any(|debt| debt.resource == resource)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
