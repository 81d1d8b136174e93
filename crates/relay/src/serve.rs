//! One client request, from its head to the start of its call.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use relay_core::Fault;
use relay_core::answer::Own;
use relay_core::client::{Client, Kind};
use relay_core::dialect::route;
use relay_core::evidence::Operation;

use crate::body::{drain, take};
use crate::credential::{judge, plan};
use crate::drive::DRAIN;
use crate::guard;
use crate::interim::Interim;
use crate::observe::Notice;
use crate::reply::{Abort, ReplyBody, in_our_words};
use crate::shared::Shared;
use crate::target::{self, Target};
use crate::understand::Understood;
use crate::waiting::Company;
use crate::{admin, tunnel};

/// Serves one request.
///
/// # Errors
/// Where the client's connection is to be cut.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    interim: Interim,
) -> Result<Response<ReplyBody>, Abort> {
    match checked(&shared, &request) {
        Ok(Checked::Ours(path)) => Ok(admin::answer(&shared, request.method(), &path)),
        Ok(Checked::Forward(full)) => forward(shared, request, full, interim).await,
        Err(refused) => Ok(refuse(request, refused).await),
    }
}

enum Checked {
    /// One of our own endpoints.
    Ours(String),
    /// The path and query to forward.
    Forward(String),
}

/// Why the relay itself says no.
struct Refused {
    status: StatusCode,
    fault: Fault,
    code: &'static str,
    words: String,
}

impl From<guard::Refusal> for Refused {
    fn from(refusal: guard::Refusal) -> Self {
        Self {
            status: refusal.status(),
            fault: Fault::Authentication,
            code: "refused_by_relay",
            words: refusal.to_string(),
        }
    }
}

impl From<target::Refusal> for Refused {
    fn from(refusal: target::Refusal) -> Self {
        Self {
            status: refusal.status(),
            fault: Fault::BadRequest,
            code: "no_upstream",
            words: refusal.to_string(),
        }
    }
}

fn checked(shared: &Shared, request: &Request<Incoming>) -> Result<Checked, Refused> {
    let headers = request.headers();
    let full = guard::path_and_query(request.uri()).unwrap_or("");
    let stripped = shared.guard.token(headers, full)?;
    let full = stripped.unwrap_or_else(|| full.to_owned());
    let path = path_of(&full);
    if admin::is_ours(path) {
        shared.guard.control(headers)?;
        return Ok(Checked::Ours(path.to_owned()));
    }
    shared.guard.forwarding(headers)?;
    Ok(Checked::Forward(full))
}

fn path_of(full: &str) -> &str {
    full.split('?').next().unwrap_or_default()
}

async fn refuse(request: Request<Incoming>, refused: Refused) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    // A client that is still uploading would see a broken pipe instead of the answer.
    drain(body, DRAIN.0, DRAIN.1).await;
    in_refusing_words(&parts, refused)
}

fn in_refusing_words(parts: &Parts, refused: Refused) -> Response<ReplyBody> {
    let words = format!("steady-relay: {}", refused.words);
    let codex = Client::of(&parts.headers).kind == Kind::Codex;
    let dialect = route(&parts.method, parts.uri.path()).dialect;
    let (content_type, body) = if codex {
        // Codex prints the text of a 400 as it is.
        ("text/plain; charset=utf-8", words)
    } else {
        ("application/json", dialect.error_body(refused.fault, refused.code, &words).to_string())
    };
    in_our_words(Own { status: refused.status.as_u16(), content_type, body, refuse_retry: true })
}

async fn forward(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    full: String,
    interim: Interim,
) -> Result<Response<ReplyBody>, Abort> {
    let upgrades = tunnel::is_upgrade(&request);
    // A WebSocket opens with GET on the path that a POST generates on.
    let generates = route(&Method::POST, path_of(&full)).operation == Operation::Generation;
    if upgrades && generates && tunnel::is_websocket(request.headers()) {
        return Ok(tunnel::use_http());
    }
    let verdict = judge(request.headers());
    let ask = target::Ask { method: &request.method().clone(), path_and_query: &full, verdict: &verdict };
    // A route may name the upstream by the model, which stands in the body; else this is the last word.
    let by_headers = shared.targets.target(ask);
    let may_be_routed = shared.config.routes.iter().any(|route| route.upstream.is_some());
    let target = match by_headers {
        Err(refusal) if upgrades || !may_be_routed => return Ok(refuse(request, refusal.into()).await),
        Ok(target) if upgrades => return Ok(tunnel::open(shared, target, request).await),
        known => known,
    };
    let opened = shared.clock.now();
    let (parts, body) = request.into_parts();
    let each = usize::try_from(shared.config.bodies.each).unwrap_or(usize::MAX);
    let taken = match take(body, each, &shared.room).await {
        Ok(taken) => taken,
        // The client's own upload broke off: there is nobody left to answer.
        Err(_broken) => return Err(Abort::Broken),
    };
    let understood = Understood::of(&shared, &parts, path_of(&full), (&taken, opened));
    let target = match (understood.upstream(), target) {
        (Some(name), _) => shared.targets.named(name, ask),
        (None, known) => known,
    };
    match target {
        Ok(target) => {
            warn_of_plan(&shared, &parts.headers, &target);
            let company = Company {
                interim: shared
                    .config
                    .waiting
                    .interim
                    .filter(|_| parts.version == Version::HTTP_11)
                    .map(|every| (interim, every)),
                early: understood.early(&shared),
            };
            company.keep(Box::pin(understood.into_call(&shared, parts, target, taken).run())).await
        }
        Err(refusal) => Ok(in_refusing_words(&parts, refusal.into())),
    }
}

/// Accounts of some plans may be routed by workspace, which a base URL loses; nothing in a request tells.
fn warn_of_plan(shared: &Shared, headers: &HeaderMap, target: &Target) {
    if let Some(plan) = plan(headers)
        && target.upstream.headers.is_empty()
        && shared.warn_of_plan_once()
    {
        shared.observers.notice(&Notice::Advice(format!(
            "this ChatGPT account is on a managed plan ({}). If its workspace is routed to a region, set the \
             upstream's url and the header x-openai-account-routing-override in [upstream.chatgpt]",
            plan.name()
        )));
    }
}
