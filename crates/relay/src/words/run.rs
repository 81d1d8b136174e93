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

    /// No client is named.
    no_client() {
        en: "no client is named\nhint: steady-relay run -- codex";
        zh: "没有指定客户端\n提示：steady-relay run -- codex";
    }

    /// The client's settings name this very relay. `origin` is a message of this table.
    already_here(origin: &str, url: &str) {
        en: "{origin} already sends this client to the relay itself ({url})\nhint: start the client without `run`: it is protected as it is; or remove that setting, and `run` makes its own for each session";
        zh: "{origin} 已让该客户端直接使用此中继（{url}）\n提示：不用 `run` 直接启动该客户端即可，它已受保护；或去掉该设置，由 `run` 为每次会话单独设置";
    }

    /// An address that is of no use; `why` ends the sentence. The address may hold a password, so it is not repeated.
    bad_address(origin: &str, why: &str) {
        en: "{origin} names an address that cannot be forwarded to: it {why}";
        zh: "无法转发到 {origin} 指定的地址：{why}";
    }

    /// Something stands in the way of moving a client.
    immovable(client: &str, why: &str, hint: &str) {
        en: "{client} cannot be moved to the relay: {why}\nhint: {hint}";
        zh: "无法让 {client} 使用中继：{why}\n提示：{hint}";
    }

    /// There is no such program.
    not_found(program: &str) {
        en: "`{program}` was not found\nhint: install it, or give its full path";
        zh: "没有找到 `{program}`\n提示：请安装它，或写出完整路径";
    }

    /// A file of the working directory.
    is_here(program: &str, here: &str) {
        en: "`{program}` is not on the PATH, but in this folder\nhint: write `{here}`";
        zh: "`{program}` 不在 PATH 中，而在当前目录\n提示：请写成 `{here}`";
    }

    /// The system does not start it.
    not_started(program: &str, why: &str) {
        en: "`{program}` cannot be started: {why}\nhint: it has to be a program that you may start; try it without the relay";
        zh: "无法启动 `{program}`：{why}\n提示：它必须是你有权运行的程序；可先不经中继直接启动试试";
    }

    /// It runs and is out of reach.
    lost_sight(program: &str, why: &str) {
        en: "lost sight of `{program}`: {why}";
        zh: "无法继续跟踪 `{program}`：{why}";
    }

    /// The user's own address is not gone on to, since the relay has an upstream for all.
    passed_over(origin: &str) {
        en: "requests go to the relay's own `upstream`, not where {origin} says\nhint: take `upstream` from the relay's settings, or start the client with `run --own --upstream URL`";
        zh: "请求会发往中继自己的 `upstream`，而不是 {origin} 所指的地址\n提示：从中继的设置中去掉 `upstream`，或用 `run --own --upstream URL` 启动客户端";
    }

    /// Where requests go on to. `origin` is a message of this table.
    forwards_to(url: &str, origin: &str) {
        en: "requests go on to {url}, as {origin} says";
        zh: "请求将转发到 {url}（依据：{origin}）";
    }

    /// A setting in a file.
    in_place(key: &str, place: &str) {
        en: "{key} in {place}";
        zh: "{place} 中的 {key}";
    }

    /// A variable.
    in_environment(name: &str) {
        en: "{name} in the environment";
        zh: "环境变量 {name}";
    }

    /// An argument.
    on_command_line(key: &str) {
        en: "{key} on the command line";
        zh: "命令行中的 {key}";
    }

    /// A setting in a profile of Codex.
    of_profile(key: &str, profile: &str) {
        en: "{key} of profile {profile}";
        zh: "配置档 {profile} 的 {key}";
    }

    /// Codex uses services that no base URL moves.
    codex_elsewhere(provider: &str) {
        en: "Codex's requests to `{provider}` go around the relay: only services that it is given by base URL can be moved";
        zh: "Codex 发往 `{provider}` 的请求不经过中继：只有用 base URL 指定的服务才能改为经过中继";
    }

    /// What those services are, where nothing else names them.
    codex_oss() {
        en: "the local models of --oss";
        zh: "--oss 的本地模型";
    }

    /// Codex is the front of another one.
    codex_remote() {
        en: "with --remote the model requests are made elsewhere, not through the relay";
        zh: "使用 --remote 时，模型请求由远端发出，不经过中继";
    }

    /// Why Codex cannot be moved.
    codex_odd_name(provider: &str) {
        en: "no `-c` can name the provider {provider}";
        zh: "`-c` 无法表示提供商 {provider}";
    }

    /// What helps.
    codex_rename() {
        en: "give it a name of letters, digits, - and _ in config.toml";
        zh: "请在 config.toml 中给它换一个只含字母、数字、- 和 _ 的名称";
    }

    /// A settings file that its client will complain about itself.
    not_valid(file: &str, format: &str, client: &str) {
        en: "{file} is not {format}: left to {client}";
        zh: "{file} 不是{format}：留给 {client} 自行处理";
    }

    /// A format.
    valid_toml() {
        en: "valid TOML";
        zh: "有效的 TOML";
    }

    /// A format.
    json_object() {
        en: "a JSON object";
        zh: " JSON 对象";
    }

    /// Claude Code uses a cloud.
    claude_cloud(variable: &str) {
        en: "{variable} is set: Claude Code's requests go around the relay";
        zh: "已设置 {variable}：Claude Code 的请求不经过中继";
    }

    /// Its own `--settings` are of no use.
    claude_settings_unread() {
        en: "the value of --settings cannot be read: left to Claude Code";
        zh: "无法读取 --settings 的值：留给 Claude Code 自行处理";
    }

    /// Why a client cannot be moved: an organisation has the last word.
    managed(origin: &str) {
        en: "{origin} wins over everything a session can say";
        zh: "{origin} 的优先级高于会话所能设置的一切";
    }

    /// What helps.
    ask_manager(variable: &str) {
        en: "ask whoever manages that file to set {variable} to a relay that stays up";
        zh: "请管理该文件的人把 {variable} 设为一个长期运行的中继";
    }

    /// Why Claude Code cannot be moved: its arguments would show a secret.
    claude_secret(name: &str) {
        en: "the file of --settings holds {name}, which would become visible in the list of processes";
        zh: "--settings 的文件中有 {name}，它会出现在进程列表中";
    }

    /// What helps.
    claude_keep_secret(name: &str, variable: &str) {
        en: "set {name} in the environment instead, or take {variable} out of the settings files";
        zh: "请改用环境变量设置 {name}，或从设置文件中去掉 {variable}";
    }

    /// What the user should know before the client starts.
    told(what: &str) {
        en: "steady-relay: {what}";
        zh: "steady-relay：{what}";
    }
}
