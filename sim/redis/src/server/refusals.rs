//! Refusals of writes that could not be made durable or that the server may not execute.

use super::Server;
use crate::refusal::Refusal;

const READ_ONLY: Refusal = Refusal::new("READONLY You can't write against a read only replica.");
const NO_REPLICAS: Refusal = Refusal::new("NOREPLICAS Not enough good replicas to write.");

impl Server {
    /// Checks that a write can be persisted.
    ///
    /// # Errors
    ///
    /// If the disk cannot store it.
    pub(crate) fn check_disk(&self) -> Result<(), Refusal> {
        if self.cannot_save
            && !self.config.get("save").is_empty()
            && self.config.is_on("stop-writes-on-bgsave-error")
        {
            return Err(Refusal::new(self.profile.texts.cannot_save));
        }
        Ok(())
    }

    /// Checks that the server has enough replicas to accept a write.
    ///
    /// # Errors
    ///
    /// If it has fewer replicas than configured.
    pub(crate) fn check_replicas(&self) -> Result<(), Refusal> {
        let lacks = self.replica_count < self.config.replicas_wanted();
        if lacks && !self.is_replica() { Err(NO_REPLICAS) } else { Ok(()) }
    }

    /// Checks that clients may write to the server.
    ///
    /// # Errors
    ///
    /// If it is a read-only replica.
    pub(crate) fn check_writable(&self) -> Result<(), Refusal> {
        let refuses = self.is_replica() && self.config.is_on("replica-read-only");
        if refuses { Err(READ_ONLY) } else { Ok(()) }
    }
}
