//! The protected resource, the numbers of writes, and the source of fencing tokens.

use lock_judge::history::WriteId;
use lock_judge::scenario::Checks;

use crate::resource::{Served, Store, StoreRequest};

/// The protected resource of one run.
#[derive(Debug)]
pub(crate) struct ProtectedResource {
    checks: Checks,
    store: Store,
    /// Number of fencing tokens drawn so far.
    fencing_tokens: u64,
    /// Number of writes sent so far.
    writes: u32,
}

impl ProtectedResource {
    pub(super) fn new(checks: Checks) -> Self {
        Self { checks, store: Store::new(checks), fencing_tokens: 0, writes: 0 }
    }

    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.checks);
    }

    pub(super) fn serve(&mut self, request: StoreRequest) -> Served {
        self.store.serve(request)
    }

    /// Draws the fencing token of a grant; 0 if the resource checks none.
    pub(crate) fn draw_fencing_token(&mut self) -> u64 {
        match self.checks {
            Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                self.fencing_tokens += 1;
                self.fencing_tokens
            }
            Checks::CompareAndSetOwner | Checks::Nothing => 0,
        }
    }

    /// Numbers the next write.
    pub(crate) fn number_write(&mut self) -> WriteId {
        self.writes += 1;
        WriteId(self.writes - 1)
    }
}
