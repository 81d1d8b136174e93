//! From facts to a verdict. Pure.
//!
//! What is wrong now on this machine and on the way comes first: it explains all else. Then the calls vote, the last ones
//! the loudest. Whether a want of capacity is that of a model or of the service, the other models tell.

use std::collections::{BTreeMap, BTreeSet};

use relay_core::Lang;

use super::evidence::{Evidence, Unseen};
use super::facts::{Facts, History};
use super::troubles::{Health, Trouble, times, troubles};
use super::votes::{self, Pages, Vote, cause_of, failures, is_served, went_well};
use super::{Cause, Verdict};
use crate::doctor::facts::{Answered, Asked, Here, Step};
use crate::doctor::judge::{FAR_OFF, upstream as told_of};
use crate::history::record::CallRecord;

/// A call that was served so many milliseconds ago shows that its upstream is reached, whatever we meet.
const FRESH: u64 = 3 * 60 * 1000;

/// The verdict on the facts; what of it is found elsewhere is in this language.
#[must_use]
pub fn judge(lang: Lang, facts: &Facts) -> Verdict {
    let judge = Judge { lang, facts };
    let mut verdict =
        judge.settings().or_else(|| judge.way()).or_else(|| judge.calls()).unwrap_or_else(|| judge.calm());
    judge.not_seen(&mut verdict);
    verdict
}

struct Judge<'a> {
    lang: Lang,
    facts: &'a Facts,
}

