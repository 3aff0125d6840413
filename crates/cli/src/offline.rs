//! Commands that look into files of a stopped coordinator. They only read.

use std::path::Path;

use crate::exit::Failure;
use crate::output::Output;

pub(crate) fn snapshot_inspect(_file: &Path, _output: &Output) -> Result<(), Failure> {
    Err(Failure::failed("not part of this build"))
}

pub(crate) fn snapshot_verify(_file: &Path, _output: &Output) -> Result<(), Failure> {
    Err(Failure::failed("not part of this build"))
}

pub(crate) fn log_inspect(_directory: &Path, _output: &Output) -> Result<(), Failure> {
    Err(Failure::failed("not part of this build"))
}
