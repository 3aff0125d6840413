//! A coordinator that does what a test tells it: who leads, what is refused, what a stream says.
//! It keeps no state of a group; what it was asked is written down.
//! Used by every test in this folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::proto::channel_service_server::{ChannelService, ChannelServiceServer};
use client::proto::event_service_server::{EventService, EventServiceServer};
use client::proto::node_service_server::{NodeService, NodeServiceServer};
use client::proto::session_request::Body as Up;
use client::proto::session_response::Body as Down;
use client::proto::*;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt};

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How a coordinator answers writes and sessions.
#[derive(Debug, Clone)]
pub(crate) enum Stance {
    Leads,
    /// Names this leader, or none.
    Follows(Option<String>),
    /// Takes the request and never answers.
    Hangs,
    /// Does it, then says that it does not know.
    Forgets,
    /// Refuses for good.
    Refuses(Code, &'static str),
}

/// Shared between a fake and its test.
#[derive(Debug)]
pub(crate) struct Script {
    stance: Mutex<Stance>,
    writes: Mutex<Vec<WriteOptions>>,
    reads: Mutex<Vec<ReadOptions>>,
    watches: Mutex<Vec<WatchRequest>>,
    completed: Mutex<Vec<CompleteCleanupRequest>>,
}

/// A running fake; it stops when dropped.
pub(crate) struct Fake {
    pub(crate) address: String,
    pub(crate) script: Arc<Script>,
    sessions: mpsc::Receiver<FakeSession>,
    streams: mpsc::Receiver<mpsc::Sender<Result<WatchResponse, Status>>>,
    cleanups: mpsc::Receiver<mpsc::Sender<Result<WatchCleanupsResponse, Status>>>,
    /// Of its own, so that its end breaks every connection, as that of a process does.
    runtime: Option<Runtime>,
}

/// One session stream, played by the test.
pub(crate) struct FakeSession {
    requests: Streaming<SessionRequest>,
    responses: mpsc::Sender<Result<SessionResponse, Status>>,
    pub(crate) leader_term: u64,
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn status(code: Code, reason: &str, metadata: &[(&str, &str)]) -> Status {
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let details = ErrorDetails::with_error_info(reason, "quorate", metadata);
    Status::with_error_details(code, format!("said {reason}"), details)
}

pub(crate) fn not_leader(leader: Option<&str>) -> Status {
    match leader {
        Some(address) => status(Code::Unavailable, "NOT_LEADER", &[("leader_address", address)]),
        None => status(Code::Unavailable, "NO_LEADER", &[]),
    }
}

impl Fake {
    pub(crate) async fn start(stance: Stance) -> Self {
        let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = threads.expect("a runtime");
        let listener = runtime.spawn(TcpListener::bind("127.0.0.1:0")).await;
        let listener = listener.expect("no panic").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let script = Arc::new(Script {
            stance: Mutex::new(stance),
            writes: Mutex::default(),
            reads: Mutex::default(),
            watches: Mutex::default(),
            completed: Mutex::default(),
        });
        let (session_sender, sessions) = mpsc::channel(16);
        let (stream_sender, streams) = mpsc::channel(16);
        let (cleanup_sender, cleanups) = mpsc::channel(16);
        let service = Service {
            script: Arc::clone(&script),
            sessions: session_sender,
            streams: stream_sender,
            cleanups: cleanup_sender,
        };
        let serve = tonic::transport::Server::builder()
            .add_service(NodeServiceServer::new(service.clone()))
            .add_service(ChannelServiceServer::new(service.clone()))
            .add_service(EventServiceServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(serve);
        Self { address, script, sessions, streams, cleanups, runtime: Some(runtime) }
    }

    pub(crate) fn set(&self, stance: Stance) {
        *self.script.stance.lock().expect("no panic") = stance;
    }

    pub(crate) fn writes(&self) -> Vec<WriteOptions> {
        self.script.writes.lock().expect("no panic").clone()
    }

    pub(crate) fn reads(&self) -> Vec<ReadOptions> {
        self.script.reads.lock().expect("no panic").clone()
    }

    pub(crate) fn watches(&self) -> Vec<WatchRequest> {
        self.script.watches.lock().expect("no panic").clone()
    }

    pub(crate) fn completed(&self) -> Vec<CompleteCleanupRequest> {
        self.script.completed.lock().expect("no panic").clone()
    }

    /// The next cleaner's stream that was opened here.
    pub(crate) async fn cleaner(&mut self) -> mpsc::Sender<Result<WatchCleanupsResponse, Status>> {
        timeout(PATIENCE, self.cleanups.recv()).await.expect("in time").expect("serving")
    }

    /// The next session stream that was opened here.
    pub(crate) async fn session(&mut self) -> FakeSession {
        timeout(PATIENCE, self.sessions.recv()).await.expect("in time").expect("serving")
    }

    /// The next watch stream that was opened here.
    pub(crate) async fn stream(&mut self) -> mpsc::Sender<Result<WatchResponse, Status>> {
        timeout(PATIENCE, self.streams.recv()).await.expect("in time").expect("serving")
    }
}

impl FakeSession {
    /// The next message; none once the worker closed the stream.
    pub(crate) async fn next(&mut self) -> Option<(u64, Up)> {
        let message = timeout(PATIENCE, self.requests.message()).await.expect("in time");
        let message = message.ok().flatten()?;
        Some((message.seq, message.body.expect("a body")))
    }

