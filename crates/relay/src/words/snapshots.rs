//! What is said about snapshots of calls that ended badly.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "snapshots";

    /// There is no folder for them.
    no_folder() {
        en: "there is no folder for snapshots\nhint: name one with `folder` below [snapshots], or a state folder with --state-dir";
        zh: "没有存放快照的目录\n提示：在 [snapshots] 下用 `folder` 指定，或用 --state-dir 指定状态目录";
    }

    /// The folder is empty or not there.
    none(folder: &str) {
        en: "there are no snapshots in {folder}\nhint: `enabled = true` below [snapshots] keeps calls that end badly";
        zh: "{folder} 中没有快照\n提示：在 [snapshots] 下设置 `enabled = true` 会保留失败的请求";
    }

    /// There is none of this name.
    none_of_this_name(id: &str) {
        en: "there is no snapshot `{id}`\nhint: `steady-relay snapshots list` names all; `c12` and `7-c12` go for calls, as in the log and the history";
        zh: "没有快照 `{id}`\n提示：`steady-relay snapshots list` 列出全部；也可用日志和历史中的请求名，如 `c12`、`7-c12`";
    }

    /// A newer program wrote it.
    newer(path: &str) {
        en: "{path} is of a newer steady-relay\nhint: update this one";
        zh: "{path} 由更新版本的 steady-relay 写成\n提示：更新本程序";
    }

    /// The file cannot be read.
    unreadable(path: &str, error: &str) {
        en: "{path} cannot be read: {error}";
        zh: "无法读取 {path}：{error}";
    }

    /// A replay without `--dry-run`.
    needs_dry_run() {
        en: "a snapshot is not sent: it may have run already, and its secrets are gone\nhint: add --dry-run to see what the present settings would make of it";
        zh: "快照不会被发送：它可能已经执行过，而且其中的机密已被删去\n提示：加上 --dry-run 查看当前设置会如何处理它";
    }

    /// When, who, how, and after how many sends.
    ended(at: &str, who: &str, how: &str, sends: u32) {
        en: "{at}: {who} ended as {how} after {sends}", sends = counted(u64::from(sends), "send", "sends");
        zh: "{at}：{who} 在发送 {sends} 次后以 {how} 结束";
    }

    /// A message of a WebSocket.
    message() {
        en: "a message of a WebSocket";
        zh: "WebSocket 消息";
    }

    /// No answer was kept.
    no_answer() {
        en: "no answer came, or none was kept";
        zh: "没有收到响应，或没有保留响应";
    }

    /// A body that is not there.
    left_out(bytes: u64, why: &str) {
        en: "[{bytes} bytes are left out: {why}]";
        zh: "[略去 {bytes} 字节：{why}]";
    }

    /// There was none.
    no_body() {
        en: "[no body]";
        zh: "[没有正文]";
    }

    /// Texts are shortened.
    shortened(most: usize) {
        en: "[texts are shortened to {most} letters each]";
        zh: "[每段文本缩短到 {most} 个字符]";
    }

    /// Nothing was decided.
    undecided(why: &str) {
        en: "nothing can be decided anew: {why}";
        zh: "无法重新判定：{why}";
    }

    /// Why there is nothing to decide.
    of_a_websocket() {
        en: "its answer came as a message of a WebSocket";
        zh: "它的响应是 WebSocket 消息";
    }

    /// What a replay did.
    not_sent() {
        en: "nothing was sent";
        zh: "没有发送任何内容";
    }

    /// How it ended; `how` is a sentence.
    then(how: &str) {
        en: "then: {how}";
        zh: "当时：{how}";
    }

    /// What the settings say now.
    by_profile(profile: &str) {
        en: "now: profile `{profile}`";
        zh: "现在：策略 `{profile}`";
    }

    /// The same with an upstream of a route.
    by_route(profile: &str, upstream: &str) {
        en: "now: profile `{profile}`, by a route to [upstream.{upstream}]";
        zh: "现在：策略 `{profile}`，经路由发往 [upstream.{upstream}]";
    }
}
