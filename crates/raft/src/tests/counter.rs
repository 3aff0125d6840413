//! A toy machine for the tests: it adds up numbers, and can be told to lie.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{
    EntryMeta, Fault, Machine, Reply, RestoreError, SectionReader, SectionWriter, SnapshotError,
    SnapshotJob,
};

/// What a test sees of a machine.
#[derive(Clone, Default)]
pub(crate) struct View {
    inner: Arc<Mutex<(u64, u64, u64)>>,
    pub(crate) lie_at: Arc<AtomicU64>,
    pub(crate) forget_at: Arc<AtomicU64>,
}

impl View {
    pub(crate) fn sum(&self) -> u64 {
        self.inner.lock().unwrap().1
    }

    pub(crate) fn applied(&self) -> u64 {
        self.inner.lock().unwrap().0
    }
}

#[derive(Clone, Default)]
pub(crate) struct Counter {
    sum: u64,
    count: u64,
    witness: u64,
    padding: Vec<u8>,
    view: View,
}

impl Counter {
    pub(crate) fn new(view: View) -> Self {
        Self { view, ..Self::default() }
    }
}

fn wide(value: u64) -> [u8; 16] {
    let mut bytes = [7_u8; 16];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn mix(state: u64, value: u64) -> u64 {
    (state ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl Machine for Counter {
    fn apply(&mut self, meta: &EntryMeta, body: &[u8]) -> Result<Reply, Fault> {
        let number = body.get(..8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let number = number.unwrap_or(0);
        assert!(number != u64::MAX, "told to panic");
        self.count += 1;
        self.witness = mix(self.witness, number);
        if self.view.lie_at.load(Ordering::Relaxed) == self.count {
            self.witness ^= 1;
        }
        if self.view.forget_at.load(Ordering::Relaxed) != self.count {
            self.sum = self.sum.wrapping_add(number);
        }
        assert!(meta.stamp_ms < u64::MAX);
        Ok(Reply::new(self.sum))
    }

    fn applied(&mut self, index: u64, _term: u64) {
        *self.view.inner.lock().unwrap() = (index, self.sum, self.count);
    }

    fn witness(&self) -> [u8; 16] {
        wide(self.witness)
    }

    fn digest(&self) -> [u8; 16] {
        wide(self.sum)
    }

    fn snapshot(&self) -> Box<dyn SnapshotJob> {
        Box::new(self.clone())
    }

    fn restore(
        &mut self,
        _index: u64,
        _term: u64,
        sections: &mut dyn SectionReader,
    ) -> Result<(), RestoreError> {
        let mut numbers = Vec::new();
        while let Some((kind, bytes)) = sections.section()? {
            match kind {
                1 => numbers.extend(
                    bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())),
                ),
                2 => self.padding = bytes,
                _ => return Err(RestoreError::Refused("unknown section".into())),
            }
        }
        let [sum, count, witness] = numbers[..] else {
            return Err(RestoreError::Refused("not three numbers".into()));
        };
        (self.sum, self.count, self.witness) = (sum, count, witness);
        Ok(())
    }
}

impl SnapshotJob for Counter {
    fn write(self: Box<Self>, out: &mut dyn SectionWriter) -> Result<(), SnapshotError> {
        let numbers = [self.sum, self.count, self.witness];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        out.section(1, &bytes)?;
        // Enough for several pieces on the wire.
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..3_000_000)
            .map(|_| {
                state = mix(state, 3);
                state.to_le_bytes()[0]
            })
            .collect();
        out.section(2, &noise)
    }

    fn digest(&self) -> [u8; 16] {
        wide(self.sum)
    }

    fn witness(&self) -> [u8; 16] {
        wide(self.witness)
    }
}
