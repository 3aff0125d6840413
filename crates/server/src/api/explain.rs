//! Why a channel is where it is: the decision, its cause, the way it came, what it waits for.
//! Facts come from the state, the history and the planner; only the wording is made here.

use std::sync::Arc;

use proto::v1;
use state::channel::{Channel, Phase};
use state::epoch::Term;
use tonic::Status;

use super::{Surface, convert, events, status};
use crate::history::Recorded;
use crate::view::View;

/// Steps of the way that are shown.
const STEPS_MAX: usize = 20;

fn steps(records: &[Recorded], channel: &Channel) -> Vec<v1::ExplainStep> {
    let name = &channel.spec.name;
    records
        .iter()
        .flat_map(|recorded| {
            let about = |event: &&state::event::Event| event.channel() == Some(name);
            recorded.record.events.iter().filter(about).map(|event| v1::ExplainStep {
                revision: recorded.record.revision.0,
                at_ms: recorded.record.at.0,
                event: event.to_string(),
                caused_by: recorded.record.caused_by.to_string(),
                actor: recorded.record.actor.to_string(),
            })
        })
        .collect()
}

/// The decision that placed the channel: from the state, with words from the history where it is
/// still kept.
fn decision(channel: &Channel, history: &[v1::ExplainStep]) -> Option<v1::ExplainStep> {
    let placed = channel.placed_by.as_ref()?;
    let known = history.iter().find(|step| step.revision == placed.revision.0).cloned();
    Some(known.unwrap_or_else(|| v1::ExplainStep {
        revision: placed.revision.0,
        at_ms: channel.placed_at.0,
        event: String::from("ChannelPlaced"),
        caused_by: format!("Place computed from revision {}", placed.basis),
        actor: String::from("planner"),
    }))
}

fn summary(view: &View, channel: &Channel) -> String {
    let name = &channel.spec.name;
    let placed = channel.placed_by.as_ref().map_or_else(String::new, |by| {
        let cause = by.cause;
        format!(": placed at revision {} (cause {cause}, basis {})", by.revision, by.basis)
    });
    let owner = channel.phase.owner().map(|owner| {
        let node = view.state.node(owner.node);
        let name = node.map_or_else(String::new, |node| format!(" ({})", node.registration.name));
        format!("{owner}{name}")
    });
    match (&channel.phase, owner) {
        (Phase::Buffered { .. }, _) | (_, None) => {
            format!("{name} has no owner, {}", channel.term)
        }
        (Phase::ToWatch { .. }, Some(owner)) => {
            format!("{name} is being watched by {owner}, {}{placed}", channel.term)
        }
        (Phase::Watched { .. }, Some(owner)) => {
            format!("{name} is watched by {owner}, {}{placed}", channel.term)
        }
        (Phase::ToRelease { cause, .. }, Some(owner)) => {
            format!("{name} is being released by {owner}, {}, because: {cause}", channel.term)
        }
    }
}

/// When a channel without owner lost the last one, or was announced; 0 when the history does not
/// say so any more. Its term is the revision of that.
fn lost_owner_at(channel: &Channel, history: &[v1::ExplainStep]) -> u64 {
    let buffered = matches!(channel.phase, Phase::Buffered { .. });
    let mut steps = history.iter().filter(|step| buffered && step.revision == channel.term.0);
    steps.next().map(|step| step.at_ms).unwrap_or_default()
}

/// Everything but the header.
pub async fn channel(
    surface: &Arc<Surface>,
    view: &View,
    channel: &Arc<Channel>,
) -> Result<v1::ExplainChannelResponse, Status> {
    let name = channel.spec.name.clone();
    let records = events::newest(surface, STEPS_MAX, Some(name.clone())).await?;
    let history = steps(&records, channel);
    let (state, now) = (Arc::clone(&view.state), surface.clock.stamp().max(view.state.now()));
    let term = Term(view.term);
    let explained = tokio::task::spawn_blocking(move || {
        planner::explain(&planner::View { state: &state, term, now }, &name)
    })
    .await
    .map_err(|_| status::internal("explaining was cut short"))?;
    let mut answer = v1::ExplainChannelResponse {
        header: None,
        channel: Some(convert::channel(&view.state, channel)),
        summary: summary(view, channel),
        decision: decision(channel, &history),
        history,
        ..Default::default()
    };
    if let Some(wait) = explained.wait {
        answer.waiting_for = wait.what.to_string();
        answer.waiting_since_ms =
            wait.since.map_or_else(|| lost_owner_at(channel, &answer.history), |at| at.0);
        answer.waiting_until_ms = wait.until.map(|at| at.0).unwrap_or_default();
        answer.unblocked_by = wait.unblock.to_owned();
    }
    answer.candidates = explained
        .candidates
        .into_iter()
        .map(|candidate| v1::ExplainCandidate {
            node_id: candidate.node.node.0,
            node_name: candidate.name.to_string(),
            count: candidate.count,
            refused_because: candidate.refused.map(|why| why.to_string()).unwrap_or_default(),
        })
        .collect();
    Ok(answer)
}
