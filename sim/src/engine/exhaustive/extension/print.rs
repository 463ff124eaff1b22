//! Counterexamples in words.

use super::Step;

/// One step, in words.
fn words(step: Step) -> String {
    let name = |place: usize| char::from(b'A' + place as u8);
    match step {
        Step::Tick => String::from("a tick passes"),
        Step::Extend => String::from("the holder begins a round"),
        Step::Fire => String::from("the holder's timers fire"),
        Step::Execute(place) => format!("{} executes the next command", name(place)),
        Step::Answer(place) => format!("the holder hears {}'s answer", name(place)),
        Step::Forget(place) => format!("{} forgets the holder's key", name(place)),
        Step::Take(place) => format!("the other client sets its key on {}", name(place)),
        Step::Leave(place) => format!("the other client takes its key off {}", name(place)),
        Step::Cut(place) => format!("the connection to {} is cut", name(place)),
        Step::Stray(place) => {
            format!("the SET of the cut connection is executed on {}", name(place))
        }
    }
}

/// The steps, one a line, numbered.
#[must_use]
pub fn story(steps: &[Step]) -> String {
    let lines = steps.iter().enumerate();
    lines.map(|(place, &step)| format!("{:2}. {}\n", place + 1, words(step))).collect()
}
