// Everything that the page says, in both languages. `%1`, `%2` … stand for values.

export type Lang = "en" | "zh";

const en = {
  title: "Steady Relay",
  title_waiting: "%1 waiting · Steady Relay",
  summary: "Summary",
  language: "Language",
  views: "Views",
  view_live: "Live",
  view_charts: "Charts",
  view_settings: "Settings",
  view_log: "Log",
  link_connecting: "connecting",
  link_live: "live",
  link_lost: "connection lost, trying again",
  link_full: "too many pages are open, trying again",
  up: "up %1",

  now_starting: "Waiting for the relay…",
  now_idle: "All clear. No call is open.",
  now_clear: "All clear. %1 under way.",
  now_shut_next: "%1 %2. %3, the next is sent in %4.",
  now_shut: "%1 %2. %3.",
  now_waiting: "%1: %2.",
  open_call: "1 call",
  open_calls: "%1 calls",
  waiting_call: "1 call waits",
  waiting_calls: "%1 calls wait",
  shut_at_capacity: "is at capacity",
  shut_slow: "answers slowly",
  shut_full: "has no free place",
  shut_overloaded: "is overloaded",
  shut_throttled: "limits your rate",
  shut_quota_spent: "has no quota left",
  shut_other: "takes no calls",
  saved_none: "No call has needed help since the relay started %1 ago.",
  saved_soon: "The relay holds them, so that their clients see no failure.",
  saved_one:
    "1 of %1 calls failed at first and got its answer all the same; without the relay its client would have seen the failure.",
  saved_some:
    "%1 of %2 calls failed at first and got their answer all the same; without the relay their clients would have seen the failure.",

  tile_success: "Calls that went well",
  tile_success_sub: "%1 without the relay",
  tile_saved: "Calls saved",
  tile_saved_sub: "%1 failed all the same",
  tile_wait: "Extra wait per call",
  tile_wait_sub: "%1 in all",
  tile_open: "Open calls",
  tile_open_sub: "%1 waiting",
  tile_none: "no call has ended yet",

  lanes: "Lanes",
  lanes_none: "No model has been asked yet.",
  lanes_more: "Show all %1",
  lanes_less: "Show fewer",
  lane_no_model: "other requests",
  lane_open: "Open",
  lane_shut: "Shut",
  lane_parked: "Parked",
  lane_quota: "quota back in %1",
  lane_waiting: "%1 waiting",
  lane_running: "%1 running",
  lane_next: "next send in %1",
  lane_due: "next send now",
  lane_idle: "idle",
  lane_usual: "usually opens after %1",
  lane_rate: "%1 a second",
  ask_now: "Ask now",
  ask_now_for: "Ask now: %1",
  ask_title: "Send the next call of %1 now?",
  ask_text:
    "This skips the wait. It takes the relay's local token: what the file “token” in its state folder holds. The page forgets it when it is closed.",
  ask_token: "Local token",
  ask_send: "Send now",
  cancel: "Cancel",
  close: "Close",
  asked: "A call was sent.",
  asked_none: "No call was waiting.",

  calls: "Calls",
  calls_shown: "%1 of %2",
  filter: "Filter calls",
  filter_hint: "Filter: model, client, state, id",
  pause: "Pause",
  resume: "Resume",
  paused_new_one: "1 call has changed since",
  paused_new: "%1 calls have changed since",
  calls_none: "No call yet. Point a client at this relay, or start one with “steady-relay run -- codex”.",
  calls_none_match: "No call matches the filter.",
  earlier: "Show earlier calls",
  earlier_loading: "Loading…",
  send_one: "1 send",
  sends: "%1 sends",
  waited: "waited %1",
  next_in: "next send in %1",

  fate_opening: "opening",
  fate_sending: "sending",
  fate_waiting: "waiting",
  fate_streaming: "answering",
  fate_served: "served",
  fate_saved: "saved",
  fate_passed: "error passed on",
  fate_failed: "failed",
  fate_left: "client left",
  fate_cut: "cut to resume",
  fate_unseen: "end not seen",

  details: "The chosen call",
  details_none: "Choose a call to see what happened to it.",
  back: "Back to the calls",
  fact_state: "State",
  fact_client: "Client",
  fact_upstream: "Upstream",
  fact_began: "Began",
  fact_took: "Took",
  fact_waited: "Waited",
  fact_sends: "Sends",
  fact_bytes: "Answer",
  fact_tokens: "Tokens",
  fact_profile: "Profile",
  fact_request: "Request id",
  so_far: "%1 so far",
  tokens: "%1 in, %2 out",
  time_bar: "Where the time went",
  stretch_queue: "in line",
  stretch_wait: "waiting",
  stretch_send: "sending",
  stretch_answer: "answering",
  stretch_label: "%1: %2",
  story: "What happened",
  step_opened: "The call came in.",
  step_line: "Waits in line, as one of %1.",
  step_line_first: "Waits in line.",
  step_told: "Waits as long as the service asked.",
  step_backoff: "Waits before another try.",
  step_parked: "Waits for a quota, since it is spent.",
  step_cut: "Waits, since the answer before was cut.",
  step_wait_planned: "%1 planned",
  step_notices: "The client was shown that it is held, %1 times.",
  step_send: "Send %1",
  step_twice: "may run a second time",
  step_head: "Answered with %1",
  step_failed: "Refused: %1",
  step_failed_status: "Refused with %2: %1",
  step_told_wait: "The service asked to wait %1.",
  step_rule: "known by %1",
  step_code: "code %1",
  step_left_out: "… %1 sends in between are not kept one by one.",
  step_committed: "The answer goes to the client.",
  step_served: "Done. The client has the whole answer.",
  step_passed: "Done. The service's own error went to the client.",
  step_returned: "The failure went to the client, which decides itself.",
  step_refused: "The relay refused to send it again.",
  step_gave_up: "The relay gave up: sends or patience were spent.",
  step_broken: "The answer broke off on its way to the client.",
  step_cut_end: "The connection was cut so that the client resumes by itself.",
  step_client_left: "The client went away.",
  billed_twice: "%1 may have been billed twice",

  fault_at_capacity: "the model is at capacity",
  fault_overloaded: "the service is overloaded",
  fault_model_loading: "the model is being loaded",
  fault_throttled: "the account is being throttled",
  fault_quota_spent: "the quota or plan is spent",
  fault_authentication: "the credential was not accepted",
  fault_bad_request: "the request was not accepted",
  fault_too_long: "the request is too long",
  fault_content_refused: "the content was refused",
  fault_challenge: "the edge asks for a browser check",
  fault_server_failed: "the service failed",
  fault_broken_stream: "the answer broke off",
  fault_empty_answer: "the answer was empty",
  fault_no_answer: "no answer came in time",
  fault_never_sent: "the service could not be reached",

  span: "Time span",
  span_hour: "Hour",
  span_day: "Day",
  span_week: "Week",
  chart_success: "Calls that went well",
  chart_success_sub: "solid: with the relay; dashed: without it",
  chart_wait: "Extra wait per call",
  chart_wait_sub: "seconds",
  chart_refusals: "Refusals for want of capacity",
  chart_refusals_sub: "how often the service said no",
  chart_sends: "Sends and calls",
  chart_sends_sub: "solid: sends; dashed: calls",
  chart_none: "No call in this time.",
  chart_alt: "%1, from %2 to %3. Last value %4.",
  as_table: "As a table",
  col_time: "Time",
  col_with: "with",
  col_without: "without",
  col_value: "value",
  col_sends: "sends",
  col_calls: "calls",
  load_failed: "This could not be read: %1",
  heat: "When there is no capacity",
  heat_sub: "Share of calls that were told so, over four weeks, by the hour of your clock.",
  heat_none: "No call with a model in the last four weeks.",
  heat_model: "Model",
  heat_cell: "%1 of %2 calls",
  heat_less: "never",
  heat_more: "always",
  heat_best: "Fewest refusals: %1.",
  day_0: "Mon",
  day_1: "Tue",
  day_2: "Wed",
  day_3: "Thu",
  day_4: "Fri",
  day_5: "Sat",
  day_6: "Sun",

  settings_sub:
    "The settings in force, and who set them. Secrets are masked. They are changed in the settings file, not here.",
  settings_only: "Only those that are not the default",
  settings_none: "All settings are the defaults.",
  settings_unknown: "A relay of “steady-relay run” shows none.",
  col_setting: "Setting",
  col_origin: "Set by",
  not_set: "not set",
  log_sub: "The last lines of the relay's log, the newest below.",
  log_none: "Nothing has been logged yet.",

  keys: "Keys",
  key_filter: "filter the calls",
  key_move: "choose a call",
  key_enter: "open the chosen call",
  key_escape: "back; empty the filter",
  key_pause: "hold the list still, and let it go on",
  key_views: "the four views",
  key_help: "this list",
} as const;

