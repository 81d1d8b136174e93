//! What `replay` says.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "replay";

    /// Nothing was named.
    which_calls() {
        en: "which calls are to be replayed?\nhint: `--since 24h` takes those of the history, FILE those of an export or a report, and `-` those on standard input";
        zh: "要重放哪些请求？\n提示：`--since 24h` 取历史中的请求，FILE 取导出文件或报告中的，`-` 取标准输入中的";
    }

    /// The first line.
    replayed(calls: u64, differ: u64) {
        en: "{calls} replayed with the present settings, {differ} would differ", calls = counted(calls, "call", "calls");
        zh: "用当前设置重放了 {calls} 次请求，其中 {differ} 次会有所不同";
    }

    /// How many would end otherwise: in all, of those that were served, of those that were not.
    ends(ends: u64, served: u64, lost: u64) {
        en: "ends: {ends} would end in another way, {served} that had been served and {lost} that had not";
        zh: "结局：{ends} 次会以其他方式结束，其中 {served} 次原已得到响应，{lost} 次原未得到";
    }

    /// How the waits would differ; `sum` with its sign.
    waits(longer: u64, shorter: u64, sum: &str) {
        en: "waits: {longer} longer, {shorter} shorter, {sum} in all";
        zh: "等待：{longer} 次更长，{shorter} 次更短，合计 {sum}";
    }

    /// How the sends would differ; `sum` with its sign.
    sends(more: u64, fewer: u64, sum: &str) {
        en: "sends: {more} with more, {fewer} with fewer, {sum} in all";
        zh: "发送：{more} 次请求更多，{fewer} 次更少，合计 {sum}";
    }

    /// A call that would differ; `was` and `would` are the next message.
    call(id: &str, was: &str, would: &str) {
        en: "{id}: {was} -> {would}";
        zh: "{id}：{was} -> {would}";
    }

    /// How a call ended, or would.
    side(outcome: &str, sends: u64, waited: &str) {
        en: "{outcome}, {sends}, {waited} waited", sends = counted(sends, "send", "sends");
        zh: "{outcome}，发送 {sends} 次，等待 {waited}";
    }

    /// In place of an outcome: it would be sent again, and nobody knows what comes of it.
    goes_on() {
        en: "would go on trying";
        zh: "会继续尝试";
    }

    /// Those that are not shown.
    more(count: u64) {
        en: "and {count} more; `--json` has them all";
        zh: "另有 {count} 次；`--json` 会列出全部";
    }

    /// Calls about which nothing is decided.
    passed_over(count: u64) {
        en: "passed over: {count} still open, never sent, or of a program that knows other names", count = counted(count, "call", "calls");
        zh: "跳过 {count} 次：仍在进行、从未发送，或由使用其他名称的程序记录";
    }

    /// The file cannot be read.
    unreadable(why: &str) {
        en: "it cannot be read: {why}\nhint: name a file of recorded calls, or `-` for standard input";
        zh: "无法读取：{why}\n提示：请指定录有请求的文件，或用 `-` 表示标准输入";
    }

    /// It is too long; in MiB.
    too_long(most: u64) {
        en: "it is longer than {most} MiB\nhint: replay a part of it, or use `--since`";
        zh: "文件超过 {most} MiB\n提示：只重放其中一部分，或使用 `--since`";
    }

    /// It is no text.
    no_text() {
        en: "it is not UTF-8 text\nhint: recorded calls are JSON, one call on each line";
        zh: "不是 UTF-8 文本\n提示：录制的请求是 JSON，每行一次请求";
    }

    /// A line is no call.
    no_call(line: u64, why: &str) {
        en: "line {line} is no recorded call: {why}\nhint: recorded calls are JSON, one call on each line";
        zh: "第 {line} 行不是录制的请求：{why}\n提示：录制的请求是 JSON，每行一次请求";
    }

    /// There is no call in it.
    no_calls() {
        en: "there is no recorded call in it\nhint: recorded calls are JSON, one call on each line";
        zh: "其中没有录制的请求\n提示：录制的请求是 JSON，每行一次请求";
    }

    /// There is none in the history.
    none_since() {
        en: "no call was recorded in this time\nhint: look further back: `--since 7d`";
        zh: "这段时间内没有录制的请求\n提示：查看更早的记录：`--since 7d`";
    }
}
