//! Identity of this build.

use std::sync::LazyLock;
use std::{env, fs};

use redis_sim::script::sha_of;

/// Build of the harness, as reports name it.
pub(crate) const NAME: &str = concat!("redlock-sim ", env!("CARGO_PKG_VERSION"));

/// Returns the name of the build with a digest of the program: equal only for copies of one program.
pub(crate) fn identity() -> &'static str {
    static IDENTITY: LazyLock<String> = LazyLock::new(|| {
        let program = env::current_exe().and_then(fs::read).unwrap_or_default();
        let digest = sha_of(&program);
        format!("{NAME} ({})", String::from_utf8_lossy(&digest[..12]))
    });
    &IDENTITY
}
