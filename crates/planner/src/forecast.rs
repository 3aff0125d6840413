//! What emptying a node would do, and how far it is: for operators, before and during a drain.
//! Plays the planner's own rounds on a copy of the state, with every node answering at once.

use alloc::vec::Vec;

use state::channel::{AckResult, Channel, Phase};
use state::command::{Command, NodeAck, Request};
use state::epoch::Timestamp;
use state::ids::{ChannelName, NodeId, Text};
use state::limits;
use state::node::{NodeRef, NodeStatus};
use state::{Context, State};

use crate::drain;
use crate::report::{Stage, Why};
use crate::view::{Budget, Plan, View};

/// One channel that leaves the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which channel.
    pub channel: ChannelName,
    /// Where it goes.
    pub to: NodeRef,
    /// In which round, from 1.
    pub round: u32,
}

/// One channel that cannot leave the node as things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// Which channel.
    pub channel: ChannelName,
    /// Why not.
    pub why: Why,
}

/// What a drain would do if every node answered and nothing else happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Channels that leave, in order.
    pub steps: Vec<Step>,
    /// Channels that stay, in name order.
    pub stays: Vec<Stay>,
    /// Releases that follow one another: at most `balance_moves_max` channels go in each.
    pub rounds: u32,
}

/// How far the emptying of a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emptying {
    /// Channels it still watches.
    pub watched: u32,
    /// Channels it was told to watch before.
    pub to_watch: u32,
    /// Channels it is releasing.
    pub to_release: u32,
    /// Why those it watches are not being released now; none: they are, or there are none.
    pub why: Option<Why>,
}

/// Plays the drain of this node; none if it has no such live session.
///
/// Costs one plan for each round: call it off the paths that must be fast.
#[must_use]
pub fn forecast_drain(view: &View<'_>, node: NodeRef) -> Option<Forecast> {
    let mut fork = Fork { state: view.state.clone(), view: *view };
    if fork.state.live(node)?.status == NodeStatus::Up {
        fork.apply(Command::SetStopping { node });
    }
    let mut forecast = Forecast { steps: Vec::new(), stays: Vec::new(), rounds: 0 };
    // Each round releases at least one channel, or is the last.
    let rounds_max = fork.state.counts_of(node.node).total();
    loop {
        fork.answer_all();
        let plan = fork.plan();
        let before = forecast.steps.len();
        let round = forecast.rounds.saturating_add(1);
        let leaving = plan.report.choices.iter().filter(|choice| choice.from == Some(node));
        forecast.steps.extend(leaving.map(|choice| Step {
            channel: choice.channel.clone(),
            to: choice.to,
            round,
        }));
        let released = forecast.steps.len() > before;
        forecast.rounds = if released { round } else { forecast.rounds };
        let taken = fork.carry_out(&plan);
        if !taken || forecast.rounds > rounds_max {
            forecast.stays = fork.stays(node.node, &plan);
            return Some(forecast);
        }
    }
}

/// How far the emptying of this node is; none if it is not being emptied.
#[must_use]
pub fn emptying(view: &View<'_>, node: NodeRef) -> Option<Emptying> {
    let found = view.state.live(node).filter(|found| drain::drains(view, found))?;
    let counts = view.state.counts_of(found.node);
    let plan = crate::plan(view, &Budget { moves_max: limits::MOVES_MAX });
    let moves = plan.report.choices.iter().any(|choice| choice.from == Some(node));
    let why = if moves || counts.watched == 0 { None } else { why(&plan, node.node) };
    Some(Emptying {
        watched: counts.watched,
        to_watch: counts.to_watch,
        to_release: counts.to_release,
        why,
    })
}

/// What the drain stage says of a node, or else of the first of its channels.
fn why(plan: &Plan, node: NodeId) -> Option<Why> {
    let mut waiting = plan.report.waiting.iter().filter(|waits| waits.stage == Stage::Drain);
    let whole = waiting.clone().find(|waits| waits.node.is_some_and(|of| of.node == node));
    whole.or_else(|| waiting.find(|waits| waits.node.is_none())).map(|waits| waits.why)
}

struct Fork<'a> {
    state: State,
    view: View<'a>,
}

impl Fork<'_> {
    fn apply(&mut self, command: Command) -> bool {
        let context = Context { term: self.view.term, now: self.view.time() };
        let request = Request { actor: Text::default(), retry: None, command };
        matches!(self.state.apply(&context, &request), state::outcome::Outcome::Accepted(_))
    }

    fn plan(&self) -> Plan {
        let view = View { state: &self.state, ..self.view };
        crate::plan(&view, &Budget { moves_max: limits::MOVES_MAX })
    }

    fn carry_out(&mut self, plan: &Plan) -> bool {
        let decision = plan.decision.clone();
        decision.is_some_and(|decision| self.apply(Command::Place(decision)))
    }

    /// Every owner does what it was told.
    fn answer_all(&mut self) {
        // At the end of time every running operation is due, and nothing else is listed.
        let running = self.state.due(Timestamp(u64::MAX), usize::MAX).into_iter();
        let acks: Vec<NodeAck> = running
            .filter_map(|command| match command {
                Command::OpTimeout { channel, .. } => answer(self.state.channel(&channel)?),
                _ => None,
            })
            .collect();
        for ack in acks {
            self.apply(Command::NodeAck(ack));
        }
    }

    fn stays(&self, node: NodeId, plan: &Plan) -> Vec<Stay> {
        let whole = why(plan, node);
        let of_channel = |name: &ChannelName| {
            let mut waiting = plan.report.waiting.iter();
            waiting.find(|waits| waits.channel.as_ref() == Some(name)).map(|waits| waits.why)
        };
        let stay = |name: &ChannelName| {
            let why = of_channel(name).or(whole).unwrap_or(Why::NoTarget);
            Stay { channel: name.clone(), why }
        };
        self.state.channels_of(node).map(stay).collect()
    }
}

fn answer(channel: &Channel) -> Option<NodeAck> {
    let (Phase::ToWatch { owner, op, .. } | Phase::ToRelease { owner, op, .. }) = channel.phase
    else {
        return None;
    };
    Some(NodeAck {
        node: owner,
        channel: channel.spec.name.clone(),
        term: channel.term,
        op,
        result: AckResult::Ok,
        reason: Text::default(),
    })
}
