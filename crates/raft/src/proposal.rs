//! What a normal entry holds: the time stamp and the attestation of the proposer, and the body.
//! `handle.rs` makes proposals, `applier.rs` takes them apart.

use bytes::{Buf, BufMut, Bytes};

use crate::log::record::{self, HEADER, Kind, RecordError};

/// What the proposer had after an entry it had applied itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attestation {
    /// Who attests.
    pub(crate) member: u64,
    /// The entry, older than the one that carries this.
    pub(crate) index: u64,
    /// Its witness there.
    pub(crate) witness: [u8; 16],
    /// A digest and the entry it belongs to; only once in a while.
    pub(crate) digest: Option<(u64, [u8; 16])>,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Time stamp of the proposer in milliseconds.
    pub(crate) stamp_ms: u64,
    /// What the proposer attests.
    pub(crate) attest: Option<Attestation>,
    /// The bytes for the machine.
    pub(crate) body: Bytes,
}

const FLAG_ATTEST: u8 = 1;
const FLAG_DIGEST: u8 = 2;

impl Proposal {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = record::begin(80 + self.body.len());
        out.put_u64_le(self.stamp_ms);
        let digest = self.attest.and_then(|attest| attest.digest);
        let flags = u8::from(self.attest.is_some()) * FLAG_ATTEST
            + u8::from(digest.is_some()) * FLAG_DIGEST;
        out.put_u8(flags);
        if let Some(attest) = &self.attest {
            out.put_u64_le(attest.member);
            out.put_u64_le(attest.index);
            out.put_slice(&attest.witness);
        }
        if let Some((index, digest)) = digest {
            out.put_u64_le(index);
            out.put_slice(&digest);
        }
        out.put_slice(&self.body);
        record::seal(Kind::PROPOSAL, out).into()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, RecordError> {
        record::open(Kind::PROPOSAL, record::ENTRY_MAX, bytes)?;
        let mut at = bytes.slice(HEADER..);
        let stamp_ms = at.try_get_u64_le()?;
        let flags = at.try_get_u8()?;
        if flags > FLAG_ATTEST | FLAG_DIGEST || flags == FLAG_DIGEST {
            return Err(RecordError::Malformed("unknown flags"));
        }
        let mut attest = None;
        if flags & FLAG_ATTEST != 0 {
            let (member, index) = (at.try_get_u64_le()?, record::get_count(&mut at)?);
            attest = Some(Attestation { member, index, witness: hash(&mut at)?, digest: None });
        }
        if let Some(attest) = attest.as_mut().filter(|_| flags & FLAG_DIGEST != 0) {
            attest.digest = Some((at.try_get_u64_le()?, hash(&mut at)?));
        }
        Ok(Self { stamp_ms, attest, body: at })
    }
}

fn hash(at: &mut Bytes) -> Result<[u8; 16], RecordError> {
    let mut hash = [0_u8; 16];
    at.try_copy_to_slice(&mut hash)?;
    Ok(hash)
}
