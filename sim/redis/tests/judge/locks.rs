//! The scripts of lock clients, ours among them, with their arguments.

use redlock_client::scripts::{EXTEND, RELEASE};

use crate::dice::Dice;
use crate::round::Word;
use crate::words::{self, in_some_case};

const TEXT: &str = include_str!("locks.txt");

/// A script of a lock client.
pub(crate) struct Lock {
    pub(crate) script: &'static str,
    keys: usize,
    arguments: Vec<&'static str>,
}

/// Returns the scripts of all lock clients.
pub(crate) fn all() -> Vec<Lock> {
    let own = |script, arguments| {
        let script = std::str::from_utf8(script).expect("scripts are text");
        Lock { script, keys: 1, arguments }
    };
    let mut locks = vec![own(RELEASE, vec!["token"]), own(EXTEND, vec!["token", "ttl"])];
    for section in TEXT.split("\n== ").skip(1) {
        let (head, script) = section.split_once('\n').expect("a script");
        let (_, call) = head.rsplit_once(": ").expect("whose script it is");
        let mut call = call.split(' ').skip_while(|word| word.parse::<usize>().is_err());
        let keys = call.next().and_then(|keys| keys.parse().ok()).expect("how many keys");
        locks.push(Lock { script: script.trim_end(), keys, arguments: call.collect() });
    }
    locks
}

impl Lock {
    /// Returns the words after the script or its digest, as the client sends them.
    pub(crate) fn call(&self, dice: &mut Dice) -> Vec<Word> {
        let mut call = vec![Word::text(&self.keys.to_string())];
        call.extend((0..self.keys).map(|_| words::key(dice)));
        for &argument in &self.arguments {
            call.push(match argument {
                "token" => Word::text(dice.pick(&["token-a", "token-a", "token-b"])),
                "ttl" => words::milliseconds(dice),
                "least" => Word::text(dice.pick(&["0", "10", "50000"])),
                "flag" | "database" => Word::text(dice.pick(&["0", "1"])),
                "extend" => in_some_case(dice, "yes"),
                other => panic!("`{other}` is no argument of a lock"),
            });
        }
        call
    }
}
