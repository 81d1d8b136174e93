//! What is said of the settings, in Chinese.
//!
//! Settings are read where no language is known yet: it may stand in the very file that is wrong. So what is found there
//! is kept in English, which JSON shows as it is, and is put into Chinese where it is printed: by these patterns, in which
//! `{}` stands for what is filled in. A test lets no message of the settings through that has no row here.

use relay_core::Lang;

relay_core::words! {
    table TABLE "settings";

    /// One thing that is wrong, and where.
    issue(at: &str, what: &str) {
        en: "error: {at}: {what}";
        zh: "错误：{at}：{what}";
    }

    /// What to do about it.
    hint(words: &str) {
        en: "hint: {words}";
        zh: "提示：{words}";
    }

    /// What is not shown.
    more(count: usize) {
        en: "and {count} more";
        zh: "另有 {count} 个错误";
    }
}

/// English, and Chinese with `{0}`, `{1}` … for what the English has filled in, in its order.
const PATTERNS: &[(&str, &str)] = &[
    // Kinds of values.
    ("text", "文本"),
    ("a number", "数字"),
    ("true or false", "布尔值"),
    ("a date", "日期"),
    ("a list", "列表"),
    ("a table", "表"),
    ("a whole number", "整数"),
    ("a length of time", "时间长度"),
    ("a size", "大小"),
    ("a list of texts", "文本列表"),
    ("a text or a number", "文本或数字"),
    ("a table of texts", "由文本组成的表"),
    ("a model or a table of texts", "模型名或由文本组成的表"),
    ("the value", "该值"),
    ("{} is {}, not {}", "{0} 是{1}，而不是{2}"),
    // Credentials of the relay's own.
    ("credential `{}` has both `{}` and `{}`", "凭据 `{0}` 同时有 `{1}` 和 `{2}`"),
    ("keep the one that the key comes from", "只保留密钥所来自的那一个"),
    ("keep one of the two", "两者保留一个"),
    ("credential `{}` names nothing that its key comes from", "凭据 `{0}` 没有说明其密钥从何而来"),
    (
        "write one of `key`, `key_env`, `key_file`, `key_command`, or a `token_url`",
        "写 `key`、`key_env`、`key_file`、`key_command` 之一，或 `token_url`",
    ),
    ("credential `{}` has a `{}` and no `{}`", "凭据 `{0}` 有 `{1}` 而没有 `{2}`"),
    ("leave it out: it is for what a program writes", "去掉它：它只用于程序输出的密钥"),
    ("leave it out: it is for tokens that are issued", "去掉它：它只用于签发的令牌"),
    (
        "credential `{}` has a refresh token and no `token_url`",
        "凭据 `{0}` 有 refresh token 而没有 `token_url`",
    ),
    (
        "write where tokens are issued: token_url = \"https://auth.example/oauth/token\"",
        "写明令牌在何处签发：token_url = \"https://auth.example/oauth/token\"",
    ),
    ("the variable {} is no key", "变量 {0} 中的不是密钥"),
    ("this is a sign-in of {}, which no relay should hold", "这是 {0} 的登录凭据，不应由中继持有"),
    (
        "use a key of the API; a sign-in belongs to its client, which renews it itself, and passes as it comes",
        "请使用 API 密钥；登录凭据属于其客户端，由客户端自己续期，并会原样通过中继",
    ),
    ("{} is plain http to another machine", "{0} 是到另一台机器的明文 http"),
    (
        "write https: a refresh token goes there, and anyone on the way could read it",
        "请写 https：refresh token 会发往那里，途中任何人都能读到",
    ),
    (
        "{} is where sign-ins of {} are renewed, which the relay never does",
        "{0} 是 {1} 登录凭据续期的地方，中继从不这样做",
    ),
    (
        "leave it to the client, which owns its sign-in and renews it itself: without a `credential` it passes as it comes",
        "交给客户端处理：登录凭据归它所有，由它自己续期；没有 `credential` 时它会原样通过",
    ),
    (
        "upstream `{}` has `replace_credential` and no `credential`",
        "上游 `{0}` 有 `replace_credential` 而没有 `credential`",
    ),
    ("name the `[credential.NAME]` that is to be sent", "指定要发送的 `[credential.NAME]`"),
    ("upstream `{}` has both `api_key` and `credential`", "上游 `{0}` 同时有 `api_key` 和 `credential`"),
    (
        "upstream `{}` adds the header `{}`, which its `credential` goes into",
        "上游 `{0}` 添加了请求头 `{1}`，而它的 `credential` 正放在其中",
    ),
    ("the upstream has a `credential` of its own already", "该上游已有自己的 `credential`"),
    ("credential `{}`: the variable {} is not set", "凭据 `{0}`：变量 {1} 未设置"),
    (
        "write the program and its arguments: [\"secret-tool\", \"lookup\", \"service\", \"api\"]",
        "写程序及其参数：[\"secret-tool\", \"lookup\", \"service\", \"api\"]",
    ),
    ("{} is no name of a variable", "{0} 不是变量名"),
    (
        "a name has letters, digits and underscores: \"MY_API_KEY\"",
        "名称由字母、数字和下划线组成：\"MY_API_KEY\"",
    ),
    ("write where the file is: \"secrets/api-key\"", "写文件的位置：\"secrets/api-key\""),
    ("{} is empty, too long, or no single line", "{0} 为空、过长或不是单行"),
    ("write it as the issuer tells it", "按签发方给出的写法填写"),
    ("{} belongs to the connection or to the request", "{0} 属于连接或请求本身"),
    ("write the one that keys go into, such as \"api-key\"", "写放密钥的请求头，例如 \"api-key\""),
    // Times and sizes.
    ("{} has no unit", "{0} 没有单位"),
    ("{} has the unknown unit `{}`", "{0} 的单位 `{1}` 无法识别"),
    ("{} has an unknown unit", "{0} 的单位无法识别"),
    ("{} does not begin with a number", "{0} 不是以数字开头"),
    ("{} is below zero", "{0} 小于零"),
    ("{} is no number", "{0} 不是数字"),
    ("{} is too long", "{0} 过长"),
    ("{} is too short", "{0} 过短"),
    ("{} is too large", "{0} 过大"),
    ("{} is too small", "{0} 过小"),
    ("{} is out of range", "{0} 超出范围"),
    (
        "\"{}s\" is seconds, \"{}ms\" milliseconds, \"{}min\" minutes",
        "\"{0}s\" 表示秒，\"{1}ms\" 表示毫秒，\"{2}min\" 表示分钟",
    ),
    (
        "write a number and ms, s, min, h or d, such as \"30s\", \"1.5s\" or \"15min\"",
        "写数字加 ms、s、min、h 或 d，例如 \"30s\"、\"1.5s\" 或 \"15min\"",
    ),
    (
        "write a number and KiB, MiB, GiB, kB, MB or GB, such as \"64KiB\", or a plain count of bytes",
        "写数字加 KiB、MiB、GiB、kB、MB 或 GB，例如 \"64KiB\"，或直接写字节数",
    ),
    ("write it as text with its unit, such as \"30s\"", "写成带单位的文本，例如 \"30s\""),
    (
        "write it as text with its unit, such as \"8MiB\", or as a plain count of bytes",
        "写成带单位的文本，例如 \"8MiB\"，或直接写字节数",
    ),
    ("allowed is {} to {}", "允许的范围是 {0} 到 {1}"),
    ("a whole number from {} to {}", "{0} 到 {1} 的整数"),
    ("a number from {} to {}", "{0} 到 {1} 的数字"),
    ("write a whole number from {} to {}", "写 {0} 到 {1} 的整数"),
    ("write a whole number from 0 to 1000, or \"unlimited\"", "写 0 到 1000 的整数，或 \"unlimited\""),
    ("{} is no list of headers", "{0} 不是请求头列表"),
    ("write name=value,name=value, with %20 for a space", "写成 name=value,name=value，空格写作 %20"),
    (
        "this program was built without `otlp`, so nothing can be sent there",
        "本程序构建时未包含 `otlp`，因此无法向该地址发送",
    ),
    (
        "build it with the feature `otlp`, as docs/otlp.md says, or leave `endpoint` out",
        "按 docs/otlp.md 所述启用 `otlp` 特性重新构建，或去掉 `endpoint`",
    ),
    ("{} is no count", "{0} 不是次数"),
    ("{} is no number of seconds", "{0} 不是秒数"),
    ("write seconds, such as 120", "写秒数，例如 120"),
    // Choices and names.
    ("did you mean {}?", "是否想写 {0}？"),
    ("did you mean {}, or https?", "是否想写 {0}，或用 https？"),
    ("did you mean {}? Or write a URL", "是否想写 {0}？也可以写一个 URL"),
    ("{} and {} more", "{0}，另有 {1} 个"),
    ("keys here: {}", "此处可用的键：{0}"),
    ("keys here: {} and {} more", "此处可用的键：{0}，另有 {1} 个"),
    ("profiles: {}", "可用的策略：{0}"),
    ("profiles: {} and {} more", "可用的策略：{0}，另有 {1} 个"),
    ("upstreams: {}", "可用的上游：{0}"),
    ("upstreams: {} and {} more", "可用的上游：{0}，另有 {1} 个"),
    ("upstreams: {}; or write a URL", "可用的上游：{0}；也可以写一个 URL"),
    ("names: {}", "可用的名称：{0}"),
    ("write one of: {}", "可选值：{0}"),
    ("{} is none of the choices", "{0} 不在可选值之中"),
    ("{} names no profile", "{0} 不是任何策略的名称"),
    ("{} names no credential", "{0} 不是任何凭据的名称"),
    ("credentials: {}", "可用的凭据：{0}"),
    ("credentials: {} and {} more", "可用的凭据：{0}，另有 {1} 个"),
    ("{} names no upstream", "{0} 不是任何上游的名称"),
    ("names no profile", "不是任何策略的名称"),
    ("unknown key `{}`", "未知的键 `{0}`"),
    ("unknown key `{}` in [{}]", "[{1}] 中有未知的键 `{0}`"),
    ("`{}` is a key of {} alone", "`{0}` 只能用在 {1} 中"),
    ("`{}` is a key of {}: write it below that line", "`{0}` 是 {1} 的键：请写在那一行下面"),
    ("there is no such setting", "没有这个设置"),
    ("this cannot be a name", "这不能用作名称"),
    (
        "a name has 1 to 64 letters, digits, hyphens, dots and underscores, and is not `auto`",
        "名称由 1 到 64 个字母、数字、连字符、点和下划线组成，且不能是 `auto`",
    ),
    ("a name has letters, digits and hyphens", "名称由字母、数字和连字符组成"),
    ("{} entries `{}` are too many", "`{1}` 有 {0} 项，太多了"),
    ("write at most {} of a kind", "每一种最多写 {0} 项"),
    // Plain values.
    ("put it in quotes", "请加上引号"),
    ("write true or false, without quotes", "写 true 或 false，不加引号"),
    ("write on or off, or true or false", "写 on 或 off，或 true 或 false"),
    ("write text or json", "写 text 或 json"),
    ("write en or zh", "写 en 或 zh"),
    ("write it as [\"one\", \"two\"]", "写成 [\"one\", \"two\"]"),
    ("{} is neither true nor false", "{0} 既不是 true 也不是 false"),
    ("{} is no format", "{0} 不是日志格式"),
    ("{} is no level", "{0} 不是日志级别"),
    ("{} is no language that there are messages in", "{0} 不是支持的语言"),
    ("{} is empty", "{0} 为空"),
    ("the value is not UTF-8 text", "该值不是 UTF-8 文本"),
    // Addresses.
    ("{} is no IP address", "{0} 不是 IP 地址"),
    ("{} has a port", "{0} 带有端口"),
    (
        "write an IP address, or localhost for 127.0.0.1 and ::1",
        "写 IP 地址，或用 localhost 表示 127.0.0.1 和 ::1",
    ),
    ("name the port with `--port` or the key `port`", "用 `--port` 或键 `port` 指定端口"),
    ("{} is no port", "{0} 不是端口"),
    ("a port is a number from {} to {}", "端口是 {0} 到 {1} 的数字"),
    ("{} has no valid port", "{0} 没有有效的端口"),
    ("{} has no scheme", "{0} 没有协议部分（scheme）"),
    ("{} has a scheme other than http and https", "{0} 的协议既不是 http 也不是 https"),
    ("{} has a character that a URL cannot have", "{0} 含有 URL 不允许的字符"),
    (
        "write scheme, host and path: \"https://hooks.example/services/alerts\"",
        "写协议、主机和路径：\"https://hooks.example/services/alerts\"",
    ),
    ("{} is no command", "{0} 不是命令"),
    (
        "write the program and its arguments: [\"notify-me\", \"--urgent\"]",
        "写程序及其参数：[\"notify-me\", \"--urgent\"]",
    ),
    ("{} has a user name or password before the host", "{0} 在主机名前带有用户名或密码"),
    (
        "put the credential into the upstream's `headers`, or let the client send it",
        "把凭据写入该上游的 `headers`，或由客户端发送",
    ),
    ("{} has a query", "{0} 带有查询串"),
    ("end it with the path: each request brings its own query", "以路径结尾：每个请求自带查询串"),
    ("{} has a fragment", "{0} 带有片段（#）"),
    ("end it with the path", "以路径结尾"),
    ("{} has a character that a path cannot have", "{0} 含有路径中不能出现的字符"),
    ("write other characters as percent escapes", "其他字符请用百分号转义"),
    ("{} has a `[` without its `]`", "{0} 的 `[` 没有对应的 `]`"),
    ("{} has no IPv6 address between its brackets", "{0} 的方括号中不是 IPv6 地址"),
    ("{} has no host", "{0} 没有主机名"),
    ("{} has a character that a host cannot have", "{0} 含有主机名中不能出现的字符"),
    (
        "a host has letters, digits, dots and hyphens; write others in their `xn--` form",
        "主机名由字母、数字、点和连字符组成；其他字符请写成 `xn--` 形式",
    ),
    ("{} has an empty part in its host", "{0} 的主机名有空的部分"),
    ("{} has a host that is a number but no IPv4 address", "{0} 的主机名是数字，却不是 IPv4 地址"),
    ("write all four parts, such as 127.0.0.1", "写全四段，例如 127.0.0.1"),
    (
        "write scheme, host and, where needed, port and path: \"https://api.example.com/v1\"",
        "写协议、主机，必要时加端口和路径：\"https://api.example.com/v1\"",
    ),
    (
        "write the name of a model, or { path = \"/load\", body = '{\"model\":\"m\"}' }",
        "写模型的名称，或 { path = \"/load\", body = '{\"model\":\"m\"}' }",
    ),
    ("{} has more than one `path` and one `body`", "{0} 中除一个 `path` 和一个 `body` 外还有别的内容"),
    ("{} has a `path` that is none", "{0} 的 `path` 不是路径"),
    ("{} (number {} of the list)", "{0}（列表第 {1} 项）"),
    ("{} is no proxy", "{0} 不是代理"),
    ("{} has a scheme that no proxy has", "{0} 的协议不是代理协议"),
    ("{} is more, or less, than scheme, host and port", "{0} 不是恰好由协议、主机和端口组成"),
    (
        "write \"system\", \"none\" or \"direct\", or an address such as \"http://proxy.example:3128\", with http, https, socks4, socks4a, socks5 or socks5h",
        "写 \"system\"、\"none\" 或 \"direct\"，或如 \"http://proxy.example:3128\" 的地址，协议可为 http、https、socks4、socks4a、socks5 或 socks5h",
    ),
    (
        "pool `{}` lists `{}`, which is a pool, and a pool holds upstreams alone",
        "上游池 `{0}` 列出了 `{1}`，后者也是上游池，而上游池中只能有上游",
    ),
    ("list the members of the other pool in its place", "请改为列出那个上游池的成员"),
    ("{} is an empty list", "{0} 是空列表"),
    ("{} is too long a list", "{0} 的列表过长"),
    ("{} names the same proxy twice", "{0} 两次写了同一个代理"),
    (
        "write one proxy, or up to 8 different ones in their order, such as [\"http://proxy.example:3128\", \"direct\"]",
        "写一个代理，或按顺序写最多 8 个不同的代理，例如 [\"http://proxy.example:3128\", \"direct\"]",
    ),
    ("{} holds what is no origin", "{0} 中有不是来源（origin）的内容"),
    (
        "an origin is scheme, host and, where needed, port: \"http://localhost:3000\"",
        "来源由协议、主机和必要时的端口组成：\"http://localhost:3000\"",
    ),
    (
        "{} is this relay itself: every call would go round in a circle",
        "{0} 就是此中继自身：每个请求都会原地打转",
    ),
    (
        "name the service behind it, or let the relay listen on another port",
        "请指定它背后的服务，或让中继监听另一个端口",
    ),
    // Secrets.
    ("{} has a space or a character beyond ASCII", "{0} 含有空格或 ASCII 以外的字符"),
    (
        "a token has 16 to 1024 letters, digits and signs of ASCII, and no space",
        "令牌由 16 到 1024 个 ASCII 字母、数字和符号组成，不含空格",
    ),
    ("{} is no key", "{0} 不是密钥"),
    (
        "a key is one word of letters, digits and signs of ASCII",
        "密钥是由 ASCII 字母、数字和符号组成的一个词",
    ),
    (
        "listening on {} lets other machines spend your credentials, and no token is set",
        "监听 {0} 会让其他机器使用你的凭据，而没有设置令牌",
    ),
    (
        "set STEADY_RELAY_TOKEN, or `token` below [relay], to a secret of 16 characters or more",
        "请把 STEADY_RELAY_TOKEN 或 [relay] 中的 `token` 设为不少于 16 个字符的机密",
    ),
    ("the key would go to {} over plain http", "密钥将以明文 http 发往 {0}"),
    (
        "use https, or say allow_plaintext = true in the upstream's own entry",
        "使用 https，或在该上游自己的项中写 allow_plaintext = true",
    ),
    // Headers, rules, routes.
    ("{} holds what is no name of a host", "{0} 中有不是主机名的内容"),
    ("{} holds too many names", "{0} 中的名称太多"),
    ("write at most {} names", "最多写 {0} 个名称"),
    ("{} is no header name", "{0} 不是请求头名称"),
    ("{} holds what is no header name", "{0} 中有不是请求头名称的内容"),
    ("{} holds `{}`, which belongs to the connection", "{0} 中的 `{1}` 属于连接本身"),
    ("leave it out: the relay sets it itself", "去掉它：中继会自行设置"),
    ("{} holds a value for `{}` that no header can have", "{0} 中 `{1}` 的值不能用作请求头的值"),
    ("a value is one line of visible characters", "值是一行可见字符"),
    (
        "write it as { \"name\" = \"value\" }, or \"name\" = [\"one\", \"two\"]",
        "写成 { \"name\" = \"value\" }，或 \"name\" = [\"one\", \"two\"]",
    ),
    ("{} is no path", "{0} 不是路径"),
    (
        "a path begins with / and has no query: \"/v1/messages\"",
        "路径以 / 开头，不带查询串：\"/v1/messages\"",
    ),
    ("{} has a `*`, which stands for nothing in a path", "{0} 中有 `*`，它在路径中不代表任何内容"),
    (
        "leave it out, with the / before it: a path fits all below it, too",
        "去掉它和它前面的 /：路径也适用于其下的所有路径",
    ),
    ("{} is no model", "{0} 不是模型"),
    ("{} holds what is no model", "{0} 中有不是模型的内容"),
    ("write a name, with at most one * and that at its end", "写一个名称，最多一个 *，且只能在末尾"),
    ("{} has a `name` that is no header's", "{0} 的 `name` 不是请求头名称"),
    ("{} has an `at` that is no path", "{0} 的 `at` 不是路径"),
    (
        "write names, numbers and * with dots between: \"error.details.*.reason\"",
        "写名称、数字和 *，用点分隔：\"error.details.*.reason\"",
    ),
    ("write the words to look for, or leave it out", "写要查找的词句，或去掉它"),
    ("the rule has no `fault`", "规则没有 `fault`"),
    (
        "say what such an answer means: fault = \"overloaded\"",
        "写明这样的响应意味着什么：fault = \"overloaded\"",
    ),
    ("the rule fits every answer", "规则匹配所有响应"),
    (
        "name at least one of `status`, `header`, `path` and `phrase`",
        "至少写 `status`、`header`、`path`、`phrase` 之一",
    ),
    (
        "the rule has a `floor`, and what it fits is final: nothing is sent again",
        "规则有 `floor`，但它匹配的是最终结果：不会重新发送",
    ),
    (
        "leave out `floor`, or say that it is sent again: resend = \"refused\"",
        "去掉 `floor`，或写明可以重新发送：resend = \"refused\"",
    ),
    ("the rule is never reached: {}", "规则永远不会用到：{0}"),
    (
        "write a status of 400 or more, a class such as \"5xx\", or a list: [429, \"5xx\"]",
        "写 400 以上的状态码、如 \"5xx\" 的一类，或列表：[429, \"5xx\"]",
    ),
    ("{} holds what is no status", "{0} 中有不是状态码的内容"),
    (
        "write it as { {} = \"…\", equals = \"…\" }, or with `contains` or `at_least`",
        "写成 { {0} = \"…\", equals = \"…\" }，或用 `contains`、`at_least`",
    ),
    ("{} has an `at_least` that is no number", "{0} 的 `at_least` 不是数字"),
    ("{} has an unknown `{}`", "{0} 中有未知的 `{1}`"),
    ("{} has more than one test", "{0} 有不止一个条件"),
    ("{} has no test", "{0} 没有条件"),
    ("{} has no `{}`", "{0} 没有 `{1}`"),
    ("upstream `{}` has no `url`", "上游 `{0}` 没有 `url`"),
    // Pools.
    ("pool `{}` has no `members`", "池 `{0}` 没有 `members`"),
    (
        "list the names of upstreams: members = [\"one\", \"two\"]",
        "列出上游的名称：members = [\"one\", \"two\"]",
    ),
    ("list at most {} names", "最多列出 {0} 个名称"),
    ("`{}` is an upstream and a pool", "`{0}` 既是上游又是池"),
    ("give the pool a name of its own", "给池取一个单独的名称"),
    ("pool `{}` lists `{}` twice", "池 `{0}` 把 `{1}` 列了两次"),
    ("list each member once; `weights` gives it a larger share", "每个成员只列一次；用 `weights` 增大其份额"),
    (
        "pool `{}` gives `{}` a weight, which is none of its members",
        "池 `{0}` 为 `{1}` 设了权重，但它不是该池的成员",
    ),
    ("name a member, or take the weight out", "改为成员的名称，或去掉这个权重"),
    ("write the names of members with numbers: { one = 3 }", "写成员名称和数字：{ one = 3 }"),
    (
        "write its address: url = \"https://api.example.com/v1\"",
        "写上它的地址：url = \"https://api.example.com/v1\"",
    ),
    (
        "the route fits every call, so none after it is ever reached: line {}",
        "此路由匹配所有请求，其后的路由永远不会用到：第 {0} 行",
    ),
    (
        "the route fits every call, so none after it is ever reached: lines {}",
        "此路由匹配所有请求，其后的路由永远不会用到：第 {0} 行",
    ),
    (
        "the route fits every call, so none after it is ever reached: lines {} and {} more",
        "此路由匹配所有请求，其后的路由永远不会用到：第 {0} 行，另有 {1} 行",
    ),
    (
        "the route is never reached: the one in line {} fits every call that it fits",
        "此路由永远不会用到：第 {0} 行的路由匹配它所匹配的所有请求",
    ),
    (
        "change what it fits, put it before the other, or make one of the two",
        "改变它的匹配范围、放到那条之前，或合并两条",
    ),
    (
        "name what it fits (`path`, `client`, `model`), or make it the last",
        "写明匹配范围（`path`、`client`、`model`），或放到最后",
    ),
    // Fallbacks.
    ("the fallback has no `{}`", "备用模型条目没有 `{0}`"),
    ("name the model that is asked for: model = \"gpt-x\"", "写上客户端请求的模型：model = \"gpt-x\""),
    ("list the names of models: to = [\"gpt-y\"]", "列出模型的名称：to = [\"gpt-y\"]"),
    ("write each name whole, without *", "每个名称都要写全，不用 *"),
    ("the fallback names `{}` twice", "备用模型条目把 `{0}` 写了两次"),
    ("list other models than `model`, each of them once", "列出 `model` 之外的模型，每个只列一次"),
    (
        "the fallback is never reached: the one in line {} fits every call that it fits",
        "此备用模型条目永远不会用到：第 {0} 行的条目匹配它所匹配的所有请求",
    ),
    // Profiles.
    ("profile `{}`: {}", "策略 `{0}`：{1}"),
    ("the route's {}", "此路由的 {0}"),
    ("with profile `{}`, the route's {}", "用策略 `{0}` 时，此路由的 {1}"),
    ("cap {} is below base {}", "cap {0} 小于 base {1}"),
    ("never_sent_cap {} is below never_sent_base {}", "never_sent_cap {0} 小于 never_sent_base {1}"),
    ("overloaded_cap {} is below overloaded_base {}", "overloaded_cap {0} 小于 overloaded_base {1}"),
    ("set {} to {} or more", "把 {0} 设为不小于 {1}"),
    (
        "set {} to {} or more, or name one `profile` that fits",
        "把 {0} 设为不小于 {1}，或指定一个合适的 `profile`",
    ),
    (
        "park_quota = true and {} exclude each other: a lane is parked by its gate",
        "park_quota = true 与 {0} 互斥：通道由其闸门停用",
    ),
    ("leave out park_quota, or {}", "去掉 park_quota，或去掉 {0}"),
    (
        "gate = true and {} exclude each other: waits in the gate are not on a curve",
        "gate = true 与 {0} 互斥：闸门中的等待不按退避曲线",
    ),
    (
        "leave out gate, or {} and what else belongs to the curves",
        "去掉 gate，或去掉 {0} 及其他属于退避曲线的键",
    ),
    (
        "leave out gate, or {} and what else belongs to the curves, or name one `profile` that fits",
        "去掉 gate，或去掉 {0} 及其他属于退避曲线的键，或指定一个合适的 `profile`",
    ),
    ("{} leads back to itself", "{0} 最终指回自身"),
    (
        "base one of them on a profile that ships, such as interactive",
        "让其中一个基于自带的策略，例如 interactive",
    ),
    (
        "`{}` ships with the relay and cannot be based on another profile",
        "`{0}` 是自带的策略，不能基于其他策略",
    ),
    (
        "set its numbers one by one, or make a profile of your own with another name",
        "逐个设置它的数值，或用另一个名称建立自己的策略",
    ),
    ("`bodies.each` ({}) is more than `bodies.total` ({})", "`bodies.each`（{0}）大于 `bodies.total`（{1}）"),
    ("raise `total` to `each` or more", "把 `total` 调到不小于 `each`"),
    // Tables.
    ("`{}` is no list of tables", "`{0}` 不是表的列表"),
    (
        "write [[{}]], with two brackets, above the keys of each {}",
        "在每个 {1} 的键上方写 [[{0}]]，用两层方括号",
    ),
    ("write [{}] and its keys below it", "写 [{0}]，并把它的键写在下面"),
    ("`{}` at the top is the table of {}", "顶层的 `{0}` 是 {1} 的表"),
    (
        "to choose one for all calls, write it below a line [relay]: {}",
        "要为所有请求选定一个，请写在 [relay] 行下面：{0}",
    ),
    // Files.
    ("there is no such file", "没有这个文件"),
    ("this is a folder, not a file", "这是目录，不是文件"),
    ("this is a link to a file that does not exist", "这个链接指向的文件不存在"),
    ("this is not UTF-8 text", "这不是 UTF-8 文本"),
    ("the file may not be read", "没有读取该文件的权限"),
    ("the file is larger than 1 MiB", "文件大于 1 MiB"),
    ("this is a pipe or a device, not a file", "这是管道或设备，不是文件"),
    ("the file cannot be read: {}", "无法读取文件：{0}"),
    ("the file is not UTF-8 text", "文件不是 UTF-8 文本"),
    ("the file begins like UTF-16 and is none", "文件开头像 UTF-16，但并不是"),
    ("the certificate file {}: {}", "证书文件 {0}：{1}"),
    ("check the path", "检查路径"),
    ("check the path, or leave it out to use the defaults", "检查路径，或不指定而使用默认值"),
    ("name the file in it, such as {}", "请指定其中的文件，例如 {0}"),
    ("check its owner and mode, and those of its folder", "检查它及其所在目录的所有者和权限"),
    (
        "settings are a few KiB: check that this is the file you mean",
        "设置文件通常只有几 KiB：请检查是否指错了文件",
    ),
    (
        "put a file there: a pipe is read once, at the start, and only where --config or --env-file names it",
        "请换成普通文件：管道只在启动时读取一次，且仅限由 --config 或 --env-file 指定时",
    ),
    (
        "save it as UTF-8: some editors on Windows write UTF-16 or an older encoding",
        "请保存为 UTF-8：Windows 上的一些编辑器会写成 UTF-16 或旧编码",
    ),
    ("save it as UTF-8, or as UTF-16 with its mark", "请保存为 UTF-8，或带标记的 UTF-16"),
    // TOML.
    ("{}, expected {}", "TOML 语法错误：{0}，应为 {1}"),
    ("duplicate key", "键重复"),
    ("cannot recurse further; max recursion depth met", "嵌套过深"),
    ("cannot extend value of type {} with a dotted key", "不能用带点的键扩展类型为 {0} 的值"),
    (
        "a value is text in quotes, a number, true, false or a list: idle = \"30s\"",
        "值可以是带引号的文本、数字、true、false 或列表：idle = \"30s\"",
    ),
    ("write each key, and each line such as [relay], only once", "每个键和每个如 [relay] 的行只写一次"),
    ("write key = value", "写成 key = value"),
    (
        "write key = value; a name has letters, digits, hyphens and underscores",
        "写成 key = value；名称由字母、数字、连字符和下划线组成",
    ),
    ("close the bracket: [relay]", "补上方括号：[relay]"),
    ("close the list with ]", "用 ] 结束列表"),
    ("close the quotes in the same line", "在同一行内闭合引号"),
    (
        "close the quotes in the same line; in \"double\" ones \\ is written \\\\",
        "在同一行内闭合引号；在 \"双引号\" 中 \\ 写成 \\\\",
    ),
    (
        "write each key = value, and each line such as [relay], on a line of its own",
        "每个 key = value 和每个如 [relay] 的行都单独成行",
    ),
    (
        "write key = value below a line such as [relay], and text in quotes: listen = \"127.0.0.1\"",
        "在如 [relay] 的行下面写 key = value，文本加引号：listen = \"127.0.0.1\"",
    ),
    // Env files.
    ("the quote is not closed", "引号没有闭合"),
    ("a value ends on its own line", "值须在同一行结束"),
    ("this line has no `=`", "这一行没有 `=`"),
    ("write NAME=value, and # before a comment", "写成 NAME=value，注释前加 #"),
    ("what stands before the `=` is no name", "`=` 前面不是名称"),
    (
        "a name has letters, digits and underscores, and does not begin with a digit",
        "名称由字母、数字和下划线组成，且不以数字开头",
    ),
    ("unknown escape in double quotes", "双引号中有无法识别的转义"),
    (
        "put what holds a \\ into single quotes, such as 'C:\\ca.pem'",
        "含有 \\ 的内容请放进单引号，例如 'C:\\ca.pem'",
    ),
    ("something follows the closing quote", "闭合的引号后面还有内容"),
    ("quote the whole value, or nothing of it", "要么整个值加引号，要么都不加"),
    // Flags.
    ("the only mode is `proxy`", "唯一的模式是 `proxy`"),
    (
        "leave it out; `steady-relay --help` shows what there is",
        "去掉它；`steady-relay --help` 列出可用的内容",
    ),
    // Notices.
    ("{} is an older name and still read: write {}", "{0} 是旧名，目前仍会读取：请改用 {1}"),
    ("{} in {} is an older name and still read: write {}", "{1} 中的 {0} 是旧名，目前仍会读取：请改用 {2}"),
    ("`{}` in a [{}]", "[{1}] 中的 `{0}`"),
    ("`{}` in an [{}]", "[{1}] 中的 `{0}`"),
    ("{} is ignored, since {} is set", "已设置 {1}，因此忽略 {0}"),
    ("{} in {} is ignored, since {} is set", "已设置 {2}，因此忽略 {1} 中的 {0}"),
    ("{} in {} is ignored, since ENABLE_LOGGING is false", "ENABLE_LOGGING 为 false，因此忽略 {1} 中的 {0}"),
    ("{} in {} is not read: {}", "不读取 {1} 中的 {0}：{2}"),
    ("{} in the environment is not read: {}", "不读取环境变量 {0}：{1}"),
    (
        "{} in {} is not used: another place names the upstream, and it may not be meant for that",
        "不使用 {1} 中的 {0}：上游由别处指定，该密钥未必是给它的",
    ),
    (
        "{} in {} is not used: name its upstream there too, with STEADY_RELAY_UPSTREAM",
        "不使用 {1} 中的 {0}：请在同一文件中用 STEADY_RELAY_UPSTREAM 指定它的上游",
    ),
    (
        "--mode proxy is an older flag: this is always a proxy, leave it out",
        "--mode proxy 是旧选项：本程序始终是代理，请去掉它",
    ),
    (
        "{} in the environment names no proxy that can be used, and is passed over: write it as scheme://host:port, with one of {}",
        "环境变量 {0} 不是可用的代理，已跳过：请写成 scheme://host:port，协议为 {1} 之一",
    ),
    (
        "no WebSockets are spoken and clients are told to use HTTP, since `bodies.total` ({}) is less than `limits.message` ({})",
        "`bodies.total`（{0}）小于 `limits.message`（{1}），因此不使用 WebSocket，并让客户端改用 HTTP",
    ),
    (
        "`park_quota` has no effect without the gate: take out `gate = false`, or `park_quota`",
        "没有闸门时 `park_quota` 不起作用：请去掉 `gate = false`，或去掉 `park_quota`",
    ),
    (
        "`park_quota` has no effect with profile `{}`, which waits by its own curve: say `park_quota = false` in it, or let it use the gate",
        "策略 `{0}` 按自己的曲线等待，`park_quota` 对它不起作用：请在其中写 `park_quota = false`，或让它使用闸门",
    ),
    (
        "`park_quota` makes hardly any call wait for a quota, since profile `{}` has less patience than most quotas take: say `profile = \"patient\"`, or a longer `patience`",
        "策略 `{0}` 的耐心短于多数额度的恢复时间，因此 `park_quota` 几乎不会让请求等到额度恢复：请写 `profile = \"patient\"`，或设更长的 `patience`",
    ),
    (
        "[breaker] has no effect, since no upstream has another that could stand in for it: add a [pool.NAME] or a [[fallback]], or say `alone = true`",
        "没有任何上游有可替补它的其他上游，因此 [breaker] 不起作用：请添加 [pool.NAME] 或 [[fallback]]，或写 `alone = true`",
    ),
    (
        "the fallback of `{}` has no effect at `{}`, where `max_running` puts all models into one line: take out the one or the other",
        "`{1}` 的 `max_running` 让所有模型排在同一队列，因此 `{0}` 的后备模型在那里不起作用：请去掉两者之一",
    ),
    (
        "`{}` of pool `{}` takes a person's sign-in of ChatGPT and no key, and a pool refuses that: take it out, and let `upstream` name it itself",
        "上游池 `{1}` 的成员 `{0}` 只接受个人的 ChatGPT 登录而不接受密钥，上游池会拒绝这种登录：请把它移出，并用 `upstream` 直接指定它",
    ),
    (
        "credential `{}` is for no upstream: write `credential = \"{}\"` into the one that it is for",
        "没有上游使用凭据 `{0}`：请在需要它的上游中写 `credential = \"{1}\"`",
    ),
    (
        "the `weights` of pool `{}` have no effect, since its `strategy` is \"in_order\": make that \"weighted\", or take them out",
        "上游池 `{0}` 的 `strategy` 是 \"in_order\"，因此 `weights` 不起作用：请改为 \"weighted\"，或去掉 `weights`",
    ),
    (
        "pool `{}` has one member, so no other can stand in for it",
        "上游池 `{0}` 只有一个成员，没有其他成员可以替补",
    ),
    (
        "`{}` of pool `{}` is asked without any key, since that of a client goes to the first member alone: write `api_key` or `credential` into [upstream.{}]",
        "上游池 `{1}` 的成员 `{0}` 收到的请求不带密钥，因为客户端的密钥只发给第一个成员：请在 [upstream.{2}] 中写 `api_key` 或 `credential`",
    ),
    ("and {} more notes of this kind", "另有 {0} 条同类说明"),
    // Headers of a call.
    ("is none that this relay knows", "不是此中继认识的请求头"),
    ("there are {}", "可用的有 {0}"),
    ("can only say `off`", "只能是 `off`"),
    ("leave it out for the usual care", "去掉它即按通常方式处理"),
    ("can only say `call`", "只能是 `call`"),
    ("leave it out for no report", "不需要报告就去掉它"),
    ("leaves nothing for the other x-steady headers to say", "使其他 x-steady 请求头失去意义"),
    ("send `x-steady: off` alone, or leave it out", "只发送 `x-steady: off`，或去掉它"),
    ("was sent twice", "发送了两次"),
    ("send it once", "请只发送一次"),
    ("is no plain text", "不是纯文本"),
    ("write letters and digits of ASCII", "写 ASCII 字母和数字"),
    ("there are auto, {}", "可用的有 auto、{0}"),
    ("is too long", "过长"),
    ("has no unit", "没有单位"),
    ("has an unknown unit", "单位无法识别"),
    ("has the unknown unit `{}`", "单位 `{0}` 无法识别"),
    ("does not begin with a number", "不是以数字开头"),
    ("is below zero", "小于零"),
    ("is no number", "不是数字"),
    // Recorded answers.
    ("the file is longer than the {} MiB that are read", "文件超过了可读取的 {0} MiB"),
    (
        "what decides stands at the beginning of an answer: `head -c 1000000 FILE > SHORT`",
        "起决定作用的内容在响应开头：`head -c 1000000 FILE > SHORT`",
    ),
    ("{} is no status", "{0} 不是状态码"),
    ("a status is a number from 100 to 999", "状态码是 100 到 999 的数字"),
    (
        "record it with `curl -i … > FILE`: a status line, headers, a blank line, the body",
        "用 `curl -i … > FILE` 录制：状态行、响应头、空行、响应体",
    ),
    (
        "record it with `curl -i … > FILE`: a status line, headers, a blank line, the body; where the answer had no body, its head is enough, or `--status N`",
        "用 `curl -i … > FILE` 录制：状态行、响应头、空行、响应体；没有响应体时只要响应头，或用 `--status N`",
    ),
    (
        "record it with `curl -i … > FILE`: a status line, headers, a blank line, the body; `--compressed` makes curl decode it",
        "用 `curl -i … > FILE` 录制：状态行、响应头、空行、响应体；加 `--compressed` 可让 curl 解码",
    ),
    ("the file is empty", "文件为空"),
    ("the file is no text, and no head says how it is encoded", "文件不是文本，也没有响应头说明其编码"),
    ("line {} looks like what `curl -v` prints", "第 {0} 行像是 `curl -v` 的输出"),
    ("line {} is no status line", "第 {0} 行不是状态行"),
    ("write it as it came: HTTP/1.1 503 Service Unavailable", "照原样写：HTTP/1.1 503 Service Unavailable"),
    ("line {} stands in the head and is no header", "第 {0} 行位于头部，但不是响应头"),
    ("write NAME: VALUE, and a blank line before the body", "写成 NAME: VALUE，并在响应体前留一个空行"),
    ("the body does not follow its `content-encoding`", "响应体与其 `content-encoding` 不符"),
    (
        "record it plain: `curl -i --compressed`, and leave the header out",
        "录制为明文：`curl -i --compressed`，并去掉该响应头",
    ),
    ("there is no dialect `{}`", "没有名为 `{0}` 的协议"),
    ("dialects: {}", "可用的协议：{0}"),
    ("the line `# request:` names no method and path", "`# request:` 行没有写明方法和路径"),
    ("write `# request: POST /v1/responses`", "写 `# request: POST /v1/responses`"),
    ("the settings have no [upstream.{}]", "设置中没有 [upstream.{0}]"),
    ("`--from` takes one of: {}", "`--from` 的可选值：{0}"),
    ("the file has no head: taken for a body of {}", "文件没有头部：视为 {0} 类型的响应体"),
    (
        "the file has no head: taken for a body of {} with status 200 (`--status` names another)",
        "文件没有头部：视为 {0} 类型的响应体，状态码 200（可用 `--status` 另行指定）",
    ),
    (
        "nothing says what was asked: heard as generic; name a `--dialect`, or put a line such as `# request: POST /v1/responses` at the top of the file",
        "无法得知请求的是什么：按 generic 解读；请用 `--dialect` 指定，或在文件顶部加一行如 `# request: POST /v1/responses`",
    ),
];

