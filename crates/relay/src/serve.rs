//! One client request, from its head to the start of its call.

use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use relay_core::Fault;
use relay_core::answer::Own;
use relay_core::call::{Call, Plan};
use relay_core::client::{Client, Kind};
use relay_core::dialect::{Route, route};
use relay_core::event::{Event, Labels};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::label;
use relay_core::json::{Peek, peek};
use relay_core::ledger::Identity;
use relay_core::preamble::{Asked, Hold};

use crate::app::App;
use crate::body::{Passing, Taken, drain, take};
use crate::credential::{AccountKey, account_key, judge, plan};
use crate::decode::Encoding;
use crate::drive::{DRAIN, Drive, Order, in_our_words};
use crate::guard::path_and_query;
use crate::headers::forwardable;
use crate::observe::Notice;
use crate::open::{KeptBody, OpenCall};
use crate::reply::{Abort, ReplyBody};
use crate::target::Target;
use crate::upstream::AnswerBody;
use crate::{admin, profile, tunnel};

/// Serves one request.
///
/// # Errors
/// Where the client's connection is to be cut.
pub(crate) async fn serve(app: Arc<App>, request: Request<Incoming>) -> Result<Response<ReplyBody>, Abort> {
    match checked(&app, &request) {
        Ok(Checked::Ours(path)) => Ok(admin::answer(&app, request.method(), &path)),
        Ok(Checked::Forward(target, path)) => forward(app, request, *target, path).await,
        Err(refusal) => {
            let answer = refused(&request, refusal);
            drain(request.into_body(), DRAIN.0, DRAIN.1).await;
            Ok(answer)
        }
    }
}

enum Checked {
    Ours(String),
    /// Where to, and the path that was asked for, without a token.
    Forward(Box<Target>, String),
}

struct Refused {
    status: StatusCode,
    fault: Fault,
    code: &'static str,
    words: String,
}

fn checked(app: &App, request: &Request<Incoming>) -> Result<Checked, Refused> {
    let by_guard = |refusal: crate::guard::Refusal| Refused {
        status: refusal.status(),
        fault: Fault::Authentication,
        code: "refused_by_relay",
        words: refusal.to_string(),
    };
    let headers = request.headers();
    let full = path_and_query(request.uri()).unwrap_or("");
    let stripped = app.guard.token(headers, full).map_err(by_guard)?;
    let full = stripped.as_deref().unwrap_or(full);
    let path = full.split('?').next().unwrap_or_default();
    if admin::is_ours(path) {
        app.guard.control(headers).map_err(by_guard)?;
        return Ok(Checked::Ours(path.to_owned()));
    }
    app.guard.forwarding(headers).map_err(by_guard)?;
    let verdict = judge(headers);
    let ask = crate::target::Ask { method: request.method(), path_and_query: full, verdict: &verdict };
    let target = app.targets.target(ask).map_err(|refusal| Refused {
        status: refusal.status(),
        fault: Fault::BadRequest,
        code: "no_upstream",
        words: refusal.to_string(),
    })?;
    Ok(Checked::Forward(Box::new(target), path.to_owned()))
}

fn refused(request: &Request<Incoming>, refused: Refused) -> Response<ReplyBody> {
    let words = format!("steady-relay: {}", refused.words);
    let codex = Client::of(request.headers()).kind == Kind::Codex;
    let dialect = route(request.method(), request.uri().path()).dialect;
    let (content_type, body) = if codex {
        // Codex prints the text of a 400 as it is.
        ("text/plain; charset=utf-8", words)
    } else {
        ("application/json", dialect.error_body(refused.fault, refused.code, &words).to_string())
    };
    in_our_words(Own { status: refused.status.as_u16(), content_type, body, refuse_retry: true })
}

async fn forward(
    app: Arc<App>,
    request: Request<Incoming>,
    target: Target,
    asked_path: String,
) -> Result<Response<ReplyBody>, Abort> {
    // A WebSocket opens with GET on the path that a POST generates on.
    let posts_here = route(&http::Method::POST, &asked_path).operation == Operation::Generation;
    if tunnel::is_upgrade(&request) {
        return Ok(if posts_here && tunnel::is_websocket(request.headers()) {
            tunnel::use_http()
        } else {
            tunnel::open(app, target, request).await
        });
    }
    warn_of_plan(&app, request.headers(), &target);
    let opened = app.clock.now();
    let (parts, body) = request.into_parts();
    let account = account_key(&parts.headers);
    let each = usize::try_from(app.config.bodies.each).unwrap_or(usize::MAX);
    let taken = match take(body, each, &app.room).await {
        Ok(taken) => taken,
        // The client's own upload broke off: there is nobody left to answer.
        Err(_broken) => return Err(Abort::Broken),
    };
    let arrived = Arrived { route: route(&parts.method, &asked_path), path: asked_path, account, parts };
    Box::pin(arrived.into_call(&app, target, taken, opened).run()).await
}

/// A request that has arrived, with its body at hand or on its way.
struct Arrived {
    route: Route,
    path: String,
    account: AccountKey,
    parts: http::request::Parts,
}

