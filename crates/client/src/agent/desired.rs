//! What the coordinator wants to run here, put together from full sets, pieces and deltas. Pure.
//! What is done about it is ledger.rs's business; lower terms are refused here (N-4, fence F9).
//! Called by engine.rs for every `Directives` message.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::proto::{Directive, DirectiveKind, Directives};

/// Names whose highest term is remembered after they are gone.
const REMEMBERED_MAX: usize = 131_072;

/// The desired set of this worker's session.
#[derive(Debug, Default)]
pub(crate) struct Desired {
    set: BTreeMap<String, Directive>,
    known: bool,
    pieces: Option<Pieces>,
    highest: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug, Default)]
struct Pieces {
    full: bool,
    set: BTreeMap<String, Directive>,
    gone: Vec<String>,
}

/// What a message changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing yet: more pieces follow.
    Piece,
    /// The set changed; these names are to be looked at.
    Changed { touched: Vec<String>, refused: Vec<LowerTerm> },
    /// A delta to a set we do not hold: the stream cannot be used.
    Gap,
}

/// A directive that was refused because a higher one was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LowerTerm {
    pub(crate) channel: String,
    pub(crate) term: u64,
    pub(crate) highest: u64,
}

impl Desired {
    /// Whether a whole set was received in this session.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    pub(crate) fn get(&self, channel: &str) -> Option<&Directive> {
        self.set.get(channel)
    }

    /// Half a set from a broken stream is worth nothing.
    pub(crate) fn begin_stream(&mut self) {
        self.pieces = None;
    }

    /// A new session begins with nothing; the highest terms stay known.
    pub(crate) fn clear(&mut self) {
        self.set.clear();
        self.known = false;
        self.pieces = None;
    }

    pub(crate) fn take(&mut self, message: Directives) -> Taken {
        if !message.full && !self.known {
            return Taken::Gap;
        }
        let pieces =
            self.pieces.get_or_insert_with(|| Pieces { full: message.full, ..Pieces::default() });
        if pieces.full != message.full {
            self.pieces = None;
            return Taken::Gap;
        }
        pieces.set.extend(message.set.into_iter().map(|one| (one.channel.clone(), one)));
        pieces.gone.extend(message.gone);
        match self.pieces.take() {
            Some(pieces) if message.last_chunk => self.apply(pieces),
            pieces => {
                self.pieces = pieces;
                Taken::Piece
            }
        }
    }

    fn apply(&mut self, pieces: Pieces) -> Taken {
        let mut refused = Vec::new();
        let mut touched = pieces.gone;
        if pieces.full {
            let missing = self.set.keys().filter(|name| !pieces.set.contains_key(*name));
            touched.extend(missing.cloned());
        }
        for name in &touched {
            self.set.remove(name);
        }
        for (name, directive) in pieces.set {
            let highest = self.highest.get(&name).copied().unwrap_or_default();
            if (directive.term, directive.op) < highest {
                let (term, channel) = (directive.term, name);
                refused.push(LowerTerm { channel, term, highest: highest.0 });
                continue;
            }
            // A kind of a later version: leave what runs as it is.
            if directive.kind() == DirectiveKind::Unspecified {
                continue;
            }
            self.highest.insert(name.clone(), (directive.term, directive.op));
            if self.set.get(&name) != Some(&directive) {
                self.set.insert(name.clone(), directive);
                touched.push(name);
            }
        }
        self.known = true;
        self.forget_surplus();
        Taken::Changed { touched, refused }
    }

    fn forget_surplus(&mut self) {
        if self.highest.len() <= REMEMBERED_MAX + self.set.len() {
            return;
        }
        let mut terms: Vec<(u64, u64)> = self.highest.values().copied().collect();
        terms.sort_unstable();
        let Some(median) = terms.get(terms.len() / 2).copied() else { return };
        let set = &self.set;
        self.highest.retain(|name, highest| *highest >= median || set.contains_key(name));
    }

    /// The first 16 bytes of blake3 over every directive in ascending order of names (as bytes):
    /// length of the name (u32), name, term (u64), op (u64), kind (one byte: 1 watch, 2 release);
    /// integers little-endian. Empty while no set is known.
    pub(crate) fn digest(&self) -> Bytes {
        if !self.known {
            return Bytes::new();
        }
        let mut hasher = blake3::Hasher::new();
        for (name, directive) in &self.set {
            let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
            hasher.update(&length.to_le_bytes());
            hasher.update(name.as_bytes());
            hasher.update(&directive.term.to_le_bytes());
            hasher.update(&directive.op.to_le_bytes());
            hasher.update(&[u8::from(directive.kind() == DirectiveKind::Release) + 1]);
        }
        let mut digest = [0_u8; 16];
        hasher.finalize_xof().fill(&mut digest);
        Bytes::copy_from_slice(&digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(channel: &str, term: u64) -> Directive {
        let kind = DirectiveKind::Watch.into();
        Directive { channel: channel.to_owned(), term, op: term, kind, ..Directive::default() }
    }

    fn full(set: Vec<Directive>, last_chunk: bool) -> Directives {
        Directives { full: true, last_chunk, set, ..Directives::default() }
    }

    fn delta(set: Vec<Directive>, gone: &[&str]) -> Directives {
        let gone = gone.iter().map(|name| (*name).to_owned()).collect();
        Directives { last_chunk: true, set, gone, ..Directives::default() }
    }

    fn changed(touched: &[&str]) -> Taken {
        let touched = touched.iter().map(|name| (*name).to_owned()).collect();
        Taken::Changed { touched, refused: Vec::new() }
    }

    #[test]
    fn pieces_count_only_with_the_last_one() {
        let mut desired = Desired::default();
        assert_eq!(desired.take(full(vec![watch("a", 1)], false)), Taken::Piece);
        assert!(!desired.is_known() && desired.get("a").is_none());
        assert_eq!(desired.take(full(vec![watch("b", 1)], true)), changed(&["a", "b"]));
        assert!(desired.is_known() && desired.get("a").is_some());
    }

    #[test]
    fn half_a_set_of_a_broken_stream_is_dropped() {
        let mut desired = Desired::default();
        desired.take(full(vec![watch("a", 1)], false));
        desired.begin_stream();
        assert_eq!(desired.take(full(vec![watch("b", 1)], true)), changed(&["b"]));
        assert!(desired.get("a").is_none());
    }

    #[test]
    fn deltas_set_and_remove() {
        let mut desired = Desired::default();
        assert_eq!(desired.take(delta(vec![watch("a", 1)], &[])), Taken::Gap);
        desired.take(full(vec![watch("a", 1), watch("b", 1)], true));
        assert_eq!(desired.take(delta(vec![watch("c", 2)], &["a"])), changed(&["a", "c"]));
        assert!(desired.get("a").is_none() && desired.get("b").is_some());
        assert_eq!(desired.take(full(Vec::new(), true)), changed(&["b", "c"]));
        assert!(desired.is_empty() && desired.is_known());
    }

    #[test]
    fn a_lower_term_is_refused_also_after_the_channel_was_gone() {
        let mut desired = Desired::default();
        desired.take(full(vec![watch("a", 7)], true));
        let refused = |term| vec![LowerTerm { channel: "a".to_owned(), term, highest: 7 }];
        let answer = Taken::Changed { touched: Vec::new(), refused: refused(5) };
        assert_eq!(desired.take(delta(vec![watch("a", 5)], &[])), answer);
        assert_eq!(desired.get("a").map(|one| one.term), Some(7));
        desired.take(delta(Vec::new(), &["a"]));
        let answer = Taken::Changed { touched: Vec::new(), refused: refused(6) };
        assert_eq!(desired.take(delta(vec![watch("a", 6)], &[])), answer);
        assert!(desired.get("a").is_none());
        assert_eq!(desired.take(delta(vec![watch("a", 8)], &[])), changed(&["a"]));
    }

    #[test]
    fn the_digest_is_empty_until_a_set_is_known_and_then_follows_it() {
        let mut desired = Desired::default();
        assert!(desired.digest().is_empty());
        desired.take(full(Vec::new(), true));
        let of_nothing = desired.digest();
        assert_eq!(of_nothing.len(), 16);
        desired.take(delta(vec![watch("a", 1)], &[]));
        let of_a = desired.digest();
        assert_ne!(of_a, of_nothing);
        desired.take(delta(Vec::new(), &["a"]));
        assert_eq!(desired.digest(), of_nothing);
        desired.clear();
        assert!(desired.digest().is_empty());
    }
}