/// What was found, in this language. Several sentences, a line each, are put into it one by one.
#[must_use]
pub fn said(lang: Lang, english: &str) -> String {
    match lang {
        Lang::English => english.to_owned(),
        Lang::Chinese => chinese(english).unwrap_or_else(|| english.to_owned()),
    }
}

/// The same of words that lack their subject, such as `has no host`: the sentence around them has it.
#[must_use]
pub fn said_of(lang: Lang, english: &str) -> String {
    // A letter that nobody writes stands for the subject.
    const SUBJECT: &str = "\u{e000}";
    match lang {
        Lang::English => english.to_owned(),
        Lang::Chinese => chinese(&format!("{SUBJECT} {english}"))
            .and_then(|chinese| Some(chinese.strip_prefix(SUBJECT)?.trim_start().to_owned()))
            .unwrap_or_else(|| said(lang, english)),
    }
}

/// The Chinese of a sentence, by the pattern of which most letters are there; `None` where none fits.
fn chinese(english: &str) -> Option<String> {
    let fits = |(pattern, chinese): &(&'static str, &'static str)| {
        Some((pattern.len(), filled_in(pattern, english)?, *chinese))
    };
    let (_, values, chinese) = PATTERNS.iter().filter_map(fits).max_by_key(|(length, ..)| *length)?;
    let mut said = String::new();
    let mut rest = chinese;
    while let Some((before, number, after)) = next_place(rest, values.len()) {
        let value = values.get(number).copied().unwrap_or_default();
        // What is filled in may be such a sentence itself.
        said = said + before + &self::chinese(value).unwrap_or_else(|| value.to_owned());
        rest = after;
    }
    Some(said + rest)
}

