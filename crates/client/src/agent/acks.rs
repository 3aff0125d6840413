//! Acknowledgements that are not yet recorded, repeated on every report until they are (N-6).
//! Pure. Which acknowledgement to give is ledger.rs's business.
//! Called by ledger.rs, and by engine.rs for every report and every verdict.

use std::collections::BTreeMap;

use crate::proto::{Ack, AckResult, AckVerdict, Verdict};

/// Acknowledgements in one report; the others follow in the next.
const REPORT_ACKS_MAX: usize = 1_000;
/// The coordinator accepts reasons up to this length.
const REASON_BYTES_MAX: usize = 256;

/// At most one pending acknowledgement per channel: a later directive makes the earlier one moot.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    latest: BTreeMap<String, Entry>,
    unsent: usize,
    cursor: Option<String>,
}

#[derive(Debug)]
struct Entry {
    term: u64,
    op: u64,
    result: AckResult,
    reason: String,
    /// First report that carried this very result.
    first_seq: Option<u64>,
    pending: bool,
}

impl Acks {
    /// Gives an acknowledgement; an equal one that was given before is not given again.
    pub(crate) fn give(
        &mut self,
        channel: &str,
        (term, op): (u64, u64),
        result: AckResult,
        reason: &str,
    ) {
        let same = |entry: &Entry| (entry.term, entry.op, entry.result) == (term, op, result);
        if self.latest.get(channel).is_some_and(same) {
            return;
        }
        let mut end = reason.len().min(REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let reason = reason.get(..end).unwrap_or_default().to_owned();
        let entry = Entry { term, op, result, reason, first_seq: None, pending: true };
        let replaced = self.latest.insert(channel.to_owned(), entry);
        self.unsent += 1;
        if replaced.is_some_and(|old| old.pending && old.first_seq.is_none()) {
            self.unsent -= 1;
        }
    }

    /// Whether this directive was answered already, recorded or not.
    pub(crate) fn is_given(&self, channel: &str, term: u64, op: u64) -> bool {
        self.latest.get(channel).is_some_and(|entry| (entry.term, entry.op) == (term, op))
    }

    /// Nothing is wanted of the channel any more. A pending acknowledgement is still repeated.
    pub(crate) fn forget(&mut self, channel: &str) {
        if self.latest.get(channel).is_some_and(|entry| !entry.pending) {
            self.latest.remove(channel);
        }
    }

    /// Whether some acknowledgement was never sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.latest.values().any(|entry| entry.pending)
    }

    /// What the report with this seq carries: everything pending, in turns if it is too much.
    pub(crate) fn report(&mut self, seq: u64) -> Vec<Ack> {
        let after = self.cursor.take();
        let mut acks = Vec::new();
        for (channel, entry) in &mut self.latest {
            if !entry.pending || after.as_ref().is_some_and(|after| channel <= after) {
                continue;
            }
            if acks.len() >= REPORT_ACKS_MAX {
                self.cursor = acks.last().map(|ack: &Ack| ack.channel.clone());
                break;
            }
            if entry.first_seq.is_none() {
                entry.first_seq = Some(seq);
                self.unsent = self.unsent.saturating_sub(1);
            }
            acks.push(Ack {
                channel: channel.clone(),
                term: entry.term,
                op: entry.op,
                result: entry.result.into(),
                reason: entry.reason.clone(),
            });
        }
        acks
    }

    /// The verdicts that answer the report with this seq (0: pushed). True for each that settled
    /// something.
    ///
    /// A verdict names no result. If "ok" was sent, then replaced by "failed", the verdict on the
    /// first must not settle the second: it counts only if its report carried the latest result.
    pub(crate) fn verdict(&mut self, seq: u64, verdict: &AckVerdict) -> bool {
        let Some(entry) = self.latest.get_mut(&verdict.channel) else { return false };
        let carried = entry.first_seq.is_some_and(|first| first <= seq);
        let settled = entry.pending
            && carried
            && (entry.term, entry.op) == (verdict.term, verdict.op)
            && verdict.verdict() != Verdict::Unspecified;
        if settled {
            entry.pending = false;
        }
        settled
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(channel: &str, term: u64, op: u64) -> AckVerdict {
        AckVerdict { channel: channel.to_owned(), term, op, verdict: Verdict::Recorded.into() }
    }

    #[test]
    fn an_ack_is_repeated_until_its_verdict() {
        let mut acks = Acks::default();
        acks.give("c", (5, 5), AckResult::Ok, "");
        assert!(acks.has_unsent());
        assert_eq!(acks.report(1).len(), 1);
        assert!(!acks.has_unsent() && acks.has_pending());
        assert_eq!(acks.report(2).len(), 1);
        assert!(!acks.verdict(2, &verdict("c", 5, 4)), "another op");
        let open = AckVerdict { verdict: Verdict::Unspecified.into(), ..verdict("c", 5, 5) };
        assert!(!acks.verdict(2, &open), "no verdict yet");
        assert!(acks.verdict(2, &verdict("c", 5, 5)));
        assert!(acks.report(3).is_empty() && !acks.has_pending());
        acks.give("c", (5, 5), AckResult::Ok, "");
        assert!(acks.report(4).is_empty(), "an equal one is not given twice");
    }

    #[test]
    fn a_verdict_on_ok_does_not_settle_the_failure_that_replaced_it() {
        let mut acks = Acks::default();
        acks.give("c", (5, 5), AckResult::Ok, "");
        acks.report(1);
        acks.give("c", (5, 5), AckResult::FailedStopped, "died");
        assert!(acks.has_unsent());
        assert!(!acks.verdict(1, &verdict("c", 5, 5)));
        assert_eq!(acks.report(2)[0].result(), AckResult::FailedStopped);
        assert!(acks.verdict(2, &verdict("c", 5, 5)));
    }

    #[test]
    fn many_acks_take_turns() {
        let mut acks = Acks::default();
        for n in 0..REPORT_ACKS_MAX + 10 {
            acks.give(&format!("c{n:05}"), (1, 1), AckResult::Ok, "");
        }
        assert_eq!(acks.report(1).len(), REPORT_ACKS_MAX);
        assert!(acks.has_unsent());
        assert_eq!(acks.report(2).len(), 10);
        assert!(!acks.has_unsent());
        assert_eq!(acks.report(3).len(), REPORT_ACKS_MAX, "and from the beginning again");
    }

    #[test]
    fn reasons_are_cut_between_characters() {
        let mut acks = Acks::default();
        acks.give("c", (1, 1), AckResult::Failed, &"ä".repeat(300));
        assert_eq!(acks.report(1)[0].reason.len(), REASON_BYTES_MAX);
    }

    #[test]
    fn only_settled_answers_are_forgotten() {
        let mut acks = Acks::default();
        acks.give("c", (1, 1), AckResult::Ok, "");
        acks.forget("c");
        assert!(acks.is_given("c", 1, 1));
        acks.report(1);
        acks.verdict(1, &verdict("c", 1, 1));
        acks.forget("c");
        assert!(!acks.is_given("c", 1, 1));
    }
}
