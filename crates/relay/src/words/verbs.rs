//! What verbs say that have no part of their own.

relay_core::words! {
    table TABLE "verbs";

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
