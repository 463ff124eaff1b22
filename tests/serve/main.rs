//! Served masters, used as any client uses them: over sockets, in real time.

#![expect(clippy::disallowed_methods, reason = "real sockets are what is tested here")]
#![expect(clippy::disallowed_types, reason = "real sockets are what is tested here")]

mod asked;
mod attribution;
mod bad_input;
mod channels;
mod command;
mod connections;
mod drive;
mod faults;
mod leases;
mod scripts;
mod talk;
mod tracking;
mod verdicts;
mod waiting;

use std::path::PathBuf;

use lock_judge::scenario::{Case, Scenario};
use redis_sim::profile::REDIS_7_0;
use redlock_sim::serve::{Fleet, Setup, Verdict};

fn scenario(faults: &str) -> Case {
    case(&format!(
        "schema = 1\nname = \"inline\"\ntitle = \"t\"\n\
         [cluster]\nnetwork = {{ delay = \"0ms\" }}\n\
         [[client]]\nid = \"c1\"\nsubject = \"worker\"\n\
         [[client]]\nid = \"c2\"\nsubject = \"worker\"\n{faults}"
    ))
}

fn case(text: &str) -> Case {
    let scenario: Scenario = toml::from_str(text).unwrap();
    assert_eq!(lock_judge::scenario::complaints(&scenario), []);
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
}

fn setup(case: Case) -> Setup {
    let describe = |verdict: &Verdict| {
        let found = verdict.played.result.properties.iter();
        found.map(|it| format!("{} {:?}", it.property.name(), it.observed)).collect()
    };
    Setup {
        case,
        seed: 0,
        base_port: 0,
        observer_port: 0,
        profile: &REDIS_7_0,
        waits_for_start: false,
        owns_workers: false,
        describe,
        out: PathBuf::new(),
    }
}

fn serve(faults: &str) -> Fleet {
    Fleet::start(&setup(scenario(faults))).unwrap()
}
