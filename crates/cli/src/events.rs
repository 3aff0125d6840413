//! `events`: the history of the group, and with `--follow` its continuation.

use clap::Args;
use client::proto::ListEventsRequest;
use client::{WatchItem, WatchOptions};
use serde::Serialize;

use crate::args::Global;
use crate::exit::Failure;
use crate::operator::connect;
use crate::output::Output;
use crate::render;
use crate::shape::{Channel, EventRecord, Node};
use crate::stop;

/// Arguments of `events`.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// First revision wanted; 0: the oldest kept. With --follow and without it: from now.
    #[arg(long, value_name = "REV")]
    from: Option<u64>,
    /// Go on with what happens next, until interrupted.
    #[arg(long)]
    follow: bool,
    /// Only of this channel.
    #[arg(long, default_value = "", hide_default_value = true)]
    channel: String,
    /// At most so many records; 0: all.
    #[arg(long, default_value_t = 0, hide_default_value = true, conflicts_with = "follow")]
    limit: usize,
}

/// The present state, in place of history that is no longer kept.
#[derive(Serialize)]
struct Present {
    state_at_revision: u64,
    nodes: Vec<Node>,
    channels: Vec<Channel>,
}

/// Shows them: with `-o json` one object a line.
pub(crate) async fn run(
    arguments: Events,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    if arguments.follow {
        return tokio::select! {
            ended = follow(&arguments, global, output) => ended,
            stopped = stop::requested(false) => stopped,
        };
    }
    let operator = connect(global)?;
    let mut from_revision = arguments.from.unwrap_or(0);
    let mut left = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    loop {
        let request = ListEventsRequest {
            read: global.read(),
            from_revision,
            page_size: u32::try_from(left.min(1000)).unwrap_or(1000),
            channel: arguments.channel.clone(),
            descending: false,
        };
        let answer = operator.list_events(request).await?;
        for record in answer.records.into_iter().take(left) {
            left = left.saturating_sub(1);
            output.element(&EventRecord::from(record), text)?;
        }
        from_revision = answer.next_revision;
        if from_revision == 0 || left == 0 {
            return Ok(());
        }
    }
}

async fn follow(arguments: &Events, global: &Global, output: &Output) -> Result<(), Failure> {
    // The watch takes the last revision the caller has, the flag the first one wanted.
    let from_revision = arguments.from.map(|first| first.saturating_sub(1));
    let options =
        WatchOptions { from_revision, channel: arguments.channel.clone(), ..Default::default() };
    let mut watch = connect(global)?.watch_events(options);
    while let Some(item) = watch.next().await? {
        match item {
            WatchItem::Record(record) => output.element(&EventRecord::from(*record), text)?,
            WatchItem::State(state) => {
                let present = Present {
                    state_at_revision: state.at_revision,
                    nodes: state.nodes.into_iter().map(Node::from).collect(),
                    channels: state.channels.into_iter().map(Channel::from).collect(),
                };
                output.element(&present, |present| {
                    format!(
                        "history up to revision {} is not kept; there: {} nodes, {} channels",
                        present.state_at_revision,
                        present.nodes.len(),
                        present.channels.len()
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// One record for people.
pub(crate) fn text(record: &EventRecord) -> String {
    let actor = match record.actor.as_str() {
        "" => String::new(),
        actor => format!(" by {actor}"),
    };
    let mut lines = vec![format!(
        "{:>8}  {}  {}{actor}",
        record.revision,
        render::time(record.at_ms),
        record.caused_by
    )];
    lines.extend(record.events.iter().map(|event| format!("          {}", event.text)));
    lines.join("\n")
}
