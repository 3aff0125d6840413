//! `grpc.health.v1`: the whole server, reads and writes by themselves, so that a load balancer can
//! choose.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::api::{Surface, read};

/// Service name under which the ability to serve reads is reported.
pub const READ_SERVICE: &str = "quorate.v1.Read";
/// Service name under which the ability to take writes is reported.
pub const WRITE_SERVICE: &str = "quorate.v1.Write";

/// How often the health is looked at; a change of leadership is seen at once.
const LOOK: Duration = Duration::from_secs(1);

/// Reports changes until `stop`.
pub(crate) async fn follow(
    reporter: HealthReporter,
    surface: Arc<Surface>,
    stop: CancellationToken,
) {
    let mut leadership = surface.raft.leadership();
    let mut shown: Option<read::Health> = None;
    loop {
        let health = read::health(&surface.raft, surface.quorum_fresh);
        if shown != Some(health) {
            let status =
                |good| if good { ServingStatus::Serving } else { ServingStatus::NotServing };
            let both = health.ready && health.writable;
            reporter.set_service_status("", status(both)).await;
            reporter.set_service_status(READ_SERVICE, status(health.ready)).await;
            reporter.set_service_status(WRITE_SERVICE, status(health.writable)).await;
            shown = Some(health);
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = leadership.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
