//! The values that a scenario gives as ranges, and whether a fault with a chance happens.

use lock_judge::history::ClientId;
use lock_judge::scenario::{Chance, CountRange, SignedSpanRange, Span, SpanRange};

use crate::choice::{Choice, Choices, Label};

/// Source of drawn values. A range of one value draws nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Draws<'c> {
    /// The least value of every range; whatever has a chance happens, once.
    Least,
    /// By the choices of a run.
    Seeded(&'c Choices),
}

/// A value of a fault or of a step that can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Value {
    /// The start.
    At,
    /// The amount of a clock jump or of a delay.
    By,
    /// The draw that decides if it happens at all.
    Chance,
    /// The time until the next start.
    Every,
    /// The duration.
    Length,
    /// The delay of a restart.
    RestartAfter,
    /// The number of repetitions.
    Times,
}

/// One thing whose values are drawn: an occurrence of a fault, or a step at one time of its loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn<'c> {
    draws: Draws<'c>,
    choice: Choice,
}

impl<'c> Draws<'c> {
    /// Returns the draws for one occurrence of the fault called `id`. The name is its meaning: other
    /// faults can come and go.
    pub(super) fn of_fault(self, id: &str, occurrence: u16) -> Drawn<'c> {
        let own = Choice::of(Label::Fault, 0);
        let choice = Choice { attempt: occurrence, repeat: hash(id), ..own };
        Drawn { draws: self, choice }
    }

    /// Returns the draws for the step with the number `step` of a client, taken for the time
    /// `iteration`.
    pub(super) fn of_step(self, client: ClientId, step: u16, iteration: u32) -> Drawn<'c> {
        let own = Choice::of(Label::Step, client.0);
        let choice = Choice { attempt: step, repeat: iteration, ..own };
        Drawn { draws: self, choice }
    }
}

impl Drawn<'_> {
    /// Returns the draws for one extension of a step that extends several times.
    pub(super) fn of_extension(self, number: u32) -> Self {
        // A loop is taken at most a thousand times.
        let repeat = self.choice.repeat | number << 16;
        Self { choice: Choice { repeat, ..self.choice }, ..self }
    }

    /// Returns the range of the one duration that is drawn.
    pub(super) fn exact(self, value: Value, range: SpanRange) -> SpanRange {
        SpanRange::exactly(Span(self.span_ns(value, range)))
    }

    /// Returns a duration, in nanoseconds.
    pub(super) fn span_ns(self, value: Value, range: SpanRange) -> u64 {
        self.between(value, range.min.0, range.max.0)
    }

    /// Returns a signed duration, in nanoseconds.
    pub(super) fn shift_ns(self, value: Value, range: SignedSpanRange) -> i64 {
        let width = range.max.0.abs_diff(range.min.0);
        range.min.0.saturating_add_unsigned(self.between(value, 0, width))
    }

    pub(super) fn count(self, value: Value, range: CountRange) -> u32 {
        self.between(value, range.min.into(), range.max.into()) as u32
    }

    /// Returns true with the probability `chance`.
    pub(super) fn happens(self, chance: Chance) -> bool {
        match self.draws {
            Draws::Seeded(choices) if !chance.is_certain() => {
                choices.below(self.choice_of(Value::Chance), Chance::CERTAIN.ppm().into())
                    < chance.ppm().into()
            }
            Draws::Least | Draws::Seeded(_) => true,
        }
    }

    fn between(self, value: Value, min: u64, max: u64) -> u64 {
        match self.draws {
            Draws::Least => min,
            Draws::Seeded(choices) => choices.between(self.choice_of(value), min, max),
        }
    }

    fn choice_of(self, value: Value) -> Choice {
        Choice { operation: value as u8, ..self.choice }
    }
}

/// Returns a hash of a name (FNV-1a), the same in every build.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: SpanRange = SpanRange { min: Span(5), max: Span(1_000_000) };

    #[test]
    fn a_fixed_value_is_what_it_is() {
        let choices = Choices::new(3);
        for draws in [Draws::Least, Draws::Seeded(&choices)] {
            let drawn = draws.of_fault("f", 0);
            assert_eq!(drawn.span_ns(Value::At, SpanRange::exactly(Span(7))), 7);
            assert!(drawn.happens(Chance::CERTAIN));
        }
    }

    #[test]
    fn a_draw_depends_on_the_meaning_alone() {
        let choices = Choices::new(3);
        let draws = Draws::Seeded(&choices);
        let at = |id: &str, occurrence| draws.of_fault(id, occurrence).span_ns(Value::At, WIDE);
        assert_eq!(at("f", 1), at("f", 1));
        assert_ne!(at("f", 1), at("f", 2));
        assert_ne!(at("f", 1), at("g", 1));
        let step = |client, step, time| {
            draws.of_step(ClientId(client), step, time).span_ns(Value::Length, WIDE)
        };
        assert_ne!(step(0, 1, 0), step(1, 1, 0));
        assert_ne!(step(0, 1, 0), step(0, 2, 0));
        assert_ne!(step(0, 1, 0), step(0, 1, 1));
        let extension = |time, number| {
            let drawn = draws.of_step(ClientId(0), 1, time).of_extension(number);
            drawn.span_ns(Value::Every, WIDE)
        };
        assert_eq!(extension(2, 1), extension(2, 1));
        assert_ne!(extension(2, 1), extension(2, 2));
        assert_ne!(extension(2, 1), extension(1, 1));
    }

    #[test]
    fn every_value_of_a_signed_range_comes_up() {
        let choices = Choices::new(3);
        let range: SignedSpanRange = "-2ns..1ns".parse().unwrap();
        let drawn = |occurrence| {
            Draws::Seeded(&choices).of_fault("f", occurrence).shift_ns(Value::By, range)
        };
        let mut seen: Vec<i64> = (0..100).map(drawn).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [-2, -1, 0, 1]);
    }

    #[test]
    fn a_chance_is_met_about_as_often_as_it_says() {
        let choices = Choices::new(3);
        let chance: Chance = "25%".parse().unwrap();
        let happens =
            |occurrence: &u16| Draws::Seeded(&choices).of_fault("f", *occurrence).happens(chance);
        let met = (0..1_000).filter(happens).count();
        assert!((200..300).contains(&met), "{met} of 1000");
    }
}
