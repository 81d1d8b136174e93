//! What the demo says.

relay_core::words! {
    table TABLE "demo";

    /// What is about to happen.
    opening(faster: u32) {
        en: "A pretend model service that keeps running out of capacity, asked by the same\nclient twice at once: without the relay and with it. Time runs {faster} times faster;\n\"full\" marks an episode in which the service has next to no room.\n";
        zh: "模拟一个不断出现容量不足的模型服务，由同一个客户端同时以两种方式请求：\n直连，以及经过中继。时间加快到 {faster} 倍；\n“满载”表示服务几乎没有空位的时段。\n";
    }

    /// The name of the scene in which one call follows the other.
    dialogue() {
        en: "single dialogue";
        zh: "单个对话";
    }

    /// The name of the scene in which all come at once.
    batch() {
        en: "batch of 100";
        zh: "100 个一批";
    }

    /// The name of the scene with long answers.
    streams() {
        en: "long streams";
        zh: "长流式输出";
    }

    /// How far a scene is. The values have spaces behind them.
    progress(name: &str, without: &str, with: &str, end: &str) {
        en: "{name}without {without}with {with}{end}";
        zh: "{name}直连    {without}中继 {with}{end}";
    }

    /// The service is short of capacity.
    full() {
        en: "full";
        zh: "满载";
    }

    /// How long it took.
    took(seconds: &str) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// What came of one way.
    served(served: usize, calls: usize) {
        en: "{served} of {calls} served";
        zh: "完成 {served}/{calls}";
    }

    /// How far one way is, with failures.
    with_failed(done: &str, failed: usize) {
        en: "{done}, {failed} failed";
        zh: "{done}，{failed} 个失败";
    }

    /// How far one way is, with calls that wait.
    with_waiting(done: &str, waiting: usize) {
        en: "{done}, {waiting} waiting";
        zh: "{done}，{waiting} 个等待";
    }

    /// The heads of the columns, from the left; the first three stand over two each.
    heads() {
        en: "served|extra wait|sends per success|scene|calls|without|with|mean|longest";
        zh: "完成|额外等待|每次成功的发送数|场景|请求|直连|中继|平均|最长";
    }

    /// Some calls had no time.
    unfinished(count: usize) {
        en: "Calls cut off by the end of their scene, counted as not served: {count}";
        zh: "因场景结束而中断、计为未完成的请求：{count}";
    }

    /// The relay did harm.
    did_worse(scene: &str) {
        en: "The relay did worse than the client alone: {scene}";
        zh: "使用中继的结果比客户端单独运行差：{scene}";
    }

    /// What the table's waits are.
    extra_wait() {
        en: "Extra wait: of the calls served with the relay, from asking to being taken on.";
        zh: "额外等待：经中继完成的请求，从发出到被服务接收的时间。";
    }

    /// How long episodes are.
    episodes(from: usize, to: usize) {
        en: "{from} to {to} s";
        zh: "{from} 到 {to} 秒";
    }

    /// When the client tries again.
    retries(first: f64, second: f64) {
        en: "{first} s and {second} s";
        zh: "{first} 秒和 {second} 秒";
    }

    /// What is not real.
    simulated(slots: usize, episodes: &str, retries: &str) {
        en: "Simulated: a service with {slots} slots, of which other customers take next to all in\nepisodes of {episodes}, and which refuses with 503, with 529, in a 200 stream\nor with an error in a 200 body; and a client with the two retries of the usual\nSDKs, after {retries}. Both ways met the same episodes, at the same time.";
        zh: "模拟的部分：一个有 {slots} 个位置的服务，在持续 {episodes}的时段里几乎全被其他\n客户占用，此时以 503、529、200 流中的错误或 200 响应体中的错误拒绝请求；\n以及一个与常见 SDK 一样重试两次的客户端，分别在 {retries}后。\n两种方式同时遇到相同的时段。";
    }

    /// How often the relay sends at most.
    at_most(sends: u32) {
        en: "at most {sends} sends,";
        zh: "最多发送 {sends} 次，";
    }

    /// What is real. `sends` is empty or the message above.
    real(sends: &str, faster: u32) {
        en: "Real: the relay and its sockets, with its default profile: {sends}\nand calls that wait in line: few ask, the rest follows. All these times, and\nthe table's, went by {faster} times faster. Other services have other numbers.";
        zh: "真实的部分：中继及其套接字，使用默认策略：{sends}\n请求排队等待，少数先探路，其余随后。以上时间和表中的时间\n都加快到了 {faster} 倍。换作其他服务，数字会不同。";
    }

    /// How to see the same again.
    seed(seed: u64, took: &str) {
        en: "Seed {seed}; took {took} s.\nThe same seed is the same service, and not the same figures: sockets, timers\nand the chance in the relay's waits are real.";
        zh: "种子 {seed}；用时 {took} 秒。\n种子相同则服务相同，但数字不会完全一样：套接字、定时器\n和中继等待中的随机量都是真实的。";
    }

    /// What to do next.
    for_real() {
        en: "\nFor real:\n  steady-relay run -- codex     Codex, with a relay of its own\n  steady-relay run -- claude    Claude Code, likewise\n  steady-relay                  for every other client; point it there:\n                                OPENAI_BASE_URL=http://127.0.0.1:8787/v1\n                                ANTHROPIC_BASE_URL=http://127.0.0.1:8787\n";
        zh: "\n正式使用：\n  steady-relay run -- codex     启动 Codex，并为它单独运行一个中继\n  steady-relay run -- claude    Claude Code 同理\n  steady-relay                  供其他客户端使用；让客户端指向：\n                                OPENAI_BASE_URL=http://127.0.0.1:8787/v1\n                                ANTHROPIC_BASE_URL=http://127.0.0.1:8787\n";
    }

    /// It was interrupted.
    stopped() {
        en: "\nstopped";
        zh: "\n已停止";
    }

    /// It cannot be interrupted.
    deaf() {
        en: "\nerror: signals cannot be heard";
        zh: "\n错误：无法接收信号";
    }

    /// There is no demo.
    cannot_run(error: &str) {
        en: "error: the demo cannot run: {error}";
        zh: "错误：无法运行演示：{error}";
    }
}

/// The name of a scene.
#[must_use]
pub fn scene(lang: relay_core::Lang, id: &str, english: &'static str) -> String {
    match id {
        "dialogue" => dialogue(lang),
        "batch" => batch(lang),
        "streams" => streams(lang),
        _ => english.to_owned(),
    }
}
