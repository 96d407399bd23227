//! The book of `docs/`: its summary lists every page once, and every relative link of the documents leads to a file and
//! a heading. Every check is a function that is itself tested on a bad example.

use std::{collections::BTreeMap, path::Path};

use nilometer_tests::{assert_none, files, read, root};

const SUMMARY: &str = "docs/SUMMARY.md";
/// Documents outside `docs/` whose links are checked too.
const OUTSIDE: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Paths of the pages below `docs/`, from the repository's root, without the summary.
fn pages() -> Vec<String> {
    let found = files(&root().join("docs"), "md");
    let path =
        |file: &Path| file.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
    found.iter().map(|file| path(file)).filter(|page| page != SUMMARY).collect()
}

/// Lines of a document that are not in a block of code.
fn lines(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line);
        }
    }
    lines
}

/// Targets of the relative links and images of a document. A link in a block or span of code is no link.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in lines(text) {
        let prose: String = line.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        links.extend(targets.filter(|target| !target.contains(':')).map(str::to_owned));
    }
    links
}

/// Anchors of a document's headings, as GitHub and mdbook make them: `-1`, `-2` follow a heading that is there already.
fn anchors(text: &str) -> Vec<String> {
    let mut earlier: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for line in lines(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title.trim());
        let count = earlier.entry(anchor.clone()).or_default();
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// The anchor of a heading: its letters in lower case, digits, `-` and `_`, with `-` for each space.
fn anchor(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The path that a link of a page leads to, from the repository's root. `None` if it leads out of the repository.
fn target(page: &str, link: &str) -> Option<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Relative links of a page that lead to no file, or to no heading of it.
fn dead_links(page: &str, text: &str) -> Vec<String> {
    let is_dead = |link: &String| !is_alive(page, text, link);
    links(text).into_iter().filter(is_dead).map(|link| format!("{page}: {link} leads nowhere")).collect()
}

fn is_alive(page: &str, text: &str, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let Some(path) = target(page, file) else { return false };
    let has_heading = |text: &str| heading.is_empty() || anchors(text).iter().any(|anchor| anchor == heading);
    if file.is_empty() {
        return has_heading(text);
    }
    let path = root().join(path);
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    path.exists() && (!is_page || has_heading(&read(&path)))
}

/// Pages that a summary does not list exactly once, and those that it lists and that are missing.
fn unlisted(summary: &str, pages: &[String]) -> Vec<String> {
    let listed: Vec<String> = links(summary).iter().filter_map(|link| target(SUMMARY, link)).collect();
    let times = |page: &String| listed.iter().filter(|other| *other == page).count();
    let wrong = pages.iter().filter(|page| times(page) != 1);
    let mut complaints: Vec<String> =
        wrong.map(|page| format!("{SUMMARY} lists {page} {} times", times(page))).collect();
    let missing = listed.iter().filter(|page| !pages.contains(page));
    complaints.extend(missing.map(|page| format!("{SUMMARY} lists {page}, which is missing")));
    complaints
}

/// The file that a page of the book includes, if it includes one.
fn included(text: &str) -> Option<&str> {
    text.trim().strip_prefix("{{#include ")?.strip_suffix("}}")
}

#[test]
fn the_summary_lists_every_page_once() {
    let pages = pages();
    assert!(pages.len() > 30, "{pages:?}");
    assert_none(&unlisted(&read(&root().join(SUMMARY)), &pages));
}

#[test]
fn relative_links_of_the_documents_lead_to_a_file_and_a_heading() {
    let mut documents = pages();
    documents.push(SUMMARY.into());
    documents.extend(OUTSIDE.map(str::to_owned));
    let dead = documents.iter().flat_map(|page| dead_links(page, &read(&root().join(page))));
    assert_none(&dead.collect::<Vec<_>>());
}

#[test]
fn files_that_pages_include_exist() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = read(&root().join(&page));
        let Some(file) = included(&text) else { continue };
        let is_there = target(&page, file).is_some_and(|path| root().join(path).exists());
        if !is_there {
            missing.push(format!("{page} includes {file}, which is missing"));
        }
    }
    assert_none(&missing);
}

#[test]
fn a_page_that_the_summary_lacks_or_repeats_is_found() {
    let pages = ["docs/a.md", "docs/b.md", "docs/c/d.md"].map(str::to_owned);
    assert!(unlisted("- [A](a.md)\n- [B](b.md)\n  - [D](c/d.md)\n", &pages).is_empty());
    let complaints = unlisted("- [A](a.md)\n- [A](a.md)\n- [B](b.md)\n- [E](e.md)\n", &pages);
    let expected = [
        "docs/SUMMARY.md lists docs/a.md 2 times",
        "docs/SUMMARY.md lists docs/c/d.md 0 times",
        "docs/SUMMARY.md lists docs/e.md, which is missing",
    ];
    assert_eq!(complaints, expected);
}

#[test]
fn a_dead_link_is_found() {
    let text = "# A heading\n[one](#a-heading) [two](#another) [three](verdict.md#the-answer) [four](verdict.md#gone)\n\
                [`five`](../Makefile) ![six](gone.png) [seven](https://example.org/gone.md) `[eight](gone.md)`\n\
                ```text\n[nine](gone.md)\n```\n[ten](../../gone.md)\n";
    let expected = ["#another", "verdict.md#gone", "gone.png", "../../gone.md"];
    let expected = expected.map(|link| format!("docs/words.md: {link} leads nowhere"));
    assert_eq!(dead_links("docs/words.md", text), expected);
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# `nilometer size`\n## `[stage.ingest]`\n```sh\n# a comment\n```\n## HTTP, at 127.0.0.1:9620\n## Same\n\
                ## Same\n#5\n";
    let expected = ["nilometer-size", "stageingest", "http-at-1270019620", "same", "same-1"];
    assert_eq!(anchors(text), expected);
}
