//! README.md and README.zh.md say the same, as far as that can be seen without reading: a change in one has to be made
//! in the other.

const ENGLISH: &str = include_str!("../../../../README.md");
const CHINESE: &str = include_str!("../../../../README.zh.md");

/// A page in its parts.
#[derive(Debug, Default)]
struct Page {
    /// The blocks of code, as they are.
    code: Vec<String>,
    sections: Vec<Section>,
}

/// What stands below one heading.
#[derive(Debug, Default)]
struct Section {
    heading: String,
    /// How many `#` its heading has.
    level: usize,
    /// How many items its lists have.
    items: usize,
    /// The rows of its tables, each with what stands between backticks in each of its cells.
    rows: Vec<Vec<Vec<String>>>,
    /// What stands between backticks in its text.
    spans: Vec<String>,
    /// Where its links lead.
    links: Vec<String>,
}

fn between(text: &str, start: &str, end: char) -> Vec<String> {
    let mut found: Vec<_> = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(start) {
        let Some((inside, after)) = after.split_once(end) else { break };
        found.push(inside.to_owned());
        rest = after;
    }
    found.sort();
    found
}

/// A cell of a table may hold a `|` between backticks.
fn cells(row: &str) -> Vec<Vec<String>> {
    row.trim_matches('|').split(" | ").map(|cell| between(cell, "`", '`')).collect()
}

fn page(text: &str) -> Page {
    let text = text.replace("\r\n", "\n");
    let mut page = Page::default();
    let mut prose = String::new();
    let mut code: Option<String> = None;
    // The line that leads to the other language is in one of them alone.
    let lines = text.lines().filter(|line| !line.contains("](README."));
    for line in lines.chain(["# the end"]) {
        if let Some(block) = &mut code {
            *block += &format!("{line}\n");
            if line == "```" {
                page.code.extend(code.take());
            }
        } else if line.starts_with("```") {
            code = Some(format!("{line}\n"));
        } else if line.starts_with('#') {
            if let Some(section) = page.sections.last_mut() {
                section.spans = between(&prose, "`", '`');
                section.links = between(&prose, "](", ')');
            }
            prose.clear();
            let level = line.len() - line.trim_start_matches('#').len();
            page.sections.push(Section { heading: line.to_owned(), level, ..Section::default() });
        } else if let Some(section) = page.sections.last_mut() {
            let is_item = line.starts_with("- ")
                || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
            section.items += usize::from(is_item);
            if line.starts_with('|') {
                section.rows.push(cells(line));
            } else {
                prose += &format!("{line}\n");
            }
        }
    }
    page
}

#[test]
fn both_readmes_have_the_same_parts() {
    let (english, chinese) = (page(ENGLISH), page(CHINESE));
    assert!(english.code.len() > 5 && english.sections.len() > 10, "they are not read any more: {english:?}");
    assert_eq!(english.code, chinese.code, "blocks of code are the same, byte for byte");
    let levels = |page: &Page| page.sections.iter().map(|section| section.level).collect::<Vec<_>>();
    assert_eq!(levels(&english), levels(&chinese), "headings");
    for (one, other) in english.sections.iter().zip(&chinese.sections) {
        let at = format!("{} / {}", one.heading, other.heading);
        assert_eq!(one.items, other.items, "{at}: items of lists");
        assert_eq!(one.links, other.links, "{at}: links");
        assert_eq!(one.spans, other.spans, "{at}: what stands between backticks");
        assert_eq!(one.rows.len(), other.rows.len(), "{at}: rows of tables");
        for (row, translated) in one.rows.iter().zip(&other.rows) {
            assert_eq!(row, translated, "{at}: what stands between backticks in a row of a table");
        }
    }
}
