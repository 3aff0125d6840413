//! Calls of NodeService that operators make; the session stream is the agent's.
//! Attempts and retries are in call.rs.
//! Called by the command line and the tests.

use crate::call::{reads, writes};
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;
use crate::proto::node_service_client::NodeServiceClient;

reads! { NodeServiceClient:
    /// One page of the worker nodes.
    list_nodes(ListNodesRequest) -> ListNodesResponse;
    /// One worker node and what it is told to do.
    describe_node(DescribeNodeRequest) -> DescribeNodeResponse;
    /// What draining a node would do.
    forecast_drain(ForecastDrainRequest) -> ForecastDrainResponse;
}

writes! { NodeServiceClient:
    /// Moves everything off a node.
    drain_node(DrainNodeRequest) -> DrainNodeResponse;
    /// Lets a drained node get channels again.
    undrain_node(UndrainNodeRequest) -> UndrainNodeResponse;
    /// Keeps a worker name from getting anything, now and later.
    freeze_node(FreezeNodeRequest) -> FreezeNodeResponse;
    /// Ends a freeze.
    thaw_node(ThawNodeRequest) -> ThawNodeResponse;
    /// Ends a session at once.
    revoke_node(RevokeNodeRequest) -> RevokeNodeResponse;
}

impl Operator {
    /// All worker nodes, page by page; later pages are at least as new as the first.
    pub async fn all_nodes(
        &self,
        read: Option<proto::ReadOptions>,
    ) -> Result<Vec<proto::Node>, Error> {
        let mut request = proto::ListNodesRequest { read, ..Default::default() };
        self.complete_read(&mut request.read);
        let mut nodes = Vec::new();
        loop {
            let page = self.list_nodes(request.clone()).await?;
            nodes.extend(page.nodes);
            if page.next_page_token.is_empty() {
                return Ok(nodes);
            }
            request.page_token = page.next_page_token;
            if let (Some(read), Some(header)) = (request.read.as_mut(), page.header) {
                read.min_revision = read.min_revision.max(header.revision);
            }
        }
    }
}

/// Names a node by its worker name.
pub fn node_named(name: impl Into<String>) -> proto::NodeRef {
    proto::NodeRef { node_id: 0, name: name.into() }
}

/// Names a node by its id.
pub fn node_numbered(node_id: u64) -> proto::NodeRef {
    proto::NodeRef { node_id, name: String::new() }
}
