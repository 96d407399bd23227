//! Results about recordings, written one at a time: lines, Markdown or JSON on stdout, and a page. Each appears when it
//! is ready, and memory does not grow with their number.

use anyhow::Context;
use nilometer_report::{GrowingDocument, GrowingForm, NamedFact, RecordingFindings};
use serde_json::Value;

use crate::{
    document_options::{DocumentFormat, DocumentOptions},
    json_list::JsonList,
    page_file::GrowingFile,
    tell,
};

/// The result of a command about a recording.
pub(crate) trait RecordingResult {
    /// The findings for a reader.
    fn findings(&self) -> RecordingFindings;

    /// The findings for a program.
    fn value(&self) -> Value;
}

/// The heading of a document about recordings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListingHead {
    pub(crate) title: &'static str,
    /// The line below it; empty if there is none.
    pub(crate) origin: &'static str,
}

/// Writes each recording in the formats that the user wants.
#[derive(Debug)]
pub(crate) struct RecordingListing {
    printed: PrintedListing,
    page: Option<RecordingPage>,
}

/// The listing on stdout.
#[derive(Debug)]
enum PrintedListing {
    /// A document, and the text before its next section.
    Document(GrowingDocument, &'static str),
    Json(JsonList),
}

/// The listing in a file.
#[derive(Debug)]
struct RecordingPage {
    document: GrowingDocument,
    file: GrowingFile,
    /// The name of the file, for messages.
    name: String,
}

impl RecordingListing {
    /// Writes the text before the first recording. Creates the page, so that a long reading is not in vain.
    pub(crate) fn begin(options: &DocumentOptions, head: ListingHead) -> anyhow::Result<Self> {
        let document = |form| GrowingDocument { form, title: head.title.into(), origin: head.origin.into() };
        let page = options.html().map(|path| -> anyhow::Result<RecordingPage> {
            let name = path.display().to_string();
            let file = GrowingFile::create(path).with_context(|| format!("can't write {name}"))?;
            let mut page = RecordingPage { document: document(GrowingForm::Page), file, name };
            page.push(&page.document.begin())?;
            Ok(page)
        });
        let page = page.transpose()?;
        let printed = match options.format() {
            DocumentFormat::Text => PrintedListing::Document(document(GrowingForm::Lines), ""),
            DocumentFormat::Markdown => PrintedListing::Document(document(GrowingForm::Markdown), ""),
            DocumentFormat::Json => PrintedListing::Json(JsonList::new()),
        };
        if let PrintedListing::Document(document, _) = &printed {
            print(document, &document.begin());
        }
        Ok(RecordingListing { printed, page })
    }

    /// Names the next of several recordings before the command reads it. Only lines need it: sections have
    /// headings.
    pub(crate) fn announce(&mut self, name: &str) {
        if let PrintedListing::Document(document, gap) = &mut self.printed
            && document.form == GrowingForm::Lines
        {
            let gap = std::mem::take(gap);
            print(document, &format!("{gap}{}\n", NamedFact::new("name", name)));
        }
    }

    /// Writes a recording.
    pub(crate) fn push(&mut self, result: &impl RecordingResult) -> anyhow::Result<()> {
        match &mut self.printed {
            PrintedListing::Json(list) => list.push(&with_conclusion(result))?,
            PrintedListing::Document(document, gap) => {
                print(document, &format!("{gap}{}", document.section(&result.findings())));
                *gap = if document.form == GrowingForm::Lines { "\n" } else { "" };
            }
        }
        let Some(page) = &mut self.page else { return Ok(()) };
        page.push(&page.document.section(&result.findings()))
    }

    /// Ends the list and the page. `unread` names files that belong to no recording and could not be read.
    pub(crate) fn end(self, unread: &[String]) -> anyhow::Result<()> {
        match &self.printed {
            PrintedListing::Json(list) => list.end(),
            PrintedListing::Document(document, _) => {
                print(document, &[document.unread(unread), document.end()].concat());
            }
        }
        let Some(mut page) = self.page else { return Ok(()) };
        page.push(&page.document.unread(unread))?;
        page.push(&page.document.end())?;
        page.file.finish().with_context(|| format!("can't write {}", page.name))?;
        tell::note(format_args!("Page: {}", page.name));
        Ok(())
    }
}

/// The findings for a program, with the conclusion that the other formats have.
fn with_conclusion(result: &impl RecordingResult) -> Value {
    let mut value = result.value();
    if let (Value::Object(keys), Some((_, text))) = (&mut value, result.findings().conclusion) {
        keys.insert("conclusion".into(), text.into());
    }
    value
}

impl RecordingPage {
    fn push(&mut self, text: &str) -> anyhow::Result<()> {
        self.file.push(text).with_context(|| format!("can't write {}", self.name))
    }
}

/// Prints a part of a document. A terminal breaks lines of facts below their texts. Markdown stays as it is, to be
/// copied.
fn print(document: &GrowingDocument, text: &str) {
    if document.form == GrowingForm::Lines {
        tell::result(text);
    } else {
        tell::result_to_copy(text);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Checks of a result with every field set.

    use super::*;

    /// Asserts that each form has each fact of a result, and that JSON has a value for each key. Returns the lines.
    pub(crate) fn told_everywhere(result: &impl RecordingResult) -> Vec<String> {
        let findings = result.findings();
        let section =
            |form| GrowingDocument { form, title: String::new(), origin: String::new() }.section(&findings);
        let lines: Vec<String> = section(GrowingForm::Lines).lines().map(str::to_owned).collect();
        let markdown = section(GrowingForm::Markdown).replace('\\', "");
        let page = section(GrowingForm::Page).replace("&#39;", "'");
        let conclusion = findings.conclusion.iter().map(|(_, text)| text.as_str());
        for text in lines.iter().map(|line| &line[12..]).chain(conclusion) {
            assert!(markdown.contains(text), "{text}: {markdown}");
            assert!(page.contains(text), "{text}: {page}");
        }
        assert_has_values(&result.value(), "");
        lines
    }

    /// Asserts that no value is null, zero or empty: such a key would say nothing about a finding.
    fn assert_has_values(value: &Value, place: &str) {
        let is_set = match value {
            Value::Null => false,
            Value::Bool(_) => true,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(all) => !all.is_empty(),
            Value::Object(all) => !all.is_empty(),
        };
        assert!(is_set, "{place} = {value}");
        let parts: Vec<(String, &Value)> = match value {
            Value::Array(all) => all.iter().map(|part| (format!("{place}[]"), part)).collect(),
            Value::Object(all) => all.iter().map(|(key, part)| (format!("{place}.{key}"), part)).collect(),
            _ => Vec::new(),
        };
        for (place, part) in &parts {
            assert_has_values(part, place);
        }
    }
}
