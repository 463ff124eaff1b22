//! Rules about the expectations.

use super::Check;
use crate::scenario::expect::{Expectation, ExpectedBlame, Property, Verdict};
use crate::scenario::model::Hosts;
use crate::scenario::names;

/// The causes that name no host.
const CAUSES: [&str; 7] =
    ["application", "delayed-write", "membership", "none", "operator", "pause", "randomness"];

/// The causes that name a host.
const HOST_CAUSES: [&str; 2] = ["amnesia", "clock"];

impl Check<'_> {
    pub(super) fn expectations(&mut self) {
        for (property, expectation) in &self.scenario.expect.properties {
            let at = format!("expect.{}", property.name());
            let is_broken = matches!(expectation.verdict, Verdict::Violated | Verdict::Sometimes);
            self.reason(&at, expectation);
            if let Some(blame) = &expectation.blame {
                if !is_broken {
                    let message = "a blame needs a violation";
                    let expected = "only with `violated` and `sometimes`";
                    self.wrong_key(&format!("{at}.blame"), message, expected);
                }
                self.blame(&format!("{at}.blame"), blame);
            }
            if let Some(overlap) = expectation.overlap_at_least {
                self.overlap(&format!("{at}.overlap-at-least"), *property, is_broken);
                self.positive(&format!("{at}.overlap-at-least"), overlap);
            }
        }
    }

    fn reason(&mut self, at: &str, expectation: &Expectation) {
        let word = match expectation.verdict {
            Verdict::Any => "any",
            Verdict::Sometimes => "sometimes",
            Verdict::Holds | Verdict::Violated => return,
        };
        if expectation.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            let message = format!("`{word}` needs a reason");
            let complaint = self.wrong(at, &message, "say why no verdict is certain");
            complaint.help = Some(format!("write {{ verdict = \"{word}\", reason = \"…\" }}"));
        }
    }

    fn blame(&mut self, at: &str, blame: &ExpectedBlame) {
        let (at, is_any) = match blame {
            ExpectedBlame::Exactly(_) => (at.to_owned(), false),
            ExpectedBlame::AnyOf(_) => (format!("{at}.any-of"), true),
        };
        let causes = blame.causes();
        if causes.is_empty() {
            let message = "the list of causes is empty";
            self.wrong(&at, message, "name a cause, or leave `blame` out");
        }
        for (place, cause) in causes.iter().enumerate() {
            let at = format!("{at}.{place}");
            self.cause(&at, cause, is_any);
            if causes[..place].contains(cause) {
                self.wrong(
                    &at,
                    &format!("the cause `{cause}` is listed twice"),
                    "expected each cause once",
                );
            }
            if cause == "none" && (is_any || causes.len() > 1) {
                let message = "`none` means that the client is wrong, and excludes other causes";
                self.wrong(&at, message, "write `blame = [\"none\"]`");
            }
        }
    }

    fn cause(&mut self, at: &str, cause: &str, is_any: bool) {
        let host_of = |kind: &str| cause.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')');
        let host = host_of("clock").map(|host| (host, Hosts::Machines));
        if let Some((host, hosts)) = host.or(host_of("amnesia").map(|host| (host, Hosts::Nodes))) {
            match host {
                "*" if is_any => {}
                "*" => {
                    let message = format!("`{cause}` is not one cause");
                    let complaint = self.wrong(at, &message, "`*` is any host, only in `any-of`");
                    complaint.help = Some(format!("write blame = {{ any-of = [\"{cause}\"] }}"));
                }
                host => self.host(at, host, hosts),
            }
            return;
        }
        if CAUSES.contains(&cause) {
            return;
        }
        let help = match cause.split_once('(') {
            None if HOST_CAUSES.contains(&cause) => Some(format!("name the host: `{cause}(NAME)`")),
            None => names::suggestion(cause, CAUSES),
            Some((kind, rest)) => names::nearest(kind, HOST_CAUSES)
                .map(|kind| format!("did you mean `{kind}({rest}`?")),
        };
        let expected = "expected `clock(HOST)`, `amnesia(NODE)` or the name of a cause";
        self.wrong(at, &format!("unknown cause `{cause}`"), expected).help = help;
    }

    fn overlap(&mut self, at: &str, property: Property, is_broken: bool) {
        let overlaps = matches!(property, Property::MutualExclusion | Property::ExclusiveSection);
        if !overlaps {
            let message = format!("`{}` has no overlaps", property.name());
            let expected = "only for `mutual-exclusion` and `exclusive-section`";
            self.wrong_key(at, &message, expected);
        } else if !is_broken {
            let message = "an overlap needs a violation";
            self.wrong_key(at, message, "only with `violated` and `sometimes`");
        }
    }
}