    pub(crate) async fn register(&mut self) -> (u64, Register) {
        match self.next().await {
            Some((seq, Up::Register(register))) => (seq, register),
            other => panic!("expected a registration, got {other:?}"),
        }
    }

    pub(crate) async fn report(&mut self) -> (u64, Report) {
        match self.next().await {
            Some((seq, Up::Report(report))) => (seq, report),
            other => panic!("expected a report, got {other:?}"),
        }
    }

    /// The next report that carries an acknowledgement; those before are confirmed.
    pub(crate) async fn report_with_ack(&mut self) -> (u64, Ack) {
        loop {
            let (seq, report) = self.report().await;
            match report.acks.first() {
                Some(ack) => return (seq, ack.clone()),
                None => self.renewed(seq, &[]).await,
            }
        }
    }

    pub(crate) async fn send(&self, seq: u64, body: Down) {
        let leader_term = self.leader_term;
        let message = SessionResponse { seq, leader_term, revision: 1, body: Some(body) };
        // The worker may have closed the stream already.
        let _ = self.responses.send(Ok(message)).await;
    }

    pub(crate) async fn fail(self, status: Status) {
        let _ = self.responses.send(Err(status)).await;
    }

    pub(crate) async fn registered(&self, seq: u64, node: (u64, u64), ttl_ms: u64) {
        let registered = Registered {
            node_id: node.0,
            node_epoch: node.1,
            ttl_ms,
            margin_ms: ttl_ms / 3,
            renew_every_ms: ttl_ms / 4,
        };
        self.send(seq, Down::Registered(registered)).await;
    }

    pub(crate) async fn renewed(&self, seq: u64, settled: &[&Ack]) {
        let verdict = |ack: &&Ack| AckVerdict {
            channel: ack.channel.clone(),
            term: ack.term,
            op: ack.op,
            verdict: Verdict::Recorded.into(),
        };
        let acks = settled.iter().map(verdict).collect();
        self.send(seq, Down::Renewed(Renewed { acks })).await;
    }

    pub(crate) async fn full(&self, set: Vec<Directive>) {
        let directives = Directives { full: true, last_chunk: true, set, ..Directives::default() };
        self.send(0, Down::Directives(directives)).await;
    }

    pub(crate) async fn delta(&self, set: Vec<Directive>, gone: &[&str]) {
        let gone = gone.iter().map(|name| (*name).to_owned()).collect();
        let directives = Directives { last_chunk: true, set, gone, ..Directives::default() };
        self.send(0, Down::Directives(directives)).await;
    }

    /// Registers the worker and takes its first report.
    pub(crate) async fn begin(&mut self, node: (u64, u64), ttl_ms: u64) -> Register {
        let (seq, register) = self.register().await;
        self.registered(seq, node, ttl_ms).await;
        let (seq, report) = self.report().await;
        assert_eq!((report.node_id, report.node_epoch), node);
        assert!(report.running_complete, "the first report says what runs");
        self.renewed(seq, &[]).await;
        register
    }
}

pub(crate) fn directive(channel: &str, term: u64, op: u64, kind: DirectiveKind) -> Directive {
    let (channel, kind) = (channel.to_owned(), kind.into());
    Directive { channel, term, op, kind, ..Directive::default() }
}

#[derive(Clone)]
struct Service {
    script: Arc<Script>,
    sessions: mpsc::Sender<FakeSession>,
    streams: mpsc::Sender<mpsc::Sender<Result<WatchResponse, Status>>>,
    cleanups: mpsc::Sender<mpsc::Sender<Result<WatchCleanupsResponse, Status>>>,
}

impl Service {
    async fn judge(&self) -> Result<(), Status> {
        let stance = self.script.stance.lock().expect("no panic").clone();
        match stance {
            Stance::Leads => Ok(()),
            Stance::Follows(leader) => Err(not_leader(leader.as_deref())),
            Stance::Hangs => std::future::pending().await,
            Stance::Forgets => Err(status(Code::Unavailable, "UNKNOWN_OUTCOME", &[])),
            Stance::Refuses(code, reason) => Err(status(code, reason, &[])),
        }
    }

