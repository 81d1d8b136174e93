//! One client request, from its head to the start of its call.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use relay_core::Fault;
use relay_core::answer::Own;
use relay_core::client::{Client, Kind};
use relay_core::config::Websocket;
use relay_core::dialect::route;
use relay_core::event::Transport;
use relay_core::evidence::Operation;
use relay_core::failure::label;

use crate::body::{Taken, Upload, UploadError, drain, take};
use crate::call_report;
use crate::credential::{Issuer, Verdict, is_sign_in, judge, plan};
use crate::drive::DRAIN;
use crate::guard;
use crate::inbound::Line;
use crate::observe::Notice;
use crate::reply::{Abort, ReplyBody, in_our_words};
use crate::sessions::{self, RETURN, Session};
use crate::shared::Shared;
use crate::target::{self, Target, Upstream};
use crate::understand::{Came, Understood};
use crate::waiting::Company;
use crate::websocket::{self, Door};
use crate::wishes::{self, Wishes};
use crate::words::{door, lang};
use crate::{admin, dashboard, tunnel};

/// Serves one request.
///
/// # Errors
/// Where the client's connection is to be cut.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    line: Line,
) -> Result<Response<ReplyBody>, Abort> {
    as_http1(&mut request);
    if let Err(malformed) = well_formed(&request) {
        let parts = request.into_parts().0;
        return Ok(hang_up(in_refusing_words(&shared, &parts, parts.uri.path(), malformed)));
    }
    if let Some((key, _)) = guard::path_and_query(request.uri()).and_then(sessions::key_in) {
        returns(&shared, key).await;
    }
    match checked(&shared, &request) {
        Ok(Checked::Ours(full)) if sessions::is_ours(path_of(&full)) => {
            Ok(Box::pin(sessions::answer(shared, request, path_of(&full).to_owned())).await)
        }
        Ok(Checked::Ours(full)) => {
            Ok(Box::pin(admin::answer(&shared, request.method(), request.headers(), &full)).await)
        }
        Ok(Checked::Forward(full, session)) => {
            if let Some(session) = session {
                request.extensions_mut().insert(session);
            }
            forward(shared, request, Addressed::of(full), line).await
        }
        Err(refused) => {
            let path = request.uri().path().to_owned();
            Ok(refuse(&shared, request, &path, refused).await)
        }
    }
}

enum Checked {
    /// The path and query of one of our own endpoints.
    Ours(String),
    /// The path and query to forward, and the session that the path named.
    Forward(String, Option<Arc<Session>>),
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

impl From<wishes::Refusal> for Refused {
    fn from(refusal: wishes::Refusal) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            fault: Fault::BadRequest,
            code: "bad_steady_header",
            words: refusal.to_string(),
        }
    }
}

impl Refused {
    fn malformed(status: StatusCode, what: &str) -> Self {
        let words = door::malformed(lang(), what);
        Self { status, fault: Fault::BadRequest, code: "malformed_request", words }
    }

    fn session() -> Self {
        let words = "the path names a session that is over, or none of this relay\nhint: start the client with \
                     `steady-relay run` again";
        let fault = Fault::Authentication;
        Self { status: StatusCode::FORBIDDEN, fault, code: "no_session", words: words.to_owned() }
    }

    /// A key that was cut, or the token of a relay that asks for none any more. It may be a secret, and so goes nowhere.
    fn odd_key() -> Self {
        let words = door::odd_key(lang());
        Self { status: StatusCode::FORBIDDEN, fault: Fault::Authentication, code: "no_session", words }
    }

    /// A session's key may be seen by others on the machine.
    fn own_pages() -> Self {
        let words = door::not_by_a_session(lang());
        Self { status: StatusCode::FORBIDDEN, fault: Fault::Authentication, code: "refused_by_relay", words }
    }

    /// RFC 5842, section 7.2.
    const fn loops(words: String) -> Self {
        Self { status: StatusCode::LOOP_DETECTED, fault: Fault::BadRequest, code: "loop_detected", words }
    }

