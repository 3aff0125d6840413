//! `serve`: one coordinator, until it is told to stop or must.

use clap::Args;
use server::config::Config;

use crate::exit::Failure;
use crate::key_flags::KeyFlags;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    keys: KeyFlags,
    /// Also stop when standard input closes: whoever started this one is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Serves.
pub(crate) async fn run(arguments: Serve) -> Result<(), Failure> {
    let _config = Config::from_layers(&arguments.keys.layers()?)?;
    Err(Failure::failed("the coordinator is not part of this build"))
}
