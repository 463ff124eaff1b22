//! The protected resources, the numbers of writes, and the source of fencing tokens.

use lock_judge::history::{FencingToken, WriteId};
use lock_judge::ids::{IdVec, ResourceId};
use lock_judge::scenario::Checks;

use crate::resource::{Served, Store, StoreRequest};

/// The protected resources of one run: one for each lock.
#[derive(Debug)]
pub(crate) struct ProtectedResource {
    checks: Checks,
    stores: IdVec<ResourceId, Store>,
    /// The last fencing token drawn, of any lock.
    last_token: FencingToken,
    /// Number of writes sent so far.
    writes: u32,
}

impl ProtectedResource {
    pub(super) fn new(checks: Checks, resources: usize) -> Self {
        let stores = IdVec::filled(resources, Store::new(checks));
        Self { checks, stores, last_token: FencingToken::NONE, writes: 0 }
    }

    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        self.stores.fill(Store::new(self.checks));
        (self.last_token, self.writes) = (FencingToken::NONE, 0);
    }

    pub(super) fn serve(&mut self, resource: ResourceId, request: StoreRequest) -> Served {
        self.stores[resource].serve(request)
    }

    /// Draws the fencing token of a grant; none if the resource checks none.
    pub(crate) fn draw_fencing_token(&mut self) -> FencingToken {
        match self.checks {
            Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                self.last_token.0 += 1;
                self.last_token
            }
            Checks::CompareAndSetOwner | Checks::CompareAndSetVersion | Checks::Nothing => {
                FencingToken::NONE
            }
        }
    }

    /// Numbers the next write.
    pub(crate) fn number_write(&mut self) -> WriteId {
        self.writes += 1;
        WriteId(self.writes - 1)
    }
}
