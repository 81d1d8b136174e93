//! What `setup` and `undo` say.

relay_core::words! {
    table TABLE "setup";

    /// A client is at the relay.
    stands_at_relay() {
        en: "points to the relay";
        zh: "已指向中继";
    }

    /// It is at the relay's address, and nobody is there.
    stands_at_silent_relay(address: &str) {
        en: "points to the relay at {address}, which does not answer: start it with `steady-relay`";
        zh: "已指向中继 {address}，但中继没有响应：请运行 `steady-relay` 启动它";
    }

    /// It points to where nobody is.
    stands_dead(address: &str) {
        en: "points to {address}, where nobody answers";
        zh: "指向 {address}，但该地址无人响应";
    }

    /// It points to some other service.
    stands_elsewhere(address: &str) {
        en: "points to {address}, not to the relay";
        zh: "指向 {address}，未经过中继";
    }

    /// It has no address of its own.
    stands_unset() {
        en: "is not set up: it asks its service directly";
        zh: "尚未设置：直接连接服务";
    }

    /// Nobody but its user can tell.
    stands_by_hand() {
        en: "is set up by hand";
        zh: "需要手动设置";
    }

    /// It cannot be moved.
    stands_immovable(why: &str) {
        en: "cannot be moved: {why}";
        zh: "无法设置：{why}";
    }

    /// Its file is no use.
    stands_unreadable(why: &str) {
        en: "is left alone: {why}";
        zh: "保持原样：{why}";
    }

    /// A folder or a pipe stands where a file should.
    bad_no_file() {
        en: "this is no file";
        zh: "这不是普通文件";
    }

    /// More than settings have.
    bad_too_large() {
        en: "the file is larger than 1 MiB";
        zh: "文件超过 1 MiB";
    }

    /// Its mode or its owner is in the way.
    bad_denied() {
        en: "the file may not be read";
        zh: "没有读取该文件的权限";
    }

    /// It does not parse.
    bad_flaw(line: usize, column: usize, what: &str) {
        en: "line {line}, column {column}: {what}";
        zh: "第 {line} 行第 {column} 列：{what}";
    }

    /// Codex uses a provider without an address.
    codex_elsewhere(provider: &str) {
        en: "its provider `{provider}` has no base URL in this file that could be moved";
        zh: "其提供商 `{provider}` 在该文件中没有可以修改的地址";
    }

    /// Codex has a profile that goes elsewhere.
    codex_profile(name: &str) {
        en: "Codex's profile `{name}` names a provider or an address of its own: its sessions go around the relay";
        zh: "Codex 的配置档 `{name}` 指定了自己的提供商或地址：使用它的会话不经过中继";
    }

    /// Claude Code uses a cloud.
    claude_cloud(variable: &str) {
        en: "{variable} is set, so its requests go to that cloud and not to a base URL";
        zh: "已设置 {variable}，请求会发往该云服务，而不是自定义地址";
    }

    /// An organisation has the last word.
    claude_managed(file: &str) {
        en: "{file}, which your organisation manages, names another address and wins";
        zh: "由组织管理的 {file} 指定了另一个地址，且优先级更高";
    }

    /// A project's file wins in its folder.
    wins_here(file: &str, key: &str) {
        en: "{file} sets `{key}` and wins in that folder: its sessions go around the relay";
        zh: "{file} 设置了 `{key}`，在该目录中优先：那里的会话不经过中继";
    }

    /// A variable wins over the file.
    variable_wins(variable: &str, client: &str) {
        en: "{variable} is set in this environment: what it says wins over {client}'s own file";
        zh: "当前环境设置了 {variable}：它优先于 {client} 自己的文件";
    }

    /// Gemini CLI reads one env file only.
    gemini_project(file: &str) {
        en: "Gemini CLI reads {file} in place of its own .env in that folder: its sessions there go around the relay";
        zh: "在该目录中，Gemini CLI 会读取 {file} 而不是自己的 .env：那里的会话不经过中继";
    }

    /// Gemini CLI has no key.
    gemini_login() {
        en: "only its login with a Gemini API key can be moved: choose that one, or set GEMINI_API_KEY, and run setup again";
        zh: "只有使用 Gemini API 密钥登录时才能设置：请改用该方式或设置 GEMINI_API_KEY，然后重新运行 setup";
    }

    /// Continue's own list.
    continue_by_hand(file: &str, base: &str) {
        en: "in {file} give each model `apiBase: {base}/v1`; one of Anthropic's, too";
        zh: "在 {file} 中为每个模型填写 `apiBase: {base}/v1`，Anthropic 的模型也一样";
    }

    /// Cline's own page.
    cline_by_hand(name: &str, base: &str) {
        en: "in {name}'s settings enter the base URL {base}/v1 (OpenAI Compatible), or {base} (Anthropic, custom base URL)";
        zh: "在 {name} 的设置中填写地址：{base}/v1（OpenAI Compatible）或 {base}（Anthropic 自定义地址）";
    }

    /// A client in Windows, a relay in the Linux inside it.
    from_windows() {
        en: "this client runs in Windows and reaches the relay here as long as WSL forwards localhost, which is its default";
        zh: "该客户端运行在 Windows 中；只要 WSL 转发 localhost（默认开启），它就能访问这里的中继";
    }

    /// A client in the Linux inside this Windows.
    wsl_apart(distro: &str) {
        en: "{distro} does not share the network of Windows: run steady-relay inside it, or set networkingMode=mirrored in .wslconfig";
        zh: "{distro} 没有与 Windows 共享网络：请在其中运行 steady-relay，或在 .wslconfig 中设置 networkingMode=mirrored";
    }
}
