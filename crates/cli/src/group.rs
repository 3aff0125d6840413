//! A whole group on this machine: three coordinator processes and any number of worker processes,
//! each this binary again. Used by `dev` and `bench --spawn`; what they do with it is theirs.

mod home;
mod ports;
mod process;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use client::Operator;
use client::proto::{
    BootstrapRequest, Consistency, GetStatusRequest, GetStatusResponse, MemberAddress, ReadOptions,
};
use tokio::time::{Instant, sleep};

pub(crate) use home::Home;
pub(crate) use process::Process;

use crate::args::Global;
use crate::exit::{Code, Failure};
use crate::operator::connect_to;

/// Members of a group on one machine.
pub(crate) const MEMBERS: u16 = 3;
const PORTS_EACH: usize = 3;
/// How long anything may take that should take a moment.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// One coordinator process.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(crate) member: u64,
    pub(crate) client_address: String,
    pub(crate) peer_address: String,
    pub(crate) process: Process,
    /// Asks this one only.
    pub(crate) operator: Operator,
}

/// The group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) coordinators: Vec<Coordinator>,
    pub(crate) workers: Vec<Process>,
    /// Follows the leader.
    pub(crate) operator: Operator,
    home: Home,
}

impl Group {
    /// Starts three coordinators in `directory` and makes them one group.
    pub(crate) async fn found(
        directory: &Path,
        keep: bool,
        extra: &[(&str, &str)],
        global: &Global,
    ) -> Result<Self, Failure> {
        let home = Home::take(directory, keep, usize::from(MEMBERS) * PORTS_EACH)?;
        let ports: Vec<[u16; PORTS_EACH]> = home
            .ports()
            .chunks_exact(PORTS_EACH)
            .filter_map(|ports| ports.try_into().ok())
            .collect();
        let addresses: Vec<String> =
            ports.iter().map(|[client, ..]| format!("127.0.0.1:{client}")).collect();
        let operator = connect_to(&addresses, global)?;
        let mut coordinators = Vec::new();
        for (member, ports) in (1..).zip(&ports) {
            coordinators.push(coordinator(member, ports, home.directory(), extra, &operator)?);
        }
        let mut group = Self { coordinators, workers: Vec::new(), operator, home };
        match group.begin().await {
            Ok(()) => Ok(group),
            Err(failure) => {
                group.stop().await;
                Err(failure)
            }
        }
    }

