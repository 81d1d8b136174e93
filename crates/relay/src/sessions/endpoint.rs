//! `/__steady/sessions` over HTTP. Who may ask was checked as for every endpoint of ours; who opens a session shows the
//! local token besides, and who asks how one is knows its key.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use super::said::{Opened, PATH, Proved, VERSION, Wanted, proof};
use super::{Holder, NotOpened, Session, SessionKey};
use crate::listen::leads_back;
use crate::reply::{ReplyBody, as_json, json_line, text, typed};
use crate::shared::Shared;
use crate::words::{door, lang};

/// The longest description of a session, and how long it may take to come.
const LONGEST: usize = 64 * 1024;
const WITHIN: Duration = Duration::from_secs(10);
/// How often a relay that stops looks whether the calls of a session have ended.
const LOOKS: Duration = Duration::from_millis(20);

/// Whether a path is that of an endpoint here.
pub(crate) fn is_ours(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for one of them.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    path: String,
) -> Response<ReplyBody> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/')) {
        None if *request.method() == Method::POST => match open(shared, request).await {
            Ok(response) | Err(response) => response,
        },
        None if reads => prove(&shared, &request),
        Some(key) if reads => page(&shared, key),
        one_or_all => {
            let allowed = if one_or_all.is_some() { "GET, HEAD" } else { "GET, HEAD, POST" };
            let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &door::not_like_that(lang()));
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            response
        }
    }
}

fn refuse(status: StatusCode, words: &str) -> Response<ReplyBody> {
    text(status, &(door::refusal(lang(), words) + "\n"))
}

/// Proves whose relay this is, to whoever asks at an address that nobody else can have.
fn prove(shared: &Shared, request: &Request<Incoming>) -> Response<ReplyBody> {
    let Some(local) = &shared.guard.local else {
        return refuse(StatusCode::NOT_FOUND, &door::no_sessions(lang()));
    };
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| {
        let listens =
            |at: std::net::SocketAddr| {
                shared.guard.listening.iter().any(|ours| {
                    ours.port() == at.port() && (ours.ip() == at.ip() || ours.ip().is_unspecified())
                })
            };
        host.parse().is_ok_and(listens)
    });
    let query = request.uri().query().unwrap_or_default();
    let nonce = query.split('&').find_map(|pair| pair.strip_prefix("nonce="));
    match host.zip(nonce).and_then(|(host, nonce)| proof(local.expose(), nonce, host)) {
        Some(proof) => {
            let has_upstream = shared.config.upstream.is_some();
            let proved = Proved { v: VERSION, proof, has_upstream };
            as_json(&proved)
        }
        None => refuse(StatusCode::BAD_REQUEST, &door::ask_with_nonce(lang())),
    }
}

fn page(shared: &Shared, key: &str) -> Response<ReplyBody> {
    let session = key.parse::<SessionKey>().ok().and_then(|key| shared.sessions.find(key));
    match session {
        Some(session) => as_json(&shared.session_page(&session)),
        None => refuse(StatusCode::NOT_FOUND, &door::no_such_session(lang())),
    }
}

/// Opens a session that lasts as long as the answer.
async fn open(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<ReplyBody>, Response<ReplyBody>> {
    let changing = shared.guard.changing(request.headers());
    changing.map_err(|refusal| refuse(refusal.status(), &refusal.to_string()))?;
    let wanted = wanted(request.into_body()).await?;
    let session = Session::of(&wanted).map_err(|why| not_opened(&why))?;
    // Before it is held: one that is refused takes no other's place.
    for (name, upstream) in &session.upstreams {
        let (url, ours) = (&upstream.url, &shared.guard.listening);
        if upstream.is_at(ours) || leads_back(url.host(), url.port(), ours).await {
            return Err(not_opened(&NotOpened::Itself(name.clone())));
        }
    }
    let holder = shared.sessions.hold(session).map_err(|why| not_opened(&why))?;
    let opened = Opened {
        v: VERSION,
        key: holder.key(),
        resumed: holder.resumed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut response = typed(StatusCode::OK, "application/x-ndjson", Vec::new());
    *response.body_mut() = ReplyBody::held(json_line(&opened).into(), async move {
        tokio::select! {
            () = holder.taken() => Bytes::new(),
            () = shared.draining() => last_page(&shared, &holder).await,
        }
    });
    Ok(response)
}

/// What a session came to at a relay that stops, where nobody can ask for it any more: once its calls have ended, which no
/// longer wait, and in time for it to be read.
async fn last_page(shared: &Shared, holder: &Holder) -> Bytes {
    let until = tokio::time::Instant::now() + shared.config.timeouts.drain / 2;
    while holder.session().status.open() > 0 && tokio::time::Instant::now() < until {
        tokio::time::sleep(LOOKS).await;
    }
    json_line(&shared.session_page(holder.session())).into()
}

fn not_opened(why: &NotOpened) -> Response<ReplyBody> {
    let status = match why {
        NotOpened::TooMany => StatusCode::TOO_MANY_REQUESTS,
        NotOpened::NoChance => StatusCode::INTERNAL_SERVER_ERROR,
        NotOpened::Version(_) | NotOpened::Names | NotOpened::Url(..) | NotOpened::Itself(_) => {
            StatusCode::BAD_REQUEST
        }
    };
    refuse(status, &why.to_string())
}

async fn wanted(body: Incoming) -> Result<Wanted, Response<ReplyBody>> {
    let hang_up = |mut response: Response<ReplyBody>| {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    };
    let taken = tokio::time::timeout(WITHIN, Limited::new(body, LONGEST).collect()).await;
    let bytes: Bytes = match taken {
        Ok(Ok(whole)) => whole.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let words = door::session_too_long(lang(), LONGEST >> 10);
            return Err(hang_up(refuse(StatusCode::PAYLOAD_TOO_LARGE, &words)));
        }
        Ok(Err(_broken)) => {
            return Err(hang_up(refuse(StatusCode::BAD_REQUEST, &door::body_broke_off(lang()))));
        }
        Err(_late) => return Err(hang_up(refuse(StatusCode::REQUEST_TIMEOUT, &door::body_late(lang())))),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        refuse(StatusCode::BAD_REQUEST, &door::no_session_description(lang(), &error.to_string()))
    })
}
