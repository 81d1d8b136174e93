//! Services of China: DeepSeek, Moonshot (Kimi), Zhipu (Z.AI), DashScope (Qwen), Volcengine Ark, MiniMax, SiliconFlow,
//! Baidu Qianfan.

use super::super::rule::{Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;

use Fault::{
    AtCapacity, Authentication, BadRequest, ContentRefused, Overloaded, QuotaSpent, ServerFailed, Throttled,
    TooLong,
};
use Says::{Failed, Final, MaybeRan, Refused};
use Statuses::{Any, Inside, MayHeal, RequestsFault, Unsettled};

const DEEPSEEK: &str = "DeepSeek API, error codes";
const MOONSHOT: &str = "Moonshot and Kimi Code, documentation and source";
const ZHIPU: &str = "Zhipu and Z.AI, error codes";
const DASHSCOPE: &str = "DashScope, error codes";
const VOLCENGINE: &str = "Volcengine Ark, error codes";
const MINIMAX: &str = "MiniMax, error codes";
const SILICONFLOW: &str = "SiliconFlow, documentation";
const BAIDU: &str = "Baidu Qianfan, error codes";
const WORDS: &str = "words of several services for being overloaded";

/// Zhipu's numbers mean something else at others, so they are looked for at their place.
const fn zhipu(code: &'static str, on: Statuses, fault: Fault, says: Says) -> Rule {
    Rule::path(["error.code", code], on, fault, says, ZHIPU)
}

/// MiniMax answers with 200 whatever happens.
const fn minimax(code: &'static str, fault: Fault, says: Says) -> Rule {
    Rule::path(["base_resp.status_code", code], Any, fault, says, MINIMAX)
}

/// SiliconFlow's stand at the top.
const fn siliconflow(code: &'static str, on: Statuses, fault: Fault, says: Says) -> Rule {
    Rule::path(["code", code], on, fault, says, SILICONFLOW)
}

pub(super) const RULES: &[Rule] = &[
    // DeepSeek has its type for a bad request on it.
    Rule::sentence("insufficient balance", Any, QuotaSpent, Final, DEEPSEEK),
    // Moonshot. The sentences are those of a plan's window, and come with the type of a throttle.
    Rule::sentence("reached your usage limit for this", Any, QuotaSpent, Final, MOONSHOT),
    Rule::code("rate_limit_reached_error", Unsettled, Throttled, Refused, MOONSHOT),
    Rule::code("exceeded_current_quota_error", Any, QuotaSpent, Final, MOONSHOT),
    Rule::code("engine_overloaded_error", Unsettled, Overloaded, Refused, MOONSHOT),
    // Zhipu.
    zhipu("1302", MayHeal, Throttled, Refused),
    zhipu("1303", MayHeal, Throttled, Refused),
    zhipu("1305", MayHeal, Overloaded, Refused),
    zhipu("1312", MayHeal, AtCapacity, Refused),
    zhipu("1304", MayHeal, QuotaSpent, Final),
    zhipu("1308", MayHeal, QuotaSpent, Final),
    zhipu("1310", MayHeal, QuotaSpent, Final),
    zhipu("1113", MayHeal, QuotaSpent, Final),
    zhipu("1309", MayHeal, QuotaSpent, Final),
    zhipu("1311", MayHeal, QuotaSpent, Final),
    zhipu("1313", MayHeal, QuotaSpent, Final),
    zhipu("1261", RequestsFault, TooLong, Final),
    zhipu("1301", RequestsFault, ContentRefused, Final),
    zhipu("1000", RequestsFault, Authentication, Final),
    zhipu("1001", RequestsFault, Authentication, Final),
    zhipu("1002", RequestsFault, Authentication, Final),
    zhipu("1003", RequestsFault, Authentication, Final),
    zhipu("1004", RequestsFault, Authentication, Final),
    zhipu("1234", MayHeal, ServerFailed, Failed),
    // DashScope. An "allocated quota" is one of tokens per minute, unless it is the free one.
    Rule::code("AllocationQuota.FreeTierOnly", Any, QuotaSpent, Final, DASHSCOPE),
    Rule::sentence("free allocated quota exceeded", Any, QuotaSpent, Final, DASHSCOPE),
    Rule::code("ServiceUnavailable.*", MayHeal, AtCapacity, Refused, DASHSCOPE),
    Rule::code("Throttling*", Unsettled, Throttled, Refused, DASHSCOPE),
    Rule::code("limit_requests", Unsettled, Throttled, Refused, DASHSCOPE),
    Rule::code("limit_burst_rate", Unsettled, Throttled, Refused, DASHSCOPE),
    Rule::phrase("allocated quota exceeded", MayHeal, Throttled, Refused, DASHSCOPE),
    Rule::phrase("exceeded your current requests", MayHeal, Throttled, Refused, DASHSCOPE),
    Rule::code("Arrearage", Any, QuotaSpent, Final, DASHSCOPE),
    Rule::code("data_inspection_failed", Any, ContentRefused, Final, DASHSCOPE),
    Rule::code("DataInspectionFailed", Any, ContentRefused, Final, DASHSCOPE),
    Rule::sentence("range of input length should be", RequestsFault, TooLong, Final, DASHSCOPE),
    Rule::sentence("throttled due to system capacity limits", MayHeal, AtCapacity, Refused, DASHSCOPE),
    Rule::code("InternalError*", Inside, ServerFailed, Failed, DASHSCOPE),
    Rule::code("ModelServingError", Inside, ServerFailed, Failed, DASHSCOPE),
    // Volcengine Ark.
    Rule::code("ServerOverloaded", Unsettled, Overloaded, Refused, VOLCENGINE),
    Rule::code("RateLimitExceeded.*", Unsettled, Throttled, Refused, VOLCENGINE),
    Rule::code("EndpointRPMExceeded", Unsettled, Throttled, Refused, VOLCENGINE),
    Rule::code("AccountRateLimitExceeded", Unsettled, Throttled, Refused, VOLCENGINE),
    Rule::code("RequestBurstTooFast", Unsettled, Throttled, Refused, VOLCENGINE),
    Rule::code("QuotaExceeded", Any, QuotaSpent, Final, VOLCENGINE),
    Rule::code("SetLimitExceeded", Any, QuotaSpent, Final, VOLCENGINE),
    Rule::code("AccountOverdueError", Any, QuotaSpent, Final, VOLCENGINE),
    Rule::code("InputTextRiskDetection", Any, ContentRefused, Final, VOLCENGINE),
    Rule::code("SensitiveContentDetected*", Any, ContentRefused, Final, VOLCENGINE),
    Rule::code("AccessDenied", Any, Authentication, Final, VOLCENGINE),
    Rule::code("ModelNotOpen", Any, BadRequest, Final, VOLCENGINE),
    // MiniMax.
    minimax("1002", Throttled, Refused),
    minimax("1039", Throttled, Refused),
    minimax("1041", Throttled, Refused),
    minimax("1000", ServerFailed, Failed),
    minimax("1001", ServerFailed, MaybeRan),
    minimax("1013", ServerFailed, Failed),
    minimax("1024", ServerFailed, Failed),
    minimax("1033", ServerFailed, Failed),
    minimax("1004", Authentication, Final),
    minimax("1008", QuotaSpent, Final),
    minimax("1026", ContentRefused, Final),
    minimax("1027", ContentRefused, Final),
    minimax("2013", BadRequest, Final),
    minimax("2056", QuotaSpent, Final),
    // SiliconFlow.
    siliconflow("50505", Unsettled, AtCapacity, Refused),
    siliconflow("50508", Unsettled, AtCapacity, Refused),
    siliconflow("20012", RequestsFault, BadRequest, Final),
    Rule::sentence("details: rpd limit reached", Any, QuotaSpent, Final, SILICONFLOW),
    Rule::sentence("details: tpd limit reached", Any, QuotaSpent, Final, SILICONFLOW),
    // Baidu Qianfan.
    Rule::code("RATE_LIMIT_*", Unsettled, Throttled, Refused, BAIDU),
    Rule::code("QUOTA_USER_DAILY_REQUEST", Any, QuotaSpent, Final, BAIDU),
    Rule::code("BILLING_*", Any, QuotaSpent, Final, BAIDU),
    Rule::code("tokens_too_long", Any, TooLong, Final, BAIDU),
    Rule::code("characters_too_long", Any, TooLong, Final, BAIDU),
    // Words, where there is no code.
    Rule::phrase("too busy", MayHeal, AtCapacity, Refused, WORDS),
    Rule::phrase("\u{8bbf}\u{95ee}\u{91cf}\u{8fc7}\u{5927}", MayHeal, Overloaded, Refused, WORDS),
    Rule::phrase("\u{7e41}\u{5fd9}", MayHeal, AtCapacity, Refused, WORDS),
    Rule::phrase("\u{8fc7}\u{8f7d}", MayHeal, Overloaded, Refused, WORDS),
];
