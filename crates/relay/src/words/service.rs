//! What `service` says.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "service";

    /// The environment lacks what says where files go.
    no_home(variable: &str) {
        en: "{variable} is not set, so it is not known where the service's files belong\nhint: set it, or log in as the user whose service it is to be";
        zh: "未设置 {variable}，无法确定服务文件应放在哪里\n提示：请设置该变量，或以该服务所属的用户登录";
    }

    /// Port 0 was asked for.
    any_port() {
        en: "a service needs a port that stays the same, and the settings say 0\nhint: name one with --port, such as --port 8787";
        zh: "服务需要固定的端口，而设置中的端口为 0\n提示：请用 --port 指定，例如 --port 8787";
    }

    /// A file of the same name is somebody else's.
    not_ours(path: &str) {
        en: "{path} is there already, and `steady-relay service install` has not written it\nhint: move it away, then do this again";
        zh: "{path} 已存在，且不是由 `steady-relay service install` 写入的\n提示：请先将其移走，然后重试";
    }

    /// The program was deleted while it ran.
    no_program(path: &str) {
        en: "this program is no longer at {path}, so no service can start it\nhint: install it again, then do this with the new one";
        zh: "本程序已不在 {path}，服务将无法启动它\n提示：请重新安装，然后用新程序重试";
    }

    /// A text that no file of a service manager can hold.
    odd(text: &str) {
        en: "`{text}` holds signs that the file of a service cannot hold\nhint: use a path or a value without line ends, in Unicode";
        zh: "`{text}` 含有服务文件无法容纳的字符\n提示：请使用不含换行的 Unicode 路径或值";
    }

    /// A file cannot be written, read or deleted.
    file_failed(path: &str, why: &str) {
        en: "{path}: {why}\nhint: see to its owner and mode, and to the space on the disk";
        zh: "{path}：{why}\n提示：请检查其所有者、权限以及磁盘空间";
    }

    /// The service manager refused.
    refused(line: &str, said: &str) {
        en: "`{line}` failed: {said}\nhint: `steady-relay service status` tells how the service is, its log why";
        zh: "`{line}` 失败：{said}\n提示：`steady-relay service status` 可查看服务状态，原因见其日志";
    }

    /// The service manager does not answer.
    hangs(line: &str, seconds: u64) {
        en: "`{line}` did not end within {seconds} s, and was stopped\nhint: the service manager may hang: see how it is, or log in anew, then do this again";
        zh: "`{line}` 在 {seconds} 秒内未结束，已将其终止\n提示：服务管理器可能已卡住：请检查其状态或重新登录，然后重试";
    }

    /// The service was not started, and its files are there.
    left(error: &str, files: &str) {
        en: "{error}\nnote: these files are left: {files}; `steady-relay service remove` deletes them";
        zh: "{error}\n说明：以下文件仍保留：{files}；可用 `steady-relay service remove` 删除";
    }

    /// A program that systemd does not start.
    odd_program(path: &str) {
        en: "systemd starts no program whose path holds a quote or a backslash: {path}\nhint: move the program to a folder with a plain name, then do this again";
        zh: "systemd 无法启动路径中含引号或反斜杠的程序：{path}\n提示：请将程序移到名称普通的文件夹，然后重试";
    }

    /// Nothing is installed.
    not_installed() {
        en: "no service is installed\nhint: `steady-relay service install` does it";
        zh: "尚未安装服务\n提示：请运行 `steady-relay service install`";
    }

    /// No service manager is known on this system.
    no_manager_here() {
        en: "no service manager is known on this system\nhint: have whatever starts programs here run `steady-relay serve`";
        zh: "不支持此系统的服务管理器\n提示：请让系统中负责启动程序的工具运行 `steady-relay serve`";
    }

    /// WSL without systemd.
    wsl_without_systemd() {
        en: "this WSL was started without systemd, so nothing can keep a service running\nhint: put `systemd=true` below `[boot]` in /etc/wsl.conf, run `wsl --shutdown` in Windows, and do this again; or install the service in Windows";
        zh: "此 WSL 未启用 systemd，无法保持服务运行\n提示：请在 /etc/wsl.conf 的 `[boot]` 下写入 `systemd=true`，在 Windows 中运行 `wsl --shutdown` 后重试；或在 Windows 中安装服务";
    }

    /// A container.
    in_container() {
        en: "a container has no service manager\nhint: make `steady-relay serve` its command, or start it in the entry script, and let the container's restart policy keep it running";
        zh: "容器中没有服务管理器\n提示：请将 `steady-relay serve` 设为容器的命令，或在入口脚本中启动它，并由容器的重启策略保持运行";
    }

    /// Another service manager.
    no_systemd() {
        en: "this system does not run systemd\nhint: have its own service manager run `steady-relay serve` as your user";
        zh: "此系统未运行 systemd\n提示：请让系统自带的服务管理器以你的用户身份运行 `steady-relay serve`";
    }

    /// systemd runs, and nobody manages this user's services.
    no_user_manager() {
        en: "systemd runs no service manager for this user\nhint: log in as the user itself rather than by su or sudo, or run `sudo loginctl enable-linger USER` and set XDG_RUNTIME_DIR=/run/user/UID";
        zh: "systemd 没有为此用户运行服务管理器\n提示：请直接以该用户登录，不要通过 su 或 sudo；或运行 `sudo loginctl enable-linger USER` 并设置 XDG_RUNTIME_DIR=/run/user/UID";
    }

    /// It was installed.
    installed(url: &str) {
        en: "installed and running: point clients at {url}";
        zh: "已安装并运行：请将客户端指向 {url}";
    }

    /// After the files that a dry run prints.
    would_install(url: &str) {
        en: "nothing was done: `install` would write these files and start the relay at {url}";
        zh: "未做任何改动：`install` 会写入这些文件，并在 {url} 启动中继";
    }

    /// The same where it would fail. `why` is what is in the way, and what helps.
    would_not_install(why: &str) {
        en: "nothing was done, and here `install` would write nothing: {why}";
        zh: "未做任何改动；在此环境中 `install` 不会写入任何文件：{why}";
    }

    /// It was moved to another address.
    moved(old: &str, new: &str) {
        en: "note: it listened on {old} before; clients that point there find nothing now, and belong at {new}";
        zh: "说明：此前监听 {old}；指向该地址的客户端现在找不到服务，请改为 {new}";
    }

    /// It is being stopped.
    stopping(seconds: u64) {
        en: "stopping what runs; open calls may end first, {seconds} s at most";
        zh: "正在停止；未完成的请求可先结束，最多等待 {seconds} 秒";
    }

    /// It was started.
    started(url: &str) {
        en: "started: {url}";
        zh: "已启动：{url}";
    }

    /// It was stopped.
    stopped(url: &str) {
        en: "stopped until the next login; clients that point at {url} find nothing there meanwhile";
        zh: "已停止，下次登录时会再次启动；在此期间指向 {url} 的客户端找不到服务";
    }

    /// It was removed.
    removed(url: &str) {
        en: "removed; clients that still point at {url} find nothing there: take it out of their settings";
        zh: "已移除；仍指向 {url} 的客户端将找不到服务：请从其设置中删除该地址";
    }

    /// Variables that are not carried over and belong into the env file.
    left_behind(names: &str, path: &str) {
        en: "note: the service does not see {names} of this terminal\nhint: write what it is to have into {path}, a line NAME=value each";
        zh: "说明：服务看不到本终端中的 {names}\n提示：请将服务所需的变量写入 {path}，每行一个 NAME=value";
    }

    /// Variables about proxies that are not carried over.
    proxies_left_behind(names: &str) {
        en: "note: the service does not see {names} of this terminal\nhint: set `proxy` below [relay] in the configuration file where upstreams need one";
        zh: "说明：服务看不到本终端中的 {names}\n提示：如果上游需要代理，请在配置文件的 [relay] 下设置 `proxy`";
    }

    /// For a desktop and the log, when the relay cannot be started.
    absent_notice(program: &str) {
        en: "Steady Relay does not start. Is {program} still there? `journalctl --user -u steady-relay` or the log says why. Until it does, clients that point at it get no answers.";
        zh: "Steady Relay 无法启动。{program} 还在吗？原因见 `journalctl --user -u steady-relay` 或日志。在此之前，指向它的客户端得不到响应。";
    }

    /// For a desktop, when the program is gone.
    gone_notice(program: &str) {
        en: "Steady Relay does not start: {program} is gone. Until it is installed again, clients that point at it get no answers.";
        zh: "Steady Relay 无法启动：{program} 已不存在。重新安装之前，指向它的客户端得不到响应。";
    }

    /// For a desktop, when the settings are wrong.
    wrong_notice(program: &str) {
        en: "Steady Relay does not start: its settings are wrong. `{program} config check` says what, `service start` tries again. Until then, clients that point at it get no answers.";
        zh: "Steady Relay 无法启动：设置有误。`{program} config check` 会指出错误，改好后运行 `service start`。在此之前，指向它的客户端得不到响应。";
    }

    /// For clients, when the program is gone.
    absent_gone(program: &str) {
        en: "the relay's program {program} is gone, so nothing is relayed. Install it again, and the next request finds it; or take this address out of this client's settings, then run: systemctl --user disable --now steady-relay.socket steady-relay.service steady-relay-absent.socket";
        zh: "中继程序 {program} 已不存在，请求无法转发。重新安装后，下一个请求即可使用；或者从客户端设置中删除此地址，然后运行：systemctl --user disable --now steady-relay.socket steady-relay.service steady-relay-absent.socket";
    }

    /// For clients, when the program is there and does not start.
    absent_broken() {
        en: "the relay does not start, so nothing is relayed. It is started once more now: ask again. `journalctl --user -u steady-relay` says why it failed, `steady-relay config check` what is wrong with its settings";
        zh: "中继未能启动，请求无法转发。现正再次启动：请稍后重试。失败原因见 `journalctl --user -u steady-relay`，设置错误见 `steady-relay config check`";
    }

    /// A line of `status`.
    status_service(state: &str) {
        en: "service:  {state}";
        zh: "服务：{state}";
    }

    /// It runs.
    running(pid: &str, restarts: u32) {
        en: "running{pid}, restarted by itself {times}", times = counted(u64::from(restarts), "time", "times");
        zh: "运行中{pid}，已自动重启 {restarts} 次";
    }

    /// Its process.
    process(pid: u32) {
        en: " (process {pid})";
        zh: "（进程 {pid}）";
    }

    /// It is starting or stopping.
    changing() {
        en: "starting or stopping";
        zh: "正在启动或停止";
    }

    /// It is stopped.
    not_running() {
        en: "not running";
        zh: "未运行";
    }

    /// It failed.
    failed() {
        en: "does not start";
        zh: "无法启动";
    }

    /// Windows does not tell whether it runs.
    unknown() {
        en: "installed; whether it runs, the address tells";
        zh: "已安装；是否在运行，以地址是否有响应为准";
    }

    /// A line of `status`.
    status_address(url: &str, answer: &str) {
        en: "address:  {url}, {answer}";
        zh: "地址：{url}，{answer}";
    }

    /// The relay answers there.
    answers() {
        en: "answers";
        zh: "有响应";
    }

    /// Nobody does.
    silent() {
        en: "nothing answers";
        zh: "无响应";
    }

    /// The stand-in does.
    stand_in() {
        en: "tells clients that the relay does not start";
        zh: "正在告知客户端中继无法启动";
    }

    /// Another program does.
    stranger() {
        en: "another program answers";
        zh: "由其他程序响应";
    }

    /// A line of `status`.
    status_program(path: &str) {
        en: "program:  {path}";
        zh: "程序：{path}";
    }

    /// A line of `status`.
    status_file(path: &str) {
        en: "file:     {path}";
        zh: "文件：{path}";
    }

    /// What is wrong: the program is gone.
    problem_gone(path: &str, url: &str) {
        en: "problem: {path} is gone, and clients that point at {url} get no answers\nhint: install it again, or take the address out of the clients' settings and run `steady-relay service remove`";
        zh: "问题：{path} 已不存在，指向 {url} 的客户端得不到响应\n提示：请重新安装；或从客户端设置中删除该地址，并运行 `steady-relay service remove`";
    }

    /// What is wrong: it does not answer.
    problem_silent(url: &str) {
        en: "problem: clients that point at {url} get no answers\nhint: `steady-relay service start`; where that fails, its log says why: `journalctl --user -u steady-relay`, on macOS ~/Library/Logs/steady-relay.log";
        zh: "问题：指向 {url} 的客户端得不到响应\n提示：请运行 `steady-relay service start`；若失败，原因见日志：`journalctl --user -u steady-relay`，macOS 上为 ~/Library/Logs/steady-relay.log";
    }

    /// There is nothing to remove.
    nothing_to_remove() {
        en: "no service is installed: nothing to remove";
        zh: "未安装服务：没有可移除的内容";
    }
}
