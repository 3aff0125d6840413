//! `serve`: one coordinator, until it is told to stop or must.

use clap::Args;
use server::config::{Config, LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

use crate::exit::{Code, Failure};
use crate::key_flags::KeyFlags;
use crate::stop;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    keys: KeyFlags,
    /// Also stop when standard input closes: whoever started this one is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Serves until it is told to stop; told again, it stops at once.
pub(crate) async fn run(arguments: Serve) -> Result<(), Failure> {
    let config = Config::from_layers(&arguments.keys.layers()?)?;
    log_to_stderr(&config.log)?;
    let (told, wait) = tokio::sync::oneshot::channel();
    let shutdown = async {
        // The other end lives until the second time.
        let _told = wait.await;
    };
    let mut serving = std::pin::pin!(server::run(&config, shutdown));
    tokio::select! {
        ended = &mut serving => return ended.map_err(Failure::from),
        stopped = stop::requested(arguments.stop_with_stdin) => stopped?,
    }
    let _ended_meanwhile = told.send(());
    tokio::select! {
        ended = serving => ended.map_err(Failure::from),
        stopped = stop::requested(false) => stopped,
    }
}

/// Lines go to standard error, each written at once.
fn log_to_stderr(config: &LogConfig) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&config.filter)
        .map_err(|error| Failure::usage(format!("log.filter = {}: {error}", config.filter)))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let begun = match config.format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    begun.map_err(|error| Failure::failed(format!("cannot begin to log: {error}")))
}

impl From<server::Error> for Failure {
    fn from(error: server::Error) -> Self {
        let code = match &error {
            error if error.is_integrity() => Code::Integrity,
            server::Error::Listen { .. } | server::Error::Start(_) => Code::Conflict,
            server::Error::Io { .. } | server::Error::Fault(_) => Code::Failed,
        };
        Self::new(code, error.to_string())
    }
}
