//! Counterexamples as text.

use super::{Act, Executed, Step};

fn name(place: usize) -> char {
    char::from(b'A' + place as u8)
}

fn act(act: Act) -> String {
    match act {
        Act::Tick => String::from("a tick passes"),
        Act::Extend => String::from("the holder begins a round"),
        Act::Fire => String::from("the holder's timers fire"),
        Act::Answer(place) => format!("the holder hears {}'s answer", name(place)),
        Act::Forget(place) => format!("{} forgets the holder's key", name(place)),
        Act::Cut(place) => format!("the connection to {} is cut", name(place)),
        Act::Stray(place) => {
            format!("the SET of the connection that was cut is executed on {}", name(place))
        }
    }
}

fn executions(place: usize, executed: Executed) -> impl Iterator<Item = String> {
    let node = name(place);
    (0..executed.count).map(move |which| {
        let has = |bits: u16| bits >> which & 1 == 1;
        match (has(executed.sets), has(executed.done)) {
            (true, true) => format!("{node} sets the key"),
            (true, false) => format!("{node} refuses to set the key: there is another"),
            (false, true) => format!("{node} prolongs the key"),
            (false, false) => format!("{node} finds no key to prolong"),
        }
    })
}

/// Returns the steps as text: numbered lines, one event in each.
#[must_use]
pub fn story(steps: &[Step]) -> String {
    let mut lines = Vec::new();
    for step in steps {
        let before = step.before.into_iter().enumerate();
        lines.extend(before.flat_map(|(place, executed)| executions(place, executed)));
        lines.push(act(step.act));
        if step.granted {
            lines.push(String::from("the other client is granted the lock, and releases it"));
        }
    }
    let lines = lines.into_iter().enumerate();
    lines.map(|(place, line)| format!("{:2}. {line}\n", place + 1)).collect()
}
