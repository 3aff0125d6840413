//! Goal: an operator sees what a drain will do, how far it is, and what holds it up. Method: one
//! real coordinator, workers on the client library, the questions asked before, during and after.

use std::collections::BTreeMap;

use client::proto as v1;
use tests::harness::{Group, wait_for};

use crate::cluster::{all_watched, worker};

fn node(name: &str) -> Option<v1::NodeRef> {
    Some(v1::NodeRef { name: name.to_owned(), node_id: 0 })
}

async fn forecast(group: &Group, name: &str) -> v1::ForecastDrainResponse {
    let request = v1::ForecastDrainRequest { read: None, node: node(name) };
    group.operator().forecast_drain(request).await.unwrap()
}

async fn progress(group: &Group, name: &str) -> Option<v1::Drain> {
    let request = v1::DescribeNodeRequest { read: None, node: node(name) };
    group.operator().describe_node(request).await.unwrap().drain
}

fn owners(channels: &[v1::Channel]) -> BTreeMap<String, u64> {
    let owner = |channel: &v1::Channel| {
        let name = channel.spec.clone().unwrap().name;
        (name, channel.owner.clone().unwrap_or_default().node_id)
    };
    channels.iter().map(owner).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_does_what_its_forecast_says() {
    let group = Group::start(1).await;
    let first = worker(&group, "w1");
    group.watch(&["c1", "c2", "c3"]).await;
    all_watched(&group, 3).await;
    let alone = forecast(&group, "w1").await;
    assert!(alone.moves.is_empty());
    assert_eq!(alone.stays.len(), 3);
    assert!(alone.stays.iter().all(|stay| !stay.waiting_for.is_empty()), "{alone:?}");
    assert!(progress(&group, "w1").await.is_none());

    let request = v1::DrainNodeRequest { node: node("w1"), write: None };
    group.operator().drain_node(request).await.unwrap();
    let stuck = progress(&group, "w1").await.unwrap();
    assert_eq!((stuck.drained, stuck.watched), (false, 3));
    assert!(stuck.since_ms > 0 && !stuck.waiting_for.is_empty(), "{stuck:?}");
    assert!(stuck.unblocked_by.contains("data node"), "{stuck:?}");

    let undo = v1::UndrainNodeRequest { node: node("w1"), write: None };
    group.operator().undrain_node(undo).await.unwrap();
    let second = worker(&group, "w2");
    wait_for("both workers", || async {
        (group.operator().all_nodes(None).await.ok()?.len() == 2).then_some(())
    })
    .await;
    let told = forecast(&group, "w1").await;
    assert_eq!((told.moves.len(), told.stays.len(), told.rounds), (3, 0, 1));
    let request = v1::DrainNodeRequest { node: node("w1"), write: None };
    group.operator().drain_node(request).await.unwrap();
    wait_for("an empty node", || async {
        progress(&group, "w1").await.filter(|drain| drain.drained)
    })
    .await;
    let found = owners(&all_watched(&group, 3).await);
    let told: BTreeMap<String, u64> =
        told.moves.into_iter().map(|step| (step.channel, step.node_id)).collect();
    assert_eq!(found, told);
    let unknown = v1::ForecastDrainRequest { read: None, node: node("nobody") };
    let error = group.operator().forecast_drain(unknown).await.unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
    first.die();
    second.die();
    group.check().await;
    group.end().await;
}

/// Without an owner: since when, for what, and what would end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_without_owner_says_since_when_it_waits() {
    let group = Group::start(1).await;
    group.watch(&["c1"]).await;
    let ask = || v1::ExplainChannelRequest { read: None, name: "c1".to_owned() };
    let answer = group.operator().explain_channel(ask()).await.unwrap();
    let added = answer.history.iter().find(|step| step.event.contains("ChannelAdded")).unwrap();
    assert_eq!(answer.waiting_since_ms, added.at_ms);
    assert!(answer.waiting_for.contains("no data node"), "{answer:?}");
    let only = worker(&group, "w");
    all_watched(&group, 1).await;
    let answer = group.operator().explain_channel(ask()).await.unwrap();
    assert_eq!((answer.waiting_for.as_str(), answer.waiting_since_ms), ("", 0));
    only.die();
    let revoke = v1::RevokeNodeRequest { node: node("w"), write: None };
    group.operator().revoke_node(revoke).await.unwrap();
    let answer = group.operator().explain_channel(ask()).await.unwrap();
    let lost = answer.history.iter().find(|step| step.event.contains("ChannelUnassigned")).unwrap();
    assert_eq!(answer.waiting_since_ms, lost.at_ms);
    group.check().await;
    group.end().await;
}
