//! Many clients that want one lock: fairness, waiting times and number of commands.

mod contest;

use core::time::Duration;

use self::contest::{Contest, Seat};
use crate::testing::{TTL, ms};

const AT_ONCE: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);
const SOON: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(5));

fn residents(count: usize) -> Vec<Seat> {
    vec![Seat::Resident; count]
}

#[test]
fn eight_clients_share_a_lock_fairly_and_ask_little() {
    for pause in [AT_ONCE, SOON] {
        for seed in 1..4 {
            let mut contest = Contest::of(&residents(8), 3, seed);
            contest.pause = pause;
            let figures = contest.compete(ms(7_000));
            assert!(figures.grants >= 1_000 && figures.jain >= 0.95, "{figures:?}");
            assert!(figures.share >= 0.85 && figures.commands <= 60.0, "{figures:?}");
            // One client has just come; each of the seven others has about a seventh.
            assert!(figures.comers <= 1.2 / 7.0, "{figures:?}");
        }
    }
}

#[test]
fn a_new_client_has_no_better_chance_than_a_sleeping_one() {
    let chance = |seed| {
        let mut contest = Contest::of(&residents(8), 3, seed);
        contest.pause = AT_ONCE;
        contest.compete(ms(7_000)).chance_of_comers
    };
    let chances: Vec<f64> = (1..6).map(chance).collect();
    let mean = chances.iter().sum::<f64>() / chances.len() as f64;
    assert!(mean <= 1.2, "{chances:?}");
}

#[test]
fn clients_that_return_often_leave_the_others_their_share() {
    for seed in 1..4 {
        let seats = [residents(7), vec![Seat::Newcomer]].concat();
        let figures = Contest::of(&seats, 3, seed).compete(ms(7_000));
        assert!(figures.grants >= 1_000 && figures.jain >= 0.95, "{figures:?}");
        let newcomer = *figures.grants_of.last().expect("eight seats") as f64;
        assert!(newcomer <= 1.2 * figures.grants as f64 / 8.0, "{figures:?}");
    }
}

#[test]
fn a_client_that_is_alone_is_hardly_delayed() {
    let mut contest = Contest::of(&residents(1), 3, 1);
    contest.pause = AT_ONCE;
    let figures = contest.compete(ms(5_000));
    // The round trips of a lock take about a twenty-fifth of the time.
    assert!(figures.share >= 0.94, "{figures:?}");
}

#[test]
fn fifty_clients_hand_a_lock_over_for_few_commands_each() {
    for seed in 1..4 {
        let mut contest = Contest::of(&residents(51), 5, seed);
        contest.acquires(0, contest.now);
        contest.run_until(contest.now.after(ms(2)));
        (1..51).for_each(|seat| contest.acquires(seat, contest.now));
        contest.run_until(contest.now.after(ms(500)));
        let grants = contest.granted.len();
        assert!(grants > 50, "{grants}");
        assert!(contest.commands / grants < 500, "{} a lock", contest.commands / grants);
    }
}

#[test]
fn fifty_clients_sleep_until_the_keys_of_a_dead_holder_expire() {
    let mut contest = Contest::of(&residents(51), 5, 1);
    contest.acquires(0, contest.now);
    contest.run_until(contest.now.after(ms(2)));
    let until = contest.granted[0].1.after(TTL);
    contest.kill(0);
    (1..51).for_each(|seat| contest.acquires(seat, contest.now));
    contest.run_until(until);
    assert_eq!(contest.granted.len(), 1);
    assert!(contest.commands < 2_000, "{} commands to fall asleep", contest.commands);
    contest.run_until(until.after(ms(50)));
    let &(_, at) = contest.granted.get(1).expect("a client has the lock");
    assert!(at.since(until) < ms(15), "{:?}", at.since(until));
    assert!(contest.commands < 6_000, "{}", contest.commands);
}

#[test]
fn clients_that_listen_and_clients_that_cannot_are_all_served() {
    for seed in 1..4 {
        let seats = [residents(4), vec![Seat::Deaf; 4]].concat();
        let mut contest = Contest::of(&seats, 3, seed);
        contest.uses = 20;
        (0..8).for_each(|seat| contest.acquires(seat, contest.now));
        contest.run_until(contest.now.after(ms(20_000)));
        assert_eq!(contest.granted.len(), 8 * 20);
    }
}

#[test]
fn two_clients_share_a_lock_however_long_they_hold_it() {
    for hold in [ms(5), ms(25), ms(100)] {
        for seed in 1..5 {
            let mut contest = Contest::of(&residents(2), 3, seed);
            (contest.pause, contest.hold) = (AT_ONCE, hold);
            let figures = contest.compete(ms(20_000));
            assert!(figures.jain >= 0.95, "{hold:?}: {figures:?}");
            // The first client meets nobody before its turn is over, a few times.
            let of_turns = 4 * 250 / hold.as_millis() as usize;
            assert!(figures.longest_run <= of_turns.max(20), "{hold:?}: {figures:?}");
        }
    }
}