/// The next place in a text where one of so many values belongs: what is before it, the value's number, what is after.
fn next_place(text: &str, values: usize) -> Option<(&str, usize, &str)> {
    let place = |number: usize| {
        let (before, after) = text.split_once(&format!("{{{number}}}"))?;
        Some((before, number, after))
    };
    (0..values).filter_map(place).min_by_key(|(before, ..)| before.len())
}

/// What stands in a sentence for each `{}` of a pattern; `None` where the pattern does not fit.
fn filled_in<'a>(pattern: &str, sentence: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = pattern.split("{}");
    let mut rest = sentence.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        // The last part ends the sentence.
        let at = if parts.peek().is_none() { rest.len().checked_sub(part.len())? } else { rest.find(part)? };
        let (value, after) = (rest.get(..at)?, rest.get(at..)?);
        rest = after.strip_prefix(part)?;
        if value.is_empty() {
            return None;
        }
        values.push(value);
    }
    rest.is_empty().then_some(values)
}

/// Tells, for tests, what to add for a message that has no row.
#[cfg(test)]
pub(crate) fn lacks(english: &str) -> Option<String> {
    let is_known = english.is_empty() || chinese(english).is_some();
    (!is_known).then(|| {
        format!(
            "add to PATTERNS in crates/relay/src/words/settings.rs, with {{}} for what is filled in:\n    ({english:?}, \"\"),"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_filled_in_and_what_is_filled_in_is_translated_too() {
        let said = |english| said(Lang::Chinese, english);
        assert_eq!(
            said("`idle = 5 parsecs` has the unknown unit `parsecs`"),
            "`idle = 5 parsecs` 的单位 `parsecs` 无法识别"
        );
        assert_eq!(said("`port` is a list, not a whole number"), "`port` 是列表，而不是整数");
        assert_eq!(said("the certificate file /a b: there is no such file"), "证书文件 /a b：没有这个文件");
        assert_eq!(said("profile `x`: cap 5s is below base 10s"), "策略 `x`：cap 5s 小于 base 10s");
        assert_eq!(said("nobody has translated this"), "nobody has translated this");
        assert_eq!(super::said(Lang::English, "put it in quotes"), "put it in quotes");
        assert_eq!(said_of(Lang::Chinese, "has no host"), "没有主机名");
        assert_eq!(said_of(Lang::Chinese, "sings"), "sings");
        assert_eq!(said_of(Lang::English, "has no host"), "has no host");
        // A value cannot be taken for a place to fill in.
        assert_eq!(said("unknown key `{1}` in [relay]"), "[relay] 中有未知的键 `{1}`");
    }

    #[test]
    fn every_pattern_has_its_values_in_both_languages() {
        for (english, chinese) in PATTERNS {
            let holes = english.matches("{}").count();
            for number in 0..holes {
                assert!(
                    chinese.contains(&format!("{{{number}}}")),
                    "{english}: {{{number}}} is not in {chinese}"
                );
            }
            assert!(!chinese.contains(&format!("{{{holes}}}")), "{chinese}");
            assert_eq!(PATTERNS.iter().filter(|(other, _)| other == english).count(), 1, "{english}");
        }
    }
}
