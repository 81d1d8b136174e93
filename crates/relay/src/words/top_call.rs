//! What `top` says of one call: its timeline.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "top_call";

    /// The first line. `what`: protocol, operation, transport.
    call(id: &str, client: &str, what: &str, ago: &str) {
        en: "Call {id} of {client} ({what}), accepted {ago} ago";
        zh: "请求 {id}，客户端 {client}（{what}），{ago}前接收";
    }

    /// Where it goes.
    to(model: &str, upstream: &str, profile: &str, lane: &str) {
        en: "{model} at {upstream}, profile {profile}, lane {lane}";
        zh: "{upstream} 上的 {model}，策略 {profile}，通道 {lane}";
    }

    /// Between the parts of a list.
    comma() {
        en: ", ";
        zh: "，";
    }

    /// The client's own name for the request.
    request_id(id: &str) {
        en: "request id of the client: {id}";
        zh: "客户端的请求 ID：{id}";
    }

    /// It is kept no longer.
    gone(id: &str) {
        en: "{id} is not among the calls that are kept any more";
        zh: "{id} 已不在保留的请求之中";
    }

    /// The beginning.
    accepted() {
        en: "accepted";
        zh: "已接收";
    }

    /// It goes on from another. `spent` is what `why` says of that.
    inherited(spent: &str) {
        en: "goes on from an earlier call of the client, with {spent} so far";
        zh: "接续客户端之前的请求，此前已{spent}";
    }

    /// A wait that is over.
    waited(span: &str, why: &str) {
        en: "waited {span}: {why}";
        zh: "等待了 {span}：{why}";
    }

    /// A wait.
    waits(why: &str) {
        en: "waits: {why}";
        zh: "等待中：{why}";
    }

    /// A wait whose length is known.
    waits_for(span: &str, why: &str) {
        en: "waits {span}: {why}";
        zh: "等待 {span}：{why}";
    }

    /// The upstream asked for it.
    told() {
        en: "the service asked for it";
        zh: "服务要求等待";
    }

    /// By the curve.
    backoff() {
        en: "backoff of its profile";
        zh: "按策略退避";
    }

    /// Others come first.
    line() {
        en: "in the line of its lane";
        zh: "在通道中排队";
    }

    /// The same, with the others.
    line_of(others: usize) {
        en: "in the line of its lane, with {others}", others = counted(others as u64, "other", "others");
        zh: "在通道中排队，另有 {others} 个请求在等待";
    }

    /// The same, without.
    line_alone() {
        en: "in the line of its lane, alone";
        zh: "在通道中排队，没有其他请求";
    }

    /// Every upstream is cut off.
    circuit() {
        en: "the breaker of each upstream is open";
        zh: "每个上游都已断路";
    }

    /// The relay's own credential is renewed.
    credential() {
        en: "the relay's own credential is being renewed";
        zh: "中继自己的凭据正在续期";
    }

    /// The lane is parked.
    parked() {
        en: "the quota is spent, and nothing is sent before there is one again";
        zh: "配额已用完，恢复之前不会发送";
    }

    /// An answer was cut before.
    cut() {
        en: "an earlier answer of this turn was cut";
        zh: "这一轮之前的响应被切断";
    }

    /// The client was shown it.
    notices(count: u32) {
        en: ", and the client was told of it {times}", times = counted(u64::from(count), "time", "times");
        zh: "，已告知客户端 {count} 次";
    }

    /// A send.
    send(number: u32) {
        en: "send {number}";
        zh: "第 {number} 次发送";
    }

    /// One that may run twice.
    send_twice(number: u32) {
        en: "send {number}, which may run for the second time";
        zh: "第 {number} 次发送，可能重复执行";
    }

    /// An answer begins.
    head(status: u16) {
        en: "the service answers with {status}";
        zh: "服务以 {status} 响应";
    }

    /// With a name for the request.
    head_named(status: u16, id: &str) {
        en: "the service answers with {status}, request id {id}";
        zh: "服务以 {status} 响应，请求 ID {id}";
    }

    /// What went wrong. `more`: evidence, code, rule.
    failed(fault: &str, more: &str) {
        en: "fault {fault} ({more})";
        zh: "故障 {fault}（{more}）";
    }

    /// The same without more.
    failed_plainly(fault: &str) {
        en: "fault {fault}";
        zh: "故障 {fault}";
    }

    /// How long the service asked to wait.
    asks(span: &str) {
        en: "asks to wait {span}";
        zh: "要求等待 {span}";
    }

    /// A code.
    code(code: &str) {
        en: "code {code}";
        zh: "代码 {code}";
    }

    /// A rule.
    rule(rule: &str) {
        en: "rule {rule}";
        zh: "规则 {rule}";
    }

    /// Sends that are not told.
    left_out(count: u32) {
        en: "{sends} not shown", sends = counted(u64::from(count), "send", "sends");
        zh: "省略 {count} 次发送";
    }

    /// The answer goes through.
    committed() {
        en: "the answer goes to the client";
        zh: "响应开始传给客户端";
    }

    /// Why, and with which status.
    ended_by(what: &str) {
        en: " ({what})";
        zh: "（{what}）";
    }

    /// What it took.
    took(sends: u32, waited: &str, received: &str, sent: &str) {
        en: "{sends} in all, {waited} of waits, {received} in, {sent} out", sends = counted(u64::from(sends), "send", "sends");
        zh: "共发送 {sends} 次，等待 {waited}，收到 {received}，发出 {sent}";
    }

    /// What it may have cost.
    twice(count: u32) {
        en: "may have been billed twice: {count}";
        zh: "可能重复计费：{count} 次";
    }

    /// Tokens.
    tokens(input: u64, cached: u64, output: u64) {
        en: "tokens: {input} in ({cached} cached), {output} out";
        zh: "token：输入 {input}（缓存 {cached}），输出 {output}";
    }
}
