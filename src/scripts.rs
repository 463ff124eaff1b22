//! Source texts of the Lua scripts that the client sends, for review and for servers that allow
//! only known scripts. A server keeps each under the SHA-1 hash of its text.

/// Deletes the key if it holds the token.
pub const RELEASE: &[u8] = crate::resp::RELEASE.text;

/// Extends the key's time to live if it holds the token.
pub const EXTEND: &[u8] = crate::resp::EXTEND.text;

/// Returns the server's own data and the content of its canary.
pub const INTRODUCE: &[u8] = crate::resp::INTRODUCE.text;
