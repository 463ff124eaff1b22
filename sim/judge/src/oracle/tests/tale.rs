//! History builder for tests.

mod clients;
mod commands;
mod leases;

use crate::history::{
    AttemptId, ClientId, ClockKind, ClockSegments, Event, EventKind, HostId, NodeId, Segment,
};
use crate::oracle::{Judgement, Measured, Oracle, Verdicts, Violation};
use crate::scenario::{Client, Property, Scenario};

pub(super) const MS: u64 = 1_000_000;
pub(super) const TTL_MS: u64 = 10_000;
pub(super) const DRIFT_MS: u64 = 102;

/// First attempts of clients 1, 2 and 3, and the second attempt of client 1.
pub(super) const C1: AttemptId = AttemptId { client: ClientId(0), number: 1 };

pub(super) const C1_AGAIN: AttemptId = AttemptId { client: ClientId(0), number: 2 };
pub(super) const C2: AttemptId = AttemptId { client: ClientId(1), number: 1 };
pub(super) const C3: AttemptId = AttemptId { client: ClientId(2), number: 1 };
pub(super) const PROBE: AttemptId = AttemptId { client: ClientId(3), number: 1 };

/// Five nodes and three clients with the design's numbers: TTL 10 s, drift 102 ms, links of 1 ms.
pub(super) fn scenario() -> Scenario {
    let client = |id: &str| Client {
        id: String::from(id),
        task_of: None,
        resource: None,
        subject: String::from("redlock"),
        connections: None,
        ttl: None,
        nodes: None,
        copy_of: None,
        deaf: false,
        steps: Vec::new(),
    };
    Scenario {
        schema: 1,
        name: String::from("tale"),
        title: String::new(),
        tags: Vec::new(),
        source: String::new(),
        story: String::new(),
        cluster: Default::default(),
        lock: Default::default(),
        store: Default::default(),
        clients: ["c1", "c2", "c3"].map(client).to_vec(),
        faults: Vec::new(),
        run: Default::default(),
        expect: Default::default(),
        cases: Vec::new(),
        sweep: Default::default(),
        zip: Default::default(),
    }
}

/// Returns the node with this letter.
pub(super) fn node(letter: char) -> NodeId {
    NodeId(letter as u8 - b'A')
}

/// Returns the host of the client of `id`.
pub(super) fn host(id: AttemptId) -> HostId {
    HostId(5 + id.client.0)
}

/// History under construction, and the time of the next event.
pub(super) struct Tale {
    pub scenario: Scenario,
    pub(super) events: Vec<Event>,
    clocks: ClockSegments,
    now_ns: u64,
    commands: u32,
    /// Clock that attempts read.
    pub clock: ClockKind,
    began: Vec<(AttemptId, ClockKind, u64)>,
    /// T1 of each extension, on the clock of its attempt.
    rounds: Vec<(AttemptId, u64)>,
}

impl Tale {
    pub(super) fn new() -> Self {
        let mut tale = Self {
            scenario: scenario(),
            events: Vec::new(),
            clocks: ClockSegments::default(),
            now_ns: 0,
            commands: 0,
            clock: ClockKind::Boot,
            began: Vec::new(),
            rounds: Vec::new(),
        };
        for host in tale.scenario.host_ids() {
            for clock in ClockKind::ALL {
                tale.sets_clock(host, clock, 1_000_000, 0);
            }
        }
        tale
    }

    /// Sets the time of the following events to `ms`.
    pub(super) fn at(&mut self, ms: u64) -> &mut Self {
        self.at_ns(ms * MS)
    }

    pub(super) fn at_ns(&mut self, at_ns: u64) -> &mut Self {
        assert!(at_ns >= self.now_ns, "a tale is told in order");
        self.now_ns = at_ns;
        self
    }

    pub(super) fn tell(&mut self, kind: EventKind) -> &mut Self {
        self.events.push(Event { at_ns: self.now_ns, kind });
        self
    }

