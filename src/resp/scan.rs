//! Finds the end of a frame, within limits, before the decoder runs.

/// The server sent bytes that are no valid reply, or that exceed the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reply to anything that was asked")]
pub(crate) struct Malformed;

/// Greatest depth of nested aggregates. The decoder recurses, so this bounds its stack.
pub(super) const DEPTH_MAX: usize = 8;
/// Longest frame, in bytes.
pub(super) const FRAME_MAX: usize = 64 * 1_024;
/// Largest number of elements in all aggregates of one frame together.
pub(super) const ELEMENTS_MAX: usize = 1_024;

/// Longest string that a server returns, in bytes.
const STRING_MAX: usize = 512 * 1_024 * 1_024;
/// Part of a longer string that is kept, with its header, in bytes. A key can have any value.
pub(super) const KEPT: usize = FRAME_MAX / 2;

/// A frame that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its length in bytes, or of the kept part.
    pub(super) length: usize,
    /// Number of bytes that follow and are to be dropped, with the line break at the end: none unless
    /// the frame is a string that is too long.
    pub(super) rest: usize,
}

/// Progress of the search for the end of the first frame. The search reads headers only, without
/// recursion into nested ones, and never reads the same bytes twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Offset of the current element's header.
    header: usize,
    /// Offset before which that header is known not to end.
    searched: usize,
    /// Number of elements still to come, for each open aggregate.
    open: [u16; DEPTH_MAX],
    depth: usize,
    elements: usize,
}

impl Scan {
    /// Returns the first frame in `bytes`, or `None` while the frame is incomplete. `bytes` may only
    /// have grown since the last call. After a complete frame the next search begins, behind the
    /// rest that is to be dropped.
    pub(super) fn resume(&mut self, bytes: &[u8]) -> Result<Option<Found>, Malformed> {
        while let Some(end) = self.header_end(bytes)? {
            let (kind, header) = (bytes[self.header], &bytes[self.header + 1..end]);
            let (mut next, mut inside) = (end + 2, 0);
            match kind {
                b'$' | b'!' | b'=' => {
                    if let Some(body) = length(header, kind == b'$', STRING_MAX)? {
                        next += body + 2;
                        if next > FRAME_MAX && self.header == 0 && kind != b'!' {
                            if bytes.len() < KEPT {
                                return Ok(None);
                            }
                            *self = Self::default();
                            return Ok(Some(Found { length: KEPT, rest: next - KEPT }));
                        }
                        if next <= FRAME_MAX && bytes.len() < next {
                            return Ok(None);
                        }
                        if next > FRAME_MAX || bytes[next - 2..next] != *b"\r\n" {
                            return Err(Malformed);
                        }
                    }
                }
                b'*' | b'~' | b'>' | b'%' | b'|' => {
                    let pairs = matches!(kind, b'%' | b'|');
                    let count = length(header, kind == b'*', ELEMENTS_MAX)?.unwrap_or(0);
                    inside = if pairs { 2 * count } else { count };
                    self.elements += inside;
                    // An attribute precedes the element that it describes. One that describes a
                    // whole reply counts as a frame of its own, because it may be skipped.
                    inside += usize::from(kind == b'|' && self.depth > 0);
                }
                _ => {}
            }
            if next > FRAME_MAX || self.elements > ELEMENTS_MAX {
                return Err(Malformed);
            }
            (self.header, self.searched) = (next, next);
            if self.is_complete_with(inside)? {
                *self = Self::default();
                return Ok(Some(Found { length: next, rest: 0 }));
            }
        }
        Ok(None)
    }

    /// Returns the offset of the first line break after the start of the current header.
    fn header_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let Some(kind) = bytes.get(self.header) else {
            return Ok(None);
        };
        // The kinds of streamed replies are missing: the client requests none.
        if !b"+-:$*_#,(!=%~>|".contains(kind) {
            return Err(Malformed);
        }
        let found = bytes[self.searched..].windows(2).position(|pair| pair == b"\r\n");
        if let Some(found) = found {
            return Ok(Some(self.searched + found));
        }
        self.searched = self.header.max(bytes.len() - 1);
        if bytes.len() > FRAME_MAX { Err(Malformed) } else { Ok(None) }
    }

    /// Counts one element with `inside` elements of its own, and closes every aggregate that ends
    /// with it. Returns true if the frame is complete.
    fn is_complete_with(&mut self, inside: usize) -> Result<bool, Malformed> {
        if inside > 0 {
            *self.open.get_mut(self.depth).ok_or(Malformed)? = inside as u16;
            self.depth += 1;
            return Ok(false);
        }
        while let Some(outer) = self.depth.checked_sub(1) {
            self.open[outer] -= 1;
            if self.open[outer] > 0 {
                return Ok(false);
            }
            self.depth = outer;
        }
        Ok(true)
    }
}

