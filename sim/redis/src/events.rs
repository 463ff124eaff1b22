//! Keyspace events (`notify-keyspace-events`): publications about changes of keys.

/// Classes of events of which servers send some, and the two forms of the publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events(u16);

/// Class of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A change that is possible for every type of key.
    Generic,
    /// A change of a hash.
    Hash,
    /// A change of a list.
    List,
    /// A change of a sorted set.
    SortedSet,
    /// A change of a string.
    String,
    Expired,
    Evicted,
}

/// A change of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) class: Class,
    pub(super) name: &'static str,
    /// Number of the key's database.
    pub(super) database: u8,
    pub(super) key: &'a [u8],
}

/// Letters of the setting in the order in which servers show them. `A` stands for all before it.
const LETTERS: [(char, u16); 14] = [
    ('g', 1 << 0),
    ('$', 1 << 1),
    ('l', 1 << 2),
    ('s', 1 << 3),
    ('h', 1 << 4),
    ('z', 1 << 5),
    ('x', 1 << 6),
    ('e', 1 << 7),
    ('t', 1 << 8),
    ('d', 1 << 9),
    ('n', 1 << 10),
    ('K', KEYSPACE),
    ('E', KEYEVENT),
    ('m', 1 << 13),
];
/// The classes that `A` stands for.
const ALL: u16 = (1 << 10) - 1;
const NEW: u16 = 1 << 10;
/// A channel for each key; the message is the event.
const KEYSPACE: u16 = 1 << 11;
/// A channel for each event; the message is the key.
const KEYEVENT: u16 = 1 << 12;

impl Events {
    /// Parses the setting; `None` if it has an unknown letter.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut bits = 0;
        for letter in text.chars() {
            bits |= match letter {
                'A' => ALL,
                _ => LETTERS.iter().find(|(known, _)| *known == letter)?.1,
            };
        }
        Some(Self(bits))
    }

    /// Returns the setting as servers show it. With `A`, they do not show `n`.
    pub(super) fn text(self) -> String {
        let has_all = self.0 & ALL == ALL;
        let hidden = if has_all { ALL | NEW } else { 0 };
        let letters = LETTERS.iter().filter(|(_, bit)| self.0 & bit & !hidden != 0);
        has_all.then_some('A').into_iter().chain(letters.map(|(letter, _)| *letter)).collect()
    }

    /// Returns true if no event is sent.
    pub(super) fn is_off(self) -> bool {
        self.0 & (KEYSPACE | KEYEVENT) == 0
    }

    /// Returns true if events of this class are sent.
    pub(super) fn has(self, class: Class) -> bool {
        let letter = match class {
            Class::Generic => 'g',
            Class::Hash => 'h',
            Class::List => 'l',
            Class::SortedSet => 'z',
            Class::String => '$',
            Class::Expired => 'x',
            Class::Evicted => 'e',
        };
        LETTERS.iter().any(|(known, bit)| *known == letter && self.0 & bit != 0)
    }

    pub(super) fn by_key(self) -> bool {
        self.0 & KEYSPACE != 0
    }

    pub(super) fn by_event(self) -> bool {
        self.0 & KEYEVENT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Redis 7.0.15.
    #[test]
    fn the_setting_is_shown_in_its_own_order() {
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("AKEmn", "AKEm"),
            ("Kg$", "g$K"),
            ("xE", "xE"),
            ("KEg$lshzxetd", "AKE"),
            ("nm", "nm"),
            ("Ex$g", "g$xE"),
        ] {
            assert_eq!(Events::parse(given).map(Events::text).as_deref(), Some(shown), "{given}");
        }
        assert_eq!(Events::parse("Kq"), None);
    }

    #[test]
    fn a_class_is_sent_if_its_letter_and_a_form_are_set() {
        let has = |text: &str| {
            let events = Events::parse(text).expect("known letters");
            let classes = [
                Class::Generic,
                Class::String,
                Class::Expired,
                Class::Evicted,
                Class::Hash,
                Class::List,
            ];
            (events.is_off(), classes.map(|class| events.has(class)))
        };
        assert_eq!(has(""), (true, [false; 6]));
        assert_eq!(has("A"), (true, [true; 6]));
        assert_eq!(has("Kg"), (false, [true, false, false, false, false, false]));
        assert_eq!(has("E$x"), (false, [false, true, true, false, false, false]));
        assert_eq!(has("Kl"), (false, [false, false, false, false, false, true]));
        assert_eq!(has("Kh"), (false, [false, false, false, false, true, false]));
        assert_eq!(has("KEe"), (false, [false, false, false, true, false, false]));
    }
}
