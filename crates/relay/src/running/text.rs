//! The status page for people, at 80 columns. Pure: a page in, a text out. The page may be one of another version, so
//! what is missing is left out.

use relay_core::{Lang, plain};
use serde_json::Value;

use crate::terminal;
use crate::words::status as words;

/// The widest line.
const COLUMNS: usize = 80;
/// The most calls, and the most lanes, that are listed.
const MOST: usize = 20;

/// The page as a text, for the relay at this address.
#[must_use]
pub fn page(lang: Lang, address: &str, page: &Value) -> String {
    let totals = &page["totals"];
    let count = |key: &str| totals[key].as_u64().unwrap_or(0);
    let text = |key: &str| page[key].as_str().unwrap_or("?").to_owned();
    let mut lines = vec![
        words::opening(lang, &text("version"), address, &span(lang, page["uptime_s"].as_f64())),
        words::calls(
            lang,
            count("calls"),
            count("calls_saved"),
            count("calls_lost"),
            count("calls_handed_back"),
        ),
        words::sends(lang, count("sends"), count("waits"), &span(lang, totals["waited_s"].as_f64())),
    ];
    let odd = [
        ("requests_refused", words::refused as fn(Lang, u64) -> String),
        ("streams_cut", words::cut),
        ("maybe_billed_twice", words::billed_twice),
    ];
    lines.extend(odd.iter().filter(|(key, _)| count(key) > 0).map(|(key, say)| say(lang, count(key))));
    let open = page["open_calls"].as_array().map_or(&[][..], Vec::as_slice);
    lines.push(words::open(lang, open.len() as u64));
    lines.extend(open.iter().take(MOST).map(|call| format!("  {}", call_line(lang, call))));
    let lanes = page["lanes"].as_array().map_or(&[][..], Vec::as_slice);
    let busy: Vec<_> = lanes
        .iter()
        .filter(|lane| {
            lane["state"] == "shut" || lane["waiting"] != 0 || is_cut_off(lane) || held(lane).is_some()
        })
        .collect();
    lines.push(words::lanes(lang, lanes.len() as u64, busy.len() as u64));
    lines.extend(busy.iter().take(MOST).map(|lane| format!("  {}", lane_line(lang, lane))));
    let warming = page["warming"].as_array().map_or(&[][..], Vec::as_slice);
    if !warming.is_empty() {
        lines.push(words::warming(lang));
    }
    lines.extend(warming.iter().take(MOST).map(|warm| {
        let text = |key: &str| warm[key].as_str().unwrap_or("-");
        let who = format!("{} {}", text("upstream"), text("model"));
        words::warm(lang, &who, text("state"), warm["tries"].as_u64().unwrap_or(0))
    }));
    let ways = page["ways_left"].as_array().map_or(&[][..], Vec::as_slice);
    if !ways.is_empty() {
        lines.push(words::ways_left(lang));
    }
    lines.extend(ways.iter().take(MOST).map(|way| {
        let text = |key: &str| way[key].as_str().unwrap_or("-");
        let since = span(lang, way["left_for_s"].as_f64());
        words::way_left(lang, text("upstream"), text("by"), text("why"), &since)
    }));
    // Of one that works nobody has to hear.
    let credentials = page["credentials"].as_array().map_or(&[][..], Vec::as_slice);
    let troubled = credentials.iter().filter(|one| one["why"].is_string()).take(MOST);
    lines.extend(troubled.flat_map(|one| {
        let told = words::credential(lang, one["name"].as_str().unwrap_or("-"), &state(one));
        broken(&told)
    }));
    let more = open.len().saturating_sub(MOST) + busy.len().saturating_sub(MOST);
    if more > 0 {
        lines.push(words::more(lang, more as u64));
    }
    lines.iter().map(|line| clipped(line)).collect::<Vec<_>>().join("\n")
}

fn call_line(lang: Lang, call: &Value) -> String {
    let text = |key: &str| call[key].as_str().unwrap_or("-");
    let who = format!("{} {} {} {}", text("id"), text("client"), text("upstream"), text("model"));
    let state = match call["next_send_in_s"].as_f64() {
        Some(next) => words::next_in(lang, &state(call), &span(lang, Some(next))),
        None => state(call),
    };
    words::call(lang, &who, &state, call["sends"].as_u64().unwrap_or(0), &span(lang, call["age_s"].as_f64()))
}

/// The state, with what is waited out.
fn state(of: &Value) -> String {
    let why = ["held_by", "fault", "why"].iter().find_map(|key| of[*key].as_str());
    let state = of["state"].as_str().unwrap_or("-");
    why.map_or_else(|| state.to_owned(), |why| format!("{state} ({why})"))
}

