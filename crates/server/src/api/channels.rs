//! ChannelService: what operators and owners ask of data channels.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::v1;
use proto::v1::channel_service_server::ChannelService;
use state::State;
use state::channel::Channel;
use state::command::Command;
use state::epoch::ChannelTerm;
use state::ids::{ChannelName, CollectionId, NodeId};
use state::limits::WATCH_CHANNELS_MAX;
use state::outcome::Rejection;
use tonic::{Request, Response, Status};

use super::read::page_rows;
use super::{Surface, cleaners, convert, explain, status};
use crate::view::View;

/// Serves ChannelService.
#[derive(Debug)]
pub struct Channels(pub Arc<Surface>);

/// The channel, or the status that tells "dropped" from "never known".
pub fn find<'a>(state: &'a State, name: &ChannelName) -> Result<&'a Arc<Channel>, Status> {
    state.channel(name).ok_or_else(|| {
        let channel = name.clone();
        status::rejection(&match state.dropped(name) {
            Some(dropped) => Rejection::Dropped { channel, last_term: dropped.last_term },
            None => Rejection::UnknownChannel { channel },
        })
    })
}

/// The channels that a list asks for, after a name.
fn listed<'a>(
    state: &'a State,
    request: &v1::ListChannelsRequest,
    after: Option<&'a ChannelName>,
) -> Box<dyn Iterator<Item = &'a Arc<Channel>> + 'a> {
    let phase = request.phase();
    let collection = request.collection;
    let wanted = move |channel: &&'a Arc<Channel>| {
        (phase == v1::ChannelPhase::Unspecified || convert::phase(channel.phase.kind()) == phase)
            && (collection == 0 || channel.spec.collection == CollectionId(collection))
    };
    if request.node_id == 0 {
        return Box::new(state.channels_after(after).filter(wanted));
    }
    let after = after.cloned();
    Box::new(
        state
            .channels_of(NodeId(request.node_id))
            .filter(move |name| after.as_ref().is_none_or(|after| *name > after))
            .filter_map(|name| state.channel(name))
            .filter(wanted),
    )
}

#[tonic::async_trait]
impl ChannelService for Channels {
    async fn watch_channels(
        &self,
        request: Request<v1::WatchChannelsRequest>,
    ) -> Result<Response<v1::WatchChannelsResponse>, Status> {
        let request = request.into_inner();
        let given = request.channels.len();
        if given == 0 || given > WATCH_CHANNELS_MAX {
            let allowed = format!("1 to {WATCH_CHANNELS_MAX} channels are allowed");
            return Err(status::bad_field("channels", format!("{given} channels"), &allowed));
        }
        let specs = request
            .channels
            .iter()
            .enumerate()
            .map(|(at, spec)| convert::channel_spec(at, spec))
            .collect::<Result<Vec<_>, _>>()?;
        let receipt = self.0.writes.write(request.write, Command::WatchChannels(specs)).await?;
        Ok(Response::new(v1::WatchChannelsResponse { receipt: Some(receipt) }))
    }

    async fn list_channels(
        &self,
        request: Request<v1::ListChannelsRequest>,
    ) -> Result<Response<v1::ListChannelsResponse>, Status> {
        let request = request.into_inner();
        let rows = page_rows(request.page_size)?;
        v1::ChannelPhase::try_from(request.phase).map_err(|_| {
            status::bad_field("phase", request.phase, "a phase of ChannelPhase is allowed")
        })?;
        let after = match request.page_token.as_str() {
            "" => None,
            token => Some(convert::channel_name("page_token", token)?),
        };
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let mut channels: Vec<v1::Channel> = listed(&view.state, &request, after.as_ref())
            .take(rows + 1)
            .map(|channel| convert::channel(&view.state, channel))
            .collect();
        let more = channels.len() > rows;
        channels.truncate(rows);
        let last = channels.last().and_then(|last| last.spec.as_ref());
        let next_page_token = match last {
            Some(last) if more => last.name.clone(),
            _ => String::new(),
        };
        let header = Some(self.0.reads.header(&view));
        Ok(Response::new(v1::ListChannelsResponse { header, channels, next_page_token }))
    }

