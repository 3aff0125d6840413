//! Parity with known answers: cases in files of a directory, run against our own code. One runner a
//! file of cases; a file without a runner is not spoken of. `it/parity.rs` calls `run`.

pub mod alter;
pub mod case;
pub mod channel_policies;
mod deviations;
mod expect;
mod fair;
mod json;
mod ops;
mod rule;
pub mod source;
pub mod verdict;

use std::path::Path;

pub use case::{Case, Runner};
pub use verdict::{FileReport, Verdict};

/// Every runner there is, in the order in which their files are reported.
#[must_use]
pub fn runners() -> Vec<Box<dyn Runner>> {
    vec![Box::new(channel_policies::ChannelPolicies)]
}

/// Runs every case of every file that has a runner.
///
/// # Errors
/// The directory or a file is missing, or a file is not what it should be.
pub fn run(directory: &Path) -> Result<Vec<FileReport>, source::Error> {
    runners().iter().map(|runner| run_file(runner.as_ref(), directory)).collect()
}

/// Runs every selected case of one file.
///
/// # Errors
/// The file is missing, or is not what it should be.
pub fn run_file(runner: &dyn Runner, directory: &Path) -> Result<FileReport, source::Error> {
    let document = source::load(directory, runner.file())?;
    let cases = runner.select(&document).map_err(|problem| source::Error::Shape {
        path: source::path_of(directory, runner.file()),
        problem,
    })?;
    let mut report = FileReport::new(runner.file());
    for case in cases {
        let verdict = runner.run(&case);
        report.add(&case, verdict);
    }
    Ok(report)
}
