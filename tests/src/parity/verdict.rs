//! How cases came out, and the report of a file.

use std::fmt;

use super::case::Case;

/// How one case came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected: what was, and what came.
    Failed(String),
    /// Our design differs on purpose, by this rule.
    Deviation(&'static str),
    /// It speaks of something that we do not have.
    NotApplicable(&'static str),
}

/// How the cases of one file came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub file: &'static str,
    /// Cases that came out as expected.
    pub passed: usize,
    /// Cases that differ on purpose.
    pub deviations: Vec<Line>,
    /// Cases of something that we do not have.
    pub not_applicable: Vec<Line>,
    /// Cases that did not come out as expected.
    pub failures: Vec<Line>,
}

/// What is to be said of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which case.
    pub id: String,
    /// What it exercises.
    pub operation: String,
    /// What is to be said.
    pub text: String,
}

impl FileReport {
    /// Of a file of which no case has run yet.
    #[must_use]
    pub const fn new(file: &'static str) -> Self {
        Self {
            file,
            passed: 0,
            deviations: Vec::new(),
            not_applicable: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Counts one case.
    pub fn add(&mut self, case: &Case, verdict: Verdict) {
        let line = |text: String| Line {
            id: case.id.clone(),
            operation: case.operation.clone(),
            // One line a case, whatever a file holds.
            text: text.replace('\n', " "),
        };
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(text) => self.failures.push(line(text)),
            Verdict::Deviation(reason) => self.deviations.push(line(reason.to_owned())),
            Verdict::NotApplicable(reason) => self.not_applicable.push(line(reason.to_owned())),
        }
    }

    /// Cases that were run.
    #[must_use]
    pub const fn selected(&self) -> usize {
        self.passed + self.failures.len() + self.deviations.len() + self.not_applicable.len()
    }

    /// Nothing failed, and at least nine of ten cases passed.
    #[must_use]
    pub const fn holds(&self) -> bool {
        let selected = self.selected();
        selected > 0 && self.failures.is_empty() && self.passed * 10 >= selected * 9
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "parity {}: {} passed, {} failed, {} deviations, {} not applicable",
            self.file,
            self.passed,
            self.failures.len(),
            self.deviations.len(),
            self.not_applicable.len(),
        )?;
        self.failures.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.id, self.operation, self.text)
    }
}
