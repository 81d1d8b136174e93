//! What is said about the collector of traces and metrics.

relay_core::words! {
    table TABLE "otlp";

    /// The collector takes nothing for now; `why` is the system's or one of those below.
    not_sent(at: &str, why: &str) {
        en: "traces and metrics do not reach {at}: {why}; calls go on as ever";
        zh: "追踪和指标无法送达 {at}：{why}；请求照常转发";
    }

    /// It takes them again.
    sent_again(at: &str) {
        en: "traces and metrics reach {at} again";
        zh: "追踪和指标又可以送达 {at}";
    }

    /// Some were not sent.
    lost(count: u64) {
        en: "{count} events or spans were left out of the traces: there was no room for them, or the collector did not take them";
        zh: "追踪中遗漏了 {count} 个事件或跨度：缓冲已满，或收集器没有接收";
    }
}