    async fn describe_channel(
        &self,
        request: Request<v1::DescribeChannelRequest>,
    ) -> Result<Response<v1::DescribeChannelResponse>, Status> {
        let request = request.into_inner();
        let name = convert::channel_name("name", &request.name)?;
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let channel = find(&view.state, &name)?;
        Ok(Response::new(v1::DescribeChannelResponse {
            header: Some(self.0.reads.header(&view)),
            channel: Some(convert::channel(&view.state, channel)),
        }))
    }

    async fn release_channel(
        &self,
        request: Request<v1::ReleaseChannelRequest>,
    ) -> Result<Response<v1::ReleaseChannelResponse>, Status> {
        let request = request.into_inner();
        let channel = convert::channel_name("name", &request.name)?;
        self.0.writes.reign().await?;
        let term = match request.term {
            0 => find(&self.0.views.now().state, &channel)?.term,
            term => ChannelTerm(term),
        };
        let receipt =
            self.0.writes.write(request.write, Command::Release { channel, term }).await?;
        Ok(Response::new(v1::ReleaseChannelResponse { receipt: Some(receipt) }))
    }

    async fn drop_channel(
        &self,
        request: Request<v1::DropChannelRequest>,
    ) -> Result<Response<v1::DropChannelResponse>, Status> {
        let request = request.into_inner();
        let channel = convert::channel_name("name", &request.name)?;
        let claim = match request.claim {
            Some(claim) => Some(convert::claim("claim", Some(claim))?),
            None => None,
        };
        let command = Command::MarkDropped { channel, claim };
        let receipt = self.0.writes.write(request.write, command).await?;
        Ok(Response::new(v1::DropChannelResponse { receipt: Some(receipt) }))
    }

    async fn remove_channel(
        &self,
        request: Request<v1::RemoveChannelRequest>,
    ) -> Result<Response<v1::RemoveChannelResponse>, Status> {
        let request = request.into_inner();
        let channel = convert::channel_name("name", &request.name)?;
        let receipt =
            self.0.writes.write(request.write, Command::RemoveChannel { channel }).await?;
        Ok(Response::new(v1::RemoveChannelResponse { receipt: Some(receipt) }))
    }

    async fn commit_meta(
        &self,
        request: Request<v1::CommitMetaRequest>,
    ) -> Result<Response<v1::CommitMetaResponse>, Status> {
        let request = request.into_inner();
        let channel = convert::channel_name("name", &request.name)?;
        let claim = convert::claim("claim", request.claim)?;
        let positions = convert::positions("positions", &request.positions)?;
        let command = Command::CommitMeta { channel, claim, positions };
        let receipt = self.0.writes.write(request.write, command).await?;
        Ok(Response::new(v1::CommitMetaResponse { receipt: Some(receipt) }))
    }

    async fn find_owner(
        &self,
        request: Request<v1::FindOwnerRequest>,
    ) -> Result<Response<v1::FindOwnerResponse>, Status> {
        let request = request.into_inner();
        let name = convert::channel_name("name", &request.name)?;
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let mut response = v1::FindOwnerResponse {
            header: Some(self.0.reads.header(&view)),
            ..Default::default()
        };
        match (view.state.channel(&name), view.state.dropped(&name)) {
            (Some(channel), _) => {
                response.set_phase(convert::phase(channel.phase.kind()));
                response.owner =
                    channel.phase.owner().map(|owner| convert::owner(&view.state, owner));
                response.term = channel.term.0;
            }
            (None, Some(dropped)) => {
                response.dropped = true;
                response.term = dropped.last_term.0;
            }
            (None, None) => {
                return Err(status::rejection(&Rejection::UnknownChannel { channel: name }));
            }
        }
        Ok(Response::new(response))
    }

