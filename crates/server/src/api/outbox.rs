//! What one worker's stream was sent so far, and the pieces that bring it up to date. Pure.
//! A full set first, deltas afterwards (ruling 15). Used by `session` only.

use std::collections::BTreeMap;

use proto::v1;
use state::epoch::{ChannelTerm, Op, Revision};
use state::ids::ChannelName;
use state::{Directive, DirectiveKind};

use super::convert;
use crate::limits;

/// Encoded size at which a piece is closed, in bytes.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;

type Mark = (ChannelTerm, Op, DirectiveKind);

/// The set a stream holds.
#[derive(Debug, Default)]
pub struct Outbox {
    held: Option<(Revision, BTreeMap<ChannelName, Mark>)>,
}

impl Outbox {
    /// The worker holds this set already: nothing of it is sent.
    pub fn assume(&mut self, revision: Revision, desired: &[Directive]) {
        self.held = Some((revision, marks(desired)));
    }

    /// The pieces that turn the held set into `desired`; empty when nothing differs.
    pub fn update(&mut self, revision: Revision, desired: &[Directive]) -> Vec<v1::Directives> {
        let present = marks(desired);
        let pieces = match &self.held {
            None => pieces(true, Revision::default(), revision, desired.iter(), Vec::new()),
            Some((from, held)) => {
                let changed: Vec<&Directive> = desired
                    .iter()
                    .filter(|each| held.get(&each.channel) != Some(&mark(each)))
                    .collect();
                let gone: Vec<String> = held
                    .keys()
                    .filter(|name| !present.contains_key(*name))
                    .map(ToString::to_string)
                    .collect();
                if changed.is_empty() && gone.is_empty() {
                    return Vec::new();
                }
                pieces(false, *from, revision, changed.into_iter(), gone)
            }
        };
        self.held = Some((revision, present));
        pieces
    }

    /// Says once more that these are not wanted.
    #[must_use]
    pub fn again(&self, gone: Vec<String>) -> Vec<v1::Directives> {
        let Some((revision, _)) = &self.held else { return Vec::new() };
        pieces(false, *revision, *revision, std::iter::empty(), gone)
    }
}

fn mark(directive: &Directive) -> Mark {
    (directive.term, directive.op, directive.kind)
}

fn marks(desired: &[Directive]) -> BTreeMap<ChannelName, Mark> {
    desired.iter().map(|each| (each.channel.clone(), mark(each))).collect()
}

fn pieces<'a>(
    full: bool,
    from: Revision,
    to: Revision,
    set: impl Iterator<Item = &'a Directive>,
    gone: Vec<String>,
) -> Vec<v1::Directives> {
    let empty = || v1::Directives {
        full,
        from_revision: from.0,
        to_revision: to.0,
        last_chunk: false,
        set: Vec::new(),
        gone: Vec::new(),
    };
    let mut pieces = vec![empty()];
    let mut room = CHUNK_BYTES_MAX;
    let mut piece = empty();
    for directive in set {
        let wire = convert::directive(directive);
        let names = wire.channel.len() + wire.pchannel.len() + wire.subscription.len();
        let size = 64 + names + wire.positions.len();
        if piece.set.len() >= limits::DIRECTIVES_CHUNK_MAX || size > room {
            pieces.push(std::mem::replace(&mut piece, empty()));
            room = CHUNK_BYTES_MAX;
        }
        room = room.saturating_sub(size);
        piece.set.push(wire);
    }
    pieces.push(piece);
    for names in gone.chunks(limits::DIRECTIVES_CHUNK_MAX) {
        let mut piece = empty();
        piece.gone = names.to_vec();
        pieces.push(piece);
    }
    // The first one is only there so that an empty full set is a piece as well.
    let filled = pieces.iter().any(|piece| !piece.set.is_empty() || !piece.gone.is_empty());
    if filled {
        pieces.retain(|piece| !piece.set.is_empty() || !piece.gone.is_empty());
    } else {
        pieces.truncate(1);
    }
    if let Some(last) = pieces.last_mut() {
        last.last_chunk = true;
    }
    pieces
}