/// Whether a breaker holds what would be sent there.
fn is_cut_off(lane: &Value) -> bool {
    matches!(lane["circuit"].as_str(), Some("open" | "half_open"))
}

/// For how long its service asked to be left alone.
fn held(lane: &Value) -> Option<f64> {
    lane["held_for_s"].as_f64().filter(|left| *left > 0.0)
}

fn lane_line(lang: Lang, lane: &Value) -> String {
    let text = |key: &str| lane[key].as_str().unwrap_or("-");
    let who = format!("{} {}", text("upstream"), text("model"));
    if is_cut_off(lane) {
        let left = lane["circuit_open_for_s"].as_f64();
        return words::lane_cut_off(lang, &who, left.map(|left| span(lang, Some(left))).as_deref());
    }
    match (lane["waiting"].as_u64().unwrap_or(0), lane["next_send_in_s"].as_f64()) {
        // A parked lane has its time whether anybody waits for it or not.
        (0, _) => match (lane["parked_for_s"].as_f64(), held(lane)) {
            (Some(parked), _) => {
                let state = words::next_in(lang, &state(lane), &span(lang, Some(parked)));
                words::lane(lang, &who, &state, 0)
            }
            (None, Some(left)) => words::lane_held(lang, &who, &state(lane), &span(lang, Some(left))),
            (None, None) => words::lane_unasked(lang, &who, &state(lane)),
        },
        (waiting, None) => words::lane(lang, &who, &state(lane), waiting),
        (waiting, Some(0.0)) => words::lane_due(lang, &who, &state(lane), waiting),
        (waiting, Some(next)) => words::lane_next(lang, &who, &state(lane), waiting, &span(lang, Some(next))),
    }
}

/// A span as one says it.
pub(crate) fn span(lang: Lang, seconds: Option<f64>) -> String {
    let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0) else {
        return "?".to_owned();
    };
    let whole = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    match whole {
        0..60 => words::seconds(lang, (seconds * 10.0).round() / 10.0),
        60..3600 => words::minutes(lang, whole / 60, whole % 60),
        3600..86_400 => words::hours(lang, whole / 3600, whole % 3600 / 60),
        _ => words::days(lang, whole / 86_400, whole % 86_400 / 3600),
    }
}

/// As much of a line as fits, with a sign where that is not all.
fn clipped(line: &str) -> String {
    let line = plain::line(line);
    if terminal::width(&line) <= COLUMNS {
        return line.into_owned();
    }
    format!("{}…", terminal::fitting(&line, Some(COLUMNS)))
}

