//! When a long-running command must end: SIGINT, SIGTERM, or a closed standard input where the
//! parent asked for that. Used by serve, worker, dev and bench.

use std::io::Read;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Failure;

/// Resolves when the command must end.
pub(crate) async fn requested(with_stdin: bool) -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
        () = stdin_closed(), if with_stdin => {}
    }
    Ok(())
}

/// The parent holds the other end of standard input: it closes when the parent dies, however it
/// dies. A thread of its own waits for that, because a blocking read of the runtime would hold up
/// its end.
async fn stdin_closed() {
    let (closed, wait) = oneshot::channel();
    std::thread::spawn(move || {
        let mut ignored = [0_u8; 64];
        while let Ok(1..) = std::io::stdin().read(&mut ignored) {}
        // Nobody waits any more when the command ended for another reason.
        let _unheard = closed.send(());
    });
    let _closed = wait.await;
}
