//! What a request is: who asks, what it does, by which settings it goes, and what its call starts from.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Version};
use relay_core::Moment;
use relay_core::bound::{Bound, without_own_query};
use relay_core::budget::Spent;
use relay_core::call::{Call, Plan};
use relay_core::client::{Client, Kind};
use relay_core::config;
use relay_core::dialect::{Route, model_of, route, unescaped};
use relay_core::dice::Dice as _;
use relay_core::event::{Event, Labels, Transport};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::label;
use relay_core::json::{self, Peek};
use relay_core::ledger::Identity;
use relay_core::notice::{self, Notices};
use relay_core::preamble::{Asked, Hold};
use relay_core::router::{self, Strategy};
use relay_core::wait;

use crate::body::{self, Passing};
use crate::body_text::{Binds, Read, Written};
use crate::call_report::CallReport;
use crate::clock::{RealDice, wall_ms};
use crate::credential::{AccountKey, Verdict, account_key, account_material, judge};
use crate::credentials::{self, Lent};
use crate::decode::Encoding;
use crate::drive::{Drive, Order};
use crate::fallback::{self, Fallback};
use crate::headers::{forwardable, forwardable_extensions, without_own};
use crate::kept::KeptBody;
use crate::lanes::{Lane, Made, Places};
use crate::legs::{self, Leg, Legs};
use crate::open::{OpenCall, Opening, Place};
use crate::profile;
use crate::request_ids;
use crate::sessions::Session;
use crate::shared::Shared;
use crate::snapshots::{Draft, Requested};
use crate::target::{self, Ask, Pooled, Target, Upstream};
use crate::traces;
use crate::waiting::Early;
use crate::websocket::Refused;
use crate::wishes::Wishes;

/// How a request came in.
pub(crate) struct Came<'a> {
    /// Its body, where it is at hand.
    pub(crate) body: Option<&'a Bytes>,
    /// It can be sent as often as is right.
    pub(crate) kept: bool,
    pub(crate) transport: Transport,
    /// When it was accepted.
    pub(crate) at: Moment,
    /// The upstream has just refused the connection for it.
    pub(crate) refused: Option<Refused>,
}

/// What was understood of a request whose body is at hand or on its way.
pub(crate) struct Understood {
    transport: Transport,
    route: Route,
    /// The answer is to stream.
    streams: bool,
    /// Where the dialect has streams of events and of values, the path asks for events.
    events: bool,
    client: Client,
    nature: Nature,
    peeked: Option<Peek>,
    /// The route of the settings that fits.
    by: Option<config::Route>,
    wishes: Wishes,
    opened: Moment,
    written: Written,
    /// The body's mark, if it was made.
    hash: Option<Option<u64>>,
    /// What binds the body to one service, where somebody looked.
    binds: Option<Binds>,
    /// Its model stands in the body.
    named: bool,
    /// Its path, where another model may make another route fit.
    path: Option<String>,
    refused: Option<Refused>,
}

