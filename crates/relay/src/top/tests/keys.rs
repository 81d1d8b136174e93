//! What keys do; and that no sequence of keys and news leads astray.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use relay_core::Lang;

use super::scene::{after, calls, model, page, press, seen};
use crate::running::Who;
use crate::top::draw::draw;
use crate::top::feed::News;
use crate::top::model::{Asked, Focus, Key, MOST, Mode, Model};
use crate::top::rows::Sort;

fn listed(model: &Model) -> Vec<u64> {
    model.rows(after(0.5)).iter().map(|row| row.record.call).collect()
}

fn chosen(model: &Model) -> Option<u64> {
    let rows = model.rows(after(0.5));
    model.call_index(&rows).map(|at| rows[at].record.call)
}

#[test]
fn the_filter_lists_what_has_all_its_words() {
    let mut model = model(Lang::English, 80, 24);
    press(&mut model, "/GPT-x gave");
    assert_eq!(listed(&model), [115], "while it is typed");
    model.key(Key::Backspace, after(0.5));
    press(&mut model, "\n");
    assert_eq!((model.filter.as_str(), &model.mode), ("GPT-x gav", &Mode::List));
    press(&mut model, "/");
    model.key(Key::Clear, after(0.5));
    press(&mut model, "waiting");
    assert_eq!(listed(&model), [118, 117]);
    model.key(Key::Esc, after(0.5));
    assert_eq!(listed(&model), [115], "as it was before");
    model.key(Key::Esc, after(0.5));
    assert_eq!(listed(&model).len(), calls().len());
    press(&mut model, "/q?ps");
    assert_eq!(model.filter, "q?ps", "letters are letters");
    press(&mut model, &"x".repeat(500));
    assert_eq!(model.filter.len(), 60);
}

#[test]
fn views_and_orders() {
    let mut model = model(Lang::English, 80, 24);
    assert_eq!(listed(&model)[..4], [120, 118, 117, 119], "open ones first, then the newest");
    press(&mut model, "2");
    assert_eq!(listed(&model), [120, 118, 117]);
    press(&mut model, "3");
    assert_eq!(listed(&model), [118, 117, 116, 115, 114]);
    press(&mut model, "4");
    assert_eq!(listed(&model), [115, 114]);
    press(&mut model, "1s");
    assert_eq!(listed(&model)[..3], [120, 119, 118]);
    press(&mut model, "s");
    assert_eq!(listed(&model)[..4], [115, 116, 118, 114], "by sends");
    press(&mut model, "s");
    assert_eq!(listed(&model)[..4], [115, 117, 116, 118], "by waits; those that go on count");
    press(&mut model, "s");
    assert_eq!(model.sort, Sort::Model);
    assert_eq!(listed(&model)[0], 117);
    press(&mut model, "s");
    assert_eq!(model.sort, Sort::OpenFirst);
}

#[test]
fn a_chosen_call_stays_chosen_and_is_shown_with_its_timeline() {
    let mut model = model(Lang::English, 80, 24);
    assert_eq!(chosen(&model), Some(120));
    press(&mut model, "jj");
    assert_eq!(chosen(&model), Some(117));
    let mut more = calls();
    more[0].call = 130;
    model.update(seen(page(), vec![more[0].clone()], false), after(1.0));
    assert_eq!((listed(&model)[0], chosen(&model)), (130, Some(117)));
    press(&mut model, "\n");
    assert!(matches!(model.mode, Mode::Details { call: 117, .. }));
    model.update(seen(page(), vec![more[0].clone()], true), after(2.0));
    assert_eq!(model.text(after(2.0)), ["c117 is not among the calls that are kept any more"]);
    press(&mut model, "\n");
    assert_eq!((&model.mode, chosen(&model)), (&Mode::List, Some(130)));
    for key in [Key::End, Key::Home] {
        model.key(key, after(2.0));
    }
    more[1].call = 131;
    model.update(seen(page(), vec![more[1].clone()], false), after(3.0));
    assert_eq!(chosen(&model), Some(131), "the first stays the first");
}

#[test]
fn keys_ask_for_what_is_outside() {
    let mut model = model(Lang::English, 80, 24);
    let mut key = |key| model.key(key, after(0.5));
    assert_eq!(key(Key::Char('p')), Asked::Pause(true));
    assert_eq!(key(Key::Char('p')), Asked::Pause(false));
    assert_eq!(key(Key::Suspend), Asked::Suspend);
    assert_eq!(key(Key::Redraw), Asked::Redraw);
    assert_eq!(key(Key::Char('x')), Asked::Nothing);
    assert_eq!(key(Key::Char('q')), Asked::Leave);
    assert_eq!(key(Key::Char('?')), Asked::Nothing);
    assert_eq!(key(Key::Char('q')), Asked::Leave, "from everywhere");
    assert_eq!(key(Key::Interrupt), Asked::Interrupted);
}

