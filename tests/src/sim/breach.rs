//! Rules left out on purpose, to see that the oracle notices. A fence of apply is left out by
//! writing into the log what it would have let through: production code has no hook for it.
//! Members and nodes that break a rule by themselves do so in `leader`, `agent` and `replica`.

use std::collections::BTreeMap;

use state::State;
use state::channel::Channel;
use state::command::{Command, OwnerClaim, Request};
use state::decision::{Action, Decision, Guard};
use state::epoch::Term;
use state::ids::Text;
use state::node::NodeRef;

use super::oracle::Oracle;

/// A rule left out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Apply takes decisions of deposed leaders (F1).
    StaleTerms,
    /// Apply takes decisions that name a state ahead of the history (F2).
    FutureBases,
    /// Apply takes moves of channels that changed since (F3).
    ChangedChannels,
    /// Apply takes moves to a worker that restarted since (F4).
    ChangedNodes,
    /// Apply takes moves of an earlier channel of the same name (F5).
    EarlierLives,
    /// Apply does not count moves in flight (F6).
    TooManyMoves,
    /// What is said of an earlier session hits the present one (F7).
    EarlierSessions,
    /// Apply takes an acknowledgement for another term as if it were in force (F8).
    ForgedAcks,
    /// Nodes take directives of lower channel terms (F9).
    LowerTerms,
    /// Nodes take directives of deposed leaders (F10).
    LowerLeaders,
    /// Apply takes commits of whoever claims to own the channel.
    ForgedCommits,
    /// Apply forgets the ids of requests (ruling 12).
    ForgottenRequests,
    /// Nodes go on when their session may be over (N-9).
    NoSelfFence,
    /// Clients are answered before their command is committed.
    EarlyReplies,
    /// One replica leaves out a request.
    SkippedRequests,
    /// A leader grants a session it had before without asking how silent it was (18.5, rule 3).
    FreeRegistrations,
    /// A leader acknowledges renewals before the entry that resets the silence (18.5, rule 3).
    EarlyRenewals,
    /// A leader acknowledges renewals without hearing a quorum (18.5, rule 4).
    LonelyLeaders,
}

/// What goes into the log as one request, and what was asked for; none: nobody asked.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) request: Request,
    pub(super) meant: Option<Request>,
}

/// What is written of this batch, proposed under this term, when `broken` is left out.
pub(super) fn written(
    batch: Vec<Request>,
    broken: Option<Broken>,
    term: Term,
    oracle: &Oracle,
) -> Vec<Written> {
    let Some(broken) = broken else {
        return batch.into_iter().map(Written::as_asked).collect();
    };
    let mut all = Vec::new();
    for meant in batch {
        let mut request = meant.clone();
        rewrite(&mut request, broken, term, oracle);
        let crowded = broken == Broken::TooManyMoves && matches!(meant.command, Command::Place(_));
        all.extend(crowded.then(|| Written::limit(10_000)));
        all.push(Written { request, meant: Some(meant) });
        let limit = oracle.reference.policy().balance_moves_max;
        all.extend(crowded.then(|| Written::limit(limit)));
    }
    all
}

impl Written {
    fn as_asked(request: Request) -> Self {
        Self { meant: Some(request.clone()), request }
    }

    /// Another limit of moves in flight, that nobody asked for.
    fn limit(moves: u32) -> Self {
        let value = (Text::cut("balance_moves_max"), Text::cut(&moves.to_string()));
        let command = Command::SetPolicy { values: BTreeMap::from([value]) };
        Self { request: Request { actor: Text::cut("nobody"), retry: None, command }, meant: None }
    }
}

fn rewrite(request: &mut Request, broken: Broken, term: Term, oracle: &Oracle) {
    let state = &oracle.reference;
    if broken == Broken::ForgottenRequests {
        request.retry = None;
    }
    match (&mut request.command, broken) {
        (Command::Place(decision), Broken::StaleTerms) => decision.basis.term = term,
        (Command::Place(decision), Broken::FutureBases) => {
            decision.basis.revision = decision.basis.revision.min(state.revision());
        }
        (Command::Place(decision), Broken::ChangedChannels) => present(decision, state, true),
        (Command::Place(decision), Broken::EarlierLives) => present(decision, state, false),
        (Command::Place(decision), Broken::ChangedNodes) => {
            for chosen in &mut decision.moves {
                if let Action::Assign { to } | Action::Move { to, .. } = &mut chosen.action {
                    *to = present_session(*to, oracle);
                }
            }
        }
        (
            Command::Revoke { node }
            | Command::SetStopping { node }
            | Command::UnsetStopping { node }
            | Command::ExpireSession { node, .. },
            Broken::EarlierSessions,
        ) => *node = present_session(*node, oracle),
        (Command::NodeAck(ack), Broken::ForgedAcks) => {
            let Some(channel) = state.channel(&ack.channel) else { return };
            if let (Some(owner), Some(op)) = (channel.phase.owner(), channel.phase.op()) {
                (ack.node, ack.term, ack.op) = (owner, channel.term, op);
            }
        }
        (Command::CommitMeta { channel, claim, .. }, Broken::ForgedCommits) => {
            let Some(channel) = state.channel(channel) else { return };
            if let Some(node) = channel.phase.owner() {
                *claim = OwnerClaim { node, term: channel.term };
            }
        }
        _ => {}
    }
}

/// Moves get the guard that holds now: those computed in this life of the channel, or the others.
fn present(decision: &mut Decision, state: &State, this_life: bool) {
    for chosen in &mut decision.moves {
        let Some(channel) = state.channel(&chosen.channel) else { continue };
        let computed_in_it = chosen.guard.term.revision() >= channel.added;
        if computed_in_it == this_life {
            chosen.guard = guard(channel);
        }
    }
}

pub(super) fn guard(channel: &Channel) -> Guard {
    Guard { term: channel.term, phase: channel.phase.kind() }
}

/// The session that the worker of this session has now.
fn present_session(node: NodeRef, oracle: &Oracle) -> NodeRef {
    let name = oracle.sessions.get(&node).map(|registration| &registration.name);
    let live = name.and_then(|name| oracle.reference.node_by_name(name));
    live.map_or(node, |live| live.node_ref())
}