impl Judge<'_> {
    /// What keeps the relay itself from working.
    fn settings(&self) -> Option<Verdict> {
        let way = &self.facts.way;
        let mut evidence: Vec<_> =
            way.settings.errors.iter().map(|(what, _)| Evidence::Settings { found: what.clone() }).collect();
        let itself = |asked: &&Asked| matches!(&asked.answer, Err(why) if why.step == Step::Itself);
        evidence.extend(way.upstreams.iter().filter(itself).map(|asked| self.way_of(asked)));
        if let Some(proxy) = &way.own_proxy {
            let found = crate::words::doctor::proxy_itself(self.lang, proxy);
            evidence.push(Evidence::Settings { found: first_line(&found) });
        }
        // Who starts clients with `run` needs no port.
        if let (Here::Taken(holder), true) = (&way.here, self.facts.calls.is_empty()) {
            let who = holder.as_ref().map_or("?", |holder| &holder.name);
            let found = crate::words::diagnose::taken(self.lang, &way.at, who);
            evidence.push(Evidence::Settings { found });
        }
        (!evidence.is_empty()).then(|| Verdict { evidence, ..Verdict::of(Cause::RelaySettings) })
    }

    /// What is wrong now between this machine and the services.
    fn way(&self) -> Option<Verdict> {
        let asked = self.facts.way.upstreams.iter().filter(|asked| asked.is_used);
        let asked: Vec<_> = asked.filter(|asked| !self.is_fresh(asked)).collect();
        let ahead = self.ahead();
        let lost = |cause: Cause| {
            let votes = self.votes();
            votes.iter().any(|vote| vote.is_lost && vote.cause == cause)
        };
        let harmed = [Cause::CredentialRefused, Cause::InTheWay, Cause::Unreachable, Cause::Edge];
        let clock_harms = asked.iter().any(|asked| is_too_early(asked))
            || (ahead.is_some() && (self.facts.calls.is_empty() || harmed.into_iter().any(lost)));
        if clock_harms {
            let mut verdict = Verdict::of(Cause::ClockWrong);
            verdict.evidence.extend(ahead.map(|ahead| Evidence::Clock { ahead }));
            let failing = asked.iter().filter(|asked| asked.answer.is_err());
            verdict.evidence.extend(failing.map(|asked| self.way_of(asked)));
            verdict.evidence.extend(self.ended(None, None));
            return Some(verdict);
        }
        let worst = asked.iter().find_map(|asked| Some((asked, self.broken(asked)?)));
        let (asked, cause) = worst?;
        let mut verdict = Verdict { upstream: Some(asked.name.clone()), ..Verdict::of(cause) };
        verdict.evidence.push(self.way_of(asked));
        let votes = self.votes();
        let is_same = |vote: &&Vote<'_>| vote.cause == cause && vote.call.upstream == asked.name;
        let same: Vec<_> = votes.iter().filter(is_same).cloned().collect();
        verdict.evidence.extend(self.failed(&same, &asked.name, None));
        verdict.evidence.extend(self.ended(Some(&asked.name), None));
        let other_ways = self.facts.way.upstreams.iter().filter(|other| other.name != asked.name);
        verdict.evidence.extend(other_ways.filter(|other| other.is_used).map(|other| self.way_of(other)));
        Some(verdict)
    }

    /// What stands between us and an upstream, by what came of asking it.
    fn broken(&self, asked: &Asked) -> Option<Cause> {
        match &asked.answer {
            Err(why) => Some(match why.step {
                // It is the proxy that is not there.
                Step::Dns | Step::Connect if asked.via.is_some() => Cause::InTheWay,
                Step::Dns | Step::Connect | Step::Answer | Step::Itself => Cause::Unreachable,
                Step::Tls | Step::Certificate | Step::Proxy => Cause::InTheWay,
            }),
            // A portal answers everything with its page. A gateway may have one for what it does not know.
            Ok(Answered { status: 200..300 | 511, is_page: true, .. }) => {
                let answers = |call: &CallRecord| {
                    call.upstream == asked.name
                        && call.closed.as_ref().is_some_and(|closed| closed.tokens.is_some())
                };
                (!self.facts.calls.iter().any(answers)).then_some(Cause::Edge)
            }
            Ok(_) => None,
        }
    }

    /// What the calls say.
    fn calls(&self) -> Option<Verdict> {
        let votes = self.votes();
        let calls = &self.facts.calls;
        let mut live = troubles(&votes);
        live.retain(|trouble| !trouble.is_trifle() && !trouble.is_over(calls));
        let mut points: BTreeMap<(Cause, &str), f64> = BTreeMap::new();
        for trouble in &live {
            *points.entry((trouble.cause, trouble.upstream)).or_default() += trouble.points();
        }
        let all: f64 = points.values().sum();
        let (place, most) = points.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let (cause, upstream) = place;
        live.retain(|trouble| (trouble.cause, trouble.upstream) == place);
        let mut verdict = Verdict { upstream: Some(upstream.to_owned()), ..Verdict::of(cause) };
        // Of several models the one that fares worst, and not the one that is asked most.
        let weight = |trouble: &Trouble<'_>| trouble.points() * self.failing(trouble);
        let worst = live.iter().max_by(|one, other| weight(one).total_cmp(&weight(other)))?;
        verdict.model = worst.model.map(str::to_owned);
        if cause == Cause::ModelAtCapacity {
            self.whose_capacity(worst, &mut verdict);
        }
        let is_of_one = verdict.model.is_some();
        let mine = live.iter().filter(|trouble| !is_of_one || trouble.model == worst.model);
        let mine: Vec<_> = mine.flat_map(|trouble| trouble.votes.iter().cloned()).collect();
        verdict.is_sure = mine.len() > 1 && most >= all * 0.6;
        let is_clients = cause == Cause::ClientHangsUp;
        let name = |vote: &Vote<'_>| {
            if is_clients { vote.call.client.clone() } else { vote.call.profile.clone() }
        };
        let names: Vec<_> = mine.iter().map(name).collect();
        verdict.who = busiest(names.iter().map(String::as_str)).map(str::to_owned);
        self.speaks_for(&mine, &mut verdict);
        Some(verdict)
    }

    /// The share of the sends to the place of a trouble that failed.
    fn failing(&self, trouble: &Trouble<'_>) -> f64 {
        match self.failed(&trouble.votes, trouble.upstream, trouble.model) {
            Some(Evidence::Failed { failed, sends, .. }) => failed as f64 / sends.max(1) as f64,
            _ => 1.0,
        }
    }

    /// Whether a want of capacity is that of one model or of the service: by the other models where there are any, and
    /// else by what the service calls it.
    fn whose_capacity(&self, worst: &Trouble<'_>, verdict: &mut Verdict) {
        let (first, last) = times(&worst.votes);
        let pages = self.pages();
        let mut models: BTreeMap<&str, Health> = BTreeMap::new();
        for call in &self.facts.calls {
            let (opened, ended) = (call.opened, votes::ended(call, self.facts.now));
            // What went well before the trouble or after it says nothing.
            let then = ended.saturating_add(FRESH) >= first && opened <= last.saturating_add(FRESH);
            if let (true, true, Some(model)) = (call.upstream == worst.upstream, then, call.model.as_deref())
            {
                models.entry(model).or_default().add(call, &pages);
            }
        }
        models.retain(|_, health| health.calls > 0);
        let short = worst.model.and_then(|model| models.get(model).copied()).unwrap_or_default();
        let others = || models.iter().filter(|(name, _)| Some(**name) != worst.model);
        let well = others().any(|(_, health)| !health.is_short_like(&short) && health.well > 0);
        let both = others().any(|(_, health)| health.is_short_like(&short));
        let failed = worst.votes.iter().flat_map(|vote| failures(vote.call));
        let by_name = busiest(failed.map(|(_, failed)| failed.fault.as_str())) == Some("overloaded");
        if worst.model.is_none() || (!well && (both || by_name)) {
            verdict.cause = Cause::ServiceOverloaded;
            verdict.model = None;
        }
        if others().next().is_none() && worst.model.is_some() {
            verdict.unseen.push(Unseen::OtherModels(worst.upstream.to_owned()));
        }
        // A service that is short is shown by all its models.
        let named = verdict.model.clone();
        let shown = models.into_iter().filter(|(name, _)| named.as_deref() != Some(*name));
        verdict.evidence.extend(shown.map(|(name, Health { calls, well, .. })| Evidence::OtherModel {
            model: name.to_owned(),
            calls,
            well,
        }));
    }

    /// What speaks for the verdict, the strongest first.
    fn speaks_for(&self, mine: &[Vote<'_>], verdict: &mut Verdict) {
        let upstream = verdict.upstream.clone().unwrap_or_default();
        let special = if verdict.cause == Cause::ClientHangsUp {
            Some(hung_up(mine))
        } else if verdict.cause == Cause::RelayGivesUp {
            Some(gave_up(mine))
        } else if verdict.cause == Cause::RelayRefuses {
            let whys = mine.iter().filter_map(|vote| vote.call.closed.as_ref()?.why.as_deref());
            let why = busiest(whys).unwrap_or("may_have_run").to_owned();
            Some(Evidence::NotSentAgain { calls: mine.len() as u64, why })
        } else {
            None
        };
        let mut all: Vec<_> = special.into_iter().collect();
        // Where all that speaks for it is of one model, the others are left out of the count.
        let models: BTreeSet<_> = mine.iter().map(|vote| vote.call.model.as_deref()).collect();
        let model = models.first().copied().flatten().filter(|_| models.len() == 1);
        all.extend(self.failed(mine, &upstream, model));
        all.append(&mut verdict.evidence);
        let told =
            mine.iter().flat_map(|vote| failures(vote.call)).filter_map(|(_, failed)| failed.told).max();
        all.extend(told.map(|wait| Evidence::Told { wait }));
        all.extend(self.other_account(mine, &upstream));
        all.extend(self.ended(Some(&upstream), model));
        let ways = self.facts.way.upstreams.iter().filter(|asked| asked.name == upstream);
        all.extend(ways.map(|asked| self.way_of(asked)));
        all.extend(self.ahead().map(|ahead| Evidence::Clock { ahead }));
        if mine.len() == 1 {
            all.push(Evidence::OnlyFew { calls: 1 });
        }
        verdict.evidence = all;
    }

    /// The sends that failed, of all that went to the same place.
    fn failed(&self, mine: &[Vote<'_>], upstream: &str, model: Option<&str>) -> Option<Evidence> {
        let (mut counts, mut last) = (BTreeMap::new(), 0);
        let (mut failed, mut sends) = (0, 0);
        let pages = self.pages();
        let causes: BTreeSet<_> = mine
            .iter()
            .filter_map(|vote| {
                let (of, failed) = failures(vote.call).next_back()?;
                Some(cause_of(failed, of.status, pages.contains(&vote.call.upstream)))
            })
            .collect();
        let of_calls: BTreeSet<_> = mine.iter().map(|vote| (vote.call.run, vote.call.call)).collect();
        let there = |call: &&CallRecord| {
            call.upstream == upstream && (model.is_none() || call.model.as_deref() == model)
        };
        for call in self.facts.calls.iter().filter(there) {
            sends +=
                call.sends.iter().filter(|of| of.began.is_some()).count() as u64 + u64::from(call.left_out);
            if of_calls.contains(&(call.run, call.call)) {
                failed += u64::from(call.left_out);
            }
            for (of, why) in failures(call) {
                if !causes.contains(&cause_of(why, of.status, pages.contains(upstream))) {
                    continue;
                }
                failed += 1;
                last = last.max(call.opened.saturating_add(why.at));
                let (count, codes) = counts.entry(why.fault.as_str()).or_insert((0_u64, BTreeMap::new()));
                *count += 1;
                let status = of.status.map(|status| status.to_string());
                for code in status.into_iter().chain(why.code.clone()) {
                    *codes.entry(code).or_insert(0_u64) += 1;
                }
            }
        }
        // The codes are those of the fault that is named.
        let (fault, (_, codes)) = counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
        let mut codes: Vec<_> = codes.into_iter().collect();
        codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Some(Evidence::Failed {
            upstream: upstream.to_owned(),
            model: model.map(str::to_owned),
            fault: fault.to_owned(),
            failed,
            sends,
            codes: codes.into_iter().take(3).map(|(code, _)| code).collect(),
            last_ago: self.facts.now.saturating_sub(last),
        })
    }

    /// What became of calls with another credential at the same time.
    fn other_account(&self, mine: &[Vote<'_>], upstream: &str) -> Option<Evidence> {
        let lanes: BTreeSet<_> = mine.iter().map(|vote| vote.call.lane.as_str()).collect();
        let models: BTreeSet<_> = mine.iter().map(|vote| vote.call.model.as_deref()).collect();
        let (first, last) = times(mine);
        // The same model in another lane is another credential.
        let others = self.facts.calls.iter().filter(|call| {
            call.upstream == upstream
                && models.contains(&call.model.as_deref())
                && !lanes.contains(call.lane.as_str())
                && (first..=last).contains(&call.opened)
        });
        let (mut calls, mut well) = (0, 0);
        for call in others {
            calls += 1;
            well += u64::from(went_well(call));
        }
        (calls > 0).then_some(Evidence::OtherAccount { calls, well })
    }

    /// How calls ended, those to one upstream or to one of its models, or all.
    fn ended(&self, upstream: Option<&str>, model: Option<&str>) -> Option<Evidence> {
        let (mut calls, mut served, mut open) = (0, 0, 0);
        let is_there = |call: &&CallRecord| {
            upstream.is_none_or(|name| call.upstream == name)
                && (model.is_none() || call.model.as_deref() == model)
        };
        for call in self.facts.calls.iter().filter(is_there) {
            calls += 1;
            served += u64::from(is_served(call));
            open += u64::from(call.closed.is_none());
        }
        let (upstream, model) = (upstream.map(str::to_owned), model.map(str::to_owned));
        let lost = calls - served - open;
        (calls > 0).then_some(Evidence::Ended { upstream, model, calls, served, lost, open })
    }

    /// Nothing is wrong, or nobody can tell.
    fn calm(&self) -> Verdict {
        let calls = &self.facts.calls;
        if !calls.iter().any(|call| call.closed.is_some()) {
            let mut verdict = Verdict { is_sure: false, ..Verdict::of(Cause::TooLittle) };
            let since = self.facts.now.saturating_sub(self.facts.since);
            let last_ago = self.facts.before.map(|opened| self.facts.now.saturating_sub(opened));
            verdict.evidence.push(Evidence::NoCalls { since, last_ago });
            verdict.evidence.extend(self.ended(None, None));
            verdict.evidence.extend(self.used_ways());
            return verdict;
        }
        let mut verdict = Verdict { is_sure: calls.len() > 1, ..Verdict::of(Cause::NothingWrong) };
        verdict.evidence.extend(self.ended(None, None));
        for trouble in troubles(&self.votes()) {
            verdict.evidence.extend(self.failed(&trouble.votes, trouble.upstream, trouble.model));
            let calls = trouble.since(calls) as u64;
            if calls > 0 {
                let ago = self.facts.now.saturating_sub(times(&trouble.votes).1);
                verdict.evidence.push(Evidence::Over { cause: trouble.cause.name(), calls, ago });
            }
        }
        verdict.evidence.extend(self.used_ways());
        verdict.evidence.extend(self.ahead().map(|ahead| Evidence::Clock { ahead }));
        verdict
    }

    fn used_ways(&self) -> Vec<Evidence> {
        let used = self.facts.way.upstreams.iter().filter(|asked| asked.is_used);
        used.map(|asked| self.way_of(asked)).collect()
    }

    /// What was not looked at.
    fn not_seen(&self, verdict: &mut Verdict) {
        let (facts, unseen) = (self.facts, &mut verdict.unseen);
        unseen.push(Unseen::Earlier(facts.now.saturating_sub(facts.since)));
        match &facts.history {
            History::Read => {}
            History::Off => unseen.push(Unseen::NoHistory),
            History::Unreadable(why) => unseen.push(Unseen::History(first_line(why))),
        }
        if facts.more_calls > 0 {
            unseen.push(Unseen::MoreCalls(facts.more_calls as u64));
        }
        match &facts.way.here {
            Here::Relay(_) => {}
            Here::Locked => unseen.push(Unseen::Locked(facts.way.at.clone())),
            Here::Free | Here::Taken(_) | Here::Held(_) => unseen.push(Unseen::NoRelay(facts.way.at.clone())),
        }
        let asked: BTreeSet<_> = facts.way.upstreams.iter().map(|asked| asked.name.as_str()).collect();
        let called: BTreeSet<_> = facts.calls.iter().map(|call| call.upstream.as_str()).collect();
        unseen.extend(called.difference(&asked).map(|name| Unseen::Way((*name).to_owned())));
        if facts.way.more_upstreams > 0 {
            unseen.push(Unseen::MoreUpstreams(facts.way.more_upstreams as u64));
        }
        unseen.extend([Unseen::Models, Unseen::Clients]);
    }

    fn votes(&self) -> Vec<Vote<'_>> {
        votes::votes(&self.facts.calls, &self.pages(), self.facts.now)
    }

    /// The upstreams that answer with a web page, or ask for a browser check.
    fn pages(&self) -> Pages {
        let is_page = |asked: &&Asked| {
            asked.answer.as_ref().is_ok_and(|answered| answered.is_page || answered.is_challenge)
        };
        self.facts.way.upstreams.iter().filter(is_page).map(|asked| asked.name.clone()).collect()
    }

    /// Whether a call at this upstream was answered just now. Where a page answers us, only an answer with tokens is one.
    fn is_fresh(&self, asked: &Asked) -> bool {
        self.facts.calls.iter().any(|call| {
            let ended = votes::ended(call, self.facts.now);
            let has_tokens = call.closed.as_ref().is_some_and(|closed| closed.tokens.is_some());
            call.upstream == asked.name
                && self.facts.now.saturating_sub(ended) <= FRESH
                && is_served(call)
                && (asked.answer.is_err() || has_tokens)
        })
    }

    /// How far ahead this machine's clock is, where that is far.
    fn ahead(&self) -> Option<i64> {
        let all = self.facts.way.upstreams.iter().filter_map(|asked| asked.answer.as_ref().ok()?.ahead);
        all.min_by_key(|ahead| ahead.abs()).filter(|ahead| ahead.abs() >= FAR_OFF)
    }

    fn way_of(&self, asked: &Asked) -> Evidence {
        let found = told_of(self.lang, asked).pop().map(|finding| finding.what).unwrap_or_default();
        Evidence::Way { upstream: asked.name.clone(), reached: asked.answer.is_ok(), found }
    }
}

/// A certificate that begins only later is a sign of a clock that is behind.
fn is_too_early(asked: &Asked) -> bool {
    let detail = |words: &str| {
        let words = words.to_lowercase();
        words.contains("notvalidyet") || words.contains("not valid yet") || words.contains("not yet valid")
    };
    matches!(&asked.answer, Err(why) if why.step == Step::Certificate && detail(&why.detail))
}

fn first_line(words: &str) -> String {
    words.lines().next().unwrap_or_default().to_owned()
}

/// What occurs most often.
fn busiest<'a>(all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_insert(0_u64) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(one, _)| one)
}

fn hung_up(mine: &[Vote<'_>]) -> Evidence {
    let took = || mine.iter().filter_map(|vote| Some(vote.call.closed.as_ref()?.took));
    Evidence::HungUp {
        client: busiest(mine.iter().map(|vote| vote.call.client.as_str())).unwrap_or("other").to_owned(),
        calls: mine.len() as u64,
        least: took().min().unwrap_or(0),
        most: took().max().unwrap_or(0),
    }
}

fn gave_up(mine: &[Vote<'_>]) -> Evidence {
    let closed = || mine.iter().filter_map(|vote| vote.call.closed.as_ref());
    Evidence::GaveUp {
        calls: mine.len() as u64,
        why: busiest(closed().filter_map(|closed| closed.why.as_deref())).unwrap_or("sends_spent").to_owned(),
        sends: closed().map(|closed| u64::from(closed.sends)).max().unwrap_or(0),
        waited: closed().map(|closed| closed.waited).max().unwrap_or(0),
    }
}
