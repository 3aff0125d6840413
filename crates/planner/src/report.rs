//! The report of a plan: every choice and every non-choice, as data and in words.
//! Filled by the stages; read by operators, by the planning loop and by tests.

use alloc::vec::Vec;
use core::fmt;

use state::decision::Cause;
use state::epoch::{Revision, Timestamp};
use state::ids::ChannelName;
use state::node::NodeRef;

use crate::spread::Pick;
use crate::targets::Targets;
use crate::view::View;

/// Channels listed one by one among those that wait; further ones are only counted.
const LISTED_MAX: usize = 1_000;

/// A stage of the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Channels without an owner.
    Repair,
    /// Nodes to be emptied.
    Drain,
    /// Load is evened out.
    Balance,
}

/// Why something was not chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The first nodes of a cold start have just registered; others may follow.
    Settling {
        /// End of the settle window.
        until: Timestamp,
    },
    /// No node can take any channel.
    NoNode,
    /// Every candidate cools down for this channel.
    CoolingDown {
        /// The first cool-down ends.
        until: Timestamp,
    },
    /// Too many former owners of the channel wait for clean-up.
    FormerOwners,
    /// The decision is full.
    Deferred {
        /// Moves in one decision.
        moves_max: usize,
    },
    /// The node is to be emptied, and no other can take its channels.
    NoTarget,
    /// Enough channels are on the move.
    MovesInFlight {
        /// `balance_moves_max`.
        max: u32,
    },
    /// Evening out load is switched off.
    BalanceOff,
    /// Load is evened out only while no operation is running.
    Busy {
        /// Channels that are being watched or released.
        channels: u32,
    },
    /// Load is evened out only after nothing has changed for a while.
    Quiet {
        /// It may be then.
        until: Timestamp,
    },
    /// Each channel that could be moved was moved not long ago.
    MovedLately {
        /// The first of them may be moved again.
        until: Timestamp,
    },
    /// No channel of the fullest nodes may go to the emptiest.
    NoBetterNode,
}

/// A channel that gets a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Which channel.
    pub channel: ChannelName,
    /// Present owner; none: it had none.
    pub from: Option<NodeRef>,
    /// Which node.
    pub to: NodeRef,
    /// Why it needs one.
    pub cause: Cause,
    /// Channels the node had before.
    pub had: u32,
    /// How many nodes could have taken it.
    pub candidates: u32,
}

/// What was not chosen: one channel, or all that are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// In which stage.
    pub stage: Stage,
    /// Which channel; none: `channels` of them, all for the same reason.
    pub channel: Option<ChannelName>,
    /// The node to be emptied, where all of its channels are meant.
    pub node: Option<NodeRef>,
    /// How many channels wait.
    pub channels: u64,
    /// For what.
    pub why: Why,
}

/// What one plan chose and what it left, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Revision of the state it was computed from.
    pub revision: Revision,
    /// Time it was computed for.
    pub at: Timestamp,
    /// Choices in the order of the stages, by name inside a stage.
    pub choices: Vec<Choice>,
    /// What waits.
    pub waiting: Vec<Waiting>,
    /// Channels that wait beyond those listed.
    pub omitted: u64,
    wake_at: Option<Timestamp>,
}

impl Why {
    /// When time alone ends the wait; none: something has to happen.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Settling { until }
            | Self::CoolingDown { until }
            | Self::Quiet { until }
            | Self::MovedLately { until } => Some(*until),
            Self::NoNode
            | Self::FormerOwners
            | Self::Deferred { .. }
            | Self::NoTarget
            | Self::MovesInFlight { .. }
            | Self::BalanceOff
            | Self::Busy { .. }
            | Self::NoBetterNode => None,
        }
    }

    /// What would end the wait.
    #[must_use]
    pub const fn unblock(&self) -> &'static str {
        match self {
            Self::Settling { .. } => "the settle window ends, or settle_ms is lowered",
            Self::NoNode | Self::NoTarget => {
                "a data node registers, is thawed, or is no longer stopping"
            }
            Self::CoolingDown { .. } => "the first cool-down ends, or another data node registers",
            Self::FormerOwners => {
                "a cleaner cleans up after its former owners, or the last cleaner is deregistered"
            }
            Self::Deferred { .. } => "the decision is applied; the next one takes more",
            Self::MovesInFlight { .. } => {
                "a channel on the move arrives, or balance_moves_max is raised"
            }
            Self::BalanceOff => {
                "auto_balance is set to true and channel_balance_policy is not none"
            }
            Self::Busy { .. } => "the running operations end",
            Self::Quiet { .. } => "nothing changes until then, or balance_silent_ms is lowered",
            Self::MovedLately { .. } => {
                "the first of them has rested, or min_move_interval_ms is lowered"
            }
            Self::NoBetterNode => "a cool-down ends, or another data node registers",
        }
    }
}

