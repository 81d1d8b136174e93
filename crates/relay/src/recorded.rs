//! `steady-relay config test-rule FILE`: what a recorded answer would be taken for, and what would be done about it.
//!
//! It asks the very listener that listens to live answers, byte by byte; nothing is decided here. A file is an answer
//! as it came (status line, headers, blank line, body), such as `curl -i` prints, or a body alone. Lines that begin
//! with `#` may stand before it; one of them may tell of the request:
//!
//! ```text
//! # request: POST /v1beta/models/gemini-3-pro:streamGenerateContent
//! HTTP/1.1 503 Service Unavailable
//! content-type: application/json
//!
//! {"error":{"code":503,"status":"UNAVAILABLE"}}
//! ```

mod file;

pub use file::LONGEST;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use relay_core::config::{Config, ProfileChoice};
use relay_core::decide::{Right, right};
use relay_core::dialect::{self, Because};
use relay_core::evidence::{Evidence, Nature, Operation, PROMPT};
use relay_core::failure::{Failure, Told};
use relay_core::moment::Moment;
use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};
use relay_core::redact::in_one_line;
use relay_core::retry_after::Advice;
use relay_core::units::show_duration;
use relay_core::wait::floor;
use relay_core::{Lang, Profile};
use serde_json::{Value, json};

use crate::profile::{ATTENDED_CODEX, changed};
use crate::settings::own_rule;
use crate::terminal::padded;
use crate::words::{lang, rule, settings};

/// What is asked on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct TestRule {
    /// The recorded answer: as `curl -i` prints it, or a body alone
    pub file: PathBuf,
    /// The status, where the file is a body alone [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub status: Option<u16>,
    /// The dialect of the request, where the file does not tell
    #[arg(long, value_name = "NAME", value_parser = dialect::ALL.map(dialect::Dialect::name))]
    pub dialect: Option<String>,
    /// The `[upstream.NAME]` that answered, for rules that are about one
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Why a file is no recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", rule::unreadable(lang(), &settings::said(lang(), what), &settings::said(lang(), hint)))]
pub struct Unreadable {
    what: String,
    hint: String,
}

/// What an answer would be taken for.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The name of the dialect in which it was heard.
    pub dialect: &'static str,
    /// The status.
    pub status: u16,
    /// The verdict.
    pub verdict: Taken,
    /// What neither the file nor the command line said and was assumed, a sentence each.
    pub assumed: Vec<String>,
}

/// The verdict on an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// An answer: it is the client's from the byte at this offset of its body on.
    Answer {
        /// How many bytes are held before.
        commits_at: usize,
        /// Whether its last word is missing.
        breaks_off: bool,
    },
    /// A failure, of which nothing has reached the client.
    Failure(Box<Finding>),
}

/// A failure, prompt and late.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// If it comes within [`PROMPT`].
    pub prompt: Failure,
    /// If it comes later.
    pub late: Failure,
    /// Why; `None` where no answer told of it.
    pub because: Option<Because>,
    /// Where the user's own rule stands that is the reason: `config.toml:12`.
    pub rule_at: Option<String>,
    /// Who bears the wait that the answer asks for.
    pub patience: Patience,
}

/// Which profiles bear a wait: one that is longer than the patience is not waited for, and the answer goes back at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// The profile of the settings; for `auto` the one that it takes where nothing is known of the client.
    pub profile: String,
    /// How long that one waits.
    pub longest: Duration,
    /// Whether it bears the wait.
    pub bears: bool,
    /// All profiles that do, and how long each waits.
    pub borne_by: Vec<(String, Duration)>,
}

impl Patience {
    fn of(config: &Config, advice: Advice) -> Self {
        let auto = config.profile == ProfileChoice::Auto;
        let profile = if auto { "interactive" } else { config.profile.name() };
        let mut all: Vec<_> = config
            .profiles
            .iter()
            .map(|(name, profile)| (name.clone(), changed(&config.numbers, profile.clone())))
            .collect();
        let longest = |name: &str, all: &[(String, Profile)]| {
            all.iter().find(|(its, _)| its == name).map_or(Duration::ZERO, |(_, profile)| profile.patience)
        };
        let own = longest(profile, &all);
        if let Some(codex) =
            auto.then(|| Profile { patience: own.max(ATTENDED_CODEX), ..Profile::interactive() })
        {
            all.push(("auto with Codex".to_owned(), codex));
        }
        let bears = |profile: &Profile| floor(advice, profile) <= profile.patience;
        let borne_by: Vec<_> = all
            .into_iter()
            .filter(|(_, profile)| bears(profile))
            .map(|(name, profile)| (name, profile.patience))
            .collect();
        Self {
            profile: profile.to_owned(),
            longest: own,
            bears: borne_by.iter().any(|(name, _)| name == profile),
            borne_by,
        }
    }
}

