//! History builder for tests.

use crate::history::{
    Answer, AttemptId, BasedOn, ClientId, ClockKind, ClockSegments, CommandId, Event, EventKind,
    FencingToken, HostId, KeyEnd, NodeId, NodeIds, OpKind, RoundId, Segment, Settlement, WriteId,
    Writer,
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
    events: Vec<Event>,
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

    pub(super) fn begins(&mut self, id: AttemptId) -> &mut Self {
        let (clock, t1_local_ns) = (self.clock, self.reads_ns(host(id), self.clock));
        self.began.push((id, clock, t1_local_ns));
        let members = self.scenario.members(id.client).len();
        self.tell(EventKind::AttemptBegan {
            attempt: id,
            clock,
            t1_local_ns,
            ttl_ns: TTL_MS * MS,
            drift_ns: DRIFT_MS * MS,
            needed: (members / 2 + 1) as u8,
        })
    }

    pub(super) fn writes(&mut self, id: AttemptId, at: char, op: OpKind) -> CommandId {
        let command = CommandId(self.commands);
        self.commands += 1;
        self.tell(EventKind::Written { command, attempt: id, node: node(at), op });
        command
    }

    /// Adds the execution of a command by a node, now.
    pub(super) fn executes(
        &mut self,
        (command, id, at, op): (CommandId, AttemptId, char, OpKind),
        answer: Answer,
        (before, after): (Writer, Writer),
    ) -> &mut Self {
        let (node, changed) = (node(at), before != after);
        let wall_ms = self.reads_ns(node.first_host(), ClockKind::Wall) / MS;
        let expires_wall_ms = if after == Writer::Nobody { u64::MAX } else { wall_ms + TTL_MS };
        self.tell(EventKind::Executed {
            command,
            attempt: id,
            node,
            op,
            answer,
            changed,
            before,
            after,
            expires_wall_ms,
        })
    }

    /// Marks the last execution as a change of the key by the same writer.
    pub(super) fn counts_as_change(&mut self) -> &mut Self {
        match self.events.last_mut().map(|event| &mut event.kind) {
            Some(EventKind::Executed { changed, .. }) => *changed = true,
            other => panic!("not an execution: {other:?}"),
        }
        self
    }

    pub(super) fn answers(&mut self, command: CommandId, id: AttemptId, at: char, answer: Answer) {
        self.hears((command, id, at, OpKind::Set), answer);
    }

    /// Adds the delivery of an answer to the client.
    pub(super) fn hears(
        &mut self,
        (command, attempt, at, op): (CommandId, AttemptId, char, OpKind),
        answer: Answer,
    ) -> &mut Self {
        self.tell(EventKind::Delivered { command, attempt, node: node(at), op, answer })
    }

    /// Adds SETs that are written, executed and answered at once, on empty nodes.
    pub(super) fn sets(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Set);
            let change = (Writer::Nobody, Writer::Attempt(id));
            self.executes((command, id, at, OpKind::Set), Answer::Yes, change);
            self.answers(command, id, at, Answer::Yes);
        }
        self
    }

    pub(super) fn deadline_ns(&self, id: AttemptId) -> u64 {
        let began = self.began.iter().find(|it| it.0 == id).expect("it began");
        began.2 + (TTL_MS - DRIFT_MS) * MS
    }

    pub(super) fn decides(&mut self, id: AttemptId, counted: &str) -> &mut Self {
        let t2_local_ns = self.reads_ns(host(id), self.clock);
        let deadline_local_ns = self.deadline_ns(id);
        self.tell(EventKind::GrantDecided {
            attempt: id,
            counted: counted.chars().map(node).collect::<NodeIds>(),
            t2_local_ns,
            deadline_local_ns,
        })
        .settles(id, Settlement::Granted)
    }

    pub(super) fn delivers(&mut self, id: AttemptId) -> &mut Self {
        let deadline_local_ns = self.deadline_ns(id);
        self.delivers_until(id, deadline_local_ns, 0)
    }

    pub(super) fn delivers_until(
        &mut self,
        id: AttemptId,
        deadline_local_ns: u64,
        fencing_token: u64,
    ) -> &mut Self {
        let clock = self.clock;
        self.tell(EventKind::GrantDelivered {
            attempt: id,
            clock,
            deadline_local_ns,
            fencing_token: FencingToken(fencing_token),
        })
    }

    pub(super) fn settles(&mut self, id: AttemptId, outcome: Settlement) -> &mut Self {
        self.tell(EventKind::AttemptSettled { attempt: id, outcome })
    }

    /// Adds a whole acquisition that takes 2 ms: the SETs after 1 ms, the grant after 2 ms.
    pub(super) fn acquires(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        let t1_ns = self.now_ns;
        self.begins(id).at_ns(t1_ns + MS).sets(id, nodes);
        self.at_ns(t1_ns + 2 * MS).decides(id, nodes).delivers(id)
    }

    /// Begins an extension now, with the usual TTL.
    pub(super) fn begins_extension(&mut self, id: AttemptId) -> &mut Self {
        let t1_local_ns = self.reads_ns(host(id), self.clock);
        self.rounds.push((id, t1_local_ns));
        self.tell(EventKind::ExtensionBegan {
            attempt: id,
            round: RoundId(1),
            t1_local_ns,
            ttl_ns: TTL_MS * MS,
        })
    }

    /// Adds commands of `id` that extend keys of `owner`, executed and answered at once.
    pub(super) fn retimes(&mut self, id: AttemptId, owner: AttemptId, nodes: &str) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Extend);
            let change = (Writer::Attempt(owner), Writer::Attempt(owner));
            self.executes((command, id, at, OpKind::Extend), Answer::Yes, change);
            self.counts_as_change().hears((command, id, at, OpKind::Extend), Answer::Yes);
        }
        self
    }

    /// Returns the new deadline of the last extension of `id`, computed soundly.
    pub(super) fn extended_until_ns(&self, id: AttemptId) -> u64 {
        let round = self.rounds.iter().rev().find(|it| it.0 == id).expect("an extension began");
        round.1 + (TTL_MS - DRIFT_MS) * MS
    }

    /// Adds the decision that the extension succeeds.
    pub(super) fn succeeds(&mut self, id: AttemptId, counted: &str, until_ns: u64) -> &mut Self {
        self.tell(EventKind::ExtensionSettled {
            attempt: id,
            round: RoundId(1),
            extended: true,
            counted: counted.chars().map(node).collect::<NodeIds>(),
            deadline_local_ns: until_ns,
        })
    }

    /// Adds the notification of the application about the new deadline.
    pub(super) fn prolongs(&mut self, id: AttemptId, deadline_local_ns: u64) -> &mut Self {
        let clock = self.clock;
        self.tell(EventKind::ExtensionDelivered { attempt: id, clock, deadline_local_ns })
    }

    /// Adds a whole extension that takes 2 ms: executed after 1 ms, decided and delivered after
    /// 2 ms.
    pub(super) fn extends(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        let t1_ns = self.now_ns;
        self.begins_extension(id).at_ns(t1_ns + MS).retimes(id, id, nodes).at_ns(t1_ns + 2 * MS);
        let until_ns = self.extended_until_ns(id);
        self.succeeds(id, nodes, until_ns).prolongs(id, until_ns)
    }

    pub(super) fn ends_key(
        &mut self,
        id: AttemptId,
        nodes: &str,
        cause: KeyEnd,
        by: Writer,
    ) -> &mut Self {
        for at in nodes.chars() {
            let (node, writer) = (node(at), Writer::Attempt(id));
            let wall_ms = self.reads_ns(node.first_host(), ClockKind::Wall) / MS;
            self.tell(EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms: wall_ms });
        }
        self
    }

    pub(super) fn expires(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        self.ends_key(id, nodes, KeyEnd::Expired, Writer::Nobody)
    }

    /// Adds releases of `id` that delete its keys on `nodes`.
    pub(super) fn unlocks(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        self.deletes(id, id, nodes)
    }

    /// Adds commands of `by` that delete the keys of `owner` on `nodes`.
    pub(super) fn deletes(&mut self, by: AttemptId, owner: AttemptId, nodes: &str) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(by, at, OpKind::Release);
            let change = (Writer::Attempt(owner), Writer::Nobody);
            self.executes((command, by, at, OpKind::Release), Answer::Yes, change);
            let (cause, by) = (KeyEnd::Command, Writer::Attempt(by));
            self.ends_key(owner, &at.to_string(), cause, by);
        }
        self
    }

    /// Adds SETs of `id` that are refused by nodes that hold keys of `owner`.
    pub(super) fn is_refused(&mut self, id: AttemptId, owner: AttemptId, nodes: &str) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Set);
            let change = (Writer::Attempt(owner), Writer::Attempt(owner));
            self.executes((command, id, at, OpKind::Set), Answer::No, change);
            self.answers(command, id, at, Answer::No);
        }
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

    pub(super) fn sends_write(&mut self, id: AttemptId, based_on: u32, token: u64) -> &mut Self {
        let (write, based_on) = (WriteId(id.client.0.into()), BasedOn::on(based_on));
        let fencing_token = FencingToken(token);
        self.tell(EventKind::WriteSent { attempt: id, write, based_on, fencing_token })
    }

    pub(super) fn write_lands(
        &mut self,
        id: AttemptId,
        (based_on, version): (u32, u32),
        fencing_token: u64,
    ) -> &mut Self {
        let (write, based_on) = (WriteId(id.client.0.into()), BasedOn::on(based_on));
        let fencing_token = FencingToken(fencing_token);
        self.tell(EventKind::WriteApplied { attempt: id, write, based_on, version, fencing_token })
    }

    pub(super) fn enters(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::SectionEntered { attempt: id })
    }

    pub(super) fn leaves(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::SectionLeft { attempt: id })
    }

    pub(super) fn checks(&mut self, id: AttemptId, alive: bool) -> &mut Self {
        self.tell(EventKind::Checked { attempt: id, alive })
    }

    pub(super) fn releases(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::ReleaseCalled { attempt: id })
    }

    pub(super) fn stops(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Stopped { host: host(id), suspended: false })
    }

    pub(super) fn continues(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Continued { host: host(id) })
    }

    pub(super) fn kills(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Killed { host: host(id), power: false })
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
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
