//! Goal: what the sender has no right to, what is of another time, and one bad item among many get
//! the right code, name the item, and change nothing. Method: raw gRPC calls against one real
//! coordinator; its revision before and after each refusal is the same.

use std::time::Duration;

use bytes::Bytes;
use client::proto as v1;
use client::proto::admin_service_client::AdminServiceClient;
use client::proto::channel_service_client::ChannelServiceClient;
use tests::harness::Group;
use tokio::time::{Instant, interval};
use tonic::Code;
use tonic_types::StatusExt;

use crate::api::{Raw, ack, connect, reason, revision, spec};

fn thousand() -> Vec<v1::ChannelSpec> {
    (0..1_000).map(|at| spec(&format!("c{at:04}"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_channel_among_a_thousand_is_named_and_none_is_taken() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut channels = ChannelServiceClient::new(wire.clone());
    group.watch(&["c0500"]).await;
    let before = revision(&wire).await;
    // Known with other content.
    let request = v1::WatchChannelsRequest { write: None, channels: thousand() };
    let status = channels.watch_channels(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::AlreadyExists, "CONFLICT"));
    let metadata = status.get_details_error_info().unwrap().metadata;
    assert_eq!((metadata["channel"].as_str(), metadata["field"].as_str()), ("c0500", "collection"));
    // Twice in one batch, with different content.
    let mut twice = thousand();
    twice[500] = v1::ChannelSpec { pchannel: String::from("other"), ..spec("c0007") };
    let request = v1::WatchChannelsRequest { write: None, channels: twice };
    let status = channels.watch_channels(request).await.unwrap_err();
    assert_eq!(status.get_details_error_info().unwrap().metadata["channel"], "c0007");
    // Not a name at all.
    for bad in [String::new(), "x".repeat(257), String::from("a\nb")] {
        let mut list = thousand();
        list[500].name = bad;
        let request = v1::WatchChannelsRequest { write: None, channels: list };
        let status = channels.watch_channels(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, "channels[500].name");
    }
    assert_eq!(revision(&wire).await, before);
    assert_eq!(group.channels().await.len(), 1, "all or nothing");
    // Equal content twice is one channel.
    let request = v1::WatchChannelsRequest { write: None, channels: vec![spec("e"), spec("e")] };
    channels.watch_channels(request).await.unwrap();
    assert_eq!(group.channels().await.len(), 2);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_drops_and_clean_ups_of_others_are_refused() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut channels = ChannelServiceClient::new(wire.clone());
    let mut owner = Raw::open(&wire).await;
    let me = owner.register("owner").await.unwrap();
    let you = Raw::open(&wire).await.register("other").await.unwrap();
    group.watch(&["c1"]).await;
    let term = owner.directive().await.term;
    let claim = |node: &v1::Registered, term| v1::OwnerClaim {
        node_id: node.node_id,
        node_epoch: node.node_epoch,
        term,
    };
    let mixed = v1::OwnerClaim { node_epoch: you.node_epoch, ..claim(&me, term) };
    let wrong = [claim(&you, term), claim(&me, term - 1), claim(&me, term + 1_000), mixed];
    let before = revision(&wire).await;
    for claim in wrong {
        let positions = Bytes::from_static(b"p");
        let name = String::from("c1");
        let commit = v1::CommitMetaRequest { write: None, name, claim: Some(claim), positions };
        let status = channels.commit_meta(commit).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition, "{claim:?}");
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, "NOT_OWNER");
        assert_eq!(info.metadata["term"], term.to_string());
        assert_eq!(info.metadata["owner_node"], me.node_id.to_string());
        let name = String::from("c1");
        let drop = v1::DropChannelRequest { write: None, name, claim: Some(claim) };
        let status = channels.drop_channel(drop).await.unwrap_err();
        assert_eq!(reason(&status), "NOT_OWNER");
        let done = |name: &str| v1::CompleteCleanupRequest {
            write: None,
            name: name.to_owned(),
            former_owner: Some(claim),
        };
        let status = channels.complete_cleanup(done("c1")).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(reason(&status), "NOT_FORMER_OWNER");
        let status = channels.complete_cleanup(done("never")).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "UNKNOWN_CHANNEL"));
    }
    let name = String::from("c1");
    let none = v1::CommitMetaRequest { write: None, name, claim: None, positions: Bytes::new() };
    let status = channels.commit_meta(none).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "a claim is needed: {status}");
    assert_eq!(revision(&wire).await, before);
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_chosen_among_those_there_are() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut admin = AdminServiceClient::new(wire.clone());
    let before = revision(&wire).await;
    let bad = [
        ("channel_assign_policy", "nearest"),
        ("channel_balance_policy", ""),
        ("channel_policy", "average"),
        ("watch_timeout_ms", "99"),
        ("watch_timeout_ms", "86400001"),
        ("balance_moves_max", "0"),
        ("auto_balance", "maybe"),
    ];
    for (name, value) in bad {
        // All or none: the good one beside it is not taken either.
        let values = [(name, value), ("ttl_ms", "20000")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let request = v1::SetSettingsRequest { write: None, values };
        let status = admin.set_settings(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{name} = {value}: {status}");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert!(violations[0].field.contains(name), "{violations:?}");
    }
    assert_eq!(revision(&wire).await, before);
    group.end().await;
}

/// A worker whose watch takes 3 s under a watch timeout of 1 s.
async fn slow_watch(progress: impl Fn(u64) -> u64) -> v1::ChannelPhase {
    let group = Group::start(1).await;
    let values = [("watch_timeout_ms", "1000"), ("leader_grace_ms", "0")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let set = v1::SetSettingsRequest { write: None, values };
    group.operator().set_settings(set).await.unwrap();
    let wire = connect(&group).await;
    let mut raw = Raw::open(&wire).await;
    let me = raw.register("slow").await.unwrap();
    group.watch(&["c1"]).await;
    let directive = raw.directive().await;
    let began = Instant::now();
    let mut pace = interval(Duration::from_millis(100));
    let mut step = 0;
    while began.elapsed() < Duration::from_secs(3) {
        pace.tick().await;
        step += 1;
        let progress = v1::Progress {
            channel: directive.channel.clone(),
            term: directive.term,
            op: directive.op,
            progress: progress(step),
        };
        let report = v1::Report {
            node_id: me.node_id,
            node_epoch: me.node_epoch,
            progress: vec![progress],
            ..Default::default()
        };
        raw.report(report).await.unwrap();
    }
    let acks = vec![ack(&directive)];
    let report =
        v1::Report { node_id: me.node_id, node_epoch: me.node_epoch, acks, ..Default::default() };
    raw.report(report).await.unwrap();
    let channel = group.channels().await.remove(0);
    if channel.phase() == v1::ChannelPhase::Watched {
        assert_eq!(channel.term, directive.term, "under the first term");
    }
    group.check().await;
    group.end().await;
    channel.phase()
}

/// FR-026, scaled to a timeout of 1 s: progress that rises keeps the watch, whatever it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fr026_progress_that_rises_keeps_a_long_watch() {
    assert_eq!(slow_watch(|step| step).await, v1::ChannelPhase::Watched);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fr026_progress_that_falls_or_stands_does_not() {
    let (falls, stands) = tokio::join!(slow_watch(|step| 1_000 - step), slow_watch(|_| 7));
    assert_ne!(falls, v1::ChannelPhase::Watched);
    assert_ne!(stands, v1::ChannelPhase::Watched);
}