/// What a recorded answer would be taken for under these settings, at this time of day.
///
/// # Errors
/// Where the file, or what was said of it, is no answer.
pub fn test_rule(
    file: &[u8],
    asked: &TestRule,
    config: &Config,
    wall: SystemTime,
) -> Result<Report, Unreadable> {
    let (recorded, assumed) = file::read(file, asked)?;
    if let Some(from) = asked.from.as_deref().filter(|from| !config.upstreams.contains_key(*from)) {
        let names = config.upstreams.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let what = format!("the settings have no [upstream.{}]", from.escape_default());
        return Err(Unreadable::new(what, format!("`--from` takes one of: {names}")));
    }
    let rules = config.rules_for(recorded.route.dialect.name(), asked.from.as_deref().unwrap_or(""));
    let listen = |took: Duration| {
        let (sent, arrived) = (Moment::ZERO, Moment::ZERO + took);
        let head = Head {
            status: recorded.status,
            headers: recorded.headers.clone(),
            bodiless: false,
            sent,
            arrived,
        };
        let hold = Hold { bytes: usize::try_from(config.hold.bytes).unwrap_or(usize::MAX), time: None };
        let asked = Asked {
            dialect: recorded.route.dialect,
            generation: recorded.route.operation == Operation::Generation,
            streams: recorded.streams,
            hold,
            withhold: &[],
        };
        heard(Preamble::new(asked, head, wall).by(rules.clone()), &recorded.body, arrived)
    };
    let (prompt, because, commits_at) = listen(Duration::ZERO);
    let (late, _, _) = listen(PROMPT + Duration::from_secs(1));
    let verdict = match (prompt, late, commits_at) {
        (Verdict::Fault(prompt), Verdict::Fault(late), None) => {
            let patience = Patience::of(config, prompt.advice);
            Taken::Failure(Box::new(Finding {
                prompt: *prompt,
                late: *late,
                because,
                rule_at: None,
                patience,
            }))
        }
        (verdict, _, commits_at) => Taken::Answer {
            commits_at: commits_at.unwrap_or(recorded.body.len()),
            breaks_off: matches!(verdict, Verdict::Fault(_)),
        },
    };
    let (dialect, status) = (recorded.route.dialect.name(), recorded.status.as_u16());
    Ok(Report { dialect, status, verdict, assumed })
}

/// The last verdict, why, and how many bytes had come when the answer was committed.
fn heard(mut listener: Preamble, body: &[u8], now: Moment) -> (Verdict, Option<Because>, Option<usize>) {
    let mut verdict = listener.at_head();
    let mut commits_at = (verdict == Verdict::Pass).then_some(0);
    for (index, byte) in body.iter().enumerate() {
        if matches!(verdict, Verdict::Fault(_) | Verdict::Cut { .. }) {
            break;
        }
        verdict = listener.hear(std::slice::from_ref(byte), 1, now);
        if verdict == Verdict::Pass {
            commits_at.get_or_insert(index + 1);
        }
    }
    if matches!(verdict, Verdict::Hold | Verdict::Pass) {
        verdict = listener.ended();
        if verdict == Verdict::Pass {
            commits_at.get_or_insert(body.len());
        }
    }
    (verdict, listener.because().cloned(), commits_at)
}

impl Report {
    /// Names the place of the user's own rule, where one is the reason: `places` are those of all, in the order of the
    /// file.
    pub fn name_rule(&mut self, places: &[String]) {
        let Taken::Failure(finding) = &mut self.verdict else { return };
        if let Some(Because::Yours(rule)) = &finding.because {
            let at = places.iter().enumerate().find(|(nth, _)| *rule.source == own_rule(nth + 1));
            finding.rule_at = at.map(|(_, place)| place.clone());
        }
    }

