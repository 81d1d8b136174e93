//! What a record says, as the values that the core decides about: the failure of a send by the present rules, the request,
//! and who asked.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use relay_core::budget::Spent;
use relay_core::call::Plan;
use relay_core::client::{Client, Kind};
use relay_core::config::{Config, ProfileChoice};
use relay_core::dialect::{self, Because, Reply, Rule};
use relay_core::event::Transport;
use relay_core::evidence::{Evidence, Nature, Operation};
use relay_core::failure::{Bar, Failure, Told};
use relay_core::retry_after::Advice;
use relay_core::wait;
use relay_core::{Dice, Fault, Moment, Profile};

use crate::history::record::{CallRecord, FailedRecord, SendRecord, WaitWhy};
use crate::profile;
use crate::wishes::Wishes;

/// What is known of a rule of the user's in a record.
const OWN: &str = "own rule: ";

fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, wanted: &str) -> Option<T> {
    all.iter().copied().find(|one| name(*one) == wanted)
}

/// How a call is bounded by the present settings. `None`: the record is not one that this program can read.
pub(super) fn plan(call: &CallRecord, config: &Config) -> Option<Plan> {
    let operations = [Operation::Generation, Operation::Pure, Operation::Other];
    let operation = named(&operations, Operation::name, &call.operation)?;
    let mut client = client(call, config)?;
    profile::limit(config, &mut client);
    let by = config.route(path(call), client.kind, call.model.as_deref());
    let wishes = Wishes { off: call.profile == "off", ..Wishes::default() };
    let (_, profile) = profile::of(config, by, &client, &wishes);
    let client_limit = profile::client_limit(&client);
    let max_running = by.and_then(|by| by.max_running);
    let max_running = max_running
        .or_else(|| config.upstreams.get(&call.upstream).and_then(|upstream| upstream.max_running));
    let cut = call.sends.first().and_then(|of| of.wait.as_ref()).filter(|wait| wait.why == WaitWhy::Cut);
    let not_before = cut.and_then(|wait| Some(Moment::ZERO + Duration::from_millis(wait.planned?)));
    Some(Plan {
        profile,
        nature: nature(call, operation),
        client_limit,
        before: before(call),
        not_before,
        places: operation == Operation::Generation && max_running.is_some(),
        notices: None,
    })
}

/// Who asked. A record names its kind alone: what such a client states and bears by default is taken for it.
fn client(call: &CallRecord, config: &Config) -> Option<Client> {
    let kind = named(&Kind::ALL, Kind::name, &call.client)?;
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: &'static str| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    };
    match kind {
        Kind::Codex => set("originator", "codex_cli_rs"),
        Kind::ClaudeCode => set("user-agent", "claude-cli/2"),
        Kind::Stainless => set("x-stainless-lang", "python"),
        Kind::GeminiCli => set("user-agent", "geminicli/0"),
        Kind::GoogleGenai => set("user-agent", "google-genai-sdk/1"),
        Kind::Ollama => set("user-agent", "ollama-python/0"),
        Kind::Other => {}
    }
    let mut client = Client::of(&headers);
    // The profile of those in front of which nobody sits, where no setting chose it.
    let is_automatic = config.profile == ProfileChoice::Auto;
    client.unattended = kind == Kind::Codex && call.profile == "patient" && is_automatic;
    if call.transport == Transport::WebSocket.name() {
        (client.limit, client.limit_in_company) = (None, None);
    } else {
        client.company = config.waiting.interim.filter(|_| kind.skips_interim() && call.profile != "off");
    }
    Some(client)
}

/// A path that its request may have had, for routes that name one.
fn path(call: &CallRecord) -> &'static str {
    match call.dialect.as_str() {
        "openai_responses" => "/v1/responses",
        "openai_chat" => "/v1/chat/completions",
        "anthropic" => "/v1/messages",
        "gemini" => "/v1beta/models",
        "ollama" => "/api/chat",
        _ => "/",
    }
}

/// What matters of the request. Where a failure went back that a whole request would have been sent again for, it was
/// not whole.
fn nature(call: &CallRecord, operation: Operation) -> Nature {
    let returned = call.closed.as_ref().is_some_and(|closed| closed.outcome == "returned");
    let last =
        call.sends.last().and_then(|of| of.failed.as_ref()).and_then(|failed| failed.evidence.as_deref());
    let was_granted = call.sends.iter().any(|of| of.may_run_twice);
    let ended_on = |evidence: Evidence| returned && last == Some(evidence.name());
    Nature {
        operation,
        self_contained: was_granted || !ended_on(Evidence::MaybeRan),
        kept: operation != Operation::Generation || !ended_on(Evidence::Refused),
    }
}

