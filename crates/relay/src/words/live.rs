//! What the lines say that are rewritten in place.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "live";

    /// A model at a service.
    place(model: &str, upstream: &str) {
        en: "{model} at {upstream}";
        zh: "{upstream} 上的 {model}";
    }

    /// A line. `state` is what the messages below say together.
    line(place: &str, state: &str) {
        en: "{place}: {state}";
        zh: "{place}：{state}";
    }

    /// What has no line of its own.
    more(count: u64) {
        en: "and {more}", more = counted(count, "more lane", "more lanes");
        zh: "以及另外 {count} 条通道";
    }

    /// Why a lane is shut: no capacity.
    at_capacity() {
        en: "at capacity";
        zh: "容量已满";
    }

    /// The whole service.
    overloaded() {
        en: "overloaded";
        zh: "过载";
    }

    /// A model that is not there yet.
    being_loaded() {
        en: "being loaded";
        zh: "加载中";
    }

    /// An account that asks too often.
    throttled() {
        en: "throttled";
        zh: "被限流";
    }

    /// No answer in the usual time.
    slow() {
        en: "slow to answer";
        zh: "响应缓慢";
    }

    /// All places are taken, as far as the relay has learned.
    full(running: usize) {
        en: "full with {running} running";
        zh: "{running} 个运行中，已满";
    }

    /// How many places of those there are.
    running(running: usize, most: usize) {
        en: "{running} of {most} running";
        zh: "{running}/{most} 个运行中";
    }

    /// How fast the lane sends.
    rate(sends: &str) {
        en: "about {sends} sends a minute";
        zh: "每分钟约 {sends} 次发送";
    }

    /// Who waits.
    waiting(count: usize) {
        en: "{count} waiting";
        zh: "{count} 个等待中";
    }

    /// What the service said.
    held(span: &str) {
        en: "service asked to wait {span} more";
        zh: "服务要求再等 {span}";
    }

    /// When it is asked again.
    next_in(span: &str) {
        en: "next try in {span}";
        zh: "{span}后重试";
    }

    /// At once.
    next_now() {
        en: "next try now";
        zh: "即将重试";
    }

    /// It is being asked.
    trying() {
        en: "trying now";
        zh: "正在重试";
    }

    /// How long such times last.
    recovery(span: &str) {
        en: "usually back in about {span}";
        zh: "通常约 {span}恢复";
    }

    /// A length of time.
    seconds(count: u128) {
        en: "{count} s";
        zh: "{count} 秒";
    }

    /// A longer one.
    minutes(count: u128) {
        en: "{count} min";
        zh: "{count} 分钟";
    }

    /// The longest.
    hours(count: u128) {
        en: "{count} h";
        zh: "{count} 小时";
    }
}
