//! The first line of a script, where it says what it is.

const FLAGS: [&[u8]; 5] =
    [b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"];

/// The script itself: what follows `#!lua` and its options, with the end of their line.
///
/// # Errors
///
/// What is wrong with the line.
pub(super) fn body(text: &[u8]) -> Result<&[u8], String> {
    if !text.starts_with(b"#!") {
        return Ok(text);
    }
    let Some(end) = text.iter().position(|&byte| byte == b'\n') else {
        return Err(String::from("ERR Invalid script shebang"));
    };
    let mut words = text[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let lossy = String::from_utf8_lossy;
    match words.next() {
        Some(b"#!lua") => {}
        engine => {
            let engine = lossy(engine.unwrap_or_default());
            return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
        }
    }
    for option in words {
        let Some(flags) = option.strip_prefix(b"flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {}", lossy(option)));
        };
        for flag in flags.split(|&byte| byte == b',').filter(|flag| !flag.is_empty()) {
            if !FLAGS.contains(&flag) {
                return Err(format!("ERR Unexpected flag in script shebang: {}", lossy(flag)));
            }
        }
    }
    Ok(&text[end..])
}
