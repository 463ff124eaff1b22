//! Translation between the masters' reports about keys and the events of a history: masters tag keys
//! with numbers, histories name attempts.

use redis_sim as master;

use lock_judge::history::{AttemptId, ClientId, KeyEnd, Writer};

/// Returns the tag under which masters know `writer`.
pub(crate) fn tag_of(writer: Writer) -> master::Writer {
    match writer {
        Writer::Nobody => master::Writer::Nobody,
        Writer::Attempt(AttemptId { client, number }) => {
            master::Writer::Tagged(u32::from(client.0) << 16 | u32::from(number))
        }
        Writer::Operator => master::Writer::Operator,
    }
}

/// Returns the writer whom masters know under `tag`.
pub(crate) fn writer_of(tag: master::Writer) -> Writer {
    match tag {
        master::Writer::Nobody => Writer::Nobody,
        master::Writer::Tagged(tag) => {
            // The inverse of `tag_of`: the attempt's number is in the lower half.
            Writer::Attempt(AttemptId { client: ClientId((tag >> 16) as u8), number: tag as u16 })
        }
        master::Writer::Operator => Writer::Operator,
    }
}

/// Returns the cause of a key's end as histories name it.
pub(crate) const fn cause_of(cause: master::KeyEnd) -> KeyEnd {
    match cause {
        master::KeyEnd::Command => KeyEnd::Command,
        master::KeyEnd::Evicted => KeyEnd::Evicted,
        master::KeyEnd::Expired => KeyEnd::Expired,
        master::KeyEnd::FailedOver => KeyEnd::FailedOver,
        master::KeyEnd::Flushed => KeyEnd::Flushed,
        master::KeyEnd::Restarted => KeyEnd::Restarted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_its_writer() {
        let attempt = AttemptId { client: ClientId(7), number: u16::MAX };
        for writer in [Writer::Nobody, Writer::Operator, Writer::Attempt(attempt)] {
            assert_eq!(writer_of(tag_of(writer)), writer);
        }
    }
}