    fn upload(error: &UploadError, stall: Duration) -> Option<Self> {
        match error {
            UploadError::Broken(_) => None,
            UploadError::Malformed(_) => {
                Some(Self::malformed(StatusCode::BAD_REQUEST, "its body breaks its own framing"))
            }
            UploadError::Stalled => Some(Self {
                status: StatusCode::REQUEST_TIMEOUT,
                fault: Fault::BadRequest,
                code: "upload_stalled",
                words: format!("the upload stopped: nothing came for {} s", stall.as_secs_f64()),
            }),
        }
    }
}

/// What hyper lets pass and RFC 9112 does not (sections 3.2 and 6.1): two readers of such a request may see two
/// different ones.
fn well_formed(request: &Request<Incoming>) -> Result<(), Refused> {
    let headers = request.headers();
    if request.version() == Version::HTTP_11 && headers.get_all(header::HOST).iter().count() != 1 {
        return Err(Refused::malformed(StatusCode::BAD_REQUEST, "it needs one Host header"));
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if !chunked || codings.next().is_some() {
        let status = StatusCode::NOT_IMPLEMENTED;
        return Err(Refused::malformed(status, "chunked is the only transfer coding that is understood"));
    }
    Ok(())
}

/// HTTP/2 has the host in the target and may have cookies in crumbs (RFC 9113, sections 8.3.1 and 8.2.3). From here on
/// a request is what HTTP/1.1 makes of it.
fn as_http1(request: &mut Request<Incoming>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let headers = request.headers_mut();
    if let Some(host) = host {
        headers.insert(header::HOST, host);
    }
    let crumbs: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, whole);
    }
}

/// The rest of the request is not wanted, so the connection is of no more use.
fn hang_up(mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A relay that has just begun gives the session of a call some time to come back.
async fn returns(shared: &Shared, key: sessions::SessionKey) {
    let left = RETURN.checked_sub(shared.clock.now().since(shared.started)).filter(|left| !left.is_zero());
    // Without a local token nobody opens one.
    let is_missing = shared.guard.local.is_some()
        && shared.sessions.find(key).is_none()
        && !shared.guard.is_token(&key.to_string());
    if let (Some(left), true) = (left, is_missing) {
        // Late or not, it is looked up next.
        let _in_time = Box::pin(tokio::time::timeout(left, shared.sessions.opens(key))).await;
    }
}

fn checked(shared: &Shared, request: &Request<Incoming>) -> Result<Checked, Refused> {
    let headers = request.headers();
    let full = guard::path_and_query(request.uri()).unwrap_or("");
    let named = sessions::key_in(full);
    // First: the key of a session may be the token besides, as it is where a relay is of one client alone.
    let found = named.and_then(|(key, rest)| Some((shared.sessions.find(key)?, rest)));
    let (full, session) = match (found, named) {
        // Whoever has a key was let in by somebody with the local token.
        (Some((session, rest)), _) => {
            let slash = if rest.starts_with('/') { "" } else { "/" };
            (format!("{slash}{rest}"), Some(session))
        }
        // Without its session it would go to a service as it is, key and all.
        (None, Some((key, _))) if !shared.guard.is_token(&key.to_string()) => return Err(Refused::session()),
        // What is answered there says nothing to anyone who does not know the local token.
        (None, None) if path_of(full) == sessions::said::PATH && *request.method() == Method::GET => {
            (full.to_owned(), None)
        }
        (None, _) => (shared.guard.token(headers, full)?.unwrap_or_else(|| full.to_owned()), None),
    };
    if sessions::names_a_key(&full) {
        return Err(Refused::odd_key());
    }
    let path = path_of(&full);
    if admin::is_ours(path) {
        if session.is_some() {
            return Err(Refused::own_pages());
        }
        shared.guard.control(headers)?;
        return Ok(Checked::Ours(full));
    }
    shared.guard.forwarding(headers)?;
    if let Some(words) = shared.hop.came_round(headers) {
        return Err(Refused::loops(words));
    }
    Ok(Checked::Forward(full, session))
}

/// Where a request is addressed to.
struct Addressed {
    /// The path and query, without `/to/NAME`.
    full: String,
    /// The upstream that the path names.
    to: Option<String>,
}

impl Addressed {
    fn of(full: String) -> Self {
        let Some(rest) = full.strip_prefix("/to/") else { return Self { full, to: None } };
        let (name, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let slash = if rest.starts_with('/') { "" } else { "/" };
        Self { to: Some(name.to_owned()), full: format!("{slash}{rest}") }
    }
}

fn path_of(full: &str) -> &str {
    full.split('?').next().unwrap_or_default()
}

/// Boxed, as all that is rare: it would make room in the future of every request.
fn refuse<'a>(
    shared: &'a Shared,
    request: Request<Incoming>,
    path: &'a str,
    refused: Refused,
) -> Pin<Box<dyn Future<Output = Response<ReplyBody>> + Send + 'a>> {
    Box::pin(refuse_now(shared, request, path, refused))
}

