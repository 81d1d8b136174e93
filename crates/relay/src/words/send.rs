//! What `send` says.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "send";

    /// Sends or patience were spent. `fault` is the name of the last fault, `status` that of the answer.
    gave_up(sends: u64, waited: f64, fault: &str, status: &str) {
        en: "steady-relay: gave up after {sends}, {waited} s waited ({fault}, status {status})", sends = counted(sends, "send", "sends");
        zh: "steady-relay：发送 {sends} 次、等待 {waited} 秒后放弃（{fault}，状态码 {status}）";
    }

    /// It may have run, so it is not sent again.
    not_again(why: &str) {
        en: "steady-relay: not sent again, since it may have run ({why})";
        zh: "steady-relay：请求可能已经执行，因此不重新发送（{why}）";
    }

    /// The service's last word.
    said_no(status: &str) {
        en: "steady-relay: the service said no (status {status})";
        zh: "steady-relay：服务明确拒绝了请求（状态码 {status}）";
    }

    /// Something between here and the service does not let it through.
    barred(why: &str) {
        en: "steady-relay: no resend would help ({why}); the answer says what stands in the way";
        zh: "steady-relay：重新发送无济于事（{why}），原因见响应内容";
    }

    /// The answer did not come to its end.
    broke_off() {
        en: "steady-relay: the answer broke off";
        zh: "steady-relay：响应中途断开";
    }

    /// The relay itself did not take the request.
    turned_away(status: &str) {
        en: "steady-relay: not sent (status {status}); the answer says why";
        zh: "steady-relay：请求未发送（状态码 {status}），原因见响应内容";
    }

    /// Served, and maybe paid for more than once.
    billed_twice(times: u64) {
        en: "steady-relay: served; {times} may have been billed twice", times = counted(times, "send", "sends");
        zh: "steady-relay：已完成，其中 {times} 次发送可能被重复计费";
    }

    /// There is no URL on the command line.
    no_url() {
        en: "there is no URL\nhint: steady-relay send URL";
        zh: "缺少 URL\n提示：steady-relay send URL";
    }

    /// The method stands there twice.
    method_twice() {
        en: "the method is named twice\nhint: name it once";
        zh: "请求方法给出了两次\n提示：只写一次";
    }

    /// This cannot be a method.
    no_method(method: &str) {
        en: "`{method}` is no method that can be sent\nhint: write one such as POST";
        zh: "`{method}` 不是可以发送的请求方法\n提示：例如 POST";
    }

    /// The URL cannot be read.
    url_unread() {
        en: "the URL cannot be read\nhint: write one such as https://llm.example.com/v1/responses";
        zh: "无法识别该 URL\n提示：例如 https://llm.example.com/v1/responses";
    }

    /// The URL does not say how to speak to it.
    url_without_scheme() {
        en: "the URL has no http:// or https:// before it\nhint: write one such as https://llm.example.com/v1/responses";
        zh: "URL 前面缺少 http:// 或 https://\n提示：例如 https://llm.example.com/v1/responses";
    }

    /// The URL is none that a request can be sent to.
    url_unfit(why: &str) {
        en: "the URL {why}\nhint: write one such as https://llm.example.com/v1/responses";
        zh: "URL 不可用（{why}）\n提示：例如 https://llm.example.com/v1/responses";
    }

    /// A header without a colon. `place` is the flag or the file.
    header_without_colon(place: &str) {
        en: "{place}: a header has no colon\nhint: write `name: value`, such as -H 'authorization: Bearer …'";
        zh: "{place}：某个请求头缺少冒号\n提示：写成 `name: value`，例如 -H 'authorization: Bearer …'";
    }

    /// A header whose name cannot be one.
    header_without_name(place: &str) {
        en: "{place}: a header has no name that can be sent\nhint: write `name: value`, such as -H 'authorization: Bearer …'";
        zh: "{place}：某个请求头的名称无法发送\n提示：写成 `name: value`，例如 -H 'authorization: Bearer …'";
    }

    /// A header that is not for the user to give.
    header_not_to_give(place: &str, name: &str) {
        en: "{place}: the header `{name}` follows from what is sent\nhint: leave it out";
        zh: "{place}：请求头 `{name}` 由程序自动生成\n提示：去掉它";
    }

    /// A value that no header can have. It may be a secret.
    header_unfit(place: &str, name: &str) {
        en: "{place}: the value of `{name}` cannot be sent\nhint: write it in one line, without control characters";
        zh: "{place}：`{name}` 的值无法发送\n提示：写在一行之内，不要包含控制字符";
    }

    /// A file of headers that is no text.
    headers_no_text(file: &str) {
        en: "{file}: this is no text\nhint: write one header on each line";
        zh: "{file}：不是文本文件\n提示：每行写一个请求头";
    }

    /// A file that cannot be read.
    unread(file: &str, why: &str) {
        en: "{file}: {why}\nhint: check the path";
        zh: "{file}：{why}\n提示：检查路径";
    }

    /// A folder where a file should be.
    folder(file: &str) {
        en: "{file}: this is a folder\nhint: name a file";
        zh: "{file}：这是目录，不是文件\n提示：请指定一个文件";
    }

    /// More than is kept of what is no file.
    piped_too_much(place: &str, mebibytes: u64) {
        en: "{place}: there are more than {mebibytes} MiB\nhint: put them into a file, and name it with --data-file";
        zh: "{place}：数据超过 {mebibytes} MiB\n提示：把数据写入文件，再用 --data-file 指定";
    }

    /// A file that is too long.
    too_long(file: &str, kibibytes: u64) {
        en: "{file}: the file is longer than {kibibytes} KiB\nhint: name another";
        zh: "{file}：文件超过 {kibibytes} KiB\n提示：换一个文件";
    }

    /// The value of `--patience` is no time.
    patience(why: &str) {
        en: "--patience: the value {why}\nhint: write a time such as 30s or 5min";
        zh: "--patience 的值不可用（{why}）\n提示：写一个时间，例如 30s 或 5min";
    }

    /// The file that the answer is to go to.
    output(file: &str, why: &str) {
        en: "{file}: {why}\nhint: name a file that can be written with -o";
        zh: "{file}：{why}\n提示：用 -o 指定一个可以写入的文件";
    }

    /// The answer came and cannot be written.
    unwritten(why: &str) {
        en: "the answer cannot be written: {why}";
        zh: "无法写出响应：{why}";
    }
}
