//! The protected resource: a register behind the network, with stricter or weaker checks.
//!
//! The register sees only the messages that arrive. The engine moves its messages and records its
//! actions.

use lock_judge::history::{AttemptId, BasedOn, FencingToken, Rejection, WriteId};
use lock_judge::scenario::Checks;

/// A message to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRequest {
    /// Open and read the register.
    Read {
        /// The attempt of the lease that the reader holds.
        attempt: AttemptId,
        /// Fencing token of the lease, if the subject has fencing tokens.
        fencing_token: FencingToken,
    },
    /// Write the register.
    Write {
        /// The attempt of the lease that the writer holds or held.
        attempt: AttemptId,
        /// The write.
        write: WriteId,
        /// Version from which the value was computed, if there is one.
        based_on: BasedOn,
        /// Fencing token of the lease, if the subject has fencing tokens.
        fencing_token: FencingToken,
    },
}

impl StoreRequest {
    /// Returns the attempt of the lease that the sender holds or held.
    #[must_use]
    pub const fn attempt(&self) -> AttemptId {
        match *self {
            Self::Read { attempt, .. } | Self::Write { attempt, .. } => attempt,
        }
    }
}

/// Result of one message to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Applied a write.
    Applied {
        /// Version after the write.
        version: u32,
    },
    /// Returned the present version.
    Read {
        /// The version.
        version: u32,
    },
    /// Rejected a write.
    Rejected(Rejection),
}

/// A register with a version, and the state that its checks need.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    checks: Checks,
    version: u32,
    largest_token: FencingToken,
    owner: Option<AttemptId>,
}

impl Store {
    /// Returns an untouched register.
    #[must_use]
    pub const fn new(checks: Checks) -> Self {
        Self { checks, version: 0, largest_token: FencingToken::NONE, owner: None }
    }

    /// Serves one message.
    pub fn serve(&mut self, request: StoreRequest) -> Served {
        match request {
            StoreRequest::Read { attempt, fencing_token } => {
                match self.checks {
                    Checks::TokenOnOpenAndWrite => {
                        self.largest_token = self.largest_token.max(fencing_token)
                    }
                    Checks::CompareAndSetOwner => self.owner = Some(attempt),
                    Checks::Nothing | Checks::TokenOnWrite | Checks::CompareAndSetVersion => {}
                }
                Served::Read { version: self.version }
            }
            StoreRequest::Write { attempt, fencing_token, based_on, .. } => {
                match self.checks {
                    Checks::TokenOnOpenAndWrite | Checks::TokenOnWrite => {
                        // Equal tokens pass: a holder may write more than once.
                        if fencing_token < self.largest_token {
                            return Served::Rejected(Rejection::StaleToken);
                        }
                        self.largest_token = fencing_token;
                    }
                    Checks::CompareAndSetOwner if self.owner != Some(attempt) => {
                        return Served::Rejected(Rejection::NotOwner);
                    }
                    Checks::CompareAndSetVersion if based_on != BasedOn::on(self.version) => {
                        return Served::Rejected(Rejection::StaleVersion);
                    }
                    Checks::CompareAndSetOwner | Checks::CompareAndSetVersion | Checks::Nothing => {
                    }
                }
                self.version += 1;
                Served::Applied { version: self.version }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_judge::history::ClientId;

    const OLD: AttemptId = AttemptId { client: ClientId(0), number: 1 };
    const NEW: AttemptId = AttemptId { client: ClientId(1), number: 1 };

    fn read(attempt: AttemptId, fencing_token: u64) -> StoreRequest {
        StoreRequest::Read { attempt, fencing_token: FencingToken(fencing_token) }
    }

    fn write(attempt: AttemptId, fencing_token: u64) -> StoreRequest {
        StoreRequest::Write {
            attempt,
            write: WriteId(0),
            based_on: BasedOn::NOTHING,
            fencing_token: FencingToken(fencing_token),
        }
    }

    #[test]
    fn unchecked_every_write_is_applied() {
        let mut store = Store::new(Checks::Nothing);
        assert_eq!(store.serve(write(NEW, 2)), Served::Applied { version: 1 });
        assert_eq!(store.serve(write(OLD, 1)), Served::Applied { version: 2 });
    }

    #[test]
    fn stale_token_is_refused_after_a_newer_write_equal_one_is_not() {
        let mut store = Store::new(Checks::TokenOnWrite);
        assert_eq!(store.serve(write(NEW, 2)), Served::Applied { version: 1 });
        assert_eq!(store.serve(write(NEW, 2)), Served::Applied { version: 2 });
        assert_eq!(store.serve(write(OLD, 1)), Served::Rejected(Rejection::StaleToken));
    }

    /// Counterexample F2: if only writes are checked, the newer holder's *read* does not fence.
    #[test]
    fn only_the_check_on_open_fences_by_a_read() {
        for (checks, expected) in [
            (Checks::TokenOnWrite, Served::Applied { version: 1 }),
            (Checks::TokenOnOpenAndWrite, Served::Rejected(Rejection::StaleToken)),
        ] {
            let mut store = Store::new(checks);
            store.serve(read(NEW, 2));
            assert_eq!(store.serve(write(OLD, 1)), expected, "{checks:?}");
        }
    }

    #[test]
    fn a_version_protects_what_was_read() {
        let mut store = Store::new(Checks::CompareAndSetVersion);
        let write = |based_on| StoreRequest::Write {
            attempt: OLD,
            write: WriteId(0),
            based_on,
            fencing_token: FencingToken::NONE,
        };
        let stale = Served::Rejected(Rejection::StaleVersion);
        assert_eq!(store.serve(write(BasedOn::NOTHING)), stale, "a blind write has no version");
        assert_eq!(store.serve(write(BasedOn::on(0))), Served::Applied { version: 1 });
        assert_eq!(store.serve(write(BasedOn::on(0))), stale);
        assert_eq!(store.serve(write(BasedOn::on(1))), Served::Applied { version: 2 });
    }

    #[test]
    fn the_owner_tag_is_the_last_opener() {
        let mut store = Store::new(Checks::CompareAndSetOwner);
        store.serve(read(OLD, 0));
        store.serve(read(NEW, 0));
        assert_eq!(store.serve(write(OLD, 0)), Served::Rejected(Rejection::NotOwner));
        assert_eq!(store.serve(write(NEW, 0)), Served::Applied { version: 1 });
    }
}
