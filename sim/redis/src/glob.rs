//! Glob patterns over names, as `KEYS` takes them.

/// Returns true if `pattern` describes `name`: `*` matches any bytes, `?` any byte, `[a-z]` one of
/// a set, `[^a-z]` a byte outside the set, and `\` takes the next byte literally.
///
/// The empty name is described by the empty pattern alone, as on real servers.
///
/// Backtracks to the most recent star only: the time is at most the product of both lengths.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.is_empty() {
        return pattern.is_empty();
    }
    let (mut pattern, mut name) = (pattern, name);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = pattern {
            star = Some((after, name));
            pattern = after;
            continue;
        }
        match (name.split_first(), pattern.is_empty()) {
            (None, true) => return true,
            (Some((&byte, rest)), false) => {
                if let Some(after) = matches_one(pattern, byte) {
                    (pattern, name) = (after, rest);
                    continue;
                }
            }
            (None, false) | (Some(_), true) => {}
        }
        match star {
            Some((after, [_, rest @ ..])) => {
                star = Some((after, rest));
                (pattern, name) = (after, rest);
            }
            _ => return false,
        }
    }
}

/// Returns the pattern after its first element if that element matches `byte`.
fn matches_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', after @ ..] => Some(after),
        [b'[', after @ ..] => {
            let (holds, after) = matches_set(after, byte);
            holds.then_some(after)
        }
        [b'\\', escaped, after @ ..] | [escaped, after @ ..] => (*escaped == byte).then_some(after),
        [] => None,
    }
}

/// Matches `byte` against a set; returns the result and the pattern after the set. An unclosed set
/// ends with the pattern.
fn matches_set(mut set: &[u8], byte: u8) -> (bool, &[u8]) {
    let negated = set.first() == Some(&b'^');
    if negated {
        set = &set[1..];
    }
    let mut holds = false;
    loop {
        match set {
            [] => return (holds != negated, set),
            [b']', after @ ..] => return (holds != negated, after),
            [b'\\', escaped, after @ ..] => {
                holds |= *escaped == byte;
                set = after;
            }
            [from, b'-', to, after @ ..] => {
                holds |= (*from.min(to)..=*from.max(to)).contains(&byte);
                set = after;
            }
            [one, after @ ..] => {
                holds |= *one == byte;
                set = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_describe_names() {
        let table = [
            ("", "", true),
            ("", "a", false),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*a*b*", "xxaxxbxx", true),
            ("?", "", false),
            ("??", "ab", true),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            (r"[\]]", "]", true),
            ("[ab", "a", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("a**", "a", true),
            ("*", "", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let name = "a".repeat(10_000);
        assert!(!matches("a*".repeat(50).as_bytes(), format!("b{name}").as_bytes()));
        assert!(!matches(format!("{}b", "a*".repeat(50)).as_bytes(), name.as_bytes()));
    }
}
