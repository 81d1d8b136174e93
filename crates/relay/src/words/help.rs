//! What `--help` says, in Chinese, looked up by the English that stands in `cli` and beside the verbs. A row is one
//! paragraph, without the stop at its end; the test `every_text_of_the_help_has_its_chinese` prints the rows that are
//! missing, ready to be filled in, and those that nothing says any more.

/// The texts of our own: English, Chinese.
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (
        "Print the version; with `--json` also what it was built with, and how it was installed",
        "显示版本；加上 `--json` 还会显示构建特性和安装方式",
    ),
    (
        "A local relay that lets AI coding agents survive services that run out of capacity",
        "运行在本机的中继：模型服务容量不足时，让 AI 编程助手不中断",
    ),
    ("Say what is the matter: me, my account, or the model?", "判断问题出在哪里：是我、我的账号，还是模型"),
    (
        "One verdict and what speaks for it, from the last calls of all sessions, other models, and the way to the services. No model is asked, nothing is changed, and no credential is sent or printed",
        "根据所有会话最近的请求、其他模型以及到各服务的网络，给出一个结论及其依据。不请求任何模型，不改动任何内容，也不发送或打印凭据",
    ),
    ("How far to look back: 30min, 12h, 7d", "查看多久以来的记录：30min、12h、7d"),
    (
        "Write a report for a bug tracker to FILE, or with `-` to standard output",
        "把用于提交问题的报告写入 FILE，`-` 表示标准输出",
    ),
    (
        "Markdown, in English: versions, the settings in force with secrets masked, the verdict, and the last calls that met trouble. No key, no prompt, no name of a user or of a home folder is in it",
        "英文 Markdown：版本、生效的设置（机密已遮盖）、结论，以及最近出问题的请求。不含密钥、提示词、用户名或主目录名",
    ),
    (
        "Decide recorded calls again with the present settings, and say what would differ",
        "用当前设置重新决定录制的请求，并说明会有哪些不同",
    ),
    (
        "A setting can be tried on last week's calls, and a bug report becomes a test. Nothing is sent anywhere: the answers are the recorded ones, and time is only counted",
        "可以用上周的请求试验一项设置，问题报告也可成为测试。不会发送任何内容：响应取自记录，时间只是计算出来的",
    ),
    (
        "Recorded calls as JSON lines, or a report of `diagnose`; `-` for standard input",
        "录制的请求（每行一个 JSON），或 `diagnose` 的报告；`-` 表示标准输入",
    ),
    (
        "Replay the calls of the last hours or days from the history: 12h, 7d",
        "重放历史记录中最近几小时或几天的请求：12h、7d",
    ),
    (
        "The seed of chance, for waits that were not recorded [default: 1]",
        "随机种子，用于没有录制的等待 [默认值：1]",
    ),
    (
        "Exit codes: 0 nothing would differ; 1 something would; 2 wrong usage, settings or file",
        "退出码：0 没有不同；1 有不同；2 用法、设置或文件有误",
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
    (
        "Tell what happened to one call, and whether it was the relay or the service",
        "说明一次请求的经过，以及原因在中继还是在服务",
    ),
    (
        "From the history's file: each send with what matched, where each wait came from, and what the client was told. No relay has to run",
        "取自历史文件：每次发送及其匹配的规则、每次等待的由来，以及客户端得到的答复。无需有中继在运行",
    ),
    (
        "Exit codes: 0 told; 1 there is no such call, or no history; 2 wrong settings",
        "退出码：0 已说明；1 没有该请求，或没有历史；2 设置有误",
    ),
    (
        "The call: `last`, its number in the log, or a request id of the client or the service",
        "请求：`last`、日志中的编号，或客户端、服务的请求 ID",
    ),
    (
        "`last` is the newest call that met a fault or was not served, or else the newest. `c12` is the newest of that number, `7-c12` the one of run 7; the name of a snapshot goes, too",
        "`last` 是最近一个遇到故障或未成功的请求，没有则为最近的请求。`c12` 是该编号中最近的一个，`7-c12` 是第 7 次运行中的那个；也可用快照的名称",
    ),
    ("Print the record as JSON", "以 JSON 输出记录"),
    (
        "Print what the relay saved, what it cost, and when the services are short of capacity",
        "显示中继挽回了什么、代价如何，以及服务何时容量不足",
    ),
    (
        "From the history's file. Without the relay means: what the first send alone would have served. No relay has to run",
        "取自历史文件。“不使用中继”指：仅凭首次发送就能成功的请求。无需有中继在运行",
    ),
    (
        "Exit codes: 0 told; 1 there is no history; 2 wrong usage or settings",
        "退出码：0 已显示；1 没有历史；2 用法或设置有误",
    ),
    (
        "How far back to look, such as `12h` or `30d` [default: 7d]",
        "回溯的时间，例如 `12h` 或 `30d` [默认值：7d]",
    ),
    (
        "Also a row for each hour (of the day), model, upstream or client",
        "另按小时（一天中的）、模型、上游或客户端各列一行",
    ),
    ("Only the last run of a relay, in one line", "仅显示中继最近一次运行，一行"),
    (
        "Write the records of that time instead: `jsonl`, or `retry-stats` as codex-retry keeps them",
        "改为输出该时段的记录：`jsonl`，或 codex-retry 格式的 `retry-stats`",
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
        "如果你的中继正在所设端口上运行，就加入它，让所有客户端一起排队等待；如果没有，或指定了中继的选项，则为该客户端单独启动一个，随客户端结束。不向磁盘写入任何内容：通过环境变量和客户端自身的选项告知客户端。终端、信号和退出码原样传递",
    ),
    (
        "Clients that it knows: codex, claude, gemini, opencode, aider. Every other program gets the variables that SDKs read: OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and their like",
        "已知的客户端：codex、claude、gemini、opencode、aider。其他程序会得到 SDK 读取的变量：OPENAI_BASE_URL、ANTHROPIC_BASE_URL、GOOGLE_GEMINI_BASE_URL 等",
    ),
    (
        "Hold a session at a relay for a program that asks by lines of JSON: the relay that runs, or one of its own",
        "为程序保持一个中继会话，以 JSON 行问答：使用已在运行的中继，或单独启动一个",
    ),
    (
        "For libraries, such as the package for Python. Questions are read from standard input, each is answered by a line on standard output, and the session ends with its input, however the program ends. Ctrl-C is for the program",
        "供程序库使用，例如 Python 包。从标准输入读取问题，每个问题在标准输出上以一行作答；无论程序如何结束，输入结束时会话也随之结束。Ctrl-C 由该程序处理",
    ),
    (
        "Exit codes: 0 its input has ended; 1 it could not be held; 2 wrong usage or settings",
        "退出码：0 输入已结束；1 无法保持会话；2 用法或设置有误",
    ),
    (
        "Start a relay of the program's own, also where one could be joined",
        "即使可以加入已有的中继，也为该程序单独启动一个",
    ),
    ("What the program is called, for people who look", "程序的名称，供查看的人识别"),
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
    (
        "Speak https too, on the same port: on, off [default: off]",
        "在同一端口上同时支持 https：on、off [默认值：off]",
    ),
    (
        "For clients that insist on it: `steady-relay cert trust-help` says how each of them comes to trust the certificate, which is made at the first start. Also STEADY_RELAY_TLS",
        "供只接受 https 的客户端使用：证书在首次启动时生成，`steady-relay cert trust-help` 说明如何让各个客户端信任它。也可用 STEADY_RELAY_TLS",
    ),
    (
        "Point clients at the relay for good, by their own settings files; `undo` takes it back",
        "修改客户端自身的设置文件，使其固定使用中继；可用 `undo` 撤销",
    ),
    (
        "Shows the changes, asks, and writes key by key; all else in a file stays as it is. What a client asked so far becomes an upstream of the relay. Exit code 1: a client was left alone, or nothing was written",
        "先显示改动并询问，再逐个键写入；文件的其余内容保持不变。客户端原来使用的地址会成为中继的一个上游。退出码 1：有客户端未作改动，或没有写入任何内容",
    ),
    (
        "The clients: codex, claude, vscode, opencode, gemini, continue, cline, or `env-file PATH`",
        "客户端：codex、claude、vscode、opencode、gemini、continue、cline，或 `env-file PATH`",
    ),
    ("Where none is named, every client that is found", "未指定时，处理找到的所有客户端"),
    ("Say which clients point to the relay, and write nothing", "列出哪些客户端已指向中继，不写入任何内容"),
    ("Show what would be written, and write nothing", "显示将要写入的内容，但不写入"),
    ("Write without asking", "不询问，直接写入"),
    (
        "Take back what `setup` wrote, key by key; what was changed since stays",
        "逐个键撤销 `setup` 写入的内容；此后被改动的部分保持不变",
    ),
    (
        "Needs no relay that runs and no settings that can be read. Exit code 1: something was left as it is",
        "不要求中继正在运行，也不要求设置可读。退出码 1：有内容保持了原样",
    ),
    (
        "The clients, as for `setup`; `relay` for what was written into the relay's own settings",
        "客户端，与 `setup` 相同；`relay` 表示写入中继自身设置的内容",
    ),
    ("Where none is named, everything that was written", "未指定时，撤销所有写入的内容"),
    ("Say what would be taken back, and write nothing", "显示将要撤销的内容，但不写入"),
    (
        "Send one request, like curl, with everything that the relay does for a call",
        "像 curl 一样发送一个请求，并得到中继为请求所做的一切",
    ),
    (
        "The answer goes to standard output as it comes, and what happens meanwhile to standard error. `post URL` and `get URL` are short for it, and `codex-retry` is understood as the name of this program",
        "响应到达时即写到标准输出，期间的进展写到标准错误。`post URL` 和 `get URL` 是它的简写；本程序也可以名为 `codex-retry`",
    ),
    (
        "Exit codes: 0 served; 1 broken off or blocked on the way; 2 wrong usage or settings; 3 gave up; 4 not sent again, since it may have run; 5 the service said no; 130 interrupted",
        "退出码：0 已完成；1 中途断开或被拦截；2 用法或设置有误；3 已放弃；4 请求可能已经执行，未重新发送；5 服务明确拒绝；130 被中断",
    ),
    (
        "The method, where it is not to be GET without data and POST with some; then the URL",
        "请求方法（不写时：无数据用 GET，有数据用 POST），然后是 URL",
    ),
    (
        "A URL of http or https is asked as it is. What begins with a slash goes where the relay's own settings would send it",
        "http 或 https 的 URL 按原样请求。以斜杠开头的，发往中继设置所决定的上游",
    ),
    ("The method", "请求方法"),
    (
        "A header, `name: value`; `@FILE` for a file with one on each line",
        "请求头，写成 `name: value`；`@FILE` 表示每行一个请求头的文件",
    ),
    (
        "The data to send; `@FILE` for a file, `@-` for standard input",
        "要发送的数据；`@FILE` 表示文件，`@-` 表示标准输入",
    ),
    (
        "It is sent as it is. Where no header says what it is, it is taken for JSON",
        "数据按原样发送。没有请求头说明类型时，视为 JSON",
    ),
    ("A file with the data to send", "存有要发送的数据的文件"),
    ("The longest wait between sends, such as 30s or 5min", "两次发送之间最长的等待时间，例如 30s 或 5min"),
    ("Print the head of the answer, too", "同时输出响应头"),
    ("Write the answer to a file", "把响应写入文件"),
    ("Say nothing while it waits", "等待期间不输出任何内容"),
    (
        "Write what happens to standard error as JSON, an object per line; the last one is the summary",
        "把进展以 JSON 写到标准错误，每行一个对象；最后一行是总结",
    ),
    (
        "Look for what is wrong between clients and services, and say what to do about it",
        "查找客户端与服务之间的问题，并说明如何处理",
    ),
    (
        "The settings, the port, the services and the way there, the clients and this machine, in some seconds. Nothing is changed, and no credential is sent or printed. `--upstream` asks that service alone",
        "数秒内检查设置、端口、各服务及其网络路径、客户端和本机。不作任何更改，不发送也不输出凭据。`--upstream` 只检查指定的服务",
    ),
    ("Exit codes: 0 nothing fails; 1 something does", "退出码：0 没有失败项；1 有失败项"),
    (
        "Send one small request through a relay, and say how long each part took",
        "经中继发送一个小请求，并列出各环节的用时",
    ),
    (
        "A relay in this process, with the present settings. It asks a pretend service in this process; with `--upstream` the service of that name or URL, for its list of models, with a key from the environment or the settings if there is one",
        "在本进程中按当前设置启动中继，请求本进程中的模拟服务；指定 `--upstream` 时，向该名称或 URL 的服务请求模型列表，并使用环境变量或设置中的密钥（如果有）",
    ),
    (
        "Exit codes: 0 a request goes through, or a service was reached that wants a key; else as those of `send`",
        "退出码：0 请求可以通过，或已连接到要求密钥的服务；其余与 `send` 相同",
    ),
    ("Ask this model for a few words, with --upstream", "让此模型生成几个字，须与 --upstream 同用"),
    (
        "That may cost a fraction of a cent. Without it the list of models is asked for, which costs nothing",
        "可能产生极少费用。不指定时只请求模型列表，不产生费用",
    ),
    (
        "Print what a relay that runs is doing, and what it has saved",
        "显示运行中的中继正在做什么，以及挽回了多少请求",
    ),
    (
        "Watch a relay that runs, on a terminal: its lanes, its calls, and what it has saved",
        "在终端中观察运行中的中继：通道、请求，以及挽回了多少请求",
    ),
    (
        "It asks once a second and changes nothing. `?` shows the keys, `q` leaves. A relay that goes away is asked again until it is back",
        "每秒查询一次，不做任何更改。`?` 显示按键，`q` 退出。中继消失后会继续查询，直到它恢复",
    ),
    (
        "Exit codes: 0 left by `q`; 2 no terminal, wrong settings, or the token is missing; 6 no relay runs there; 130 interrupted",
        "退出码：0 用 `q` 退出；2 没有终端、设置有误或缺少令牌；6 该处没有中继在运行；130 被中断",
    ),
    (
        "Exit codes: 0 it runs; 2 wrong settings, or the token is missing; 6 no relay runs there",
        "退出码：0 正在运行；2 设置有误或缺少令牌；6 该处没有中继在运行",
    ),
    ("Print JSON, as `/__steady/status` has it", "以 JSON 输出，内容与 `/__steady/status` 相同"),
    ("Say whether a relay runs", "检查中继是否在运行"),
    ("Try out whether alerts reach you, by the ways of `[alerts]`", "按 `[alerts]` 的方式试验告警能否送达"),
    (
        "One test alert goes by each way that is set, as every other would, and what came of it is said. Exit code 1: one failed, or none is set",
        "通过每种已设置的方式发送一条测试告警，与真正的告警相同，并说明结果。退出码 1：有一种失败，或没有设置任何方式",
    ),
    (
        "Send a test alert by every way that is set: webhook, program, desktop",
        "通过每种已设置的方式发送测试告警：webhook、程序、桌面",
    ),
    (
        "Keep the relay running as a service of yours, from login on, without root",
        "以你的用户服务方式运行中继，登录后自动启动，无需 root",
    ),
    (
        "On Linux a unit of the user's systemd, which holds the port while the relay restarts; on macOS a launch agent; on Windows a task that starts at logon",
        "Linux 上是用户级 systemd 单元，中继重启期间由它保持端口；macOS 上是 LaunchAgent；Windows 上是登录时启动的计划任务",
    ),
    ("Start the service that is installed", "启动已安装的服务"),
    (
        "Stop it until the next login; open calls may end first",
        "停止服务，直到下次登录；未完成的请求可以先结束",
    ),
    (
        "Say whether the service runs, where, and what is wrong with it; exit code 6 where it does not answer",
        "显示服务是否在运行、地址以及存在的问题；无响应时退出码为 6",
    ),
    ("Stop the service and delete all that `install` wrote", "停止服务，并删除 `install` 写入的所有文件"),
    ("Print the files that would be deleted, and do nothing", "列出将要删除的文件，不作任何更改"),
    (
        "Install the relay as a service of this user and start it; the flags given here are carried over",
        "把中继安装为当前用户的服务并启动；此处指定的选项会一并带入",
    ),
    (
        "Done once more, it takes on a new version of the program, other flags or another port",
        "再次运行即可采用新版本的程序、其他选项或另一个端口",
    ),
    ("Print the files that would be written, and do nothing", "显示将要写入的文件，不作任何更改"),
    (
        "Look at calls that ended badly, where `[snapshots]` keeps them",
        "查看失败的请求，由 `[snapshots]` 保留",
    ),
    (
        "Requests, answers and records, without keys, tokens, cookies, e-mail addresses and home folders",
        "请求、响应和记录，已去除密钥、令牌、cookie、电子邮件地址和主目录",
    ),
    ("List them, the newest first", "列出快照，最新的在前"),
    (
        "Print one: its request, its answer, and how the call ended",
        "显示一个快照：请求、响应以及请求如何结束",
    ),
    (
        "Its name in the list, or what the log, the history or a service calls its call",
        "列表中的名称，或日志、历史或服务对该请求的称呼",
    ),
    (
        "Say what the present settings would make of one, without sending it",
        "说明当前设置会如何处理一个快照，但不发送",
    ),
    (
        "Prints the request that would be sent and decides anew about the answer that came, by the rules that are in force now. Nothing is ever sent: what may have run is not run again",
        "显示将要发送的请求，并按当前生效的规则重新判定收到的响应。不会发送任何内容：可能已执行的请求不会再次执行",
    ),
    ("Send nothing; needed, since nothing else can be done", "不发送任何内容；必须给出，因为只能这样做"),
    (
        "The certificate of https: what it is, how clients come to trust it, and a new one",
        "https 证书：查看、让客户端信任、重新生成",
    ),
    ("Print what it holds for, until when, and its fingerprint", "显示证书的适用范围、有效期和指纹"),
    (
        "Say for each client and system how it comes to trust the certificate",
        "说明各个客户端和系统如何信任该证书",
    ),
    (
        "Make a new one in place of what is there; clients have to trust it anew",
        "生成新证书并替换现有证书；客户端需要重新信任",
    ),
    (
        "Only needed where `names` were added, a file is damaged, or somebody else has seen the key: its end is seen to by the relay itself",
        "只在增加了 `names`、文件损坏或密钥外泄时才需要：证书到期由中继自行处理",
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
];

/// The Chinese of a text.
pub(crate) fn chinese(english: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(text, _)| *text == english).map(|(_, chinese)| *chinese)
}
