//! `channel ...`: the data-node channels of the group.

use clap::{Args, Subcommand, ValueEnum};
use client::Operator;
use client::proto::{
    ChannelPhase, ChannelSpec, CheckOwnerRequest, DescribeChannelRequest, DropChannelRequest,
    ListChannelsRequest, ReleaseChannelRequest, RemoveChannelRequest, WatchChannelsRequest,
};
use serde::Serialize;

use crate::args::Global;
use crate::cleaner::Claim;
use crate::exit::Failure;
use crate::operator::{connect, show_receipt};
use crate::output::{Output, pairs, table};
use crate::progress::Progress;
use crate::render;
use crate::shape;

/// Commands about channels.
#[derive(Debug, Subcommand)]
pub(crate) enum Channel {
    /// Announce channels, all or none.
    Watch(Watch),
    /// List channels.
    List(List),
    /// Show one channel.
    Describe {
        /// Name of the channel.
        name: String,
    },
    /// Ask whether somebody owns a channel, as a commit of positions would be judged.
    Check {
        /// Name of the channel.
        name: String,
        #[command(flatten)]
        claim: Claim,
    },
    /// Take a channel from its owner; the planner places it again.
    Release {
        /// Name of the channel.
        name: String,
        /// Only if this is its term.
        #[arg(long, default_value_t = 0)]
        term: u64,
    },
    /// Drop a channel: its owner releases it, then it is removed.
    Drop {
        /// Name of the channel.
        name: String,
    },
    /// Remove a channel at once, in any phase.
    Remove {
        /// Name of the channel.
        name: String,
    },
}

/// Arguments of `channel watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Names of the channels.
    #[arg(required = true)]
    names: Vec<String>,
    /// Their collection.
    #[arg(long)]
    collection: u64,
    /// Physical channel; without it the name up to its last underscore.
    #[arg(long, default_value = "")]
    pchannel: String,
    /// Start positions as text.
    #[arg(long, default_value = "")]
    positions: String,
    /// Reference of the schema.
    #[arg(long, default_value = "")]
    schema_ref: String,
}

/// Arguments of `channel list`.
#[derive(Debug, Default, Args)]
pub(crate) struct List {
    /// Only of this collection.
    #[arg(long)]
    collection: Option<u64>,
    /// Only of the node with this id.
    #[arg(long)]
    node: Option<u64>,
    /// Only in this phase.
    #[arg(long, value_enum)]
    phase: Option<Phase>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Phase {
    Buffered,
    ToWatch,
    Watched,
    ToRelease,
}

/// Runs one of them.
pub(crate) async fn run(command: Channel, global: &Global, output: &Output) -> Result<(), Failure> {
    let operator = connect(global)?;
    let receipt = match command {
        Channel::Watch(arguments) => watch(&operator, arguments).await?,
        Channel::List(arguments) => return list(&operator, &arguments, global, output).await,
        Channel::Describe { name } => return describe(&operator, name, global, output).await,
        Channel::Check { name, claim } => {
            return check(&operator, name, claim, global, output).await;
        }
        Channel::Release { name, term } => {
            let request = ReleaseChannelRequest { write: None, name, term };
            operator.release_channel(request).await?.receipt
        }
        Channel::Drop { name } => {
            let request = DropChannelRequest { write: None, name, claim: None };
            operator.drop_channel(request).await?.receipt
        }
        Channel::Remove { name } => {
            let request = RemoveChannelRequest { write: None, name: name.clone() };
            let receipt = operator.remove_channel(request).await?.receipt.unwrap_or_default();
            let receipt = shape::Receipt::from(receipt);
            return output.show(&receipt, |receipt| match receipt.outcome {
                // A removal that is repeated is no error; a wrong name must not look like success.
                "no_change" => format!("nothing to do: no channel {name} is known"),
                _ => receipt.text(),
            });
        }
    };
    show_receipt(output, receipt)
}

async fn watch(
    operator: &Operator,
    arguments: Watch,
) -> Result<Option<client::proto::WriteReceipt>, Failure> {
    let spec = |name| ChannelSpec {
        name,
        collection: arguments.collection,
        pchannel: arguments.pchannel.clone(),
        positions: arguments.positions.clone().into_bytes().into(),
        schema_ref: arguments.schema_ref.clone(),
    };
    let channels = arguments.names.iter().cloned().map(spec).collect();
    let request = WatchChannelsRequest { write: None, channels };
    Ok(operator.watch_channels(request).await?.receipt)
}

/// All channels that fit, page by page.
pub(crate) async fn all(
    operator: &Operator,
    filter: &List,
    global: &Global,
    mut page: impl FnMut(usize),
) -> Result<Vec<shape::Channel>, Failure> {
    let phase = match filter.phase {
        None => ChannelPhase::Unspecified,
        Some(Phase::Buffered) => ChannelPhase::Buffered,
        Some(Phase::ToWatch) => ChannelPhase::ToWatch,
        Some(Phase::Watched) => ChannelPhase::Watched,
        Some(Phase::ToRelease) => ChannelPhase::ToRelease,
    };
    let mut channels = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListChannelsRequest {
            read: global.read(),
            page_size: 1000,
            page_token,
            collection: filter.collection.unwrap_or(0),
            node_id: filter.node.unwrap_or(0),
            phase: phase.into(),
        };
        let answer = operator.list_channels(request).await?;
        channels.extend(answer.channels.into_iter().map(shape::Channel::from));
        page(channels.len());
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            return Ok(channels);
        }
    }
}

