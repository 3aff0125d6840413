//! What `dev` shows: the group at one moment, gathered from every member and one list of nodes.
//! Asks for what members have applied, so that it works without a quorum too.

use client::proto::{Consistency, ListNodesRequest, ReadOptions};

use crate::group::Group;
use crate::render;

/// The group at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) members: Vec<Member>,
    pub(super) leader: u64,
    pub(super) term: u64,
    pub(super) revision: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) channels: Channels,
}

/// One coordinator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) member: u64,
    pub(super) address: String,
    /// `down` when it does not answer.
    pub(super) state: &'static str,
    pub(super) applied: u64,
    pub(super) last_log: u64,
}

/// One worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) node_id: u64,
    pub(super) status: &'static str,
    pub(super) to_watch: u32,
    pub(super) watched: u32,
    pub(super) to_release: u32,
}

/// Channels by phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Channels {
    pub(super) total: u32,
    pub(super) buffered: u32,
    pub(super) to_watch: u32,
    pub(super) watched: u32,
    pub(super) to_release: u32,
}

impl Picture {
    /// Asks everyone at once.
    pub(super) async fn take(group: &Group) -> Self {
        let statuses = group.coordinators.iter().map(|one| group.status_of(one.member));
        let statuses = futures::future::join_all(statuses).await;
        let mut picture = Self::default();
        for (coordinator, status) in group.coordinators.iter().zip(statuses) {
            let mut member = Member {
                member: coordinator.member,
                address: coordinator.client_address.clone(),
                state: "down",
                ..Member::default()
            };
            if let Some(status) = status {
                let header = status.header.unwrap_or_default();
                member.state = render::member_state(status.state);
                member.applied = header.index;
                member.last_log = status.last_log_index;
                if header.revision >= picture.revision {
                    picture.revision = header.revision;
                    picture.channels = Channels {
                        total: status.channels,
                        buffered: status.channels_buffered,
                        to_watch: status.channels_to_watch,
                        watched: status.channels_watched,
                        to_release: status.channels_to_release,
                    };
                }
                if header.term >= picture.term && header.leader != 0 {
                    (picture.term, picture.leader) = (header.term, header.leader);
                }
            }
            picture.members.push(member);
        }
        picture.nodes = nodes(group).await;
        picture
    }
}

async fn nodes(group: &Group) -> Vec<Node> {
    let read = ReadOptions { consistency: Consistency::Stale.into(), min_revision: 0 };
    let request = ListNodesRequest { read: Some(read), page_size: 1000, page_token: String::new() };
    let Ok(answer) = group.operator.list_nodes(request).await else { return Vec::new() };
    let node = |node: client::proto::Node| Node {
        name: node.name,
        node_id: node.node_id,
        status: render::node_status(node.status),
        to_watch: node.to_watch,
        watched: node.watched,
        to_release: node.to_release,
    };
    answer.nodes.into_iter().map(node).collect()
}
