//! Commands that clients sent and that the masters do not know.

use std::collections::BTreeMap;

use redis_sim::server::UnknownCommand;

/// Maximum number of different commands, each client's counted by itself.
const COMMANDS_MAX: usize = 256;

/// Unknown commands of each client, with the number of their calls. Connections without a name are one
/// client.
#[derive(Clone, Debug, Default)]
pub(super) struct UnknownCommands(BTreeMap<Option<String>, BTreeMap<UnknownCommand, u64>>);

impl UnknownCommands {
    pub(super) fn add(&mut self, client: Option<&String>, found: BTreeMap<UnknownCommand, u64>) {
        let mut count: usize = self.0.values().map(BTreeMap::len).sum();
        for (command, calls) in found {
            let own = self.0.entry(client.cloned()).or_default();
            if count < COMMANDS_MAX || own.contains_key(&command) {
                count += usize::from(!own.contains_key(&command));
                *own.entry(command).or_default() += calls;
            }
        }
    }

    /// Names the commands, in a sentence for each client.
    pub(super) fn in_words(&self) -> Vec<String> {
        let sentence = |(client, found): (&Option<String>, &BTreeMap<UnknownCommand, u64>)| {
            let client = client.as_deref().unwrap_or("a connection without a name");
            let commands: Vec<String> = found.iter().map(|(it, &calls)| word(it, calls)).collect();
            let commands = commands.join(", ");
            format!(
                "{client} sent commands that the masters do not know: {commands}; see docs/masters.md"
            )
        };
        self.0.iter().filter(|(_, found)| !found.is_empty()).map(sentence).collect()
    }
}

/// Names a command: `LPUSH (in a script, 40 times)`.
fn word(UnknownCommand { name, in_script }: &UnknownCommand, calls: u64) -> String {
    match (in_script, calls) {
        (false, 1) => name.clone(),
        (true, 1) => format!("{name} (in a script)"),
        (false, _) => format!("{name} ({calls} times)"),
        (true, _) => format!("{name} (in a script, {calls} times)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, in_script: bool, calls: u64) -> BTreeMap<UnknownCommand, u64> {
        BTreeMap::from([(UnknownCommand { name: name.to_owned(), in_script }, calls)])
    }

    #[test]
    fn the_commands_of_each_client_are_added_up() {
        let (c1, mut unknown) = (String::from("c1"), UnknownCommands::default());
        unknown.add(Some(&c1), found("BLPOP", false, 1));
        unknown.add(Some(&c1), found("LPUSH", true, 1));
        unknown.add(Some(&c1), found("LPUSH", true, 39));
        unknown.add(None, found("BRPOP", false, 2));
        assert_eq!(
            unknown.in_words(),
            [
                "a connection without a name sent commands that the masters do not know: \
                 BRPOP (2 times); see docs/masters.md",
                "c1 sent commands that the masters do not know: BLPOP, LPUSH (in a \
                 script, 40 times); see docs/masters.md",
            ]
        );
    }

    #[test]
    fn commands_beyond_the_limit_are_dropped() {
        let mut unknown = UnknownCommands::default();
        (0..2 * COMMANDS_MAX).for_each(|it| unknown.add(None, found(&format!("X{it}"), false, 1)));
        unknown.add(None, found("X0", false, 1));
        let told = unknown.in_words().concat();
        assert!(told.contains("X0 (2 times)") && told.matches('X').count() == COMMANDS_MAX);
    }
}