    /// The client addresses of all members.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.coordinators.iter().map(|one| one.client_address.clone()).collect()
    }

    /// Starts one more worker.
    pub(crate) fn start_worker(&mut self, name: &str, extra: &[&str]) -> Result<(), Failure> {
        let mut arguments: Vec<OsString> =
            ["worker", "--stop-with-stdin", "--drain-timeout", "0s", "--name", name]
                .into_iter()
                .map(OsString::from)
                .collect();
        arguments.push("--coordinators".into());
        arguments.push(self.addresses().join(",").into());
        arguments.extend(extra.iter().map(OsString::from));
        let mut worker = Process::new(name, self.home.directory(), arguments);
        worker.start()?;
        self.workers.push(worker);
        Ok(())
    }

    /// What that member says of itself and the group, whatever its role.
    pub(crate) async fn status_of(&self, member: u64) -> Option<GetStatusResponse> {
        let coordinator = self.coordinators.iter().find(|one| one.member == member)?;
        let read = ReadOptions { consistency: Consistency::Stale.into(), min_revision: 0 };
        coordinator.operator.get_status(GetStatusRequest { read: Some(read) }).await.ok()
    }

    /// The leader with its term, once one is there.
    pub(crate) async fn leader(&mut self) -> Result<(u64, u64), Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.leader_now().await {
                return Ok(found);
            }
            self.check()?;
            wait(until, "a leader").await?;
        }
    }

    /// The leader, if one is there now.
    pub(crate) async fn known_leader(&self) -> Option<u64> {
        self.leader_now().await.map(|(leader, _)| leader)
    }

    /// The numbers of all members.
    pub(crate) fn members(&self) -> Vec<u64> {
        self.coordinators.iter().map(|one| one.member).collect()
    }

    /// Kills a member as `kill -9` does.
    pub(crate) async fn kill(&mut self, member: u64) -> Result<(), Failure> {
        match self.coordinators.iter_mut().find(|one| one.member == member) {
            Some(coordinator) => coordinator.process.kill().await,
            None => Err(Failure::failed(format!("no member {member}"))),
        }
    }

    /// Starts a killed member again.
    pub(crate) fn start(&mut self, member: u64) -> Result<(), Failure> {
        match self.coordinators.iter_mut().find(|one| one.member == member) {
            Some(coordinator) => coordinator.process.start(),
            None => Err(Failure::failed(format!("no member {member}"))),
        }
    }

    /// Waits until a member is ready.
    pub(crate) async fn ready(&mut self, member: u64) -> Result<GetStatusResponse, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.status_of(member).await
                && status.ready
            {
                return Ok(status);
            }
            self.check()?;
            wait(until, &format!("member {member} to be ready")).await?;
        }
    }

    /// Starts a killed member again and waits until it is ready.
    pub(crate) async fn restart(&mut self, member: u64) -> Result<GetStatusResponse, Failure> {
        self.start(member)?;
        self.ready(member).await
    }

    /// An error that tells why, if any process ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        let coordinators = self.coordinators.iter_mut().map(|one| &mut one.process);
        coordinators.chain(&mut self.workers).try_for_each(Process::check)
    }

    /// Ends every process, workers first, and leaves the directory.
    pub(crate) async fn stop(mut self) {
        let patience = Duration::from_secs(5);
        let workers = self.workers.iter_mut().map(|worker| worker.stop(patience));
        // What cannot be stopped is killed; what cannot be killed is gone already.
        let _ended = futures::future::join_all(workers).await;
        let processes = self.coordinators.iter_mut().map(|one| one.process.stop(patience));
        let _ended = futures::future::join_all(processes).await;
        self.home.leave();
    }

    async fn leader_now(&self) -> Option<(u64, u64)> {
        for coordinator in &self.coordinators {
            let Some(status) = self.status_of(coordinator.member).await else { continue };
            let header = status.header.unwrap_or_default();
            if header.leader == coordinator.member && status.has_quorum {
                return Some((header.leader, header.term));
            }
        }
        None
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        for coordinator in &mut self.coordinators {
            coordinator.process.start()?;
        }
        let mut founded = false;
        let until = Instant::now() + PATIENCE;
        for member in 1..=u64::from(MEMBERS) {
            loop {
                if let Some(status) = self.status_of(member).await {
                    founded |= !status.header.unwrap_or_default().cluster_id.is_empty();
                    break;
                }
                self.check()?;
                wait(until, &format!("member {member} to answer")).await?;
            }
        }
        if !founded {
            let members = self.coordinators.iter().map(|one| MemberAddress {
                member: one.member,
                peer_address: one.peer_address.clone(),
                client_address: one.client_address.clone(),
            });
            let request = BootstrapRequest { members: members.collect() };
            self.operator.bootstrap(request).await?;
        }
        self.leader().await?;
        Ok(())
    }
}

/// Sleeps a moment, or fails when it is too late.
pub(crate) async fn wait(until: Instant, what: &str) -> Result<(), Failure> {
    if Instant::now() >= until {
        return Err(Failure::new(Code::Unavailable, format!("waited too long for {what}")));
    }
    sleep(POLL).await;
    Ok(())
}

fn coordinator(
    member: u64,
    [client, peer, http]: &[u16; PORTS_EACH],
    directory: &Path,
    extra: &[(&str, &str)],
    operator: &Operator,
) -> Result<Coordinator, Failure> {
    let local = |port: &u16| format!("127.0.0.1:{port}");
    let data = directory.join(format!("member-{member}"));
    let mut arguments: Vec<OsString> = vec!["serve".into(), "--stop-with-stdin".into()];
    let mut flag = |name: &str, value: OsString| arguments.extend([name.into(), value]);
    flag("--member", member.to_string().into());
    flag("--data-dir", data.into());
    flag("--client-listen", local(client).into());
    flag("--peer-listen", local(peer).into());
    flag("--http-listen", local(http).into());
    for (name, value) in extra {
        flag(name, value.into());
    }
    Ok(Coordinator {
        member,
        client_address: local(client),
        peer_address: local(peer),
        process: Process::new(&format!("member-{member}"), directory, arguments),
        operator: operator.pinned(&local(client))?,
    })
}
