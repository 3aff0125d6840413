//! `State::apply`: the only way to change a state. Moves the clock, recognises repeated requests,
//! hands the command to the handler of its concern, and makes the outcome of what the handler
//! emitted. Handlers validate first and emit after; what an event changes is in `evolve`.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::command::{Command, Request};
use crate::epoch::{Revision, Term, Timestamp};
use crate::event::{Event, EventRecord};
use crate::ids::Text;
use crate::outcome::{Facts, Outcome, Receipt, RefusedMove, Rejection};
use crate::state::State;
use crate::{
    ack, cleaner, deadline, effect, freeze, level, place, release, retry, session, settings, watch,
};

/// All that apply may know of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Raft term of the log entry.
    pub term: Term,
    /// Stamp of the log entry; an older one than the state has seen does not turn the clock back.
    pub now: Timestamp,
}

/// What a handler did, if it did not reject.
pub(crate) enum Verdict {
    /// It emitted.
    Done,
    /// It emitted, and did not take these moves.
    DoneExcept(Vec<RefusedMove>),
    /// It emitted nothing: already so.
    NoChange(Facts),
}

pub(crate) type Handled = Result<Verdict, Rejection>;

/// Already so, with nothing more to say.
pub(crate) const ALREADY: Handled = Ok(Verdict::NoChange(Facts::Already));

/// One command on its way through a handler: the state to read, and the events so far.
pub(crate) struct Tx<'a> {
    state: &'a mut State,
    context: Context,
    revision: Revision,
    events: Vec<Event>,
}

impl<'a> Tx<'a> {
    /// `None` when the state has counted all the commands it can.
    pub(crate) fn new(state: &'a mut State, context: Context) -> Option<Self> {
        let revision = state.revision().next()?;
        Some(Self { state, context, revision, events: Vec::new() })
    }

    /// The same command on another state, to see what would happen.
    pub(crate) const fn on<'b>(&self, state: &'b mut State) -> Tx<'b> {
        Tx { state, context: self.context, revision: self.revision, events: Vec::new() }
    }

    pub(crate) const fn state(&self) -> &State {
        self.state
    }

    /// Raft term of the entry.
    pub(crate) const fn term(&self) -> Term {
        self.context.term
    }

    /// Log time, this command's stamp included.
    pub(crate) const fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// The revision this command gets if it emits.
    pub(crate) const fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether anything was emitted.
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Lets it happen.
    pub(crate) fn emit(&mut self, event: Event) {
        if self.events.is_empty() {
            self.state.begin(self.revision);
        }
        self.state.evolve(&event);
        self.events.push(event);
    }
}

impl State {
    /// Applies one request of a log entry: deterministic and total. Rejected and NoChange change
    /// nothing but the clock.
    pub fn apply(&mut self, context: &Context, request: &Request) -> Outcome {
        self.advance(context.now);
        let Some(mut tx) = Tx::new(self, *context) else {
            let value = self.revision().count();
            return Outcome::Rejected(Rejection::Limit { what: "revision", value, max: value });
        };
        let handled = handle(&mut tx, request);
        let events = tx.events;
        match handled {
            Err(rejection) => {
                assert!(events.is_empty(), "{} was rejected after an event", request.command);
                Outcome::Rejected(rejection)
            }
            Ok(Verdict::NoChange(facts)) => {
                assert!(events.is_empty(), "{} has events but no change", request.command);
                Outcome::NoChange(facts)
            }
            Ok(Verdict::Done) => self.accept(context, request, events, Vec::new()),
            Ok(Verdict::DoneExcept(refused)) => self.accept(context, request, events, refused),
        }
    }

    fn accept(
        &mut self,
        context: &Context,
        request: &Request,
        events: Vec<Event>,
        refused: Vec<RefusedMove>,
    ) -> Outcome {
        assert!(!events.is_empty(), "{} was accepted without an event", request.command);
        self.witnessed(self.witness().next(self.revision(), self.now(), &events));
        let record = EventRecord {
            revision: self.revision(),
            at: self.now(),
            term: context.term,
            caused_by: Text::cut(&format!("{}", request.command)),
            actor: request.actor.clone(),
            request_id: request.retry.map(|retry| retry.request_id),
            events,
        };
        Outcome::Accepted(Receipt { record: Arc::new(record), refused })
    }
}

/// A request that must be applied once is looked up before and remembered after.
fn handle(tx: &mut Tx<'_>, request: &Request) -> Handled {
    let Some(once) = retry::applies(request) else { return dispatch(tx, &request.command) };
    if let Some(revision) = retry::recall(tx, once)? {
        return Ok(Verdict::NoChange(Facts::Repeated(revision)));
    }
    let verdict = dispatch(tx, &request.command)?;
    if !tx.is_empty() {
        retry::remember(tx, once);
    }
    Ok(verdict)
}

fn dispatch(tx: &mut Tx<'_>, command: &Command) -> Handled {
    match command {
        Command::LeaderStart { term, member } => session::leader_start(tx, *term, *member),
        Command::RegisterSession(registration) => session::register(tx, registration),
        Command::SessionsObserved { leader_term, seq, silent, renewed } => {
            session::observed(tx, *leader_term, *seq, silent, renewed)
        }
        Command::SetStopping { node } => session::set_stopping(tx, *node),
        Command::UnsetStopping { node } => session::unset_stopping(tx, *node),
        Command::Revoke { node } => session::revoke(tx, *node),
        Command::ExpireSession { node, leader_term } => session::expire(tx, *node, *leader_term),
        Command::WatchChannels(specs) => watch::watch_channels(tx, specs),
        Command::MarkDropped { channel, claim } => release::mark_dropped(tx, channel, *claim),
        Command::RemoveChannel { channel } => release::remove(tx, channel),
        Command::Release { channel, term } => release::release(tx, channel, *term),
        Command::NodeAck(ack) => ack::node_ack(tx, ack),
        Command::OpTimeout { channel, term, op } => deadline::timed_out(tx, channel, *term, *op),
        Command::ExtendDeadline { channel, term, op, progress } => {
            deadline::extend(tx, channel, (*term, *op), *progress)
        }
        Command::CommitMeta { channel, claim, positions } => {
            effect::commit_meta(tx, channel, *claim, positions)
        }
        Command::EffectDone { channel, former } => effect::done(tx, channel, *former),
        Command::Place(decision) => place::place(tx, decision),
        Command::Freeze { name } => freeze::freeze(tx, name),
        Command::Thaw { name } => freeze::thaw(tx, name),
        Command::SetPolicy { values } => settings::set_policy(tx, values),
        Command::SetLevel { level } => level::set_level(tx, *level),
        Command::Tick => ALREADY,
        Command::RegisterCleaner { name } => cleaner::register(tx, name),
        Command::DeregisterCleaner { name } => cleaner::deregister(tx, name),
    }
}
