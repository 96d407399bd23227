//! The findings about recordings, as `nilometer verify` and `nilometer scan` print them: a section for each recording.
//! A document grows by one recording at a time, and its memory does not grow with their number.

use crate::{
    document::{Block, Document, Heading, NamedFact, Section, Sentence, Tone},
    in_line::in_line,
    render::{self, TextLayout},
};

/// The findings about a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingFindings {
    /// The name of the recording.
    pub name: String,
    /// The conclusion; `None` if the command draws none.
    pub conclusion: Option<(Tone, String)>,
    /// The facts, in the order of a reader's questions.
    pub facts: Vec<NamedFact>,
}

/// The form of a document that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowingForm {
    /// A line for each fact, without headings and conclusions.
    Lines,
    /// GitHub's Markdown.
    Markdown,
    /// HTML that opens offline.
    Page,
}

/// A document whose parts the caller writes when it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowingDocument {
    /// The form of each part.
    pub form: GrowingForm,
    /// The first line.
    pub title: String,
    /// The line below it; empty if there is none.
    pub origin: String,
}

impl GrowingDocument {
    /// Returns the text before the first section.
    pub fn begin(&self) -> String {
        let document =
            Document { title: self.title.clone(), origin: self.origin.clone(), ..Document::default() };
        match self.form {
            GrowingForm::Lines => String::new(),
            GrowingForm::Markdown => render::markdown_text(&document),
            GrowingForm::Page => render::html_begin(&document),
        }
    }

    /// Returns the section of a recording.
    pub fn section(&self, findings: &RecordingFindings) -> String {
        let RecordingFindings { name, conclusion, facts } = findings;
        let facts = Block::Facts(facts.clone());
        if self.form == GrowingForm::Lines {
            // A part has no blank line before it.
            return self.sections(vec![Section::part(Heading::of(""), vec![facts])]);
        }
        let concluded = conclusion.iter().map(|(tone, text)| {
            let sentence = Sentence::toned(*tone, in_line(text));
            Block::Paragraph(sentence)
        });
        // A label is in capital letters in a terminal, but a name is not.
        let heading = Heading::with("", in_line(name));
        self.sections(vec![Section::new(heading, concluded.chain([facts]).collect())])
    }

    /// Returns the section of files that the command could not read; empty if there are none, and for lines.
    pub fn unread(&self, faults: &[String]) -> String {
        if faults.is_empty() || self.form == GrowingForm::Lines {
            return String::new();
        }
        let sentences = faults.iter().map(|fault| Sentence::toned(Tone::Bad, in_line(fault))).collect();
        self.sections(vec![Section::new(Heading::of("Not read"), vec![Block::List(sentences)])])
    }

    /// Returns the text behind the last section.
    pub fn end(&self) -> String {
        match self.form {
            GrowingForm::Lines | GrowingForm::Markdown => String::new(),
            GrowingForm::Page => render::html_end(),
        }
    }

    fn sections(&self, sections: Vec<Section>) -> String {
        match self.form {
            GrowingForm::Lines => {
                let document = Document { sections, ..Document::default() };
                render::terminal_text(&document, TextLayout::unbroken())
            }
            GrowingForm::Markdown => render::markdown_sections(&sections),
            GrowingForm::Page => render::html_sections(&sections),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> RecordingFindings {
        RecordingFindings {
            name: "a<b>\n\u{1b}[31m".into(),
            conclusion: Some((Tone::Bad, "not whole: 2 frames are missing".into())),
            facts: vec![
                NamedFact::new("recording", "x\u{9b}2J  y"),
                NamedFact::toned(Tone::Bad, "gap", "2 packets from frame 3"),
                NamedFact::new("", "and 4 more"),
                NamedFact::new("overwritten", 5),
            ],
        }
    }

    fn whole(form: GrowingForm) -> String {
        let document = GrowingDocument { form, title: "Recordings".into(), origin: "of <these>".into() };
        let section = document.section(&findings());
        let unread = document.unread(&["/x\u{1b}: no permission".into()]);
        [document.begin(), section.clone(), section, unread, document.end()].concat()
    }

    #[test]
    fn lines_have_each_fact_below_the_other_as_it_is() {
        let once = "recording   x\\u{9b}2J  y\ngap         2 packets from frame 3\n            and 4 more\noverwritten 5\n";
        assert_eq!(whole(GrowingForm::Lines), once.repeat(2));
    }

    #[test]
    fn markdown_has_each_fact_the_conclusion_and_the_unread() {
        let text = whole(GrowingForm::Markdown);
        let section = "\n## a&lt;b>\\\\n\\\\u{1b}\\[31m\n\n**not whole: 2 frames are missing**\n\n|  |  |\n|---|---|\n\
                       | recording | x\\\\u{9b}2J  y |\n| gap | **2 packets from frame 3**<br>**and 4 more** |\n\
                       | overwritten | 5 |\n";
        let unread = "\n## Not read\n\n- **!!** /x\\\\u{1b}: no permission\n";
        assert_eq!(text, format!("# Recordings\n\nof &lt;these>\n{section}{section}{unread}"));
    }

    #[test]
    fn a_page_has_each_fact_the_conclusion_and_the_unread() {
        let page = whole(GrowingForm::Page);
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
        assert!(!page.contains(|letter: char| letter.is_control() && letter != '\n'), "{page}");
        let title = "<h2>a&lt;b&gt;\\n\\u{1b}[31m</h2>";
        assert_eq!(page.matches(title).count(), 2, "{page}");
        for part in [
            "not whole: 2 frames are missing",
            "x\\u{9b}2J  y",
            "2 packets from frame 3<br/>and 4 more",
            "overwritten</th>",
            "/x\\u{1b}: no permission",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
