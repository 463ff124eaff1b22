//! Servers that come and go at random.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::fleet::Fleet;
use crate::server::Server;

/// TTL of every lease meanwhile.
pub(crate) const TTL: Duration = Duration::from_secs(1);

/// Random numbers that a seed repeats (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(crate) fn up_to(&mut self, longest: Duration) -> Duration {
        let longest_us = u64::try_from(longest.as_micros()).expect("a short time");
        Duration::from_micros(self.roll(longest_us + 1))
    }
}

/// Seed of this run: the time, unless `REDLOCK_SOAK_SEED` gives one.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("REDLOCK_SOAK_SEED").ok();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    given.map_or_else(|| now() as u64, |seed| seed.parse().expect("a number"))
}

/// Stops, kills and restarts servers, never more than a minority at a time. A server that has come
/// back empty counts as missing until its quarantine is over. Returns the numbers of stops, kills
/// and restarts.
pub(crate) async fn wreck(fleet: &mut Fleet, dice: &mut Dice, lasts: Duration) -> [usize; 3] {
    let (end, mut done) = (Instant::now() + lasts, [0; 3]);
    while Instant::now() < end {
        let first = dice.roll(5) as usize;
        let second = (first + 1 + dice.roll(4) as usize) % 5;
        for victim in [first, second] {
            let action = dice.roll(3) as usize;
            let server: &mut Server = &mut fleet[victim];
            match action {
                0 => server.stop(),
                1 => server.kill(),
                _ => server.restart(),
            }
            done[action] += 1;
            tokio::time::sleep(dice.up_to(TTL / 2)).await;
        }
        for victim in [first, second] {
            fleet[victim].recover();
        }
        tokio::time::sleep(TTL + dice.up_to(TTL / 2)).await;
    }
    done
}
