//! Numbers on the command line. An error says which numbers are allowed.

use core::ops::Range;
use core::str::FromStr;

use clap::builder::{StringValueParser, TypedValueParser};
use lock_judge::scenario::Span;

/// Parser of a whole number from `least` to `most`, which fits into a `T`.
pub(super) fn whole<T>(least: u64, most: u64) -> impl TypedValueParser<Value = T>
where
    T: TryFrom<u64> + Clone + Send + Sync + 'static,
{
    StringValueParser::new().try_map(move |text| number(&text, least, most))
}

fn number<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

/// Parses a duration that is not zero.
pub(super) fn some_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span == Span::default() { Err("nothing is played in no time".to_owned()) } else { Ok(span) }
}

/// Numbers of the plans of an exploration; not empty.
#[derive(Clone, Debug)]
pub(in crate::command) struct Plans(pub(in crate::command) Range<u64>);

impl FromStr for Plans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plans = match text.split_once("..") {
            Some((first, end)) => first.parse().ok().zip(end.parse().ok()),
            None => text.parse().ok().map(|number| (0, number)),
        };
        let wanted = "a number of plans, at least 1, or a range such as `5..10`, the end excluded";
        match plans.map(|(first, end)| Self(first..end)) {
            Some(plans) if !plans.0.is_empty() => Ok(plans),
            Some(_) => Err(format!("it has no plan, expected {wanted}")),
            None => Err(format!("expected {wanted}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_answered_with_the_range() {
        assert_eq!(number::<u16>("1024", 1, 1_024), Ok(1_024));
        for text in ["x", "", "-1", "0", "1025", "99999999999999999999999"] {
            let said = number::<u16>(text, 1, 1_024);
            assert_eq!(said, Err(String::from("expected a whole number from 1 to 1024")), "{text}");
        }
    }

    #[test]
    fn no_time_is_refused() {
        assert_eq!(some_time("1ns"), Ok(Span(1)));
        for text in ["0s", "0m"] {
            assert_eq!(some_time(text), Err("nothing is played in no time".to_owned()), "{text}");
        }
    }

    #[test]
    fn plans_are_at_least_one() {
        assert_eq!("7".parse().map(|Plans(range)| range), Ok(0..7));
        assert_eq!("5..7".parse().map(|Plans(range)| range), Ok(5..7));
        for (text, said) in
            [("0", "it has no plan"), ("5..2", "it has no plan"), ("x", "expected a")]
        {
            let error = text.parse::<Plans>().expect_err(text);
            assert!(error.starts_with(said) && error.contains("at least 1"), "{error}");
        }
    }
}