    pub(super) fn reads_ns(&self, host: HostId, clock: ClockKind) -> u64 {
        self.clocks.segment(host, clock).local_at(self.now_ns)
    }

    /// Sets the clock to `local_ms` now, with this rate.
    pub(super) fn sets_clock(
        &mut self,
        host: HostId,
        clock: ClockKind,
        local_ms: u64,
        rate_ppb: i32,
    ) -> &mut Self {
        let local_ns = local_ms * MS;
        self.clocks.set(host, clock, Segment { true_ns: self.now_ns, local_ns, rate_ppb });
        self.tell(EventKind::Clock { host, clock, local_ns, rate_ppb })
    }

    /// Makes the clock jump by `by_ms` and keep its rate.
    pub(super) fn steps(&mut self, host: HostId, clock: ClockKind, by_ms: i64) -> &mut Self {
        let reads_ms = (self.reads_ns(host, clock) / MS) as i64;
        let rate_ppb = self.clocks.segment(host, clock).rate_ppb;
        self.sets_clock(host, clock, (reads_ms + by_ms) as u64, rate_ppb)
    }

    /// Changes the rate of the clock from now on.
    pub(super) fn runs_at(&mut self, host: HostId, clock: ClockKind, rate_ppb: i32) -> &mut Self {
        let reads_ms = self.reads_ns(host, clock) / MS;
        self.sets_clock(host, clock, reads_ms, rate_ppb)
    }

    /// Changes the scenario so that C2 is a further task of C1's process.
    pub(super) fn with_c2_in_c1s_process(&mut self) -> &mut Self {
        self.scenario.clients[1].task_of = Some(String::from("c1"));
        self
    }

    /// Changes the scenario so that C1 acquires with `at-once`.
    pub(super) fn with_c1_at_once(&mut self) -> &mut Self {
        let step = toml::from_str("acquire = { at-once = true }").expect("a step");
        self.scenario.clients[0].steps.push(step);
        self
    }

    /// Changes the scenario so that leases are extended, at most `most` times.
    pub(super) fn with_extensions(&mut self, most: u32) -> &mut Self {
        let step = toml::from_str("extend = {}").expect("a step");
        self.scenario.clients[0].steps.push(step);
        self.scenario.lock.extensions_max = most;
        self
    }

    /// Adds a fault to the scenario, given in the syntax of scenario files.
    pub(super) fn with_fault(&mut self, kind: &str) -> &mut Self {
        let fault = format!("id = 'fault'\nat = '0s'\n{kind}");
        self.scenario.faults.push(toml::from_str(&fault).expect("a fault"));
        self
    }

    /// Ends the history and returns the oracle that has observed it.
    fn observed(&mut self) -> Oracle {
        self.tell(EventKind::Ended);
        let mut oracle = Oracle::new(&self.scenario, &[]);
        // An earlier run with the same oracle must not change the verdicts.
        for _ in 0..2 {
            oracle.reset();
            self.events.iter().for_each(|event| oracle.observe(event));
        }
        oracle
    }

    /// Ends the history and returns the oracle's verdicts.
    pub(super) fn verdicts(&mut self) -> Verdicts {
        self.observed().finish()
    }

    /// Ends the history and returns its quantities.
    pub(super) fn measured(&mut self) -> Measured {
        self.observed().measured()
    }

    pub(super) fn finds(&mut self, property: Property) -> Judgement {
        self.verdicts().of(property)
    }

    /// Returns the violation of `property` that the oracle finds.
    pub(super) fn violation(&mut self, property: Property) -> Violation {
        match self.finds(property) {
            Judgement::Violated(violation) => violation,
            other => panic!("{} is not violated: {other:?}", property.name()),
        }
    }

    /// Returns the blame for the violation of `property`, in the notation of scenarios.
    pub(super) fn blame(&mut self, property: Property) -> Vec<String> {
        self.violation(property).blamed.names(&self.scenario)
    }
}
