//! Goal: bad input gets the right code with details and changes nothing. Method: raw gRPC calls
//! against one real coordinator; its digest before and after each refusal must be the same.

use bytes::Bytes;
use client::proto as v1;
use client::proto::admin_service_client::AdminServiceClient;
use client::proto::channel_service_client::ChannelServiceClient;
use client::proto::node_service_client::NodeServiceClient;
use client::proto::session_request::Body as Up;
use client::proto::session_response::Body as Down;
use tests::harness::Group;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

pub(crate) async fn connect(group: &Group) -> Channel {
    let uri = format!("http://{}", group.client_address(0));
    Channel::from_shared(uri).unwrap().connect().await.unwrap()
}

pub(crate) fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

pub(crate) fn spec(name: &str) -> v1::ChannelSpec {
    v1::ChannelSpec { name: name.to_owned(), collection: 7, ..Default::default() }
}

pub(crate) async fn revision(channel: &Channel) -> u64 {
    let status = AdminServiceClient::new(channel.clone())
        .get_status(v1::GetStatusRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert!(status.violations.is_empty());
    status.header.unwrap().revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_channels_name_the_field_and_change_nothing() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut channels = ChannelServiceClient::new(wire.clone());
    let before = revision(&wire).await;
    let watch = |channels| v1::WatchChannelsRequest { write: None, channels };
    let mut positions = spec("ok");
    positions.positions = Bytes::from(vec![0; 65_537]);
    let cases = [
        (watch(vec![]), Code::InvalidArgument, "channels"),
        (watch(vec![spec("")]), Code::InvalidArgument, "channels[0].name"),
        (watch(vec![spec("a"), spec(&"x".repeat(257))]), Code::InvalidArgument, "channels[1].name"),
        (watch(vec![spec("tab\t")]), Code::InvalidArgument, "channels[0].name"),
        (watch(vec![positions]), Code::InvalidArgument, "channels[0].positions"),
        (watch(vec![spec("a"); 10_001]), Code::InvalidArgument, "channels"),
    ];
    for (request, code, field) in cases {
        let status = channels.watch_channels(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{field}: {status}");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, field);
    }
    let many = watch((0..20_000).map(|at| spec(&format!("{at}{}", "y".repeat(230)))).collect());
    let status = channels.watch_channels(many).await.unwrap_err();
    assert!(status.message().contains("4194304"), "an oversized message names the limit: {status}");
    assert_eq!(revision(&wire).await, before, "nothing changed");

    let twice = watch(vec![spec("d"), spec("d")]);
    let outcome = channels.watch_channels(twice).await;
    if let Err(status) = outcome {
        assert_eq!(reason(&status), "CONFLICT");
    }
    let request = v1::DescribeChannelRequest { read: None, name: String::from("nobody") };
    let status = channels.describe_channel(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "UNKNOWN_CHANNEL"));
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announcing_again_is_no_change_and_other_content_is_a_conflict() {
    let group = Group::start(1).await;
    let mut channels = ChannelServiceClient::new(connect(&group).await);
    let watch = |spec| v1::WatchChannelsRequest { write: None, channels: vec![spec] };
    let first = channels.watch_channels(watch(spec("c"))).await.unwrap().into_inner();
    let again = channels.watch_channels(watch(spec("c"))).await.unwrap().into_inner();
    let (first, again) = (first.receipt.unwrap(), again.receipt.unwrap());
    assert_eq!(first.outcome(), v1::WriteOutcome::Accepted);
    assert_eq!(again.outcome(), v1::WriteOutcome::NoChange);
    let mut other = spec("c");
    other.collection = 8;
    let status = channels.watch_channels(watch(other)).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::AlreadyExists, "CONFLICT"));
    let judged = v1::WatchChannelsRequest {
        write: Some(v1::WriteOptions { validate_only: true, ..Default::default() }),
        channels: vec![spec("dry")],
    };
    channels.watch_channels(judged).await.unwrap();
    assert_eq!(group.channels().await.len(), 1, "a dry run changes nothing");
    group.end().await;
}

/// What a data worker of this name says of itself.
pub(crate) fn registration(name: &str) -> v1::Register {
    v1::Register {
        name: name.to_owned(),
        address: format!("{name}:1"),
        role: v1::Role::Data.into(),
        incarnation: String::from("i1"),
        ..Default::default()
    }
}

/// A hand-driven worker stream.
pub(crate) struct Raw {
    up: mpsc::Sender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
    seq: u64,
}

