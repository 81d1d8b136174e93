//! A relay of the client's own: what other programs get of it.

use relay_sim::{Script, Upstream};

use crate::place::{ASKS, Place, QUICK, busy, good, run, taken_apart};

#[tokio::test]
async fn any_program_is_moved_and_its_own_address_is_the_upstream() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    place.client("job", &format!("{ASKS}echo $OPENAI_BASE_URL\necho $OLLAMA_HOST\necho $NO_PROXY\nexit 3"));
    let mut command = place.program(&["run", "--", "job"]);
    command.env("OPENAI_BASE_URL", format!("{}/v1", up.url())).env("HTTP_PROXY", "http://127.0.0.1:9");
    let (code, out, said) = run(&mut command).await;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines[1], lines[2]), (3, "", "127.0.0.1,localhost"), "{said}");
    assert!(lines[0].ends_with("/to/openai_base_url/v1"), "{out}");
    assert!(place.read("answer").contains("response.completed"), "{} {said}", place.read("answer"));
    assert_eq!(up.requests()[0].target, "/v1/responses");
    assert_eq!(place.contents(), []);
}

#[tokio::test]
async fn whoever_has_no_key_gets_by_without_the_sessions_upstreams() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let asks = "root=${OPENAI_BASE_URL%%/~*}\n\
                curl -sS -H 'authorization: Bearer k' -d '{}' \"$root/to/openai_base_url/v1/responses\"\n\
                curl -sS -H 'authorization: Bearer k' -d '{}' \"$root/~0123456789abcdef0123456789abcdef/v1/responses\"\n\
                echo $OPENAI_BASE_URL";
    place.client("job", asks);
    let mut command = place.program(&["run", "--", "job"]);
    let (code, out, said) = run(command.env("OPENAI_BASE_URL", up.url())).await;
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("no_upstream") && out.contains("no_session"), "{out}");
    assert_eq!(up.requests().len(), 0);
    let (_, key) = taken_apart(&out[out.rfind("http://127.").unwrap()..]);
    assert!(!said.contains(&key), "{said}");
}

#[tokio::test]
async fn a_token_is_not_in_the_way_of_the_session_and_keeps_all_others_out() {
    let up = Upstream::start(Script::of([busy(), good()])).await.unwrap();
    let place = Place::new();
    place.settings(QUICK);
    let others = "curl -sS -H 'authorization: Bearer k' -d '{}' \"${OPENAI_BASE_URL%%/~*}/v1/responses\"\n";
    place.client("job", &format!("{ASKS}{others}"));
    let mut command = place.program(&["run", "--own", "--", "job"]);
    command.env("OPENAI_BASE_URL", format!("{}/v1", up.url())).env("STEADY_RELAY_TOKEN", "0123456789abcdef");
    let (code, out, said) = run(&mut command).await;
    assert!(place.read("answer").contains("response.completed"), "{code} {said} {}", place.read("answer"));
    assert!(out.contains("x-steady-token"), "{out}");
    assert_eq!(up.requests().len(), 2);
    assert!(said.contains("1 call met capacity errors, recovered, "), "{said}");
}

#[tokio::test]
async fn a_file_of_this_folder_is_told_from_a_program_that_is_not_there() {
    let place = Place::new();
    place.write("job.sh", "#!/bin/sh\nexit 0\n");
    let (code, _, said) = run(&mut place.program(&["run", "--own", "--", "job.sh"])).await;
    assert_eq!(code, 127, "{said}");
    assert!(
        said.contains("`job.sh` is not on the PATH, but in this folder\nhint: write `./job.sh`"),
        "{said}"
    );
    let (code, _, said) = run(&mut place.program(&["run", "--own", "--", "nojob.sh"])).await;
    assert!(code == 127 && said.contains("`nojob.sh` was not found\nhint: install it"), "{said}");
}
