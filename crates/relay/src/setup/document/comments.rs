//! Comments: they may hold anything, a key or a password too, so a screen gets none but our own.

use std::ops::Range;

use super::Format;

/// The cuts that hide every comment of a text but those that are `ours`; `values` are its values in order.
pub(super) fn hidden(
    format: Format,
    text: &str,
    values: &[Range<usize>],
    ours: &[&str],
) -> Vec<(Range<usize>, String)> {
    let mut cuts = Vec::new();
    let mut from = 0;
    let ends = std::iter::once(text.len()..text.len());
    for value in values.iter().cloned().chain(ends) {
        while let Some((at, fresh)) = next(format, text, from..value.start) {
            from = at.end;
            if !text.get(at.clone()).is_some_and(|comment| ours.contains(&comment)) {
                cuts.push((at, fresh.to_owned()));
            }
        }
        from = value.end.max(from);
        // Behind the quote in an env file anything may stand.
        let rest = text.get(from..).map_or("", |rest| rest.get(..line(rest)).unwrap_or_default());
        if format == Format::Env && !rest.trim_start().is_empty() && !rest.trim_start().starts_with('#') {
            cuts.push((from..from + rest.len(), " …".to_owned()));
            from += rest.len();
        }
    }
    cuts
}

/// The first comment in this range, which holds no value, and what is shown of it.
fn next(format: Format, text: &str, range: Range<usize>) -> Option<(Range<usize>, String)> {
    let mut quote = None;
    let mut letters = text.get(range.clone())?.char_indices();
    while let Some((offset, letter)) = letters.next() {
        let rest = text.get(range.start + offset..)?;
        let at = |length: usize| range.start + offset..range.start + offset + length;
        match (quote, letter) {
            (Some('"'), '\\') => drop(letters.next()),
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '#') if format != Format::Json => return Some((at(line(rest)), "# …".to_owned())),
            // A name in an env file has no quotes: one that stands there is no name's.
            (None, '"' | '\'') if format != Format::Env => quote = Some(letter),
            (None, '/') if format == Format::Json && rest.starts_with("//") => {
                return Some((at(line(rest)), "// …".to_owned()));
            }
            (None, '/') if format == Format::Json && rest.starts_with("/*") => {
                let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
                let breaks = rest.get(..length)?.matches('\n').count();
                return Some((at(length), format!("/* …{} */", "\n".repeat(breaks))));
            }
            (None, _) => {}
        }
    }
    None
}

/// The length of a line without its end.
fn line(text: &str) -> usize {
    text.lines().next().unwrap_or_default().trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    #[test]
    fn comments_and_other_values_are_hidden_and_nothing_else() {
        let rows = [
            (
                Format::Toml,
                "a = 1 # pass=x\r\n\"b#\" = 'c # d'#e\n# ours\n",
                "a = … # …\r\n\"b#\" = \"…\"# …\n# ours\n",
            ),
            (Format::Toml, "[t]#x\nl = [ # y\n 1, # z\n]\n", "[t]# …\nl = [ # …\n …, # …\n]\n"),
            (Format::Env, "#a='b\nexport A=b #c\nB=\"d#e\" 'f # g\n", "# …\nexport A=\"…\" # …\nB=\"…\" …\n"),
            (
                Format::Json,
                "{/*a\n\"b*/\"//\":\"/*\",\"c\":[2]// d\n}/*e*/",
                "{/* …\n */\"//\":\"…\",\"c\":[…]// …\n}/* … */",
            ),
        ];
        for (format, text, shown) in rows {
            assert_eq!(Document::read(format, text).unwrap().masked(&[], &["# ours"]), shown, "{text}");
        }
    }
}
