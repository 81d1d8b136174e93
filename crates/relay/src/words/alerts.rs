//! What alerts say, and what is said of their delivery.

relay_core::words! {
    table TABLE "alerts";

    /// The title of a notice on the desktop.
    title() {
        en: "Steady Relay: alert";
        zh: "Steady Relay 告警";
    }

    /// A model and where it is asked.
    model_at(model: &str, upstream: &str) {
        en: "{model} at {upstream}";
        zh: "{upstream} 的 {model}";
    }

    /// A lane is closed; `fault` is a name of the log.
    lane_closed(who: &str, span: &str, fault: &str) {
        en: "{who} has taken no calls for {span} ({fault})";
        zh: "{who} 已有 {span}不接受请求（{fault}）";
    }

    /// It is open.
    lane_open(who: &str, span: &str) {
        en: "{who} is open again, after {span}";
        zh: "{span}后，{who} 重新开放";
    }

    /// A breaker is open; `fault` is a name of the log.
    circuit_open(who: &str, fault: &str) {
        en: "{who} is cut off for now: it failed too often ({fault})";
        zh: "{who} 已被暂时断路：失败次数过多（{fault}）";
    }

    /// It is closed again.
    circuit_closed(who: &str, span: &str) {
        en: "{who} works again, after {span}";
        zh: "{span}后，{who} 恢复正常";
    }

    /// Waits are long.
    long_waits(who: &str) {
        en: "calls to {who} wait for long, one after the other";
        zh: "发往 {who} 的请求接连长时间等待";
    }

    /// They are not.
    short_waits(who: &str) {
        en: "calls to {who} do not wait for long any more";
        zh: "发往 {who} 的请求不再长时间等待";
    }

    /// The quota is spent.
    quota_spent(who: &str) {
        en: "the quota or plan is spent at {who}";
        zh: "{who} 的配额或套餐已用完";
    }

    /// The same, where the service names when there is one again.
    quota_spent_for(who: &str, span: &str) {
        en: "the quota or plan is spent at {who}, for another {span}";
        zh: "{who} 的配额或套餐已用完，{span}后恢复";
    }

    /// It is not any more.
    quota_back(who: &str) {
        en: "{who} answers again, after the quota was spent";
        zh: "配额用完后，{who} 已恢复响应";
    }

    /// An answer fits a rule.
    rule(who: &str, rule: &str) {
        en: "an answer of {who} fits {rule}";
        zh: "{who} 的响应符合 {rule}";
    }

    /// They do not any more.
    rule_over(who: &str) {
        en: "{who} answers again, after an answer fitted a rule";
        zh: "出现符合规则的响应后，{who} 已恢复响应";
    }

    /// A file cannot be written; `what` is `log`, `history` or `snapshots`.
    cannot_write(what: &str, why: &str) {
        en: "the relay cannot write its {what}: {why}";
        zh: "中继无法写入 {what}：{why}";
    }

    /// It can.
    written_again(what: &str) {
        en: "the relay writes its {what} again";
        zh: "中继已恢复写入 {what}";
    }

    /// What may have run was sent again.
    billed_twice(who: &str) {
        en: "a call to {who} may have been billed twice";
        zh: "发往 {who} 的一次请求可能被计费两次";
    }

    /// A sentence, and what was held back of its kind.
    and_held_back(told: &str, count: u32) {
        en: "{told}; {count} more were held back";
        zh: "{told}；另有 {count} 条被压下";
    }

    /// What `alerts test` sends.
    test() {
        en: "this is a test of the alerts of Steady Relay: nothing is wrong";
        zh: "这是 Steady Relay 的告警测试：没有问题";
    }

    /// A way took it; `way` is a key below `[alerts]`, `at` where that leads.
    taken(way: &str, at: &str) {
        en: "ok    {way}: {at} took it";
        zh: "成功  {way}：{at} 已接收";
    }

    /// A way did not take it; `why` is a sentence.
    not_taken(way: &str, why: &str) {
        en: "fail  {way}: {why}";
        zh: "失败  {way}：{why}";
    }

    /// The desktop, as one that takes alerts.
    the_desktop() {
        en: "the desktop";
        zh: "桌面";
    }

    /// No way is set.
    no_way() {
        en: "no way to tell of alerts is set but the log\nhint: set `webhook`, `command` or `desktop` below [alerts]";
        zh: "除日志外没有设置任何告警方式\n提示：在 [alerts] 下设置 `webhook`、`command` 或 `desktop`";
    }

    /// Seconds, below a minute.
    seconds(seconds: u64) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// Minutes and seconds.
    minutes(minutes: u64, seconds: u64) {
        en: "{minutes} min {seconds} s";
        zh: "{minutes} 分 {seconds} 秒";
    }

    /// Hours and minutes.
    hours(hours: u64, minutes: u64) {
        en: "{hours} h {minutes} min";
        zh: "{hours} 小时 {minutes} 分";
    }

    /// Alerts that found no room.
    lost(count: u64) {
        en: "note: {count} alerts were lost, since others were still being delivered";
        zh: "说明：有 {count} 条告警丢失，因为其他告警仍在发送";
    }

    /// The webhook did not take it.
    webhook_failed(at: &str, why: &str) {
        en: "an alert could not be posted to {at}: {why}";
        zh: "无法把告警发送到 {at}：{why}";
    }

    /// It did not answer.
    no_answer(seconds: f64) {
        en: "no answer within {seconds} s";
        zh: "{seconds} 秒内没有响应";
    }

    /// It answered with this status.
    said(status: u16) {
        en: "it said {status}";
        zh: "对方返回 {status}";
    }

    /// The URL cannot be asked.
    no_url() {
        en: "its URL cannot be asked for";
        zh: "无法请求该 URL";
    }

    /// The program could not be started.
    command_not_started(program: &str, error: &str) {
        en: "`{program}` of `alerts.command` could not be started: {error}";
        zh: "无法启动 `alerts.command` 的 `{program}`：{error}";
    }

    /// It failed; `how` is what the system says of its end.
    command_failed(program: &str, how: &str) {
        en: "`{program}` of `alerts.command` failed ({how})";
        zh: "`alerts.command` 的 `{program}` 失败（{how}）";
    }

    /// It took too long.
    command_killed(program: &str, seconds: f64) {
        en: "`{program}` of `alerts.command` was killed: it took longer than {seconds} s";
        zh: "`alerts.command` 的 `{program}` 已被终止：运行超过 {seconds} 秒";
    }
}

/// A span as one says it.
#[must_use]
pub fn span(lang: relay_core::Lang, whole: u64) -> String {
    match whole {
        0..60 => seconds(lang, whole),
        60..3600 => minutes(lang, whole / 60, whole % 60),
        _ => hours(lang, whole / 3600, whole % 3600 / 60),
    }
}
