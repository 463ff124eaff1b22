//! Identity of this build.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use sha1::{Digest, Sha1};

/// Build of the harness, as reports name it.
pub(crate) const NAME: &str = concat!("redlock-sim ", env!("CARGO_PKG_VERSION"));

/// Returns the name of the build with a digest of the program: equal only for copies of one program.
///
/// # Errors
///
/// If the program's own file cannot be read.
pub(crate) fn identity() -> io::Result<String> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    let digest = match DIGEST.get() {
        Some(digest) => digest,
        None => {
            let digest = digest_of(&env::current_exe()?)?;
            DIGEST.get_or_init(|| digest)
        }
    };
    Ok(format!("{NAME} ({digest})"))
}

/// Returns the beginning of the SHA-1 of the file at `path`, in hexadecimal digits.
fn digest_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Sha1::new());
    // In parts: the program may be large, and one shard of many is small.
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => break,
            count => digest.update(&part[..count]),
        }
    }
    let digest = digest.finalize();
    Ok(digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}
