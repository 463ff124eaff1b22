//! Rules about further tasks of a client's process.

use super::Check;
use crate::scenario::model::Client;

impl Check<'_> {
    /// Checks a further task: of an earlier client that can have tasks, and without anything that
    /// belongs to the process.
    pub(super) fn task(&mut self, at: &str, place: usize, client: &Client) {
        let Some(name) = &client.task_of else { return };
        let whose = format!("{at}.task-of");
        let Some(process) = self.scenario.clients[..place].iter().find(|it| it.id == *name) else {
            let message = format!("no client `{name}` comes before `{}`", client.id);
            self.wrong(&whose, &message, "expected the name of an earlier client");
            return;
        };
        if process.task_of.is_some() {
            let message = format!("`{name}` is a task itself");
            self.wrong(&whose, &message, "expected the client whose process it is");
        } else if !process.is_ours() {
            let message = format!("`{}` has one task", process.subject);
            self.wrong(&whose, &message, "several tasks of one client are for `redlock`");
        } else if process.copy_of.is_some() {
            let message = format!("`{name}` draws the random numbers of another client");
            self.wrong(&whose, &message, "expected a client without `copy-of`");
        }
        let given = [
            ("subject", !client.is_ours()),
            ("connections", client.connections.is_some()),
            ("nodes", client.nodes.is_some()),
            ("copy-of", client.copy_of.is_some()),
            ("deaf", client.deaf),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let message = format!("`{}` is a task of `{name}`, and shares its `{key}`", client.id);
            let expected = format!("expected `{key}` at `{name}` alone");
            self.wrong_key(&format!("{at}.{key}"), &message, &expected);
        }
    }
}
