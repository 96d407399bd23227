//! The page of the recorder for browsers: one file without dependencies. It gives no commands.

use std::hash::{BuildHasher, Hasher, RandomState};

const PAGE: &str = include_str!("page.html");
/// The placeholder for the nonce in the page.
const MARK: &str = "NONCE";

/// An unpredictable text. Browsers obey only the script and the style that carry it (Content Security Policy
/// Level 3, section 2.3.1).
pub(super) fn nonce() -> String {
    // Each hasher takes its key from the random numbers of the system.
    let [high, low] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    format!("{high:016x}{low:016x}")
}

/// The page. Its own script and style carry this nonce.
pub(super) fn page(nonce: &str) -> String {
    PAGE.replace(MARK, nonce)
}

/// The headers that restrict browsers, for any answer. Browsers run and show only content with this nonce,
/// and connect only to this recorder. No other page may frame or embed it.
pub(super) fn policy(nonce: &str) -> String {
    format!(
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_no_other_file_and_commands_nothing() {
        let page = page("0123");
        assert_eq!(page.matches("nonce=\"0123\"").count(), 2, "its style and its script");
        assert!(!page.contains(MARK));
        for foreign in ["http://", "https://", "src=", "@import", "url(", "POST", "style=\"", "onclick"] {
            let kept = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!kept.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn each_answer_has_a_nonce_of_its_own() {
        assert_ne!(nonce(), nonce());
        assert!(policy("0123").contains("script-src 'nonce-0123';"));
        assert!(!policy("0123").contains("unsafe"));
    }
}