    async fn explain_channel(
        &self,
        request: Request<v1::ExplainChannelRequest>,
    ) -> Result<Response<v1::ExplainChannelResponse>, Status> {
        let request = request.into_inner();
        let name = convert::channel_name("name", &request.name)?;
        let view: View = self.0.reads.view(request.read.as_ref()).await?;
        let channel = find(&view.state, &name)?;
        let mut answer = explain::channel(&self.0, &view, channel).await?;
        answer.header = Some(self.0.reads.header(&view));
        Ok(Response::new(answer))
    }

    async fn check_owner(
        &self,
        request: Request<v1::CheckOwnerRequest>,
    ) -> Result<Response<v1::CheckOwnerResponse>, Status> {
        let request = request.into_inner();
        let name = convert::channel_name("name", &request.name)?;
        let claim = convert::claim("claim", request.claim)?;
        let mut view = self.0.reads.view(request.read.as_ref()).await?;
        // A term is a revision: what this member has not applied it cannot judge by itself.
        if claim.term.revision() > view.state.revision() {
            view = self.0.reads.view(None).await?;
        }
        let channel = view
            .state
            .check_owner(&name, claim)
            .map_err(|rejection| status::rejection_in(&view.state, &rejection))?;
        Ok(Response::new(v1::CheckOwnerResponse {
            header: Some(self.0.reads.header(&view)),
            phase: convert::phase(channel.phase.kind()).into(),
            owner: channel.phase.owner().map(|owner| convert::owner(&view.state, owner)),
            term: channel.term.0,
        }))
    }

    async fn register_cleaner(
        &self,
        request: Request<v1::RegisterCleanerRequest>,
    ) -> Result<Response<v1::RegisterCleanerResponse>, Status> {
        let request = request.into_inner();
        let name = convert::node_name("name", &request.name)?;
        let command = Command::RegisterCleaner { name };
        // Seen: the stream that follows must find it.
        let receipt = self.0.writes.write_seen(request.write, command).await?;
        Ok(Response::new(v1::RegisterCleanerResponse { receipt: Some(receipt) }))
    }

    async fn deregister_cleaner(
        &self,
        request: Request<v1::DeregisterCleanerRequest>,
    ) -> Result<Response<v1::DeregisterCleanerResponse>, Status> {
        let request = request.into_inner();
        let name = convert::node_name("name", &request.name)?;
        let command = Command::DeregisterCleaner { name };
        let receipt = self.0.writes.write_seen(request.write, command).await?;
        Ok(Response::new(v1::DeregisterCleanerResponse { receipt: Some(receipt) }))
    }

    async fn list_cleaners(
        &self,
        request: Request<v1::ListCleanersRequest>,
    ) -> Result<Response<v1::ListCleanersResponse>, Status> {
        let view = self.0.reads.view(request.into_inner().read.as_ref()).await?;
        Ok(Response::new(cleaners::list(&self.0, &view)))
    }

    type WatchCleanupsStream = cleaners::CleanupStream;

    async fn watch_cleanups(
        &self,
        request: Request<v1::WatchCleanupsRequest>,
    ) -> Result<Response<Self::WatchCleanupsStream>, Status> {
        let stream = cleaners::watch(&self.0, &request.into_inner().name).await?;
        Ok(Response::new(stream))
    }

    async fn complete_cleanup(
        &self,
        request: Request<v1::CompleteCleanupRequest>,
    ) -> Result<Response<v1::CompleteCleanupResponse>, Status> {
        let request = request.into_inner();
        let channel = convert::channel_name("name", &request.name)?;
        let former = convert::claim("former_owner", request.former_owner)?;
        let command = Command::EffectDone { channel, former };
        let receipt = self.0.writes.write(request.write, command).await?;
        if receipt.outcome() == v1::WriteOutcome::Accepted && receipt.index > 0 {
            self.0.cleanups.told.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Response::new(v1::CompleteCleanupResponse { receipt: Some(receipt) }))
    }
}
