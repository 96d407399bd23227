//! Lines in a terminal, as wide as it is, with colours on request. Paragraphs are wrapped: no line is wider
//! than the terminal.

/// The use of colours in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Text and nothing else.
    Plain,
    /// With ANSI escape sequences for colour and weight.
    Coloured,
}

impl Palette {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Palette::Coloured if !text.is_empty() && !code.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
pub(crate) const RED: &str = "1;31";
pub(crate) const GREEN: &str = "1;32";
pub(crate) const YELLOW: &str = "33";

/// The width of a text in columns, and its use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLayout {
    palette: Palette,
    width: usize,
}

/// Wider text is hard to read, and tables need this minimum.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=100;

impl TextLayout {
    /// Makes a layout for this number of columns, limited to 60 to 100.
    pub fn new(palette: Palette, columns: usize) -> Self {
        TextLayout { palette, width: columns.clamp(*WIDTHS.start(), *WIDTHS.end()) }
    }

    /// Makes a layout without colours and as wide as is easy to read, for a file or another program.
    pub fn plain() -> Self {
        TextLayout::new(Palette::Plain, usize::MAX)
    }

    /// Makes a layout without colours in which no line breaks and no table loses a column, for programs that read
    /// lines.
    pub const fn unbroken() -> Self {
        TextLayout { palette: Palette::Plain, width: 100_000 }
    }
}

/// Text as it grows, line by line.
pub(crate) struct Page {
    text: String,
    layout: TextLayout,
}

impl Page {
    pub(crate) fn new(layout: TextLayout) -> Self {
        Page { text: String::new(), layout }
    }

    /// Returns the number of columns.
    pub(crate) fn width(&self) -> usize {
        self.layout.width
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    pub(crate) fn line(&mut self, code: &str, text: &str) {
        let painted = self.layout.palette.paint(code, text.trim_end());
        self.text.push_str(&painted);
        self.text.push('\n');
    }

    /// A line of parts, each in its colour.
    pub(crate) fn painted(&mut self, parts: impl Iterator<Item = (&'static str, String)>) {
        let mut parts: Vec<(&str, String)> = parts.collect();
        let end = parts.iter().rposition(|(_, text)| !text.trim_end().is_empty()).map_or(0, |last| last + 1);
        parts.truncate(end);
        if let Some((_, last)) = parts.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let line: String = parts.iter().map(|(code, text)| self.layout.palette.paint(code, text)).collect();
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// Writes a paragraph with `first` before the first line, and the same width of space before the others.
    pub(crate) fn paragraph(&mut self, code: &str, first: &str, text: &str) {
        let indent = first.chars().count();
        for (number, line) in wrapped(text, self.width() - indent).iter().enumerate() {
            let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            self.text.push_str(&before);
            self.line(code, line);
        }
    }
}

pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}

/// At most `width` characters.
pub(crate) fn clipped(text: &str, width: usize) -> String {
    if chars(text) <= width {
        return printable(text);
    }
    printable(&text.chars().take(width - 1).collect::<String>()) + "…"
}

/// Replaces control characters. Names may contain any text, even commands for the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Breaks text into lines of at most `width` characters, at spaces or within longer words. Empty text has no
/// lines.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = printable(text);
    let pieces = text.split(' ').filter(|word| !word.is_empty()).flat_map(|word| pieces(word, width));
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if chars(line) + 1 + chars(&piece) <= width => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}

fn pieces(word: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("a longword b", 4), ["a", "long", "word", "b"]);
        assert_eq!(wrapped("", 4), [""; 0]);
        assert_eq!(wrapped("a\x1b[31m", 9), ["a\u{fffd}[31m"]);
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        assert_eq!(Palette::Plain.paint(RED, "x"), "x");
        assert_eq!(Palette::Coloured.paint(RED, "x"), "\x1b[1;31mx\x1b[0m");
    }
}
