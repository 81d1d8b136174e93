//! What `selftest` says.

relay_core::words! {
    table TABLE "selftest";

    /// The service is in this process.
    opening_pretend() {
        en: "Self-test: a request through a relay to a pretend service on this machine";
        zh: "自检：经中继向本机的模拟服务发送一次请求";
    }

    /// The service is a real one.
    opening(service: &str) {
        en: "Self-test: a request through a relay to {service}";
        zh: "自检：经中继向 {service} 发送一次请求";
    }

    /// Before it is asked.
    asks(service: &str) {
        en: "steady-relay: this asks {service}, which costs nothing";
        zh: "steady-relay：即将请求 {service}，不产生费用";
    }

    /// The same, for a model.
    asks_for_money(service: &str) {
        en: "steady-relay: this asks {service} for a few words, which may cost a fraction of a cent";
        zh: "steady-relay：即将请求 {service} 生成几个字，可能产生极少费用";
    }

    /// Nobody has a key for it.
    no_key() {
        en: "steady-relay: no key for it was found, so it is asked without one";
        zh: "steady-relay：没有找到它的密钥，将不带密钥请求";
    }

    /// A row: what was asked, and the status.
    request() {
        en: "request";
        zh: "请求";
    }

    /// A row: the proxy on the way.
    proxy() {
        en: "proxy";
        zh: "代理";
    }

    /// A row: the look-up.
    dns() {
        en: "name";
        zh: "域名解析";
    }

    /// A row: the connection.
    connect() {
        en: "connection";
        zh: "建立连接";
    }

    /// A row: TLS.
    tls() {
        en: "TLS";
        zh: "TLS 握手";
    }

    /// A row: the first byte of the answer.
    first_byte() {
        en: "first byte";
        zh: "首字节";
    }

    /// A row: the whole answer.
    total() {
        en: "total";
        zh: "总计";
    }

    /// A row: the relay's own time before it sends.
    before_send() {
        en: "relay, before send";
        zh: "中继发送前";
    }

    /// A row: what the relay adds.
    added() {
        en: "relay adds";
        zh: "中继增加";
    }

    /// A row: how a stream came.
    stream() {
        en: "stream";
        zh: "流式输出";
    }

    /// As it was sent.
    in_pieces() {
        en: "came piece by piece";
        zh: "逐段到达";
    }

    /// All at once.
    in_one() {
        en: "came all at once";
        zh: "一次性到达";
    }

    /// It works.
    good() {
        en: "ok: a request goes through";
        zh: "正常：请求可以通过";
    }

    /// It works as far as it can without a key.
    wants_key() {
        en: "ok: the service is reached; it wants a key, and none was sent";
        zh: "正常：可以连接该服务；它要求密钥，而这次没有发送";
    }

    /// It does not.
    bad(code: u64) {
        en: "failed (exit code {code}): `steady-relay doctor` looks for the reason";
        zh: "失败（退出码 {code}）：用 `steady-relay doctor` 查找原因";
    }

    /// There is no such upstream.
    unknown(name: &str, known: &str) {
        en: "there is no upstream `{name}`\nhint: name a URL, or one of {known}";
        zh: "没有名为 `{name}` 的上游\n提示：给出 URL，或下列之一：{known}";
    }

    /// None is named.
    no_upstream() {
        en: "there is no upstream";
        zh: "没有上游";
    }
}
