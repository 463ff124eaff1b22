//! The Lua scripts, and the hashes under which servers keep them.
//!
//! A script is called by its hash, and sent as text to a server that does not know it. The first one
//! to find that, after a start of the server, loads the others. If every connection loaded them, the
//! server would compute their digests each time.

use bytes::BufMut;

use super::frame::write;

/// A script, and the hexadecimal SHA-1 of its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) text: &'static [u8],
    pub(crate) sha: &'static [u8; 40],
}

/// Deletes the key if it still holds the token (specification, "correct implementation with a
/// single instance").
pub(crate) const RELEASE: Script = Script {
    text: b"if redis.call('get',KEYS[1])==ARGV[1] then \
        return redis.call('del',KEYS[1]) else return 0 end",
    sha: b"b998f9dfb154cdbea8cda65ad5177aadf0e945a2",
};

/// Extends the key's time to live if it still holds the token, and never shortens it. Returns 1 if
/// the key holds the token, else 0.
pub(crate) const EXTEND: Script = Script {
    text: b"if redis.call('get',KEYS[1])==ARGV[1] then \
        if redis.call('pttl',KEYS[1])<tonumber(ARGV[2]) then \
        redis.call('pexpire',KEYS[1],ARGV[2]) end return 1 else return 0 end",
    sha: b"e37e0986f6d8408d85e84fd285e350d479e77b04",
};

/// Returns the node's `INFO`, followed by the content of its canary. Writes the canary anew if it
/// does not fit the server. The canary holds the server's `run_id` and `master_replid`, the name of
/// the data set that it is in, and the time at which it was written, in µs. It does not fit if
///
/// - it is missing: then the data set gets a new name, too;
/// - another process wrote it: then the data set was read from disk or came from another server;
/// - it was written under another replication history and the server has been promoted: then the
///   data set came from another server. Without a promotion a new history proves nothing, because
///   the first replica changes the history, too;
/// - it was written in the future.
///
/// The time is read before the canary, at the same instant, so the reported age of the data set is
/// never too high.
pub(crate) const INTRODUCE: Script = Script {
    text: include_bytes!("introduce.lua"),
    sha: b"7c0c31726ff77a370cc6ca04adabd9001c514ab8",
};

/// Number of the commands, and replies, of [`load_scripts`].
pub(crate) const LOADED: usize = 2;

/// Appends commands after which the server knows the scripts of later commands by their hashes.
pub(crate) fn load_scripts(buffer: &mut impl BufMut) {
    let scripts: [Script; LOADED] = [RELEASE, EXTEND];
    scripts.iter().for_each(|script| write(buffer, &[b"SCRIPT", b"LOAD", script.text]));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Implements SHA-1 (FIPS 180-4, section 6.1).
    fn sha1(message: &[u8]) -> String {
        let mut padded = message.to_vec();
        padded.push(0x80);
        padded.resize(padded.len().next_multiple_of(64), 0);
        if padded.len() - message.len() < 9 {
            padded.resize(padded.len() + 64, 0);
        }
        let end = padded.len() - 8;
        padded[end..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
        let mut hash = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
        for block in padded.chunks_exact(64) {
            let mut words = [0_u32; 80];
            for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
                *word = u32::from_be_bytes(bytes.try_into().unwrap());
            }
            for at in 16..80 {
                let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
                words[at] = mixed.rotate_left(1);
            }
            let [mut a, mut b, mut c, mut d, mut e] = hash;
            for (at, word) in words.into_iter().enumerate() {
                let (mixed, constant) = match at / 20 {
                    0 => ((b & c) | (!b & d), 0x5a82_7999),
                    1 => (b ^ c ^ d, 0x6ed9_eba1),
                    2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                    _ => (b ^ c ^ d, 0xca62_c1d6_u32),
                };
                let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
                let next = sum.wrapping_add(constant).wrapping_add(word);
                (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
            }
            for (sum, part) in hash.iter_mut().zip([a, b, c, d, e]) {
                *sum = sum.wrapping_add(part);
            }
        }
        hash.iter().map(|word| format!("{word:08x}")).collect()
    }

    #[test]
    fn a_script_is_named_by_its_hash() {
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        for script in [RELEASE, EXTEND, INTRODUCE] {
            assert_eq!(sha1(script.text).as_bytes(), script.sha);
        }
    }
}