impl Understood {
    /// Reads a request, as far as it was taken in.
    pub(crate) async fn of(
        shared: &Shared,
        parts: &Parts,
        path: &str,
        came: Came<'_>,
        wishes: Wishes,
    ) -> Self {
        let Came { body, kept, transport, at: opened, refused } = came;
        let path = &*unescaped(path);
        let route = route(&parts.method, path);
        let encoding = Encoding::named(parts.headers.get_all(http::header::CONTENT_ENCODING));
        let written = Written { encoding, limit: decode_limit(shared) };
        let posted = parts.method == Method::POST;
        let several = !shared.config.pools.is_empty() || !shared.config.fallbacks.is_empty();
        let binds = several && route.operation == Operation::Generation;
        let Read { peeked, hash, binds } = match body {
            Some(bytes) => shared.reader.read(bytes, written, binds).await,
            None => Read::default(),
        };
        let mut peeked = peeked.filter(|_| posted);
        let named = model_of(path).is_none();
        if let Some(model) = model_of(path) {
            // Where the path names the model, the body does not.
            peeked.get_or_insert_default().model = Some(model.to_owned());
        }
        let by_message = transport == Transport::WebSocket;
        let streams = by_message || route.streams(peeked.as_ref().and_then(|body| body.stream));
        let events = parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
        let mut client = Client::of(&parts.headers);
        if by_message {
            // Its limits are those of a wait for a head, which it had long ago.
            client = Client { limit: None, limit_in_company: None, ..client };
            if let Some(told) = peeked.as_ref().and_then(|body| body.turn_metadata.as_deref()) {
                client.reads_turn(&parts.headers, told);
            }
        } else {
            client.company = interim(shared, parts.version, &wishes).filter(|_| client.kind.skips_interim());
        }
        profile::limit(&shared.config, &mut client);
        if let Some(session) = parts.extensions.get::<Arc<Session>>() {
            session.limit(&shared.config, &mut client);
        }
        let model = peeked.as_ref().and_then(|peeked| peeked.model.as_deref());
        let by = shared.config.route(path, client.kind, model).cloned();
        let nature = nature(route.operation, kept, peeked.as_ref());
        Self {
            transport,
            route,
            streams,
            events,
            client,
            nature,
            peeked,
            by,
            wishes,
            opened,
            written,
            hash,
            binds,
            named,
            path: (!shared.config.fallbacks.is_empty()).then(|| path.to_owned()),
            refused,
        }
    }

    /// How often its client sees an interim answer while it waits.
    pub(crate) const fn interim(&self) -> Option<Duration> {
        self.client.company
    }

    /// The stream that begins before its answer, where the settings want one.
    pub(crate) fn early(&self, shared: &Shared) -> Option<Early> {
        let streams = self.streams && (self.events || !self.route.dialect.streams_values());
        // Codex waits for a head for as long as it takes, and takes no comment for life.
        let gains = streams && self.client.kind != Kind::Codex && !self.wishes.off;
        if gains { Early::of(&shared.config.waiting, self.route.dialect) } else { None }
    }

    /// The upstream that the route names.
    pub(crate) fn upstream(&self) -> Option<&str> {
        self.by.as_ref().and_then(|by| by.upstream.as_deref())
    }

    /// Whether it asks for an answer at all.
    pub(crate) fn prewarms(&self) -> bool {
        self.peeked.as_ref().is_some_and(|body| body.prewarms)
    }

    /// Whether it goes on from an answer that only the connection it was sent on knows.
    pub(crate) fn goes_on(&self) -> bool {
        self.peeked.as_ref().is_some_and(|body| body.previous_response_id && !body.stores)
    }