async fn list(
    operator: &Operator,
    filter: &List,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let progress = Progress::spinner(output, "reading channels");
    let count = |count| progress.set(u64::try_from(count).unwrap_or(0));
    let channels = all(operator, filter, global, count).await?;
    drop(progress);
    output.show(&channels, |channels| {
        let mut table =
            table(["channel", "collection", "phase", "owner", "term", "attempts", "placed by"]);
        for channel in channels {
            table.add_row([
                channel.name.clone(),
                channel.collection.to_string(),
                phase(channel),
                owner(channel.owner.as_ref()),
                channel.term.to_string(),
                channel.attempts.to_string(),
                render::number(channel.placed_by),
            ]);
        }
        table.to_string()
    })
}

async fn describe(
    operator: &Operator,
    name: String,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let request = DescribeChannelRequest { read: global.read(), name };
    let answer = operator.describe_channel(request).await?;
    let channel = shape::Channel::from(answer.channel.unwrap_or_default());
    output.show(&channel, text)
}

#[derive(Serialize)]
struct Checked {
    channel: String,
    phase: &'static str,
    owner: Option<shape::Owner>,
    term: u64,
}

async fn check(
    operator: &Operator,
    name: String,
    claim: Claim,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let request =
        CheckOwnerRequest { read: global.read(), name: name.clone(), claim: Some(claim.into()) };
    let answer = operator.check_owner(request).await?;
    let checked = Checked {
        channel: name,
        phase: render::phase(answer.phase),
        owner: answer.owner.map(shape::Owner::from),
        term: answer.term,
    };
    output.show(&checked, |checked| {
        let owner = owner(checked.owner.as_ref());
        format!("{owner} owns {} under term {}: {}", checked.channel, checked.term, checked.phase)
    })
}

/// One channel for people.
pub(crate) fn text(channel: &shape::Channel) -> String {
    let former = channel.former_owners.iter().map(|former| {
        let name = owner(former.owner.as_ref());
        format!("{name} (term {})", former.term)
    });
    let cooldowns = channel.cooldowns.iter().map(|cooldown| {
        format!("node {} until {}", cooldown.node_id, render::time(cooldown.until_ms))
    });
    let committed = match channel.committed_revision {
        0 => String::new(),
        revision => format!("{} at revision {revision}", channel.committed_positions),
    };
    pairs([
        ("channel", channel.name.clone()),
        ("collection", channel.collection.to_string()),
        ("pchannel", channel.pchannel.clone()),
        ("schema", channel.schema_ref.clone()),
        ("positions", channel.positions.clone()),
        ("phase", phase(channel)),
        ("owner", owner(channel.owner.as_ref())),
        ("term", channel.term.to_string()),
        ("op", render::number(channel.op)),
        ("deadline", render::time(channel.deadline_ms)),
        ("attempts", render::number(channel.attempts.into())),
        ("last failure", channel.last_failure.clone()),
        ("cool-downs", cooldowns.collect::<Vec<_>>().join(", ")),
        ("waits for clean-up after", former.collect::<Vec<_>>().join(", ")),
        ("placed by", render::number(channel.placed_by)),
        ("cause", channel.placed_cause.clone()),
        ("added at", channel.added_revision.to_string()),
        ("committed", committed),
    ])
}

fn phase(channel: &shape::Channel) -> String {
    let dropping = if channel.dropping { ", dropping" } else { "" };
    format!("{}{dropping}", channel.phase)
}

fn owner(owner: Option<&shape::Owner>) -> String {
    owner.map_or_else(String::new, |owner| format!("{} ({})", owner.node_name, owner.node_id))
}