async fn refuse_now(
    shared: &Shared,
    request: Request<Incoming>,
    path: &str,
    refused: Refused,
) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    // A client that is still uploading would see a broken pipe instead of the answer. One that waits to be asked
    // for its body is not asked.
    if !parts.headers.contains_key(header::EXPECT) {
        drain(body, DRAIN.0, DRAIN.1).await;
    }
    in_refusing_words(shared, &parts, path, refused)
}

fn in_refusing_words(shared: &Shared, parts: &Parts, path: &str, refused: Refused) -> Response<ReplyBody> {
    let words = door::refusal(lang(), &refused.words);
    let kind = Client::of(&parts.headers).kind;
    let dialect = route(&parts.method, path).dialect;
    // These two send a 5xx again, whatever stands beside it.
    let insists = matches!(kind, Kind::Codex | Kind::GeminiCli) && refused.status.is_server_error();
    let status = if insists { StatusCode::BAD_REQUEST } else { refused.status }.as_u16();
    // A token that is wrong here may be right elsewhere, and so may a key.
    let shown = match path {
        path if sessions::names_a_key(path) => "/TOKEN",
        path if sessions::is_ours(path) => sessions::said::PATH,
        path => path,
    };
    shared.observers.notice(&Notice::TurnedAway { status, code: refused.code, path: label(shown) });
    if let Some(page) = dashboard::entrance::answer(&shared.guard, parts, refused.code == "no_upstream") {
        return page;
    }
    let (content_type, body) = if kind == Kind::Codex {
        // Codex prints the text of a 400 as it is.
        ("text/plain; charset=utf-8", words)
    } else {
        let body = dialect.error_body(status, refused.fault, refused.code, &words);
        ("application/json", body.to_string())
    };
    let mut response = in_our_words(Own { status, content_type, body, refuse_retry: true });
    call_report::turned_away(refused.code, &parts.headers, response.headers_mut());
    response
}