    /// The call.
    pub(crate) fn into_call(
        self,
        shared: &Arc<Shared>,
        parts: Parts,
        target: Target,
        (kept, passing): (Option<(Bytes, body::Place)>, Option<Passing>),
    ) -> Drive {
        let (opened, untouched) = (self.opened, self.wishes.off);
        let home = self.leg(shared, &parts, (target, 1), forwardable(&parts.headers));
        let body = KeptBody::new(home.account.number(), self.written, kept, self.hash);
        let (profile_name, profile) =
            profile::of(&shared.config, self.by.as_ref(), &self.client, &self.wishes);
        // What refused it was the handshake, not the lane's first answer to a request: the curve's first wait is due.
        let refused = self.refused.as_ref().map(|Refused { failure, at, .. }| {
            let mut dice = RealDice::default();
            *at + wait::after(failure, &mut wait::Steps::default(), &profile, &mut dice)
        });
        let asked = self.asked(shared, opened);
        let fallback = self.fallback(shared, &parts, &home.target).filter(|_| passing.is_none());
        let (legs, bound) = self.legs(shared, &parts, home);
        let mut legs = if untouched { legs.staying(opened) } else { legs };
        let leg = legs.leg();
        let breaks = shared.config.breaker.alone || leg.target.pool.is_some() || fallback.is_some();
        let labels = Labels {
            client: self.client.kind.name(),
            dialect: self.route.dialect.name(),
            operation: self.route.operation,
            transport: self.transport,
            upstream: leg.target.upstream.name.as_str().into(),
            model: self.peeked.as_ref().and_then(|peeked| peeked.model.as_deref()).map(label),
            profile: profile_name.into(),
            lane: leg.lane.id().into(),
            request_id: request_ids::of_request(&parts.headers),
            pool: leg.target.pool.as_ref().map(|pooled| pooled.pool.name.as_str().into()),
            bound: bound.map(Bound::name),
            trace: shared.has_traces.then(|| traces::of(&parts.headers)),
        };
        let mut open = match self.taken_up(shared, &legs) {
            Some(mut open) => {
                legs.is_in(|lane| open.is_in(lane));
                open.taken_up(self.client, self.nature, body);
                open
            }
            None => {
                let client_limit = profile::limit_of_call(&self.client, &self.wishes);
                let places = self.places(&leg.target).is_some();
                let notices = self.notices(shared, opened);
                let (before, not_before) = inherited(shared, &self.client, &body, opened);
                let not_before = not_before.max(refused);
                let plan =
                    Plan { profile, nature: self.nature, client_limit, before, not_before, places, notices };
                let id = shared.next_call();
                let place = Place {
                    session: shared.lanes.session(self.client.session.as_deref(), id),
                    weight: weight(body.len()),
                    streams: self.streams,
                };
                let call = Call::new(plan, opened);
                let lane = Arc::clone(&leg.lane);
                let (model, trace) = (labels.model.clone(), labels.trace);
                let session = parts.extensions.get::<Arc<Session>>().cloned();
                let draft = Draft::of(&shared.config, || Requested {
                    method: parts.method.clone(),
                    upstream: Arc::clone(&leg.target.upstream),
                    path_and_query: leg.target.path_and_query.clone(),
                    headers: Arc::clone(&leg.headers),
                    written: self.written,
                });
                let client = self.client;
                let opening =
                    Opening { id, call, client, body, lane, place, model, trace, session, draft, breaks };
                let open = OpenCall::new(Arc::clone(shared), opening).told(CallReport::wanted(&self.wishes));
                let (inherited, wall) = (before.inherited(), wall_ms(&*shared.clock));
                open.emit(&Event::CallOpened { labels: labels.into(), inherited, wall });
                open
            }
        };
        let Parts { method, extensions, .. } = parts;
        let extensions = forwardable_extensions(extensions);
        let legs = legs.or(fallback, open.was_turned_away());
        let order = Order { method, extensions, legs, passing, untouched };
        // That of the call, which may have begun before this request of its client.
        let opened = open.call().opened();
        Drive { open, order, asked, opened, circuits: String::new() }
    }

