//! Goal: a new group begins at the newest level, and no other way than RaiseLevel leads up.
//! Method: fresh groups, restarts, and every level that is refused; the witness stays.

use client::proto as v1;
use tests::harness::Group;
use tonic::Code;

/// After a write: the leader is then open for them, and its start is complete.
async fn level(group: &Group) -> u32 {
    group.watch(&["c"]).await;
    group.operator().get_status(v1::GetStatusRequest::default()).await.unwrap().level
}

/// What changes with every accepted command, and with nothing else.
async fn witness(group: &Group) -> bytes::Bytes {
    let asked = group.operator().get_witness(v1::GetWitnessRequest { index: 0 }).await.unwrap();
    asked.witnesses[0].witness.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_group_begins_at_the_newest_level_and_stays_there() {
    let mut group = Group::start(3).await;
    assert_eq!(level(&group).await, state::level::KNOWN);
    let operator = group.operator().clone();
    let versions = operator.get_version(v1::GetVersionRequest {}).await.unwrap();
    assert_eq!((versions.level, versions.known_level), (level(&group).await, state::level::KNOWN));
    let leader = group.leader().await;
    group.stop(leader).await;
    group.leader().await;
    let events = v1::ListEventsRequest::default();
    let listed = operator.list_events(events).await.unwrap();
    let raised =
        |record: &&v1::EventRecord| record.events.iter().any(|event| event.kind == "LevelRaised");
    assert_eq!(listed.records.iter().filter(raised).count(), 1, "by the first leader only");
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_that_does_not_rise_or_is_unknown_is_refused() {
    let group = Group::start(1).await;
    let (present, before) = (level(&group).await, witness(&group).await);
    for level in [0, present, present - 1, state::level::KNOWN + 1, u32::MAX] {
        let request = v1::RaiseLevelRequest { write: None, level };
        let error = group.operator().raise_level(request).await.unwrap_err();
        assert_eq!(error.reason(), Some("LEVEL"), "{level}: {error}");
        let client::Error::Refused(refused) = &error else { panic!("{error}") };
        assert_eq!(refused.code, Code::FailedPrecondition);
        assert!(error.to_string().contains(&format!("the group is at {present}")), "{error}");
    }
    assert_eq!(witness(&group).await, before);
    group.check().await;
    group.end().await;
}
