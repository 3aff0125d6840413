//! Commands that look into files of a stopped coordinator: every record in words. They only read.

use std::path::Path;

use server::offline::{Error, LogReport, SnapshotReport};

use crate::exit::{Code, Failure};
use crate::output::{Output, pairs};
use crate::render;

/// Prints every record of a snapshot.
pub(crate) fn snapshot_inspect(file: &Path, output: &Output) -> Result<(), Failure> {
    let report = server::offline::snapshot_inspect(file)?;
    output.show(&report, |report| {
        let mut lines = vec![head(report)];
        lines.extend(report.records.iter().cloned());
        lines.join("\n")
    })?;
    judge(&report)
}

/// Checks a snapshot, and says what it holds.
pub(crate) fn snapshot_verify(file: &Path, output: &Output) -> Result<(), Failure> {
    let mut report = server::offline::snapshot_inspect(file)?;
    report.records.clear();
    output.show(&report, head)?;
    judge(&report)
}

/// Prints every entry of a log.
pub(crate) fn log_inspect(directory: &Path, output: &Output) -> Result<(), Failure> {
    if !directory.is_dir() {
        let reason = format!("{}: no such directory", directory.display());
        return Err(Failure::new(Code::NotFound, reason));
    }
    let report = server::offline::log_inspect(directory)?;
    output.show(&report, log_text)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            error if error.is_integrity() => Code::Integrity,
            error if error.is_missing() => Code::NotFound,
            _ => Code::Conflict,
        };
        Self::new(code, error.to_string())
    }
}

fn judge(report: &SnapshotReport) -> Result<(), Failure> {
    let file = report.path.display();
    if !report.digest_equal {
        let reason = format!("snapshot {file}: its records do not have the digest of its head");
        return Err(Failure::new(Code::Integrity, reason));
    }
    match report.violations.first() {
        Some(violation) => {
            let reason = format!("snapshot {file}: an invariant does not hold: {violation}");
            Err(Failure::new(Code::Integrity, reason))
        }
        None => Ok(()),
    }
}

fn head(report: &SnapshotReport) -> String {
    let sound = report.digest_equal && report.violations.is_empty();
    pairs([
        ("snapshot", report.path.display().to_string()),
        ("format", report.format.to_string()),
        ("group", report.cluster_id.clone()),
        ("index", report.index.to_string()),
        ("term", report.term.to_string()),
        ("revision", report.revision.to_string()),
        ("log time", render::time(report.now_ms)),
        ("level", report.level.to_string()),
        ("members", report.members.join(", ")),
        ("nodes", report.nodes.to_string()),
        ("channels", report.channels.to_string()),
        ("digest", report.digest.clone()),
        ("witness", report.witness.clone()),
        ("verdict", if sound { "sound" } else { "NOT SOUND" }.to_owned()),
        ("violations", report.violations.join("; ")),
    ])
}

fn log_text(report: &LogReport) -> String {
    let optional = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let vote = report.vote.map(|(term, member)| format!("member {member} in term {term}"));
    let range = report.range.map(|(first, last)| format!("{first} to {last}"));
    let mut lines = vec![pairs([
        ("member", report.member.to_string()),
        ("group", report.cluster_id.clone().unwrap_or_default()),
        ("format", report.format.to_string()),
        ("vote", vote.unwrap_or_default()),
        ("committed", optional(report.committed)),
        ("purged", optional(report.purged)),
        ("entries", range.unwrap_or_else(|| "none".to_owned())),
        ("must reach", optional(report.high_water)),
    ])];
    for entry in &report.entries {
        let stamp = entry.stamp_ms.map(render::time).unwrap_or_default();
        let attests = entry.attests.map(|index| format!(" attests {index}")).unwrap_or_default();
        let (index, term, kind) = (entry.index, entry.term, entry.kind);
        lines.push(format!("{index:>8} t{term} {kind} {stamp}{attests}"));
        lines.extend(entry.lines.iter().map(|line| format!("          {line}")));
    }
    lines.join("\n")
}
