//! What a drill looks at before it says that all is well: settled channels, equal members,
//! invariants, acknowledged work that is still there, moves that nobody asked for.

use std::collections::HashSet;
use std::time::Duration;

use client::proto::{
    Channel, Event, EventRecord, GetStatusRequest, GetWitnessRequest, GetWitnessResponse,
    ListChannelsRequest, ListCleanersRequest, ListEventsRequest,
};
use tokio::time::Instant;

use crate::exit::Failure;
use crate::group::{Group, wait};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until every channel is watched, every worker is up, nothing waits to be cleaned up, and
/// every member is equal.
/// Gives the revision of that moment.
pub(super) async fn settled(group: &mut Group) -> Result<u64, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        group.check()?;
        let status = group.operator.get_status(GetStatusRequest { read: None }).await?;
        let workers = u32::try_from(group.workers.len()).unwrap_or(u32::MAX);
        let quiet = status.channels == status.channels_watched && status.nodes_up >= workers;
        if quiet && clean(group).await? && witness(group).await?.equal {
            return Ok(status.header.unwrap_or_default().revision);
        }
        let what = "all channels to be watched, nothing to be cleaned up, all members to be equal";
        wait(until, what).await?;
    }
}

async fn clean(group: &Group) -> Result<bool, Failure> {
    let listed = group.operator.list_cleaners(ListCleanersRequest { read: None }).await?;
    Ok(listed.waiting == 0)
}

/// Witness and digest of all members at the newest common index.
pub(super) async fn witness(group: &Group) -> Result<GetWitnessResponse, Failure> {
    Ok(group.operator.get_witness(GetWitnessRequest { index: 0 }).await?)
}

/// Whether all members answer and find every invariant kept.
pub(super) async fn invariants_ok(group: &Group) -> bool {
    let statuses = group.coordinators.iter().map(|one| group.status_of(one.member));
    let statuses = futures::future::join_all(statuses).await;
    statuses.into_iter().all(|status| status.is_some_and(|status| status.violations.is_empty()))
}

/// All channels, as a linearizable read sees them.
pub(super) async fn channels(group: &Group, node_id: u64) -> Result<Vec<Channel>, Failure> {
    let mut channels = Vec::new();
    let mut request =
        ListChannelsRequest { page_size: 1000, node_id, ..ListChannelsRequest::default() };
    loop {
        let answer = group.operator.list_channels(request.clone()).await?;
        channels.extend(answer.channels);
        request.page_token = answer.next_page_token;
        if request.page_token.is_empty() {
            return Ok(channels);
        }
    }
}

/// The name of a channel.
pub(super) fn name(channel: &Channel) -> String {
    channel.spec.as_ref().map(|spec| spec.name.clone()).unwrap_or_default()
}

/// Names of all channels that have an owner.
pub(super) async fn placed(group: &Group) -> Result<HashSet<String>, Failure> {
    let channels = channels(group, 0).await?;
    Ok(channels.iter().filter(|channel| channel.owner.is_some()).map(name).collect())
}

/// Everything that happened after `revision`.
pub(super) async fn history(group: &Group, revision: u64) -> Result<Vec<EventRecord>, Failure> {
    let mut records = Vec::new();
    let mut request = ListEventsRequest {
        from_revision: revision.saturating_add(1),
        page_size: 1000,
        ..ListEventsRequest::default()
    };
    loop {
        let answer = group.operator.list_events(request.clone()).await?;
        records.extend(answer.records);
        request.from_revision = answer.next_revision;
        if request.from_revision == 0 {
            return Ok(records);
        }
    }
}

/// Events that took a channel from where it was, or gave one that was placed before to somebody,
/// and that are not about a channel of `asked`. `placed`: the channels that had an owner at the
/// beginning.
pub(super) fn unasked_moves(
    records: &[EventRecord],
    placed: &HashSet<String>,
    asked: &HashSet<String>,
) -> Vec<String> {
    let mut placed = placed.clone();
    let mut moves = Vec::new();
    for event in records.iter().flat_map(|record| &record.events) {
        let moved = match event.kind.as_str() {
            "ChannelPlaced" => !placed.insert(event.channel.clone()),
            "ReleaseStarted" | "ChannelUnassigned" => true,
            _ => false,
        };
        if moved && !asked.contains(&event.channel) {
            moves.push(event.text.clone());
        }
    }
    moves
}

/// Channels that were placed on that node.
pub(super) fn placed_on(records: &[EventRecord], node_id: u64) -> HashSet<String> {
    let on_node = |event: &&Event| event.kind == "ChannelPlaced" && event.node_id == node_id;
    let events = records.iter().flat_map(|record| &record.events);
    events.filter(on_node).map(|event| event.channel.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(events: &[(&str, &str, u64)]) -> EventRecord {
        let event = |(kind, channel, node_id): &(&str, &str, u64)| Event {
            kind: (*kind).to_owned(),
            text: format!("{kind} {channel}"),
            channel: (*channel).to_owned(),
            node_id: *node_id,
            ..Event::default()
        };
        EventRecord { events: events.iter().map(event).collect(), ..EventRecord::default() }
    }

    #[test]
    fn a_first_placement_is_no_move_and_a_second_is() {
        let placed = HashSet::from(["old".to_owned()]);
        let records = [
            record(&[("ChannelPlaced", "new", 1), ("WatchCompleted", "new", 1)]),
            record(&[("ChannelPlaced", "old", 2)]),
            record(&[("ReleaseStarted", "new", 1), ("ChannelUnassigned", "new", 1)]),
            record(&[("ChannelPlaced", "new", 2)]),
        ];
        let moves = unasked_moves(&records, &placed, &HashSet::new());
        let expected = [
            "ChannelPlaced old",
            "ReleaseStarted new",
            "ChannelUnassigned new",
            "ChannelPlaced new",
        ];
        assert_eq!(moves, expected);
        let asked = placed_on(&records, 1);
        assert_eq!(asked, HashSet::from(["new".to_owned()]));
        assert_eq!(unasked_moves(&records, &placed, &asked), ["ChannelPlaced old"]);
    }
}
