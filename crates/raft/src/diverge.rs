//! Who is wrong when two members had different states: asks the others. The one that differs from
//! a majority stops; a member that can ask nobody waits as suspect, and then stops too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::applier::Suspicion;
use crate::error::Fault;
use crate::member::hex;
use crate::peers::Peers;
use crate::sight::{Seat, Sight};
use crate::verdict::{Verdict, Verdicts};

const ASK_DEADLINE: Duration = Duration::from_millis(500);
const ASK_AGAIN: Duration = Duration::from_millis(200);
const SHOWN: usize = 64;

/// Asks and judges.
pub(crate) struct Court {
    pub(crate) sight: Arc<Sight>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) verdicts: Arc<Verdicts>,
    pub(crate) patience: Duration,
    pub(crate) examining: AtomicBool,
}

impl Court {
    /// Decides about an attestation that does not match. True: the attester was wrong, go on.
    /// False: this member must stop, the fault is raised.
    pub(crate) async fn resolve(&self, suspicion: &Suspicion) -> bool {
        self.sight.suspect.store(true, Ordering::Relaxed);
        tracing::error!(?suspicion, "an attestation does not match what this member had");
        let deadline = Instant::now() + self.patience;
        let right = loop {
            let claims = self.ask(suspicion).await;
            match majority(&claims, self.quorum()) {
                Some(value) if value == suspicion.mine => break true,
                Some(_) => break false,
                None if Instant::now() >= deadline => break false,
                None => tokio::time::sleep(ASK_AGAIN).await,
            }
        };
        if !right {
            let fault = self.diagnosed(suspicion);
            self.sight.raise(fault);
            return false;
        }
        let verdict = self.verdict(suspicion, suspicion.attester);
        if let Err(error) = self.verdicts.write(&verdict) {
            self.sight.raise(Fault::Log(format!("cannot write a verdict: {error}")));
            return false;
        }
        tracing::error!(wrong = suspicion.attester, "the attestation was wrong; going on");
        self.sight.suspect.store(false, Ordering::Relaxed);
        true
    }

    /// Another member had something else at an index: the fault may be here. Asks the others, and
    /// raises the fault when a majority disagrees with this member.
    pub(crate) async fn examine(&self, index: u64, theirs: [u8; 16], by_digest: bool) {
        if self.examining.swap(true, Ordering::Relaxed) {
            return;
        }
        let mine = self.mine(index, by_digest);
        if let Some(mine) = mine.filter(|mine| *mine != theirs) {
            let entry = crate::log::record::Position { index, term: 0 };
            let attester = self.peers.me();
            let suspicion = Suspicion { entry, attester, attested: index, mine, theirs, by_digest };
            let claims = self.ask(&suspicion).await;
            if majority(&claims, self.quorum()).is_some_and(|value| value != mine) {
                let fault = self.diagnosed(&suspicion);
                self.sight.raise(fault);
            }
        }
        self.examining.store(false, Ordering::Relaxed);
    }

    fn mine(&self, index: u64, by_digest: bool) -> Option<[u8; 16]> {
        let seen = self.sight.ring().at(index)?;
        Some(if by_digest { seen.digest } else { seen.witness })
    }

    fn quorum(&self) -> usize {
        self.sight.seats().iter().filter(|seat| seat.voter).count() / 2 + 1
    }

    /// What every voter claims; this member included, and the attester by its attestation unless
    /// it answers for itself.
    async fn ask(&self, suspicion: &Suspicion) -> BTreeMap<u64, [u8; 16]> {
        let me = self.peers.me();
        let mut claims = BTreeMap::from([(suspicion.attester, suspicion.theirs)]);
        let voters = self.sight.seats().into_iter().filter(|seat| seat.voter);
        let mut told = Vec::new();
        if let Some(seen) = self.sight.ring().at(suspicion.attested) {
            told.extend_from_slice(&seen.witness);
            told.extend_from_slice(&seen.digest);
        }
        let asked = voters.filter(|seat| seat.member.member != me).map(|seat| {
            let told = told.clone();
            async move { (seat.member.member, self.claim(&seat, suspicion, told).await) }
        });
        for (member, claim) in join_all(asked).await {
            if let Some(claim) = claim {
                claims.insert(member, claim);
            }
        }
        claims.insert(me, suspicion.mine);
        claims
    }

    async fn claim(&self, seat: &Seat, of: &Suspicion, told: Vec<u8>) -> Option<[u8; 16]> {
        let answer = self.peers.witness(&seat.member, of.attested, told, ASK_DEADLINE).await;
        let answer = answer.ok().filter(|answer| answer.known && answer.index == of.attested)?;
        let value = if of.by_digest { &answer.digest } else { &answer.witness };
        value.as_ref().try_into().ok()
    }

    fn verdict(&self, suspicion: &Suspicion, wrong: u64) -> Verdict {
        Verdict {
            entry: suspicion.entry,
            attested: suspicion.attested,
            wrong,
            mine: suspicion.mine,
            theirs: suspicion.theirs,
        }
    }

    /// Writes down what is known and makes the fault of this member.
    fn diagnosed(&self, suspicion: &Suspicion) -> Fault {
        let index = suspicion.attested;
        let verdict = self.verdict(suspicion, self.peers.me());
        if let Err(error) = self.verdicts.write(&verdict) {
            tracing::error!(%error, "cannot write the verdict");
        }
        let what = if suspicion.by_digest { "digest" } else { "witness" };
        let mut text = format!(
            "member {} differs from its group in the {what} after entry {index}\n\
             here {}, there {}, attested by member {} in entry {} of term {}\n\
             the last entries here: index witness digest\n",
            self.peers.me(),
            hex(&suspicion.mine),
            hex(&suspicion.theirs),
            suspicion.attester,
            suspicion.entry.index,
            suspicion.entry.term,
        );
        for seen in self.sight.ring().last(SHOWN) {
            let digest = hex(&seen.digest);
            let _ = writeln!(text, "{} {} {digest}", seen.index, hex(&seen.witness));
        }
        let diagnosis = self.verdicts.diagnose(&format!("diagnosis-{index}.txt"), &text);
        let (mine, theirs) = (suspicion.mine, suspicion.theirs);
        Fault::Diverged { index, mine, theirs, diagnosis }
    }
}

/// The value that at least a quorum of voters claims.
fn majority(claims: &BTreeMap<u64, [u8; 16]>, quorum: usize) -> Option<[u8; 16]> {
    claims
        .values()
        .find(|value| claims.values().filter(|other| other == value).count() >= quorum)
        .copied()
}
