//! The HTTP port: `/metrics`, `/livez`, `/readyz`. Asked by people and by machines that watch over
//! this one.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{Surface, read};
use crate::leader::Phase;
use crate::leader::planning::Totals;
use crate::proposer::Proposer;
use crate::telemetry;

/// What the pages are made from.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    /// The gRPC surface.
    pub(crate) surface: Arc<Surface>,
    /// The proposer.
    pub(crate) proposer: Proposer,
    /// The planner's totals.
    pub(crate) totals: Arc<Totals>,
    /// Whether this member leads.
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Serves until `stop`.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    pages: Pages,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(pages);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn metrics(State(pages): State<Pages>) -> Response {
    let phase = pages.phase.borrow().clone();
    let text = telemetry::render(&pages.surface, &pages.proposer, &pages.totals, &phase);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// Ready: caught up, part of a group, a leader known. The body says what is missing.
async fn ready(State(pages): State<Pages>) -> Response {
    let health = read::health(&pages.surface.raft, pages.surface.quorum_fresh);
    let state = pages.surface.raft.status().state.as_str();
    let line = |name: &str, good: bool| {
        format!(
            "{}{name} {}\n",
            if good { "[+]" } else { "[-]" },
            if good { "ok" } else { "failed" }
        )
    };
    let body = format!(
        "{}{}member is {state}\n",
        line("caught up", health.ready),
        line("leader known", health.writable),
    );
    let code = if health.ready && health.writable {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, body).into_response()
}
