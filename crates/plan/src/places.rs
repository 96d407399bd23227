//! Places in the text of a plan.

/// The line in which a byte of a text stands, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}
