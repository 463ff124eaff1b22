//! Releases owed to a node, because their connection was lost or their answer was an error.

use crate::command::ResourceId;
use crate::time::BootInstant;
use crate::token::Token;

/// Most releases owed to one node. A key beyond this limit lives until it expires.
const OWED_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be written on the next connection.
    Owed,
    /// Written once; the answer is outstanding.
    Sent,
    /// Answered once, and due again at this instant: a SET that the dead connection left in the
    /// server's receive queue may still execute (counterexample N2), or the answer was an error.
    AgainAt(BootInstant),
    /// Written for the second time.
    SentAgain,
}

/// One release owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwedRelease {
    pub(super) resource: ResourceId,
    pub(super) token: Token,
    /// Instant at which the key has expired.
    pub(super) until: BootInstant,
    pub(super) stage: Stage,
}

/// All releases owed to one node.
#[derive(Clone, Debug, Default)]
pub(super) struct OwedReleases {
    all: Vec<OwedRelease>,
    /// Number of releases to be written as soon as there is a connection.
    owed: usize,
    /// Earliest instant at which a release is due again or is forgotten. Kept up to date because it
    /// is read after every command of the link, which must not scan a thousand entries.
    next: Option<BootInstant>,
}

impl OwedReleases {
    pub(super) fn owe(&mut self, resource: ResourceId, token: Token, until: BootInstant) {
        let known = self.place_of(resource, token).is_some();
        if !known && self.all.len() < OWED_MAX {
            self.all.push(OwedRelease { resource, token, until, stage: Stage::Owed });
            self.owed += 1;
            self.wait_for(until);
        }
    }

    /// Returns the next release to be written at `now`, and marks it as written.
    pub(super) fn take_due(&mut self, now: BootInstant) -> Option<OwedRelease> {
        if self.owed == 0 && self.next.is_none_or(|next| next > now) {
            return None;
        }
        let taken = self.all.iter_mut().find_map(|owed| {
            owed.stage = match owed.stage {
                Stage::Owed => {
                    self.owed -= 1;
                    Stage::Sent
                }
                Stage::AgainAt(at) if at <= now => Stage::SentAgain,
                _ => return None,
            };
            Some(*owed)
        });
        if taken.is_none_or(|owed| owed.stage == Stage::SentAgain) {
            self.look_again();
        }
        taken
    }

    /// Records an answer to the release of `token`. After the first answer the release is due again
    /// at `again_at`; after the second it is done.
    pub(super) fn answered(&mut self, token: Token, again_at: BootInstant) {
        let Some(place) = self.all.iter().position(|owed| owed.token == token) else {
            return;
        };
        match self.all[place].stage {
            Stage::Sent => {
                self.all[place].stage = Stage::AgainAt(again_at);
                self.wait_for(again_at);
            }
            Stage::SentAgain => {
                self.all.remove(place);
                self.look_again();
            }
            Stage::Owed | Stage::AgainAt(_) => {}
        }
    }

    /// Records an error reply to the release of `token`: it is due again at `again_at`. The key
    /// expires at `until`, unless an expiry is already on record.
    pub(super) fn refused(
        &mut self,
        resource: ResourceId,
        token: Token,
        until: BootInstant,
        again_at: BootInstant,
    ) {
        self.owe(resource, token, until);
        if let Some(place) = self.place_of(resource, token) {
            let stage = &mut self.all[place].stage;
            self.owed -= usize::from(*stage == Stage::Owed);
            *stage = Stage::AgainAt(again_at);
            self.wait_for(again_at);
        }
    }

    /// Marks every release as owed again: whatever was not settled on the lost connection is
    /// unreliable.
    pub(super) fn connection_lost(&mut self) {
        for owed in &mut self.all {
            owed.stage = Stage::Owed;
        }
        self.owed = self.all.len();
        self.look_again();
    }

    /// Drops the releases whose keys have expired by `now`.
    pub(super) fn forget_until(&mut self, now: BootInstant) {
        if self.next.is_some_and(|next| next <= now) {
            self.all.retain(|owed| owed.until > now);
            self.owed = self.all.iter().filter(|owed| owed.stage == Stage::Owed).count();
            self.look_again();
        }
    }

    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        self.next
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OwedRelease> {
        self.all.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        (self.owed, self.next) = (0, None);
    }

    fn place_of(&self, resource: ResourceId, token: Token) -> Option<usize> {
        self.all.iter().position(|owed| owed.token == token && owed.resource == resource)
    }

    fn wait_for(&mut self, at: BootInstant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    fn look_again(&mut self) {
        let instants = self.all.iter().map(|owed| match owed.stage {
            Stage::AgainAt(at) => at.min(owed.until),
            _ => owed.until,
        });
        self.next = instants.min();
    }
}