/// What earlier calls of the same client had spent. How they ended is not told, but by a call that had one send left.
fn before(call: &CallRecord) -> Spent {
    let closed = call.closed.as_ref();
    let spent =
        closed.is_some_and(|closed| closed.why.as_deref() == Some("sends_spent") && closed.sends <= 1);
    Spent {
        sends: call.inherited_sends,
        failed: call.inherited_failed,
        ambiguous: call.inherited_resends,
        gave_up: call.inherited_sends > 0 && spent,
        ..Spent::default()
    }
}

/// The failure of a send as it would be taken today: by the user's own rules that its status and code meet, by the ones
/// that ship where these two are all that they looked at, and else as it was recorded.
pub(super) fn failure(call: &CallRecord, of: &SendRecord, config: &Config) -> Option<Failure> {
    let failed = of.failed.as_ref()?;
    let fault = named(&Fault::ALL, Fault::name, &failed.fault)?;
    let evidence = match &failed.evidence {
        None => None,
        Some(name) => Some(named(&Evidence::ALL, Evidence::name, name)?),
    };
    let told = failed.told.map(Duration::from_millis);
    let rule = failed.rule.as_deref();
    let mut failure = Failure {
        fault,
        evidence,
        advice: told.map_or(Advice::Silent, Advice::Wait),
        told: match (rule, of.status) {
            (None, _) => Told::ByTransport,
            (Some(_), Some(200..300)) => Told::InStream,
            (Some(_), _) => Told::ByStatus,
        },
        status: of.status,
        by_code: rule.is_some_and(|rule| rule.contains('`')),
        code: failed.code.as_deref().map(Into::into),
        rule: rule.map(Into::into),
        ..Failure::of_transport(fault, evidence.unwrap_or(Evidence::Refused))
    };
    failure.evidence = evidence;
    failure.barred = barred(call, of);
    // No rule calls a refused credential a refusal: the relay had a newer one.
    let renewed = (fault, of.status, evidence) == (Fault::Authentication, Some(401), Some(Evidence::Refused));
    failure.renewed = renewed && rule.is_some_and(|rule| !rule.starts_with(OWN));
    if let Some(rule) = rule {
        by_rules(call, of, rule, config, &mut failure);
    }
    Some(failure)
}

/// Takes the failure as the present rules do.
fn by_rules(call: &CallRecord, of: &SendRecord, recorded: &str, config: &Config, failure: &mut Failure) {
    let Some(failed) = &of.failed else { return };
    let rules = config.rules_for(&call.dialect, &call.upstream);
    let (judged, because) = judged(call, of, failed, failure, &rules);
    let told = match failure.advice {
        Advice::Wait(told) => Some(told),
        Advice::Silent | Advice::Useless => None,
    };
    // One that looked at what a record does not hold is known by its name.
    let same = rules.iter().map(|rule| &**rule).find(|rule| format!("{OWN}{}", rule.sign) == recorded);
    let own = match &because {
        Because::Yours(rule) => same.or(Some(rule)),
        Because::Row(_) | Because::Challenge | Because::Status | Because::Nothing => same,
    };
    if let Some(Rule { fault, says, floor, sign, .. }) = own {
        let took = Duration::from_millis(failed.at.saturating_sub(of.began.unwrap_or(failed.at)));
        failure.evidence = says.after(took, told.is_some());
        (failure.fault, failure.by_code) = (*fault, sign.is_code());
        failure.advice = failure.advice.at_least(*floor);
        return;
    }
    let code = failed.code.as_deref();
    let is_all = match code {
        Some(code) => recorded == format!("code `{code}`"),
        None => recorded == "the status",
    };
    // A header of the answer may have changed what its fault says of execution, but not the fault.
    if recorded.starts_with(OWN) || (is_all && judged.fault != failure.fault) {
        (failure.fault, failure.evidence, failure.by_code) = (judged.fault, judged.evidence, judged.by_code);
    }
}

