//! Plain output: no colour where none is wanted, no line wider than 80 columns.

use unicode_width::UnicodeWidthStr as _;

use crate::support::{Home, verbs};

const LANGS: [&str; 2] = ["en", "zh"];

/// Lines that are too wide, but for those of which one word alone is.
fn too_wide(text: &str, columns: usize) -> Vec<&str> {
    let can_break = |line: &&str| {
        // Headings and the usage are not broken.
        let is_heading = line.starts_with(|sign: char| !sign.is_whitespace())
            && (line.ends_with([':', '：']) || line.starts_with("Usage: "));
        let leading = line.len() - line.trim_start().len();
        !is_heading && line.split_whitespace().all(|word| leading + word.width() <= columns)
    };
    text.lines().filter(|line| line.width() > columns).filter(can_break).collect()
}

#[test]
fn help_is_plain_in_a_pipe_and_fits_80_columns_and_40() {
    let home = Home::new();
    for verb in verbs() {
        for lang in LANGS {
            for flag in ["-h", "--help"] {
                let line: Vec<_> = verb.iter().map(String::as_str).chain(["--lang", lang, flag]).collect();
                let said = home.run(&line, &[]).out;
                assert!(!said.contains('\x1b'), "{line:?}: {said:?}");
                let wide: Vec<_> = said.lines().filter(|line| line.width() > 80).collect();
                assert!(wide.is_empty(), "{line:?}: {wide:#?}");
                let narrow = home.run(&line, &[("COLUMNS", "40")]).out;
                let wide = too_wide(&narrow, 40);
                assert!(wide.is_empty(), "{line:?} at 40 columns: {wide:#?}");
            }
        }
    }
}

#[test]
fn what_is_printed_is_plain_in_a_pipe() {
    let home = Home::new();
    let lines: [&[&str]; 9] = [
        &["config", "show", "--origin"],
        &["config", "check"],
        &["config", "path"],
        &["config", "schema"],
        &["config", "check", "none.toml"],
        &["config", "test-rule", "none.http"],
        &["--no-such-flag"],
        &["completions", "bash"],
        &["man"],
    ];
    for line in lines {
        for lang in LANGS {
            let said = home.run(&[line, &["--lang", lang]].concat(), &[]).all();
            assert!(!said.is_empty() && !said.contains('\x1b'), "{line:?}: {said:?}");
        }
    }
    let relay = home.serve(&["--lang", "zh"], &[]);
    assert!(!relay.said.contains('\x1b'), "{}", relay.said);
}

#[test]
fn the_demo_fits_in_both_languages() {
    let home = Home::new();
    for lang in LANGS {
        let said = home.run(&["demo", "--quick", "--lang", lang], &[]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let wide: Vec<_> =
            said.out.lines().chain(said.err.lines()).filter(|line| line.width() > 80).collect();
        assert!(wide.is_empty() && !said.all().contains('\x1b'), "{wide:#?}");
    }
}

#[test]
fn colour_comes_where_it_is_asked_for() {
    let home = Home::new();
    let coloured =
        |line: &[&str], variables: &[(&str, &str)]| home.run(line, variables).all().contains('\x1b');
    const FORCE: (&str, &str) = ("CLICOLOR_FORCE", "1");
    for lang in LANGS {
        let speaks = ["--lang", lang];
        for line in [["--help"], ["--no-such-flag"]] {
            let with = |more: &[&'static str]| [more, &speaks, &line].concat();
            assert!(!coloured(&with(&[]), &[]), "{lang} {line:?}");
            assert!(!coloured(&with(&["--color", "auto"]), &[("TERM", "dumb")]));
            assert!(coloured(&with(&["--color", "always"]), &[("NO_COLOR", "1")]));
            assert!(coloured(&with(&[]), &[FORCE]));
            assert!(!coloured(&with(&["--color", "never"]), &[FORCE]));
            assert!(!coloured(&with(&[]), &[("NO_COLOR", "1")]));
        }
    }
    let said = home.run(&["--color", "blue"], &[]);
    assert!(said.code == Some(2) && said.err.contains("[possible values: auto, always, never]"), "{said:?}");
    // What is data has no colour in any case.
    assert!(!coloured(&["config", "show", "--color", "always"], &[FORCE]));
}
