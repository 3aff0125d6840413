//! Calls of AdminService.
//! Calls about one member are asked through `Operator::pinned`; attempts are in call.rs.
//! Called by the command line, the drills and the tests.

use tonic::codec::Streaming;

use crate::call::{Repeat, reads, writes};
use crate::channel::DECODE_BYTES_MAX;
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;
use crate::proto::admin_service_client::AdminServiceClient;

reads! { AdminServiceClient:
    /// What a member knows of the group. Ask each through `pinned` to see all of them.
    get_status(GetStatusRequest) -> GetStatusResponse;
    /// The members of the group.
    list_members(ListMembersRequest) -> ListMembersResponse;
    /// The replicated settings.
    get_settings(GetSettingsRequest) -> GetSettingsResponse;
}

writes! { AdminServiceClient:
    /// Changes replicated settings, all or none.
    set_settings(SetSettingsRequest) -> SetSettingsResponse;
    /// Raises the behaviour level of the group.
    raise_level(RaiseLevelRequest) -> RaiseLevelResponse;
}

/// Calls without read or write options.
macro_rules! plain {
    ($($(#[$doc:meta])* $repeat:ident $method:ident($request:ident) -> $response:ident;)+) => {
        impl Operator {
            $($(#[$doc])*
            pub async fn $method(
                &self,
                request: proto::$request,
            ) -> Result<proto::$response, Error> {
                self.call(request, Repeat::$repeat, |channel, request| async move {
                    AdminServiceClient::new(channel)
                        .max_decoding_message_size(DECODE_BYTES_MAX)
                        .$method(request)
                        .await
                })
                .await
            })+
        }
    };
}

plain! {
    /// Turns members without data into one group. Not repeated when its outcome is unknown.
    Untouched bootstrap(BootstrapRequest) -> BootstrapResponse;
    /// Hands leadership over. Not repeated when its outcome is unknown.
    Untouched transfer_leader(TransferLeaderRequest) -> TransferLeaderResponse;
    /// Witness and digest of every member that answers.
    Always get_witness(GetWitnessRequest) -> GetWitnessResponse;
    /// Builds a snapshot now. Not repeated when its outcome is unknown.
    Untouched take_snapshot(TakeSnapshotRequest) -> TakeSnapshotResponse;
    /// Versions and formats of a member.
    Always get_version(GetVersionRequest) -> GetVersionResponse;
}

impl Operator {
    /// The newest snapshot file of the coordinator that answers, piece by piece.
    pub async fn save_snapshot(&self) -> Result<SnapshotStream, Error> {
        let request = proto::SaveSnapshotRequest {};
        let stream = self
            .call(request, Repeat::Always, |channel, mut request| async move {
                // The deadline is for the beginning: the file may take longer.
                request.metadata_mut().remove("grpc-timeout");
                AdminServiceClient::new(channel)
                    .max_decoding_message_size(DECODE_BYTES_MAX)
                    .save_snapshot(request)
                    .await
            })
            .await?;
        let address = self.preferred().unwrap_or_default();
        Ok(SnapshotStream { stream, address, piece_timeout: self.options.deadline })
    }
}

/// A snapshot file on its way.
#[derive(Debug)]
pub struct SnapshotStream {
    stream: Streaming<proto::SaveSnapshotResponse>,
    address: String,
    piece_timeout: std::time::Duration,
}

impl SnapshotStream {
    /// The next piece; none after the last.
    pub async fn next(&mut self) -> Result<Option<proto::SaveSnapshotResponse>, Error> {
        match tokio::time::timeout(self.piece_timeout, self.stream.message()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(status)) => Err(Error::from_status(&self.address, &status)),
            Err(_) => Err(Error::Deadline { after: self.piece_timeout, last: None }),
        }
    }
}
