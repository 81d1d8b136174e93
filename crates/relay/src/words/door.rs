//! What a client is told that is turned away, or that asks the relay itself. What it is told of a call that failed is
//! in the core.

relay_core::words! {
    table TABLE "door";

    /// A refusal as a client gets it.
    refusal(words: &str) {
        en: "steady-relay: {words}";
        zh: "steady-relay：{words}";
    }

    /// The `Host` is not one of ours.
    foreign_host(host: &str) {
        en: "this address answers only under its own names, not under {host}; if a page or a proxy of yours uses that name, add its origin to allowed_origins";
        zh: "此地址只以自己的名称提供服务，不接受 {host}；如果是你自己的网页或代理在使用这个名称，请把它的来源加入 allowed_origins";
    }

    /// A page from elsewhere asks.
    foreign_origin(origin: &str) {
        en: "requests from the page {origin} are refused; if it is yours, add it to allowed_origins";
        zh: "拒绝来自网页 {origin} 的请求；如果是你自己的网页，请把它加入 allowed_origins";
    }

    /// A browser says that another site asks.
    foreign_site(site: &str) {
        en: "a browser sent this for another site (sec-fetch-site: {site}); if the page is yours, add it to allowed_origins";
        zh: "浏览器代其他网站发出了此请求（sec-fetch-site: {site}）；如果是你自己的网页，请把它加入 allowed_origins";
    }

    /// A token is needed and none came.
    token_missing() {
        en: "this relay asks for its token: send it as `x-steady-token`, or put `/~TOKEN` before the path";
        zh: "此中继要求提供令牌：用请求头 `x-steady-token` 发送，或在路径前加上 `/~TOKEN`";
    }

    /// A browser has not shown the token; a page asks for it.
    page_asks() {
        en: "This relay asks for its token: the one in its settings, which its clients show, too.";
        zh: "此中继要求提供令牌，即其设置中的令牌；它的客户端也使用这个令牌。";
    }

    /// The label of the field for it.
    page_token() {
        en: "Token";
        zh: "令牌";
    }

    /// The button below it.
    page_open() {
        en: "Open the dashboard";
        zh: "打开仪表盘";
    }

    /// The token is another one.
    token_wrong() {
        en: "the token is not the one this relay was started with";
        zh: "令牌与此中继启动时使用的令牌不符";
    }

    /// The local token is needed and none came.
    local_token_missing() {
        en: "whoever changes something shows the local token: send what is in the file `token` of the state folder as `x-steady-token`";
        zh: "更改操作需要出示本地令牌：把状态目录中文件 `token` 的内容作为 `x-steady-token` 发送";
    }

    /// It is another one.
    local_token_wrong() {
        en: "this is not the token in the file `token` of the state folder";
        zh: "这不是状态目录中文件 `token` 里的令牌";
    }

    /// There is no local token.
    no_local_token() {
        en: "nobody can change anything at this relay, since it has no local token: it has no state folder, or cannot use the file `token` in it\nhint: start it with `--state-dir FOLDER`, and it makes one there";
        zh: "此中继没有本地令牌（没有状态目录，或无法使用其中的文件 `token`），因此不能对它做任何更改\n提示：用 `--state-dir FOLDER` 启动，它会在那里创建令牌";
    }

    /// How an upstream can be named.
    name_one() {
        en: "hint: start the relay with `--upstream URL` or STEADY_RELAY_UPSTREAM, or choose an entry [upstream.NAME] of the settings: by `upstream = \"NAME\"`, by a [[route]], or by a path that begins with /to/NAME";
        zh: "提示：用 `--upstream URL` 或 STEADY_RELAY_UPSTREAM 启动中继，或选用设置中的某个 [upstream.NAME]：通过 `upstream = \"NAME\"`、[[route]]，或以 /to/NAME 开头的路径";
    }

    /// There is no path to append.
    no_path() {
        en: "this relay forwards paths (`/v1/responses`); it is no general proxy";
        zh: "此中继只转发路径（如 `/v1/responses`），不是通用代理";
    }

    /// Nothing says where to. `name_one` is that message.
    no_credential(name_one: &str) {
        en: "the request carries no credential, so nothing says where it should go\n{name_one}; or sign the client in";
        zh: "请求不带凭据，无法得知应发往哪里\n{name_one}；或让客户端登录";
    }

    /// A credential that no upstream of ours issued.
    unknown_credential(header: &str, name_one: &str) {
        en: "the credential in `{header}` is not one this relay can tell (keys that begin with sk-proj-, sk-svcacct-, sk-ant- or AIza, and ChatGPT sign-ins), so it is sent nowhere\n{name_one}";
        zh: "`{header}` 中的凭据不在此中继能识别的范围内（以 sk-proj-、sk-svcacct-、sk-ant- 或 AIza 开头的密钥，以及 ChatGPT 登录），因此不会发往任何地方\n{name_one}";
    }

    /// A header and what it holds.
    holds(header: &str, what: &str) {
        en: "`{header}` holds {what}";
        zh: "`{header}` 中是{what}";
    }

    /// Two credentials of two houses. `one` and `other` say which header holds what.
    disagreement(one: &str, other: &str, name_one: &str) {
        en: "{one} and {other}: one request cannot go to both\n{name_one}, or send one credential";
        zh: "{one}，{other}：一个请求不能同时发往两处\n{name_one}，或只发送一个凭据";
    }

    /// The entry that ships is gone from the settings.
    no_entry(what: &str, upstream: &str, name_one: &str) {
        en: "the request carries {what}, and there is no upstream `{upstream}` for it\n{name_one}";
        zh: "请求带有{what}，但没有与之对应的上游 `{upstream}`\n{name_one}";
    }

    /// The path names an upstream that is not there.
    no_such_name(name: &str, known: &str) {
        en: "the path names the upstream `{name}`, and there is none of that name\nhint: those there are: {known}";
        zh: "路径指定了上游 `{name}`，但没有这个名称的上游\n提示：现有上游：{known}";
    }

    /// A route names an upstream that is not there.
    no_such_entry(name: &str) {
        en: "a [[route]] names the upstream `{name}`, and there is no entry [upstream.{name}]";
        zh: "某条 [[route]] 指定了上游 `{name}`，但没有 [upstream.{name}] 这一项";
    }

    /// No member of a pool speaks the dialect of the request.
    no_member_speaks(pool: &str, dialect: &str) {
        en: "no member of the pool `{pool}` speaks {dialect}, says `dialects` of each\nhint: add an upstream that does, or send such requests elsewhere with a [[route]]";
        zh: "池 `{pool}` 的成员中没有一个支持 {dialect}（见各自的 `dialects`）\n提示：加入支持它的上游，或用 [[route]] 把此类请求发往别处";
    }

    /// A sign-in of a person is not for a pool.
    pool_of_sign_in(pool: &str) {
        en: "the request carries the sign-in of a ChatGPT or Claude account, and [pool.{pool}] does not take those: they are for one service and one person\nhint: name the upstream itself, such as upstream = \"chatgpt\", or use an API key";
        zh: "此请求携带 ChatGPT 或 Claude 账号的登录凭据，而 [pool.{pool}] 不接受：它们只属于一个服务和一个人\n提示：直接指定上游，例如 upstream = \"chatgpt\"，或使用 API 密钥";
    }

    /// A known credential would cross the network in the clear.
    plaintext(name: &str, origin: &str) {
        en: "upstream `{name}` is {origin}: the credential would cross the network unencrypted\nhint: use https, or say allow_plaintext = true in [upstream.{name}]";
        zh: "上游 `{name}` 是 {origin}：凭据将以未加密的方式经过网络\n提示：使用 https，或在 [upstream.{name}] 中写 allow_plaintext = true";
    }

    /// A credential of a service that the relay cannot find by itself.
    meant_for(service: &str) {
        en: "the request is meant for {service}";
        zh: "此请求是发给 {service}";
    }

    /// Azure OpenAI.
    azure() {
        en: "Azure OpenAI (`api-key`), where every resource has an address of its own\nhint: name yours with `--upstream https://RESOURCE.openai.azure.com/openai/v1`, or in an entry [upstream.NAME] that the client reaches by the path /to/NAME";
        zh: "Azure OpenAI（`api-key`）的，而那里每个资源都有自己的地址\n提示：用 `--upstream https://RESOURCE.openai.azure.com/openai/v1` 指定你的地址，或写入 [upstream.NAME]，客户端通过路径 /to/NAME 访问";
    }

    /// Amazon Bedrock.
    bedrock() {
        en: "Amazon Bedrock, whose signed requests (AWS4-HMAC-SHA256) cannot go by a relay: a signature covers the host and expires, so the request can neither be sent elsewhere nor be sent again\nhint: let the client connect to Bedrock itself";
        zh: "Amazon Bedrock 的，而它的签名请求（AWS4-HMAC-SHA256）无法经过中继：签名包含主机名且会过期，请求既不能发往别处，也不能重新发送\n提示：让客户端直接连接 Bedrock";
    }

    /// Vertex AI.
    vertex() {
        en: "Google Vertex AI (a token that begins with `ya29.`), whose address depends on project and region\nhint: name yours with `--upstream https://REGION-aiplatform.googleapis.com`, or in an entry [upstream.NAME] that the client reaches by the path /to/NAME";
        zh: "Google Vertex AI（以 `ya29.` 开头的令牌）的，其地址取决于项目和区域\n提示：用 `--upstream https://REGION-aiplatform.googleapis.com` 指定你的地址，或写入 [upstream.NAME]，客户端通过路径 /to/NAME 访问";
    }

    /// What a key is called.
    openai_key() {
        en: "an OpenAI key";
        zh: " OpenAI 密钥";
    }

    /// What a sign-in is called.
    chatgpt_sign_in() {
        en: "a ChatGPT sign-in";
        zh: " ChatGPT 登录";
    }

    /// What a credential is called.
    anthropic_credential() {
        en: "an Anthropic credential";
        zh: " Anthropic 凭据";
    }

    /// What a key is called.
    gemini_key() {
        en: "a Gemini key";
        zh: " Gemini 密钥";
    }

    /// The request came back from this relay itself.
    round_alone() {
        en: "this relay has sent the request on, to itself";
        zh: "此中继把请求发给了自己";
    }

    /// From one other.
    round_by_one() {
        en: "this relay has sent the request on, and another relay sent it back";
        zh: "此中继发出的请求被另一个中继发了回来";
    }

    /// From several others.
    round_by_many(others: usize) {
        en: "this relay has sent the request on, and {others} others sent it round";
        zh: "此中继发出的请求经过另外 {others} 个中继又绕了回来";
    }

    /// Through too many.
    too_many_hops(hops: usize) {
        en: "the request has passed {hops} relays";
        zh: "请求已经过 {hops} 个中继";
    }

    /// A ring of relays. `what` is one of those above.
    came_round(what: &str) {
        en: "{what}: it never reaches a model service\nhint: see which `upstream` each of the relays has (`steady-relay config show --origin`), and let the last one name the service";
        zh: "{what}：永远到不了模型服务\n提示：查看每个中继的 `upstream`（`steady-relay config show --origin`），让最后一个指向模型服务";
    }

    /// A wish that cannot be met. `why` ends the sentence.
    wish(header: &str, why: &str, hint: &str) {
        en: "the header `{header}` {why}\nhint: {hint}";
        zh: "请求头 `{header}` {why}\n提示：{hint}";
    }

    /// A request that breaks the rules of HTTP; `what` is in English.
    malformed(what: &str) {
        en: "the request is malformed: {what}";
        zh: "请求格式有误：{what}";
    }

    /// No room for another connection.
    too_many_connections(most: u32) {
        en: "steady-relay: {most} connections are open, and that is the limit\nhint: close some, or raise `limits.connections`\n";
        zh: "steady-relay：已有 {most} 个连接，达到上限\n提示：请关闭一些，或调大 `limits.connections`\n";
    }

    /// A lane is asked in the wrong way.
    ask_with_post() {
        en: "steady-relay: ask for this with POST\n";
        zh: "steady-relay：请用 POST 请求\n";
    }

    /// There is no such lane.
    no_such_lane() {
        en: "steady-relay: there is no such lane\nhint: /__steady/status lists the lanes by their `id`\n";
        zh: "steady-relay：没有这条通道\n提示：/__steady/status 按 `id` 列出所有通道\n";
    }

    /// An address of ours that cannot be written.
    only_read() {
        en: "steady-relay: this address can only be read\n";
        zh: "steady-relay：此地址只能读取\n";
    }

    /// A query asks for calls with something that is no number.
    no_number() {
        en: "steady-relay: `since`, `before`, `limit` and `offset` take a whole number\n";
        zh: "steady-relay：`since`、`before`、`limit` 和 `offset` 的值须为整数\n";
    }

    /// The dashboard was asked for without the last `/`.
    page_is_beside() {
        en: "steady-relay: the dashboard is at /__steady/\n";
        zh: "steady-relay：仪表盘位于 /__steady/\n";
    }

    /// A query asks for a chart of something else.
    no_span() {
        en: "steady-relay: `span` is `hour`, `day` or `week`\n";
        zh: "steady-relay：`span` 的值须为 `hour`、`day` 或 `week`\n";
    }

    /// So many pages of the dashboard are open.
    too_many_listeners(most: usize) {
        en: "steady-relay: {most} pages listen already; close some\n";
        zh: "steady-relay：已有 {most} 个页面在监听；请关闭一些\n";
    }

    /// This relay keeps no calls.
    nothing_recorded() {
        en: "steady-relay: this relay records no calls\n";
        zh: "steady-relay：此中继不记录请求\n";
    }

    /// An address of ours that is none.
    nothing_here() {
        en: "steady-relay: nothing here\nhint: /healthz tells that the relay lives, /__steady/status what it does\n";
        zh: "steady-relay：这里没有内容\n提示：/healthz 表明中继正常运行，/__steady/status 显示它在做什么\n";
    }

    /// A success that does not fit into a stream. `how` is one of the two below.
    unstreamed(status: u16, how: &str) {
        en: "the service answered {status} {how}";
        zh: "服务返回了 {status}，{how}";
    }

    /// It came whole.
    whole() {
        en: "whole and not as a stream";
        zh: "但内容是一次性的，不是流";
    }

    /// It came in an encoding.
    encoded_unasked(status: u16, encoding: &str) {
        en: "the service answered {status} in {encoding}, unasked";
        zh: "服务返回了 {status}，并擅自使用了 {encoding} 编码";
    }

    /// An error without any words.
    failed_silently() {
        en: "the service failed without a word";
        zh: "服务出错，没有任何说明";
    }

    /// No answer of a model. `how` is empty or the message below.
    no_stream(status: u16, how: &str) {
        en: "steady-relay: the service answered {status}{how} where a stream was asked for";
        zh: "steady-relay：请求的是流，服务却返回了 {status}{how}";
    }

    /// It came with a page.
    with_a_page() {
        en: " with a page";
        zh: " 和一个网页";
    }

    /// An upgrade that is no WebSocket could not be handed on.
    no_tunnel(host: &str, why: &str) {
        en: "steady-relay: cannot open a tunnel to {host}: {why}\n";
        zh: "steady-relay：无法建立到 {host} 的隧道：{why}\n";
    }

    /// No tunnel opens any more.
    being_stopped() {
        en: "the relay is being stopped";
        zh: "中继正在停止";
    }

    /// The service is silent.
    no_answer_within(seconds: f64) {
        en: "no answer within {seconds} s";
        zh: "{seconds} 秒内没有响应";
    }

    /// A WebSocket is not wanted here.
    use_http(why: &str) {
        en: "steady-relay: use HTTP for this address: {why}\n";
        zh: "steady-relay：此地址请使用 HTTP：{why}\n";
    }

    /// Why.
    http_says_why() {
        en: "where this goes is not clear, and HTTP says what to do";
        zh: "无法确定发往哪里，改用 HTTP 会得到说明";
    }

    /// Why.
    websocket_refused() {
        en: "websocket = \"refuse\" is set";
        zh: "已设置 websocket = \"refuse\"";
    }

    /// Why.
    websocket_by_body() {
        en: "a [[route]] picks the upstream by the body";
        zh: "有 [[route]] 按请求体选择上游";
    }

    /// Why.
    websocket_without_room() {
        en: "bodies.total is less than limits.message";
        zh: "bodies.total 小于 limits.message";
    }

    /// Why.
    websocket_unspoken() {
        en: "the service speaks no WebSocket there";
        zh: "服务在该地址不支持 WebSocket";
    }

    /// Sessions are asked for in the wrong way.
    not_like_that() {
        en: "this cannot be asked for like that";
        zh: "不支持这种请求方法";
    }

    /// A relay without sessions.
    no_sessions() {
        en: "this relay has no local token, so it has no sessions";
        zh: "此中继没有本地令牌，因此没有会话";
    }

    /// What a proof takes.
    ask_with_nonce() {
        en: "ask with `?nonce=`, 16 to 64 letters and digits, at an address this relay listens on";
        zh: "请在此中继监听的地址上用 `?nonce=` 请求，值为 16 到 64 个字母和数字";
    }

    /// What follows `~` in a path is of no use. It may be a secret, so it is not repeated.
    odd_key() {
        en: "what follows `~` in the path is neither the key of a session nor the token of this relay, and goes no further: it may be a secret\nhint: take the whole address from `steady-relay run` or `steady-relay setup`; a relay without a `token` needs no /~TOKEN in it";
        zh: "路径中 `~` 之后的内容既不是会话密钥，也不是此中继的令牌；它可能是机密内容，因此不会转发\n提示：请使用 `steady-relay run` 或 `steady-relay setup` 给出的完整地址；没有设置 `token` 的中继不需要在地址中加 /~TOKEN";
    }

    /// The relay's own pages under a session's path.
    not_by_a_session() {
        en: "the key of a session leads to services, not to the relay's own pages\nhint: leave `/~KEY` out of the path";
        zh: "会话密钥只通向上游服务，不能访问中继自己的页面\n提示：请去掉路径中的 `/~KEY`";
    }

    /// There is none with this key.
    no_such_session() {
        en: "there is no such session";
        zh: "没有这个会话";
    }

    /// A session's description is too long.
    session_too_long(kibibytes: usize) {
        en: "a session is described in {kibibytes} KiB at most";
        zh: "会话的描述不得超过 {kibibytes} KiB";
    }

    /// Its body did not come whole.
    body_broke_off() {
        en: "the body broke off";
        zh: "请求体中途断开";
    }

    /// It did not come at all.
    body_late() {
        en: "the body did not come";
        zh: "没有收到请求体";
    }

    /// It is something else. `why` is what the parser says, in English.
    no_session_description(why: &str) {
        en: "the body is not the description of a session: {why}";
        zh: "请求体不是会话的描述：{why}";
    }

    /// No room for one more session.
    too_many_sessions(most: usize) {
        en: "{most} sessions are open, which is the limit\nhint: end some of the clients that were started with `run`";
        zh: "已有 {most} 个会话，达到上限\n提示：请结束一些用 `run` 启动的客户端";
    }

    /// A session of another time.
    session_version(theirs: u32, ours: u32) {
        en: "`v` is {theirs}, and this relay knows {ours}";
        zh: "`v` 为 {theirs}，而此中继只支持 {ours}";
    }

    /// Its upstreams have no names that can be used.
    session_names(most: usize, longest: usize) {
        en: "`upstreams` holds at most {most}, each with a name of its own of letters, digits, - and _, at most {longest} of them";
        zh: "`upstreams` 最多 {most} 项，名称各不相同，由字母、数字、- 和 _ 组成，最长 {longest} 个字符";
    }

    /// An address of its own is none. `why` ends the sentence.
    session_url(name: &str, why: &str) {
        en: "the url of the upstream `{name}` cannot be one: it {why}";
        zh: "上游 `{name}` 的 url 无法使用：{why}";
    }

    /// An upstream of its own is the relay.
    session_itself(name: &str) {
        en: "the upstream `{name}` is this relay itself";
        zh: "上游 `{name}` 就是此中继自身";
    }

    /// The system gives no random numbers.
    no_random() {
        en: "the system gives no random numbers for a key";
        zh: "系统没有提供生成密钥所需的随机数";
    }

    /// The port of metrics has nothing else.
    metrics_elsewhere() {
        en: "nothing here\nhint: metrics are at /metrics";
        zh: "这里没有内容\n提示：指标位于 /metrics";
    }

    /// Metrics cannot be written.
    metrics_only_read() {
        en: "metrics can only be read";
        zh: "指标只能读取";
    }
}