impl Arrived {
    fn into_call(self, app: &Arc<App>, target: Target, taken: Taken, opened: relay_core::Moment) -> Drive {
        let Self { route, path, account, parts } = self;
        let encoding = Encoding::named(parts.headers.get_all(http::header::CONTENT_ENCODING));
        let each = usize::try_from(app.config.bodies.each).unwrap_or(usize::MAX);
        let (kept, passing): (_, Option<Passing>) = match taken {
            Taken::Kept(bytes, place) => (Some((bytes, place)), None),
            Taken::Passing(passing) => (None, Some(passing)),
        };
        let nature_kept = kept.is_some();
        let body = KeptBody::new(account.number(), encoding, each, kept);
        let posted = parts.method == http::Method::POST;
        let peeked = if posted { body.plain().and_then(|plain| peek(&plain)) } else { None };
        let nature = nature(route.operation, nature_kept, peeked.as_ref());
        let mut client = Client::of(&parts.headers);
        let client_limit = profile::client_limit(&app.config, &mut client);
        let model = peeked.as_ref().and_then(|peeked| peeked.model.as_deref());
        let by = app.config.route(&path, client.kind, model);
        let (profile_name, profile) = profile::of(&app.config, by, &client);
        let (before, not_before) = inherited(app, &client, &body, opened);
        let understood = Understood { route, client: &client, nature, peeked: peeked.as_ref() };
        let asked = understood.asked(app, opened);
        let labels = Labels {
            client: client.kind.name(),
            dialect: route.dialect.name(),
            operation: route.operation,
            upstream: target.upstream.name.as_str().into(),
            model: model.map(label),
            profile: profile_name.into(),
        };
        let call = Call::new(Plan { profile, nature, client_limit, before, not_before }, opened);
        let turn = client.turn.clone().filter(|_| !asked.withhold.is_empty());
        let mut open = OpenCall::new(Arc::clone(app), app.next_call(), call, client, body);
        open.may_be_cut(turn);
        open.emit(&Event::CallOpened { labels, inherited_sends: before.sends });
        let order = Order {
            method: parts.method,
            headers: forwardable(&parts.headers),
            extensions: parts.extensions,
            target,
            account,
            passing,
        };
        Drive { open, order, asked, opened }
    }
}

fn nature(operation: Operation, kept: bool, peeked: Option<&Peek>) -> Nature {
    let self_contained = peeked.is_some_and(|body| {
        body.input_is_full
            && !body.previous_response_id
            && !body.conversation
            && !body.background
            && !body.hosted_tools
            && !body.item_reference
    });
    Nature { operation, self_contained, kept }
}

/// What earlier sends of the same call have spent, and how long the first send of a resumed turn waits.
fn inherited(
    app: &App,
    client: &Client,
    body: &Arc<KeptBody>,
    now: relay_core::Moment,
) -> (relay_core::budget::Spent, Option<relay_core::Moment>) {
    app.register(body);
    let not_before = client.turn.as_ref().and_then(|turn| app.ledger().resumes_at(turn, now));
    // Hashing a body costs; where nothing is remembered there is nothing to ask.
    let nothing = app.ledger().is_empty();
    let hash = if nothing { None } else { body.hash() };
    let Some(hash) = hash else { return (relay_core::budget::Spent::default(), not_before) };
    let identity = Identity::new(client, body.credential(), hash);
    let others_open = app.ledger().knows(&identity) && app.is_open_elsewhere(body);
    let spent = app.ledger().inherit(&identity, others_open, now);
    (spent, not_before)
}

/// What was understood of a request.
struct Understood<'a> {
    route: Route,
    client: &'a Client,
    nature: Nature,
    peeked: Option<&'a Peek>,
}

impl Understood<'_> {
    /// What the listener of its answers has to know.
    fn asked(&self, app: &App, now: relay_core::Moment) -> Asked {
        let Self { route, client, nature, peeked } = self;
        let generation = route.operation == Operation::Generation;
        let settings = app.config.client(client.kind);
        let resumable = client.kind == Kind::Codex
            && settings.cut_fatal
            && generation
            && route.dialect.name() == "openai_responses"
            && nature.self_contained
            && peeked.is_some_and(|body| !body.compaction);
        let cuts_left = client.turn.as_ref().is_some_and(|turn| app.ledger().cuts(turn, now) < settings.cuts);
        Asked {
            dialect: route.dialect,
            generation,
            streams: generation && peeked.and_then(|body| body.stream).unwrap_or(false),
            hold: Hold {
                bytes: usize::try_from(app.config.hold.bytes).unwrap_or(usize::MAX),
                // Codex waits for an hour, so there is no reason to commit to an answer that has not begun.
                time: (client.kind != Kind::Codex).then_some(app.config.hold.time),
            },
            withhold: if resumable && cuts_left { client.fatal_in_stream() } else { &[] },
        }
    }
}

/// Accounts of some plans may be routed by workspace, which a base URL loses; nothing in a request tells.
fn warn_of_plan(app: &App, headers: &HeaderMap, target: &Target) {
    if let Some(plan) = plan(headers)
        && target.upstream.headers.is_empty()
        && app.warn_of_plan_once()
    {
        app.observers.notice(&Notice::Advice(format!(
            "this ChatGPT account is on a managed plan ({}). If its workspace is routed to a region, set the \
             upstream's url and the header x-openai-account-routing-override in [upstream.chatgpt]",
            plan.name()
        )));
    }
}

/// Hands on an answer that no call stands behind.
pub(crate) fn pass_on(answer: Response<AnswerBody>) -> Response<ReplyBody> {
    let (head, body) = answer.into_parts();
    let mut response = Response::new(ReplyBody::plain(body));
    *response.status_mut() = head.status;
    *response.headers_mut() = crate::headers::forwardable_answer(&head.headers);
    crate::headers::keep_case(&head.extensions, response.extensions_mut());
    response
}
