//! What `doctor` says. Where there is a second line, it is what to do.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "doctor";

    /// The head of the report.
    opening(version: &str, fails: u64, warns: u64, oks: u64) {
        en: "Steady Relay {version}: {fails} failed, {warns}, {oks} ok", warns = counted(warns, "warning", "warnings");
        zh: "Steady Relay {version}：{fails} 项失败，{warns} 项警告，{oks} 项正常";
    }

    /// The same, where something could not be looked at.
    opening_and_skipped(opening: &str, skipped: u64) {
        en: "{opening}, {skipped} not looked at";
        zh: "{opening}，{skipped} 项未检查";
    }

    /// What could not be looked at. `why` is a message of this table, or what a system said.
    not_looked_at(why: &str) {
        en: "not looked at: {why}";
        zh: "未检查：{why}";
    }

    /// Before a remedy.
    remedy(what: &str) {
        en: "do: {what}";
        zh: "处理：{what}";
    }

    /// The settings have an error.
    settings_bad(error: &str, hint: &str) {
        en: "{error}\n{hint} (`steady-relay config check` shows the place)";
        zh: "{error}\n{hint}（`steady-relay config check` 会指出位置）";
    }

    /// Something about the settings that should be known.
    settings_note(note: &str) {
        en: "{note}\n`steady-relay config show --origin` tells who set what";
        zh: "{note}\n`steady-relay config show --origin` 会说明每项设置的来源";
    }

    /// The file is as it should be.
    settings_ok(file: &str) {
        en: "{file} is understood";
        zh: "{file} 有效";
    }

    /// There is no file.
    settings_none() {
        en: "there is no file, so the defaults hold";
        zh: "没有配置文件，使用默认设置";
    }

    /// A relay listens.
    port_ours(at: &str) {
        en: "a relay listens at {at}";
        zh: "中继正在监听 {at}";
    }

    /// Nobody does.
    port_free(at: &str) {
        en: "no relay runs, and {at} is free for one";
        zh: "中继未运行，{at} 空闲可用";
    }

    /// A relay that wants a token.
    port_locked(at: &str) {
        en: "a relay listens at {at}, and asks for a token that these settings do not have\nset STEADY_RELAY_TOKEN to the one it was started with";
        zh: "{at} 上有中继，但它要求的令牌不在当前设置中\n把 STEADY_RELAY_TOKEN 设为它启动时的令牌";
    }

    /// The service manager holds the port.
    port_service(at: &str) {
        en: "the service holds {at} for the relay";
        zh: "服务已为中继占住 {at}";
    }

    /// A program that is known holds the port.
    port_held(at: &str, name: &str, pid: u64) {
        en: "{at} is taken by {name} (process {pid})\nstop it, or run `steady-relay setup`, which gives the relay and its clients another port";
        zh: "{at} 被 {name}（进程 {pid}）占用\n停止该程序，或运行 `steady-relay setup`，为中继和客户端换一个端口";
    }

    /// A program that is not known does.
    port_taken(at: &str) {
        en: "{at} is taken by another program\nfind it with `lsof -i` or `netstat -ano`, or run `steady-relay setup`, which gives the relay and its clients another port";
        zh: "{at} 被其他程序占用\n用 `lsof -i` 或 `netstat -ano` 查找，或运行 `steady-relay setup`，为中继和客户端换一个端口";
    }

    /// There is no relay to be asked.
    none_runs() {
        en: "no relay shows its status page";
        zh: "没有可读取的中继状态页";
    }

    /// Who keeps track of this program, and what brings a newer one.
    installed(version: &str, by: &str, update: &str) {
        en: "this program is {version}, installed by {by}; a newer one comes with `{update}`";
        zh: "本程序是 {version}，由 {by} 安装；用 `{update}` 更新";
    }

    /// The same where packages are files.
    installed_file(version: &str, by: &str) {
        en: "this program is {version}, installed by {by}; a newer one comes as a newer package";
        zh: "本程序是 {version}，由 {by} 安装；安装新的软件包即可更新";
    }

    /// Nobody keeps track of it.
    installed_by_hand(version: &str) {
        en: "this program is {version}, put here by hand; a newer one takes its place";
        zh: "本程序是 {version}，手动放置；用新的文件替换即可更新";
    }

    /// One version at both ends.
    version_ok(version: &str) {
        en: "the relay that runs is {version}, as this program is";
        zh: "运行中的中继与本程序同为 {version}";
    }

    /// Two of them.
    version_differs(theirs: &str, ours: &str) {
        en: "the relay that runs is {theirs}, this program is {ours}\nstart the relay anew; where it is a service: `steady-relay service install`";
        zh: "运行中的中继是 {theirs}，本程序是 {ours}\n请重启中继；如果是服务，运行 `steady-relay service install`";
    }

    /// Calls are lost and none is saved.
    storm(lost: u64) {
        en: "{lost} calls were lost and none was saved, which is no matter of capacity\nlook at `why` and `code` in the log (docs/log.md): a key, a model or an address is wrong";
        zh: "{lost} 次请求失败，没有一次被挽回，这不是容量问题\n查看日志中的 `why` 和 `code`（docs/log.md）：密钥、模型或地址有误";
    }

    /// Calls are saved, or all goes well.
    failures_ok(saved: u64, lost: u64) {
        en: "calls saved: {saved}, lost: {lost}";
        zh: "挽回 {saved} 次请求，失败 {lost} 次";
    }

    /// Calls wait for an answer without an end.
    hanging(calls: u64) {
        en: "{calls} been without an answer for over 15 minutes\nset `first_byte` below [timeouts], and look whether the service is still at work", calls = counted(calls, "call has", "calls have");
        zh: "{calls} 次请求超过 15 分钟没有响应\n在 [timeouts] 下设置 `first_byte`，并确认服务是否仍在处理";
    }

    /// None does.
    hanging_ok(open: u64) {
        en: "none of {open} hangs", open = counted(open, "open call", "open calls");
        zh: "{open} 次进行中的请求都没有卡住";
    }

    /// What may have run was sent again.
    duplicates(sends: u64) {
        en: "{sends} may have run twice\nwhere that must not be, use `profile = \"strict\"`, or `ambiguous_resends = 0`", sends = counted(sends, "send", "sends");
        zh: "{sends} 次发送可能被执行了两次\n若不允许，使用 `profile = \"strict\"` 或 `ambiguous_resends = 0`";
    }

    /// Nothing was.
    duplicates_ok() {
        en: "nothing was sent again that may have run";
        zh: "没有重新发送任何可能已执行的请求";
    }

    /// The relay is large.
    memory_much(mebibytes: u64) {
        en: "the relay takes {mebibytes} MiB of memory\nmake `total` and `each` below [bodies] smaller";
        zh: "中继占用了 {mebibytes} MiB 内存\n调小 [bodies] 下的 `total` 和 `each`";
    }

    /// It is not.
    memory_ok(mebibytes: u64) {
        en: "the relay takes {mebibytes} MiB of memory";
        zh: "中继占用 {mebibytes} MiB 内存";
    }

    /// Nobody tells.
    memory_unknown() {
        en: "this system does not tell how much memory the relay takes";
        zh: "系统没有提供中继的内存占用";
    }

    /// The way by a proxy.
    way_by(origin: &str, proxy: &str) {
        en: "{origin} by the proxy {proxy}";
        zh: "{origin}（经代理 {proxy}）";
    }

    /// The upstream was reached.
    reached(name: &str, way: &str) {
        en: "{name}: {way} is reached";
        zh: "{name}：可以连接 {way}";
    }

    /// Its name is unknown.
    unreached_dns(name: &str, way: &str, detail: &str) {
        en: "{name}: the name in {way} cannot be looked up ({detail})\ncheck `url` of the upstream, and this machine's name service or VPN";
        zh: "{name}：无法解析 {way} 的域名（{detail}）\n检查该上游的 `url`，以及本机的 DNS 或 VPN";
    }

    /// Nobody listens, or no packet comes through.
    unreached_connect(name: &str, way: &str, detail: &str) {
        en: "{name}: no connection to {way} ({detail})\nstart the service, check its port, or name the proxy that leads there (`proxy`)";
        zh: "{name}：无法连接 {way}（{detail}）\n启动该服务、检查端口，或用 `proxy` 指定通往它的代理";
    }

    /// TLS does not come about.
    unreached_tls(name: &str, way: &str, detail: &str) {
        en: "{name}: no TLS with {way} ({detail})\ncheck whether it is http rather than https, and whether a firewall looks into TLS";
        zh: "{name}：与 {way} 的 TLS 握手失败（{detail}）\n确认它是否其实是 http，以及防火墙是否拦截 TLS";
    }

    /// The certificate is not trusted.
    unreached_certificate(name: &str, way: &str, detail: &str) {
        en: "{name}: the certificate of {way} is not trusted ({detail})\nname the certificate of your company or of the service by `ca_file` or SSL_CERT_FILE";
        zh: "{name}：{way} 的证书不受信任（{detail}）\n用 `ca_file` 或 SSL_CERT_FILE 指定公司或该服务的根证书";
    }

    /// The proxy does not let us through.
    unreached_proxy(name: &str, way: &str, detail: &str) {
        en: "{name}: the proxy does not lead there: {way} ({detail})\ncheck the address, name and password of the proxy, or leave it out (`proxy = \"none\"`)";
        zh: "{name}：代理无法到达 {way}（{detail}）\n检查代理的地址、用户名和密码，或不使用代理（`proxy = \"none\"`）";
    }

    /// It hung up or stayed silent.
    unreached_answer(name: &str, way: &str, detail: &str) {
        en: "{name}: {way} gives no answer ({detail})\ntry again in a minute; if it stays so, check `url` of the upstream";
        zh: "{name}：{way} 没有响应（{detail}）\n一分钟后再试；若仍如此，检查该上游的 `url`";
    }

    /// It is this relay.
    unreached_itself(name: &str, way: &str, detail: &str) {
        en: "{name}: {way} is this relay itself{detail}\nname the service that answers, or give the relay another port";
        zh: "{name}：{way} 就是中继自身{detail}\n改为真正的服务地址，或给中继换一个端口";
    }

    /// There are more than are asked.
    upstreams_more(count: u64) {
        en: "{count} more services, since there are many; `--upstream NAME` asks one";
        zh: "上游较多，另有 {count} 个；用 `--upstream NAME` 检查其中一个";
    }

    /// There was none to be asked.
    upstreams_none() {
        en: "no upstream was reached";
        zh: "没有连接到任何上游";
    }

    /// It answers.
    path_ok(name: &str, path: &str, status: u64) {
        en: "{name}: {path} answers {status} to a request without a key";
        zh: "{name}：{path} 对不带密钥的请求返回 {status}";
    }

    /// It answers, and has no `/health`.
    path_no_health(name: &str, status: u64, health: u64) {
        en: "{name}: answers {status} to a request without a key; /health answers {health}, as with many services";
        zh: "{name}：对不带密钥的请求返回 {status}；/health 返回 {health}，许多服务都没有该路径";
    }

    /// A web page.
    path_page(name: &str, path: &str) {
        en: "{name}: {path} answers with a web page\ncheck `url` of the upstream; a hotel or a company may want a sign-in first";
        zh: "{name}：{path} 返回的是网页\n检查该上游的 `url`；也可能是网络要求先登录";
    }

    /// It sends us elsewhere.
    path_elsewhere(name: &str, path: &str, status: u64) {
        en: "{name}: {path} answers {status} and sends elsewhere\nset `url` of the upstream to where it sends";
        zh: "{name}：{path} 返回 {status}，要求跳转\n把该上游的 `url` 改为跳转后的地址";
    }

    /// There is nothing there.
    path_missing(name: &str, path: &str, status: u64) {
        en: "{name}: {path} answers {status}\ncheck the path in `url` of the upstream; some services have no list of models, and then all is well";
        zh: "{name}：{path} 返回 {status}\n检查该上游 `url` 中的路径；有些服务没有模型列表，那就没有问题";
    }

    /// It is ill.
    path_failing(name: &str, path: &str, status: u64) {
        en: "{name}: {path} answers {status}\nit is the service that fails; look at its status page, or wait";
        zh: "{name}：{path} 返回 {status}\n是服务自身出错；查看它的状态页，或稍等";
    }

    /// The clock is wrong.
    clock_off(ahead: i64) {
        en: "this machine's clock is {off}\nlet the system set it (NTP)", off = if ahead < 0 { format!("{} s behind", -ahead) } else { format!("{ahead} s ahead") };
        zh: "本机时钟{off}\n让系统自动校时（NTP）", off = if ahead < 0 { format!("慢了 {} 秒", -ahead) } else { format!("快了 {ahead} 秒") };
    }

    /// It is right.
    clock_ok() {
        en: "this machine's clock agrees with the services'";
        zh: "本机时钟与服务一致";
    }

    /// Nobody told the time.
    clock_unknown() {
        en: "no service told the time";
        zh: "没有服务给出时间";
    }

    /// The proxy is the relay.
    proxy_itself(proxy: &str) {
        en: "the proxy {proxy} is the relay, which is none\nremove it from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or `proxy`, and give clients the relay as base URL";
        zh: "代理 {proxy} 指向中继，而中继不是代理\n从 HTTP_PROXY、HTTPS_PROXY、ALL_PROXY 或 `proxy` 中去掉它，把中继设为客户端的 base URL";
    }

    /// It is not.
    proxy_ok() {
        en: "no proxy leads back to the relay";
        zh: "没有代理指回中继";
    }

    /// A file of certificates is of no use.
    certificates_bad(who: &str, what: &str) {
        en: "{who}: {what}\nname a file of certificates in PEM, or remove the setting";
        zh: "{who}：{what}\n指定一个 PEM 格式的证书文件，或去掉该设置";
    }

    /// One cannot be had; `what` says which, and why.
    credential_flaw(what: &str) {
        en: "{what}\nmend it, or what the `[credential.NAME]` of the settings says of it";
        zh: "{what}\n请修正它，或修改设置中 `[credential.NAME]` 的内容";
    }

    /// Check `credentials`, where the relay that runs will not try again.
    credential_over(name: &str, why: &str) {
        en: "the relay that runs can have credential `{name}` no more: {why}\nmend what is named there; it tries again once the settings or the file of the refresh token changed";
        zh: "正在运行的中继无法再取得凭据 `{name}`：{why}\n请修正其中提到的问题；设置或 refresh token 文件更改后它会重试";
    }

    /// Check `credentials`, where it will.
    credential_failed(name: &str, why: &str) {
        en: "the relay that runs could not have credential `{name}`: {why}\nmend what is named there; it tries again with the calls that need it";
        zh: "正在运行的中继未能取得凭据 `{name}`：{why}\n请修正其中提到的问题；有调用需要它时中继会重试";
    }

    /// The relay has none of its own.
    credentials_none() {
        en: "clients bring their credentials; the relay has none of its own";
        zh: "凭据由客户端自带；中继自己没有凭据";
    }

    /// All are where the settings say.
    credentials_ok(count: u64) {
        en: "credentials of the relay's own: {count}, each where the settings say (none was asked for or run)";
        zh: "中继自己的凭据：{count} 个，都在设置所说的位置（没有索取令牌，也没有运行程序）";
    }

    /// All are.
    certificates_ok() {
        en: "every file of certificates that is named is there";
        zh: "指定的证书文件都可用";
    }

    /// All are, and clients need the relay's own.
    certificates_own() {
        en: "every file of certificates that is named is there; clients that ask by https need the relay's own: `steady-relay cert trust-help`";
        zh: "指定的证书文件都可用；用 https 访问中继的客户端需要信任中继的证书：`steady-relay cert trust-help`";
    }

    /// A key of a file.
    place(key: &str, file: &str) {
        en: "`{key}` in {file}";
        zh: "{file} 中的 `{key}`";
    }

    /// A client is pointed at nothing.
    client_dead(client: &str, place: &str, url: &str) {
        en: "{client} is told to ask {url} ({place}), and nothing answers there\n`steady-relay setup` points it to the relay; what setup wrote, `steady-relay undo` takes back";
        zh: "{client} 被指向 {url}（{place}），那里没有响应\n用 `steady-relay setup` 把它指向中继；setup 写入的内容可用 `steady-relay undo` 撤销";
    }

    /// A client is pointed at a relay that does not run.
    client_down(client: &str, place: &str, url: &str) {
        en: "{client} is told to ask {url} ({place}), and no relay answers there\nstart it with `steady-relay`, or for good with `steady-relay service install`; `steady-relay undo` takes the setting back";
        zh: "{client} 被指向 {url}（{place}），那里没有中继响应\n用 `steady-relay` 启动中继，或用 `steady-relay service install` 让它常驻；`steady-relay undo` 可撤销该设置";
    }

    /// A client asks by https, and the relay speaks http alone.
    client_https(client: &str, place: &str) {
        en: "{client} asks the relay by https ({place}), and `tls` is off\nset `tls = true` below [relay] and see `steady-relay cert trust-help`, or write http there";
        zh: "{client} 用 https 访问中继（{place}），但 `tls` 未开启\n在 [relay] 下设置 `tls = true` 并参阅 `steady-relay cert trust-help`，或改用 http";
    }

    /// A client's file says nothing to us.
    client_unreadable(client: &str, file: &str, why: &str) {
        en: "{client}: {file} cannot be read: {why}\nmend it; `steady-relay setup` leaves it alone until then";
        zh: "{client}：无法读取 {file}：{why}\n请修正该文件；在此之前 `steady-relay setup` 不会改动它";
    }

    /// No service.
    service_none() {
        en: "no service is installed; `steady-relay service install` starts the relay at every login";
        zh: "没有安装服务；`steady-relay service install` 可在每次登录时启动中继";
    }

    /// It works.
    service_ok(at: &str) {
        en: "the service is installed and answers at {at}";
        zh: "服务已安装，在 {at} 正常响应";
    }

    /// Its program is gone.
    service_gone(program: &str, at: &str) {
        en: "the service is to run {program}, which is gone; clients that ask {at} get no answers\n`steady-relay service install` takes this program; `steady-relay undo` and `steady-relay service remove` end it";
        zh: "服务要运行的 {program} 已不存在，访问 {at} 的客户端得不到回答\n`steady-relay service install` 改用本程序；`steady-relay undo` 和 `steady-relay service remove` 彻底停用";
    }

    /// No relay answers at its address.
    service_silent(at: &str) {
        en: "the service is installed, and no relay answers at {at}\n`steady-relay service start`; where that fails, `steady-relay service status` says where its log is";
        zh: "服务已安装，但 {at} 上没有中继响应\n运行 `steady-relay service start`；若失败，`steady-relay service status` 会指出日志位置";
    }

    /// It listens elsewhere than the settings say.
    service_elsewhere(there: &str, at: &str) {
        en: "the service listens at {there}, and these settings say {at}\n`steady-relay service install` takes on what they say";
        zh: "服务监听 {there}，而当前设置是 {at}\n运行 `steady-relay service install` 使设置生效";
    }

    /// A setting that breaks the client.
    client_breaks(client: &str, place: &str) {
        en: "{client}: {place} breaks the sign-in, which wants https\nremove it; `openai_base_url` is the key that moves the requests";
        zh: "{client}：{place} 会破坏登录，登录要求 https\n去掉它；移动请求用的是 `openai_base_url`";
    }

    /// All clients are well.
    client_ok(pointed: u64, others: u64) {
        en: "settings that point to a relay: {pointed}; elsewhere: {others}; none to where nothing answers";
        zh: "指向中继的设置 {pointed} 项，指向别处的 {others} 项，没有指向无响应地址的";
    }

    /// A proxy is asked for this machine.
    catching(variable: &str) {
        en: "{variable} is set, and NO_PROXY and no_proxy do not both leave out 127.0.0.1: Codex, Claude Code and SDKs in Python ask the proxy for the relay\nadd it to each that is set: NO_PROXY=127.0.0.1,localhost (`steady-relay run` does so by itself)";
        zh: "设置了 {variable}，但 NO_PROXY 和 no_proxy 没有都排除 127.0.0.1：Codex、Claude Code 和 Python SDK 会通过代理访问中继\n在已设置的每个变量中加上：NO_PROXY=127.0.0.1,localhost（`steady-relay run` 会自动处理）";
    }

    /// None is.
    catching_none() {
        en: "no proxy of the environment catches 127.0.0.1";
        zh: "环境变量中的代理不会拦截 127.0.0.1";
    }

    /// VS Code takes the relay for a proxy.
    vscode_itself(proxy: &str) {
        en: "`http.proxy` of VS Code is {proxy}, which is the relay and no proxy\nclear it (Settings, \"Http: Proxy\"), and give the extension the relay as base URL";
        zh: "VS Code 的 `http.proxy` 是 {proxy}，那是中继而不是代理\n清空它（设置中的 Http: Proxy），并把中继设为扩展的 base URL";
    }

    /// VS Code uses a proxy.
    vscode_proxy(proxy: &str, file: &str) {
        en: "VS Code uses the proxy {proxy} (`http.proxy` in {file}), also for 127.0.0.1\nadd 127.0.0.1 and localhost to `http.noProxy`, or clear `http.proxy`";
        zh: "VS Code 使用代理 {proxy}（{file} 中的 `http.proxy`），访问 127.0.0.1 也会经过它\n把 127.0.0.1 和 localhost 加入 `http.noProxy`，或清空 `http.proxy`";
    }

    /// It does not.
    vscode_ok() {
        en: "VS Code has no proxy in the way";
        zh: "VS Code 没有代理阻碍";
    }

    /// The routing of a workspace may be lost.
    workspace_lost(plan: &str) {
        en: "Codex is signed in on a managed plan ({plan}): by a base URL it loses the routing of its workspace, if it has one\nask your administrator; if so, set the header x-openai-account-routing-override in [upstream.chatgpt]";
        zh: "Codex 登录的是企业套餐（{plan}）：使用 base URL 会丢失工作区的路由（如果有）\n询问管理员；若有，在 [upstream.chatgpt] 中设置请求头 x-openai-account-routing-override";
    }

    /// The settings keep it.
    workspace_kept(plan: &str) {
        en: "Codex is signed in on a managed plan ({plan}), and [upstream.chatgpt] has headers for it";
        zh: "Codex 登录的是企业套餐（{plan}），[upstream.chatgpt] 已为它设置请求头";
    }

    /// There is none.
    workspace_ok() {
        en: "no sign-in whose workspace could lose its routing";
        zh: "没有会丢失工作区路由的登录";
    }

    /// A client is older than what was measured.
    client_old(client: &str, is: &str, was: &str) {
        en: "{client} is {is}; measured was {was}\nupdate it";
        zh: "{client} 是 {is}，测试过的是 {was}\n请升级";
    }

    /// Just that one.
    client_measured(client: &str, is: &str) {
        en: "{client} is {is}, which was measured";
        zh: "{client} 是 {is}，已测试过";
    }

    /// A newer one.
    client_newer(client: &str, is: &str, was: &str) {
        en: "{client} is {is}, newer than what was measured ({was})";
        zh: "{client} 是 {is}，比测试过的版本（{was}）新";
    }

    /// No client was found.
    client_none() {
        en: "neither Codex, Claude Code nor Gemini CLI is on the PATH";
        zh: "PATH 中没有 Codex、Claude Code 或 Gemini CLI";
    }

    /// `localhost` is nowhere.
    localhost_none() {
        en: "the name localhost cannot be looked up\nput `127.0.0.1 localhost` into the hosts file; give clients 127.0.0.1";
        zh: "无法解析 localhost\n在 hosts 文件中加入 `127.0.0.1 localhost`；客户端使用 127.0.0.1";
    }

    /// It is IPv6 alone.
    localhost_six() {
        en: "the name localhost is not 127.0.0.1, but ::1 alone\ngive clients 127.0.0.1 in place of localhost";
        zh: "localhost 只解析为 ::1，而不是 127.0.0.1\n客户端用 127.0.0.1 代替 localhost";
    }

    /// It is as usual.
    localhost_ok() {
        en: "the name localhost is 127.0.0.1";
        zh: "localhost 就是 127.0.0.1";
    }

    /// A client that is there and does not answer.
    client_silent(client: &str) {
        en: "{client} did not tell its version in time";
        zh: "{client} 没有及时给出版本";
    }

    /// Windows.
    no_modes() {
        en: "this system has no modes of files";
        zh: "本系统的文件没有权限位";
    }

    /// Others may change what the relay goes by.
    open_to_writing(file: &str, mode: &str) {
        en: "others may change {file} (mode {mode})\nchmod go-w {file}";
        zh: "其他用户可以修改 {file}（权限 {mode}）\nchmod go-w {file}";
    }

    /// Others may read a secret.
    open_file(file: &str, mode: &str) {
        en: "{file} holds what may be secret, and others have rights to it (mode {mode})\nchmod go= {file}";
        zh: "{file} 可能含有机密内容，而其他用户有访问权限（权限 {mode}）\nchmod go= {file}";
    }

    /// None may.
    files_ok() {
        en: "files with secrets are their owner's alone";
        zh: "含有机密内容的文件只有所有者可以访问";
    }

    /// A file that other programs do not read.
    env_file_odd(file: &str) {
        en: "{file} begins with a byte order mark or is UTF-16; the relay reads it, many programs do not\nsave it as UTF-8 without a mark";
        zh: "{file} 带有 BOM 或是 UTF-16 编码；中继可以读取，但许多程序不能\n另存为不带 BOM 的 UTF-8";
    }

    /// All are plain.
    env_file_ok() {
        en: "env files are plain UTF-8";
        zh: "env 文件都是普通的 UTF-8";
    }

    /// The history is switched off.
    history_off() {
        en: "the history is off: `why` and `stats` know nothing";
        zh: "历史记录已关闭：`why` 和 `stats` 没有数据";
    }

    /// It has no place.
    history_nowhere() {
        en: "there is no folder for the history: calls are not recorded\nname one with `state_dir`, or a file with `history.file`";
        zh: "没有可存放历史的目录：请求不会被记录\n用 `state_dir` 指定目录，或用 `history.file` 指定文件";
    }

    /// It is not there yet.
    history_expected() {
        en: "the history can be written; nothing is recorded yet";
        zh: "历史可以写入；尚无记录";
    }

    /// It is there.
    history_ok(size: u64) {
        en: "the history can be read and written, {size} MiB at most";
        zh: "历史可读可写，不超过 {size} MiB";
    }

    /// It cannot be used; `why` names the file.
    history_bad(why: &str) {
        en: "{why}: calls are not recorded\nput that right, or name another file with `history.file`";
        zh: "{why}：请求不会被记录\n请修复，或用 `history.file` 指定另一个文件";
    }

    /// Nobody is told of trouble.
    alerts_none() {
        en: "alerts go to the log alone; `webhook`, `command` or `desktop` below [alerts] would tell you";
        zh: "告警只写入日志；可在 [alerts] 下设置 `webhook`、`command` 或 `desktop` 来通知你";
    }

    /// Somebody is.
    alerts_ok(ways: u64) {
        en: "alerts go by {ways} beside the log; `steady-relay alerts test` tries", ways = counted(ways, "way", "ways");
        zh: "除日志外，告警另有 {ways} 种方式；可用 `steady-relay alerts test` 试验";
    }

    /// The program is not there.
    alerts_missing(program: &str) {
        en: "`{program}` of `alerts.command` is not there\ncorrect its path; `steady-relay alerts test` tries it";
        zh: "`alerts.command` 的 `{program}` 不存在\n请更正路径；可用 `steady-relay alerts test` 试验";
    }

    /// Not in WSL.
    wsl_none() {
        en: "this is no Linux within Windows";
        zh: "不在 WSL 中";
    }

    /// One network.
    wsl_mirrored() {
        en: "WSL shares the network of Windows";
        zh: "WSL 与 Windows 共享网络";
    }

    /// Two networks.
    wsl_nat() {
        en: "WSL has a network of its own (NAT): 127.0.0.1 here is not that of Windows, so a client or a local model on the other side may not be reached\nset networkingMode=mirrored in %USERPROFILE%\\.wslconfig, or run both on one side";
        zh: "WSL 使用独立网络（NAT）：这里的 127.0.0.1 不是 Windows 的，另一侧的客户端或本地模型可能无法访问\n在 %USERPROFILE%\\.wslconfig 中设置 networkingMode=mirrored，或让两者运行在同一侧";
    }

    /// Nobody tells.
    wsl_unknown() {
        en: "this is WSL, and how its network is joined to Windows is not known\nrun `wslinfo --networking-mode`; with `nat`, run relay and client on one side";
        zh: "这是 WSL，但不清楚它与 Windows 的网络关系\n运行 `wslinfo --networking-mode`；若为 `nat`，让中继和客户端在同一侧运行";
    }
}
