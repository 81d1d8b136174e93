//! What callers are told, beside what the core says.

relay_core::words! {
    table TABLE "layer";

    /// A send without an answer. `what` is what went wrong.
    failed(send: u32, what: &str, seconds: &str) {
        en: "send {send}: {what}, after {seconds} s";
        zh: "第 {send} 次发送：{what}，用时 {seconds} 秒";
    }

    /// A send that was answered. `said` is a status, and a code where there is one.
    failed_with(send: u32, said: &str, what: &str, seconds: &str) {
        en: "send {send}: answered {said} ({what}), after {seconds} s";
        zh: "第 {send} 次发送：返回 {said}（{what}），用时 {seconds} 秒";
    }

    /// The wait after a send; `told` is what became of it.
    then_waited(told: &str, seconds: &str) {
        en: "{told}; then a wait of {seconds} s";
        zh: "{told}；随后等待 {seconds} 秒";
    }

    /// What may have run and is not sent again.
    not_again(who: &str, what: &str, sends: &str, seconds: &str) {
        en: "{who} {what} ({sends}, {seconds} s); the request may have run, so it was not sent again.";
        zh: "{who} {what}（{sends}，{seconds} 秒）；请求可能已经执行，所以没有重新发送。";
    }

    /// What somebody said, behind what it was about.
    after_colon(said: &str) {
        en: ": {said}";
        zh: "：{said}";
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_is_said_in_both_languages() {
        assert_eq!(super::TABLE.flaws(), [""; 0]);
    }
}