/// Parses a length of at most `most`; `None` for the −1 of a null.
fn length(digits: &[u8], nullable: bool, most: usize) -> Result<Option<usize>, Malformed> {
    if nullable && digits == b"-1" {
        return Ok(None);
    }
    if !(1..=9).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    let value = digits.iter().fold(0, |value: usize, digit| value * 10 + usize::from(digit & 0xf));
    if value <= most { Ok(Some(value)) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length of the first frame, which is complete.
    fn scan(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let found = Scan::default().resume(bytes)?;
        assert!(found.is_none_or(|it| it.rest == 0), "{found:?}");
        Ok(found.map(|it| it.length))
    }

    #[test]
    fn nesting_is_bounded_before_it_is_complete() {
        let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
        assert!(scan(&nested(DEPTH_MAX)).unwrap().is_some());
        assert_eq!(scan(&nested(DEPTH_MAX + 1)), Err(Malformed));
        assert_eq!(scan(&b"*1\r\n".repeat(10_000)), Err(Malformed));
        assert_eq!(scan(&[b"*1\r\n".to_vec(), b"|0\r\n".repeat(10_000)].concat()), Err(Malformed));
    }

    #[test]
    fn elements_are_bounded_over_all_aggregates() {
        let flat =
            |count: usize| [format!("*{count}\r\n").into_bytes(), b":1\r\n".repeat(count)].concat();
        assert!(scan(&flat(ELEMENTS_MAX)).unwrap().is_some());
        assert_eq!(scan(&flat(ELEMENTS_MAX + 1)), Err(Malformed));
        let two = [b"*2\r\n".to_vec(), flat(ELEMENTS_MAX / 2), flat(ELEMENTS_MAX / 2)].concat();
        assert_eq!(scan(&two), Err(Malformed));
        assert_eq!(scan(b"%512\r\n"), Ok(None));
        assert_eq!(scan(b"%513\r\n"), Err(Malformed));
    }

    #[test]
    fn length_is_bounded_by_the_header_and_without_one() {
        for head in ["!", "*1\r\n$", "*1\r\n="] {
            assert_eq!(scan(format!("{head}{}\r\n", FRAME_MAX + 1).as_bytes()), Err(Malformed));
            assert_eq!(scan(format!("{head}{FRAME_MAX}\r\n").as_bytes()), Err(Malformed));
            assert_eq!(scan(format!("{head}{}\r\n", FRAME_MAX - 20).as_bytes()), Ok(None));
        }
        for kind in ["$", "="] {
            assert_eq!(scan(format!("{kind}{}\r\n", STRING_MAX + 1).as_bytes()), Err(Malformed));
        }
        assert_eq!(scan(&[b"+".to_vec(), vec![b'x'; FRAME_MAX]].concat()), Err(Malformed));
        assert_eq!(scan(&[b"+".to_vec(), vec![b'x'; FRAME_MAX - 3]].concat()), Ok(None));
        let strings = [b"*1024\r\n".to_vec(), b"$99\r\n".to_vec(), vec![b'x'; 99]].concat();
        let strings = [strings, b"\r\n$65000\r\n".to_vec()].concat();
        assert_eq!(scan(&strings), Ok(None));
        let strings = [strings, vec![b'x'; 65_000], b"\r\n$999\r\n".to_vec()].concat();
        assert_eq!(scan(&strings), Err(Malformed));
    }

    #[test]
    fn a_string_that_is_too_long_is_cut() {
        for kind in ["$", "="] {
            for body in [FRAME_MAX - 9, 100_000, STRING_MAX] {
                let header = format!("{kind}{body}\r\n").into_bytes();
                let length = header.len() + body + 2;
                let come = |count| [header.clone(), vec![b'x'; count - header.len()]].concat();
                assert_eq!(scan(&come(KEPT - 1)), Ok(None));
                let found = Found { length: KEPT, rest: length - KEPT };
                assert_eq!(Scan::default().resume(&come(KEPT)), Ok(Some(found)));
            }
        }
    }

    #[test]
    fn every_kind_ends_where_it_ends() {
        for frame in [
            "*0\r\n",
            "*-1\r\n",
            "$-1\r\n",
            "*2\r\n*0\r\n$-1\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(123\r\n",
            "!3\r\nERR\r\n",
            "=5\r\ntxt:x\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "~2\r\n:1\r\n:2\r\n",
            ">1\r\n+x\r\n",
            "|1\r\n+a\r\n+b\r\n",
            "*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n",
            "*2\r\n:1\r\n|0\r\n*1\r\n:2\r\n",
        ] {
            let followed = format!("{frame}:7\r\n");
            assert_eq!(scan(followed.as_bytes()), Ok(Some(frame.len())), "{frame:?}");
            assert_eq!(scan(&frame.as_bytes()[..frame.len() - 1]), Ok(None), "{frame:?}");
        }
    }

    #[test]
    fn streamed_and_null_aggregates_are_refused() {
        for bytes in [
            "*99999999999999999999999\r\n",
            "*?\r\n",
            "$?\r\n",
            "%?\r\n",
            ";4\r\n",
            ".\r\n",
            "%-1\r\n",
            "~-1\r\n",
        ] {
            assert_eq!(scan(bytes.as_bytes()), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(scan(b"HELLO 3\r\n"), Err(Malformed));
    }

    #[test]
    fn scanned_bytes_are_not_scanned_again() {
        let bytes = [b"*2\r\n+".to_vec(), vec![b'x'; 60_000]].concat();
        let mut scan = Scan::default();
        assert_eq!(scan.resume(&bytes), Ok(None));
        assert_eq!((scan.header, scan.searched), (4, bytes.len() - 1));
        let bytes = [bytes, b"\r\n$3\r\nab".to_vec()].concat();
        assert_eq!(scan.resume(&bytes), Ok(None));
        assert_eq!((scan.header, scan.searched), (60_007, 60_007));
    }
}
