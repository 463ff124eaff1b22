//! Requests of a round. A round begins with empty servers and has its own connections.

use bytes::Bytes;

use crate::reply::escaped;

/// A word of a request. Instants are computed when the request is sent.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// These bytes.
    Is(Bytes),
    /// This many milliseconds after the round began, as Unix milliseconds.
    AtMs(i64),
    /// This many seconds after the round began, as Unix seconds.
    AtS(i64),
}

impl Word {
    pub(crate) fn text(text: &str) -> Self {
        Self::Is(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn bytes(&self, began_ms: i64) -> Bytes {
        match self {
            Self::Is(bytes) => bytes.clone(),
            Self::AtMs(offset) => Bytes::from((began_ms + offset).to_string()),
            Self::AtS(offset) => Bytes::from((began_ms / 1_000 + offset).to_string()),
        }
    }
}

/// Encoding of a request.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// An array of byte strings.
    Array(Vec<Word>),
    /// An inline command, as is.
    Line(Bytes),
    /// An empty line or array. It has no reply.
    Nothing(Bytes),
    /// A malformed request. The server replies once and closes the connection.
    Malformed(Bytes),
}

impl Form {
    /// Returns the bytes to send.
    pub(crate) fn encode(&self, began_ms: i64) -> Vec<u8> {
        match self {
            Self::Line(bytes) | Self::Nothing(bytes) | Self::Malformed(bytes) => bytes.to_vec(),
            Self::Array(words) => {
                let mut out = format!("*{}\r\n", words.len()).into_bytes();
                for word in words {
                    let word = word.bytes(began_ms);
                    out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                    out.extend_from_slice(&word);
                    out.extend_from_slice(b"\r\n");
                }
                out
            }
        }
    }

    /// Returns the number of replies to the request.
    pub(crate) fn replies(&self) -> usize {
        match self {
            Self::Array(_) | Self::Line(_) | Self::Malformed(_) => 1,
            Self::Nothing(_) => 0,
        }
    }

    /// Returns the command's name in capitals, and the number of words.
    pub(crate) fn name(&self) -> (Vec<u8>, usize) {
        match self {
            Self::Array(words) => match words.first() {
                Some(Word::Is(name)) => (name.to_ascii_uppercase(), words.len()),
                _ => (Vec::new(), words.len()),
            },
            Self::Line(bytes) => {
                let mut words = bytes.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
                let name = words.next().unwrap_or_default().to_ascii_uppercase();
                (name, words.count() + 1)
            }
            Self::Nothing(_) | Self::Malformed(_) => (Vec::new(), 0),
        }
    }

    /// Returns true if the server closes the connection after the request.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(self, Self::Malformed(_)) || self.name().0 == b"QUIT"
    }

    /// Describes the request in one line.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Line(bytes) => format!("line {}", escaped(bytes)),
            Self::Nothing(bytes) => format!("nothing {}", escaped(bytes)),
            Self::Malformed(bytes) => format!("malformed {}", escaped(bytes)),
            Self::Array(words) => {
                let words = words.iter().map(|word| match word {
                    Word::Is(bytes) => format!("\"{}\"", escaped(bytes)),
                    Word::AtMs(offset) => format!("now_ms+{offset}"),
                    Word::AtS(offset) => format!("now_s+{offset}"),
                });
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// One request of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) connection: usize,
    /// Pause before the request, in milliseconds.
    pub(crate) pause_ms: u64,
    /// True if the request is sent together with the one before, which is of the same connection.
    pub(crate) joins: bool,
    pub(crate) form: Form,
}

impl Item {
    /// Describes the item in one line: the connection, `+` if it is sent together with the one
    /// before, and the request.
    pub(crate) fn told(&self) -> String {
        let joins = if self.joins { '+' } else { ' ' };
        let pause = match self.pause_ms {
            0 => String::new(),
            ms => format!("[{ms} ms] "),
        };
        format!("{}{joins} {pause}{}", self.connection, self.form.told())
    }
}

/// The requests of one round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) connections: usize,
    pub(crate) items: Vec<Item>,
}

impl Round {
    /// Removes the commands with these names, separated by commas, from the round.
    pub(crate) fn leave_out(&mut self, names: &str) {
        let is_named = |item: &Item| {
            let name = item.form.name().0;
            !name.is_empty() && names.split(',').any(|it| it.as_bytes() == name)
        };
        self.items.retain(|item| !is_named(item));
        self.unjoin();
    }

    /// Restores the invariant of `joins`: requests sent together are of one connection, and none
    /// follows a request that ends it.
    pub(crate) fn unjoin(&mut self) {
        let mut before = None;
        for item in &mut self.items {
            item.joins &= before == Some(item.connection);
            before = (!item.form.ends_connection()).then_some(item.connection);
        }
    }
}