async fn forward(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    Addressed { full, to }: Addressed,
    Line { interim, place, current }: Line,
) -> Result<Response<ReplyBody>, Abort> {
    let wishes = match Wishes::of(request.headers(), &shared.config) {
        Ok(wishes) => wishes,
        Err(refusal) => return Ok(refuse(&shared, request, path_of(&full), refusal.into()).await),
    };
    let upgrades = tunnel::is_upgrade(&request);
    // A WebSocket opens with GET on the path that a POST generates on.
    let generates = || {
        let route = route(&Method::POST, path_of(&full));
        route.operation == Operation::Generation && route.dialect.speaks_websocket()
    };
    let asks_on_websocket = upgrades && tunnel::is_websocket(request.headers()) && generates();
    let verdict = judge(request.headers(), &full);
    let ask = target::Ask { method: &request.method().clone(), path_and_query: &full, verdict: &verdict };
    // A route may name the upstream by the model, which stands in the body; else this is the last word.
    let by_head = by_head(&shared, request.extensions().get(), to.as_deref(), ask);
    let may_be_routed = to.is_none() && shared.config.routes.iter().any(|route| route.upstream.is_some());
    let target = match by_head {
        // Over HTTP the client hears why.
        Err(_) if asks_on_websocket => {
            return Ok(tunnel::use_http(&door::http_says_why(lang())));
        }
        Err(refusal) if upgrades || !may_be_routed => {
            return Ok(refuse(&shared, request, path_of(&full), refusal.into()).await);
        }
        Ok(target) if upgrades => {
            // Each request on it may go elsewhere, which one connection cannot.
            let by_body = asks_on_websocket && (may_be_routed || target.pool.is_some());
            if let Err(refusal) = may_share(request.headers(), &target) {
                return Ok(refuse(&shared, request, path_of(&full), refusal.into()).await);
            }
            let session = request.extensions().get();
            if let Err(refusal) = may_lend(&shared, session, request.headers(), &verdict, &target) {
                return Ok(refuse(&shared, request, path_of(&full), refusal.into()).await);
            }
            warn_of_plan(&shared, request.headers(), &verdict, &target);
            let path = path_of(&full).to_owned();
            let door = Door { current, target, path, wishes, place };
            return Ok(upgrade(shared, request, door, (asks_on_websocket, by_body)).await);
        }
        known => known,
    };
    let opened = shared.clock.now();
    let (parts, body) = request.into_parts();
    let taken = match receive(&shared, &parts.headers, body).await {
        Ok(taken) => taken,
        Err(error) => match Refused::upload(&error, shared.config.limits.stall) {
            Some(refused) => return Ok(hang_up(in_refusing_words(&shared, &parts, path_of(&full), refused))),
            // The client's own upload broke off: there is nobody left to answer.
            None => return Err(Abort::Broken),
        },
    };
    let (body, kept) = match &taken {
        Taken::Kept(bytes, _) => (Some(bytes), true),
        Taken::Passing(_) => (None, false),
    };
    let came = Came { body, kept, transport: Transport::Http, at: opened, refused: None };
    let understood = Understood::of(&shared, &parts, path_of(&full), came, wishes).await;
    let target = match (understood.upstream(), target) {
        (Some(name), _) if to.is_none() => shared.targets.named(name, ask),
        (Some(_) | None, known) => known,
    };
    let target = target.map_err(Refused::from).and_then(|target| {
        may_lend(&shared, parts.extensions.get(), &parts.headers, &verdict, &target)?;
        may_share(&parts.headers, &target)?;
        Ok(target)
    });
    match target {
        Ok(target) => {
            warn_of_plan(&shared, &parts.headers, &verdict, &target);
            let company = Company {
                interim: understood.interim().map(|every| (interim, every)),
                early: understood.early(&shared),
            };
            let company = company.by(&*shared.clock);
            let taken = match taken {
                Taken::Kept(bytes, place) => (Some((bytes, place)), None),
                Taken::Passing(passing) => (None, Some(passing)),
            };
            let drive = understood.into_call(&shared, parts, target, taken);
            company.keep(Box::pin(drive.run())).await
        }
        Err(refused) => Ok(in_refusing_words(&shared, &parts, path_of(&full), refused)),
    }
}

/// Where a request goes, as far as its head tells. A session's own upstreams come before those of the settings.
fn by_head(
    shared: &Shared,
    session: Option<&Arc<Session>>,
    to: Option<&str>,
    ask: target::Ask<'_>,
) -> Result<Target, target::Refusal> {
    let Some(name) = to else { return shared.targets.target(ask) };
    match session.and_then(|session| session.upstream(name)) {
        Some(upstream) => target::to(upstream, ask),
        None => shared.targets.addressed(name, ask),
    }
}

