//! A scenario's settings in the terms of the protocol and of the masters.

use lock_judge::scenario::{Drift, Persistence, RestartGuard, Retry, Server};
use redis_sim::profile::{Profile, REDIS_7_0, REDIS_7_2, REDIS_8_4, VALKEY_9};
use redlock_protocol::RetryDelay;

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
