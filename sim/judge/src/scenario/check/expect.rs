//! Rules about the expectations.

use super::Check;
use crate::scenario::expect::{Expectation, Property, Verdict};
use crate::scenario::model::Hosts;
use crate::scenario::names;

/// The causes that name no host.
const CAUSES: [&str; 6] =
    ["application", "delayed-write", "membership", "none", "operator", "pause"];

impl Check<'_> {
    pub(super) fn expectations(&mut self) {
        for (property, expectation) in &self.scenario.expect {
            let at = format!("expect.{}", property.name());
            let is_broken = matches!(expectation.verdict, Verdict::Violated | Verdict::Sometimes);
            self.reason(&at, expectation);
            if !expectation.blame.is_empty() && !is_broken {
                let message = "a blame needs a violation";
                let expected = "only with `violated` and `sometimes`";
                self.wrong_key(&format!("{at}.blame"), message, expected);
            }
            self.blame(&at, &expectation.blame);
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

    fn blame(&mut self, at: &str, blame: &[String]) {
        for (place, cause) in blame.iter().enumerate() {
            let at = format!("{at}.blame.{place}");
            self.cause(&at, cause);
            if blame[..place].contains(cause) {
                self.wrong(
                    &at,
                    &format!("the cause `{cause}` is listed twice"),
                    "expected each cause once",
                );
            }
            if cause == "none" && blame.len() > 1 {
                let message = "`none` means that the client is wrong, and excludes other causes";
                self.wrong(&at, message, "list it alone");
            }
        }
    }

    fn cause(&mut self, at: &str, cause: &str) {
        let host_of = |kind: &str| cause.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(host) = host_of("clock") {
            return self.host(at, host, Hosts::Machines);
        }
        if let Some(host) = host_of("amnesia") {
            return self.host(at, host, Hosts::Nodes);
        }
        if CAUSES.contains(&cause) {
            return;
        }
        let with_hosts = ["clock", "amnesia"].contains(&cause);
        let help = if with_hosts {
            Some(format!("name the host: `{cause}(NAME)`"))
        } else {
            names::suggestion(cause, CAUSES)
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
