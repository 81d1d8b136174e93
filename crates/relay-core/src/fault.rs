//! What went wrong upstream. Data, not a Rust error: a fault is something the relay expects and decides about.

use crate::words::Lang;

/// What went wrong upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The model has no free place now; others may have. Heals in seconds to tens of seconds.
    AtCapacity,
    /// The whole service is short of capacity. Heals in seconds to minutes.
    Overloaded,
    /// The model is being loaded into memory: nobody is short of anything, and it heals in seconds to minutes.
    ModelLoading,
    /// This account asks too often; the service says, or should say, when to come back.
    Throttled,
    /// A quota, a balance or a plan's window is spent: minutes to days, and waiting in line does not help.
    QuotaSpent,
    /// The credential is missing, wrong or expired, or the account has no right to this.
    Authentication,
    /// The request itself is wrong; the same request will fail again.
    BadRequest,
    /// The request is too long for the model or for the service.
    TooLong,
    /// The request or its answer was refused for its content.
    ContentRefused,
    /// An edge in front of the service asks for a proof that a browser sits here.
    Challenge,
    /// The service failed in a way of its own.
    ServerFailed,
    /// The answer began and did not end as its protocol says it must.
    BrokenStream,
    /// A success without any content.
    EmptyAnswer,
    /// Nothing came within our time limit; the request is probably still running.
    NoAnswer,
    /// The request did not reach the service: it could not be looked up, connected to or handed over.
    NeverSent,
}

impl Fault {
    /// Every fault, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::AtCapacity,
        Self::Overloaded,
        Self::ModelLoading,
        Self::Throttled,
        Self::QuotaSpent,
        Self::Authentication,
        Self::BadRequest,
        Self::TooLong,
        Self::ContentRefused,
        Self::Challenge,
        Self::ServerFailed,
        Self::BrokenStream,
        Self::EmptyAnswer,
        Self::NoAnswer,
        Self::NeverSent,
    ];

    /// The name in logs, settings and events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtCapacity => "at_capacity",
            Self::Overloaded => "overloaded",
            Self::ModelLoading => "model_loading",
            Self::Throttled => "throttled",
            Self::QuotaSpent => "quota_spent",
            Self::Authentication => "authentication",
            Self::BadRequest => "bad_request",
            Self::TooLong => "too_long",
            Self::ContentRefused => "content_refused",
            Self::Challenge => "challenge",
            Self::ServerFailed => "server_failed",
            Self::BrokenStream => "broken_stream",
            Self::EmptyAnswer => "empty_answer",
            Self::NoAnswer => "no_answer",
            Self::NeverSent => "never_sent",
        }
    }

    /// What the fault means to a person, as part of a sentence ("could not answer (…)").
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::AtCapacity => "the model is at capacity",
            Self::Overloaded => "the service is overloaded",
            Self::ModelLoading => "the model is being loaded",
            Self::Throttled => "the account is being throttled",
            Self::QuotaSpent => "the quota or plan is spent",
            Self::Authentication => "the credential was not accepted",
            Self::BadRequest => "the request was not accepted",
            Self::TooLong => "the request is too long",
            Self::ContentRefused => "the content was refused",
            Self::Challenge => "the edge asks for a browser check",
            Self::ServerFailed => "the service failed",
            Self::BrokenStream => "the answer broke off",
            Self::EmptyAnswer => "the answer was empty",
            Self::NoAnswer => "no answer came in time",
            Self::NeverSent => "the service could not be reached",
        }
    }

    /// The same in this language.
    #[must_use]
    pub const fn meaning_in(self, lang: Lang) -> &'static str {
        match lang {
            Lang::English => self.meaning(),
            Lang::Chinese => match self {
                Self::AtCapacity => "模型容量已满",
                Self::Overloaded => "服务过载",
                Self::ModelLoading => "模型正在加载",
                Self::Throttled => "账号被限流",
                Self::QuotaSpent => "配额或套餐已用完",
                Self::Authentication => "凭据不被接受",
                Self::BadRequest => "请求不被接受",
                Self::TooLong => "请求过长",
                Self::ContentRefused => "内容被拒绝",
                Self::Challenge => "边缘节点要求浏览器验证",
                Self::ServerFailed => "服务出错",
                Self::BrokenStream => "响应中途断开",
                Self::EmptyAnswer => "响应为空",
                Self::NoAnswer => "未及时收到响应",
                Self::NeverSent => "无法连接到服务",
            },
        }
    }

    /// Whether the fault says that the service is short of capacity or wants fewer requests.
    #[must_use]
    pub const fn is_capacity(self) -> bool {
        match self {
            Self::AtCapacity | Self::Overloaded | Self::Throttled => true,
            Self::ModelLoading
            | Self::QuotaSpent
            | Self::Authentication
            | Self::BadRequest
            | Self::TooLong
            | Self::ContentRefused
            | Self::Challenge
            | Self::ServerFailed
            | Self::BrokenStream
            | Self::EmptyAnswer
            | Self::NoAnswer
            | Self::NeverSent => false,
        }
    }

    /// Whether the service asks for a wait: it cannot take the request now, and could later.
    #[must_use]
    pub const fn heals_by_waiting(self) -> bool {
        self.is_capacity() || matches!(self, Self::ModelLoading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_fault_has_a_name_and_a_meaning_of_its_own() {
        let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        let meanings: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.meaning()).collect();
        assert_eq!((names.len(), meanings.len()), (Fault::ALL.len(), Fault::ALL.len()));
        let meanings: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.meaning_in(Lang::Chinese)).collect();
        assert!(meanings.len() == Fault::ALL.len() && meanings.iter().all(|text| !text.is_ascii()));
    }
}
