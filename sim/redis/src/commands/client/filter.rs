//! Filters of `CLIENT KILL`.

use super::super::{Call, Refusal, text};
use super::{Kind, kind};
use crate::commands::call::is;
use crate::integer::parse_integer;
use crate::profile::Feature;
use crate::server::Client;

const NO_ID: Refusal = Refusal::new("ERR client-id should be greater than 0");

/// A filter matches the connections for which all given options hold.
#[derive(Default)]
pub(super) struct Filter<'a> {
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    ids: Option<Vec<i64>>,
    user: Option<&'a [u8]>,
    /// The types that the connection must have, all of them.
    pub(super) kinds: Vec<Kind>,
    pub(super) spares_self: bool,
    name: Option<&'a [u8]>,
    library: [Option<&'a [u8]>; 2],
    /// Address without its port.
    ip: Option<&'a [u8]>,
    database: Option<u8>,
    /// Least age of the connection, in seconds.
    age_s: Option<u64>,
    /// Least time since the last command of the connection, in seconds.
    idle_s: Option<u64>,
}

impl<'a> Filter<'a> {
    /// Returns a filter for the connection with this address.
    pub(super) fn at(address: &'a [u8]) -> Self {
        Self { address: Some(address), ..Self::default() }
    }

    pub(super) fn parse(call: &Call<'a>) -> Result<Self, Refusal> {
        let mut filter = Self { spares_self: true, ..Self::default() };
        let mut rest = &call.words[2..];
        while let [option, value, after @ ..] = rest {
            rest = after;
            if is(option, "ID") {
                rest = filter.take_ids(call, value, after)?;
            } else if is(option, "TYPE") {
                filter.kinds.push(kind(value)?);
            } else if is(option, "ADDR") {
                filter.address = Some(value);
            } else if is(option, "LADDR") {
                filter.local_address = Some(value);
            } else if is(option, "USER") {
                if !call.server.users().names().any(|name| **name == **value) {
                    return Err(text::around("ERR No such user '", value, "'"));
                }
                filter.user = Some(value);
            } else if is(option, "SKIPME") && is(value, "YES") {
                filter.spares_self = true;
            } else if is(option, "SKIPME") && is(value, "NO") {
                filter.spares_self = false;
            } else if !filter.take_more(call, option, value)? {
                return Err(text::SYNTAX);
            }
        }
        if rest.is_empty() { Ok(filter) } else { Err(text::SYNTAX) }
    }

    /// Parses one connection number, or several where the server accepts several; returns the words
    /// after them.
    fn take_ids(
        &mut self,
        call: &Call<'a>,
        first: &[u8],
        mut rest: &'a [&'a [u8]],
    ) -> Result<&'a [&'a [u8]], Refusal> {
        let takes_many = call.server.profile().has(Feature::ClientFilters);
        let id = parse_integer(first);
        if id.is_none() && takes_many {
            return Err(text::SYNTAX);
        }
        let mut ids = vec![id.ok_or(NO_ID)?];
        while let ([word, after @ ..], true) = (rest, takes_many)
            && let Some(id) = parse_integer(word)
        {
            ids.push(id);
            rest = after;
        }
        if ids.iter().any(|id| *id <= 0) {
            return Err(NO_ID);
        }
        self.ids = Some(ids);
        Ok(rest)
    }

    /// Parses an option that only some servers know; returns false if it is not one of these.
    fn take_more(
        &mut self,
        call: &Call<'a>,
        option: &[u8],
        value: &'a [u8],
    ) -> Result<bool, Refusal> {
        if !call.server.profile().has(Feature::ClientFilters) {
            return Ok(false);
        }
        if is(option, "NAME") {
            self.name = Some(value);
        } else if is(option, "LIB-NAME") {
            self.library[0] = Some(value);
        } else if is(option, "LIB-VER") {
            self.library[1] = Some(value);
        } else if is(option, "IP") {
            self.ip = Some(value);
        } else if is(option, "MAXAGE") {
            self.age_s = Some(seconds("maxage", value)?);
        } else if is(option, "IDLE") {
            self.idle_s = Some(seconds("idle", value)?);
        } else if is(option, "DB") {
            self.database = Some(database(value, call.server.database_count())?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns true if the connection `id` matches when the wall clock reads `wall_ns`.
    pub(super) fn is_about(&self, id: u64, client: &Client, wall_ns: u64) -> bool {
        let address = client.address.as_bytes();
        let ip = address.rsplitn(2, |&byte| byte == b':').last().unwrap_or_default();
        let (since_ns, seen_ns) = client.seen_ns.unwrap_or((wall_ns, wall_ns));
        let seconds = |from_ns: u64| wall_ns.saturating_sub(from_ns) / 1_000_000_000;
        let library = self.library.iter().zip(&client.library);
        self.ids.as_ref().is_none_or(|ids| ids.contains(&(id as i64)))
            && self.address.is_none_or(|wanted| wanted == address)
            && self.local_address.is_none_or(|wanted| wanted == client.local_address.as_bytes())
            && self.user.is_none_or(|wanted| wanted == &*client.user)
            && self.name.is_none_or(|wanted| wanted == &*client.name)
            && library.into_iter().all(|(wanted, own)| wanted.is_none_or(|it| it == &**own))
            && self.ip.is_none_or(|wanted| wanted == ip)
            && self.database.is_none_or(|wanted| wanted == client.database)
            && self.age_s.is_none_or(|least| seconds(since_ns) >= least)
            && self.idle_s.is_none_or(|least| seconds(seen_ns) >= least)
    }
}

fn seconds(name: &str, word: &[u8]) -> Result<u64, Refusal> {
    let number = parse_integer(word)
        .ok_or_else(|| Refusal::of(format!("ERR {name} is not an integer or out of range")))?;
    let number = u64::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| Refusal::of(format!("ERR {name} should be greater than 0")))
}

fn database(word: &[u8], count: u8) -> Result<u8, Refusal> {
    let number = parse_integer(word);
    let number = number.ok_or(Refusal::new("ERR DB is not an integer or out of range"))?;
    u8::try_from(number).ok().filter(|number| *number < count).ok_or_else(|| {
        let last = count.saturating_sub(1);
        Refusal::of(format!("ERR DB number should be between 0 and {last}"))
    })
}
