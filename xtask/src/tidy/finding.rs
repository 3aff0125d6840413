//! Finding: one breach of a rule. How it is judged is the ratchet's business.
//! Made by every rule of tidy.

use std::fmt;

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the root, and the function where that matters.
    pub(crate) subject: String,
    /// Counted from 1; 0 speaks of the whole file.
    pub(crate) line: usize,
    /// Short name of the rule.
    pub(crate) rule: &'static str,
    /// How much is there: lines for lengths, 1 for everything that is simply counted.
    pub(crate) measure: usize,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Finding {
    /// A breach that is counted.
    pub(crate) fn new(
        subject: &str,
        line: usize,
        rule: &'static str,
        text: impl Into<String>,
    ) -> Finding {
        Finding { subject: subject.to_owned(), line, rule, measure: 1, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.subject, self.line, self.rule, self.text)
    }
}
