//! A scenario's settings in the terms of the protocol and of the masters.

use core::num::NonZeroU16;

use lock_judge::scenario::{Drift, Persistence, RestartGuard, Retry, Server};
use redis_sim::profile::{Profile, REDIS_7_0, REDIS_7_2, REDIS_8_4, VALKEY_9};
use redlock_protocol::{RetryDelay, Window};

pub(crate) fn drift(told: Drift) -> redlock_protocol::Drift {
    redlock_protocol::Drift { share_ppm: told.share_ppm, constant: told.constant.duration() }
}

pub(crate) fn restart_guard(told: RestartGuard) -> redlock_protocol::RestartGuard {
    match told {
        RestartGuard::DelayedRestart => redlock_protocol::RestartGuard::DelayedRestart,
        RestartGuard::Durable => redlock_protocol::RestartGuard::Durable,
        RestartGuard::Quarantine => redlock_protocol::RestartGuard::Quarantine,
    }
}

pub(crate) fn retry(told: Retry) -> RetryDelay {
    let (first, longest) = (told.first.duration(), told.longest.duration());
    RetryDelay { first, longest, ..RetryDelay::default() }
}

pub(crate) fn window(told: Option<NonZeroU16>) -> Window {
    told.map_or_else(Window::default, Window::new)
}

pub(crate) fn profile(server: Server) -> &'static Profile {
    match server {
        Server::Redis7 => &REDIS_7_0,
        Server::Redis72 => &REDIS_7_2,
        Server::Redis84 => &REDIS_8_4,
        Server::Valkey9 => &VALKEY_9,
    }
}

pub(crate) fn persistence(told: Persistence) -> redis_sim::Persistence {
    match told {
        Persistence::Always => redis_sim::Persistence::Always,
        Persistence::Everysec => redis_sim::Persistence::Everysec,
        Persistence::No => redis_sim::Persistence::No,
        Persistence::None => redis_sim::Persistence::None,
        Persistence::Rdb => redis_sim::Persistence::Rdb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_judge::scenario::Span;

    #[test]
    fn the_judge_and_the_client_give_up_the_same_for_drift() {
        let told = Drift { share_ppm: 9_999, constant: Span(7) };
        for ttl in [Span(0), Span(1), Span(100_000), Span(1_234_567_891), Span::from_ms(10_000)] {
            assert_eq!(told.of(ttl).duration(), drift(told).of(ttl.duration()), "{ttl}");
        }
    }
}