impl Report {
    pub(crate) fn new(view: &View<'_>) -> Self {
        Self {
            revision: view.state.revision(),
            at: view.time(),
            choices: Vec::new(),
            waiting: Vec::new(),
            omitted: 0,
            wake_at: None,
        }
    }

    pub(crate) fn chose(&mut self, choice: Choice) {
        self.choices.push(choice);
    }

    /// A watched channel goes from one candidate to another.
    pub(crate) fn moved(&mut self, pick: &Pick, targets: &Targets) {
        let Some(to) = targets.node(pick.to) else { return };
        let candidates = u32::try_from(targets.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.chose(Choice {
            channel: pick.chosen.channel.clone(),
            from: targets.node(pick.donor),
            to,
            cause: pick.chosen.cause,
            had: targets.count(pick.to),
            candidates,
        });
    }

    pub(crate) fn waits(&mut self, stage: Stage, channel: &ChannelName, why: Why) {
        self.wake(why);
        if self.waiting.len() >= LISTED_MAX {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let channel = Some(channel.clone());
        self.waiting.push(Waiting { stage, channel, node: None, channels: 1, why });
    }

    pub(crate) fn all_wait(
        &mut self,
        stage: Stage,
        node: Option<NodeRef>,
        channels: u64,
        why: Why,
    ) {
        self.wake(why);
        self.waiting.push(Waiting { stage, channel: None, node, channels, why });
    }

    pub(crate) fn wake(&mut self, why: Why) {
        if let Some(until) = why.until() {
            self.wake_at = Some(self.wake_at.map_or(until, |earlier| earlier.min(until)));
        }
    }

    pub(crate) const fn wake_at(&self) -> Option<Timestamp> {
        self.wake_at
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repair => "repair",
            Self::Drain => "drain",
            Self::Balance => "balance",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settling { until } => write!(f, "nodes are still registering, until {until}"),
            Self::NoNode => f.write_str("no data node can take a channel"),
            Self::CoolingDown { until } => write!(f, "every candidate cools down, until {until}"),
            Self::FormerOwners => f.write_str("too many former owners wait for clean-up"),
            Self::Deferred { moves_max } => write!(f, "the decision is full at {moves_max} moves"),
            Self::NoTarget => f.write_str("no other data node can take its channels"),
            Self::MovesInFlight { max } => write!(f, "at most {max} channels move at a time"),
            Self::BalanceOff => f.write_str("load is not evened out"),
            Self::Busy { channels } => {
                write!(f, "operations are running on {channels} channels")
            }
            Self::Quiet { until } => write!(f, "something changed lately; quiet until {until}"),
            Self::MovedLately { until } => {
                write!(f, "every channel that could go was moved lately, until {until}")
            }
            Self::NoBetterNode => f.write_str("no channel may go to an emptier node"),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.channel)?;
        if let Some(from) = self.from {
            write!(f, "{from} ")?;
        }
        write!(f, "-> {}: {}, it had {} channels", self.to, self.cause, self.had)?;
        match self.candidates {
            1 => f.write_str(", it is the only candidate"),
            several => write!(f, ", one of {several} candidates"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.channel, self.node) {
            (Some(channel), _) => write!(f, "{channel} waits")?,
            (None, Some(node)) => write!(f, "{} channels of {node} wait", self.channels)?,
            (None, None) => write!(f, "{} channels wait", self.channels)?,
        }
        write!(f, " in {}: {}", self.stage, self.why)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan on revision {} at {}", self.revision, self.at)?;
        self.choices.iter().try_for_each(|choice| writeln!(f, "{choice}"))?;
        self.waiting.iter().try_for_each(|waiting| writeln!(f, "{waiting}"))?;
        match self.omitted {
            0 => Ok(()),
            omitted => writeln!(f, "{omitted} more channels wait"),
        }
    }
}
