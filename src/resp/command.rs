//! Commands in their wire forms.

use core::time::Duration;

use bytes::{BufMut, BytesMut};
use redlock_protocol::Op;

use super::decode::Frame;
use super::frame::{Decimal, write};
use super::script::{EXTEND, INTRODUCE, RELEASE, Script};

/// Wire form of a command. All forms of a command have the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `DELIFEQ key token` and `SET … IFEQ token`, of Valkey from version 9.0 on.
    Delifeq,
    /// `DELEX key IFEQ token` and `SET … IFEQ token`, of Redis from version 8.4 on.
    Delex,
    /// A script by its hash, which the server must know.
    EvalSha,
    /// A script by its text, which the server then keeps.
    Eval,
    /// `SET key token NX PX ttl GET`, from version 7.0 on: a null means that the key was set, and a
    /// refusal shows the value of the existing key.
    SetNxGet,
    /// `SET key token NX PX ttl`: a null is a refusal, and does not show the existing value.
    SetNx,
    /// The `GET key` after a refused [`Form::SetNx`].
    Get,
    /// `CLIENT CACHING YES` and `PTTL key` or `GET key`: registers the connection for a push at the
    /// key's next change. Two commands with two replies.
    Caching,
    /// The second command of [`Form::Caching`], after the server has agreed to register the key.
    Registering,
    /// `INFO`: the introduction of a server that does not run this client's scripts.
    Info,
    /// The only form of a command that every server accepts.
    Plain,
}

impl Form {
    /// Returns the form to use instead for `op`, if there is one: the server did nothing because it
    /// does not accept this form, or its refusal does not show the existing value and the next form
    /// does.
    pub(crate) fn instead(self, op: &Op, answer: Frame<'_>) -> Option<Self> {
        let error = match answer {
            Frame::Error(text) => text,
            Frame::Nil if self == Self::SetNx => return Some(Self::Get),
            _ => return None,
        };
        let is = |prefix: &[u8]| error.starts_with(prefix);
        let is_unknown = is(b"ERR unknown command") || is(b"ERR syntax error") || is(b"NOPERM");
        match self {
            Self::Delex | Self::Delifeq if is_unknown => Some(Self::EvalSha),
            Self::SetNxGet if is_unknown => Some(Self::SetNx),
            Self::EvalSha if is(b"NOSCRIPT") => Some(Self::Eval),
            Self::EvalSha | Self::Eval if *op == Op::Introduce && is_not_taken(error) => {
                Some(Self::Info)
            }
            _ => None,
        }
    }
}

/// Returns true if the error means that the server, or a proxy before it, does not let this user
/// run scripts, or this script run its commands. Any other error may be over at the next attempt.
/// It does not justify an introduction without the canary, which is weaker.
fn is_not_taken(error: &[u8]) -> bool {
    let has = |part: &[u8]| error.windows(part.len()).any(|it| it.eq_ignore_ascii_case(part));
    [
        &b"NOPERM"[..],
        b"unknown",
        b"unsupported",
        b"not supported",
        b"not allowed from script",
        b"syntax error",
        // Errors of a command inside the script, from version 7.0 on and before.
        b"ACL failure in script",
        b"can't run this command",
    ]
    .iter()
    .any(|part| has(part))
}

/// Returns true if the error means that the server serves no commands for now.
pub(crate) fn is_not_serving(error: &[u8]) -> bool {
    [&b"READONLY"[..], b"LOADING", b"MASTERDOWN"].iter().any(|it| error.starts_with(it))
}

/// Forms that a server accepts, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    /// Form of commands that compare the token and then act.
    pub(crate) compare: Form,
    /// Form of a SET.
    pub(crate) set: Form,
    /// Form of an introduction.
    pub(crate) introduce: Form,
}

impl Forms {
    /// Forms that every server accepts.
    pub(crate) const ANYWHERE: Self =
        Self { compare: Form::EvalSha, set: Form::SetNx, introduce: Form::EvalSha };

    /// Returns the form for `op`.
    pub(crate) fn of(self, op: &Op) -> Form {
        match (op, self.compare) {
            // A plain `SET` would shorten the life of a key that lives for longer already.
            (Op::Extend { plain: false, .. }, Form::Delex | Form::Delifeq) => Form::EvalSha,
            (Op::Extend { .. } | Op::Release { .. }, compare) => compare,
            (Op::Set { .. }, _) => self.set,
            (Op::Introduce, _) => self.introduce,
            (Op::Look { .. } | Op::Read { .. } | Op::TimeLeft { .. }, _) => Form::Plain,
        }
    }

