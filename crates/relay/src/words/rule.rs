//! What `config test-rule` reports. Names of faults, of evidence and of kinds of requests are the same in any language.

relay_core::words! {
    table TABLE "rule";

    /// The names of the lines, in their order.
    heads() {
        en: "taken for|held|because|evidence|told wait|its words";
        zh: "判定为|扣留|依据|证据|要求等待|其措辞";
    }

    /// It is an answer.
    answer(status: u16, dialect: &str) {
        en: "an answer (status {status}, heard as {dialect})";
        zh: "正常回答（状态码 {status}，按 {dialect} 解读）";
    }

    /// How much of it is held back. `end` is one of the two below.
    held(bytes: usize, end: &str) {
        en: "{bytes} bytes of its body, then it is the client's; {end}";
        zh: "响应体的 {bytes} 字节，之后交给客户端；{end}";
    }

    /// It is whole.
    whole() {
        en: "it ends as it should";
        zh: "结尾正常";
    }

    /// It is not.
    broken() {
        en: "it lacks its last word";
        zh: "缺少结尾";
    }

    /// It is a failure. `how` says how it is read, by the message below.
    failure(fault: &str, meaning: &str, how: &str) {
        en: "{fault}: {meaning} ({how})";
        zh: "{fault}：{meaning}（{how}）";
    }

    /// How it is read.
    heard(status: u16, dialect: &str, told: &str) {
        en: "status {status}, heard as {dialect}, told {told}";
        zh: "状态码 {status}，按 {dialect} 解读，{told}得知";
    }

    /// Where it was told.
    by_status() {
        en: "by its status";
        zh: "由状态码";
    }

    /// Where it was told.
    in_body() {
        en: "inside its body";
        zh: "从响应体中";
    }

    /// Where it was told.
    in_stream() {
        en: "inside its stream";
        zh: "从流中";
    }

    /// Where it was told.
    by_end() {
        en: "by its end";
        zh: "由其结尾";
    }

    /// By a rule of the user's own.
    by_own(rule: &str) {
        en: ", by {rule}";
        zh: "，来自 {rule}";
    }

    /// The sign where there is no rule.
    challenge() {
        en: "header `cf-mitigated` is `challenge`";
        zh: "响应头 `cf-mitigated` 为 `challenge`";
    }

    /// The sign where there is no rule.
    status_alone() {
        en: "the status alone; no rule is about it";
        zh: "仅凭状态码；没有与之相关的规则";
    }

    /// The sign where there is no rule.
    no_rule() {
        en: "an error that no rule is about";
        zh: "没有规则涉及的错误";
    }

    /// The sign where there is no rule.
    shape() {
        en: "the shape of the answer";
        zh: "响应的形态";
    }

    /// Evidence that changes with time.
    evidence(prompt: &str, late: &str, seconds: u64) {
        en: "{prompt} if it comes within {seconds} s, else {late}";
        zh: "{seconds} 秒内到达为 {prompt}，否则为 {late}";
    }

    /// The wait that is told.
    no_wait_but_curve() {
        en: "none: the profile's curve";
        zh: "无：按策略的退避曲线";
    }

    /// The wait that is told.
    no_wait() {
        en: "none";
        zh: "无";
    }

    /// The wait that is told.
    useless_wait_but_curve() {
        en: "one that says nothing: the curve, and the profile's least wait";
        zh: "没有意义的时间：按退避曲线和策略的最短等待";
    }

    /// The wait that is told.
    useless_wait() {
        en: "one that says nothing";
        zh: "没有意义的时间";
    }

    /// The wait that is told.
    wait(span: &str) {
        en: "{span} at least";
        zh: "至少 {span}";
    }

    /// And nothing comes of it.
    nothing_again(wait: &str) {
        en: "{wait}; nothing is sent again";
        zh: "{wait}；不会重新发送";
    }

    /// It is too long.
    too_long(wait: &str, profile: &str, longest: &str, who: &str) {
        en: "{wait}, which is longer than the patience of {profile} ({longest}): the answer goes back at once; {who}";
        zh: "{wait}，超过 {profile} 的 patience（{longest}）：响应立即返回；{who}";
    }

    /// Nobody bears it.
    no_profile() {
        en: "no profile waits so long";
        zh: "没有策略会等这么久";
    }

    /// Some do.
    profiles(names: &str) {
        en: "these wait so long: {names}";
        zh: "会等这么久的策略：{names}";
    }

    /// What is done where the answer comes late.
    if_late(late: &str) {
        en: "; if it comes late, {late}";
        zh: "；到达较晚时：{late}";
    }

    /// What is done.
    not_so_long() {
        en: "not sent again, since the wait is too long: the answer goes to the client as it is";
        zh: "等待太久，不重新发送：响应原样交给客户端";
    }

    /// What is done.
    again() {
        en: "sent again, as often as the profile allows";
        zh: "重新发送，次数以策略允许为限";
    }

    /// What is done.
    again_few() {
        en: "sent again, a few times (`failed_sends`)";
        zh: "重新发送几次（`failed_sends`）";
    }

    /// What is done.
    again_by_grant() {
        en: "sent again by a grant (`ambiguous_resends`): it may be billed twice";
        zh: "按许可重新发送（`ambiguous_resends`）：可能重复计费";
    }

    /// What is done.
    never() {
        en: "not sent again: the answer goes to the client as it is";
        zh: "不重新发送：响应原样交给客户端";
    }

    /// Why a file cannot be used.
    unreadable(what: &str, hint: &str) {
        en: "{what}\nhint: {hint}";
        zh: "{what}\n提示：{hint}";
    }
}
