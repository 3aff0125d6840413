//! Calls of ChannelService.
//! Attempts and retries are in call.rs; a worker's own commits go through its session handle.
//! Called by the command line, the tests and the agent.

use crate::call::{reads, writes};
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;
use crate::proto::channel_service_client::ChannelServiceClient;

reads! { ChannelServiceClient:
    /// One page of the channels, in name order.
    list_channels(ListChannelsRequest) -> ListChannelsResponse;
    /// Everything about one channel.
    describe_channel(DescribeChannelRequest) -> DescribeChannelResponse;
    /// Who owns a channel.
    find_owner(FindOwnerRequest) -> FindOwnerResponse;
    /// Whether a claim holds: the answer that a commit under it would get, without a write.
    check_owner(CheckOwnerRequest) -> CheckOwnerResponse;
    /// The cleaners, and what waits for them. Only the leader knows of their streams.
    list_cleaners(ListCleanersRequest) -> ListCleanersResponse;
    /// Why a channel is where it is, and what it waits for.
    explain_channel(ExplainChannelRequest) -> ExplainChannelResponse;
}

writes! { ChannelServiceClient:
    /// Announces channels, all or none.
    watch_channels(WatchChannelsRequest) -> WatchChannelsResponse;
    /// Takes a channel from its owner; it is placed again.
    release_channel(ReleaseChannelRequest) -> ReleaseChannelResponse;
    /// Drops a channel: released first, then removed.
    drop_channel(DropChannelRequest) -> DropChannelResponse;
    /// Removes a channel at once, in any phase.
    remove_channel(RemoveChannelRequest) -> RemoveChannelResponse;
    /// Records positions, if the claim names the present owner.
    commit_meta(CommitMetaRequest) -> CommitMetaResponse;
    /// Announces a cleaner; programs that clean use `cleaner::run`.
    register_cleaner(RegisterCleanerRequest) -> RegisterCleanerResponse;
    /// Takes a cleaner away; without any, all that waits counts as cleaned up.
    deregister_cleaner(DeregisterCleanerRequest) -> DeregisterCleanerResponse;
    /// Says that the traces of a former owner were cleaned up.
    complete_cleanup(CompleteCleanupRequest) -> CompleteCleanupResponse;
}

impl Operator {
    /// All channels that match, page by page; later pages are at least as new as the first.
    pub async fn all_channels(
        &self,
        mut request: proto::ListChannelsRequest,
    ) -> Result<Vec<proto::Channel>, Error> {
        self.complete_read(&mut request.read);
        let mut channels = Vec::new();
        loop {
            let page = self.list_channels(request.clone()).await?;
            channels.extend(page.channels);
            if page.next_page_token.is_empty() {
                return Ok(channels);
            }
            request.page_token = page.next_page_token;
            if let (Some(read), Some(header)) = (request.read.as_mut(), page.header) {
                read.min_revision = read.min_revision.max(header.revision);
            }
        }
    }
}