    async fn write<T: Default>(&self, write: Option<WriteOptions>) -> Result<Response<T>, Status> {
        self.script.writes.lock().expect("no panic").push(write.expect("write options"));
        self.judge().await?;
        Ok(Response::new(T::default()))
    }

    async fn read<T: Default>(&self, read: Option<ReadOptions>) -> Result<Response<T>, Status> {
        self.script.reads.lock().expect("no panic").push(read.expect("read options"));
        self.judge().await?;
        Ok(Response::new(T::default()))
    }
}

macro_rules! answers {
    ($($how:ident $method:ident($request:ident) -> $response:ident from $field:ident;)+) => {
        $(fn $method<'a, 'b>(
            &'a self,
            request: Request<$request>,
        ) -> std::pin::Pin<Box<
            dyn Future<Output = Result<Response<$response>, Status>> + Send + 'b,
        >>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async move { self.$how(request.into_inner().$field).await })
        })+
    };
}

#[tonic::async_trait]
impl NodeService for Service {
    type SessionStream = ReceiverStream<Result<SessionResponse, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        self.judge().await?;
        let (responses, stream) = mpsc::channel(64);
        let session = FakeSession { requests: request.into_inner(), responses, leader_term: 1 };
        self.sessions.send(session).await.map_err(|_| Status::internal("test is over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    answers! {
        read list_nodes(ListNodesRequest) -> ListNodesResponse from read;
        read describe_node(DescribeNodeRequest) -> DescribeNodeResponse from read;
        read forecast_drain(ForecastDrainRequest) -> ForecastDrainResponse from read;
        write drain_node(DrainNodeRequest) -> DrainNodeResponse from write;
        write undrain_node(UndrainNodeRequest) -> UndrainNodeResponse from write;
        write freeze_node(FreezeNodeRequest) -> FreezeNodeResponse from write;
        write thaw_node(ThawNodeRequest) -> ThawNodeResponse from write;
        write revoke_node(RevokeNodeRequest) -> RevokeNodeResponse from write;
    }
}

#[tonic::async_trait]
impl ChannelService for Service {
    type WatchCleanupsStream = ReceiverStream<Result<WatchCleanupsResponse, Status>>;

    async fn watch_cleanups(
        &self,
        _request: Request<WatchCleanupsRequest>,
    ) -> Result<Response<Self::WatchCleanupsStream>, Status> {
        self.judge().await?;
        let (sender, stream) = mpsc::channel(64);
        self.cleanups.send(sender).await.map_err(|_| Status::internal("test is over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn complete_cleanup(
        &self,
        request: Request<CompleteCleanupRequest>,
    ) -> Result<Response<CompleteCleanupResponse>, Status> {
        let request = request.into_inner();
        self.script.completed.lock().expect("no panic").push(request.clone());
        self.write(request.write).await
    }

    answers! {
        write watch_channels(WatchChannelsRequest) -> WatchChannelsResponse from write;
        read list_channels(ListChannelsRequest) -> ListChannelsResponse from read;
        read describe_channel(DescribeChannelRequest) -> DescribeChannelResponse from read;
        write release_channel(ReleaseChannelRequest) -> ReleaseChannelResponse from write;
        write drop_channel(DropChannelRequest) -> DropChannelResponse from write;
        write remove_channel(RemoveChannelRequest) -> RemoveChannelResponse from write;
        write commit_meta(CommitMetaRequest) -> CommitMetaResponse from write;
        read find_owner(FindOwnerRequest) -> FindOwnerResponse from read;
        read explain_channel(ExplainChannelRequest) -> ExplainChannelResponse from read;
        read check_owner(CheckOwnerRequest) -> CheckOwnerResponse from read;
        write register_cleaner(RegisterCleanerRequest) -> RegisterCleanerResponse from write;
        write deregister_cleaner(DeregisterCleanerRequest) -> DeregisterCleanerResponse from write;
        read list_cleaners(ListCleanersRequest) -> ListCleanersResponse from read;
    }
}

#[tonic::async_trait]
impl EventService for Service {
    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.script.watches.lock().expect("no panic").push(request.into_inner());
        self.judge().await?;
        let (sender, stream) = mpsc::channel(64);
        self.streams.send(sender).await.map_err(|_| Status::internal("test is over"))?;
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    answers! {
        read list_events(ListEventsRequest) -> ListEventsResponse from read;
    }
}