    /// The whole report in one line: fault, evidence and told wait, or where the answer is committed.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.verdict {
            Taken::Answer { commits_at, breaks_off } => {
                format!("commits at {commits_at}{}", if *breaks_off { ", breaks off" } else { "" })
            }
            Taken::Failure(finding) => format!(
                "{}, {}, {}",
                finding.prompt.fault.name(),
                finding.grade(),
                match finding.prompt.advice {
                    Advice::Silent => "-".to_owned(),
                    Advice::Useless => "useless".to_owned(),
                    Advice::Wait(told) => format!("{told:?}"),
                }
            ),
        }
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let verdict = match &self.verdict {
            Taken::Answer { commits_at, breaks_off } => {
                json!({ "answer": { "commits_at": commits_at, "breaks_off": breaks_off } })
            }
            Taken::Failure(finding) => {
                let evidence = |failure: &Failure| failure.evidence.map_or("final", Evidence::name);
                let told = match finding.prompt.advice {
                    Advice::Wait(told) => json!(told.as_secs_f64()),
                    Advice::Silent => Value::Null,
                    Advice::Useless => json!("useless"),
                };
                let actions: serde_json::Map<_, _> = finding
                    .actions()
                    .map(|(asked, prompt, late)| {
                        (asked.to_owned(), json!({ "prompt": in_a_word(prompt), "late": in_a_word(late) }))
                    })
                    .into_iter()
                    .collect();
                let (sign, source) = finding.reason(Lang::English);
                json!({ "failure": {
                    "fault": finding.prompt.fault.name(),
                    "told": told_where(Lang::English, &finding.prompt),
                    "code": finding.prompt.code,
                    "evidence": { "prompt": evidence(&finding.prompt), "late": evidence(&finding.late) },
                    "told_wait": told,
                    "rule": { "sign": sign, "source": source, "at": finding.rule_at },
                    "patience": {
                        "profile": finding.patience.profile,
                        "longest": finding.patience.longest.as_secs_f64(),
                        "bears": finding.patience.bears,
                        "borne_by": finding.patience.borne_by.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                    },
                    "resend": actions,
                } })
            }
        };
        let mut report =
            json!({ "v": 1, "dialect": self.dialect, "status": self.status, "assumed": self.assumed });
        if let (Some(report), Value::Object(verdict)) = (report.as_object_mut(), verdict) {
            report.extend(verdict);
        }
        report
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.told(lang()))
    }
}

impl Report {
    /// For people.
    fn told(&self, lang: Lang) -> String {
        let Self { dialect, status, verdict, assumed: _ } = self;
        let heads = rule::heads(lang);
        let mut heads = heads.split('|').map(|head| padded(head, COLUMN));
        let [taken_for, held, because, evidence, wait, words] =
            std::array::from_fn(|_nth| heads.next().unwrap_or_default());
        let finding = match verdict {
            Taken::Answer { commits_at, breaks_off } => {
                let end = if *breaks_off { rule::broken(lang) } else { rule::whole(lang) };
                let (answer, told) =
                    (rule::answer(lang, *status, dialect), rule::held(lang, *commits_at, &end));
                return format!("{taken_for}{answer}\n{held}{told}");
            }
            Taken::Failure(finding) => finding,
        };
        let fault = finding.prompt.fault;
        let how = rule::heard(lang, *status, dialect, &told_where(lang, &finding.prompt));
        let mut lines = vec![
            taken_for + &rule::failure(lang, fault.name(), fault.meaning_in(lang), &how),
            because + &finding.reason_in_words(lang),
            evidence + &finding.evidence_in_words(lang),
            wait + &finding.wait_in_words(lang),
        ];
        let message = finding.prompt.message.as_deref();
        lines.extend(message.map(|message| words + &in_one_line(message, 200)));
        let bears = finding.patience.bears;
        for (asked, prompt, late) in finding.actions() {
            let (prompt, late) = (in_words(lang, prompt, bears), in_words(lang, late, bears));
            let late = if late == prompt { String::new() } else { rule::if_late(lang, &late) };
            lines.push(format!("{}{prompt}{late}", padded(asked, COLUMN)));
        }
        lines.join("\n")
    }
}

/// How wide the first column of the report is.
const COLUMN: usize = 11;

