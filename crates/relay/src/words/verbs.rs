//! What verbs say that have no part of their own.

relay_core::words! {
    table TABLE "verbs";

    /// Nothing tells where the configuration file would be.
    no_place() {
        en: "error: neither HOME nor XDG_CONFIG_HOME says where the configuration file would be\nhint: name it with --config";
        zh: "错误：HOME 和 XDG_CONFIG_HOME 都未设置，无法得知配置文件的位置\n提示：用 --config 指定";
    }

    /// A file that is named is not there.
    named_is_missing() {
        en: "note: there is no such file, and the relay does not start without a file that is named: check the path";
        zh: "说明：没有这个文件，而指定的文件不存在时中继不会启动：请检查路径";
    }

    /// The usual one is not there.
    no_file_yet() {
        en: "note: there is no such file yet, so the defaults hold";
        zh: "说明：还没有这个文件，因此使用默认值";
    }

    /// A recorded answer is not there.
    no_answer_file() {
        en: "there is no such file\nhint: record an answer into it: `curl -i … > FILE`";
        zh: "没有这个文件\n提示：先把响应录制到其中：`curl -i … > FILE`";
    }

    /// It is a folder.
    answer_is_folder() {
        en: "this is a folder, not a file\nhint: name one file with one recorded answer";
        zh: "这是目录，不是文件\n提示：请指定一个录有响应的文件";
    }

    /// It may not be read.
    answer_not_allowed() {
        en: "the file may not be read\nhint: check its owner and mode";
        zh: "没有读取该文件的权限\n提示：检查它的所有者和权限";
    }

    /// It cannot be read.
    answer_unreadable(error: &str) {
        en: "the file cannot be read: {error}";
        zh: "无法读取该文件：{error}";
    }

    /// Where manual pages are now.
    pages_written(dir: &str) {
        en: "note: the manual pages are in {dir}";
        zh: "说明：手册页已写入 {dir}";
    }

    /// They could not be written.
    pages_not_written(dir: &str, error: &str) {
        en: "error: {dir}: the manual pages cannot be written: {error}\nhint: name a folder that you may write to";
        zh: "错误：{dir}：无法写入手册页：{error}\n提示：请换一个有写权限的目录";
    }
}
