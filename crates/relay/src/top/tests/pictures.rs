//! The pictures, at several sizes, in both languages, with colour and without.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use relay_core::Lang;
use std::time::Duration;

use super::scene::{after, calls, model, page, press, seen};
use crate::running::Who;
use crate::top::Now;
use crate::top::draw::draw;
use crate::top::feed::News;
use crate::top::model::{Key, Model};

fn drawn(model: &Model, now: Now, is_coloured: bool) -> Buffer {
    let size = model.size;
    let mut terminal = Terminal::new(TestBackend::new(size.columns, size.rows)).unwrap();
    terminal.draw(|frame| draw(model, now, is_coloured, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

/// The rows as they are read.
fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y: u16| {
        let (mut row, mut covered) = (String::new(), 0);
        for x in 0..area.width {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            covered = crate::terminal::width(symbol).saturating_sub(1);
            row += symbol;
        }
        row.trim_end().to_owned()
    };
    (0..area.height).map(row).collect()
}

fn picture(model: &Model, seconds: f64) -> String {
    rows(&drawn(model, after(seconds), false)).join("\n")
}

#[test]
fn the_list_at_several_sizes_in_both_languages() {
    for lang in Lang::ALL {
        for (columns, rows) in [(80, 24), (120, 40), (40, 12), (24, 6)] {
            let model = model(lang, columns, rows);
            let name = format!("list_{}_{columns}x{rows}", lang.code());
            insta::assert_snapshot!(name, picture(&model, 0.5));
        }
    }
}

#[test]
fn details_help_and_filter() {
    for lang in Lang::ALL {
        let mut details = model(lang, 80, 24);
        press(&mut details, "j\n");
        insta::assert_snapshot!(format!("details_line_{}", lang.code()), picture(&details, 1.0));
        details.key(Key::Esc, after(1.0));
        press(&mut details, "j\n");
        insta::assert_snapshot!(format!("details_told_{}", lang.code()), picture(&details, 1.0));
        details.key(Key::Esc, after(1.0));
        press(&mut details, "jjj\n");
        insta::assert_snapshot!(format!("details_end_{}", lang.code()), picture(&details, 1.0));
        press(&mut details, "?");
        insta::assert_snapshot!(format!("help_{}", lang.code()), picture(&details, 1.0));
        let mut typed = model(lang, 80, 24);
        press(&mut typed, "/claude 容");
        insta::assert_snapshot!(format!("filter_{}", lang.code()), picture(&typed, 1.0));
        press(&mut typed, "zzz\n");
        assert!(picture(&typed, 1.0).contains("Esc"), "it says how the calls come back");
        let mut lanes = model(lang, 80, 24);
        lanes.key(Key::Tab, after(1.0));
        lanes.key(Key::Down, after(1.0));
        insta::assert_snapshot!(format!("lanes_{}", lang.code()), picture(&lanes, 1.0));
        press(&mut lanes, "\n");
        assert!(picture(&lanes, 1.0).contains("claude-容量-5"));
        assert!(!picture(&lanes, 1.0).contains("c118"));
    }
}

#[test]
fn countdowns_go_on_between_answers_and_stand_still_without() {
    let mut model = model(Lang::English, 80, 24);
    assert!(picture(&model, 0.0).contains("waits 4 s"));
    assert!(picture(&model, 1.0).contains("waits 3 s"));
    model.update(News::Lost { who: Who::Nobody, next: Duration::from_secs(4) }, after(1.0));
    let lost = picture(&model, 3.0);
    assert!(lost.contains("no answer from the relay for 3 s, next try in 2 s;"), "{lost}");
    assert!(lost.contains("waits 4 s"), "what was last seen: {lost}");
    model.update(News::Lost { who: Who::Relay, next: Duration::from_secs(8) }, after(5.0));
    assert!(picture(&model, 5.0).contains("the relay asks for another token now, next try in 8 s"));
    model.update(seen(page(), calls(), true), after(13.0));
    assert!(picture(&model, 14.0).contains("waits 3 s"));
    press(&mut model, "p");
    model.key(Key::Down, after(20.0));
    let paused = picture(&model, 30.0);
    assert!(paused.contains("PAUSED"), "{paused}");
}

#[test]
fn without_colour_none_is_used_and_all_is_said_in_words() {
    let mut lanes = model(Lang::English, 80, 24);
    lanes.key(Key::Tab, after(0.0));
    for model in [&model(Lang::English, 80, 24), &lanes] {
        let plain = drawn(model, after(0.5), false);
        assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        assert!(plain.content.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
        let coloured = drawn(model, after(0.5), true);
        assert!(coloured.content.iter().any(|cell| cell.fg == Color::Red));
        assert_eq!(rows(&plain), rows(&coloured));
        assert_eq!(rows(&plain).iter().filter(|row| row.starts_with('>')).count(), 1, "the chosen row");
    }
}

#[test]
fn the_page_shows_these_pictures_and_every_key() {
    let page = include_str!("../../../../../docs/top.md");
    let mut shown = model(Lang::English, 80, 24);
    assert!(page.contains(&picture(&shown, 0.5)), "docs/top.md has another list");
    press(&mut shown, "j\n");
    for line in picture(&shown, 1.0).lines().skip(1).take(15) {
        assert!(page.contains(line), "docs/top.md has other details: {line}");
    }
    let help = crate::words::top::help(Lang::English);
    let keys = help.lines().skip_while(|line| !line.is_empty()).skip(1).take_while(|line| !line.is_empty());
    for line in keys.filter(|line| !line.starts_with(' ')) {
        let named = line.get(..12).unwrap_or(line).split_whitespace();
        for key in named {
            assert!(page.contains(&format!("`{key}`")), "docs/top.md does not name {key}");
        }
    }
}

#[test]
fn a_relay_without_anything_says_so() {
    let mut model = Model::new(Lang::English, "127.0.0.1:8787".to_owned(), after(0.0));
    model.update(seen(serde_json::json!({"version": "0.1.0"}), Vec::new(), true), after(0.0));
    insta::assert_snapshot!("empty", picture(&model, 0.0));
    let nothing = crate::top::feed::Seen { calls: None, ..Default::default() };
    model.update(News::Seen(Box::new(nothing)), after(0.0));
    assert!(picture(&model, 0.0).contains("does not tell of single calls"));
}
