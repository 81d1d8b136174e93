//! What `diagnose` says: verdicts, what to do, what speaks for them, and what was not looked at.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "diagnose";

    /// The first line; `line` is a verdict of this table.
    verdict(line: &str) {
        en: "verdict: {line}";
        zh: "结论：{line}";
    }

    /// The same where little tells so.
    likely(line: &str) {
        en: "verdict: most likely {line}";
        zh: "结论：很可能是：{line}";
    }

    /// What to do.
    remedy(text: &str) {
        en: "do: {text}";
        zh: "建议：{text}";
    }

    /// Above what was not looked at.
    not_looked_at() {
        en: "not looked at:";
        zh: "未检查：";
    }

    /// Where the report for a bug tracker lies.
    written(file: &str) {
        en: "the report is in {file}: read it before you publish it";
        zh: "报告已写入 {file}：公开之前请先过目";
    }

    /// It cannot be written.
    unwritten(file: &str, error: &str) {
        en: "the report {file} cannot be written: {error}\nhint: name another file, or `-` for standard output";
        zh: "无法写入报告 {file}：{error}\n提示：指定另一个文件，或用 `-` 输出到标准输出";
    }

    /// A model at an upstream.
    at(model: &str, upstream: &str) {
        en: "{model} at {upstream}";
        zh: "{upstream} 的 {model}";
    }

    /// Verdicts: one model is short of capacity.
    model_at_capacity(model: &str, upstream: &str) {
        en: "the model: {model} at {upstream} is at capacity";
        zh: "模型：{upstream} 的 {model} 容量已满";
    }

    /// One model is being loaded.
    model_loading(model: &str, upstream: &str) {
        en: "the model: {model} at {upstream} is being loaded";
        zh: "模型：{upstream} 的 {model} 正在加载";
    }

    /// The whole service is short of capacity.
    service_overloaded(upstream: &str) {
        en: "the service: {upstream} is overloaded, whatever model is asked";
        zh: "服务：{upstream} 过载，与所用模型无关";
    }

    /// The service fails.
    service_failing(upstream: &str) {
        en: "the service: {upstream} fails in ways of its own";
        zh: "服务：{upstream} 自身出错";
    }

    /// The account asks too often.
    rate_limited(upstream: &str) {
        en: "your account: {upstream} limits how often it may ask";
        zh: "账号：{upstream} 正在对它限流";
    }

    /// Its quota or plan is spent.
    quota_spent(upstream: &str) {
        en: "your account: its quota or plan at {upstream} is spent";
        zh: "账号：它在 {upstream} 的配额或套餐已用完";
    }

    /// Its credential is not accepted.
    credential_refused(upstream: &str) {
        en: "your account: {upstream} does not accept the credential";
        zh: "账号：{upstream} 不接受所用的凭据";
    }

    /// There is no such model.
    no_such_model(upstream: &str, model: &str) {
        en: "the request: {upstream} has no {model}, or not for this account";
        zh: "请求：{upstream} 没有 {model}，或该账号无权使用";
    }

    /// The request is too long.
    request_too_long(model: &str, upstream: &str) {
        en: "the request: it is longer than {model} at {upstream} takes";
        zh: "请求：超出了 {upstream} 的 {model} 能接受的长度";
    }

    /// The request is wrong.
    request_refused(upstream: &str) {
        en: "the request: {upstream} does not accept what the client sends";
        zh: "请求：{upstream} 不接受客户端发送的内容";
    }

    /// No connection comes about.
    unreachable(upstream: &str) {
        en: "the network: {upstream} cannot be reached from this machine";
        zh: "网络：从本机无法连接 {upstream}";
    }

    /// TLS, a certificate or a proxy stands in the way.
    in_the_way(upstream: &str) {
        en: "the network: a proxy or a certificate stands between this machine and {upstream}";
        zh: "网络：本机与 {upstream} 之间被代理或证书问题阻断";
    }

    /// An edge or a portal answers.
    edge(upstream: &str) {
        en: "the network: an edge or a sign-in page answers in place of {upstream}";
        zh: "网络：代替 {upstream} 应答的是边缘节点或登录页面";
    }

    /// The clock is wrong.
    clock_wrong() {
        en: "this machine: its clock is wrong";
        zh: "本机：时钟不准";
    }

    /// The client does not wait.
    client_hangs_up(client: &str) {
        en: "the client: {client} hangs up before an answer can come";
        zh: "客户端：{client} 在收到响应之前就断开了";
    }

    /// The relay does not send again.
    relay_refuses() {
        en: "the relay: it does not send again what may have run already";
        zh: "中继：对可能已执行的请求，它不会重新发送";
    }

    /// The profile gives up too soon.
    relay_gives_up(profile: &str, upstream: &str) {
        en: "the relay: its profile {profile} gives up too soon for {upstream}";
        zh: "中继：策略 {profile} 对 {upstream} 来说放弃得太早";
    }

    /// The settings are wrong.
    relay_settings() {
        en: "the relay: its settings or its port are wrong";
        zh: "中继：设置或端口有误";
    }

    /// Nothing is wrong.
    nothing_wrong() {
        en: "nothing is wrong";
        zh: "没有问题";
    }

    /// Nobody can tell.
    too_little() {
        en: "too little to tell: no call that has ended was seen";
        zh: "信息不足：没有看到已结束的请求";
    }

    /// What to do about `model_at_capacity`.
    do_model_at_capacity() {
        en: "wait, or use another model for now; the relay sends again for as long as the profile's `patience` lasts";
        zh: "等待，或暂时换用其他模型；在策略的 `patience` 耗尽之前，中继会继续重新发送";
    }

    /// What to do about `model_loading`.
    do_model_loading() {
        en: "wait; to have it loaded ahead, set `warm` of the upstream";
        zh: "等待；如需预先加载，请设置该上游的 `warm`";
    }

    /// What to do about `service_overloaded`.
    do_service_overloaded() {
        en: "wait, or use another service for now; its status page may say for how long";
        zh: "等待，或暂时换用其他服务；它的状态页可能会说明持续多久";
    }

    /// What to do about `service_failing`.
    do_service_failing() {
        en: "look at its status page; `--report FILE` has the ids of the requests, which its support asks for";
        zh: "查看它的状态页；`--report FILE` 中有请求编号，联系它的支持时会用到";
    }

    /// What to do about `rate_limited`.
    do_rate_limited() {
        en: "run fewer sessions at once, or ask the service for a higher limit; the relay spaces the sends meanwhile";
        zh: "减少同时运行的会话，或向服务申请更高的限额；其间中继会拉开发送间隔";
    }

    /// What to do about `quota_spent`.
    do_quota_spent() {
        en: "add credit, wait for the plan's next window, or use another account; no resend helps before";
        zh: "充值、等待套餐的下一个周期，或换用其他账号；在此之前重新发送没有用";
    }

    /// What to do about `credential_refused`.
    do_credential_refused() {
        en: "sign in again in the client, or replace its key";
        zh: "在客户端重新登录，或更换密钥";
    }

    /// What to do about `no_such_model`.
    do_no_such_model() {
        en: "correct the model's name in the client, or ask for access to it";
        zh: "在客户端更正模型名称，或申请使用权限";
    }

    /// What to do about `request_too_long`.
    do_request_too_long() {
        en: "shorten the conversation (`/compact` in Codex and Claude Code), or use a model that takes more";
        zh: "缩短对话（在 Codex 和 Claude Code 中用 `/compact`），或换用支持更长上下文的模型";
    }

    /// What to do about `request_refused`.
    do_request_refused() {
        en: "update the client, and look up the code in the service's documentation";
        zh: "更新客户端，并在服务的文档中查找该错误代码";
    }

    /// What to do about `unreachable`.
    do_unreachable() {
        en: "check this machine's network: VPN, DNS, firewall; `steady-relay doctor` goes through each step";
        zh: "检查本机网络：VPN、DNS、防火墙；`steady-relay doctor` 会逐项检查";
    }

    /// What to do about `in_the_way`.
    do_in_the_way() {
        en: "name your company's certificate with `ca_file`, or the right proxy with `proxy`; `steady-relay doctor` says which";
        zh: "用 `ca_file` 指定公司的证书，或用 `proxy` 指定正确的代理；`steady-relay doctor` 会说明是哪一个";
    }

    /// What to do about `edge`.
    do_edge() {
        en: "sign in to this network in a browser, or leave the VPN; then check `url` of the upstream";
        zh: "在浏览器中登录当前网络，或断开 VPN；再检查该上游的 `url`";
    }

    /// What to do about `clock_wrong`.
    do_clock_wrong() {
        en: "let the system set the clock by itself (NTP)";
        zh: "让系统自动校时（NTP）";
    }

    /// What to do about `client_hangs_up`.
    do_client_hangs_up(client: &str) {
        en: "give the client a longer time-out, or set `limit` of `[client.{client}]` so that it is answered before";
        zh: "调大客户端的超时，或设置 `[client.{client}]` 的 `limit`，让它在断开之前得到响应";
    }

    /// What to do about `relay_refuses`.
    do_relay_refuses() {
        en: "send it again yourself where a second run does no harm, or allow one with `ambiguous_resends` of the profile";
        zh: "如果重复执行无妨，请自行重新发送，或用策略的 `ambiguous_resends` 允许一次";
    }

    /// What to do about `relay_gives_up`.
    do_relay_gives_up() {
        en: "give it more `patience` and `sends`; `steady-relay replay --profile patient` shows what that would have changed";
        zh: "调大 `patience` 和 `sends`；`steady-relay replay --profile patient` 可显示会有哪些不同";
    }

    /// What to do about `relay_settings`.
    do_relay_settings() {
        en: "run `steady-relay doctor`: it has a remedy for each";
        zh: "运行 `steady-relay doctor`：它会逐项给出解决办法";
    }

    /// What to do about `nothing_wrong`.
    do_nothing_wrong() {
        en: "nothing; where a client still has trouble, `steady-relay doctor` looks at the clients";
        zh: "无需处理；如果客户端仍有问题，`steady-relay doctor` 会检查客户端";
    }

    /// What to do about `too_little`.
    do_too_little() {
        en: "use the client through the relay and ask again, or look further back: `--since 7d`";
        zh: "通过中继使用客户端后再试，或查看更早的记录：`--since 7d`";
    }

    /// Sends that failed; `at` is an upstream or a model of one, `what` a fault in words.
    failed(failed: u64, sends: u64, at: &str, what: &str) {
        en: "{failed} of {sends} to {at} failed: {what}", sends = counted(sends, "send", "sends");
        zh: "发往 {at} 的 {sends} 次发送中有 {failed} 次失败：{what}";
    }

    /// Goes behind it: the codes that came with it.
    codes(codes: &str) {
        en: " ({codes})";
        zh: "（{codes}）";
    }

    /// Goes behind that: when it was last.
    last(ago: &str) {
        en: ", last {ago} ago";
        zh: "，最近一次在 {ago}前";
    }

    /// Another model at the same time.
    other_model(model: &str, well: u64, calls: u64) {
        en: "{model} at the same time: {well} of {calls} served at once", calls = counted(calls, "call", "calls");
        zh: "同一时间的 {model}：{calls} 次请求中有 {well} 次一次成功";
    }

    /// Another credential at the same time.
    other_account(well: u64, calls: u64) {
        en: "the same with another credential at the same time: {well} of {calls} served at once", calls = counted(calls, "call", "calls");
        zh: "同一时间使用另一凭据：{calls} 次请求中有 {well} 次一次成功";
    }

    /// Calls to one place; `at` is an upstream or a model of one. How they ended follows.
    of_calls_to(calls: u64, at: &str) {
        en: "of {calls} to {at}: ", calls = counted(calls, "call", "calls");
        zh: "发往 {at} 的 {calls} 次请求：";
    }

    /// All calls. How they ended follows.
    of_calls(calls: u64) {
        en: "of {calls}: ", calls = counted(calls, "call", "calls");
        zh: "共 {calls} 次请求：";
    }

    /// How calls ended.
    ended(served: u64, lost: u64, open: u64) {
        en: "{served} served, {lost} not served, {open} open";
        zh: "{served} 次得到响应，{lost} 次没有，{open} 次仍在进行";
    }

    /// The longest wait that was told.
    told(wait: &str) {
        en: "it asked to wait up to {wait}";
        zh: "它要求的等待最长为 {wait}";
    }

    /// The clock.
    clock(ahead: i64) {
        en: "this machine's clock is {off}", off = if ahead < 0 { format!("{} s behind", -ahead) } else { format!("{ahead} s ahead") };
        zh: "本机时钟{off}", off = if ahead < 0 { format!("慢了 {} 秒", -ahead) } else { format!("快了 {ahead} 秒") };
    }

    /// The client hung up.
    hung_up(client: &str, calls: u64, least: &str, most: &str) {
        en: "{client} hung up {calls} after {least} to {most}, before an answer", calls = counted(calls, "time", "times");
        zh: "{client} 在得到响应之前断开了 {calls} 次，分别在 {least} 至 {most} 之后";
    }

    /// The relay gave up; `why` is one of the next three.
    gave_up(calls: u64, why: &str, sends: u64, waited: &str) {
        en: "{calls} given up: {why}, after at most {sends} and {waited} of waiting", calls = counted(calls, "call was", "calls were"), sends = counted(sends, "send", "sends");
        zh: "放弃了 {calls} 次请求：{why}，最多发送 {sends} 次、等待 {waited}";
    }

    /// No send was left.
    sends_spent() {
        en: "no send was left";
        zh: "发送次数已用完";
    }

    /// The patience was spent.
    patience_spent() {
        en: "the patience was spent";
        zh: "`patience` 已用完";
    }

    /// The wait that was told is too long.
    told_longer() {
        en: "the wait that was asked for is longer than the patience";
        zh: "要求的等待超过了 `patience`";
    }

    /// The relay refused; `why` is its name in the log.
    not_sent_again(calls: u64, why: &str) {
        en: "{calls} not sent again ({why})", calls = counted(calls, "call was", "calls were");
        zh: "有 {calls} 次请求未重新发送（{why}）";
    }

    /// It is over; `cause` is the name of a verdict.
    over(cause: &str, ago: &str, calls: u64) {
        en: "{cause} ended {ago} ago: {calls} served at once since", calls = counted(calls, "call was", "calls were");
        zh: "{cause} 已在 {ago}前结束：此后有 {calls} 次请求一次成功";
    }

    /// Little tells so.
    only_few(calls: u64) {
        en: "only {calls} says so", calls = counted(calls, "call", "calls");
        zh: "只有 {calls} 次请求能说明这一点";
    }

    /// There is no call.
    no_calls(since: &str) {
        en: "there was no call in the last {since}";
        zh: "最近 {since}内没有请求";
    }

    /// There is none in this time.
    no_calls_since(since: &str, ago: &str) {
        en: "there was no call in the last {since}; the last one was {ago} ago";
        zh: "最近 {since}内没有请求；上一次在 {ago}前";
    }

    /// The port is somebody else's.
    taken(at: &str, who: &str) {
        en: "{at} is taken by another program ({who}), so clients that ask there do not reach the relay";
        zh: "{at} 被另一个程序（{who}）占用，请求该地址的客户端无法到达中继";
    }

    /// What was not looked at: calls of earlier times.
    unseen_earlier(since: &str) {
        en: "calls of more than {since} ago (`--since`)";
        zh: "{since}之前的请求（`--since`）";
    }

    /// Calls that are too many.
    unseen_calls(count: u64) {
        en: "{count} of that time, since they are too many", count = counted(count, "call", "calls");
        zh: "该时段内另外 {count} 次请求（数量过多）";
    }

    /// The history is off.
    unseen_history() {
        en: "calls of relays that have ended: the history is off";
        zh: "已结束的中继的请求：历史记录已关闭";
    }

    /// No relay runs.
    unseen_relay(at: &str) {
        en: "a running relay: none is at {at}";
        zh: "正在运行的中继：{at} 处没有";
    }

    /// The relay wants a token.
    unseen_locked(at: &str) {
        en: "the relay at {at}: it asks for a token that the settings do not have";
        zh: "{at} 处的中继：它要求的令牌不在设置中";
    }

    /// No other model was asked.
    unseen_other_models(upstream: &str) {
        en: "other models of {upstream}: no call asked one";
        zh: "{upstream} 的其他模型：没有请求用到";
    }

    /// An upstream that the settings do not have.
    unseen_way(upstream: &str) {
        en: "the way to {upstream}: it is not in these settings";
        zh: "到 {upstream} 的网络：它不在当前设置中";
    }

    /// Upstreams that are too many.
    unseen_upstreams(count: u64) {
        en: "the way to {count} more", count = counted(count, "upstream", "upstreams");
        zh: "到另外 {count} 个上游的网络";
    }

    /// No model was asked.
    unseen_models() {
        en: "the models themselves: nothing was sent to any";
        zh: "模型本身：没有向任何模型发送请求";
    }

    /// The files of clients.
    unseen_clients() {
        en: "the clients' own settings: `steady-relay doctor` reads them";
        zh: "客户端自己的设置：由 `steady-relay doctor` 检查";
    }
}
