//! What another program measured, or a publication gives: a cell that is read, and that no campaign measures.

use serde::{Deserialize, Serialize};

/// A combination of another program's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// What it comes from: the program with its version, or the publication.
    pub source: String,
    /// What was done, by the name that the source gives it.
    pub task: String,
    /// The source's parameters, name and value, in its order.
    pub parameters: Vec<(String, String)>,
    /// What the source's figure is of, where that is no rate of bytes or operations that it names so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub figure: String,
}

impl ImportedRun {
    /// All of it in phrases, the source apart: that is said once for a record.
    pub fn phrases(&self) -> Vec<String> {
        let mut phrases = vec![self.task.clone()];
        phrases.extend(self.parameters.iter().map(|(name, value)| phrase(name, value)));
        phrases.push(self.figure.clone());
        phrases.retain(|phrase| !phrase.is_empty());
        phrases
    }
}

/// A parameter without a name is a phrase by itself.
fn phrase(name: &str, value: &str) -> String {
    [name, value].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
