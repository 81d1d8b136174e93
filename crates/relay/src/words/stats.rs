//! What `stats` says, and the closing line of `run`.

use super::span::{counted, grouped};

relay_core::words! {
    table TABLE "stats";

    /// A part of a line: refusals.
    refusals(count: u64) {
        en: "{refusals}", refusals = counted(count, "refusal", "refusals");
        zh: "{count} 次拒绝", count = grouped(count);
    }

    /// A part: how long calls waited.
    waited(span: &str) {
        en: "{span} waited";
        zh: "共等待 {span}";
    }

    /// A part: calls that were lost.
    turns_lost(count: u64) {
        en: "{turns} lost", turns = counted(count, "turn", "turns");
        zh: "失败 {count} 次";
    }

    /// A part: sends.
    sends(count: u64) {
        en: "{sends}", sends = counted(count, "send", "sends");
        zh: "共发送 {count} 次", count = grouped(count);
    }

    /// A part: what may have cost twice.
    billed_twice(count: u64) {
        en: "{count} may have been billed twice";
        zh: "其中 {count} 次可能被重复计费";
    }

    /// Two parts.
    and(one: &str, other: &str) {
        en: "{one}, {other}";
        zh: "{one}，{other}";
    }

    /// A time and what it came to.
    in_all(span: &str, parts: &str) {
        en: "{span}: {parts}";
        zh: "{span}：{parts}";
    }

    /// The first line.
    header(from: &str, to: &str, calls: u64, sends: u64) {
        en: "{from} to {to}: {calls}, {sends}", calls = counted(calls, "call", "calls"), sends = counted(sends, "send", "sends");
        zh: "{from} 至 {to}：请求 {calls} 次，发送 {sends} 次", calls = grouped(calls), sends = grouped(sends);
    }

    /// Nothing was recorded.
    nothing(from: &str) {
        en: "no call since {from}";
        zh: "自 {from} 以来没有请求";
    }

    /// There is no run.
    no_run() {
        en: "the history has no run of a relay yet\nhint: start one with `steady-relay` or `steady-relay run -- CLIENT`";
        zh: "历史中还没有中继的运行记录\n提示：用 `steady-relay` 或 `steady-relay run -- CLIENT` 启动";
    }

    /// `--since` is none.
    bad_since(why: &str) {
        en: "the value of --since {why}\nhint: write a number and s, min, h or d, such as 12h or 7d";
        zh: "--since 的值{why}\n提示：写数字加 s、min、h 或 d，例如 12h 或 7d";
    }

    /// The name of a row: success.
    success() {
        en: "success";
        zh: "成功率";
    }

    /// What it is.
    with_without(with: &str, without: &str) {
        en: "{with} with the relay, {without} without";
        zh: "使用中继 {with}，不使用 {without}";
    }

    /// The name of a row: waits.
    extra_wait() {
        en: "extra wait";
        zh: "额外等待";
    }

    /// What they are.
    waits(calls: u64, mean: &str, p95: &str) {
        en: "{mean} on average, {p95} at the 95th percentile; {calls} waited", calls = counted(calls, "call", "calls");
        zh: "平均 {mean}，第 95 百分位 {p95}；{calls} 次请求有等待", calls = grouped(calls);
    }

    /// There are none.
    no_waits() {
        en: "no call waited";
        zh: "没有请求需要等待";
    }

    /// The name of a row: sends.
    sends_row() {
        en: "sends";
        zh: "发送";
    }

    /// How many for each success.
    per_success(sends: &str) {
        en: "{sends} for each call that was served";
        zh: "每次成功的请求平均发送 {sends} 次";
    }

    /// The name of a row: saved.
    saved() {
        en: "saved";
        zh: "挽回";
    }

    /// What it is.
    calls_saved(calls: u64) {
        en: "{calls}: the first send failed, and the client was served", calls = counted(calls, "call", "calls");
        zh: "{calls} 次请求：首次发送失败，最终成功", calls = grouped(calls);
    }

    /// The name of a row: not served.
    not_served() {
        en: "not served";
        zh: "未成功";
    }

    /// What became of them.
    unserved(lost: &str, returned: &str, broken: &str, left: &str) {
        en: "{lost} lost, {returned} handed back, {broken} broken off, {left} left by their client";
        zh: "失败 {lost} 次，原样返回 {returned} 次，中断 {broken} 次，客户端离开 {left} 次";
    }

    /// The name of a row: definite errors.
    errors() {
        en: "errors";
        zh: "错误";
    }

    /// What they are.
    passed(count: u64) {
        en: "{errors} of the services, passed on; not in the rates above", errors = counted(count, "definite error", "definite errors");
        zh: "服务的确定错误 {count} 次，已原样转交；不计入上面的比率", count = grouped(count);
    }

    /// The name of a row: what may have cost twice.
    billing() {
        en: "billing";
        zh: "计费";
    }

    /// What it is.
    calls_billed_twice(calls: u64) {
        en: "{calls} may have been billed twice", calls = counted(calls, "call", "calls");
        zh: "{calls} 次请求可能被重复计费", calls = grouped(calls);
    }

    /// The name of a row: tokens.
    tokens() {
        en: "tokens";
        zh: "token 数";
    }

    /// What was served.
    tokens_served(input: &str, cached: &str, output: &str) {
        en: "{input} in ({cached} of them cached), {output} out";
        zh: "输入 {input}（其中缓存 {cached}），输出 {output}";
    }

    /// What was not.
    tokens_failed(input: &str, output: &str) {
        en: "{input} in, {output} out on failed attempts";
        zh: "失败的尝试：输入 {input}，输出 {output}";
    }

    /// The name of a row: calls that go on.
    open() {
        en: "open";
        zh: "未结束";
    }

    /// What they are.
    calls_open(calls: u64) {
        en: "{calls} without an end: under way, or cut short with their relay", calls = counted(calls, "call", "calls");
        zh: "{calls} 次请求没有结果：仍在进行，或随中继一起中止", calls = grouped(calls);
    }

    /// A column: calls.
    column_calls() {
        en: "calls";
        zh: "请求";
    }

    /// A column: success.
    column_success() {
        en: "success";
        zh: "成功率";
    }

    /// A column: success without.
    column_without() {
        en: "without";
        zh: "无中继";
    }

    /// A column: the mean wait.
    column_wait() {
        en: "mean wait";
        zh: "平均等待";
    }

    /// A column: saved.
    column_saved() {
        en: "saved";
        zh: "挽回";
    }

    /// A column: lost.
    column_lost() {
        en: "lost";
        zh: "失败";
    }

    /// A column: sends.
    column_sends() {
        en: "sends";
        zh: "发送";
    }

    /// A column: the share of sends that was refused for want of capacity.
    column_refused() {
        en: "refused";
        zh: "被拒绝";
    }

    /// A column: calls that came from another upstream.
    column_moved_here() {
        en: "moved here";
        zh: "转入";
    }

    /// A column: calls that went on at another one.
    column_moved_away() {
        en: "moved away";
        zh: "转出";
    }

    /// The names of the columns of names.
    by_hour() {
        en: "hour";
        zh: "时段";
    }

    /// By model.
    by_model() {
        en: "model";
        zh: "模型";
    }

    /// By upstream.
    by_upstream() {
        en: "upstream";
        zh: "上游";
    }

    /// By client.
    by_client() {
        en: "client";
        zh: "客户端";
    }

    /// Above a map of hours.
    map(model: &str) {
        en: "{model}: % of sends refused for want of capacity, by local hour";
        zh: "{model}：因容量不足被拒绝的发送占比（%），按本地时间";
    }

    /// The same of a few hours alone, which are messages below.
    few_hours(model: &str, hours: &str) {
        en: "{model}: sends refused for want of capacity, by local hour: {hours}";
        zh: "{model}：因容量不足被拒绝的发送，按本地时间：{hours}";
    }

    /// One of them.
    hour_of(day: &str, hour: &str, share: &str) {
        en: "{day} {hour} {share}";
        zh: "{day} {hour}：{share}";
    }

    /// Between them.
    comma() {
        en: ", ";
        zh: "，";
    }

    /// How to read it.
    legend() {
        en: "`.` none refused, blank: nothing sent";
        zh: "`.` 无拒绝，空白：没有发送";
    }

    /// Models without a map.
    more_models(count: u64) {
        en: "{more} refused sends, too; --json has all", more = counted(count, "more model", "more models");
        zh: "另有 {count} 个模型也有拒绝；--json 列出全部";
    }

    /// There is no map at all.
    no_refusals() {
        en: "No send was refused for want of capacity.";
        zh: "没有发送因容量不足被拒绝。";
    }

    /// Some hours of the day.
    hours(from: &str, to: &str, share: &str) {
        en: "{from} to {to} ({share} of sends refused)";
        zh: "{from} 至 {to}（{share} 的发送被拒绝）";
    }

    /// When it is best. Both are some hours.
    best(quiet: &str, busy: &str) {
        en: "best for long jobs: {quiet}; worst: {busy}";
        zh: "适合长任务的时段：{quiet}；最差的时段：{busy}";
    }

    /// All are the same.
    even(share: &str) {
        en: "best for long jobs: no hour is better than another ({share} of sends refused)";
        zh: "适合长任务的时段：各时段差别不大（{share} 的发送被拒绝）";
    }

    /// Too little is known.
    unknown(known: u64, needed: u64) {
        en: "best for long jobs: too little is known to say ({known} of {needed} hours of the day)";
        zh: "适合长任务的时段：数据太少，无法判断（一天中仅 {known}/{needed} 个小时有足够数据）";
    }

    /// Days of the week.
    monday() {
        en: "Mon";
        zh: "周一";
    }

    /// The next one.
    tuesday() {
        en: "Tue";
        zh: "周二";
    }

    /// The next one.
    wednesday() {
        en: "Wed";
        zh: "周三";
    }

    /// The next one.
    thursday() {
        en: "Thu";
        zh: "周四";
    }

    /// The next one.
    friday() {
        en: "Fri";
        zh: "周五";
    }

    /// The next one.
    saturday() {
        en: "Sat";
        zh: "周六";
    }

    /// The next one.
    sunday() {
        en: "Sun";
        zh: "周日";
    }
}
