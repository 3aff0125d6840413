//! A group of members in one process, each on a runtime of its own: dropping that runtime is as
//! sudden as the death of a process, sockets included.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::counter::{Counter, View};
use crate::{
    BackendKind, Committed, Faults, Handle, Leadership, Member, MemoryDisk, Options, ProposeError,
    StartError, start,
};

pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) view: View,
    pub(crate) running: Option<(Runtime, Handle)>,
}

pub(crate) struct Group {
    pub(crate) nodes: Vec<Node>,
    pub(crate) faults: Faults,
    pub(crate) tweak: fn(&mut Options),
    pub(crate) home: TempDir,
    /// Disks in memory for the members, when there are any.
    pub(crate) disks: Vec<MemoryDisk>,
}

fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Waits until something is there; 20 s are a failure.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long: {what}");
        pause();
    }
}

/// Between two looks at a condition.
fn pause() {
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let never = std::future::pending::<()>();
    let _ = clock.block_on(async { tokio::time::timeout(Duration::from_millis(5), never).await });
}

/// Looks again and again for a while that something stays as it is.
pub(crate) fn stays(what: &str, long: Duration, mut look: impl FnMut() -> bool) {
    let end = Instant::now() + long;
    while Instant::now() < end {
        assert!(look(), "it did not stay: {what}");
        pause();
    }
}

impl Group {
    /// Starts members without founding a group.
    pub(crate) fn bare(size: u64, tweak: fn(&mut Options)) -> Self {
        let home = TempDir::new().unwrap();
        let mut group =
            Self { nodes: Vec::new(), faults: Faults::default(), tweak, home, disks: Vec::new() };
        for number in 1..=size {
            group.add(number);
        }
        group
    }

    /// Starts a group of three and waits for its leader.
    pub(crate) fn three(tweak: fn(&mut Options)) -> Self {
        let group = Self::bare(3, tweak);
        let members = group.members();
        group.block(1, |handle| async move { handle.bootstrap(members).await }).unwrap();
        group.leader();
        group
    }

    pub(crate) fn add(&mut self, number: u64) {
        let dir = self.home.path().join(format!("member-{number}"));
        let listen = free_address();
        let view = View::default();
        self.nodes.push(Node { number, dir, listen, view, running: None });
        self.start(number).unwrap();
    }

    pub(crate) fn member(&self, number: u64) -> Member {
        let node = self.node(number);
        Member {
            member: number,
            peer_address: node.listen.to_string(),
            client_address: format!("client-{number}"),
        }
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.nodes.iter().map(|node| self.member(node.number)).collect()
    }

    pub(crate) fn node(&self, number: u64) -> &Node {
        self.nodes.iter().find(|node| node.number == number).unwrap()
    }

    pub(crate) fn options(&self, number: u64) -> Options {
        let node = self.node(number);
        let mut options = Options::new(&node.dir, number, node.listen);
        options.client_address = format!("client-{number}");
        options.faults = self.faults.clone();
        options.disk_low_bytes = 0;
        let place = usize::try_from(number - 1).unwrap();
        if let Some(disk) = self.disks.get(place) {
            options.backend = BackendKind::Memory(disk.clone());
        }
        (self.tweak)(&mut options);
        options
    }

    pub(crate) fn start(&mut self, number: u64) -> Result<(), StartError> {
        let options = self.options(number);
        let node = self.nodes.iter_mut().find(|node| node.number == number).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let machine = Box::new(Counter::new(node.view.clone()));
        let handle = runtime.block_on(start(options, machine))?;
        node.running = Some((runtime, handle));
        Ok(())
    }

    /// Ends a member without any farewell.
    pub(crate) fn kill(&mut self, number: u64) {
        let node = self.nodes.iter_mut().find(|node| node.number == number).unwrap();
        if let Some((runtime, handle)) = node.running.take() {
            runtime.shutdown_background();
            drop(handle);
        }
    }

    /// Ends a member as an operator does.
    pub(crate) fn stop(&mut self, number: u64) {
        let node = self.nodes.iter_mut().find(|node| node.number == number).unwrap();
        if let Some((runtime, handle)) = node.running.take() {
            runtime.block_on(handle.shutdown());
            drop(handle);
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }

    pub(crate) fn handle(&self, number: u64) -> Handle {
        self.node(number).running.as_ref().unwrap().1.clone()
    }

    pub(crate) fn block<F: Future>(
        &self,
        number: u64,
        work: impl FnOnce(Handle) -> F,
    ) -> F::Output {
        let (runtime, handle) = self.node(number).running.as_ref().unwrap();
        runtime.block_on(work(handle.clone()))
    }

    pub(crate) fn alive(&self) -> Vec<u64> {
        self.nodes.iter().filter(|node| node.running.is_some()).map(|node| node.number).collect()
    }

    /// The member that leads, once one does.
    pub(crate) fn leader(&self) -> u64 {
        wait_for("a leader", || self.leader_among(&self.alive()))
    }

    pub(crate) fn leader_among(&self, members: &[u64]) -> Option<u64> {
        let leads = |number: &&u64| {
            let leadership = self.handle(**number).leadership().borrow().clone();
            matches!(leadership, Leadership::Leader { .. })
        };
        members.iter().find(leads).copied()
    }

    pub(crate) fn propose_at(&self, number: u64, value: u64) -> Result<Committed, ProposeError> {
        let body = Bytes::copy_from_slice(&value.to_le_bytes());
        self.block(number, |handle| async move { handle.propose(1, body).await })
    }

    /// Proposes wherever the leader is, until it is committed.
    pub(crate) fn propose(&self, value: u64) -> Committed {
        wait_for("a commit", || self.propose_at(self.leader(), value).ok())
    }

    /// Waits until all running members have applied an entry and agree.
    pub(crate) fn converge(&self, index: u64) {
        for number in self.alive() {
            wait_for("all to apply", || (self.node(number).view.applied() >= index).then_some(()));
        }
        let sums: Vec<u64> = self.alive().iter().map(|n| self.node(*n).view.sum()).collect();
        assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "sums differ: {sums:?}");
    }
}
