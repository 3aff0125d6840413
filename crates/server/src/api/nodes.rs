//! NodeService: the workers' stream, and what operators ask of nodes.

use std::pin::Pin;
use std::sync::Arc;

use proto::v1;
use proto::v1::node_service_server::NodeService;
use state::State;
use state::command::Command;
use state::directives_for;
use state::ids::NodeId;
use state::node::Node;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::read::page_rows;
use super::{Surface, convert, drains, session, status};

/// Messages waiting for one worker.
const STREAM_MESSAGES_MAX: usize = 16;

/// Serves NodeService.
#[derive(Debug)]
pub struct Nodes(pub Arc<Surface>);

fn find<'a>(state: &'a State, node: Option<&v1::NodeRef>) -> Result<&'a Arc<Node>, Status> {
    let node = node.cloned().unwrap_or_default();
    if node.node_id != 0 {
        return state.node(NodeId(node.node_id)).ok_or_else(|| {
            status::not_found("UNKNOWN_NODE", format!("node {} is unknown", node.node_id))
        });
    }
    let name = convert::node_name("node.name", &node.name)?;
    state
        .node_by_name(&name)
        .ok_or_else(|| status::not_found("UNKNOWN_NODE", format!("no worker {name} is up")))
}

impl Nodes {
    /// A write about a live session that the caller names by id or name.
    async fn about(
        &self,
        write: Option<v1::WriteOptions>,
        node: Option<v1::NodeRef>,
        command: impl FnOnce(state::node::NodeRef) -> Command,
    ) -> Result<v1::WriteReceipt, Status> {
        self.0.writes.reign().await?;
        let meant = find(&self.0.views.now().state, node.as_ref())?.node_ref();
        self.0.writes.write(write, command(meant)).await
    }
}

#[tonic::async_trait]
impl NodeService for Nodes {
    type SessionStream =
        Pin<Box<dyn Stream<Item = Result<v1::SessionResponse, Status>> + Send + 'static>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (out, messages) = mpsc::channel(STREAM_MESSAGES_MAX);
        tokio::spawn(session::serve(Arc::clone(&self.0), request.into_inner(), out));
        Ok(Response::new(Box::pin(ReceiverStream::new(messages))))
    }

    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let request = request.into_inner();
        let rows = page_rows(request.page_size)?;
        let after = match request.page_token.as_str() {
            "" => None,
            token => Some(NodeId(token.parse().map_err(|_| {
                status::bad_field("page_token", token, "a token of an earlier answer is allowed")
            })?)),
        };
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let mut nodes: Vec<v1::Node> = view
            .state
            .nodes_after(after)
            .take(rows + 1)
            .map(|node| convert::node(&view.state, node))
            .collect();
        let more = nodes.len() > rows;
        nodes.truncate(rows);
        let next_page_token = match nodes.last() {
            Some(last) if more => last.node_id.to_string(),
            _ => String::new(),
        };
        let header = Some(self.0.reads.header(&view));
        Ok(Response::new(v1::ListNodesResponse { header, nodes, next_page_token }))
    }

    async fn describe_node(
        &self,
        request: Request<v1::DescribeNodeRequest>,
    ) -> Result<Response<v1::DescribeNodeResponse>, Status> {
        let request = request.into_inner();
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let node = find(&view.state, request.node.as_ref())?;
        let drain = drains::progress(&self.0, &view, node).await?;
        Ok(Response::new(v1::DescribeNodeResponse {
            header: Some(self.0.reads.header(&view)),
            drain,
            node: Some(convert::node(&view.state, node)),
            // A description is for people: one page of it.
            directives: directives_for(&view.state, node.node)
                .iter()
                .take(crate::limits::PAGE_ROWS_MAX)
                .map(convert::directive)
                .collect(),
        }))
    }

    async fn drain_node(
        &self,
        request: Request<v1::DrainNodeRequest>,
    ) -> Result<Response<v1::DrainNodeResponse>, Status> {
        let request = request.into_inner();
        let receipt =
            self.about(request.write, request.node, |node| Command::SetStopping { node }).await?;
        Ok(Response::new(v1::DrainNodeResponse { receipt: Some(receipt) }))
    }

    async fn forecast_drain(
        &self,
        request: Request<v1::ForecastDrainRequest>,
    ) -> Result<Response<v1::ForecastDrainResponse>, Status> {
        let request = request.into_inner();
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let node = find(&view.state, request.node.as_ref())?.node_ref();
        let mut answer = drains::forecast(&self.0, &view, node).await?;
        answer.header = Some(self.0.reads.header(&view));
        Ok(Response::new(answer))
    }

    async fn undrain_node(
        &self,
        request: Request<v1::UndrainNodeRequest>,
    ) -> Result<Response<v1::UndrainNodeResponse>, Status> {
        let request = request.into_inner();
        let receipt =
            self.about(request.write, request.node, |node| Command::UnsetStopping { node }).await?;
        Ok(Response::new(v1::UndrainNodeResponse { receipt: Some(receipt) }))
    }

    async fn freeze_node(
        &self,
        request: Request<v1::FreezeNodeRequest>,
    ) -> Result<Response<v1::FreezeNodeResponse>, Status> {
        let request = request.into_inner();
        let name = convert::node_name("name", &request.name)?;
        let receipt = self.0.writes.write(request.write, Command::Freeze { name }).await?;
        Ok(Response::new(v1::FreezeNodeResponse { receipt: Some(receipt) }))
    }

    async fn thaw_node(
        &self,
        request: Request<v1::ThawNodeRequest>,
    ) -> Result<Response<v1::ThawNodeResponse>, Status> {
        let request = request.into_inner();
        let name = convert::node_name("name", &request.name)?;
        let receipt = self.0.writes.write(request.write, Command::Thaw { name }).await?;
        Ok(Response::new(v1::ThawNodeResponse { receipt: Some(receipt) }))
    }

    async fn revoke_node(
        &self,
        request: Request<v1::RevokeNodeRequest>,
    ) -> Result<Response<v1::RevokeNodeResponse>, Status> {
        let request = request.into_inner();
        let receipt =
            self.about(request.write, request.node, |node| Command::Revoke { node }).await?;
        Ok(Response::new(v1::RevokeNodeResponse { receipt: Some(receipt) }))
    }
}