    /// The way to an upstream, with these of the client's headers.
    fn leg(
        &self,
        shared: &Shared,
        parts: &Parts,
        (mut target, weight): (Target, u32),
        mut headers: HeaderMap,
    ) -> Leg {
        let lent = credentials::of_request(shared, &mut target, &mut headers);
        let path = target.path_and_query.as_str();
        let account = lent.as_ref().map_or_else(|| account_key(&headers, path), Lent::account);
        let upstream = &target.upstream;
        upstream.lend_key(&mut headers, path);
        shared.hop.mark(&mut headers, &parts.headers, upstream);
        if self.early(shared).is_some() {
            // The head of a stream that begins early names no encoding.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let lane = self.lane(shared, &target, (&headers, lent.as_ref()), account);
        let way = shared.way(upstream, parts.version);
        let rules = shared.config.rules_for(self.route.dialect.name(), &upstream.name);
        let model = self.peeked.as_ref().and_then(|peeked| peeked.model.as_deref());
        let warms = upstream.warm.as_ref().is_some_and(|warm| warm.is_for(model));
        Leg {
            target,
            headers: Arc::new(headers),
            lent,
            way,
            account,
            rules,
            lane,
            warms,
            weight,
            instead: None,
        }
    }

    /// The models that may answer in place of the one that it asks for: only where that stands in a body that is at hand,
    /// and where nothing in it is for that model alone.
    fn fallback(&self, shared: &Shared, parts: &Parts, target: &Target) -> Option<Fallback> {
        let model = self.peeked.as_ref().and_then(|peeked| peeked.model.as_deref())?;
        let pool = target.pool.as_ref().map(|pooled| pooled.pool.name.as_str());
        let said = shared.config.fallback(model, pool.unwrap_or(&target.upstream.name))?;
        let is_plain = matches!(self.written.encoding, Some(Encoding::Identity));
        let fits = self.named
            && is_plain
            && self.nature.kept
            && self.transport == Transport::Http
            && !self.wishes.off
            && Bound::of(self.route.operation, self.binds).is_none()
            && fallback::may_change(&parts.headers);
        let places = |model: &str| {
            let by = shared.config.route(self.path.as_deref()?, self.client.kind, Some(model))?;
            by.max_running.map(|most| Places { most, route: Some(Places::of_route(by)) })
        };
        if fits { Fallback::of(model, said, (self.route.dialect, self.streams), places) } else { None }
    }

    /// All ways of the call, and what binds it to one of them where there could be more. `home` is where the client's
    /// own credential belongs.
    fn legs(&self, shared: &Shared, parts: &Parts, home: Leg) -> (Legs, Option<Bound>) {
        let alone = shared.config.breaker.alone;
        let Some(Pooled { pool, .. }) = home.target.pool.clone() else {
            return (Legs::one(home, alone), None);
        };
        let operation = self.route.operation;
        let bound = Bound::of(operation, self.binds);
        let session = self.client.session.as_deref().map(legs::session);
        let away =
            |(upstream, weight): &(Arc<Upstream>, u32)| self.away(shared, parts, &home, (upstream, *weight));
        let mut members = pool.of_dialect(self.route.dialect.name());
        let weight = members.next().map_or(1, |(_, weight)| *weight);
        let others: Vec<Leg> = members.filter_map(away).collect();
        let mut all = vec![Leg { weight, ..home }];
        all.extend(others);
        let weights: Vec<u32> = all.iter().map(|leg| leg.weight).collect();
        let mut dice = RealDice::default();
        let drawn = session.unwrap_or_else(|| (dice.share() * u64::MAX as f64) as u64);
        let mut order = router::Order::draw(pool.strategy, &weights, drawn, &mut dice);
        let before = session.and_then(|session| shared.served.member(&pool.name, session));
        let before = before.and_then(|name| all.iter().position(|leg| leg.target.upstream.name == name));
        let Some(bound) = bound else {
            // A cache is worth keeping to, a share is not.
            if let (Some(before), Strategy::Sticky) = (before, pool.strategy) {
                order = order.preferring(before);
            }
            return (Legs::several(all, (pool, order, session), alone), None);
        };
        // Whoever served the session has made what binds it. Else it is where its like would have gone.
        let first = match pool.strategy {
            Strategy::Sticky => order.first().unwrap_or_default(),
            Strategy::InOrder | Strategy::Weighted | Strategy::LeastWaiting => 0,
        };
        // Keys, and what is no question to a model, go where the client's own credential does.
        let is_key = matches!(bound, Bound::Member(member) if json::is_key(member));
        let at = if operation == Operation::Generation && !is_key { before.unwrap_or(first) } else { 0 };
        let leg = all.swap_remove(at.min(all.len() - 1));
        (Legs::one(leg, alone), Some(bound))
    }

    /// The way to another member of a pool. What says who the client is stays at home, but for a member at the same
    /// place that has no credential of its own.
    fn away(
        &self,
        shared: &Shared,
        parts: &Parts,
        home: &Leg,
        (upstream, weight): (&Arc<Upstream>, u32),
    ) -> Option<Leg> {
        let full = &*home.target.pool.as_ref()?.asked;
        let is_home = upstream.origin == home.target.upstream.origin && upstream.adds_nothing();
        let client = forwardable(&parts.headers);
        let (headers, full, verdict) = if is_home {
            (client, Cow::Borrowed(full), None)
        } else {
            (without_own(client), Cow::Owned(without_own_query(full)), Some(Verdict::None))
        };
        let verdict = verdict.unwrap_or_else(|| judge(&parts.headers, &full));
        let ask = Ask { method: &parts.method, path_and_query: &full, verdict: &verdict };
        let target = Target { pool: home.target.pool.clone(), ..target::to(upstream, ask).ok()? };
        Some(self.leg(shared, parts, (target, weight), headers))
    }

    /// The call of the same turn whose client was shown a notice, and asks again now.
    fn taken_up(&self, shared: &Shared, legs: &Legs) -> Option<OpenCall> {
        let turn = self.client.turn.as_ref().filter(|_| self.is_resumable())?;
        shared.parked.take(turn, |open| legs.lanes().any(|lane| open.is_in(lane)))
    }

    /// What its client is shown while it is held. Only a request that may be made anew is held like that: its client
    /// sends all of it again.
    fn notices(&self, shared: &Shared, now: Moment) -> Option<Notices> {
        let after = shared.config.waiting.notice.filter(|_| self.client.watched && self.is_resumable())?;
        let tries = self.client.turn.as_ref().map_or(0, |turn| shared.ledger().tries(turn, now));
        let unseen = self.transport == Transport::WebSocket;
        Some(Notices::new(after, unseen, notice::MOST.saturating_sub(tries)))
    }

    /// Whether its client goes on by itself when its answer breaks off: Codex does where it asks a model for an answer.
    fn is_resumable(&self) -> bool {
        self.client.kind == Kind::Codex
            && self.route.operation == Operation::Generation
            && self.route.dialect.name() == "openai_responses"
            && (self.nature.self_contained || self.is_whole_but_for_its_start())
            && self.peeked.as_ref().is_some_and(|body| !body.compaction)
            && self.streams
            && !self.wishes.off
    }

    /// The stated number of places that the call takes one of.
    fn places(&self, target: &Target) -> Option<Places> {
        if self.route.operation != Operation::Generation {
            return None;
        }
        let by_route = self
            .by
            .as_ref()
            .and_then(|by| by.max_running.map(|most| Places { most, route: Some(Places::of_route(by)) }));
        by_route.or_else(|| target.upstream.max_running.map(|most| Places { most, route: None }))
    }

    /// The lane of the call, which the account tells that the request is sent for: a key that is lent, or a header that
    /// the upstream's entry adds, makes another one, and so does a credential of the relay's own. What asks no model for
    /// an answer shares one without a model.
    fn lane(
        &self,
        shared: &Shared,
        target: &Target,
        (headers, lent): (&HeaderMap, Option<&Lent>),
        came: AccountKey,
    ) -> Arc<Lane> {
        let model = self.peeked.as_ref().and_then(|peeked| peeked.model.as_deref());
        let generation = self.route.operation == Operation::Generation;
        let model = model.filter(|_| generation);
        lane_at(shared, target, (headers, lent, came), (model, self.places(target)))
    }

    /// Whether it would be self-contained if its client sent the whole input, as it does over a new WebSocket.
    fn is_whole_but_for_its_start(&self) -> bool {
        let whole = |body: &Peek| Peek { previous_response_id: false, ..body.clone() };
        self.transport == Transport::WebSocket
            && nature(self.route.operation, self.nature.kept, self.peeked.as_ref().map(whole).as_ref())
                .self_contained
    }

    /// What the listener of its answers has to know.
    fn asked(&self, shared: &Shared, now: Moment) -> Asked {
        let client = &self.client;
        let generation = self.route.operation == Operation::Generation;
        let settings = shared.config.client(client.kind);
        let resumable = settings.cut_fatal && self.is_resumable();
        let cuts_left =
            client.turn.as_ref().is_some_and(|turn| shared.ledger().may_cut(turn, settings.cuts, now));
        Asked {
            dialect: self.route.dialect,
            generation,
            streams: self.streams,
            hold: Hold {
                bytes: usize::try_from(shared.config.hold.bytes).unwrap_or(usize::MAX),
                // Codex waits for an hour, so there is no reason to commit to an answer that has not begun. On a
                // WebSocket there is no head that anybody waits for.
                time: (client.kind != Kind::Codex && self.transport == Transport::Http)
                    .then_some(shared.config.hold.time),
            },
            withhold: if resumable && cuts_left { client.fatal_in_stream() } else { &[] },
        }
    }
}

/// The lane of requests with these headers, sent with the relay's own credential or not, for this account.
pub(crate) fn lane_at(
    shared: &Shared,
    target: &Target,
    (headers, lent, came): (&HeaderMap, Option<&Lent>, AccountKey),
    (model, places): (Option<&str>, Option<Places>),
) -> Arc<Lane> {
    let upstream = &target.upstream;
    let path = target.path_and_query.as_str();
    let headers = upstream.with_headers(headers);
    let is_told = upstream.adds_nothing() || lent.is_some();
    let account = if is_told { came } else { account_key(&headers, path) };
    let (origin, added) = (&upstream.origin, &*upstream.headers);
    let made = Made { origin, upstream: &upstream.name, account, added, model, places };
    let by_headers = || account_material(&headers, path);
    shared.lanes.lane(&made, || lent.map_or_else(by_headers, Lent::account_material))
}

/// What a body weighs beside a small one: another one with each 256 KiB.
fn weight(bytes: usize) -> f64 {
    1.0 + bytes as f64 / f64::from(256 << 10)
}

/// How often a client sees an interim answer while it waits: HTTP/1.0 has none, and HTTP/2 has other signs of life.
fn interim(shared: &Shared, version: Version, wishes: &Wishes) -> Option<Duration> {
    shared.config.waiting.interim.filter(|_| version == Version::HTTP_11 && !wishes.off)
}

/// The most plain text that is made of an encoded body to look at it.
fn decode_limit(shared: &Shared) -> usize {
    usize::try_from(shared.config.bodies.each).unwrap_or(usize::MAX)
}

fn nature(operation: Operation, kept: bool, peeked: Option<&Peek>) -> Nature {
    let self_contained = peeked.is_some_and(Peek::is_self_contained);
    Nature { operation, self_contained, kept }
}

/// What earlier sends of the same call have spent, and how long the first send of a resumed turn waits.
fn inherited(shared: &Shared, client: &Client, body: &Arc<KeptBody>, now: Moment) -> (Spent, Option<Moment>) {
    shared.register(body);
    let not_before = client.turn.as_ref().and_then(|turn| shared.ledger().resumes_at(turn, now));
    let cut = client.turn.as_ref().and_then(|turn| shared.ledger().inherit_cut(turn));
    if let Some(spent) = cut {
        return (spent, not_before);
    }
    // Hashing a body costs; where nothing is remembered there is nothing to ask.
    let nothing = shared.ledger().is_empty();
    let hash = if nothing { None } else { body.hash() };
    let Some(hash) = hash else { return (Spent::default(), not_before) };
    let identity = Identity::new(client, body.credential(), hash);
    let others_open = shared.ledger().knows(&identity) && shared.is_open_elsewhere(body);
    let spent = shared.ledger().inherit(&identity, others_open, now);
    (spent, not_before)
}