/// Takes in the request's body, as far as it is to be kept.
async fn receive(shared: &Shared, headers: &HeaderMap, body: Incoming) -> Result<Taken, UploadError> {
    // Trailers are not kept: a body that announces some is passed through as it comes.
    let keeps = !headers.contains_key(header::TRAILER);
    let each = if keeps { usize::try_from(shared.config.bodies.each).unwrap_or(usize::MAX) } else { 0 };
    let upload = shared.upload();
    let taken = take(Upload::new(body, shared.config.limits.stall), each, &shared.room).await?;
    drop(upload);
    if shared.room.became_full() {
        shared.observers.notice(&Notice::Advice(format!(
            "the room for request bodies is full (`bodies.total`, {} MiB): what does not fit passes as it comes and \
             is sent once",
            shared.config.bodies.total >> 20
        )));
    }
    Ok(taken)
}

/// Changes the protocol, as far as the settings let it; `asks`: to a WebSocket on which a model is asked; `by_body`: where
/// to is for the body to say.
async fn upgrade(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    door: Door,
    (asks, by_body): (bool, bool),
) -> Response<ReplyBody> {
    let choice = door.target.upstream.websocket.unwrap_or(shared.config.websocket);
    match choice {
        Websocket::Refuse if asks => tunnel::use_http(&door::websocket_refused(lang())),
        Websocket::Speak if by_body => tunnel::use_http(&door::websocket_by_body(lang())),
        // There would never be room for a message.
        Websocket::Speak if asks && shared.config.bodies.total < shared.config.limits.message => {
            tunnel::use_http(&door::websocket_without_room(lang()))
        }
        Websocket::Speak if asks && !door.wishes.off => {
            Box::pin(websocket::open(shared, request, door)).await
        }
        Websocket::Speak | Websocket::Refuse | Websocket::Tunnel => {
            let Door { target, place, wishes, .. } = door;
            let way = tunnel::Way { target, place, patience: wishes.patience };
            Box::pin(tunnel::open(shared, way, request)).await
        }
    }
}

/// Whether a request may get what this upstream lends to those that bring no credential. The key of a session takes no
/// token's place here: others on the machine may see it.
fn may_lend(
    shared: &Shared,
    session: Option<&Arc<Session>>,
    headers: &HeaderMap,
    verdict: &Verdict,
    target: &Target,
) -> Result<(), guard::Refusal> {
    let lends = |upstream: &Upstream| {
        let brings_own = *verdict != Verdict::None && !upstream.replace_credential;
        !upstream.adds_nothing() && !brings_own
    };
    // Whatever a client brings, another member of a pool is asked with its own.
    let others = target.pool.iter().flat_map(|pooled| &pooled.pool.members);
    let mut others = others.filter(|(member, _)| !Arc::ptr_eq(member, &target.upstream));
    if !lends(&target.upstream) && others.all(|(member, _)| member.adds_nothing()) {
        return Ok(());
    }
    if session.is_some_and(|session| !shared.guard.is_token(&session.key().to_string())) {
        shared.guard.token(headers, "")?;
    }
    shared.guard.lending(headers)
}

/// Whether a request may go to a pool, where it is sent to one: no sign-in of a person is shared among upstreams.
fn may_share(headers: &HeaderMap, target: &Target) -> Result<(), target::Refusal> {
    match &target.pool {
        Some(pooled) if is_sign_in(headers) => Err(target::Refusal::SignIn(pooled.pool.name.clone())),
        Some(_) | None => Ok(()),
    }
}

/// Accounts of some plans may be routed by workspace, which a base URL loses; nothing in a request tells.
fn warn_of_plan(shared: &Shared, headers: &HeaderMap, verdict: &Verdict, target: &Target) {
    if verdict == &Verdict::One(Issuer::ChatGptSignIn)
        && let Some(plan) = plan(headers)
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