#[test]
fn a_lane_that_is_gone_hides_nothing() {
    let mut model = model(Lang::English, 80, 24);
    model.key(Key::Tab, after(0.5));
    press(&mut model, "\n");
    assert_eq!((model.lane.as_deref(), model.focus), (Some("c3"), Focus::Calls));
    assert_eq!(listed(&model), [118, 116, 115, 114]);
    model.update(seen(serde_json::json!({}), calls(), true), after(1.0));
    assert_eq!((model.lane.as_deref(), listed(&model).len()), (None, calls().len()));
}

#[test]
fn calls_that_ended_go_first_where_there_are_too_many() {
    let mut model = model(Lang::English, 80, 24);
    let one = calls().pop().unwrap();
    let many =
        (1_000..1_000 + MOST as u64).map(|call| crate::history::record::CallRecord { call, ..one.clone() });
    model.update(seen(page(), many.collect(), false), after(1.0));
    assert_eq!(model.calls.len(), MOST);
    assert!(model.calls.contains_key(&118) && !model.calls.contains_key(&119));
    let open = calls().swap_remove(0);
    let many = (9_000..9_000 + 2 * MOST as u64)
        .map(|call| crate::history::record::CallRecord { call, ..open.clone() });
    model.update(seen(page(), many.collect(), false), after(2.0));
    assert_eq!(model.calls.len(), MOST, "open ones are bounded, too");
}

#[derive(Debug, Clone)]
enum Act {
    Key(Key),
    Size(u16, u16),
    Calls(Vec<usize>, bool, usize),
    Empty,
    Lost,
}

fn acts() -> impl Strategy<Value = Act> {
    let letters = prop::sample::select("q?/sp1234jk容 gx\u{7}".chars().collect::<Vec<_>>());
    let others = prop::sample::select(vec![
        Key::Enter,
        Key::Esc,
        Key::Backspace,
        Key::Tab,
        Key::Up,
        Key::Down,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Clear,
    ]);
    prop_oneof![
        4 => letters.prop_map(|sign| Act::Key(Key::Char(sign))),
        6 => others.prop_map(Act::Key),
        1 => (0..130_u16, 0..50_u16).prop_map(|(columns, rows)| Act::Size(columns, rows)),
        3 => (prop::collection::vec(0..40_usize, 0..8), any::<bool>(), 0..5_usize)
            .prop_map(|(calls, anew, lanes)| Act::Calls(calls, anew, lanes)),
        1 => Just(Act::Empty),
        1 => Just(Act::Lost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_keys_and_news_leads_astray(acts in prop::collection::vec(acts(), 0..60), zh in any::<bool>()) {
        let lang = if zh { Lang::Chinese } else { Lang::English };
        let mut model = model(lang, 80, 24);
        let all = calls();
        for (step, act) in acts.into_iter().enumerate() {
            let now = after(f64::from(u32::try_from(step).unwrap()));
            match act {
                Act::Key(key) => drop(model.key(key, now)),
                Act::Size(columns, rows) => model.sized(columns, rows, now),
                Act::Calls(some, anew, lanes) => {
                    let mut page = page();
                    page["lanes"].as_array_mut().unwrap().truncate(lanes);
                    let some = some.into_iter().filter_map(|at| all.get(at).cloned()).collect();
                    model.update(seen(page, some, anew), now);
                }
                Act::Empty => model.update(seen(serde_json::Value::Null, Vec::new(), true), now),
                Act::Lost => {
                    model.update(News::Lost { who: Who::Nobody, next: Duration::from_secs(2) }, now);
                }
            }
            let rows = model.rows(now);
            prop_assert_eq!(model.call_index(&rows).is_some(), !rows.is_empty());
            prop_assert!(model.call_index(&rows).is_none_or(|at| at < rows.len()));
            prop_assert!(model.lane_index().is_none_or(|at| at < model.page.lanes.len()));
            if let Mode::Details { scroll, .. } | Mode::Help { scroll, .. } = model.mode {
                prop_assert!(scroll == 0 || scroll + model.text_room() <= model.text(now).len());
            }
            prop_assert!(model.calls.len() <= MOST);
            let mut buffer = Buffer::empty(Rect::new(0, 0, model.size.columns, model.size.rows));
            draw(&model, now, true, &mut buffer);
        }
    }
}
