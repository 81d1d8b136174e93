//! What the relay says where it starts, changes and stops, and why it does not start.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "start";

    /// The first lines. `beyond` is empty or a line.
    listening(url: &str, beyond: &str, to: &str) {
        en: "Steady Relay listening on {url}\n{beyond}  to:   {to}\n  next: point clients here, or start one: `steady-relay run -- codex`\n  look: {url}/__steady/";
        zh: "Steady Relay 正在监听 {url}\n{beyond}  发往：{to}\n  接着：把客户端指向这里，或启动一个：`steady-relay run -- codex`\n  查看：{url}/__steady/";
    }

    /// The relay failed where nothing can. `what` is empty or says more.
    crashed(at: &str, what: &str) {
        en: "error: steady-relay has failed, which is its own fault: at {at}{what}\nhint: please report this line; with RUST_BACKTRACE=1 in the environment it says more";
        zh: "错误：steady-relay 出错，这是程序自身的缺陷：位置 {at}{what}\n提示：请报告这一行；设置环境变量 RUST_BACKTRACE=1 后会给出更多信息";
    }

    /// The line about other machines.
    open(words: &str) {
        en: "  open: {words}\n";
        zh: "  开放：{words}\n";
    }

    /// Where requests go without an upstream for all.
    by_credential() {
        en: "the service that issued a request's credential";
        zh: "签发请求凭据的服务";
    }

    /// Who else can reach the relay, and what they need. `whence` is empty or the message below.
    beyond(whence: &str) {
        en: "to other machines{whence}\n        every client needs the token:\n        as header `x-steady-token`, or as /~TOKEN in front of the path";
        zh: "其他机器可以访问{whence}\n        每个客户端都需要令牌：\n        用请求头 `x-steady-token`，或在路径前加 /~TOKEN";
    }

    /// On every address.
    every_address(family: &str, port: u16) {
        en: ", on every {family} address of this one, port {port}";
        zh: "本机的所有 {family} 地址，端口 {port}";
    }

    /// Where metrics are read.
    metrics(url: &str) {
        en: "metrics are at {url}/metrics";
        zh: "指标位于 {url}/metrics";
    }

    /// What the user should know though nothing is wrong.
    note(words: &str) {
        en: "note: {words}";
        zh: "说明：{words}";
    }

    /// Nothing was changed.
    unchanged() {
        en: "settings read again: the settings are as they were";
        zh: "已重新读取设置：没有变化";
    }

    /// New settings are in force. `restart` is empty or the message below.
    reloaded(names: &str, restart: &str) {
        en: "settings reloaded: they hold for new calls ({names}){restart}";
        zh: "已重新加载设置：对新请求生效（{names}）{restart}";
    }

    /// What is not named.
    and_more(names: &str, more: usize) {
        en: "{names} and {more} more";
        zh: "{names} 以及另外 {more} 项";
    }

    /// What has to wait.
    after_restart(names: &str) {
        en: "; {names} only after a restart";
        zh: "；{names} 需重启后生效";
    }

    /// New settings are refused.
    not_reloaded(errors: &str) {
        en: "settings not reloaded, the old ones stay\n{errors}";
        zh: "设置未重新加载，沿用原有设置\n{errors}";
    }

    /// The relay stops and nobody waits.
    stopping() {
        en: "stopping: no call is open";
        zh: "正在停止：没有未完成的请求";
    }

    /// Open calls may go on for a while.
    stopping_within(open: usize, seconds: &str) {
        en: "stopping: {open} {has} at most {seconds} s to end; once more to stop now", open = open_calls(open), has = has(open);
        zh: "正在停止：{open} 个未完成的请求最多还有 {seconds} 秒；再次中断则立即停止";
    }

    /// All that is open waits, and is cut.
    stopping_cut(waiting: usize) {
        en: "stopping: {waiting} cut while waiting", waiting = open_calls(waiting);
        zh: "正在停止：{waiting} 个等待中的请求已切断";
    }

    /// Some wait and are cut, the rest may go on for a while.
    stopping_both(waiting: usize, rest: usize, seconds: &str) {
        en: "stopping: {waiting} cut while waiting, {rest} {has} at most {seconds} s to end; once more to stop now", waiting = open_calls(waiting), has = has(rest);
        zh: "正在停止：{waiting} 个等待中的请求已切断，其余 {rest} 个最多还有 {seconds} 秒；再次中断则立即停止";
    }

    /// The time is up.
    stopped(open: usize) {
        en: "stopped, {open} dropped", open = open_calls(open);
        zh: "已停止，{open} 个未完成的请求被丢弃";
    }

    /// Connections cannot be taken. `before` is empty or the message below.
    accept_failed(why: &str, before: &str) {
        en: "cannot accept connections for now: {why}{before}";
        zh: "暂时无法接受连接：{why}{before}";
    }

    /// How often since it was last said.
    and_before(untold: u64) {
        en: " (and {untold} times since this was last said)";
        zh: "（自上次提示以来又发生 {untold} 次）";
    }

    /// What lanes learned is not saved.
    unsaved(error: &str) {
        en: "note: what lanes learned cannot be saved: {error}\nhint: see to the state folder, or name another one by `state_dir`";
        zh: "说明：无法保存各通道了解到的情况：{error}\n提示：检查状态目录，或用 `state_dir` 指定另一个";
    }

    /// They are not kept. `why` is what the system said.
    unkept(why: &str) {
        en: "what lanes learn is lost at the end ({why}): name another folder with --state-dir";
        zh: "各通道了解到的情况将在结束时丢失（{why}）：请用 --state-dir 指定另一个目录";
    }

    /// What was kept cannot be used; `why` is in English.
    replaced(path: &str, why: &str) {
        en: "{path} is ignored and will be replaced, since {why}: lanes learn anew";
        zh: "忽略并将替换 {path}（{why}）：各通道重新了解";
    }

    /// A service speaks no WebSocket.
    no_websocket(host: &str, why: &str, minutes: u64) {
        en: "note: {host} does not speak WebSocket there ({why}): for {minutes} min its clients are told to use HTTP";
        zh: "说明：{host} 在该地址不支持 WebSocket（{why}）：{minutes} 分钟内让其客户端使用 HTTP";
    }

    /// The proxy is the relay.
    proxy_is_ourselves(proxy: &str) {
        en: "the proxy {proxy} that is set (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, or the key `proxy`) is this relay itself, which is no proxy: the relay connects without it";
        zh: "所设的代理 {proxy}（HTTPS_PROXY、HTTP_PROXY、ALL_PROXY 或键 `proxy`）就是此中继自身，而它不是代理：中继将不经过它直接连接";
    }

    /// The system allows too few descriptors. `needed` are for all connections, `held` is how many connections fit.
    few_descriptors(connections: u32, needed: u64, limit: u64, held: u64) {
        en: "`limits.connections` is {connections}, which can take {needed} file descriptors, and the system allows {limit}: raise that (`ulimit -Hn {needed}`, or LimitNOFILE={needed} in a service of systemd), or set `limits.connections` to {held} or less";
        zh: "`limits.connections` 为 {connections}，可能需要 {needed} 个文件描述符，而系统只允许 {limit} 个：请调高限制（`ulimit -Hn {needed}`，或在 systemd 服务中设置 LimitNOFILE={needed}），或把 `limits.connections` 设为不超过 {held}";
    }

    /// An error of the start.
    error(words: &str) {
        en: "error: {words}";
        zh: "错误：{words}";
    }

    /// An upstream is the relay itself.
    is_ourselves(name: &str, shown: &str) {
        en: "error: upstream `{name}` is {shown}, which is this relay itself\nhint: name the service that answers, or give the relay another port";
        zh: "错误：上游 `{name}` 是 {shown}，即此中继自身\n提示：请指定真正提供回答的服务，或让中继使用另一个端口";
    }

    /// A rate of the clock that is none.
    no_rate() {
        en: "error: --clock-rate: this is no rate\nhint: write a whole number, 1 or more";
        zh: "错误：--clock-rate：这不是有效的倍数\n提示：请写不小于 1 的整数";
    }

    /// The system gives no threads.
    no_start(error: &str) {
        en: "error: the system does not let the relay start: {error}";
        zh: "错误：系统不允许中继启动：{error}";
    }

    /// Signals cannot be heard.
    no_signals(error: &str) {
        en: "error: signals: {error}";
        zh: "错误：无法接收信号：{error}";
    }

    /// Standard output cannot be written.
    no_output(error: &str) {
        en: "error: standard output: {error}";
        zh: "错误：标准输出：{error}";
    }

    /// A port is taken. `holder` is empty or the message below, `way_out` one of those below.
    taken(port: u16, ip: &str, holder: &str, way_out: &str) {
        en: "port {port} is taken on {ip}{holder}\nhint: {way_out}";
        zh: "{ip} 上的端口 {port} 已被占用{holder}\n提示：{way_out}";
    }

    /// By whom.
    held_by(name: &str, pid: u32) {
        en: " by {name} (process {pid})";
        zh: "，占用者为 {name}（进程 {pid}）";
    }

    /// What to do where the holder is known.
    stop_it(flag: &str) {
        en: "stop it, or choose another port with {flag}";
        zh: "停止该进程，或用 {flag} 选择另一个端口";
    }

    /// What to do where it is not.
    find_it(finder: &str, flag: &str) {
        en: "find the program with `{finder}`, or choose another port with {flag}";
        zh: "用 `{finder}` 查找占用端口的程序，或用 {flag} 选择另一个端口";
    }

    /// What to do where the service manager holds it.
    systemd_holds_it(flag: &str) {
        en: "systemd holds it for a service, perhaps the relay's own: see `steady-relay service status`, or choose another port with {flag}";
        zh: "systemd 正在为某个服务占用该端口，可能就是中继自己的服务：请查看 `steady-relay service status`，或用 {flag} 选择另一个端口";
    }

    /// No port is free on both addresses of loopback.
    no_shared_port(flag: &str) {
        en: "found no port that is free on both 127.0.0.1 and [::1]\nhint: name one with {flag}";
        zh: "没有在 127.0.0.1 和 [::1] 上同时空闲的端口\n提示：用 {flag} 指定一个";
    }

    /// The system refuses for another reason.
    cannot_listen(at: &str, error: &str) {
        en: "cannot listen on {at}: {error}";
        zh: "无法监听 {at}：{error}";
    }

    /// There is no IPv6.
    no_ipv6(error: &str) {
        en: "no IPv6 on this machine ({error}): listening on 127.0.0.1 alone";
        zh: "本机没有 IPv6（{error}）：只监听 127.0.0.1";
    }

    /// The log file cannot be written.
    no_log_file(path: &str, error: &str) {
        en: "the log file {path} cannot be written: {error}\nhint: name another with --log-file, or leave it out";
        zh: "无法写入日志文件 {path}：{error}\n提示：用 --log-file 指定另一个，或不指定";
    }

    /// The log cannot be written.
    no_log(error: &str) {
        en: "the log cannot be written: {error}";
        zh: "无法写入日志：{error}";
    }

    /// A file of certificates cannot be read.
    unreadable_certificates(path: &str, detail: &str) {
        en: "cannot read the certificate file {path}: {detail}\nhint: `ca_file` below [relay] names it, or SSL_CERT_FILE; check the path";
        zh: "无法读取证书文件 {path}：{detail}\n提示：它由 [relay] 中的 `ca_file` 或 SSL_CERT_FILE 指定；请检查路径";
    }

    /// It holds none that is usable. `detail` is empty or begins with a colon.
    no_certificate(path: &str, detail: &str) {
        en: "no usable certificate in {path}{detail}\nhint: `ca_file` below [relay] names it, or SSL_CERT_FILE; it has to hold certificates in PEM";
        zh: "{path} 中没有可用的证书{detail}\n提示：它由 [relay] 中的 `ca_file` 或 SSL_CERT_FILE 指定；其中必须是 PEM 格式的证书";
    }

    /// The TLS library refuses.
    no_tls(error: &str) {
        en: "TLS cannot be set up: {error}";
        zh: "无法建立 TLS：{error}";
    }

    /// One certificate of several is not usable.
    unusable_certificate(path: &str, error: &str) {
        en: "a certificate in {path} is not usable: {error}";
        zh: "{path} 中有一个证书不可用：{error}";
    }

    /// The system has no roots.
    no_roots() {
        en: "this system has no root certificates: the built-in list of Mozilla is used";
        zh: "系统没有根证书：使用内置的 Mozilla 列表";
    }

    /// They cannot be read.
    unreadable_roots(error: &str) {
        en: "the system's root certificates cannot be read ({error}): the built-in list of Mozilla is used";
        zh: "无法读取系统的根证书（{error}）：使用内置的 Mozilla 列表";
    }

    /// They are replaced.
    replaced_roots() {
        en: "SSL_CERT_FILE or SSL_CERT_DIR is set: the built-in list of Mozilla is used beside it, in place of the system's roots";
        zh: "设置了 SSL_CERT_FILE 或 SSL_CERT_DIR：除此之外使用内置的 Mozilla 列表，代替系统的根证书";
    }

    /// A socket that was passed.
    socket(number: usize) {
        en: "socket {number}";
        zh: "套接字 {number}";
    }

    /// One with a name.
    named_socket(number: usize, name: &str) {
        en: "socket {number} (`{name}`)";
        zh: "套接字 {number}（`{name}`）";
    }

    /// How many were passed is not said.
    passed_count(count: &str, most: usize) {
        en: "LISTEN_FDS is `{count}`, which is no number of sockets from 0 to {most}\nhint: unset it, or see to the unit that starts the relay";
        zh: "LISTEN_FDS 为 `{count}`，不是 0 到 {most} 的套接字数量\n提示：取消设置该变量，或检查启动中继的 systemd 单元";
    }

    /// One is something else. `why` is empty or begins with a colon.
    passed_no_listener(socket: &str, why: &str) {
        en: "{socket} that the service manager passed is no listening TCP socket{why}\nhint: the unit has to say `ListenStream=127.0.0.1:8787` or the like, and `Accept=no`";
        zh: "服务管理器传入的{socket}不是监听中的 TCP 套接字{why}\n提示：单元中须写 `ListenStream=127.0.0.1:8787` 之类，以及 `Accept=no`";
    }

    /// Why.
    does_not_listen() {
        en: "it does not listen";
        zh: "它没有在监听";
    }

    /// One that other machines reach.
    passed_beyond(socket: &str, at: &str) {
        en: "{socket} that the service manager passed listens on {at}, beyond loopback, and no token is set\nhint: set STEADY_RELAY_TOKEN in an env file, or have the unit listen on 127.0.0.1";
        zh: "服务管理器传入的{socket}监听回环以外的 {at}，而没有设置令牌\n提示：在 env 文件中设置 STEADY_RELAY_TOKEN，或让单元监听 127.0.0.1";
    }

    /// The port that was passed is another one than that of the settings.
    passed_other_port(passed: u16, port: u16) {
        en: "the service manager passed port {passed}, which holds, and the settings say {port}: `steady-relay service install` brings them together";
        zh: "服务管理器传入的端口是 {passed}，以它为准，而设置中是 {port}：运行 `steady-relay service install` 可使两者一致";
    }

    /// There is no socket to listen on.
    no_socket() {
        en: "there is no socket";
        zh: "没有可用的套接字";
    }

    /// The folder that the program was started in is gone.
    no_folder(error: &str) {
        en: "the working directory: {error}";
        zh: "工作目录：{error}";
    }

    /// The system does not know the program.
    no_own_path() {
        en: "the system does not tell where this program is";
        zh: "系统没有提供本程序所在的位置";
    }

    /// Why, behind what is wrong.
    because(why: &str) {
        en: ": {why}";
        zh: "：{why}";
    }
}

fn open_calls(open: usize) -> String {
    counted(u64::try_from(open).unwrap_or(u64::MAX), "open call", "open calls")
}

const fn has(open: usize) -> &'static str {
    if open == 1 { "has" } else { "have" }
}

#[cfg(test)]
mod tests {
    use relay_core::Lang;

    use super::*;
    use crate::terminal::width;

    #[test]
    fn the_first_lines_fit_80_columns() {
        for lang in Lang::ALL {
            for whence in [String::new(), every_address(lang, "IPv4", 65_535)] {
                let open = open(lang, &beyond(lang, &whence));
                let all = listening(lang, "http://127.0.0.1:65535", &open, &by_credential(lang));
                for line in all.lines() {
                    assert!(width(line) <= 80, "{} columns: {line}", width(line));
                }
            }
        }
    }
}
