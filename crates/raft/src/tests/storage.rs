//! The storage suite of openraft on both backends.

use std::path::Path;

use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use super::counter::{Counter, View};
use crate::log::store::LogStore;
use crate::options::{BackendKind, Options};
use crate::start::test_parts;
use crate::state_machine::StateMachine;
use crate::types::TypeConfig;

struct Builder {
    memory: bool,
}

fn options(dir: &Path, memory: bool) -> Options {
    let mut options = Options::new(dir, 1, "127.0.0.1:0".parse().unwrap());
    options.disk_low_bytes = 0;
    if memory {
        options.backend = BackendKind::Memory(crate::MemoryDisk::default());
    }
    options
}

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Builder {
    async fn build(
        &self,
    ) -> Result<(TempDir, LogStore, StateMachine), openraft::StorageError<TypeConfig>> {
        let dir = TempDir::new().unwrap();
        let machine = Box::new(Counter::new(View::default()));
        let machine = test_parts(&options(dir.path(), self.memory), machine).await.unwrap();
        Ok((dir, machine.log.clone(), machine))
    }
}

#[test]
fn sled_passes_the_suite() {
    run(Builder { memory: false });
}

#[test]
fn memory_passes_the_suite() {
    run(Builder { memory: true });
}

fn run(builder: Builder) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Suite::test_all(builder)).unwrap();
}