export type Word = keyof typeof en;

const zh: Record<Word, string> = {
  title: "Steady Relay",
  title_waiting: "%1 个等待 · Steady Relay",
  summary: "概况",
  language: "语言",
  views: "视图",
  view_live: "实时",
  view_charts: "图表",
  view_settings: "设置",
  view_log: "日志",
  link_connecting: "正在连接",
  link_live: "实时",
  link_lost: "连接已断开，正在重试",
  link_full: "打开的页面过多，正在重试",
  up: "已运行 %1",

  now_starting: "正在等待中继…",
  now_idle: "一切正常，没有进行中的请求。",
  now_clear: "一切正常，%1进行中。",
  now_shut_next: "%1 %2，%3，%4 后发送下一个。",
  now_shut: "%1 %2，%3。",
  now_waiting: "%1：%2。",
  open_call: "1 个请求",
  open_calls: "%1 个请求",
  waiting_call: "1 个请求在等待",
  waiting_calls: "%1 个请求在等待",
  shut_at_capacity: "容量已满",
  shut_slow: "响应缓慢",
  shut_full: "没有空位",
  shut_overloaded: "过载",
  shut_throttled: "正在限流",
  shut_quota_spent: "配额已用完",
  shut_other: "暂不接受请求",
  saved_none: "中继启动 %1 以来，没有请求需要帮助。",
  saved_soon: "中继替客户端等待，客户端不会看到失败。",
  saved_one: "%1 个请求中有 1 个起初失败，最终仍得到响应；没有中继，客户端就会看到失败。",
  saved_some: "%2 个请求中有 %1 个起初失败，最终仍得到响应；没有中继，客户端就会看到失败。",

  tile_success: "成功的请求",
  tile_success_sub: "没有中继时为 %1",
  tile_saved: "挽回的请求",
  tile_saved_sub: "仍失败 %1 个",
  tile_wait: "每个请求的额外等待",
  tile_wait_sub: "共 %1",
  tile_open: "进行中的请求",
  tile_open_sub: "%1 个在等待",
  tile_none: "尚无请求结束",

  lanes: "通道",
  lanes_none: "尚未请求过任何模型。",
  lanes_more: "显示全部 %1 个",
  lanes_less: "收起",
  lane_no_model: "其他请求",
  lane_open: "开放",
  lane_shut: "关闭",
  lane_parked: "停用",
  lane_quota: "%1 后恢复配额",
  lane_waiting: "%1 个等待",
  lane_running: "%1 个进行中",
  lane_next: "%1 后发送下一个",
  lane_due: "正在发送下一个",
  lane_idle: "空闲",
  lane_usual: "通常 %1 后恢复",
  lane_rate: "每秒 %1 个",
  ask_now: "立即询问",
  ask_now_for: "立即询问：%1",
  ask_title: "立即发送 %1 的下一个请求？",
  ask_text: "这会跳过等待，需要中继的本地令牌，即状态目录中文件“token”的内容。页面关闭后不会保留。",
  ask_token: "本地令牌",
  ask_send: "立即发送",
  cancel: "取消",
  close: "关闭",
  asked: "已发送一个请求。",
  asked_none: "没有请求在等待。",

  calls: "请求",
  calls_shown: "%1 / %2",
  filter: "筛选请求",
  filter_hint: "筛选：模型、客户端、状态、编号",
  pause: "暂停",
  resume: "继续",
  paused_new_one: "此后有 1 个请求变化",
  paused_new: "此后有 %1 个请求变化",
  calls_none: "还没有请求。把客户端指向此中继，或用“steady-relay run -- codex”启动客户端。",
  calls_none_match: "没有符合筛选条件的请求。",
  earlier: "显示更早的请求",
  earlier_loading: "正在加载…",
  send_one: "发送 1 次",
  sends: "发送 %1 次",
  waited: "等待 %1",
  next_in: "%1 后再次发送",

  fate_opening: "接收中",
  fate_sending: "发送中",
  fate_waiting: "等待中",
  fate_streaming: "响应中",
  fate_served: "成功",
  fate_saved: "已挽回",
  fate_passed: "已转交错误",
  fate_failed: "失败",
  fate_left: "客户端离开",
  fate_cut: "切断以续传",
  fate_unseen: "结局未知",

  details: "选中的请求",
  details_none: "选择一个请求，查看它的经过。",
  back: "返回请求列表",
  fact_state: "状态",
  fact_client: "客户端",
  fact_upstream: "上游",
  fact_began: "开始",
  fact_took: "用时",
  fact_waited: "等待",
  fact_sends: "发送",
  fact_bytes: "响应",
  fact_tokens: "Token",
  fact_profile: "档案",
  fact_request: "请求编号",
  so_far: "目前 %1",
  tokens: "输入 %1，输出 %2",
  time_bar: "时间去向",
  stretch_queue: "排队",
  stretch_wait: "等待",
  stretch_send: "发送",
  stretch_answer: "响应",
  stretch_label: "%1：%2",
  story: "经过",
  step_opened: "收到请求。",
  step_line: "排队等待，共 %1 个。",
  step_line_first: "排队等待。",
  step_told: "按服务要求的时间等待。",
  step_backoff: "等待后再试。",
  step_parked: "配额已用完，等待恢复。",
  step_cut: "上一个响应被切断，等待。",
  step_wait_planned: "计划 %1",
  step_notices: "已向客户端显示 %1 次等待提示。",
  step_send: "第 %1 次发送",
  step_twice: "可能重复执行",
  step_head: "响应状态 %1",
  step_failed: "被拒绝：%1",
  step_failed_status: "被拒绝（%2）：%1",
  step_told_wait: "服务要求等待 %1。",
  step_rule: "依据 %1",
  step_code: "代码 %1",
  step_left_out: "… 中间 %1 次发送未逐一保留。",
  step_committed: "响应开始发往客户端。",
  step_served: "完成，客户端已收到完整响应。",
  step_passed: "完成，服务自身的错误已转交客户端。",
  step_returned: "失败已转交客户端，由它自行决定。",
  step_refused: "中继拒绝再次发送。",
  step_gave_up: "中继已放弃：次数或耐心用尽。",
  step_broken: "响应在发往客户端途中断开。",
  step_cut_end: "连接已切断，以便客户端自行续传。",
  step_client_left: "客户端已离开。",
  billed_twice: "%1 次可能重复计费",

  fault_at_capacity: "模型容量已满",
  fault_overloaded: "服务过载",
  fault_model_loading: "模型正在加载",
  fault_throttled: "账号被限流",
  fault_quota_spent: "配额或套餐已用完",
  fault_authentication: "凭据不被接受",
  fault_bad_request: "请求不被接受",
  fault_too_long: "请求过长",
  fault_content_refused: "内容被拒绝",
  fault_challenge: "边缘节点要求浏览器验证",
  fault_server_failed: "服务出错",
  fault_broken_stream: "响应中途断开",
  fault_empty_answer: "响应为空",
  fault_no_answer: "未及时收到响应",
  fault_never_sent: "无法连接到服务",

  span: "时间范围",
  span_hour: "一小时",
  span_day: "一天",
  span_week: "一周",
  chart_success: "成功的请求",
  chart_success_sub: "实线：有中继；虚线：没有中继",
  chart_wait: "每个请求的额外等待",
  chart_wait_sub: "秒",
  chart_refusals: "因容量不足被拒",
  chart_refusals_sub: "服务拒绝的次数",
  chart_sends: "发送与请求",
  chart_sends_sub: "实线：发送；虚线：请求",
  chart_none: "这段时间没有请求。",
  chart_alt: "%1，从 %2 到 %3。最新值 %4。",
  as_table: "以表格显示",
  col_time: "时间",
  col_with: "有中继",
  col_without: "没有中继",
  col_value: "值",
  col_sends: "发送",
  col_calls: "请求",
  load_failed: "无法读取：%1",
  heat: "何时容量不足",
  heat_sub: "四周内被告知容量不足的请求比例，按你的时钟的小时统计。",
  heat_none: "最近四周没有带模型的请求。",
  heat_model: "模型",
  heat_cell: "%2 个请求中有 %1 个",
  heat_less: "从不",
  heat_more: "总是",
  heat_best: "拒绝最少：%1。",
  day_0: "周一",
  day_1: "周二",
  day_2: "周三",
  day_3: "周四",
  day_4: "周五",
  day_5: "周六",
  day_6: "周日",

  settings_sub: "当前生效的设置及其来源，机密已遮盖。请在设置文件中修改，此处不能修改。",
  settings_only: "只显示非默认值",
  settings_none: "所有设置均为默认值。",
  settings_unknown: "“steady-relay run”的中继不显示设置。",
  col_setting: "设置",
  col_origin: "来源",
  not_set: "未设置",
  log_sub: "中继日志的最后几行，最新的在下方。",
  log_none: "还没有日志。",

  keys: "按键",
  key_filter: "筛选请求",
  key_move: "选择请求",
  key_enter: "打开选中的请求",
  key_escape: "返回；清空筛选",
  key_pause: "暂停或继续更新列表",
  key_views: "四个视图",
  key_help: "此列表",
};

