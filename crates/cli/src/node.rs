//! `node ...`: the worker nodes of the group.

use clap::Subcommand;
use client::Operator;
use client::proto::{
    DescribeNodeRequest, FreezeNodeRequest, ListNodesRequest, RevokeNodeRequest, ThawNodeRequest,
    UndrainNodeRequest,
};
use serde::Serialize;

use crate::args::Global;
use crate::drain;
use crate::exit::Failure;
use crate::operator::{connect, node_ref, show_receipt};
use crate::output::{Output, pairs, table};
use crate::progress::Progress;
use crate::render;
use crate::shape;

/// Commands about worker nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum Node {
    /// List all nodes.
    List,
    /// Show one node and what it is told to run.
    Describe {
        /// Node id, or name of the worker.
        node: String,
    },
    /// Move everything off a node; it stays registered.
    Drain {
        /// Node id, or name of the worker.
        node: String,
        /// Only show where each channel would go, and what would stay and why.
        #[arg(long, conflicts_with = "wait")]
        forecast: bool,
        /// Return when the node is empty, or fail with exit code 5 after this long.
        #[arg(long, value_name = "DURATION", value_parser = crate::args::duration)]
        wait: Option<std::time::Duration>,
    },
    /// Take a drain back.
    Undrain {
        /// Node id, or name of the worker.
        node: String,
    },
    /// Give a worker nothing new and empty it, now and under every later session.
    Freeze {
        /// Name of the worker.
        name: String,
    },
    /// Take a freeze back.
    Thaw {
        /// Name of the worker.
        name: String,
    },
    /// End the session of a node at once.
    Revoke {
        /// Node id, or name of the worker.
        node: String,
    },
}

/// Runs one of them.
pub(crate) async fn run(command: Node, global: &Global, output: &Output) -> Result<(), Failure> {
    let operator = connect(global)?;
    let receipt = match command {
        Node::List => return list(&operator, global, output).await,
        Node::Describe { node } => return describe(&operator, &node, global, output).await,
        Node::Drain { node, forecast, wait } => {
            return drain::run(&operator, &node, forecast, wait, global, output).await;
        }
        Node::Undrain { node } => {
            let request = UndrainNodeRequest { node: Some(node_ref(&node)), write: None };
            operator.undrain_node(request).await?.receipt
        }
        Node::Freeze { name } => {
            operator.freeze_node(FreezeNodeRequest { name, write: None }).await?.receipt
        }
        Node::Thaw { name } => {
            operator.thaw_node(ThawNodeRequest { name, write: None }).await?.receipt
        }
        Node::Revoke { node } => {
            let request = RevokeNodeRequest { node: Some(node_ref(&node)), write: None };
            operator.revoke_node(request).await?.receipt
        }
    };
    show_receipt(output, receipt)
}

/// All nodes, page by page.
pub(crate) async fn all(
    operator: &Operator,
    global: &Global,
    mut page: impl FnMut(usize),
) -> Result<Vec<shape::Node>, Failure> {
    let mut nodes = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListNodesRequest { read: global.read(), page_size: 1000, page_token };
        let answer = operator.list_nodes(request).await?;
        nodes.extend(answer.nodes.into_iter().map(shape::Node::from));
        page(nodes.len());
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            return Ok(nodes);
        }
    }
}

async fn list(operator: &Operator, global: &Global, output: &Output) -> Result<(), Failure> {
    let progress = Progress::spinner(output, "reading nodes");
    let nodes =
        all(operator, global, |count| progress.set(u64::try_from(count).unwrap_or(0))).await?;
    drop(progress);
    output.show(&nodes, |nodes| {
        let mut table = table([
            "node",
            "name",
            "role",
            "status",
            "address",
            "to watch",
            "watched",
            "to release",
            "silent ms",
        ]);
        for node in nodes {
            table.add_row([
                node.node_id.to_string(),
                node.name.clone(),
                node.role.to_owned(),
                status(node),
                node.address.clone(),
                node.to_watch.to_string(),
                node.watched.to_string(),
                node.to_release.to_string(),
                node.silent_ms.to_string(),
            ]);
        }
        table.to_string()
    })
}

fn status(node: &shape::Node) -> String {
    if node.frozen { format!("{}, frozen", node.status) } else { node.status.to_owned() }
}

#[derive(Serialize)]
struct Described {
    node: shape::Node,
    drain: Option<drain::Drain>,
    directives: Vec<Directive>,
}

#[derive(Serialize)]
struct Directive {
    channel: String,
    kind: &'static str,
    term: u64,
    op: u64,
    collection: u64,
}

async fn describe(
    operator: &Operator,
    node: &str,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let request = DescribeNodeRequest { read: global.read(), node: Some(node_ref(node)) };
    let answer = operator.describe_node(request).await?;
    let directive = |directive: client::proto::Directive| Directive {
        kind: match client::proto::DirectiveKind::try_from(directive.kind) {
            Ok(client::proto::DirectiveKind::Watch) => "watch",
            Ok(client::proto::DirectiveKind::Release) => "release",
            _ => "unknown",
        },
        channel: directive.channel,
        term: directive.term,
        op: directive.op,
        collection: directive.collection,
    };
    let described = Described {
        node: answer.node.unwrap_or_default().into(),
        drain: answer.drain.map(drain::Drain::from),
        directives: answer.directives.into_iter().map(directive).collect(),
    };
    output.show(&described, |described| {
        let node = &described.node;
        let labels: Vec<String> =
            node.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let facts = pairs([
            ("node", node.node_id.to_string()),
            ("epoch", node.node_epoch.to_string()),
            ("name", node.name.clone()),
            ("role", node.role.to_owned()),
            ("status", status(node)),
            ("address", node.address.clone()),
            ("version", node.version.clone()),
            ("labels", labels.join(", ")),
            ("registered", render::time(node.registered_ms)),
            ("silent", format!("{} ms", node.silent_ms)),
        ]);
        let mut table = table(["channel", "directive", "term", "op", "collection"]);
        for directive in &described.directives {
            table.add_row([
                directive.channel.clone(),
                directive.kind.to_owned(),
                directive.term.to_string(),
                directive.op.to_string(),
                directive.collection.to_string(),
            ]);
        }
        let drain = described.drain.as_ref().map(drain::Drain::text);
        let drain = drain.map_or_else(String::new, |drain| format!("{drain}\n\n"));
        format!("{facts}\n\n{drain}{table}")
    })
}
