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

    /// A settings file of a client that is not what it should be.
    left_alone(file: &str) {
        en: "{file} is not a JSON object: left to the client";
        zh: "{file} 不是 JSON 对象：留给客户端自行处理";
    }

    /// A settings file of a client that cannot be read.
    unreadable(file: &str, why: &str) {
        en: "{file} cannot be read: {why}";
        zh: "无法读取 {file}：{why}";
    }

    /// Why Gemini CLI cannot be moved: it logs in by something else than a key.
    gemini_logs_in_by(how: &str) {
        en: "its settings choose the login `{how}`, which goes to Google whatever the base URL is";
        zh: "其设置选择了登录方式 `{how}`，无论 base URL 为何都会直连 Google";
    }

    /// Why Gemini CLI cannot be moved: no settings file says how it logs in.
    gemini_chooses_nothing() {
        en: "with a base URL it starts only where a settings file chooses the login by API key";
        zh: "设置了 base URL 时，只有设置文件选择了 API 密钥登录，它才能启动";
    }

    /// What helps.
    gemini_choose_a_key() {
        en: "`steady-relay setup gemini` writes that choice; or set security.auth.selectedType to \"gemini-api-key\" in ~/.gemini/settings.json";
        zh: "运行 `steady-relay setup gemini` 写入该选择；或在 ~/.gemini/settings.json 中将 security.auth.selectedType 设为 \"gemini-api-key\"";
    }

    /// Why opencode cannot be moved.
    not_json(name: &str) {
        en: "{name} does not hold a JSON object";
        zh: "{name} 的内容不是 JSON 对象";
    }

    /// What helps.
    mend_or_unset(name: &str) {
        en: "mend or unset {name}";
        zh: "请修正或取消设置 {name}";
    }

    /// A login that no base URL moves.
    opencode_chatgpt() {
        en: "opencode's ChatGPT login goes to chatgpt.com by itself: its requests go around the relay";
        zh: "opencode 的 ChatGPT 登录会直连 chatgpt.com：其请求不经过中继";
    }

    /// A model, or a service, that has no room.
    is_at_capacity(model: &str) {
        en: "{model} at capacity";
        zh: "{model} 容量不足";
    }

    /// One that has too much to do.
    is_overloaded(model: &str) {
        en: "{model} overloaded";
        zh: "{model} 过载";
    }

    /// One that is not ready yet.
    is_loading(model: &str) {
        en: "{model} being loaded";
        zh: "{model} 正在加载";
    }

    /// One that limits us.
    is_throttled(model: &str) {
        en: "{model} throttled";
        zh: "{model} 被限流";
    }

    /// One that fails otherwise.
    is_failing(model: &str) {
        en: "{model} fails";
        zh: "{model} 出现故障";
    }

    /// One at which others wait before us.
    is_busy(model: &str) {
        en: "{model} is busy";
        zh: "{model} 繁忙";
    }

    /// A held call, in the title of the terminal: what is the matter, for how long, and when it is tried next.
    held_next(what: &str, held: &str, next: &str) {
        en: "{what}, held {held}, next try in {next}";
        zh: "{what}，已等待 {held}，{next}后重试";
    }

    /// The same, while it is tried.
    held_trying(what: &str, held: &str) {
        en: "{what}, held {held}, trying now";
        zh: "{what}，已等待 {held}，正在重试";
    }

    /// The same, where others come first.
    held_in_line(what: &str, held: &str) {
        en: "{what}, held {held}, waits for its turn";
        zh: "{what}，已等待 {held}，正在排队";
    }

    /// The title of a notice on the desktop.
    holds() {
        en: "Steady Relay holds a request";
        zh: "Steady Relay 正在保持一个请求";
    }

    /// A span of time.
    seconds(seconds: u64) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// A longer one.
    minutes(minutes: u64) {
        en: "{minutes} min";
        zh: "{minutes} 分钟";
    }

    /// To somebody with a claude.ai login: what Claude Code leaves off behind a base URL that is not Anthropic's.
    claude_leaves_off() {
        en: "behind the relay's base URL Claude Code leaves off Remote Control, settings that an organisation manages, Message Threads and error reports; tool search and the web tools stay";
        zh: "使用中继的 base URL 时，Claude Code 会关闭 Remote Control、组织托管设置、Message Threads 和错误报告；工具搜索和网页工具不受影响";
    }

    /// What its own switch for retrying does.
    claude_retries() {
        en: "its own switch CLAUDE_CODE_RETRY_WATCHDOG=1 retries for hours without a relay; leave it off here, or both multiply";
        zh: "它自带的开关 CLAUDE_CODE_RETRY_WATCHDOG=1 无需中继也能重试数小时；在此请勿开启，否则两者的重试次数会相乘";
    }

    /// How to have all of it.
    claude_without() {
        en: "to have all of that, start `claude` without `run`";
        zh: "如需这些功能，请不通过 `run` 直接启动 `claude`";
    }
}
