//! Pages that are no XML.

/// Returns the first XML error in a document: an unclosed tag, a bare `&` or `<`, or an attribute without
/// quotes.
pub(super) fn malformed(page: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").unwrap_or(page);
    while let Some(at) = rest.find(['<', '&', '>']) {
        let near = || rest[at..].chars().take(60).collect::<String>();
        let raw = matches!(open.last(), Some(&("style" | "script")));
        if rest[at..].starts_with('&') && !raw {
            let entities = ["&lt;", "&gt;", "&amp;", "&quot;", "&#39;"];
            if !entities.iter().any(|entity| rest[at..].starts_with(entity)) {
                return Some(format!("a bare & at {}", near()));
            }
        }
        if raw && !rest[at..].starts_with("</") || !rest[at..].starts_with('<') {
            if rest[at..].starts_with('>') && !raw {
                return Some(format!("a bare > at {}", near()));
            }
            rest = &rest[at + 1..];
            continue;
        }
        let end = at + rest[at..].find('>')?;
        let tag = &rest[at + 1..end];
        if tag.matches('"').count() % 2 == 1 {
            return Some(format!("an odd quote at {}", near()));
        }
        let name = tag.trim_matches('/').split(' ').next().unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("{name} is closed and was not open at {}", near()));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    open.pop().map(|name| format!("{name} is never closed"))
}

#[test]
fn a_malformed_page_is_found() {
    for good in ["<a><b/>&amp;</a>", "<style>a>b&c</style>", "<p class=\"x\">&#39;</p>"] {
        assert_eq!(malformed(good), None, "{good}");
    }
    for bad in ["<a><b></a>", "<a>", "</a>", "<a>&</a>", "<a>x > y</a>", "<a b=\"></a>"] {
        assert!(malformed(bad).is_some(), "{bad}");
    }
}
