//! What the oracle demands of fences F1 to F7: whatever was taken must have been asked for, of
//! exactly this channel, in this session, under this leader. It judges what was proposed, which is
//! what is in the log unless a test of the tests wrote something else.

use state::channel::{FormerOwner, ReleaseCause};
use state::command::Command;
use state::decision::{Action, Decision, Guard};
use state::epoch::Term;
use state::event::Event;
use state::ids::{ChannelName, Text};
use state::node::{DownCause, NodeRef, Role};
use state::{Context, State};

use super::oracle::{Oracle, Shadow};

/// Whether a release of this cause counts against the limit of moves.
pub(super) const fn counts(cause: ReleaseCause) -> bool {
    matches!(cause, ReleaseCause::Balance | ReleaseCause::Drain)
}

impl Oracle {
    /// F1 and F2: of a command that changed something.
    pub(super) fn judge_basis(&mut self, before: &State, context: &Context, command: &Command) {
        let Command::Place(Decision { basis, .. }) = command else { return };
        let Context { term, .. } = *context;
        self.demand(basis.term == term, "decisions count in their leader's term only", || {
            format!("a decision of {} was taken in {term}", basis.term)
        });
        let revision = before.revision();
        self.demand(basis.revision <= revision, "decisions are made from this history", || {
            format!("a decision made from {} was taken at {revision}", basis.revision)
        });
    }

    /// F3, F4 and F5: of one thing that a decision did, before it is recorded.
    pub(super) fn judge_move(&mut self, decision: &Decision, event: &Event) {
        let (channel, went) = match event {
            Event::ChannelPlaced { channel, to, .. } => (channel, Some(*to)),
            Event::ReleaseStarted { channel, planned, .. } => (channel, *planned),
            _ => return,
        };
        let chosen = decision.moves.iter().find(|chosen| chosen.channel == *channel);
        let Some(chosen) = chosen else {
            self.violated("moves are taken as they were computed", format!("{event:?}"));
            return;
        };
        let target = match chosen.action {
            Action::Assign { to } | Action::Move { to, .. } => Some(to),
            Action::Release { .. } => None,
        };
        let shadow = self.shadow(channel);
        let present = Guard { term: shadow.term, phase: shadow.phase };
        let guard = chosen.guard;
        let in_life = guard.term >= shadow.added;
        self.demand(in_life, "moves are for the life of a channel they were computed in", || {
            format!("{channel} of {} is moved by {guard:?}", shadow.added)
        });
        self.demand(guard == present, "moves are taken as they were computed", || {
            format!("{channel} is at {present:?}, moved by {guard:?}")
        });
        let meant = target == went;
        self.demand(meant, "moves go to the session they were meant for", || {
            format!("{channel} goes to {went:?}, meant for {target:?}")
        });
        if let Some(to) = went {
            self.judge_target(channel, to);
        }
    }

    fn judge_target(&mut self, channel: &ChannelName, to: NodeRef) {
        let over = self.down.contains_key(&to);
        let role = self.sessions.get(&to).map(|registration| registration.role);
        self.demand(role == Some(Role::Data) && !over, "only live data nodes get channels", || {
            format!("{channel} goes to {to}: {role:?}, over: {over}")
        });
    }

    /// F6: of a release that a decision started, after it is recorded.
    pub(super) fn judge_capacity(&mut self, event: &Event) {
        let Event::ReleaseStarted { channel, .. } = event else { return };
        let (moving, max) = (self.moving(), self.moves_max);
        self.demand(moving <= max, "moves in flight stay within the limit", || {
            format!("{channel} is the {moving}th of {max}")
        });
    }

    /// F7: what is said of a session touches no other.
    pub(super) fn judge_session(&mut self, command: &Command, event: &Event) {
        let touched = match event {
            Event::NodeWentDown { cause: DownCause::Replaced, node } => {
                self.judge_replaced(command, *node);
                return;
            }
            Event::NodeWentDown { node, .. }
            | Event::NodeBeganStopping { node }
            | Event::NodeStoppedStopping { node }
            | Event::SessionSilenceChanged { node, .. } => *node,
            _ => return,
        };
        let said = match command {
            Command::Revoke { node }
            | Command::SetStopping { node }
            | Command::UnsetStopping { node }
            | Command::ExpireSession { node, .. } => *node == touched,
            Command::SessionsObserved { silent, renewed, .. } => {
                renewed.contains(&touched) || silent.iter().any(|(node, _)| *node == touched)
            }
            _ => false,
        };
        self.demand(said, "what is said of a session touches no other", || {
            format!("{command} does {event:?}")
        });
    }

    fn judge_replaced(&mut self, command: &Command, node: NodeRef) {
        let Command::RegisterSession(new) = command else {
            self.violated("only its worker replaces a session", format!("{command}: {node}"));
            return;
        };
        let old = self.sessions.get(&node);
        let same = old.is_some_and(|old| old.name == new.name || old.address == new.address);
        let other = old.is_some_and(|old| old.incarnation != new.incarnation);
        self.demand(same && other, "only its worker replaces a session", || {
            format!("{new:?} replaces {node}")
        });
    }

    /// Settings as clients set them.
    pub(super) fn note_settings(&mut self, command: &Command) {
        let Command::SetPolicy { values } = command else { return };
        let max = values.get(&Text::cut("balance_moves_max"));
        if let Some(max) = max.and_then(|max| max.as_str().parse().ok()) {
            self.moves_max = max;
        }
    }

    /// F10: a process stops what a set of directives leaves out. A set made at or after the
    /// revision that placed the channel knows of it; an older one does not.
    pub(super) fn dropped(
        &mut self,
        slot: usize,
        (leader_term, revision): (Term, state::epoch::Revision),
        channel: &ChannelName,
        term: state::epoch::ChannelTerm,
    ) {
        let knows = revision >= term.revision();
        self.demand(knows, "nodes stop only what is no longer theirs", || {
            format!("process {slot} stops {channel} {term} by {leader_term} at {revision}")
        });
    }

    /// An owner lost a channel without saying that it stopped.
    pub(super) fn left(&mut self, channel: &ChannelName, shadow: Shadow) {
        if let Some(node) = shadow.owner {
            self.formers.insert((channel.clone(), FormerOwner { node, term: shadow.term }));
        }
    }

    pub(super) fn cleaned(&mut self, channel: &ChannelName, former: FormerOwner) {
        let known = self.formers.remove(&(channel.clone(), former));
        self.demand(known, "former owners are kept until cleaned up", || {
            format!("{channel} never had {former}")
        });
    }

    /// Whatever happens to channels and leaders, nobody who may have left traces is forgotten.
    pub(super) fn judge_formers(&mut self) {
        let kept = self.reference.effects();
        let same = kept.eq(self.formers.iter().map(|(channel, former)| (channel, *former)));
        self.demand(same, "former owners are kept until cleaned up", || {
            "those kept differ from those who left".to_owned()
        });
    }

    /// From level 2 on only a higher progress moves a deadline.
    pub(super) fn extended(&mut self, channel: &ChannelName, progress: u64) {
        let rises = self.reference.level() >= 2;
        let Some(shadow) = self.channels.get_mut(channel) else { return };
        let last = std::mem::replace(&mut shadow.progress, progress);
        let counts = if rises { progress > last } else { progress != last };
        self.demand(counts, "only progress moves a deadline", || {
            format!("{channel}: {progress} after {last}")
        });
    }
}
