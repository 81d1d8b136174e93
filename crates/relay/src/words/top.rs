//! What `top` says.

relay_core::words! {
    table TABLE "top";

    /// The first line.
    title(version: &str, address: &str, uptime: &str) {
        en: "Steady Relay {version} at {address}, up {uptime}";
        zh: "Steady Relay {version}，{address}，已运行 {uptime}";
    }

    /// A short span.
    seconds(count: &str) {
        en: "{count} s";
        zh: "{count} 秒";
    }

    /// Below an hour.
    minutes(count: u64) {
        en: "{count} min";
        zh: "{count} 分钟";
    }

    /// Below two days.
    hours(count: u64) {
        en: "{count} h";
        zh: "{count} 小时";
    }

    /// The longest.
    days(count: u64) {
        en: "{count} d";
        zh: "{count} 天";
    }

    /// All is as it is now.
    live() {
        en: "live";
        zh: "实时";
    }

    /// Nothing moves.
    paused() {
        en: "PAUSED";
        zh: "已暂停";
    }

    /// The relay does not answer.
    lost(ago: &str, next: &str) {
        en: "no answer from the relay for {ago}, next try in {next}; below is what was last seen";
        zh: "中继已 {ago}没有响应，{next}后再试；下面是最后看到的内容";
    }

    /// It asks for a token that it did not ask for before.
    locked(next: &str) {
        en: "the relay asks for another token now, next try in {next}";
        zh: "中继现在要求另一个令牌，{next}后再试";
    }

    /// The share of calls that went well, and what it would have been.
    success(with: &str, without: &str) {
        en: "success {with} % ({without} % without)";
        zh: "成功率 {with} %（没有中继 {without} %）";
    }

    /// Calls that were saved.
    saved(count: u64) {
        en: "saved {count}";
        zh: "挽回 {count}";
    }

    /// Calls that were lost.
    lost_calls(count: u64) {
        en: "lost {count}";
        zh: "失败 {count}";
    }

    /// Calls that are open.
    open(count: usize) {
        en: "open {count}";
        zh: "进行中 {count}";
    }

    /// Time waited.
    waited_sum(span: &str) {
        en: "waited {span}";
        zh: "共等待 {span}";
    }

    /// Sends of all calls.
    sends_sum(count: u64) {
        en: "sends {count}";
        zh: "发送 {count}";
    }

    /// Sends that may have been billed twice.
    twice(count: u64) {
        en: "maybe billed twice {count}";
        zh: "可能重复计费 {count}";
    }

    /// Above the lanes.
    lanes(count: usize) {
        en: "LANES {count}";
        zh: "通道 {count}";
    }

    /// Without lanes.
    no_lanes() {
        en: "no lane yet: none has had a call";
        zh: "还没有通道：尚无请求";
    }

    /// Above the lanes where not all are in view.
    some_lanes(shown: usize, all: usize) {
        en: "LANES {shown} of {all}";
        zh: "通道 {shown}/{all}";
    }

    /// Heads of columns.
    head_state() {
        en: "state";
        zh: "状态";
    }

    /// How long the service asked to be left alone.
    head_held() {
        en: "pause";
        zh: "暂停";
    }

    /// When the next send is due.
    head_next() {
        en: "next try";
        zh: "下次尝试";
    }

    /// Calls that wait.
    head_waiting() {
        en: "waiting";
        zh: "等待";
    }

    /// Calls that are being answered.
    head_running() {
        en: "running";
        zh: "运行";
    }

    /// Which call.
    head_call() {
        en: "call";
        zh: "请求";
    }

    /// How long ago it came in.
    head_age() {
        en: "age";
        zh: "时长";
    }

    /// Who asked.
    head_client() {
        en: "client";
        zh: "客户端";
    }

    /// The model.
    head_model() {
        en: "model";
        zh: "模型";
    }

    /// The upstream.
    head_upstream() {
        en: "upstream";
        zh: "上游";
    }

    /// Its sends.
    head_sends() {
        en: "sends";
        zh: "发送";
    }

    /// What went wrong last.
    head_fault() {
        en: "fault";
        zh: "故障";
    }

    /// How long it waited.
    head_waited() {
        en: "waited";
        zh: "已等待";
    }

    /// A lane that takes calls.
    lane_open() {
        en: "open";
        zh: "开放";
    }

    /// Its breaker is open for so long.
    lane_cut_off(left: &str) {
        en: "cut off: {left}";
        zh: "断路：{left}";
    }

    /// Its breaker lets one call through.
    lane_probed() {
        en: "cut off: probed";
        zh: "断路：探测中";
    }

    /// A lane that takes few.
    lane_shut(why: &str) {
        en: "shut: {why}";
        zh: "关闭：{why}";
    }

    /// A lane whose quota is spent.
    lane_parked() {
        en: "parked: quota spent";
        zh: "停用：配额已用完";
    }

    /// Due at once.
    now() {
        en: "now";
        zh: "立即";
    }

    /// When the next call is sent in a lane that few may ask: there is none.
    no_call() {
        en: "no call";
        zh: "无请求";
    }

    /// Above the calls.
    calls(shown: usize, all: usize, view: &str, sort: &str) {
        en: "CALLS {shown} of {all}: {view}, {sort}";
        zh: "请求 {shown}/{all}：{view}，{sort}";
    }

    /// What is filtered.
    filtered(filter: &str) {
        en: "  filter: {filter}";
        zh: "  过滤：{filter}";
    }

    /// Only the calls of one lane.
    of_lane(lane: &str) {
        en: "  lane: {lane}";
        zh: "  通道：{lane}";
    }

    /// No call at all.
    no_calls() {
        en: "no call yet";
        zh: "还没有请求";
    }

    /// None that fits.
    none_fits() {
        en: "no call fits (Esc clears the filter, 1 shows all)";
        zh: "没有符合的请求（Esc 清除过滤，1 显示全部）";
    }

    /// A relay that does not tell of them.
    nothing_recorded() {
        en: "this relay does not tell of single calls";
        zh: "这个中继不提供单个请求的记录";
    }

    /// Views.
    view_all() {
        en: "all";
        zh: "全部";
    }

    /// Those that are open.
    view_open() {
        en: "open";
        zh: "进行中";
    }

    /// Those that met a fault.
    view_faults() {
        en: "met a fault";
        zh: "遇到故障";
    }

    /// Those that did not end well.
    view_lost() {
        en: "not served";
        zh: "未成功";
    }

    /// Orders.
    sort_open() {
        en: "open first";
        zh: "进行中在前";
    }

    /// The newest first.
    sort_newest() {
        en: "newest first";
        zh: "最新在前";
    }

    /// Most sends first.
    sort_sends() {
        en: "most sends first";
        zh: "发送最多在前";
    }

    /// The longest waits first.
    sort_waited() {
        en: "longest wait first";
        zh: "等待最久在前";
    }

    /// By model.
    sort_model() {
        en: "by model";
        zh: "按模型";
    }

    /// What calls do.
    opening() {
        en: "opening";
        zh: "开始";
    }

    /// Sending.
    sending() {
        en: "sending";
        zh: "发送中";
    }

    /// Waiting, with no end in sight.
    waits() {
        en: "waits";
        zh: "等待";
    }

    /// Waiting for so long.
    waits_for(span: &str) {
        en: "waits {span}";
        zh: "等待 {span}";
    }

    /// In its lane's line.
    in_line(place: usize) {
        en: "in line: {place}";
        zh: "排队第 {place}";
    }

    /// Streaming.
    streaming() {
        en: "streaming";
        zh: "传输中";
    }

    /// Outcomes.
    served() {
        en: "served";
        zh: "成功";
    }

    /// The service's own final error.
    passed() {
        en: "passed on";
        zh: "原样转交";
    }

    /// Handed back for the client to ask again.
    returned() {
        en: "handed back";
        zh: "原样返回";
    }

    /// Not sent again.
    refused() {
        en: "refused";
        zh: "拒绝重发";
    }

    /// Out of patience or sends.
    gave_up() {
        en: "gave up";
        zh: "放弃";
    }

    /// The answer broke off.
    broken() {
        en: "broke off";
        zh: "中断";
    }

    /// Cut so that the client resumes.
    cut() {
        en: "cut";
        zh: "切断续传";
    }

    /// The client went.
    client_left() {
        en: "client left";
        zh: "客户端离开";
    }

    /// The keys, at the bottom.
    keys() {
        en: "q leave  ? help  / filter  Enter details  s sort  p pause  1-4 views  Tab lanes";
        zh: "q 退出  ? 帮助  / 过滤  Enter 详情  s 排序  p 暂停  1-4 视图  Tab 通道";
    }

    /// The same while lanes are chosen.
    keys_lanes() {
        en: "q leave  ? help  Enter its calls  Tab calls  p pause";
        zh: "q 退出  ? 帮助  Enter 查看其请求  Tab 请求  p 暂停";
    }

    /// The same in the details and the help.
    keys_text() {
        en: "Esc back  q leave  arrows, PgUp, PgDn: scroll";
        zh: "Esc 返回  q 退出  方向键、PgUp、PgDn 滚动";
    }

    /// While a filter is typed.
    typing(filter: &str) {
        en: "filter: {filter}_   (Enter keep, Esc undo)";
        zh: "过滤：{filter}_   （Enter 保留，Esc 撤销）";
    }

    /// No room.
    too_small(columns: u16, rows: u16) {
        en: "too small: {columns} x {rows}";
        zh: "窗口太小：{columns} x {rows}";
    }

    /// The help: what one sees, then the keys, a line each.
    help() {
        en: "\
Above: what the relay has saved, and its lanes, the busy ones first. A lane is a service, a credential and a model; one that is short of capacity is shut, and its calls wait in line. Below: the calls.

?           this help
q           leave
Esc         back; in the list: clear the filter
Enter       details of the chosen call: its sends, and why it waited
            on a lane: only the calls of that lane
Tab         choose among lanes, or calls
Up Down k j the next, one line
PgUp PgDn   a page
Home End    the first, which stays the first; the last
/           filter: calls that have all these words in them
s           sort: open first, newest, sends, waited, model
1 2 3 4     all calls, open ones, those that met a fault, those not served
p           pause, and go on
Ctrl-L      draw anew
Ctrl-Z      suspend; fg goes on

success     the share of calls that were served, as `stats` counts it; in parentheses what it were without the relay
waits 4 s   it is sent again in 4 s
in line: 2  it waits for its turn in its lane
pause       how long the service asked to be left alone
next try    when the next call of the lane is sent";
        zh: "\
上方：中继挽回了什么，以及各条通道，繁忙的在前。通道由服务、凭据和模型组成；容量不足时关闭，请求在其中排队。下方：请求。

?           本帮助
q           退出
Esc         返回；在列表中：清除过滤
Enter       所选请求的详情：每次发送，以及等待的原因
            在通道上：只看该通道的请求
Tab         在通道与请求之间切换
Up Down k j 上下一行
PgUp PgDn   翻页
Home End    第一个（保持在最前）；最后一个
/           过滤：包含所有这些词的请求
s           排序：进行中、最新、发送次数、等待时间、模型
1 2 3 4     全部、进行中、遇到故障、未成功的请求
p           暂停，继续
Ctrl-L      重画
Ctrl-Z      挂起；用 fg 恢复

成功率      得到响应的请求所占比例，算法与 `stats` 相同；括号内是没有中继时的比例
等待 4 秒   4 秒后重新发送
排队第 2    在通道中等待轮到它
暂停        服务要求在此期间不要发送
下次尝试    通道的下一个请求何时发送";
    }

    /// No terminal.
    no_terminal() {
        en: "`top` needs a terminal for its keys and its picture\nhint: `steady-relay status` prints the same once, `steady-relay status --json` for programs";
        zh: "`top` 需要终端来读取按键和显示画面\n提示：`steady-relay status` 可打印一次同样的内容，`steady-relay status --json` 供程序使用";
    }

    /// A terminal that cannot be drawn on.
    dumb() {
        en: "this terminal cannot be drawn on: TERM is `dumb`\nhint: set TERM to what the terminal is, or use `steady-relay status`, with --json for programs";
        zh: "无法在这个终端上绘图：TERM 为 `dumb`\n提示：把 TERM 设为终端的实际类型，或使用 `steady-relay status`（供程序使用时加 --json）";
    }

    /// It could not be drawn on.
    not_drawn(why: &str) {
        en: "the terminal cannot be used: {why}\nhint: `steady-relay status` prints the same once";
        zh: "无法使用终端：{why}\n提示：`steady-relay status` 可打印一次同样的内容";
    }

    /// Built without it.
    not_built() {
        en: "this program was built without `top`\nhint: build it with the feature `top`, or use `steady-relay status`";
        zh: "这个程序构建时没有包含 `top`\n提示：构建时启用 `top` 特性，或使用 `steady-relay status`";
    }
}
