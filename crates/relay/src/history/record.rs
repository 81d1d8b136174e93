//! One call as the history tells it: in its file, in the dashboard's stream and in `--json`, all with these names.

use serde::{Deserialize, Serialize};

/// The most sends of a call that are told one by one; those in the middle are left out of a longer one.
pub const MOST_SENDS: usize = 64;

/// What a call is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was accepted.
    Opening,
    /// A send is under way.
    Sending,
    /// It waits before its next send.
    Waiting,
    /// Its answer goes to the client.
    Streaming,
    /// It is over.
    Closed,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The number of the relay's run in the history; `None` where there is no history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// Its number within the run: `12` is `c12` in the log.
    pub call: u64,
    /// When it was accepted, in milliseconds since 1970.
    pub opened: u64,
    /// The client.
    pub client: String,
    /// The dialect.
    pub dialect: String,
    /// What the request does.
    pub operation: String,
    /// What it came by.
    pub transport: String,
    /// The upstream.
    pub upstream: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The profile.
    pub profile: String,
    /// The id of its lane.
    pub lane: String,
    /// The id that the client gave the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The pool that could serve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What bound it to one upstream of that pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// Sends of an earlier call of the same client that it goes on from.
    pub inherited_sends: u32,
    /// Sends of it that the upstream failed, which count for this one, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inherited_failed: u32,
    /// Resends of it of what may have run, which do as well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inherited_resends: u32,
    /// What it is doing.
    pub state: State,
    /// Its sends, the wait before each with it; a wait whose send has not come yet is the last.
    pub sends: Vec<SendRecord>,
    /// How many sends in the middle are not told, beyond [`MOST_SENDS`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// When the answer began to go to the client, in milliseconds since it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<u64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedRecord>,
}

impl CallRecord {
    /// The upstream and the model that it was for.
    #[must_use]
    pub fn first_at(&self) -> (&str, Option<&str>) {
        (&self.upstream, self.model.as_deref())
    }

    /// Those that had it at last: that served it, if any did.
    #[must_use]
    pub fn last_at(&self) -> (&str, Option<&str>) {
        self.sends.iter().fold(self.first_at(), |at, of| of.at(at))
    }
}

impl SendRecord {
    /// The upstream and the model that it was for, where those before it were for `before`.
    #[must_use]
    pub fn at<'a>(&'a self, before: (&'a str, Option<&'a str>)) -> (&'a str, Option<&'a str>) {
        let Some(moved) = &self.moved else { return before };
        (&moved.upstream, moved.model.as_deref().or(before.1))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One send and the wait before it. Times are milliseconds since the call was accepted, or spans of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SendRecord {
    /// Its number, from 1.
    pub send: u32,
    /// The wait before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitRecord>,
    /// When it began; `None`: it has not yet, or never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// It is the first that goes to another upstream than those before, or than was preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedRecord>,
    /// It may be the second to run, which was allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_run_twice: bool,
    /// How it went, where there are several ways and it was not simply the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<WayRecord>,
    /// When the head of its answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// The answer's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The id that the upstream gave the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRecord>,
}

/// How a call came to another upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedRecord {
    /// The upstream.
    pub upstream: String,
    /// The id of the lane there.
    pub lane: String,
    /// The model that is asked for there, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it left the one before.
    pub why: String,
}

/// The way of a send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayRecord {
    /// The proxy, or `direct`; `None`: none works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Those that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedRecord>,
}

/// A way that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedRecord {
    /// The proxy, or `direct`.
    pub by: String,
    /// What failed.
    pub why: String,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitRecord {
    /// Why it waited.
    pub why: WaitWhy,
    /// When it began.
    pub began: u64,
    /// How long it was to be, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// How long it was, where it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// How many calls waited in its lane when it entered the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// How often the client was shown that it is held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub notices: u32,
}

/// Where the length of a wait comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitWhy {
    /// The upstream asked for it.
    Told,
    /// The curve of the profile.
    Backoff,
    /// The line of its lane.
    Line,
    /// Its lane is parked: the quota is spent.
    Parked,
    /// The breaker of each upstream was open.
    Circuit,
    /// The relay's own credential was renewed.
    Credential,
    /// An earlier answer of the same turn was cut.
    Cut,
}

impl WaitWhy {
    /// Whether its lane says how long it is.
    #[must_use]
    pub const fn is_in_line(self) -> bool {
        matches!(self, Self::Line | Self::Parked | Self::Circuit | Self::Credential)
    }
}

/// A failed send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedRecord {
    /// When.
    pub at: u64,
    /// What went wrong.
    pub fault: String,
    /// What it says about execution; `None`: final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The structured code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Which rule found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How long the upstream asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
    /// The tokens it says were spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Those of the request, with what was read from a cache.
    pub input: u64,
    /// Those of them that were read from a cache.
    pub cached: u64,
    /// Those of the answer.
    pub output: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClosedRecord {
    /// How.
    pub outcome: String,
    /// Why, where the relay ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The status that the client got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How many sends it took.
    pub sends: u32,
    /// How long it waited between them.
    pub waited: u64,
    /// From accept to the end.
    pub took: u64,
    /// The last fault it met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<String>,
    /// Capacity faults that it met.
    pub capacity_faults: u32,
    /// Resends of what may have run.
    pub maybe_billed_twice: u32,
    /// The bytes of the request's body.
    pub received: u64,
    /// The bytes of the answer's body that went to the client.
    pub sent: u64,
    /// The tokens that the answer says it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}
