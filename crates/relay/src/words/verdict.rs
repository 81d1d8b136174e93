//! What `why` says in its last line: what happened, and whose doing it was.

use relay_core::words::counted;
use relay_core::{Fault, Lang};

relay_core::words! {
    table TABLE "verdict";

    /// A fault of another version, for the last line.
    was_unknown(fault: &str) {
        en: "Something went wrong ({fault})";
        zh: "出现故障（{fault}）";
    }

    /// The last line: all was well.
    untroubled() {
        en: "The service answered the first send; the relay had nothing to do.";
        zh: "服务在第一次发送时就给出了回答；中继无需介入。";
    }

    /// The last line: all was well, by another way.
    went_around() {
        en: "The first way to the service did not work; the relay sent it by another one, and the service answered.";
        zh: "首选线路不可用；中继改走另一条线路发送，服务给出了回答。";
    }

    /// It was held back.
    held_back(span: &str) {
        en: "The service was refusing other calls like this one; the relay held it back for {span} and got the answer.";
        zh: "服务正在拒绝其他同类请求；中继让它等待 {span}后得到了回答。";
    }

    /// It went to another upstream before anything was sent.
    went_on() {
        en: "The upstream that comes first took no calls; the relay sent it on at once and got the answer.";
        zh: "首选的上游不接受请求；中继立即转到别处发送并得到了回答。";
    }

    /// Every breaker was open.
    held_cut_off(span: &str) {
        en: "The breaker of each upstream was open, since other calls had failed there; the relay held it for {span} and got the answer.";
        zh: "由于其他请求失败，每个上游都处于断路状态；中继让它等待 {span}后得到了回答。";
    }

    /// The relay's own credential had to be renewed first.
    held_renewing(span: &str) {
        en: "The relay's own credential for the service was being renewed; the relay held the call for {span} and got the answer.";
        zh: "中继自己的凭据正在续期；中继让该请求等待 {span}后得到了回答。";
    }

    /// Who answered. `by` and `instead_of` are names, or as below.
    answered_by(verdict: &str, by: &str, instead_of: &str) {
        en: "{verdict} That came from {by} in place of {instead_of}.";
        zh: "{verdict}回答来自 {by}，而非 {instead_of}。";
    }

    /// A model of an upstream.
    at(model: &str, upstream: &str) {
        en: "{model} at {upstream}";
        zh: "{upstream} 的 {model}";
    }

    /// What had been spent before.
    with_inherited(verdict: &str, spent: &str) {
        en: "{verdict} What an earlier call of the same client had spent counted, too: {spent}.";
        zh: "{verdict}同一客户端之前的请求已用的额度一并计入：{spent}。";
    }

    /// It goes on after a cut.
    resumed(span: &str) {
        en: "The service broke off an earlier answer of this turn; the relay waited {span} and got the answer.";
        zh: "服务中断了本轮对话之前的回答；中继等待 {span}后得到了回答。";
    }

    /// It was saved.
    saved(was: &str, span: &str) {
        en: "{was}; the relay waited {span} and got the answer.";
        zh: "{was}；中继等待 {span}后得到了回答。";
    }

    /// Without a wait to speak of.
    saved_at_once(was: &str) {
        en: "{was}; the relay sent again at once and got the answer.";
        zh: "{was}；中继立即重新发送并得到了回答。";
    }

    /// And may have been paid for twice.
    maybe_twice(verdict: &str) {
        en: "{verdict} It may have been billed twice.";
        zh: "{verdict}可能被重复计费。";
    }

    /// A definite error.
    passed(was: &str) {
        en: "{was}. The relay passed that on as it came: sending again does not help.";
        zh: "{was}。中继已原样转交：重新发送无济于事。";
    }

    /// That of another call.
    passed_unsent(was: &str) {
        en: "{was}. Another call had been told so before, so the relay did not ask again: it passed on that answer.";
        zh: "{was}。此前已有另一个请求得到这个回答，因此中继没有再次询问，而是转交了那个回答。";
    }

    /// A definite error that nothing tells of.
    passed_alone() {
        en: "The service answered with an error; the relay passed it on as it came.";
        zh: "服务返回了错误；中继已原样转交。";
    }

    /// A failure handed back.
    returned(was: &str) {
        en: "{was}; the relay gave that back as it came, so that the client decides.";
        zh: "{was}；中继将其原样返回，由客户端决定。";
    }

    /// The same, of a call that was to pass untouched.
    returned_untouched(was: &str) {
        en: "{was}; the relay passed that on untouched, since the request asked for that (`x-steady: off`).";
        zh: "{was}；该请求要求原样转交（`x-steady: off`），中继照办。";
    }

    /// A refusal to send again.
    not_again(was: &str, reason: &str) {
        en: "{was}. The relay refused to send again: {reason}.";
        zh: "{was}。中继拒绝重新发送：{reason}。";
    }

    /// A refusal since the relay's own credential cannot be had.
    refused_without_credential() {
        en: "The relay's own credential for the service could not be had, so nothing was sent; `steady-relay status` and the log say why.";
        zh: "无法取得中继自己用于该服务的凭据，因此没有发送；原因见 `steady-relay status` 和日志。";
    }

    /// A refusal that nothing tells of.
    not_at_all() {
        en: "The relay refused the call itself.";
        zh: "中继自行拒绝了该请求。";
    }

    /// It gave up.
    gave_up(was: &str, sends: u32, span: &str, reason: &str) {
        en: "{was}; the relay gave up after {sends} and a wait of {span}: {reason}.", sends = counted(u64::from(sends), "send", "sends");
        zh: "{was}；中继在发送 {sends} 次、等待 {span}后放弃：{reason}。";
    }

    /// It gave up before anything was sent.
    gave_up_in_line(span: &str, reason: &str) {
        en: "The service was refusing other calls like this one; the relay held it back for {span} and gave up: {reason}.";
        zh: "服务正在拒绝其他同类请求；中继让它等待 {span}后放弃：{reason}。";
    }

    /// It was not sent at all, since every breaker was open.
    gave_up_cut_off(span: &str, reason: &str) {
        en: "Other calls had failed at each upstream; the relay did not send this one, and gave up after a wait of {span}: {reason}.";
        zh: "其他请求在每个上游都已失败；中继没有发送该请求，等待 {span}后放弃：{reason}。";
    }

    /// The relay's own credential was not had in time.
    gave_up_renewing(span: &str) {
        en: "The relay's own credential for the service was not had within {span}, so the relay gave up and sent nothing.";
        zh: "中继自己的凭据在 {span}内未能续期，因此中继放弃，没有发送该请求。";
    }

    /// It was not sent at all, since others had spent what there was.
    gave_up_unsent(reason: &str) {
        en: "The relay did not send it: {reason}.";
        zh: "中继没有发送该请求：{reason}。";
    }

    /// The answer broke off.
    broken(sent: &str) {
        en: "The service, or the way to it, broke off its answer after {sent} had reached the client; what has begun is not sent again.";
        zh: "服务或其连接在 {sent}到达客户端后中断了回答；已开始的回答不会重新发送。";
    }

    /// The answer was cut.
    cut(was: &str) {
        en: "{was} in the middle of its answer; the relay cut the connection, so that the client resumes.";
        zh: "{was}（在回答中途）；中继切断了连接，使客户端续传。";
    }

    /// The connection was, before there was an answer.
    cut_before(was: &str) {
        en: "{was}; the relay cut the connection, so that the client sends all of its input again.";
        zh: "{was}；中继切断了连接，使客户端重新发送全部输入。";
    }

    /// The client left while the relay waited.
    left_waiting(span: &str, meaning: &str) {
        en: "The client hung up after {span}, while the relay waited to send again ({meaning}).";
        zh: "客户端在 {span}后断开，当时中继正在等待重新发送（{meaning}）。";
    }

    /// While it was held back.
    left_in_line(span: &str) {
        en: "The client hung up after {span}, while the relay held the call back, since the service was refusing others.";
        zh: "客户端在 {span}后断开，当时服务正在拒绝其他请求，中继让该请求排队。";
    }

    /// While every breaker was open.
    left_cut_off(span: &str) {
        en: "The client hung up after {span}, while the relay held the call, since the breaker of each upstream was open.";
        zh: "客户端在 {span}后断开，当时每个上游都处于断路状态，中继让该请求等待。";
    }

    /// The same, while a credential was renewed.
    left_renewing(span: &str) {
        en: "The client hung up after {span}, while the relay's own credential for the service was being renewed.";
        zh: "客户端在 {span}后断开，当时中继自己的凭据正在续期。";
    }

    /// While the service was asked.
    left_asking(span: &str) {
        en: "The client hung up after {span}, while the service had not answered.";
        zh: "客户端在 {span}后断开，当时服务尚未响应。";
    }

    /// While the answer came.
    left_answering(span: &str) {
        en: "The client hung up after {span}, while the answer came.";
        zh: "客户端在 {span}后断开，当时正在返回回答。";
    }

    /// Before anything was done.
    left_at_once(span: &str) {
        en: "The client hung up after {span}, before anything was sent.";
        zh: "客户端在 {span}后断开，当时尚未发送任何内容。";
    }

    /// An outcome of another version.
    otherwise(outcome: &str) {
        en: "It ended in a way that this version does not know ({outcome}).";
        zh: "请求以此版本不认识的方式结束（{outcome}）。";
    }

    /// It goes on: what it does.
    open_opening() {
        en: "It is not over: nothing is sent yet.";
        zh: "请求尚未结束：还未发送任何内容。";
    }

    /// It is sent.
    open_sending() {
        en: "It is not over: the service has not answered yet.";
        zh: "请求尚未结束：服务还未响应。";
    }

    /// It waits.
    open_waiting(meaning: &str) {
        en: "It is not over: the relay waits to send it ({meaning}).";
        zh: "请求尚未结束：中继正在等待发送（{meaning}）。";
    }

    /// It waits for others.
    open_in_line() {
        en: "It is not over: the relay holds it back, since the service refuses others.";
        zh: "请求尚未结束：服务正在拒绝其他请求，中继让它排队。";
    }

    /// It waits for a breaker.
    open_cut_off() {
        en: "It is not over: the relay holds it, since the breaker of each upstream is open.";
        zh: "请求尚未结束：每个上游都处于断路状态，中继让它等待。";
    }

    /// The same, while a credential is renewed.
    open_renewing() {
        en: "It is not over: the relay's own credential for the service is being renewed.";
        zh: "请求尚未结束：中继自己的凭据正在续期。";
    }

    /// It streams.
    open_streaming() {
        en: "It is not over: the answer is coming.";
        zh: "请求尚未结束：正在返回回答。";
    }

    /// Its run is over.
    cut_short() {
        en: "The relay ended before this call did: what became of it is not known.";
        zh: "中继在该请求之前结束：其结果未知。";
    }
}

/// What went wrong, as a whole clause of the past.
#[must_use]
pub const fn was(lang: Lang, fault: Fault) -> &'static str {
    match lang {
        Lang::Chinese => fault.meaning_in(lang),
        Lang::English => match fault {
            Fault::AtCapacity => "The service was at capacity",
            Fault::Overloaded => "The service was overloaded",
            Fault::ModelLoading => "The model was being loaded",
            Fault::Throttled => "The service throttled this account",
            Fault::QuotaSpent => "The quota or plan of this account was spent",
            Fault::Authentication => "The service did not accept the credential",
            Fault::BadRequest => "The service did not accept the request",
            Fault::TooLong => "The request was too long for the service",
            Fault::ContentRefused => "The service refused the content",
            Fault::Challenge => "The edge of the service asked for a browser check",
            Fault::ServerFailed => "The service failed",
            Fault::BrokenStream => "The service broke off its answer",
            Fault::EmptyAnswer => "The service gave an empty answer",
            Fault::NoAnswer => "The service gave no answer in time",
            Fault::NeverSent => "The service could not be reached",
        },
    }
}
