//! `version`: of this binary, and with `--remote` of the coordinator that answers.

use clap::Args;
use serde::Serialize;

use crate::args::Global;
use crate::exit::Failure;
use crate::operator;
use crate::output::{Output, pairs};

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Ask a coordinator too.
    #[arg(long)]
    remote: bool,
}

#[derive(Serialize)]
struct Shown {
    version: &'static str,
    api: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinator: Option<Remote>,
}

#[derive(Serialize)]
struct Remote {
    version: String,
    level: u32,
    known_level: u32,
    log_format: u32,
    snapshot_format: u32,
}

/// Shows it.
pub(crate) async fn run(
    arguments: Version,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let mut shown =
        Shown { version: env!("CARGO_PKG_VERSION"), api: "quorate.v1", coordinator: None };
    if arguments.remote {
        let answer = operator::connect(global)?.get_version(Default::default()).await?;
        shown.coordinator = Some(Remote {
            version: answer.version,
            level: answer.level,
            known_level: answer.known_level,
            log_format: answer.log_format,
            snapshot_format: answer.snapshot_format,
        });
    }
    output.show(&shown, |shown| {
        let mut text =
            pairs([("quorate", shown.version.to_owned()), ("api", shown.api.to_owned())]);
        if let Some(remote) = &shown.coordinator {
            text.push('\n');
            text.push_str(&pairs([
                ("coordinator", remote.version.clone()),
                ("level", remote.level.to_string()),
                ("known level", remote.known_level.to_string()),
                ("log format", remote.log_format.to_string()),
                ("snapshot format", remote.snapshot_format.to_string()),
            ]));
        }
        text
    })
}
