//! What is said about https and its certificates.

relay_core::words! {
    table TABLE "https";

    /// There is no state folder.
    no_folder() {
        en: "https needs a state folder for its keys, and nothing says where that is\nhint: name one with --state-dir";
        zh: "https 需要状态目录来保存密钥，但无法确定其位置\n提示：请用 --state-dir 指定";
    }

    /// A file cannot be read or written.
    file_failed(path: &str, why: &str) {
        en: "{path}: {why}\nhint: https keeps its keys there: see to its owner and mode, or name another folder with --state-dir";
        zh: "{path}：{why}\n提示：https 的密钥保存在此：请检查其所有者和权限，或用 --state-dir 指定其他目录";
    }

    /// A file holds something else than it should.
    damaged(path: &str, why: &str) {
        en: "{path} cannot be used: {why}\nhint: put the right file back, or make a new certificate, which clients have to trust anew: `steady-relay cert renew`";
        zh: "{path} 无法使用：{why}\n提示：请恢复正确的文件；或运行 `steady-relay cert renew` 生成新证书，客户端需重新信任";
    }

    /// The library refuses.
    library(why: &str) {
        en: "the certificate cannot be made: {why}\nhint: see whether each of `names` below [relay] is the name of a host";
        zh: "无法生成证书：{why}\n提示：请检查 [relay] 下的 `names` 是否都是主机名";
    }

    /// Nothing was made yet.
    none_yet(path: &str) {
        en: "there is no certificate at {path} yet\nhint: it is made when a relay starts with --tls, or by `steady-relay cert renew`";
        zh: "{path} 处尚无证书\n提示：以 --tls 启动中继时会生成，也可运行 `steady-relay cert renew`";
    }

    /// Names that the authority may not vouch for.
    names_refused(names: &str) {
        en: "the certificate does not hold for {names}, which was added to `names` later: `steady-relay cert renew` makes one that does, and clients have to trust it anew";
        zh: "证书不包含后来加入 `names` 的 {names}：请运行 `steady-relay cert renew` 重新生成，客户端需重新信任";
    }

    /// That https is spoken.
    also_https(url: &str) {
        en: "{url} is spoken on the same port; `steady-relay cert trust-help` says how clients trust it";
        zh: "同一端口也支持 {url}；运行 `steady-relay cert trust-help` 查看客户端如何信任它";
    }

    /// After `cert renew`.
    renewed(path: &str) {
        en: "made anew: {path}\nA relay that runs takes it on within a minute. Clients have to trust it anew: `steady-relay cert trust-help`.";
        zh: "已重新生成：{path}\n运行中的中继会在一分钟内采用。客户端需重新信任：`steady-relay cert trust-help`。";
    }

    /// A line of `cert show`.
    file(path: &str) {
        en: "file:         {path}";
        zh: "文件：        {path}";
    }

    /// A line of `cert show`.
    holds(from: &str, to: &str) {
        en: "holds:        {from} to {to}";
        zh: "有效期：      {from} 至 {to}";
    }

    /// A line of `cert show`.
    names(names: &str) {
        en: "only for:     {names}, and addresses";
        zh: "仅限：        {names}，以及 IP 地址";
    }

    /// A line of `cert show`.
    fingerprint(print: &str) {
        en: "SHA-256:      {print}";
        zh: "SHA-256 指纹：{print}";
    }

    /// The beginning of `cert trust-help`.
    help_title(path: &str) {
        en: "The certificate to trust: {path}\nOne client is enough in most cases: name the file in a variable of that client alone.";
        zh: "需要信任的证书：{path}\n多数情况下只需让某个客户端信任：用该客户端的环境变量指定此文件即可。";
    }

    /// A heading.
    help_clients() {
        en: "Clients";
        zh: "客户端";
    }

    /// A heading.
    help_systems() {
        en: "The whole system, for clients that ask it (needs the rights to change it)";
        zh: "整个系统（适用于使用系统证书的客户端，需要相应权限）";
    }

    /// Who it is for.
    python_sdks() {
        en: "Python SDKs (openai, anthropic, google-genai, ollama)";
        zh: "Python 版 SDK（openai、anthropic、google-genai、ollama）";
    }

    /// What to mind.
    python_note() {
        en: "it takes the place of the usual list, so use it for a client that talks to the relay alone; REQUESTS_CA_BUNDLE does not work for these";
        zh: "它会取代默认的证书列表，因此只用于仅与中继通信的客户端；REQUESTS_CA_BUNDLE 对这些 SDK 无效";
    }

    /// Who it is for.
    node_sdks() {
        en: "Node SDKs (openai, anthropic, google-genai, ollama), Claude Code, Gemini CLI";
        zh: "Node 版 SDK（openai、anthropic、google-genai、ollama），以及 Claude Code、Gemini CLI";
    }

    /// What to mind.
    node_note() {
        en: "it is added to the usual list; SSL_CERT_FILE works for Claude Code, and for the Node SDKs it does not";
        zh: "它会加入默认的证书列表；SSL_CERT_FILE 对 Claude Code 有效，对 Node SDK 无效";
    }

    /// Who it is for.
    requests_library() {
        en: "Python's requests";
        zh: "Python 的 requests";
    }

    /// Never.
    never_off() {
        en: "Do not turn checking off (NODE_TLS_REJECT_UNAUTHORIZED=0, verify=False): that holds for every address the client talks to.";
        zh: "请不要关闭证书校验（NODE_TLS_REJECT_UNAUTHORIZED=0、verify=False）：这会影响客户端访问的所有地址。";
    }

    /// A certificate that can only vouch for this machine.
    bounded() {
        en: "Whoever has its key, which lies beside it, can vouch for the names of `steady-relay cert show` and for addresses, and for no other name.";
        zh: "持有其密钥（位于同一目录）的人只能为 `steady-relay cert show` 所列名称和 IP 地址签发证书，无法冒充其他域名。";
    }

    /// What is wrong with a file.
    key_missing() {
        en: "it is not there, and its certificate is";
        zh: "文件不存在，而它的证书存在";
    }

    /// What is wrong with a file.
    has_ended() {
        en: "it has ended";
        zh: "已过期";
    }

    /// What is wrong with a file.
    no_pem() {
        en: "it is no PEM";
        zh: "不是 PEM 格式";
    }

    /// What is wrong with a file.
    no_private_key() {
        en: "it holds no private key";
        zh: "其中没有私钥";
    }

    /// What is wrong with a file.
    no_certificate() {
        en: "it holds no certificate that can be read";
        zh: "其中没有可读取的证书";
    }

    /// What is wrong with a file.
    no_authority() {
        en: "its certificate is not one of an authority";
        zh: "其中的证书不是 CA 证书";
    }

    /// What is wrong with a file.
    other_key() {
        en: "its certificate does not belong to the key beside it";
        zh: "其中的证书与同目录的密钥不匹配";
    }
}
