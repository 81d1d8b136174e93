//! What is said about the history of calls.

relay_core::words! {
    table TABLE "history";

    /// The file cannot be used; `error` is the system's or SQLite's.
    unusable(path: &str, error: &str) {
        en: "the history {path} cannot be used: {error}";
        zh: "无法使用历史文件 {path}：{error}";
    }

    /// What lies there is a folder, or a pipe.
    no_file() {
        en: "this is no file";
        zh: "这不是文件";
    }

    /// A file lies where a folder should be.
    no_place() {
        en: "this is no folder";
        zh: "这不是目录";
    }

    /// A newer relay has written the file.
    newer(path: &str) {
        en: "the history {path} is of a newer steady-relay\nhint: update this one, or name another file with `history.file`";
        zh: "历史文件 {path} 由更新版本的 steady-relay 写成\n提示：更新本程序，或用 `history.file` 指定另一个文件";
    }

    /// There is no file.
    missing(path: &str) {
        en: "there is no history at {path}: no relay has recorded a call there yet";
        zh: "{path} 处没有历史文件：还没有中继在那里记录过请求";
    }

    /// The file was damaged.
    damaged(aside: &str) {
        en: "the history was damaged: it lies at {aside} now, and a new one begins";
        zh: "历史文件已损坏：它现在位于 {aside}，并已新建一个";
    }

    /// The file was removed, or another lies in its place.
    gone(path: &str) {
        en: "the history {path} was removed or replaced while the relay runs: it is opened anew";
        zh: "历史文件 {path} 在中继运行期间被删除或替换：将重新打开";
    }

    /// Nothing is written for now; `why` is one of those above.
    not_recorded(why: &str) {
        en: "calls are not recorded: {why}";
        zh: "请求未被记录：{why}";
    }

    /// It is written again.
    recorded_again() {
        en: "calls are recorded again";
        zh: "请求重新开始被记录";
    }

    /// The settings switch it off.
    is_off() {
        en: "the history is switched off (`history.enabled`)\nhint: without it nothing is recorded; set it to true and start the relay anew";
        zh: "历史记录已关闭（`history.enabled`）\n提示：关闭时不会记录任何内容；将其设为 true 并重新启动中继";
    }

    /// There is no place for it.
    no_folder() {
        en: "there is no folder for the history\nhint: name one with --state-dir, or a file with `history.file`";
        zh: "没有可存放历史的目录\n提示：用 --state-dir 指定目录，或用 `history.file` 指定文件";
    }

    /// The system gives no thread.
    no_thread(error: &str) {
        en: "calls cannot be recorded: {error}";
        zh: "无法记录请求：{error}";
    }
}
