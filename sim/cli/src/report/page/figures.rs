//! The quantities of a case on its page: values over the seeds, and expected bounds.

use maud::{Markup, html};
use redlock_sim::search::{CaseResult, Figures, QuantityResult};

/// Draws the table of quantities; nothing if it has no line. `all` adds the quantities that nothing
/// is expected of, if they are not always 0.
pub(super) fn draw(result: &CaseResult, all: bool) -> Markup {
    let is_drawn = |it: &&QuantityResult| {
        it.expected.is_some() || (all && it.figures.is_some_and(|figures| figures.max > 0))
    };
    let drawn: Vec<&QuantityResult> = result.quantities.iter().filter(is_drawn).collect();
    html! {
        @if !drawn.is_empty() {
            table.quantities.list {
                thead { tr {
                    th { "quantity" } th { "expected" } th { "min" } th { "median" } th { "max" } th { "seeds" }
                } }
                tbody { @for it in drawn { (line(it, result.runs)) } }
            }
        }
    }
}

fn line(it: &QuantityResult, runs: u64) -> Markup {
    let value = |of: fn(&Figures) -> u64| match &it.figures {
        Some(figures) => it.quantity.words(of(figures)),
        None => String::from("–"),
    };
    let expected = it.expected.map(|bounds| it.quantity.written(bounds));
    html! {
        tr class=[(!it.failures.is_empty()).then_some("failed")] {
            td { (it.quantity.name()) }
            td { (expected.unwrap_or_default()) }
            td { (value(|figures| figures.min)) }
            td { (value(|figures| figures.median)) }
            td { (value(|figures| figures.max)) }
            td { (it.measured) " of " (runs) }
        }
        @for failure in &it.failures {
            tr.failed { td {} td.failure colspan="5" { "✗ " (failure) } }
        }
    }
}
