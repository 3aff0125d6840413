//! A case, and what can run it.

use serde_json::Value;

use super::verdict::Verdict;

/// One known answer.
#[derive(Debug, Clone)]
pub struct Case {
    /// Names it in its file.
    pub id: String,
    /// What is exercised: a policy or an operation.
    pub operation: String,
    /// The whole case as it stands in the file.
    pub body: Value,
}

/// Runs the cases of one file.
pub trait Runner {
    /// The name of the file, without extension; reports use it too.
    fn file(&self) -> &'static str;

    /// The cases that count, in the order of the file.
    ///
    /// # Errors
    /// The file has no list of cases, or one of them has no name.
    fn select(&self, document: &Value) -> Result<Vec<Case>, String>;

    /// Compares ours with the known answer. An operation that the runner does not know is failed.
    fn run(&self, case: &Case) -> Verdict;
}
