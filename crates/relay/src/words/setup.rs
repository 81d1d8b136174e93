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
        en: "points to {address}, where nothing answers";
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
    managed(file: &str) {
        en: "{file}, which your organisation manages, names another address and wins";
        zh: "由组织管理的 {file} 指定了另一个地址，且优先级更高";
    }

    /// What Claude Code does not do with an address of its own.
    claude_costs() {
        en: "with any address of its own Claude Code turns some things off, such as Remote Control";
        zh: "只要设置了自定义地址，Claude Code 就会关闭部分功能，例如远程控制";
    }

    /// A proxy is in the way of this machine itself.
    proxy_in_between(variable: &str) {
        en: "{variable} is set, and clients ask it for this machine, too: add 127.0.0.1,localhost to NO_PROXY and no_proxy where they start";
        zh: "已设置 {variable}，客户端访问本机时也会经过它：请在其启动环境的 NO_PROXY 和 no_proxy 中加入 127.0.0.1,localhost";
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

    /// A client that was named is not there.
    not_found(client: &str) {
        en: "was not found on this machine (`{client}`)";
        zh: "在本机未找到（`{client}`）";
    }

    /// A file that cannot be used.
    file_is_bad(file: &str, why: &str) {
        en: "{file} is left alone: {why}";
        zh: "{file} 保持原样：{why}";
    }

    /// A key that cannot be edited soundly.
    shape(file: &str, key: &str, value: &str) {
        en: "{file} writes `{key}` in a way that is not edited by a program; set it there by hand: {value}";
        zh: "{file} 中 `{key}` 的写法无法由程序修改，请手动设置为：{value}";
    }

    /// The relay goes elsewhere than the client went.
    one_upstream(client: &str, address: &str) {
        en: "{client} no longer asks {address}: the relay sends everything to the `upstream` of its own settings";
        zh: "{client} 不再访问 {address}：中继会把所有请求发往其自身设置中的 `upstream`";
    }

    /// The relay goes where the client went.
    goes_on_to(client: &str, address: &str, name: &str) {
        en: "requests of {client} go on to {address}, as its own settings said: [upstream.{name}] in the relay's settings";
        zh: "{client} 的请求会继续发往其原先设置的 {address}：即中继设置中的 [upstream.{name}]";
    }

    /// An address of the user's own that is of no use.
    bad_address(address: &str, why: &str) {
        en: "its address {address} cannot be forwarded to: it {why}";
        zh: "无法转发到其现有地址 {address}：{why}";
    }

    /// The relay's own file cannot take an upstream.
    no_config() {
        en: "it has an address of its own, and there is no place for it in the relay's settings; add an [upstream.NAME] there and run setup again";
        zh: "它已有自己的地址，但无法写入中继的设置；请在其中添加 [upstream.NAME] 后重新运行 setup";
    }

    /// The line above a key that is new. It stands in a file of the user's.
    comment_added(client: &str) {
        en: "set by steady-relay; to undo: `steady-relay undo {client}`, or delete this line and the next";
        zh: "由 steady-relay 写入；撤销：运行 `steady-relay undo {client}`，或删除本行和下一行";
    }

    /// The line above a key whose value may be shown. `raw` is that value.
    comment_put_back(client: &str, raw: &str) {
        en: "set by steady-relay; to undo: `steady-relay undo {client}`, or put back {raw}";
        zh: "由 steady-relay 写入；撤销：运行 `steady-relay undo {client}`，或改回 {raw}";
    }

    /// The line above a key that was there.
    comment_replaced(client: &str) {
        en: "set by steady-relay, which keeps the value before; to undo: `steady-relay undo {client}`";
        zh: "由 steady-relay 写入，并保存了原值；撤销：运行 `steady-relay undo {client}`";
    }

    /// The journal is broken.
    journal_broken(path: &str) {
        en: "{path} is not what this program writes there\nhint: move it away; what it knew can then no longer be undone by `undo`";
        zh: "{path} 的内容不是本程序写入的\n提示：请将其移走；其中记录的修改将无法再用 `undo` 撤销";
    }

    /// The journal is from the future.
    journal_newer(path: &str) {
        en: "a newer steady-relay wrote {path}\nhint: use that one";
        zh: "{path} 由更新版本的 steady-relay 写入\n提示：请使用该版本";
    }

    /// The journal is full.
    journal_full(path: &str) {
        en: "{path} holds more entries than can be kept\nhint: run `steady-relay undo` first";
        zh: "{path} 中的记录过多\n提示：请先运行 `steady-relay undo`";
    }

    /// The journal cannot be read or written.
    journal_system(path: &str, why: &str) {
        en: "{path}: {why}\nhint: name another folder with --state-dir";
        zh: "{path}：{why}\n提示：请用 --state-dir 指定另一个目录";
    }

    /// Somebody else wrote it.
    changed_meanwhile() {
        en: "the file changed while you were asked; run setup again";
        zh: "确认期间文件已被修改；请重新运行 setup";
    }

    /// Its mode or its owner is in the way of writing.
    may_not_write() {
        en: "the file may not be written: check its owner and mode";
        zh: "没有写入该文件的权限：请检查所有者和权限";
    }

    /// A file that waits for another one of its client.
    needs_the_other() {
        en: "it stays as it is, since another file that it belongs with cannot be written";
        zh: "保持不变，因为与其配套的另一个文件无法写入";
    }

    /// A key that is no longer ours.
    changed_since(before: &str) {
        en: "somebody changed it since; it stays as it is (before setup: {before})";
        zh: "之后已被他人修改，保持现状（setup 之前：{before}）";
    }

    /// A key that is gone.
    removed_since(before: &str) {
        en: "somebody removed it since; it stays out (before setup: {before})";
        zh: "之后已被他人删除，不再恢复（setup 之前：{before}）";
    }

    /// A key that is ours in a text that is not.
    cannot_take_back(now: &str, before: &str) {
        en: "the text around {now} was changed so that it cannot be taken out safely; put this there by hand: {before}";
        zh: "{now} 周围的内容已被修改，无法安全移除；请手动改为：{before}";
    }

    /// A key without a value.
    not_set() {
        en: "not set";
        zh: "未设置";
    }

    /// A word is missing.
    env_file_without_path() {
        en: "`env-file` needs a path\nhint: steady-relay setup env-file .env";
        zh: "`env-file` 需要一个路径\n提示：steady-relay setup env-file .env";
    }

    /// A word too many.
    unknown_client(name: &str, known: &str) {
        en: "`{name}` is not a client that setup knows\nhint: it knows {known}, and `env-file PATH`";
        zh: "setup 不认识客户端 `{name}`\n提示：可用的有 {known}，以及 `env-file PATH`";
    }

    /// Port 0.
    port_is_any() {
        en: "the relay has no port of its own, since `port` is 0\nhint: give it one, so that clients can be pointed at it";
        zh: "`port` 为 0，中继没有固定端口\n提示：请为它指定端口，以便客户端指向它";
    }

    /// Another port is chosen.
    port_taken(port: u16, free: u16) {
        en: "port {port} is taken by another program, so the relay gets port {free} in its settings";
        zh: "端口 {port} 已被其他程序占用，因此中继的设置中改用端口 {free}";
    }

    /// A port that a flag or a variable names.
    port_taken_here(port: u16, origin: &str) {
        en: "port {port} is taken by another program, and {origin} names it\nhint: name another one there";
        zh: "端口 {port} 已被其他程序占用，而它由 {origin} 指定\n提示：请在那里换一个端口";
    }

    /// No port is free.
    no_free_port(port: u16) {
        en: "port {port} is taken by another program, and no port above it is free\nhint: name one with --port";
        zh: "端口 {port} 已被其他程序占用，且其后没有可用端口\n提示：请用 --port 指定";
    }

    /// No state folder.
    no_state_folder() {
        en: "there is no folder for the journal\nhint: name one with --state-dir";
        zh: "没有可存放记录的目录\n提示：请用 --state-dir 指定";
    }

    /// Nothing to do at all.
    none_found() {
        en: "no client was found on this machine\nhint: name an env file: steady-relay setup env-file .env";
        zh: "在本机未找到任何客户端\n提示：可指定 env 文件：steady-relay setup env-file .env";
    }

    /// A client that has all it needs.
    is_ready(client: &str) {
        en: "{client}: points to the relay already";
        zh: "{client}：已指向中继";
    }

    /// A client that is left alone.
    is_left(client: &str, why: &str) {
        en: "{client}: not set up: {why}";
        zh: "{client}：未设置：{why}";
    }

    /// A client of which only the user can do it.
    do_by_hand(client: &str, what: &str) {
        en: "{client}, by hand: {what}";
        zh: "{client}，手动设置：{what}";
    }

    /// Two at once.
    another_runs() {
        en: "another setup or undo is at work or waits for an answer\nhint: finish that one first";
        zh: "另一个 setup 或 undo 正在运行或等待确认\n提示：请先完成它";
    }

    /// The question.
    question() {
        en: "Write this? [y/N] ";
        zh: "是否写入？[y/N] ";
    }

    /// Nobody can be asked.
    needs_yes() {
        en: "nothing was written: there is no terminal to ask at\nhint: add --yes, or --dry-run to only look";
        zh: "未写入任何内容：没有可供确认的终端\n提示：请加上 --yes，或用 --dry-run 只查看";
    }

    /// The answer was no.
    not_written() {
        en: "nothing was written";
        zh: "未写入任何内容";
    }

    /// The end.
    written(clients: &str) {
        en: "done: {clients} will ask the relay from the next start on; to undo: steady-relay undo";
        zh: "完成：{clients} 下次启动后将使用中继；撤销：steady-relay undo";
    }

    /// Without it, the clients would hang.
    start_relay() {
        en: "the relay does not run yet: start it with `steady-relay`,\nor for good with `steady-relay service install`";
        zh: "中继尚未运行：请运行 `steady-relay` 启动它，\n或运行 `steady-relay service install` 让它常驻";
    }

    /// The port counts from the next start.
    restart_relay() {
        en: "a relay that runs now keeps its old port until it is started again";
        zh: "正在运行的中继在重启之前仍使用原端口";
    }

    /// A key that is undone.
    restored_to(key: &str, file: &str, value: &str) {
        en: "{key} in {file}: back to {value}";
        zh: "{file} 中的 {key}：已恢复为 {value}";
    }

    /// A key that would be.
    would_restore(key: &str, file: &str, value: &str) {
        en: "{key} in {file}: would go back to {value}";
        zh: "{file} 中的 {key}：将恢复为 {value}";
    }

    /// A key that was not there before.
    taken_out(key: &str, file: &str) {
        en: "{key} in {file}: taken out";
        zh: "{file} 中的 {key}：已移除";
    }

    /// A key that was not there before would go.
    would_take_out(key: &str, file: &str) {
        en: "{key} in {file}: would be taken out";
        zh: "{file} 中的 {key}：将移除";
    }

    /// A key that needs nothing.
    was_restored(key: &str, file: &str) {
        en: "{key} in {file}: nothing of ours is in it any more";
        zh: "{file} 中的 {key}：已没有本程序写入的内容";
    }

    /// A key that stays.
    was_left(key: &str, file: &str, why: &str) {
        en: "{key} in {file}: left as it is: {why}";
        zh: "{file} 中的 {key}：保持现状：{why}";
    }

    /// The journal is empty.
    nothing_to_undo() {
        en: "nothing to undo";
        zh: "没有需要撤销的内容";
    }

    /// One line of the status.
    state_line(client: &str, standing: &str) {
        en: "{client} {standing}";
        zh: "客户端 {client}：{standing}";
    }
}
