//! Founds a group, once. Every listed member is asked first; any that holds data or belongs to a
//! group makes it fail. The id of the group is written on all members before the first vote, so
//! that an empty directory found later is known to be a lost one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::BootstrapError;
use crate::member::{ClusterId, Member};
use crate::replica::Replica;

const PROBE_DEADLINE: Duration = Duration::from_secs(2);

/// See `Handle::bootstrap`.
pub(crate) async fn bootstrap(
    replica: &Arc<Replica>,
    members: Vec<Member>,
) -> Result<ClusterId, BootstrapError> {
    let _one = replica
        .changing
        .try_acquire()
        .map_err(|_| BootstrapError::Failed("another change is under way".into()))?;
    let me = replica.me.member;
    check_list(&members, me)?;
    let failed = |error: &dyn ToString| BootstrapError::Failed(error.to_string());
    let raft = replica.raft().ok_or_else(|| failed(&"this member is starting"))?;
    let own = members.iter().find(|member| member.member == me).cloned().unwrap_or_default();
    if replica.has_data().await {
        return Err(BootstrapError::HasData { member: own });
    }
    // The group keeps these addresses for good; a wrong one is not seen before the first failover.
    let told = [&replica.me.peer_address, &replica.me.client_address];
    for (listed, told) in [&own.peer_address, &own.client_address].into_iter().zip(told) {
        check_address(me, listed, told)?;
    }
    // A founding that broke off half way left its id here: the same one is used again.
    let begun = replica.dir.cluster();
    for member in members.iter().filter(|member| member.member != me) {
        probe(replica, member, begun.as_ref()).await?;
    }
    let cluster = match begun {
        Some(cluster) => cluster,
        None => ClusterId::random().map_err(|error| failed(&error))?,
    };
    let (dir, founded) = (Arc::clone(&replica.dir), cluster.clone());
    tokio::task::spawn_blocking(move || dir.found(&founded))
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))?;
    for member in members.iter().filter(|member| member.member != me) {
        let answer = replica.peers.probe(member, Some(&cluster), PROBE_DEADLINE).await;
        answer.map_err(|status| BootstrapError::Unreachable {
            member: member.clone(),
            detail: status.message().to_owned(),
        })?;
    }
    let nodes: BTreeMap<u64, Member> =
        members.into_iter().map(|member| (member.member, member)).collect();
    raft.initialize(nodes).await.map_err(|error| failed(&error))?;
    Ok(cluster)
}

fn check_list(members: &[Member], me: u64) -> Result<(), BootstrapError> {
    let refuse = |what: &str| Err(BootstrapError::Members(what.to_owned()));
    let mut numbers: Vec<u64> = members.iter().map(|member| member.member).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() != members.len() {
        return refuse("a number is listed twice");
    }
    if !numbers.contains(&me) {
        return refuse("this member is not listed");
    }
    if members.iter().any(|member| member.peer_address.is_empty()) {
        return refuse("an address for the other members is missing");
    }
    let mut addresses: Vec<&str> =
        members.iter().map(|member| member.peer_address.as_str()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.len() != members.len() {
        return refuse("two members have one address");
    }
    Ok(())
}

/// Refuses a listed address that is not the one the member tells. One that listens everywhere and
/// advertises nothing tells none.
fn check_address(member: u64, listed: &str, told: &str) -> Result<(), BootstrapError> {
    let everywhere = told.starts_with("0.0.0.0:") || told.starts_with("[::]:");
    if told.is_empty() || everywhere || listed == told {
        return Ok(());
    }
    let detail = format!("member {member} is at {told}, not at {listed}: list what it advertises");
    Err(BootstrapError::Members(detail))
}

async fn probe(
    replica: &Replica,
    member: &Member,
    begun: Option<&ClusterId>,
) -> Result<(), BootstrapError> {
    let answer = replica.peers.probe(member, None, PROBE_DEADLINE).await.map_err(|status| {
        BootstrapError::Unreachable { member: member.clone(), detail: status.message().to_owned() }
    })?;
    if answer.member != member.member {
        return Err(BootstrapError::OtherMember {
            address: member.peer_address.clone(),
            found: answer.member,
            wanted: member.member,
        });
    }
    if answer.has_data {
        return Err(BootstrapError::HasData { member: member.clone() });
    }
    check_address(member.member, &member.client_address, &answer.client_address)?;
    let same = begun.is_some_and(|begun| begun.as_str() == answer.cluster_id);
    if !answer.cluster_id.is_empty() && !same {
        let (member, cluster_id) = (member.clone(), answer.cluster_id);
        return Err(BootstrapError::HasCluster { member, cluster_id });
    }
    Ok(())
}

impl Replica {
    /// True when this member holds a vote, entries or a snapshot.
    pub(crate) async fn has_data(&self) -> bool {
        if self.snapshots.newest().is_some() || self.log.holds_data() {
            return true;
        }
        match self.raft() {
            Some(raft) => raft.is_initialized().await.unwrap_or(true),
            None => true,
        }
    }
}
