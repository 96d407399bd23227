//! Results of another program or a publication: a cell that Nilometer reads and never measures.

use serde::{Deserialize, Serialize};

/// A combination of another program's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// The source: the program with its version, or the publication.
    pub source: String,
    /// The task, by the name that the source gives it.
    pub task: String,
    /// The source's parameters, name and value, in its order.
    pub parameters: Vec<(String, String)>,
    /// The quantity of the source's figure, unless it is a rate of bytes or operations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub figure: String,
}

impl ImportedRun {
    /// The cell as phrases, without the source, which reports print once for a record.
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
