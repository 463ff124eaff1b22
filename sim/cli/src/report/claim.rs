//! Exclusive use of a directory of reports.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::OutError;

/// A directory to which this process alone writes reports, until this value is dropped or the process
/// ends, however it ends.
#[derive(Debug)]
pub(crate) struct Claim {
    _directory: File,
}

impl Claim {
    /// Locks the directory `out`. A file system without locks (some network file systems) is not locked.
    ///
    /// # Errors
    ///
    /// If another process has locked it, or if it cannot be opened.
    pub(crate) fn new(out: &Path) -> Result<Self, OutError> {
        let directory = File::open(out)?;
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(OutError::Claimed),
            _ => Ok(Self { _directory: directory }),
        }
    }

    /// As [`Claim::new`], unless shards of one run may write to the directory at the same time.
    pub(crate) fn unless_shared(out: &Path, is_shard: bool) -> Result<Option<Self>, OutError> {
        (!is_shard).then(|| Self::new(out)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time_writes_to_a_directory() {
        let out = std::env::temp_dir().join(format!("redlock-sim-claim-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let claim = Claim::new(&out).unwrap();
        assert!(matches!(Claim::new(&out), Err(OutError::Claimed)));
        drop(claim);
        assert!(Claim::new(&out).is_ok());
        std::fs::remove_dir(&out).unwrap();
    }
}
