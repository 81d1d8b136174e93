//! What `run` says.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "run";

    /// The end of a session in which calls met failures. `met`, `ended` and `spent` are messages of this table.
    closing(calls: u64, met: &str, ended: &str, spent: &str) {
        en: "steady-relay: {calls} met {met}, {ended}, {spent}", calls = counted(calls, "call", "calls");
        zh: "steady-relay：{calls} 次请求遇到{met}，{ended}，{spent}";
    }

    /// What calls met where all of it was a want of capacity.
    capacity_errors() {
        en: "capacity errors";
        zh: "容量不足";
    }

    /// What they met otherwise.
    failures() {
        en: "failures";
        zh: "故障";
    }

    /// The one call was served in the end.
    recovered_alone() {
        en: "recovered";
        zh: "已恢复";
    }

    /// All calls were.
    all_recovered() {
        en: "all recovered";
        zh: "全部恢复";
    }

    /// Some were.
    some_recovered(recovered: u64) {
        en: "{recovered} recovered";
        zh: "{recovered} 次已恢复";
    }

    /// And some the relay gave up.
    lost(ended: &str, lost: u64) {
        en: "{ended}, {lost} lost";
        zh: "{ended}，{lost} 次失败";
    }

    /// How long those calls waited, and how often they were sent.
    spent(seconds: u64, sends: u64) {
        en: "{seconds} s waited, {sends}", sends = counted(sends, "send", "sends");
        zh: "共等待 {seconds} 秒，共发送 {sends} 次";
    }

    /// And how many of the sends may have been paid for twice.
    spent_twice(spent: &str, twice: u64) {
        en: "{spent}, {twice} may have been billed twice";
        zh: "{spent}，其中 {twice} 次可能被重复计费";
    }
}
