//! What draining a node would do, and how far a drain is: the planner's answers on the wire.
//! Called by `nodes`.

use std::sync::Arc;

use planner::{Emptying, Forecast, Why};
use proto::v1;
use state::State;
use state::epoch::Term;
use state::event::Event;
use state::limits::MOVES_MAX;
use state::node::{Node, NodeRef};
use tonic::Status;

use super::{Surface, status};
use crate::view::View;

/// Asks the planner off the async threads: a forecast plays many rounds.
async fn ask<T: Send + 'static>(
    surface: &Surface,
    view: &View,
    question: impl FnOnce(&planner::View<'_>) -> T + Send + 'static,
) -> Result<T, Status> {
    let (state, now) = (Arc::clone(&view.state), surface.clock.stamp().max(view.state.now()));
    let term = Term(view.term);
    tokio::task::spawn_blocking(move || question(&planner::View { state: &state, term, now }))
        .await
        .map_err(|_| status::internal("planning was cut short"))
}

fn words(why: Option<Why>) -> (String, u64, String) {
    why.map_or_else(Default::default, |why| {
        let until = why.until().map(|until| until.0).unwrap_or_default();
        (why.to_string(), until, why.unblock().to_owned())
    })
}

/// Log time at which this node began to be emptied, as far as memory goes back.
fn since(surface: &Surface, node: &Node) -> u64 {
    let began = |event: &Event| match event {
        Event::NodeBeganStopping { node: of } => *of == node.node_ref(),
        Event::NodeFroze { name } => *name == node.registration.name,
        _ => false,
    };
    let found = surface.history.newest(1, |record| record.events.iter().any(began));
    found.first().map(|recorded| recorded.record.at.0).unwrap_or_default()
}

/// How far the emptying of this node is, if it is being emptied.
///
/// # Errors
/// INTERNAL when planning is cut short.
pub async fn progress(
    surface: &Surface,
    view: &View,
    node: &Node,
) -> Result<Option<v1::Drain>, Status> {
    let meant = node.node_ref();
    let found = ask(surface, view, move |view| planner::emptying(view, meant)).await?;
    let since_ms = since(surface, node);
    Ok(found.map(|Emptying { watched, to_watch, to_release, why }| {
        let (waiting_for, waiting_until_ms, unblocked_by) = words(why);
        v1::Drain {
            drained: watched == 0 && to_watch == 0 && to_release == 0,
            watched,
            to_watch,
            to_release,
            since_ms,
            waiting_for,
            waiting_until_ms,
            unblocked_by,
        }
    }))
}

/// What draining this session would do.
///
/// # Errors
/// STALE_NODE when the session is over.
pub async fn forecast(
    surface: &Surface,
    view: &View,
    node: NodeRef,
) -> Result<v1::ForecastDrainResponse, Status> {
    let found = ask(surface, view, move |view| planner::forecast_drain(view, node)).await?;
    let over = || status::stale_session(&format!("the session of node {node} is over"));
    Ok(convert(&view.state, found.ok_or_else(over)?))
}

fn convert(state: &State, forecast: Forecast) -> v1::ForecastDrainResponse {
    let policy = state.policy();
    let name = |node: NodeRef| state.node(node.node).map(|node| &node.registration.name);
    let moves = forecast.steps.into_iter().take(MOVES_MAX).map(|step| v1::ForecastMove {
        channel: step.channel.to_string(),
        node_id: step.to.node.0,
        node_name: name(step.to).map(ToString::to_string).unwrap_or_default(),
        round: step.round,
    });
    let stays = forecast.stays.into_iter().take(MOVES_MAX).map(|stay| {
        let (waiting_for, waiting_until_ms, unblocked_by) = words(Some(stay.why));
        let channel = stay.channel.to_string();
        v1::ForecastStay { channel, waiting_for, waiting_until_ms, unblocked_by }
    });
    v1::ForecastDrainResponse {
        header: None,
        moves: moves.collect(),
        stays: stays.collect(),
        rounds: forecast.rounds,
        moves_at_a_time: policy.balance_moves_max,
        round_timeout_ms: policy.release_timeout_ms.saturating_add(policy.watch_timeout_ms),
    }
}
