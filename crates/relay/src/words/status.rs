//! What `status` and `health` say.

use relay_core::words::counted;

relay_core::words! {
    table TABLE "status";

    /// The first line.
    opening(version: &str, address: &str, uptime: &str) {
        en: "Steady Relay {version} at {address}, up for {uptime}";
        zh: "Steady Relay {version}，地址 {address}，已运行 {uptime}";
    }

    /// What became of calls.
    calls(calls: u64, saved: u64, lost: u64, handed_back: u64) {
        en: "calls: {calls}, of them {saved} saved, {lost} lost, {handed_back} handed back";
        zh: "请求：{calls} 次，其中挽回 {saved} 次，失败 {lost} 次，原样返回 {handed_back} 次";
    }

    /// What it took.
    sends(sends: u64, waits: u64, waited: &str) {
        en: "sends: {sends}, with {waits}, {waited} in all", waits = counted(waits, "wait", "waits");
        zh: "发送：{sends} 次，等待 {waits} 次，共 {waited}";
    }

    /// Requests that were no calls.
    refused(count: u64) {
        en: "requests turned away by the relay: {count}";
        zh: "被中继拒绝的请求：{count} 次";
    }

    /// Streams that were cut.
    cut(count: u64) {
        en: "streams cut so that Codex resumes: {count}";
        zh: "为让 Codex 续传而切断的流：{count} 次";
    }

    /// Sends that may have run twice.
    billed_twice(count: u64) {
        en: "sends that may have been billed twice: {count}";
        zh: "可能被重复计费的发送：{count} 次";
    }

    /// How many calls are open.
    open(count: u64) {
        en: "open calls: {count}";
        zh: "进行中的请求：{count} 次";
    }

    /// One that is. `state` is a word of the status page.
    call(who: &str, state: &str, sends: u64, age: &str) {
        en: "{who}: {state}, {sends}, {age}", sends = counted(sends, "send", "sends");
        zh: "{who}：{state}，已发送 {sends} 次，{age}";
    }

    /// What it does, and when it goes on.
    next_in(state: &str, span: &str) {
        en: "{state}, next in {span}";
        zh: "{state}，{span}后重试";
    }

    /// How many lanes there are.
    lanes(count: u64, busy: u64) {
        en: "lanes: {count}, {busy} of them shut, paused, cut off or with calls that wait";
        zh: "通道：{count} 条，其中 {busy} 条已关闭、已暂停、已切断或有请求在等待";
    }

    /// One at which calls wait.
    lane(who: &str, state: &str, waiting: u64) {
        en: "{who}: {state}, {waiting} waiting";
        zh: "{who}：{state}，{waiting} 个请求在等待";
    }

    /// The same, where it is known when the first of them goes.
    lane_next(who: &str, state: &str, waiting: u64, span: &str) {
        en: "{who}: {state}, {waiting} waiting, the next is sent in {span}";
        zh: "{who}：{state}，{waiting} 个请求在等待，{span}后发送下一个";
    }

    /// The same, where that is now.
    lane_due(who: &str, state: &str, waiting: u64) {
        en: "{who}: {state}, {waiting} waiting, the next is sent now";
        zh: "{who}：{state}，{waiting} 个请求在等待，正在发送下一个";
    }

    /// One that is short of capacity, as far as is known: nobody asks it now.
    lane_unasked(who: &str, state: &str) {
        en: "{who}: {state} when last asked, nobody waits";
        zh: "{who}：上次请求时为 {state}，没有请求在等待";
    }

    /// One whose service asked for a pause, while nobody waits for its end.
    lane_held(who: &str, state: &str, left: &str) {
        en: "{who}: {state}, paused for {left} more, as the service asked";
        zh: "{who}：{state}，应服务要求再暂停 {left}";
    }

    /// One that its breaker has cut off; `left`: until it is tried again, unless the next call tries it.
    lane_cut_off(who: &str, left: Option<&str>) {
        en: "{who}: failed too often (breaker open), {next}",
            next = left.map_or_else(|| "the next call tries it".to_owned(), |left| format!("tried again in {left}"));
        zh: "{who}：失败次数过多（断路器已断开），{next}",
            next = left.map_or_else(|| "下一个请求会试探".to_owned(), |left| format!("{left}后再试"));
    }

    /// A model that is being loaded, or was. `state` is a word of the status page.
    warm(who: &str, state: &str, tries: u64) {
        en: "  {who}: {state}, tries {tries}";
        zh: "  {who}：{state}，尝试 {tries} 次";
    }

    /// Before these.
    warming() {
        en: "models that were warmed:";
        zh: "预热的模型：";
    }

    /// Before these.
    ways_left() {
        en: "ways to services that failed, and are left until they work again:";
        zh: "失败后暂不使用的线路（恢复后会再用）：";
    }

    /// A way that is left. `why` is a word of the status page.
    way_left(upstream: &str, by: &str, why: &str, since: &str) {
        en: "  {upstream} ({by}): {why}, {since} ago";
        zh: "  {upstream}（{by}）：{why}，{since}前";
    }

    /// A credential of the relay's own that could not be had; `state` has the reason.
    credential(name: &str, state: &str) {
        en: "credential {name}: {state}";
        zh: "凭据 {name}：{state}";
    }

    /// What is not listed.
    more(count: u64) {
        en: "and {count} more";
        zh: "另有 {count} 项";
    }

    /// Below a minute.
    seconds(seconds: f64) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// Below an hour.
    minutes(minutes: u64, seconds: u64) {
        en: "{minutes} min {seconds} s";
        zh: "{minutes} 分 {seconds} 秒";
    }

    /// Below a day.
    hours(hours: u64, minutes: u64) {
        en: "{hours} h {minutes} min";
        zh: "{hours} 小时 {minutes} 分";
    }

    /// A day and more.
    days(days: u64, hours: u64) {
        en: "{days} d {hours} h";
        zh: "{days} 天 {hours} 小时";
    }

    /// Nobody listens.
    not_running(address: &str) {
        en: "no relay runs at {address}\nhint: start one with `steady-relay`, or name its port with --port";
        zh: "{address} 上没有运行中的中继\n提示：用 `steady-relay` 启动，或用 --port 指定它的端口";
    }

    /// The port is held, and no relay has answered.
    not_yet(address: &str) {
        en: "the port at {address} is held, and no relay answers\nhint: `steady-relay service status` says whether a service starts it, `steady-relay doctor` who holds the port";
        zh: "{address} 的端口已被占用，但没有中继响应\n提示：`steady-relay service status` 说明是否由服务启动，`steady-relay doctor` 说明谁占用端口";
    }

    /// Another program listens.
    other(address: &str) {
        en: "what listens at {address} is no relay\nhint: `steady-relay doctor` says which program it is";
        zh: "监听 {address} 的不是中继\n提示：`steady-relay doctor` 会指出是哪个程序";
    }

    /// A relay that wants a token.
    locked(address: &str) {
        en: "the relay at {address} asks for a token\nhint: set STEADY_RELAY_TOKEN to the one that it was started with";
        zh: "{address} 上的中继要求令牌\n提示：把 STEADY_RELAY_TOKEN 设为它启动时的令牌";
    }
}
