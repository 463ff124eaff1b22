//! Use of connections by a policy client: the habits of real libraries, mistakes included.

use std::collections::VecDeque;

use lock_judge::history::{AttemptId, NodeId};
use lock_judge::ids::ResourceId;
use redlock_protocol::Token;

use super::{Action, CommandKind, Connect, Route};

/// Lane on which a resending driver sends a SET again.
const SPARE_LANE: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    Closed,
    Dialing,
    Open,
}

/// A command to send, and the attempt that sends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) attempt: AttemptId,
    pub(super) kind: CommandKind,
    pub(super) token: Token,
}

impl Command {
    /// Returns the action that sends the command on a connection.
    fn on(self, route: Route) -> Action {
        let Self { attempt, kind, token } = self;
        Action::Write { route, attempt, resource: ResourceId::default(), kind, token }
    }
}

#[derive(Clone, Debug)]
struct Lane {
    number: u16,
    epoch: u32,
    state: LaneState,
    waiting: VecDeque<Command>,
}

/// The connections to one node. While a connection opens, its commands wait in memory for as long
/// as it takes; they are lost if the connection closes.
#[derive(Clone, Debug, Default)]
pub(super) struct Transport {
    lanes: Vec<Lane>,
    fresh_lanes: u16,
}

impl Transport {
    /// Resets to the beginning of a run. With `warm`, the pooled connections are open.
    pub(super) fn reset(&mut self, connect: Connect, warm: bool) {
        self.lanes.clear();
        self.fresh_lanes = 0;
        let pooled = match connect {
            Connect::FreshPerCommand => 0,
            Connect::Pooled => 1,
            Connect::Resending | Connect::SecondForRelease => 2,
        };
        for number in 0..pooled {
            let is_spare = connect == Connect::Resending && number == SPARE_LANE;
            let state = if warm && !is_spare { LaneState::Open } else { LaneState::Closed };
            self.lanes.push(Lane { number, epoch: 1, state, waiting: VecDeque::new() });
        }
    }

    /// Sends a command on the lane that `connect` selects.
    pub(super) fn send(
        &mut self,
        connect: Connect,
        node: NodeId,
        command: Command,
        actions: &mut VecDeque<Action>,
    ) {
        let place = match connect {
            Connect::Pooled | Connect::Resending => 0,
            Connect::SecondForRelease => usize::from(is_release(command.kind)),
            Connect::FreshPerCommand => {
                let number = self.fresh_lanes;
                self.fresh_lanes += 1;
                let (epoch, state) = (0, LaneState::Closed);
                self.lanes.push(Lane { number, epoch, state, waiting: VecDeque::new() });
                self.lanes.len() - 1
            }
        };
        self.send_on(place, node, command, actions);
        if connect == Connect::Resending && matches!(command.kind, CommandKind::Set { .. }) {
            self.send_on(SPARE_LANE.into(), node, command, actions);
        }
    }

    fn send_on(
        &mut self,
        place: usize,
        node: NodeId,
        command: Command,
        actions: &mut VecDeque<Action>,
    ) {
        let lane = &mut self.lanes[place];
        if lane.state == LaneState::Open {
            let route = Route { node, lane: lane.number, epoch: lane.epoch };
            actions.push_back(command.on(route));
            return;
        }
        lane.waiting.push_back(command);
        if lane.state == LaneState::Closed {
            lane.epoch += 1;
            lane.state = LaneState::Dialing;
            actions.push_back(Action::Dial(Route { node, lane: lane.number, epoch: lane.epoch }));
        }
    }

    pub(super) fn connected(&mut self, route: Route, actions: &mut VecDeque<Action>) {
        let Some(lane) = self.lane(route) else { return };
        lane.state = LaneState::Open;
        while let Some(command) = lane.waiting.pop_front() {
            actions.push_back(command.on(route));
        }
    }

    pub(super) fn closed(&mut self, route: Route) {
        if let Some(lane) = self.lane(route) {
            lane.state = LaneState::Closed;
            lane.waiting.clear();
        }
    }

    /// Returns true if the connection for everything but releases is open.
    pub(super) fn is_open(&self) -> bool {
        self.lanes.first().is_some_and(|lane| lane.state == LaneState::Open)
    }

    fn lane(&mut self, route: Route) -> Option<&mut Lane> {
        let mut lanes = self.lanes.iter_mut();
        lanes.find(|lane| lane.number == route.lane && lane.epoch == route.epoch)
    }
}

fn is_release(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::CompareAndDelete | CommandKind::Delete | CommandKind::Get)
}
