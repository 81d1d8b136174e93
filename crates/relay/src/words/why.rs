//! What `why` says about a call, up to its last line.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "why";

    /// `last`, where there is no such call.
    none_met_a_fault() {
        en: "note: no call met a fault or was left unserved; this is the newest";
        zh: "说明：没有请求遇到故障或未得到响应；这是最近的一个请求";
    }

    /// What a relay that runs tells is all there is; `why` is what the file lacks.
    from_memory(why: &str) {
        en: "note: only the calls in the memory of the relay that runs are known: {why}";
        zh: "说明：只知道正在运行的中继内存中的请求：{why}";
    }

    /// The first line. `run` is a message below.
    header(call: &str, run: &str, when: &str) {
        en: "{call}{run}, {when}";
        zh: "{call}{run}，{when}";
    }

    /// The run that the call belongs to.
    of_run(kind: &str) {
        en: " ({kind})";
        zh: "（{kind}）";
    }

    /// Who asked whom.
    who(client: &str, upstream: &str) {
        en: "{client} asked {upstream}";
        zh: "{client} 请求 {upstream}";
    }

    /// And for which model.
    who_for(client: &str, upstream: &str, model: &str) {
        en: "{client} asked {upstream} for {model}";
        zh: "{client} 向 {upstream} 请求 {model}";
    }

    /// In which way.
    how(who: &str, operation: &str, dialect: &str, transport: &str) {
        en: "{who} ({operation}, {dialect}, over {transport})";
        zh: "{who}（{operation}，{dialect}，经由 {transport}）";
    }

    /// What held for it.
    profile(profile: &str, lane: &str) {
        en: "profile {profile}, lane {lane}";
        zh: "策略 {profile}，通道 {lane}";
    }

    /// The client's own id.
    client_id(id: &str) {
        en: "request id of the client: {id}";
        zh: "客户端的请求 ID：{id}";
    }

    /// It is the resend of a client. `spent` is made of the parts below.
    inherited(spent: &str) {
        en: "goes on from an earlier call of the same client; what that has spent counts, too: {spent}";
        zh: "接续同一客户端之前的请求，其已用的额度一并计入：{spent}";
    }

    /// A part: sends.
    inherited_sends(count: u32) {
        en: "{sends}", sends = counted(u64::from(count), "send", "sends");
        zh: "发送 {count} 次";
    }

    /// A part: those of them that failed.
    inherited_failed(count: u32) {
        en: "{failed}", failed = counted(u64::from(count), "failed send", "failed sends");
        zh: "发送失败 {count} 次";
    }

    /// A part: resends that may have been the second to run.
    inherited_resends(count: u32) {
        en: "{resends} of what may have run", resends = counted(u64::from(count), "resend", "resends");
        zh: "重发可能已执行的请求 {count} 次";
    }

    /// Two parts.
    both(one: &str, other: &str) {
        en: "{one}, {other}";
        zh: "{one}，{other}";
    }

    /// A wait that is over. `why` is one of the reasons below.
    waited(span: &str, why: &str) {
        en: "waited {span}: {why}";
        zh: "等待了 {span}：{why}";
    }

    /// One that goes on.
    waits(why: &str) {
        en: "waits: {why}";
        zh: "正在等待：{why}";
    }

    /// The pool that could serve it.
    pool(pool: &str) {
        en: "any member of the pool {pool} that speaks its dialect could serve it";
        zh: "池 {pool} 中支持该协议的任一成员都可以处理";
    }

    /// What bound it to one of them.
    bound(pool: &str, upstream: &str, why: &str) {
        en: "of the pool {pool} only {upstream} could serve it: {why}";
        zh: "池 {pool} 中只有 {upstream} 可以处理：{why}";
    }

    /// It asks for no answer of a model.
    bound_by_operation() {
        en: "what it reads or changes lies at one upstream";
        zh: "它读取或修改的内容只在一个上游";
    }

    /// Its body cannot be read.
    bound_unread() {
        en: "its body cannot be read, so nobody knows what in it is for one upstream alone";
        zh: "请求体无法读取，无法判断其中是否有只属于某一上游的内容";
    }

    /// A member of its body is for one upstream.
    bound_by_member(member: &str) {
        en: "`{member}` in its body means something there alone";
        zh: "请求体中的 `{member}` 只对该上游有意义";
    }

    /// It goes to another upstream.
    moved(upstream: &str, why: &str) {
        en: "goes to {upstream}: {why}";
        zh: "转到 {upstream}：{why}";
    }

    /// The same, for another model.
    moved_for(upstream: &str, model: &str, why: &str) {
        en: "goes to {upstream} and asks for {model}: {why}";
        zh: "转到 {upstream} 并改用 {model}：{why}";
    }

    /// Why it left the one before.
    left_failed() {
        en: "the send before failed";
        zh: "上一次发送失败";
    }

    /// Its lane is shut.
    left_shut() {
        en: "the one before takes no calls now";
        zh: "之前的上游目前不接受请求";
    }

    /// Its breaker is open.
    left_circuit_open() {
        en: "the breaker of the one before is open";
        zh: "之前的上游已断路";
    }

    /// A wait for a credential.
    renewing() {
        en: "the relay's own credential for the service was being renewed";
        zh: "中继自己的凭据正在续期";
    }

    /// The relay's own credential for it is being renewed, or cannot be had.
    left_credential() {
        en: "the relay's own credential for the one before was not at hand";
        zh: "中继自己用于之前上游的凭据当时不可用";
    }

    /// This one is preferred.
    left_preferred() {
        en: "it comes before the other, and takes calls again";
        zh: "它排在前面，且已恢复接受请求";
    }

    /// Where its length comes from.
    as_told(told: &str) {
        en: "the service asked for {told}";
        zh: "服务要求等待 {told}";
    }

    /// The same, where how long is not known any more.
    as_told_by_service() {
        en: "the service asked for it";
        zh: "服务要求等待";
    }

    /// The curve.
    by_backoff(profile: &str) {
        en: "backoff of the profile {profile}";
        zh: "策略 {profile} 的退避";
    }

    /// The line of the lane.
    in_line() {
        en: "in the line of its lane, alone";
        zh: "在通道中排队，没有其他请求";
    }

    /// The same, with the others.
    in_line_with(others: u64) {
        en: "in the line of its lane, with {others}", others = counted(others, "other", "others");
        zh: "在通道中排队，另有 {others} 个请求在等待";
    }

    /// And the service had a word in it.
    not_before(why: &str, told: &str) {
        en: "{why}, and the service asked for {told}";
        zh: "{why}，且服务要求等待 {told}";
    }

    /// A quota is spent. `until` is a moment, or a span as below.
    parked(until: &str) {
        en: "the lane is parked until {until}, since its quota is spent";
        zh: "通道停用到 {until}，因为其配额已用完";
    }

    /// Every breaker is open.
    cut_off() {
        en: "the breaker of each upstream was open";
        zh: "每个上游都处于断路状态";
    }

    /// And then the line of a lane. `line` is one of those above.
    cut_off_in_line(line: &str) {
        en: "the breaker of each upstream was open; then {line}";
        zh: "每个上游都处于断路状态；随后{line}";
    }

    /// The moment at the end of a span.
    from_then(span: &str) {
        en: "{span} later";
        zh: "{span}之后";
    }

    /// After a cut.
    after_cut() {
        en: "an earlier answer of the same turn was cut";
        zh: "同一轮对话之前的回答被切断";
    }

    /// What the client saw of it.
    notices(notices: u32) {
        en: "the client was shown {notices} that it is held", notices = counted(u64::from(notices), "notice", "notices");
        zh: "已向客户端显示 {notices} 次等待提示";
    }

    /// A send that was answered.
    answered(send: u32, status: u16, span: &str) {
        en: "send {send}: {status} after {span}";
        zh: "第 {send} 次发送：{span}后收到 {status}";
    }

    /// One that failed with no answer.
    unanswered(send: u32, span: &str) {
        en: "send {send}: no answer, failed after {span}";
        zh: "第 {send} 次发送：没有响应，{span}后失败";
    }

    /// Sends that are like the one before.
    same(first: u32, last: u32, count: u64, span: &str) {
        en: "sends {first} to {last}: the same × {count}, {span}";
        zh: "第 {first} 至 {last} 次发送：同上 × {count}，共 {span}";
    }

    /// The waits before them.
    waits_between(least: &str, most: &str) {
        en: "waits between them: {least} to {most}";
        zh: "其间每次等待：{least} 至 {most}";
    }

    /// One that is under way.
    under_way(send: u32) {
        en: "send {send}: no answer yet";
        zh: "第 {send} 次发送：尚无响应";
    }

    /// One that nothing came of.
    nothing_came(send: u32) {
        en: "send {send}: nothing came";
        zh: "第 {send} 次发送：没有收到任何内容";
    }

    /// An id of the upstream.
    upstream_id(id: &str) {
        en: "request id of the service: {id}";
        zh: "服务的请求 ID：{id}";
    }

    /// Without a proxy.
    direct() {
        en: "directly";
        zh: "直连";
    }

    /// By a proxy.
    by_proxy(proxy: &str) {
        en: "by the proxy {proxy}";
        zh: "经代理 {proxy}";
    }

    /// The send went another way than the first. `route` is one of the two above.
    went(route: &str) {
        en: "went {route}";
        zh: "改走线路：{route}";
    }

    /// A way that it tried in vain. `why` is a word of the log.
    way_missed(route: &str, why: &str) {
        en: "no connection {route} ({why}); nothing was sent that way";
        zh: "{route} 未能连上（{why}），该线路上没有发送任何内容";
    }

    /// It has tried all.
    no_way() {
        en: "none of the ways there works";
        zh: "所有线路都不可用";
    }

    /// It may run twice.
    second_run() {
        en: "may be the second to run: allowed, and counted";
        zh: "可能是第二次执行：已获允许并计数";
    }

    /// What went wrong. `meaning` is a message of the core, `fault` its name.
    failed(meaning: &str, fault: &str) {
        en: "{meaning} ({fault})";
        zh: "{meaning}（{fault}）";
    }

    /// With the code that the service gave.
    failed_with(meaning: &str, fault: &str, code: &str) {
        en: "{meaning} ({fault}, code {code})";
        zh: "{meaning}（{fault}，代码 {code}）";
    }

    /// The failure came later than its send.
    failed_after(what: &str, span: &str) {
        en: "{what}, after {span}";
        zh: "{what}，{span}后";
    }

    /// Which rule matched.
    by_rule(rule: &str) {
        en: "matched: {rule}";
        zh: "匹配：{rule}";
    }

    /// What follows for the question whether it ran.
    evidence(name: &str, meaning: &str) {
        en: "evidence {name}: {meaning}";
        zh: "证据 {name}：{meaning}";
    }

    /// No byte got there.
    never_sent() {
        en: "it did not reach the service";
        zh: "请求未到达服务";
    }

    /// It was refused.
    refused() {
        en: "it was not run";
        zh: "请求未被执行";
    }

    /// It failed.
    failed_quickly() {
        en: "the service failed, so few more sends are made";
        zh: "服务出错，只会再发送少数几次";
    }

    /// It may have run.
    maybe_ran() {
        en: "it may have run";
        zh: "请求可能已执行";
    }

    /// Our limit ended it.
    no_answer() {
        en: "it is probably still running";
        zh: "请求可能仍在执行";
    }

    /// The client has some of it.
    committed() {
        en: "some of the answer had reached the client";
        zh: "部分回答已到达客户端";
    }

    /// It is final.
    is_final() {
        en: "definite: the same request would fail again, or no short wait heals it";
        zh: "确定的错误：重发同样的请求仍会失败，或短时间等待无法恢复";
    }

    /// What is left out.
    left_out(sends: u32) {
        en: "{sends} in the middle not told", sends = counted(u64::from(sends), "send", "sends");
        zh: "中间 {sends} 次发送未列出";
    }

    /// Tokens.
    tokens(input: &str, cached: &str, output: &str) {
        en: "tokens: {input} in ({cached} of them cached), {output} out";
        zh: "token：输入 {input}（其中缓存 {cached}），输出 {output}";
    }

    /// The commit.
    begins() {
        en: "the answer begins to go to the client";
        zh: "开始向客户端返回回答";
    }

    /// The end, with a status. `outcome` is a message below.
    over(outcome: &str, what: &str) {
        en: "{outcome}: {what}";
        zh: "{outcome}：{what}";
    }

    /// With the status that the client got.
    with_status(what: &str, status: u16) {
        en: "{what}, with status {status}";
        zh: "{what}，状态码 {status}";
    }

    /// With the reason.
    because(what: &str, why: &str, reason: &str) {
        en: "{what} ({why}: {reason})";
        zh: "{what}（{why}：{reason}）";
    }

    /// All in all.
    sums(sends: u32, waited: &str, received: &str, sent: &str) {
        en: "{sends}, {waited} waited; {received} in, {sent} out", sends = counted(u64::from(sends), "send", "sends");
        zh: "发送 {sends} 次，等待 {waited}；收到 {received}，返回 {sent}";
    }

    /// Bytes.
    bytes(count: &str) {
        en: "{count} bytes";
        zh: "{count} 字节";
    }

    /// What the client was told: an answer.
    told_served() {
        en: "the client got the answer, whole";
        zh: "客户端收到了完整的回答";
    }

    /// An error of the service.
    told_passed() {
        en: "the client got the service's own error";
        zh: "客户端收到了服务自己的错误";
    }

    /// A failure as it came.
    told_returned() {
        en: "the client got the failure as it came";
        zh: "客户端收到了原样的故障";
    }

    /// That it is not sent again.
    told_refused() {
        en: "the client was told that it is not sent again";
        zh: "客户端被告知不会重新发送";
    }

    /// That the relay gave up.
    told_gave_up() {
        en: "the client was told of the last failure";
        zh: "客户端被告知最后一次故障";
    }

    /// No answer at all.
    told_nothing() {
        en: "the client's connection was closed without an answer";
        zh: "客户端的连接被关闭，没有得到回答";
    }

    /// A break.
    told_broken() {
        en: "the client's connection was broken off, as the service's was";
        zh: "与服务的连接中断，客户端的连接也随之断开";
    }

    /// A cut.
    told_cut() {
        en: "the client's connection was cut, so that it resumes";
        zh: "切断了客户端的连接，使其续传";
    }

    /// Nothing.
    told_client_left() {
        en: "the client hung up";
        zh: "客户端断开了连接";
    }

    /// An outcome of another version.
    told_otherwise() {
        en: "this version does not know what that is";
        zh: "此版本不认识该结果";
    }

    /// Why the relay stopped: sends.
    sends_spent() {
        en: "no send was left";
        zh: "发送次数已用完";
    }

    /// Patience.
    patience_spent() {
        en: "the client's patience was spent";
        zh: "客户端的耐心已用完";
    }

    /// Every breaker was open.
    circuits_open() {
        en: "the breaker of each upstream was open for longer than the client waits";
        zh: "每个上游都处于断路状态，时间超出了客户端的耐心";
    }

    /// A floor.
    told_to_wait_longer() {
        en: "the service asked for more than the client's patience";
        zh: "服务要求的等待超出了客户端的耐心";
    }

    /// The end of the relay.
    stopping() {
        en: "the relay was being stopped";
        zh: "中继正在停止";
    }

    /// A bar: the certificate.
    certificate() {
        en: "the service's certificate is not trusted here";
        zh: "本机不信任服务的证书";
    }

    /// A bar: the proxy.
    proxy() {
        en: "the proxy on the way forbids it";
        zh: "途中的代理不允许";
    }

    /// A bar: the answer.
    unfit() {
        en: "what the service sends cannot be passed on, and would come again";
        zh: "服务发来的内容无法转交，重发也会如此";
    }

    /// A bar: the relay's own credential.
    credential() {
        en: "the relay's own credential for the service cannot be had";
        zh: "无法取得中继自己用于该服务的凭据";
    }

    /// It got the answer of another call.
    not_sent() {
        en: "it was not sent: the lane was parked, and it got the answer that had parked it";
        zh: "没有发送：通道已停用，它得到的是使通道停用的那个回答";
    }

    /// How many more.
    others(count: u64) {
        en: "note: {others} that name; `RUN-cN`, such as `7-c12`, names one", others = counted(count, "older call goes by", "older calls go by");
        zh: "说明：另有 {count} 个较早的请求同名；`RUN-cN`（例如 `7-c12`）可指定其一";
    }

    /// There is no such call.
    no_such_call(name: &str) {
        en: "the history has no call named {name}\nhint: `last`, a number from the log such as `c12`, or a request id of the client or the service; older calls may be gone (`history.max_age`)";
        zh: "历史中没有名为 {name} 的请求\n提示：可用 `last`、日志中的编号（如 `c12`），或客户端、服务的请求 ID；较早的请求可能已被清除（`history.max_age`）";
    }

    /// There is none at all.
    no_call() {
        en: "the history has no call yet\nhint: make one through the relay, and ask again";
        zh: "历史中还没有请求\n提示：先通过中继发出一个请求，再来查询";
    }
}