/// What an answer with this status and code would be taken for.
fn judged(
    call: &CallRecord,
    of: &SendRecord,
    failed: &FailedRecord,
    failure: &Failure,
    rules: &[Arc<Rule>],
) -> (Failure, Because) {
    let generic = || dialect::named("generic").unwrap_or(dialect::ALL[0]);
    let dialect = dialect::named(&call.dialect).unwrap_or_else(generic);
    let body = match &failed.code {
        Some(code) => serde_json::json!({ "error": { "type": code, "code": code } }).to_string(),
        None => String::new(),
    };
    let mut headers = HeaderMap::new();
    // A told time makes a late refusal one.
    if let Some(told) = failed.told
        && let Ok(value) = HeaderValue::from_str(&told.div_ceil(1000).to_string())
    {
        headers.insert(http::header::RETRY_AFTER, value);
    }
    let reply = Reply {
        told: failure.told,
        status: of.status.unwrap_or(200),
        headers: &headers,
        body: body.as_bytes(),
        took: Duration::from_millis(failed.at.saturating_sub(of.began.unwrap_or(failed.at))),
        wall: SystemTime::UNIX_EPOCH,
        rules,
    };
    dialect::judge_and_tell(dialect, &reply)
}

/// What stood in the way: it ended the call, and its last send met it.
fn barred(call: &CallRecord, of: &SendRecord) -> Option<Bar> {
    let closed =
        call.closed.as_ref().filter(|closed| closed.outcome == "refused" && closed.sends == of.send)?;
    match closed.why.as_deref() {
        Some("certificate") => Some(Bar::Certificate),
        Some("proxy") => Some(Bar::Proxy),
        Some("unfit") => Some(Bar::Unfit),
        Some("credential") => Some(Bar::Credential),
        _ => None,
    }
}

/// The steps that earlier calls of the same client had taken on its curve, which no record tells: as few as make the first
/// recorded wait fit.
pub(super) fn steps_before(call: &CallRecord, config: &Config, profile: &Profile) -> wait::Steps {
    let pairs = call.sends.iter().zip(call.sends.iter().skip(1));
    let first = pairs.into_iter().find_map(|(of, next)| {
        let wait = next.wait.as_ref().filter(|wait| !wait.why.is_in_line())?;
        Some((failure(call, of, config)?, wait.planned?))
    });
    let Some((failure, planned)) = first else { return wait::Steps::NONE };
    let mut steps = wait::Steps::NONE;
    for _earlier in 0..=call.inherited_sends.min(64) {
        let mut taken = steps;
        if share(planned, &failure, &mut taken, profile).is_some() {
            return steps;
        }
        steps = taken;
    }
    wait::Steps::NONE
}

/// Dice that fall the same every time.
struct All(f64);

impl Dice for All {
    fn share(&mut self) -> f64 {
        self.0
    }
}

/// The share of the jitter that makes a wait of so many milliseconds out of the next step; `None`: none does.
fn share(planned: u64, failure: &Failure, steps: &mut wait::Steps, profile: &Profile) -> Option<f64> {
    let mut most_steps = *steps;
    let least = wait::after(failure, steps, profile, &mut All(0.0));
    let most = wait::after(failure, &mut most_steps, profile, &mut All(1.0));
    let jitter = most.saturating_sub(least).as_secs_f64();
    // Recorded in whole milliseconds.
    let over = planned as f64 / 1000.0 - least.as_secs_f64();
    let fits = over >= -0.001 && over <= jitter + 0.001;
    fits.then(|| if jitter > 0.0 { (over / jitter).clamp(0.0, 1.0) } else { 0.0 })
}

/// How chance fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fell {
    /// So that it came to a wait of so many milliseconds.
    To(u64),
    /// So that the wait was as long as it can be.
    Badly,
    /// Nobody knows.
    Unknown,
}

/// Chance as it fell: where a recorded wait fits the present curve it comes out again, and elsewhere the dice are thrown.
pub(super) struct Fallen<'a> {
    dice: &'a mut dyn Dice,
    share: Option<f64>,
}

impl<'a> Fallen<'a> {
    /// For the wait after this failure; takes one step on its curve.
    pub(super) fn new(
        dice: &'a mut dyn Dice,
        fell: Fell,
        failure: &Failure,
        (steps, profile): (&mut wait::Steps, &Profile),
    ) -> Self {
        // The step is taken, whatever is known of the wait.
        let share = match fell {
            Fell::To(planned) => share(planned, failure, steps, profile),
            Fell::Badly | Fell::Unknown => {
                share(u64::MAX, failure, steps, profile).or_else(|| (fell == Fell::Badly).then_some(1.0))
            }
        };
        Self { dice, share }
    }
}

impl Dice for Fallen<'_> {
    fn share(&mut self) -> f64 {
        let thrown = self.dice.share();
        self.share.unwrap_or(thrown)
    }
}