    /// Records that the server accepts `instead`, but not the form preferred so far.
    pub(crate) fn correct(&mut self, instead: Form) {
        match instead {
            Form::EvalSha => self.compare = instead,
            Form::SetNx => self.set = instead,
            Form::Info => self.introduce = instead,
            _ => {}
        }
    }
}

/// Appends `op` to `buffer`, in a `form` that `op` can take. `resource` is the name of the key; for
/// an introduction it is the canary's.
pub(crate) fn encode(buffer: &mut impl BufMut, op: &Op, resource: &[u8], form: Form) {
    match op {
        Op::Extend { token, ttl, .. } => {
            let (token, ttl_ms) = (token.as_bytes(), decimal_ms(*ttl));
            let ttl_ms = ttl_ms.as_bytes();
            match form {
                Form::Delex | Form::Delifeq => {
                    write(buffer, &[b"SET", resource, token, b"IFEQ", token, b"PX", ttl_ms]);
                }
                _ => script(buffer, EXTEND, form, resource, &[token, ttl_ms]),
            }
        }
        Op::Release { token, .. } => {
            let token = token.as_bytes();
            match form {
                Form::Delex => write(buffer, &[b"DELEX", resource, b"IFEQ", token]),
                Form::Delifeq => write(buffer, &[b"DELIFEQ", resource, token]),
                _ => script(buffer, RELEASE, form, resource, &[token]),
            }
        }
        Op::Introduce => match form {
            // All sections: several sections in one command are understood from version 7 on only.
            Form::Info => write(buffer, &[b"INFO"]),
            _ => script(buffer, INTRODUCE, form, resource, &[]),
        },
        Op::Look { .. } | Op::Read { .. } | Op::TimeLeft { .. } => {
            if form == Form::Caching {
                write(buffer, &[b"CLIENT", b"CACHING", b"YES"]);
            }
            let command: &[u8] = if matches!(op, Op::Read { .. }) { b"GET" } else { b"PTTL" };
            write(buffer, &[command, resource]);
        }
        Op::Set { token, ttl, .. } => {
            let ttl_ms = decimal_ms(*ttl);
            let (token, ttl_ms) = (token.as_bytes(), ttl_ms.as_bytes());
            match form {
                Form::Get => write(buffer, &[b"GET", resource]),
                Form::SetNxGet => {
                    write(buffer, &[b"SET", resource, token, b"NX", b"PX", ttl_ms, b"GET"]);
                }
                _ => write(buffer, &[b"SET", resource, token, b"NX", b"PX", ttl_ms]),
            }
        }
    }
}

/// Caches the last command and its bytes: a lock sends the same command to every node.
#[derive(Default)]
pub(crate) struct Encoder {
    last: Option<(Op, Form)>,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Same as [`encode`]. Equal commands have the same key name: a token is drawn for one key.
    pub(crate) fn encode(&mut self, buffer: &mut BytesMut, op: &Op, resource: &[u8], form: Form) {
        if self.last != Some((*op, form)) {
            self.last = Some((*op, form));
            self.bytes.clear();
            encode(&mut self.bytes, op, resource, form);
        }
        buffer.extend_from_slice(&self.bytes);
    }
}

fn script(buffer: &mut impl BufMut, script: Script, form: Form, key: &[u8], values: &[&[u8]]) {
    let (command, name): (&[u8], &[u8]) = match form {
        Form::Eval => (b"EVAL", script.text),
        _ => (b"EVALSHA", script.sha),
    };
    match *values {
        [] => write(buffer, &[command, name, b"1", key]),
        [value] => write(buffer, &[command, name, b"1", key, value]),
        [value, other] => write(buffer, &[command, name, b"1", key, value, other]),
        _ => unreachable!("a script has two values at most"),
    }
}