/// A line of which all matters, such as how to mend something, in as many as it takes.
fn broken(line: &str) -> Vec<String> {
    const HANG: usize = 4;
    let wrapped = terminal::wrapped(&plain::line(line), COLUMNS - HANG);
    let hung = |(at, line): (usize, &str)| format!("{:1$}{line}", "", if at == 0 { 0 } else { HANG });
    wrapped.lines().enumerate().map(hung).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn busy() -> Value {
        json!({
            "v": 1, "version": "0.1.0", "uptime_s": 11_520.4,
            "totals": {"calls": 120, "sends": 171, "waits": 52, "waited_s": 603.2, "calls_saved": 14, "calls_lost": 1,
                       "calls_handed_back": 0, "requests_refused": 2, "streams_cut": 0, "maybe_billed_twice": 1},
            "open_calls": [{"id": "c118", "client": "codex", "upstream": "openai", "model": "gpt-x", "state": "waiting",
                            "fault": "at_capacity", "next_send_in_s": 4.2, "sends": 2, "age_s": 12.0}],
            "lanes": [{"upstream": "openai", "model": "gpt-x", "state": "shut", "why": "at_capacity", "waiting": 6,
                       "next_send_in_s": 4.2},
                      {"upstream": "openai", "model": "gpt-z", "state": "shut", "why": "slow", "waiting": 0},
                      {"upstream": "openai", "model": "gpt-y", "state": "open", "why": null, "waiting": 0},
                      {"upstream": "first", "model": "gpt-y", "state": "open", "waiting": 0, "circuit": "open",
                       "circuit_open_for_s": 12.3},
                      {"upstream": "second", "model": null, "state": "open", "waiting": 0, "circuit": "half_open"}],
            "warming": [{"upstream": "home", "model": "llama3", "state": "loading", "tries": 1}],
            "ways_left": [{"upstream": "api.example:443", "by": "http://p.example:3128", "why": "refused",
                           "left_for_s": 12.34}],
            "credentials": [{"name": "team", "state": "failed", "why": "it is over"},
                            {"name": "mine", "state": "renewed", "why": null}]
        })
    }

    #[test]
    fn the_page_for_people() {
        insta::assert_snapshot!(page(Lang::English, "127.0.0.1:8787", &busy()), @r"
        Steady Relay 0.1.0 at 127.0.0.1:8787, up for 3 h 12 min
        calls: 120, of them 14 saved, 1 lost, 0 handed back
        sends: 171, with 52 waits, 10 min 3 s in all
        requests turned away by the relay: 2
        sends that may have been billed twice: 1
        open calls: 1
          c118 codex openai gpt-x: waiting (at_capacity), next in 4.2 s, 2 sends, 12 s
        lanes: 5, 4 of them shut, paused, cut off or with calls that wait
          openai gpt-x: shut (at_capacity), 6 waiting, the next is sent in 4.2 s
          openai gpt-z: shut (slow) when last asked, nobody waits
          first gpt-y: failed too often (breaker open), tried again in 12.3 s
          second -: failed too often (breaker open), the next call tries it
        models that were warmed:
          home llama3: loading, tries 1
        ways to services that failed, and are left until they work again:
          api.example:443 (http://p.example:3128): refused, 12.3 s ago
        credential team: failed (it is over)
        ");
    }

    #[test]
    fn a_parked_lane_counts_down_though_nobody_waits() {
        let mut page = busy();
        page["lanes"][1] = json!({"upstream": "chatgpt", "model": "gpt-y", "state": "shut", "why": "quota_spent",
                                  "waiting": 0, "next_send_in_s": null, "parked_for_s": 7260.0});
        let text = super::page(Lang::English, "a", &page);
        assert!(text.contains("  chatgpt gpt-y: shut (quota_spent), next in 2 h 1 min, 0 waiting"), "{text}");
    }

    #[test]
    fn a_lane_that_is_held_is_listed_with_how_long_though_it_is_open_and_nobody_waits() {
        let mut page = busy();
        page["lanes"] = json!([
            {"upstream": "openai", "model": "gpt-y", "state": "open", "waiting": 0, "held_for_s": 245.0},
            {"upstream": "openai", "model": "gpt-z", "state": "shut", "why": "slow", "waiting": 0, "held_for_s": 3.2},
            {"upstream": "openai", "model": "gpt-0", "state": "open", "waiting": 0, "held_for_s": 0.0}
        ]);
        let text = super::page(Lang::English, "a", &page);
        assert!(text.contains("lanes: 3, 2 of them shut, paused, cut off"), "{text}");
        for line in [
            "  openai gpt-y: open, paused for 4 min 5 s more, as the service asked",
            "  openai gpt-z: shut (slow), paused for 3.2 s more, as the service asked",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let text = super::page(Lang::Chinese, "a", &page);
        assert!(text.contains("  openai gpt-y：open，应服务要求再暂停 4 分 5 秒"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_name_moves_its_cursor() {
        let mut page = busy();
        page["open_calls"][0]["model"] = json!(format!("\u{1b}[2J{}", "m🚀".repeat(100)));
        page["open_calls"] = json!(vec![page["open_calls"][0].clone(); 30]);
        for lang in Lang::ALL {
            let text = super::page(lang, "127.0.0.1:8787", &page);
            assert!(!text.contains('\u{1b}'));
            for line in text.lines() {
                assert!(terminal::width(line) <= 80, "{line}");
            }
            let calls: Vec<_> = text.lines().filter(|line| line.contains("c118")).collect();
            assert_eq!((calls.len(), calls.iter().all(|line| line.ends_with('…'))), (MOST, true));
        }
        assert!(super::page(Lang::English, "a", &page).ends_with("and 10 more"));
    }

    #[test]
    fn what_is_wrong_with_a_credential_is_told_whole() {
        let mut page = busy();
        let why = "https://auth.example refuses: 400 invalid_grant; a new refresh token, or other settings of the \
                   credential, are needed";
        page["credentials"][0] = json!({"name": "team", "state": "failed_for_good", "why": why});
        let text = super::page(Lang::English, "a", &page);
        let told = &text[text.find("credential team").unwrap()..];
        insta::assert_snapshot!(told, @r"
        credential team: failed_for_good (https://auth.example refuses: 400
            invalid_grant; a new refresh token, or other settings of the credential, are
            needed)
        ");
        page["credentials"][0]["why"] = json!(format!("{} {}", "令牌已经失效".repeat(9), "x".repeat(99)));
        let text = super::page(Lang::Chinese, "a", &page);
        assert!(text.lines().all(|line| terminal::width(line) <= 80), "{text}");
        assert_eq!(text.matches("失效").count(), 9, "{text}");
        assert!(text.contains("xx…"), "{text}");
    }

    #[test]
    fn a_page_of_another_version_is_no_trouble() {
        for odd in [json!({}), json!({"totals": 3, "open_calls": {}, "lanes": [1, null]}), Value::Null] {
            assert!(page(Lang::English, "a", &odd).starts_with("Steady Relay ? at a"), "{odd}");
        }
    }
}
