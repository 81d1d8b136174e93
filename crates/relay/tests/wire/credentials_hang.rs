//! Issuers of tokens that are slow, or whose answers are none: who waits for them, how long, and what is told of it.

use relay_sim::{Reply, Script, Seen, Upstream};

use crate::credentials::{bare, first_token, service, with};
use crate::credentials_awaited::in_haste;
use crate::started::Folder;
use crate::support::Bench;

#[tokio::test]
async fn an_answer_that_is_too_long_and_one_that_breaks_off_are_told_apart() {
    let long = || Reply::status(200).json("x".repeat(70_000));
    let cut = || Reply::status(200).json(r#"{"access_token":"at-1"}"#).chunked().fin_without_terminator();
    let service = service(&["at-1"], 401).await;
    for (is_long, words) in [(true, "is longer than 64 KiB"), (false, "the answer of http")] {
        let reply = move |_: &Seen, _| if is_long { long() } else { cut() };
        let issuer = Upstream::start(Script::by(reply)).await.unwrap();
        let folder = Folder::new();
        let mut config = with(&service.url(), first_token(&issuer), &folder);
        in_haste(&mut config);
        let bench = Bench::with(config).await;
        let told = bench.ask(&bare()).await.text();
        assert!(told.contains(words) && !told.contains("was not reached"), "{told}");
    }
}
