//! What `--help` says, in Chinese, looked up by the English that stands in `cli.rs` and beside the verbs. A row is one
//! paragraph, without the stop at its end; the test `every_text_of_the_help_has_its_chinese` prints the rows that are
//! missing, ready to be filled in, and those that nothing says any more.

/// The texts of our own: English, Chinese.
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (
        "A local relay that lets AI coding agents survive services that run out of capacity",
        "运行在本机的中继：模型服务容量不足时，让 AI 编程助手不中断",
    ),
    ("Examples:", "示例："),
    ("listen on 127.0.0.1:8787, for all your clients", "监听 127.0.0.1:8787，供所有客户端使用"),
    (
        "The language of messages [default: by STEADY_RELAY_LANG, or else by the locale]",
        "提示信息的语言 [默认值：取自 STEADY_RELAY_LANG，其次取自系统区域设置]",
    ),
    (
        "When to use colour [default: auto, that is, on a terminal]",
        "何时使用颜色 [默认值：auto，即仅在终端中]",
    ),
    (
        "NO_COLOR, CLICOLOR_FORCE and TERM=dumb are heard where this is `auto`",
        "为 `auto` 时遵循 NO_COLOR、CLICOLOR_FORCE 和 TERM=dumb",
    ),
    (
        "The IP address to listen on [default: localhost, which is 127.0.0.1 and ::1]",
        "监听的 IP 地址 [默认值：localhost，即 127.0.0.1 和 ::1]",
    ),
    (
        "Any address beyond loopback needs a token: set STEADY_RELAY_TOKEN, or `token` in the configuration file. Also STEADY_RELAY_LISTEN",
        "监听回环以外的地址需要令牌：设置 STEADY_RELAY_TOKEN，或配置文件中的 `token`。也可用 STEADY_RELAY_LISTEN",
    ),
    ("Relay (flags of `serve`, which need not be named)", "中继（`serve` 的选项，`serve` 可省略）"),
    ("Relay", "中继"),
    (
        "The port to listen on; 0 picks a free one [default: 8787]",
        "监听的端口；0 表示任选一个空闲端口 [默认值：8787]",
    ),
    ("Also STEADY_RELAY_PORT, or PORT, its older name", "也可用 STEADY_RELAY_PORT，或旧名 PORT"),
    (
        "The one service everything goes to [default: by the request's credential]",
        "所有请求统一发往的服务 [默认值：由请求的凭据决定]",
    ),
    (
        "A URL, or the name of an `[upstream.NAME]` of the configuration file. Also STEADY_RELAY_UPSTREAM, or UPSTREAM_URL, its older name",
        "一个 URL，或配置文件中某个 `[upstream.NAME]` 的名称。也可用 STEADY_RELAY_UPSTREAM，或旧名 UPSTREAM_URL",
    ),
    ("The configuration file", "配置文件"),
    (
        "Where none is named, steady-relay/config.toml in the user's configuration folder is read if it exists. Also STEADY_RELAY_CONFIG",
        "未指定时，读取用户配置目录中的 steady-relay/config.toml（如果存在）。也可用 STEADY_RELAY_CONFIG",
    ),
    (
        "How hard to try: auto, interactive, batch, patient, strict [default: auto]",
        "重试力度：auto、interactive、batch、patient、strict [默认值：auto]",
    ),
    (
        "Or codex-retry or opencodex, with the numbers of the tools of that name, or the name of a `[profile.NAME]` of the configuration file. Also STEADY_RELAY_PROFILE",
        "也可以是 codex-retry 或 opencodex（沿用同名工具的参数），或配置文件中某个 `[profile.NAME]` 的名称。也可用 STEADY_RELAY_PROFILE",
    ),
    (
        "Whether calls wait together while the service takes none: on, off [default: on]",
        "服务不接收请求时，是否让请求统一排队等待：on、off [默认值：on]",
    ),
    (
        "Those that do go to the same service and model with the same credential. A `gate = true` of a profile or a route in the configuration file holds all the same. Also STEADY_RELAY_GATE",
        "一起排队的是用同一凭据发往同一服务、同一模型的请求。配置文件中策略或路由的 `gate = true` 始终有效。也可用 STEADY_RELAY_GATE",
    ),
    (
        "A file of NAME=value lines; they count after the environment and before the configuration file",
        "由 NAME=value 行组成的文件；优先级低于环境变量，高于配置文件",
    ),
    (
        "A `.env` in the working directory is never read unless it is named here. Also STEADY_RELAY_ENV_FILE; and the file steady-relay/env in the user's configuration folder is read if it exists",
        "工作目录中的 `.env` 只有在此指定时才会读取。也可用 STEADY_RELAY_ENV_FILE；此外会读取用户配置目录中的 steady-relay/env（如果存在）",
    ),
    (
        "What is logged: error, warn, info, debug, trace [default: info]",
        "日志级别：error、warn、info、debug、trace [默认值：info]",
    ),
    ("Also STEADY_RELAY_LOG_LEVEL", "也可用 STEADY_RELAY_LOG_LEVEL"),
    ("How log lines look: text, json [default: text]", "日志格式：text、json [默认值：text]"),
    ("Also STEADY_RELAY_LOG_FORMAT", "也可用 STEADY_RELAY_LOG_FORMAT"),
    ("A file to write the log to as well", "同时写入日志的文件"),
    (
        "`max_size` and `max_files` below `[log]` in the configuration file bound it. Also STEADY_RELAY_LOG_FILE",
        "其大小由配置文件 `[log]` 中的 `max_size` 和 `max_files` 限制。也可用 STEADY_RELAY_LOG_FILE",
    ),
    ("The folder for what is kept over a restart", "存放重启后仍需保留的数据的目录"),
    (
        "What the relay learns about the capacity of services: one small private file, without any credential. Where none is named, steady-relay in the user's folder for state. Also STEADY_RELAY_STATE_DIR",
        "其中是中继了解到的各服务容量情况：一个仅本人可读的小文件，不含任何凭据。未指定时，使用用户状态目录中的 steady-relay。也可用 STEADY_RELAY_STATE_DIR",
    ),
    ("start Codex with a relay in front of it", "启动 Codex，请求经由中继"),
    (
        "Start a client so that its requests come through a relay: the one that runs, or one of its own",
        "启动客户端，使其请求经由中继：已在运行的中继，或为它单独启动的中继",
    ),
    (
        "A relay of yours that listens on the configured port is joined, so that all clients wait together. Where there is none, and wherever a flag of the relay is given, the client has one of its own, which ends with it. Nothing is written to disk: the client is told by its environment and its own flags. Its terminal, signals and exit code pass through",
        "如果您的中继正在所设端口上运行，就加入它，让所有客户端一起排队等待；如果没有，或指定了中继的选项，则为该客户端单独启动一个，随客户端结束。不向磁盘写入任何内容：通过环境变量和客户端自身的选项告知客户端。终端、信号和退出码原样传递",
    ),
    (
        "Clients that it knows: codex, claude, gemini, opencode, aider. Every other program gets the variables that SDKs read: OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and their like",
        "已知的客户端：codex、claude、gemini、opencode、aider。其他程序会得到 SDK 读取的变量：OPENAI_BASE_URL、ANTHROPIC_BASE_URL、GOOGLE_GEMINI_BASE_URL 等",
    ),
    (
        "Start a relay of the client's own, also where one could be joined",
        "即使可以加入已有的中继，也为该客户端单独启动一个",
    ),
    (
        "The port at which metrics are read, at /metrics; 0 picks a free one [default: none]",
        "读取指标的端口，路径为 /metrics；0 表示任选一个空闲端口 [默认值：无]",
    ),
    (
        "OpenMetrics, for Prometheus and its like; 9090 is its usual port. Also STEADY_RELAY_METRICS_PORT",
        "OpenMetrics 格式，供 Prometheus 等使用；9090 是其常用端口。也可用 STEADY_RELAY_METRICS_PORT",
    ),
    (
        "Of an older tool: `--mode proxy` is accepted and does nothing",
        "旧工具的选项：接受 `--mode proxy`，但不起作用",
    ),
    (
        "For tests: the relay's time goes by so many times faster; a whole number",
        "用于测试：中继的时间加快的倍数，须为整数",
    ),
    (
        "Watch the relay work against a pretend service that runs out of capacity. Needs no account",
        "用一个容量不足的模拟服务演示中继的效果，无需账号",
    ),
    (
        "Three scenes, each without the relay and with it, in about 35 seconds. Settings are not read, and nothing leaves this machine. Exit code 0: the relay did no worse than the client alone",
        "共三个场景，分别在不使用和使用中继的情况下运行，约 35 秒。不读取任何设置，也没有数据离开本机。退出码 0 表示使用中继的结果不比客户端单独运行差",
    ),
    (
        "Which service is asked: the same number, the same service, but not the same figures",
        "模拟哪一个服务：数字相同则服务相同，但结果数字不会完全一样",
    ),
    (
        "It fixes when the service is full, how long each answer takes, and how each try of each call is refused if it is. When a request arrives is not fixed: sockets, timers and the chance in the relay's waits are real, so the figures move a little from run to run",
        "它决定服务何时满载、每个回答需要多久，以及每次尝试被拒绝的方式。请求到达的时间并不固定：套接字、定时器和中继等待中的随机量都是真实的，因此每次运行的数字会略有不同",
    ),
    ("Fewer calls and faster time: about 8 seconds", "减少请求并加快时间：约 8 秒"),
    ("Print the numbers as JSON", "以 JSON 输出结果"),
    ("Print a script for a shell that completes verbs and flags", "输出 shell 的命令和选项补全脚本"),
    ("The shell", "shell 名称"),
    (
        "Print the manual page, or write those of all verbs into a folder",
        "输出手册页，或将所有命令的手册页写入目录",
    ),
    (
        "The folder to write the pages to; it is made where it is missing",
        "手册页写入的目录；不存在时自动创建",
    ),
    ("Listen and relay until told to stop (the default)", "监听并中继请求，直到被要求停止（默认命令）"),
    ("The client and its arguments, such as `codex` or `claude`", "客户端及其参数，例如 `codex` 或 `claude`"),
    (
        "The port that its relay listens on [default: a free one]",
        "其中继监听的端口 [默认值：任选一个空闲端口]",
    ),
    (
        "The file to write the log to; the terminal is the client's, so there is no other log",
        "写入日志的文件；终端归客户端使用，因此没有其他日志",
    ),
    (
        "Look at the settings: what is in force, what is wrong, what there is",
        "查看设置：当前生效的值、存在的错误、可用的键",
    ),
    (
        "Print a JSON Schema of the configuration file, for editors",
        "输出配置文件的 JSON Schema，供编辑器使用",
    ),
    ("Print every key as it is in force, secrets masked", "输出每个键当前生效的值，机密内容会被遮盖"),
    (
        "Tell for each key who set it: a flag, a variable, a line of a file, or the default",
        "标明每个键的来源：选项、环境变量、文件中的某一行，或默认值",
    ),
    ("Print JSON", "以 JSON 输出"),
    ("Print where the configuration file is looked for", "输出查找配置文件的位置"),
    ("Print JSON, with the env files too", "以 JSON 输出，同时包括 env 文件"),
    (
        "Say what a recorded answer would be taken for, by which rule, and what would be done about it",
        "说明一份录制的响应会被判定为什么、依据哪条规则、会如何处理",
    ),
    (
        "The recorded answer: as `curl -i` prints it, or a body alone",
        "录制的响应：`curl -i` 的输出，或仅有响应体",
    ),
    ("The status, where the file is a body alone [default: 200]", "文件仅有响应体时的状态码 [默认值：200]"),
    ("The dialect of the request, where the file does not tell", "请求所用的协议，在文件中看不出来时指定"),
    (
        "The `[upstream.NAME]` that answered, for rules that are about one",
        "给出响应的 `[upstream.NAME]`，用于只针对某个上游的规则",
    ),
    (
        "Say all that is wrong with the settings, or `ok`; exit code 2 where something is",
        "列出设置中的所有错误，没有错误则输出 `ok`；有错误时退出码为 2",
    ),
    (
        "The configuration file, in place of the one that would be read",
        "要检查的配置文件，代替原本会读取的那一个",
    ),
];

/// What clap says of itself in a help, in the order in which it is replaced.
pub(crate) const OF_CLAP: &[(&str, &str)] = &[
    ("Usage:", "用法："),
    ("Commands:", "命令："),
    ("Arguments:", "参数："),
    ("Options:", "选项："),
    ("[OPTIONS]", "[选项]"),
    ("[COMMAND]", "[命令]"),
    ("<COMMAND>", "<命令>"),
    ("[possible values: ", "[可选值："),
    ("[default: ", "[默认值："),
    ("[aliases: ", "[别名："),
    ("Print help (see more with '--help')", "显示帮助（'--help' 显示详细说明）"),
    ("Print help (see a summary with '-h')", "显示帮助（'-h' 显示摘要）"),
    ("Print this message or the help of the given subcommand(s)", "显示本帮助或指定命令的帮助"),
    ("Print help", "显示帮助"),
    ("Print version", "显示版本"),
];

/// The Chinese of a text.
pub(crate) fn chinese(english: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(text, _)| *text == english).map(|(_, chinese)| *chinese)
}
