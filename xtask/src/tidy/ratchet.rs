//! Ratchet: the recorded exceptions to the rules. They may only shrink.
//! What a rule is does not matter here; findings are compared by rule, subject and measure.
//! Used by tidy.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use super::finding::Finding;
use crate::workspace::Workspace;

/// Why each exception is there stands beside it, after `#`.
const FILE: &str = "xtask/ratchet.txt";

type Key = (String, String);

/// Recorded exceptions: rule and subject, with the measure allowed and the reason.
#[derive(Debug, Default)]
pub(crate) struct Ratchet {
    records: BTreeMap<Key, (usize, String)>,
}

impl Ratchet {
    /// Reads the file; without one there is no exception.
    pub(crate) fn read(workspace: &Workspace) -> anyhow::Result<Ratchet> {
        match fs::read_to_string(path(workspace)) {
            Ok(text) => Ratchet::parse(&text),
            Err(_) => Ok(Ratchet::default()),
        }
    }

    /// Lines of `RULE SUBJECT MEASURE # reason`; a line that starts with `#` is a comment.
    fn parse(text: &str) -> anyhow::Result<Ratchet> {
        let mut records = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (record, reason) =
                line.split_once(" # ").with_context(|| format!("{FILE}: no reason: {line}"))?;
            let mut words = record.split_whitespace();
            let (Some(rule), Some(subject), Some(measure)) =
                (words.next(), words.next(), words.next())
            else {
                anyhow::bail!("{FILE}: not `RULE SUBJECT MEASURE # reason`: {line}");
            };
            let measure = measure.parse().with_context(|| format!("{FILE}: {line}"))?;
            let key = (rule.to_owned(), subject.to_owned());
            records.insert(key, (measure, reason.to_owned()));
        }
        Ok(Ratchet { records })
    }

    /// Everything that is wrong: breaches beyond the record, and records beyond the breaches.
    pub(crate) fn judge(&self, findings: &[Finding]) -> Vec<String> {
        let sums = sums(findings);
        let mut complaints: Vec<String> = findings
            .iter()
            .filter(|finding| sums[&key(finding)] > self.allowed(&key(finding)))
            .map(Finding::to_string)
            .collect();
        for (key, (allowed, _)) in &self.records {
            let found = sums.get(key).copied().unwrap_or_default();
            if found < *allowed {
                let (rule, subject) = key;
                complaints.push(format!(
                    "{FILE}: {rule} {subject} is recorded as {allowed} and is {found} now: \
                     run `cargo xtask tidy --shrink`"
                ));
            }
        }
        complaints
    }

    /// Lowers every record to what was found; never raises one.
    pub(crate) fn shrink(&mut self, findings: &[Finding]) {
        let sums = sums(findings);
        self.records.retain(|key, _| sums.contains_key(key));
        for (key, (allowed, _)) in &mut self.records {
            *allowed = (*allowed).min(sums[key]);
        }
    }

    /// Writes the file.
    pub(crate) fn write(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let mut text = String::from(
            "# Recorded exceptions to the rules of `cargo xtask tidy`. They may only shrink.\n\
             # RULE SUBJECT MEASURE # reason\n",
        );
        for ((rule, subject), (measure, reason)) in &self.records {
            text.push_str(&format!("{rule} {subject} {measure} # {reason}\n"));
        }
        fs::write(path(workspace), text)?;
        Ok(())
    }

    fn allowed(&self, key: &Key) -> usize {
        self.records.get(key).map_or(0, |(measure, _)| *measure)
    }
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join(FILE)
}

fn key(finding: &Finding) -> Key {
    (finding.rule.to_owned(), finding.subject.clone())
}

fn sums(findings: &[Finding]) -> BTreeMap<Key, usize> {
    let mut sums = BTreeMap::new();
    for finding in findings {
        *sums.entry(key(finding)).or_default() += finding.measure;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratchet() -> Ratchet {
        Ratchet::parse("# head\nsleep tests/a.rs 2 # polls\n").expect("parses")
    }

    fn sleeps(count: usize) -> Vec<Finding> {
        (0..count).map(|line| Finding::new("tests/a.rs", line, "sleep", "no")).collect()
    }

    #[test]
    fn what_is_recorded_passes_and_no_more() {
        assert!(ratchet().judge(&sleeps(2)).is_empty());
        assert_eq!(ratchet().judge(&sleeps(3)).len(), 3);
        assert_eq!(Ratchet::default().judge(&sleeps(1)).len(), 1);
    }

    #[test]
    fn a_record_that_is_too_high_fails_until_it_is_lowered() {
        let mut ratchet = ratchet();
        assert_eq!(ratchet.judge(&sleeps(1)).len(), 1);
        ratchet.shrink(&sleeps(1));
        assert!(ratchet.judge(&sleeps(1)).is_empty());
        ratchet.shrink(&sleeps(9));
        assert_eq!(ratchet.judge(&sleeps(9)).len(), 9);
    }

    #[test]
    fn a_record_needs_a_reason() {
        assert!(Ratchet::parse("sleep tests/a.rs 2\n").is_err());
    }
}