impl Finding {
    /// Evidence of a prompt and of a late answer, in a word.
    fn grade(&self) -> &'static str {
        match (self.prompt.evidence, self.late.evidence) {
            (None, _) => "final",
            (Some(Evidence::Refused), Some(Evidence::MaybeRan)) => "refused if prompt",
            (Some(Evidence::MaybeRan), _) => "maybe ran",
            (Some(evidence), _) => evidence.name(),
        }
    }

    fn evidence_in_words(&self, lang: Lang) -> String {
        let name = |failure: &Failure| failure.evidence.map_or("final", Evidence::name);
        let (prompt, late) = (name(&self.prompt), name(&self.late));
        if prompt == late { prompt.to_owned() } else { rule::evidence(lang, prompt, late, PROMPT.as_secs()) }
    }

    /// The sign, and whose it is.
    fn reason_in_words(&self, lang: Lang) -> String {
        let (sign, source) = self.reason(lang);
        sign + &match (&self.because, source, &self.rule_at) {
            (Some(Because::Yours(_)), Some(own), Some(at)) => rule::by_own(lang, &format!("{own} ({at})")),
            (Some(Because::Yours(_)), Some(own), None) => rule::by_own(lang, own),
            (_, Some(from), _) => format!(" [{from}]"),
            (_, None, _) => String::new(),
        }
    }

    /// The wait that the answer asks for, and what comes of it.
    fn wait_in_words(&self, lang: Lang) -> String {
        let is_sent_again =
            self.actions().iter().any(|(_, prompt, late)| [*prompt, *late] != [Right::Never; 2]);
        let words = match self.prompt.advice {
            Advice::Silent if is_sent_again => rule::no_wait_but_curve(lang),
            Advice::Silent => rule::no_wait(lang),
            Advice::Useless if is_sent_again => rule::useless_wait_but_curve(lang),
            Advice::Useless => rule::useless_wait(lang),
            Advice::Wait(told) => rule::wait(lang, &show_duration(told)),
        };
        if !is_sent_again {
            return rule::nothing_again(lang, &words);
        }
        let Patience { profile, longest, bears, borne_by } = &self.patience;
        if *bears {
            return words;
        }
        let in_words = |(name, longest): &(String, Duration)| format!("{name} ({})", show_duration(*longest));
        let who = match borne_by.as_slice() {
            [] => rule::no_profile(lang),
            some => rule::profiles(lang, &some.iter().map(in_words).collect::<Vec<_>>().join(", ")),
        };
        rule::too_long(lang, &words, profile, &show_duration(*longest), &who)
    }

    /// The sign and its source.
    fn reason(&self, lang: Lang) -> (String, Option<&str>) {
        match &self.because {
            Some(Because::Yours(rule) | Because::Row(rule)) => (rule.sign.to_string(), Some(&rule.source)),
            Some(Because::Challenge) => (rule::challenge(lang), None),
            Some(Because::Status) => (rule::status_alone(lang), None),
            Some(Because::Nothing) => (rule::no_rule(lang), None),
            None => (rule::shape(lang), None),
        }
    }

    /// What would be done for each kind of request, after a prompt and after a late answer.
    fn actions(&self) -> [(&'static str, Right, Right); 4] {
        let nature = |operation, self_contained| Nature { operation, self_contained, kept: true };
        let by = |failure: &Failure, nature: &Nature| {
            failure.evidence.map_or(Right::Never, |evidence| right(evidence, nature, failure))
        };
        [
            ("generation", nature(Operation::Generation, true)),
            ("stateful", nature(Operation::Generation, false)),
            ("pure", nature(Operation::Pure, true)),
            ("other", nature(Operation::Other, true)),
        ]
        .map(|(asked, nature)| (asked, by(&self.prompt, &nature), by(&self.late, &nature)))
    }
}

/// `bears`: whether the profile bears the wait.
fn in_words(lang: Lang, right: Right, bears: bool) -> String {
    match right {
        Right::Free | Right::Failed | Right::Grant if !bears => rule::not_so_long(lang),
        Right::Free => rule::again(lang),
        Right::Failed => rule::again_few(lang),
        Right::Grant => rule::again_by_grant(lang),
        Right::Never => rule::never(lang),
    }
}

const fn in_a_word(right: Right) -> &'static str {
    match right {
        Right::Free => "free",
        Right::Failed => "failed_send",
        Right::Grant => "grant",
        Right::Never => "never",
    }
}

fn told_where(lang: Lang, failure: &Failure) -> String {
    match failure.told {
        Told::ByStatus => rule::by_status(lang),
        Told::InBody => rule::in_body(lang),
        Told::InStream => rule::in_stream(lang),
        Told::ByTransport => rule::by_end(lang),
    }
}

#[cfg(test)]
mod tests;
