//! What is said of credentials of the relay's own.

relay_core::words! {
    table TABLE "credentials";

    /// A file that cannot be read; `error` is the system's.
    file_unread(path: &str, error: &str) {
        en: "the file {path} cannot be read: {error}";
        zh: "无法读取文件 {path}：{error}";
    }

    /// What a file holds is no key.
    file_unfit(path: &str) {
        en: "the file {path} holds no key: one word of letters, digits and signs of ASCII is needed, and nothing else";
        zh: "文件 {path} 中没有密钥：其中应只有一个由 ASCII 字母、数字和符号组成的词";
    }

    /// A sign-in is no key of an API.
    a_sign_in(whose: &str) {
        en: "it is a sign-in of {whose}, which belongs to its client: use a key of the API";
        zh: "这是 {whose} 的登录凭据，属于其客户端：请使用 API 密钥";
    }

    /// The file is open to others.
    file_open(path: &str) {
        en: "others on this machine can read {path}: close it with `chmod 600`";
        zh: "本机的其他用户可以读取 {path}：请用 `chmod 600` 关闭权限";
    }

    /// The program could not be started.
    not_started(program: &str, error: &str) {
        en: "{program} could not be started: {error}";
        zh: "无法启动 {program}：{error}";
    }

    /// There is no such program.
    no_program(program: &str) {
        en: "there is no program {program}";
        zh: "没有程序 {program}";
    }

    /// It ended with an error.
    command_failed(program: &str, status: &str) {
        en: "{program} failed: {status}";
        zh: "{program} 执行失败：{status}";
    }

    /// It took too long.
    command_late(program: &str, seconds: u64) {
        en: "{program} was ended after {seconds} s";
        zh: "{program} 在 {seconds} 秒后被终止";
    }

    /// What it wrote is no key.
    command_unfit(program: &str) {
        en: "{program} wrote no key: one word of letters, digits and signs of ASCII is needed, and nothing else";
        zh: "{program} 没有输出密钥：输出应只有一个由 ASCII 字母、数字和符号组成的词";
    }

    /// A variable that the settings name.
    variable_unset(variable: &str) {
        en: "the variable {variable} is not set";
        zh: "变量 {variable} 未设置";
    }

    /// At the start: without it no call could be sent.
    start_unset(name: &str, variable: &str) {
        en: "credential `{name}`: the variable {variable} is not set\nhint: set it in the environment of the relay, or in the file that `--env-file` names";
        zh: "凭据 `{name}`：变量 {variable} 未设置\n提示：在中继的环境中设置它，或写入 `--env-file` 指定的文件";
    }

    /// The issuer of tokens was not reached.
    unreached(place: &str, why: &str) {
        en: "{place} was not reached: {why}";
        zh: "无法连接到 {place}：{why}";
    }

    /// It gave no answer.
    no_answer(place: &str, seconds: u64) {
        en: "{place} gave no answer within {seconds} s";
        zh: "{place} 在 {seconds} 秒内没有响应";
    }

    /// Its answer is longer than one with a token.
    answer_too_long(place: &str, kib: usize) {
        en: "what {place} answers is longer than {kib} KiB, which no token is";
        zh: "{place} 的响应超过 {kib} KiB，不可能是令牌";
    }

    /// Its answer did not come to its end.
    answer_broke_off(place: &str) {
        en: "the answer of {place} broke off";
        zh: "{place} 的响应中途中断";
    }

    /// It answered with a failure that may pass.
    failed(place: &str, status: u16) {
        en: "{place} answered {status}";
        zh: "{place} 返回 {status}";
    }

    /// It refuses; `code` is its own.
    refused(place: &str, status: u16, code: &str) {
        en: "{place} refuses: {status} {code}; a new refresh token, or other settings of the credential, are needed";
        zh: "{place} 拒绝：{status} {code}；需要新的 refresh token，或修改该凭据的设置";
    }

    /// It sends the request elsewhere.
    redirected(place: &str, status: u16, to: &str) {
        en: "{place} redirects to {to} ({status}), where the relay sends no secret: set `token_url` to the final address";
        zh: "{place} 重定向到 {to}（{status}），中继不会把密钥发送到那里：请把 `token_url` 设为最终地址";
    }

    /// Where a redirect leads: the same host.
    another_path() {
        en: "another path there";
        zh: "该处的另一路径";
    }

    /// Where a redirect leads: nobody can tell.
    elsewhere() {
        en: "elsewhere";
        zh: "别处";
    }

    /// It answers, and not with a token.
    no_token(place: &str) {
        en: "what {place} answers holds no access token that can be used";
        zh: "{place} 的响应中没有可用的 access token";
    }

    /// Another relay renews it, or has stopped in the middle.
    locked(path: &str, seconds: u64) {
        en: "another relay has held {path} for {seconds} s";
        zh: "另一个中继已占用 {path} {seconds} 秒";
    }

    /// The renewal itself broke off.
    broke_off() {
        en: "its renewal broke off";
        zh: "续期中途中断";
    }

    /// A call does not wait any longer for its renewal.
    awaited() {
        en: "its renewal still goes on";
        zh: "仍在续期中";
    }

    /// The program ends as soon as a renewal has.
    ends_after_it() {
        en: "a credential is being refreshed, which is waited for half a minute at most; Ctrl-C ends at once, and may lose its refresh token";
        zh: "凭据正在刷新，最多等待半分钟；按 Ctrl-C 立即退出，但可能丢失其 refresh token";
    }

    /// A token that could not be kept.
    unkept(name: &str, error: &str) {
        en: "the token of credential `{name}` could not be kept: {error}; after a restart its refresh token may be an old one";
        zh: "无法保存凭据 `{name}` 的令牌：{error}；重启后其 refresh token 可能已过期";
    }

    /// A file that could not be understood.
    damaged(path: &str, aside: &str) {
        en: "{path} was damaged and lies at {aside} now";
        zh: "{path} 已损坏，现位于 {aside}";
    }

    /// There is nowhere to keep it.
    no_folder(name: &str) {
        en: "there is no state folder, so new refresh tokens of credential `{name}` are lost with the relay: name one with `--state-dir`";
        zh: "没有状态目录，凭据 `{name}` 的新 refresh token 会随中继退出而丢失：请用 `--state-dir` 指定目录";
    }

    /// A sentence above, and which credential it is about.
    about(name: &str, what: &str) {
        en: "credential `{name}`: {what}";
        zh: "凭据 `{name}`：{what}";
    }

    /// In the log: it was read from its file, printed by its command or issued anew.
    renewed(name: &str) {
        en: "credential `{name}` was obtained";
        zh: "已取得凭据 `{name}`";
    }

    /// In the log: it was not.
    not_renewed(name: &str, why: &str) {
        en: "credential `{name}` could not be obtained: {why}";
        zh: "无法取得凭据 `{name}`：{why}";
    }
}
