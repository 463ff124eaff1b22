//! Reads text files of a limited size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a file, in MiB: many times that of the results of all scenarios.
const MIB_MAX: u64 = 256;

/// Reads the file `path`.
///
/// # Errors
///
/// If it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let bytes_max = MIB_MAX << 20;
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("the file is larger than {MIB_MAX} MiB");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
