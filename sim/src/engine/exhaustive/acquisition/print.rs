//! Counterexamples as text.

use super::node::Executed;
use super::{Acquisition, Act, Action, Answer, Client, Request, Step};

fn node(place: usize) -> char {
    char::from(b'A' + place as u8)
}

fn client(place: usize) -> String {
    format!("c{}", place + 1)
}

fn act(it: Act, now: u8) -> String {
    match it {
        Act::Tick => format!("tick {now} begins"),
        Act::Begin(of) => format!("{} begins an attempt", client(of)),
        Act::Release(of) => format!("{} releases its lease", client(of)),
        Act::Timer(of) => format!("{}'s timers fire", client(of)),
        Act::Answer(of, at) => format!("{} hears {}'s answer", client(of), node(at)),
        Act::Connect(of, at) => format!("{} connects to {} again", client(of), node(at)),
        Act::Lose(of, at) => format!("the connection of {} to {} is lost", client(of), node(at)),
        Act::Notice(of, at) => {
            format!("{} notices that {} has closed the connection", client(of), node(at))
        }
        Act::Restart(at) => format!("{} restarts without its keys", node(at)),
    }
}

fn execution(at: usize, it: Executed, now: u8) -> Vec<String> {
    let (at, of) = (node(at), client(usize::from(it.client)));
    let done = match (it.request, it.answer) {
        (Request::Set(_), Answer::Done) => format!("{at} sets {of}'s key"),
        (Request::Set(_), Answer::Refused) => format!("{at} refuses {of}: there is a key"),
        (_, Answer::Done) => format!("{at} deletes the key for {of}"),
        (_, Answer::Refused) => format!("{at} finds no key of {of} to delete"),
    };
    let when = if it.at < now { format!(", at tick {}", it.at) } else { String::new() };
    let expiry = it.expired.then(|| format!("the key on {at} expires{when}"));
    expiry.into_iter().chain([format!("{done}{when}")]).collect()
}

fn report(actions: &[Action]) -> &'static str {
    let has = |it: fn(&Action) -> bool| actions.iter().any(it);
    if has(|it| matches!(it, Action::Granted { .. })) {
        ", and is granted the lock"
    } else if has(|it| *it == Action::Failed) {
        ", and its attempt fails"
    } else {
        ""
    }
}

/// Returns the steps as text: numbered lines, one event in each.
#[must_use]
pub fn story<C: Client>(model: &Acquisition<C>, steps: &[Step]) -> String {
    let mut lines = Vec::new();
    let mut world = model.world();
    for step in steps {
        if let Some(at) = step.act.node() {
            let now = world.now;
            let way = &model.ways(&world, at)[usize::from(step.way)];
            lines.extend(way.0.iter().flat_map(|&it| execution(at, it, now)));
            model.execute(&mut world, at, way);
        }
        let actions = model.take(&mut world, step.act);
        lines.push(format!("{}{}", act(step.act, world.now), report(actions)));
    }
    let lines = lines.into_iter().enumerate();
    lines.map(|(place, line)| format!("{:2}. {line}\n", place + 1)).collect()
}