fn decimal_ms(ttl: Duration) -> Decimal {
    Decimal::new(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_protocol::{ResourceId, Token};

    const RESOURCE: ResourceId = ResourceId(0);

    fn encoded(op: &Op, compare: Form) -> String {
        in_form(op, Forms { compare, ..Forms::ANYWHERE }.of(op))
    }

    fn in_form(op: &Op, form: Form) -> String {
        let mut buffer = BytesMut::from(&b"before"[..]);
        encode(&mut buffer, op, b"res", form);
        let text = buffer.escape_ascii().to_string();
        text.strip_prefix("before").unwrap().replace(r"\r\n", " ").replace(r"\'", "'")
    }

    #[test]
    fn a_set_carries_binary_keys_and_tokens() {
        let mut buffer = BytesMut::new();
        let token = Token::from_bytes(*b"\r\n\0\xff$*1234567890abcd");
        let op = Op::Set { resource: RESOURCE, token, ttl: Duration::from_millis(12_345) };
        encode(&mut buffer, &op, b"a\r\nb", Form::SetNx);
        let expected = b"*6\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$20\r\n\r\n\0\xff$*1234567890abcd\r\n\
            $2\r\nNX\r\n$2\r\nPX\r\n$5\r\n12345\r\n";
        assert_eq!(buffer[..], expected[..]);
    }

    #[test]
    fn a_set_that_shows_the_holder_asks_for_the_value_besides() {
        let token = Token::from_bytes([b't'; 20]);
        let op = Op::Set { resource: RESOURCE, token, ttl: Duration::from_millis(77) };
        let set = format!("$3 SET $3 res $20 {} $2 NX $2 PX $2 77 ", "t".repeat(20));
        assert_eq!(in_form(&op, Form::SetNx), format!("*6 {set}"));
        assert_eq!(in_form(&op, Form::SetNxGet), format!("*7 {set}$3 GET "));
        assert_eq!(in_form(&op, Form::Get), "*2 $3 GET $3 res ");
    }

    #[test]
    fn a_release_compares_before_it_deletes_in_every_form() {
        let token = Token::from_bytes([b't'; 20]);
        let op = Op::Release { resource: RESOURCE, token };
        let tail = format!("$1 1 $3 res $20 {} ", "t".repeat(20));
        let script = "if redis.call('get',KEYS[1])==ARGV[1] then \
            return redis.call('del',KEYS[1]) else return 0 end";
        assert_eq!(encoded(&op, Form::Eval), format!("*5 $4 EVAL $93 {script} {tail}"));
        let sha = "b998f9dfb154cdbea8cda65ad5177aadf0e945a2";
        assert_eq!(encoded(&op, Form::EvalSha), format!("*5 $7 EVALSHA $40 {sha} {tail}"));
        let token = "t".repeat(20);
        let delex = format!("*4 $5 DELEX $3 res $4 IFEQ $20 {token} ");
        assert_eq!(encoded(&op, Form::Delex), delex);
        assert_eq!(encoded(&op, Form::Delifeq), format!("*3 $7 DELIFEQ $3 res $20 {token} "));
    }

    #[test]
    fn an_extension_that_must_not_shorten_is_a_script() {
        let token = Token::from_bytes([b't'; 20]);
        let ttl = Duration::from_millis(77);
        let op = Op::Extend { resource: RESOURCE, token, ttl, plain: false };
        for form in [Form::EvalSha, Form::Delex, Form::Delifeq] {
            let name = "e37e0986f6d8408d85e84fd285e350d479e77b04";
            assert!(encoded(&op, form).starts_with(&format!("*6 $7 EVALSHA $40 {name} ")));
        }
        assert!(encoded(&op, Form::Eval).starts_with("*6 $4 EVAL $"));
        assert!(encoded(&op, Form::Eval).ends_with(" $20 tttttttttttttttttttt $2 77 "));
    }

    #[test]
    fn a_look_registers_the_key_in_front_of_the_read() {
        let op = Op::Look { resource: RESOURCE, token: Token::from_bytes([1; 20]) };
        assert_eq!(in_form(&op, Form::Plain), "*2 $4 PTTL $3 res ");
        let caching = "*3 $6 CLIENT $7 CACHING $3 YES ";
        assert_eq!(in_form(&op, Form::Caching), format!("{caching}*2 $4 PTTL $3 res "));
        let op = Op::Read { resource: RESOURCE, token: Token::from_bytes([1; 20]) };
        assert_eq!(in_form(&op, Form::Plain), "*2 $3 GET $3 res ");
        assert_eq!(in_form(&op, Form::Caching), format!("{caching}*2 $3 GET $3 res "));
    }

    #[test]
    fn a_plain_extension_is_a_set_where_the_server_compares() {
        let token = Token::from_bytes([b't'; 20]);
        let ttl = Duration::from_millis(77);
        let op = Op::Extend { resource: RESOURCE, token, ttl, plain: true };
        let token = "t".repeat(20);
        let set = format!("*7 $3 SET $3 res $20 {token} $4 IFEQ $20 {token} $2 PX $2 77 ");
        assert_eq!(encoded(&op, Form::Delex), set);
        assert_eq!(encoded(&op, Form::Delifeq), set);
        assert!(encoded(&op, Form::EvalSha).starts_with("*6 $7 EVALSHA "));
    }

    #[test]
    fn a_cached_command_has_the_bytes_of_a_fresh_one() {
        let (mut encoder, ms) = (Encoder::default(), Duration::from_millis);
        let (token, other) = (Token::from_bytes([1; 20]), Token::from_bytes([2; 20]));
        let set = |token, ttl| Op::Set { resource: RESOURCE, token, ttl };
        let release = Op::Release { resource: RESOURCE, token };
        for (op, form) in [
            (set(token, ms(1)), Form::SetNx),
            (set(token, ms(1)), Form::SetNx),
            (set(token, ms(1)), Form::SetNxGet),
            (set(token, ms(2)), Form::SetNx),
            (set(other, ms(2)), Form::SetNx),
            (release, Form::EvalSha),
            (release, Form::Delex),
            (release, Form::Delex),
        ] {
            let (mut buffer, mut afresh) = (BytesMut::new(), BytesMut::new());
            encoder.encode(&mut buffer, &op, b"res", form);
            encode(&mut afresh, &op, b"res", form);
            assert_eq!(buffer, afresh);
        }
    }

    #[test]
    fn another_form_follows_only_where_nothing_was_done() {
        let (resource, token) = (RESOURCE, Token::from_bytes([1; 20]));
        let release = Op::Release { resource, token };
        let after = |form: Form, error: &[u8]| form.instead(&release, Frame::Error(error));
        let unknown = b"ERR unknown command 'DELEX', with args beginning with: 'res'";
        assert_eq!(after(Form::Delex, unknown), Some(Form::EvalSha));
        assert_eq!(after(Form::Delifeq, b"NOPERM no permission"), Some(Form::EvalSha));
        assert_eq!(after(Form::Delex, b"ERR syntax error"), Some(Form::EvalSha));
        assert_eq!(after(Form::Delex, b"ERR Key should be of string type"), None);
        assert_eq!(after(Form::EvalSha, b"NOSCRIPT No matching script."), Some(Form::Eval));
        assert_eq!(after(Form::EvalSha, b"NOPERM no permission"), None);
        assert_eq!(after(Form::Eval, b"NOSCRIPT No matching script."), None);
        assert_eq!(after(Form::SetNxGet, b"ERR syntax error"), Some(Form::SetNx));
        assert_eq!(after(Form::SetNxGet, b"NOPERM no permission"), Some(Form::SetNx));
        assert_eq!(after(Form::SetNxGet, b"WRONGTYPE Operation against a key"), None);
        assert_eq!(after(Form::SetNx, b"NOPERM no permission"), None);
    }

    #[test]
    fn only_a_refusal_that_shows_nothing_is_looked_into() {
        let (resource, token) = (RESOURCE, Token::from_bytes([1; 20]));
        let set = Op::Set { resource, token, ttl: Duration::from_secs(1) };
        assert_eq!(Form::SetNx.instead(&set, Frame::Nil), Some(Form::Get));
        for form in [Form::SetNxGet, Form::Get, Form::Delex, Form::EvalSha, Form::Info] {
            assert_eq!(form.instead(&set, Frame::Nil), None, "{form:?}");
        }
        assert_eq!(Form::SetNx.instead(&set, Frame::Ok), None);
    }

    #[test]
    fn info_replaces_forbidden_scripts_but_not_busy_ones() {
        let after = |form: Form, error: &[u8]| form.instead(&Op::Introduce, Frame::Error(error));
        assert_eq!(after(Form::EvalSha, b"NOSCRIPT No matching script."), Some(Form::Eval));
        for form in [Form::EvalSha, Form::Eval] {
            for refusal in [
                &b"NOPERM this user"[..],
                b"ERR unknown command 'EVALSHA'",
                b"ERR Unknown Redis command called from script script: f_1, on @user_script:1.",
                b"ERR This Redis command is not allowed from script",
                b"ERR ACL failure in script: User x has no permissions to run the 'info' command",
                b"ERR The user executing the script can't run this command or subcommand",
            ] {
                assert_eq!(after(form, refusal), Some(Form::Info));
            }
            for passing in [
                &b"LOADING Redis"[..],
                b"MASTERDOWN Link",
                b"BUSY Redis",
                b"READONLY",
                b"OOM command not allowed when used memory > 'maxmemory'.",
                b"TRYAGAIN",
                b"ERR upstream failure",
            ] {
                assert_eq!(after(form, passing), None);
            }
        }
        assert_eq!(after(Form::Info, b"NOPERM this user"), None);
    }

    #[test]
    fn an_introduction_reads_the_canary() {
        let op = Op::Introduce;
        assert!(in_form(&op, Form::Eval).starts_with("*4 $4 EVAL $"));
        assert!(in_form(&op, Form::Eval).ends_with(" $1 1 $3 res "));
        assert!(in_form(&op, Form::EvalSha).starts_with("*4 $7 EVALSHA $40 "));
        assert_eq!(in_form(&op, Form::Info), "*1 $4 INFO ");
    }
}