export const TABLES: Record<Lang, Record<Word, string>> = { en, zh };

/** The language to begin with: the first of the browser's that there is, or English. */
export function preferred(languages: readonly string[]): Lang {
  for (const language of languages) {
    const code = language.toLowerCase().split("-")[0];
    if (code === "zh" || code === "en") return code;
  }
  return "en";
}

/** Says things in one language. */
export class Says {
  readonly #number: Intl.NumberFormat;
  readonly #share: Intl.NumberFormat;
  readonly #time: Intl.DateTimeFormat;
  readonly #day: Intl.DateTimeFormat;

  constructor(readonly lang: Lang) {
    const locale = lang === "zh" ? "zh-CN" : "en-GB";
    this.#number = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
    this.#share = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });
    this.#time = new Intl.DateTimeFormat(locale, {
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    });
    this.#day = new Intl.DateTimeFormat(locale, {
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
  }

  say(word: Word, ...values: (string | number)[]): string {
    return TABLES[this.lang][word].replace(/%(\d)/g, (_, nth: string) => {
      const value = values[Number(nth) - 1];
      return typeof value === "number" ? this.number(value) : (value ?? "");
    });
  }

  /** A word that may not be in the table: a name that a newer relay has. */
  named(kind: "fault" | "shut" | "step", name: string, other: string): string {
    const table: Record<string, string> = TABLES[this.lang];
    return table[`${kind}_${name}`] ?? other;
  }

  /** `one` for 1, `many` with the number else. */
  counted(count: number, one: Word, many: Word): string {
    return count === 1 ? this.say(one) : this.say(many, count);
  }

  number = (value: number): string => this.#number.format(value);
  share = (value: number): string => this.#share.format(value);
  time = (at: number): string => this.#time.format(at);
  day = (at: number): string => this.#day.format(at);

  bytes(count: number): string {
    if (count < 1000) return `${this.number(count)} B`;
    return count < 1e6 ? `${this.number(count / 1e3)} kB` : `${this.number(count / 1e6)} MB`;
  }

  /** A span of milliseconds, in the two largest units that matter. */
  span(ms: number): string {
    const zh = this.lang === "zh";
    const [s, min, h, d] = zh ? ["秒", "分", "小时", "天"] : ["s", "min", "h", "d"];
    const seconds = Math.max(0, ms) / 1000;
    if (seconds > 0 && seconds < 0.1) return `${Math.max(1, Math.round(ms))} ${zh ? "毫秒" : "ms"}`;
    if (seconds < 9.95) return `${this.number(Math.round(seconds * 10) / 10)} ${s}`;
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} ${s}`;
    const two = (a: number, unit: string | undefined, b: number, small: string | undefined): string =>
      b > 0 ? `${a} ${unit} ${b} ${small}` : `${a} ${unit}`;
    if (whole < 3600) return two(Math.floor(whole / 60), min, whole % 60, s);
    const minutes = Math.round(whole / 60);
    if (minutes < 1440) return two(Math.floor(minutes / 60), h, minutes % 60, min);
    const hours = Math.round(minutes / 60);
    return two(Math.floor(hours / 24), d, hours % 24, h);
  }
}
