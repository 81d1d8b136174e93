//! What is said of calls that are held, wherever it is shown.

relay_core::words! {
    table TABLE "held";

    /// A model, or a service, that has no room.
    is_at_capacity(model: &str) {
        en: "{model} at capacity";
        zh: "{model} 容量已满";
    }

    /// One that has too much to do.
    is_overloaded(model: &str) {
        en: "{model} overloaded";
        zh: "{model} 过载";
    }

    /// One that is not ready yet.
    is_loading(model: &str) {
        en: "{model} being loaded";
        zh: "{model} 正在加载";
    }

    /// One that limits us.
    is_throttled(model: &str) {
        en: "{model} throttled";
        zh: "{model} 被限流";
    }

    /// One that fails otherwise.
    is_failing(model: &str) {
        en: "{model} fails";
        zh: "{model} 出现故障";
    }

    /// One at which others wait before us.
    is_busy(model: &str) {
        en: "{model} is busy";
        zh: "{model} 繁忙";
    }

    /// A held call: what is the matter, for how long, and when it is tried next.
    held_next(what: &str, held: &str, next: &str) {
        en: "{what}, held {held}, next try in {next}";
        zh: "{what}，已等待 {held}，{next}后重试";
    }

    /// The same, while it is tried.
    held_trying(what: &str, held: &str) {
        en: "{what}, held {held}, trying now";
        zh: "{what}，已等待 {held}，正在重试";
    }

    /// The same, where others come first.
    held_in_line(what: &str, held: &str) {
        en: "{what}, held {held}, waits for its turn";
        zh: "{what}，已等待 {held}，正在排队";
    }

    /// A span of time.
    seconds(seconds: u64) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// A longer one.
    minutes(minutes: u64) {
        en: "{minutes} min";
        zh: "{minutes} 分钟";
    }

    /// The title of a notice on the desktop.
    holds() {
        en: "Steady Relay holds a request";
        zh: "Steady Relay 正在保持一个请求";
    }

    /// The title of the notice after it.
    is_over() {
        en: "Steady Relay: the wait is over";
        zh: "Steady Relay：等待已结束";
    }

    /// What that one says of a model, or a service.
    none_held(name: &str, held: &str) {
        en: "{name}: nothing is held any more, after {held}";
        zh: "{name}：等待了 {held}，现已没有请求被保持";
    }

    /// How many more things a notice has no room for.
    more(lines: usize) {
        en: "and {lines} more";
        zh: "另有 {lines} 项";
    }

    /// Whoever was pointed at a relay for good sees little of it: where to look.
    how_to_see() {
        en: "to see what it holds: `steady-relay status`";
        zh: "查看被保持的请求：`steady-relay status`";
    }

    /// The same, where the desktop is told as well.
    how_to_see_beside_notices() {
        en: "to see what it holds: `steady-relay status`; the desktop says so too before 20 s are over";
        zh: "查看被保持的请求：`steady-relay status`；等待接近 20 秒时还会显示桌面通知";
    }

    /// Why nobody is told: no program can reach a desktop.
    no_session_bus() {
        en: "this program was started outside of any desktop session";
        zh: "本程序不是在桌面会话中启动的";
    }

    /// Why nobody is told: a program did not do it. `why` is what it said.
    not_shown(program: &str, why: &str) {
        en: "{program}: {why}";
        zh: "{program}：{why}";
    }

    /// Why nobody is told: the program stands still.
    stands_still(program: &str) {
        en: "{program} did not end";
        zh: "{program} 没有结束";
    }

    /// To the log, once: nobody is told. `why` is a message of this table.
    nobody_told(why: &str) {
        en: "calls are held, and no desktop shows a notice of it: {why}; `steady-relay status` says what is held, and `desktop = \"off\"` below [waiting] ends the tries";
        zh: "有请求被保持，但无法显示桌面通知：{why}；`steady-relay status` 可查看被保持的请求，在 [waiting] 下设置 `desktop = \"off\"` 可不再尝试";
    }
}
