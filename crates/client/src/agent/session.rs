//! One bidirectional stream to one coordinator: opening it, sending on it, reading from it.
//! What is sent and what follows from what is read is decided in engine.rs.
//! Called by engine.rs.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::Streaming;
use tonic::transport::Channel;

use crate::channel::DECODE_BYTES_MAX;
use crate::error::Error;
use crate::proto::node_service_client::NodeServiceClient;
use crate::proto::session_request::Body;
use crate::proto::{Register, SessionRequest, SessionResponse};

/// Messages on their way to the network; a coordinator that does not read fills this and loses us.
const QUEUE: usize = 16;

/// An open stream whose first message was a registration.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: String,
    /// When the registration was sent.
    pub(crate) registered_at: Instant,
    sender: mpsc::Sender<SessionRequest>,
    responses: Streaming<SessionResponse>,
}

impl Link {
    /// Opens a stream and registers; the answer comes as a message.
    pub(crate) async fn open(
        address: String,
        channel: Channel,
        seq: u64,
        register: Register,
        limit: Duration,
    ) -> Result<Self, (String, Error)> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let registered_at = Instant::now();
        let first = SessionRequest { seq, body: Some(Body::Register(register)) };
        let opening = async {
            let mut client =
                NodeServiceClient::new(channel).max_decoding_message_size(DECODE_BYTES_MAX);
            // Cannot fail: the queue is new, and its receiver lives in this function.
            let _ = sender.send(first).await;
            client.session(ReceiverStream::new(receiver)).await
        };
        match timeout(limit, opening).await {
            Ok(Ok(answer)) => {
                Ok(Self { address, registered_at, sender, responses: answer.into_inner() })
            }
            Ok(Err(status)) => {
                let error = Error::from_status(&address, &status);
                Err((address, error))
            }
            Err(_) => {
                let error = Error::unreachable(&address, "no answer to a new session");
                Err((address, error))
            }
        }
    }

    /// Queues a message; false: the coordinator does not read, or the stream is gone.
    pub(crate) fn send(&self, seq: u64, body: Body) -> bool {
        self.sender.try_send(SessionRequest { seq, body: Some(body) }).is_ok()
    }

    /// The next message. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<SessionResponse, Error> {
        match self.responses.message().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Error::unreachable(&self.address, "the stream ended")),
            Err(status) => Err(Error::from_status(&self.address, &status)),
        }
    }
}
