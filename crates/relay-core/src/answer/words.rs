//! What clients are told in the relay's own words.

use crate::words::counted;

crate::words! {
    table TABLE "answer";

    /// All of a message: what happened, what was answered before (or nothing), what to do.
    lines(what: &str, earlier: &str, hint: &str) {
        en: "steady-relay: {what}{earlier}\nhint: {hint}";
        zh: "steady-relay：{what}{earlier}\n提示：{hint}";
    }

    /// What was answered before. It is a line of its own, with the break before it.
    earlier(who: &str, answered: &str) {
        en: "\nbefore that: {who} {answered}";
        zh: "\n此前：{who} {answered}";
    }

    /// A count of sends.
    sends(count: u32) {
        en: "{sends}", sends = counted(u64::from(count), "send", "sends");
        zh: "发送 {count} 次";
    }

    /// What a service answered, with its status.
    answered_status(status: u16, words: &str) {
        en: "answered {status}, \"{words}\"";
        zh: "返回 {status}，“{words}”";
    }

    /// The same without one.
    answered(words: &str) {
        en: "answered \"{words}\"";
        zh: "返回“{words}”";
    }

    /// The profile allows no send at all.
    no_send() {
        en: "this call may not be sent: its profile allows no send.";
        zh: "此请求不能发送：其策略不允许任何发送。";
    }

    /// What to do then.
    raise_sends_alone() {
        en: "raise `sends` of the profile";
        zh: "调大该策略的 `sends`";
    }

    /// Earlier tries have used up all sends.
    all_sent(earlier: &str) {
        en: "this call was not sent: {earlier} of it went before, and its profile allows no more.";
        zh: "此请求没有发送：此前已{earlier}，其策略不允许更多。";
    }

    /// What to do then.
    later_or_more_sends() {
        en: "try again later, or raise `sends` of the profile";
        zh: "稍后再试，或调大该策略的 `sends`";
    }

    /// The service asked for a longer pause than the call may wait.
    pause_too_long(who: &str, patience: &str) {
        en: "this call was not sent: {who} asked for a pause that outlasts the {patience} that it may wait.";
        zh: "此请求没有发送：{who} 要求的暂停时间超过了此请求可等待的 {patience}。";
    }

    /// Every breaker is open; `each` names the upstreams with what happened there.
    circuits_open(each: &str) {
        en: "this call was not sent: no upstream may be asked now, each failed too often: {each}.";
        zh: "此请求没有发送：当前没有可用的上游，每个上游都失败过多：{each}。";
    }

    /// One of them.
    circuit(name: &str, fault: &str, wait: &str) {
        en: "{name} ({fault}; asked again in {wait})";
        zh: "{name}（{fault}；{wait}后重试）";
    }

    /// What stands between two of them.
    between() {
        en: ", ";
        zh: "、";
    }

    /// What to do then.
    circuits_hint() {
        en: "see `steady-relay status`; `[breaker]` in the settings says how many failures open a breaker, and for how long";
        zh: "查看 `steady-relay status`；设置中的 `[breaker]` 决定失败多少次后断路、断路多久";
    }

    /// The call waited in line until its time was up.
    line_too_long(who: &str, patience: &str) {
        en: "this call was not sent: {who} was short of capacity for all of the {patience} that it may wait.";
        zh: "此请求没有发送：在可等待的 {patience} 内，{who} 一直容量不足。";
    }

    /// The relay ends while the call waits.
    stopping() {
        en: "the relay is being stopped, and this call was waiting: nothing of it runs at the service.";
        zh: "中继正在停止，而此请求还在等待：服务端没有在执行它。";
    }

    /// What to do then.
    send_again() {
        en: "send it again once the relay runs again";
        zh: "中继重新运行后再发送一次";
    }

    /// What to do then.
    later_or_more_patience() {
        en: "come back later, or raise `patience`";
        zh: "稍后再来，或调大 `patience`";
    }

    /// A stream was begun and the answer cannot go into it. `what` says what was answered.
    not_streamed(what: &str) {
        en: "steady-relay: {what}, and the stream that was asked for had begun: the answer is lost. The request ran and may have been billed, so it was not sent again.\nhint: turn `early_commit` off for services that do not stream, or ask for no stream";
        zh: "steady-relay：{what}，而所请求的流已经开始，因此这个回答丢失了。请求已经执行，可能已计费，所以没有重新发送。\n提示：对不支持流式输出的服务关闭 `early_commit`，或不要请求流式输出";
    }

    /// No answer in time.
    still_running(who: &str, sends: &str, seconds: &str) {
        en: "{who} did not answer in time ({sends}, {seconds} s); the request is probably still running there, so it was not sent again.";
        zh: "{who} 未及时响应（{sends}，{seconds} 秒）；请求很可能仍在那里执行，所以没有重新发送。";
    }

    /// What to do then.
    raise_timeouts() {
        en: "try again later, or raise `timeouts.first_byte` and `timeouts.idle`";
        zh: "稍后再试，或调大 `timeouts.first_byte` 和 `timeouts.idle`";
    }

    /// A request that may have run. `what` is what happened.
    may_have_run(who: &str, what: &str, sends: &str, seconds: &str) {
        en: "{who}: {what} ({sends}, {seconds} s); the request may have run, so it was not sent again (ambiguous_resends = 0).";
        zh: "{who}：{what}（{sends}，{seconds} 秒）；请求可能已经执行，所以没有重新发送（ambiguous_resends = 0）。";
    }

    /// What happened, where the connection broke.
    ended_early() {
        en: "the connection ended without a whole answer";
        zh: "连接在响应完整之前中断";
    }

    /// What to do then.
    resend_yourself() {
        en: "try again yourself, or set `ambiguous_resends = 1`";
        zh: "请自行重试，或设置 `ambiguous_resends = 1`";
    }

    /// A certificate that is not trusted. `why` is empty or begins with a colon.
    certificate(who: &str, why: &str) {
        en: "the certificate of {who} was not accepted{why}.";
        zh: "{who} 的证书不被接受{why}。";
    }

    /// What to do then.
    name_the_ca() {
        en: "give your company's CA by `ca_file` or SSL_CERT_FILE; checking cannot be turned off";
        zh: "用 `ca_file` 或 SSL_CERT_FILE 指定贵公司的 CA；证书检查无法关闭";
    }

    /// A proxy that refuses.
    proxy(who: &str, why: &str) {
        en: "the proxy on the way to {who} does not let the relay through{why}.";
        zh: "通往 {who} 的代理不让中继通过{why}。";
    }

    /// What to do then.
    mend_the_proxy() {
        en: "put its user name and password into HTTPS_PROXY or the key `proxy`, have it allow this connection, or set `proxy = \"none\"`";
        zh: "把代理的用户名和密码写入 HTTPS_PROXY 或键 `proxy`，让代理放行此连接，或设置 `proxy = \"none\"`";
    }

    /// An answer that cannot be passed on.
    unfit(who: &str, why: &str, sends: &str, seconds: &str) {
        en: "the answer of {who} cannot be passed on{why} ({sends}, {seconds} s); the request may have run, so it was not sent again.";
        zh: "{who} 的响应无法转交{why}（{sends}，{seconds} 秒）；请求可能已经执行，所以没有重新发送。";
    }

    /// What to do then.
    mend_the_fit() {
        en: "raise `limits.message` where it is too long, or set `websocket = \"refuse\"` for this service";
        zh: "如果是过长，请调大 `limits.message`；或为该服务设置 `websocket = \"refuse\"`";
    }

    /// A credential of the relay's own that there is none of.
    credential(who: &str, why: &str) {
        en: "the relay's own credential for {who} cannot be had{why}.";
        zh: "无法取得中继自己用于 {who} 的凭据{why}。";
    }

    /// What to do then.
    mend_the_credential() {
        en: "mend the `[credential.NAME]` of the relay's settings; `steady-relay doctor` checks each of them";
        zh: "请修正中继设置中的 `[credential.NAME]`；`steady-relay doctor` 会逐一检查";
    }

    /// What to do where it may be had later.
    await_the_credential() {
        en: "where it comes from is slow or has trouble: try again later, or raise `patience`; if that goes on, `steady-relay doctor` checks the `[credential.NAME]` of the relay's settings";
        zh: "其来源响应缓慢或出现故障：请稍后重试，或调大 `patience`；若持续如此，可用 `steady-relay doctor` 检查中继设置中的 `[credential.NAME]`";
    }

    /// The relay gave up. `what` is what happened at last.
    gave_up(sends: &str, seconds: &str, who: &str, what: &str) {
        en: "gave up after {sends} in {seconds} s: {who} {what}.";
        zh: "在 {seconds} 秒内{sends}后放弃：{who} {what}。";
    }

    /// What happened, where nothing was answered. `why` is empty or begins with a colon.
    could_not_answer(meaning: &str, why: &str) {
        en: "could not answer ({meaning}{why})";
        zh: "无法响应（{meaning}{why}）";
    }

    /// The quota is spent, and its time not over. `said` is what the service answered.
    spent(who: &str, said: &str) {
        en: "{who} {said}; until the time that it named is over nothing is sent there, this call neither.";
        zh: "{who} {said}；在它给出的时间之前不会再向它发送，此请求也没有发送。";
    }

    /// What to do then.
    ask_or_wait() {
        en: "come back then, raise `patience` to be kept waiting until then, or have the relay ask now: its status page says how";
        zh: "届时再来，或调大 `patience` 以便一直等到那时，或让中继立即询问：方法见状态页";
    }

    /// What to do where the service was never reached.
    check_address() {
        en: "check that this is the right address, that the service runs, and that the network leads there";
        zh: "检查地址是否正确、服务是否在运行、网络是否可达";
    }

    /// What to do where the sends are spent.
    raise_sends() {
        en: "raise `sends` of the profile, or choose another model";
        zh: "调大该策略的 `sends`，或换一个模型";
    }

    /// What to do where the service asks for more than patience has.
    wait_named(asked: &str, patience: &str) {
        en: "the service asks for a wait of {asked} s, patience is {patience} s; come back then, or raise `patience`";
        zh: "服务要求等待 {asked} 秒，而 patience 为 {patience} 秒；届时再来，或调大 `patience`";
    }

    /// The same where it named no time.
    wait_unnamed(patience: &str) {
        en: "patience is {patience} s; raise `patience`";
        zh: "patience 为 {patience} 秒；请调大 `patience`";
    }

    /// What to do where patience is spent.
    raise_patience(patience: &str) {
        en: "patience is {patience} s; raise `patience`, or choose another model";
        zh: "patience 为 {patience} 秒；请调大 `patience`，或换一个模型";
    }
}
