//! `worker`: a demo worker on the client library, with settable slowness and faults.

use clap::Args;

use crate::args::Global;
use crate::exit::Failure;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {}

/// Works.
pub(crate) async fn run(_arguments: Worker, _global: &Global) -> Result<(), Failure> {
    Err(Failure::failed("the worker is not part of this build"))
}