impl Raw {
    pub(crate) async fn open(wire: &Channel) -> Self {
        let (up, requests) = mpsc::channel(8);
        let mut nodes = NodeServiceClient::new(wire.clone());
        let down = nodes.session(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Self { up, down, seq: 0 }
    }

    pub(crate) async fn send(&mut self, body: Up) {
        self.seq += 1;
        self.up.send(v1::SessionRequest { seq: self.seq, body: Some(body) }).await.unwrap();
    }

    /// Waits for a body that `wanted` accepts, passing over the others.
    pub(crate) async fn expect<T>(
        &mut self,
        wanted: impl Fn(Down) -> Option<T>,
    ) -> Result<T, Status> {
        loop {
            let message = self.down.message().await?;
            let Some(body) = message.expect("the stream goes on").body else { continue };
            if let Some(found) = wanted(body) {
                return Ok(found);
            }
        }
    }

    pub(crate) async fn register(&mut self, name: &str) -> Result<v1::Registered, Status> {
        self.register_as(registration(name)).await
    }

    pub(crate) async fn register_as(
        &mut self,
        register: v1::Register,
    ) -> Result<v1::Registered, Status> {
        self.send(Up::Register(register)).await;
        self.expect(|body| match body {
            Down::Registered(registered) => Some(registered),
            _ => None,
        })
        .await
    }

    pub(crate) async fn report(&mut self, report: v1::Report) -> Result<v1::Renewed, Status> {
        self.send(Up::Report(report)).await;
        self.expect(|body| match body {
            Down::Renewed(renewed) => Some(renewed),
            _ => None,
        })
        .await
    }

    pub(crate) async fn directive(&mut self) -> v1::Directive {
        self.expect(|body| match body {
            Down::Directives(piece) => piece.set.into_iter().next(),
            _ => None,
        })
        .await
        .unwrap()
    }
}

pub(crate) fn ack(directive: &v1::Directive) -> v1::Ack {
    v1::Ack {
        channel: directive.channel.clone(),
        term: directive.term,
        op: directive.op,
        result: v1::AckResult::Ok.into(),
        reason: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_lies_changes_nothing() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut honest = Raw::open(&wire).await;
    let me = honest.register("honest").await.unwrap();
    let mut liar = Raw::open(&wire).await;
    let you = liar.register("liar").await.unwrap();
    group.operator().drain_node(drain("liar")).await.unwrap();
    group.watch(&["c1"]).await;
    let directive = honest.directive().await;

    let lies = [
        ack(&directive),
        v1::Ack { term: directive.term + 1, ..ack(&directive) },
        v1::Ack { term: 1, op: 1, ..ack(&directive) },
        v1::Ack { channel: String::from("nobody"), ..ack(&directive) },
    ];
    let before = revision(&wire).await;
    let report = v1::Report {
        node_id: you.node_id,
        node_epoch: you.node_epoch,
        acks: lies.to_vec(),
        ..Default::default()
    };
    let answer = liar.report(report).await.unwrap();
    assert!(answer.acks.iter().all(|each| each.verdict() == v1::Verdict::Stale), "{answer:?}");
    assert_eq!(revision(&wire).await, before);

    let theft = v1::Report { node_id: me.node_id, node_epoch: me.node_epoch, ..Default::default() };
    let status = liar.report(theft).await.unwrap_err();
    assert_eq!(reason(&status), "STALE_NODE");

    let report = v1::Report {
        node_id: me.node_id,
        node_epoch: me.node_epoch,
        acks: vec![ack(&directive), v1::Ack { op: directive.op + 7, ..ack(&directive) }],
        ..Default::default()
    };
    for _ in 0..2 {
        let answer = honest.report(report.clone()).await.unwrap();
        let verdicts: Vec<_> = answer.acks.iter().map(v1::AckVerdict::verdict).collect();
        assert_eq!(verdicts, [v1::Verdict::Recorded, v1::Verdict::Stale]);
    }
    group.check().await;
    group.end().await;
}

fn drain(name: &str) -> v1::DrainNodeRequest {
    v1::DrainNodeRequest { write: None, node: Some(client::node_named(name)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_registrations_and_wrong_order_are_refused() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut early = Raw::open(&wire).await;
    let status = early.report(v1::Report::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    for name in ["", &"x".repeat(129), "new\nline"] {
        let status = Raw::open(&wire).await.register(name).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    let mut twice = Raw::open(&wire).await;
    let first = twice.register("same").await.unwrap();
    let mut again = Raw::open(&wire).await;
    let second = again.register("same").await.unwrap();
    assert_eq!((first.node_id, first.node_epoch), (second.node_id, second.node_epoch));
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_ids_and_settings_are_checked() {
    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let mut admin = AdminServiceClient::new(wire.clone());
    let set = |name: &str, value: &str, write| v1::SetSettingsRequest {
        write,
        values: [(name.to_owned(), value.to_owned())].into(),
    };
    for (name, value) in
        [("ttl_ms", "0"), ("ttl_ms", "soon"), ("ttl", "5000"), ("margin_ms", "9000")]
    {
        let status = admin.set_settings(set(name, value, None)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{name} = {value}: {status}");
        assert!(status.message().contains(value) || status.message().contains(name), "{status}");
    }
    let short = v1::WriteOptions { request_id: Bytes::from_static(b"abc"), ..Default::default() };
    let status = admin.set_settings(set("ttl_ms", "20000", Some(short))).await.unwrap_err();
    assert_eq!(
        status.get_details_bad_request().unwrap().field_violations[0].field,
        "write.request_id"
    );
    let old = v1::WriteOptions {
        request_id: Bytes::from_static(&[7; 16]),
        issued_ms: 1,
        ..Default::default()
    };
    let status = admin.set_settings(set("ttl_ms", "20000", Some(old))).await.unwrap_err();
    assert_eq!(reason(&status), "REQUEST_TOO_OLD");
    let good = v1::WriteOptions { request_id: Bytes::from_static(&[8; 16]), ..Default::default() };
    let one = admin.set_settings(set("ttl_ms", "20000", Some(good.clone()))).await.unwrap();
    admin.set_settings(set("ttl_ms", "30000", None)).await.unwrap();
    let retried = admin.set_settings(set("ttl_ms", "20000", Some(good))).await.unwrap();
    let (one, retried) = (one.into_inner().receipt.unwrap(), retried.into_inner().receipt.unwrap());
    assert_eq!(one.revision, retried.revision, "a retry gets the first outcome");
    let settings = admin.get_settings(v1::GetSettingsRequest::default()).await.unwrap();
    let ttl = settings.into_inner().settings.into_iter().find(|s| s.name == "ttl_ms").unwrap();
    assert_eq!(ttl.value, "30000", "and is not applied again");
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_answer_writes_with_the_address_of_the_leader() {
    let group = Group::start(3).await;
    let leader = group.leader().await;
    for follower in (0..3).filter(|at| *at != leader) {
        let uri = format!("http://{}", group.client_address(follower));
        let wire = Channel::from_shared(uri).unwrap().connect().await.unwrap();
        let request = v1::WatchChannelsRequest { write: None, channels: vec![spec("c")] };
        let status =
            ChannelServiceClient::new(wire.clone()).watch_channels(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, "NOT_LEADER");
        assert_eq!(info.metadata["leader_address"], group.client_address(leader));
        let mut raw = Raw::open(&wire).await;
        let status = raw.register("w").await.unwrap_err();
        assert_eq!(reason(&status), "NOT_LEADER", "streams too");
    }
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_made_once() {
    let group = Group::waiting(3, |_| {}).await;
    let wire = connect(&group).await;
    let request = v1::WatchChannelsRequest { write: None, channels: vec![spec("c")] };
    let status = ChannelServiceClient::new(wire.clone()).watch_channels(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "NOT_BOOTSTRAPPED"));
    for consistency in [v1::Consistency::Linearizable, v1::Consistency::Leader] {
        let read = Some(v1::ReadOptions { consistency: consistency.into(), min_revision: 0 });
        let request = v1::ListChannelsRequest { read, ..Default::default() };
        let mut channels = ChannelServiceClient::new(wire.clone());
        let status = channels.list_channels(request).await.unwrap_err();
        assert_eq!(reason(&status), "NOT_BOOTSTRAPPED", "{status}");
    }
    let members: Vec<v1::MemberAddress> = (0..3)
        .map(|at| v1::MemberAddress {
            member: u64::try_from(at + 1).unwrap(),
            peer_address: group.raft(at).peer_address().to_string(),
            client_address: group.client_address(at),
        })
        .collect();
    let mut admin = AdminServiceClient::new(wire);
    let empty = admin.bootstrap(v1::BootstrapRequest { members: Vec::new() }).await.unwrap_err();
    assert_eq!(empty.code(), Code::InvalidArgument, "{empty}");
    // A wrong address of the asked member, and a wrong client address of another one.
    let mut wrong = members.clone();
    wrong[0].peer_address = String::from("127.0.0.1:1");
    let mut lost = members.clone();
    lost[1].client_address = String::from("127.0.0.1:1");
    for members in [wrong, lost] {
        let refused = admin.bootstrap(v1::BootstrapRequest { members }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("127.0.0.1:1:"), "{refused}");
    }
    let listed = v1::BootstrapRequest { members };
    admin.bootstrap(listed.clone()).await.unwrap();
    group.leader().await;
    let again = admin.bootstrap(listed).await.unwrap_err();
    assert_eq!(reason(&again), "ALREADY_BOOTSTRAPPED");
    group.check().await;
    group.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_lists_every_service_and_health_answers_for_reads_and_writes() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, ServiceResponse};

    let group = Group::start(1).await;
    let wire = connect(&group).await;
    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(wire.clone())
        .server_reflection_info(tokio_stream::once(list))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(listed)) = answer else { panic!("{answer:?}") };
    let mut names: Vec<String> =
        listed.service.into_iter().map(|service: ServiceResponse| service.name).collect();
    names.sort();
    for name in ["AdminService", "ChannelService", "EventService", "NodeService"] {
        assert!(names.contains(&format!("quorate.v1.{name}")), "{name} is not in {names:?}");
    }
    assert!(names.contains(&String::from("grpc.health.v1.Health")), "{names:?}");

    for service in ["", server::READ_SERVICE, server::WRITE_SERVICE] {
        let serving = tonic_health::ServingStatus::Serving;
        tests::harness::wait_for(&format!("{service:?} serves"), || async {
            let request = HealthCheckRequest { service: service.to_owned() };
            let answer = HealthClient::new(wire.clone()).check(request).await.ok()?;
            (answer.into_inner().status() == serving.into()).then_some(())
        })
        .await;
    }
    group.end().await;
}
