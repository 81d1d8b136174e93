//! Credentials of the relay's own that a file holds, a program writes or a variable names.

use relay_core::config::{Held, Source};

use crate::credentials::{bare, is_untouched, keys_of, service, with};
use crate::started::{Folder, Serving, program, run};
use crate::support::Bench;

#[tokio::test]
async fn a_key_of_a_file_is_read_again() {
    let service = service(&["sk-new"], 401).await;
    let folder = Folder::new();
    let file = folder.write("key", "sk-old\n");
    let bench = Bench::with(with(&service.url(), Source::Key(Held::File(file)), &folder)).await;
    is_untouched(&bench.ask(&bare()).await, 401);
    assert_eq!(service.requests().len(), 1, "the file holds no other one");
    folder.write("key", "\u{feff}sk-new\r\n");
    assert_eq!(bench.ask(&bare()).await.status, 200);
    // In the middle of being replaced it may be empty.
    folder.write("key", "");
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(keys_of(&service)[1..], ["Bearer sk-old", "Bearer sk-new", "Bearer sk-new"]);
}

#[tokio::test]
async fn a_file_without_a_key_is_told_of_at_the_start_and_to_the_client() {
    let service = service(&[], 401).await;
    let folder = Folder::new();
    let sign_in = folder.write("sign-in", "sk-ant-oat01-CANARY");
    let none = folder.path().join("none");
    for (file, words) in [(none, "cannot be read"), (sign_in, "a sign-in of Claude")] {
        let bench = Bench::with(with(&service.url(), Source::Key(Held::File(file)), &folder)).await;
        let told = format!("{:?}", bench.recorder().notices());
        assert!(
            told.contains("credential `mine`") && told.contains(words) && !told.contains("CANARY"),
            "{told}"
        );
        let told = bench.ask(&bare()).await;
        assert_eq!(told.status, 502);
        assert!(told.text().contains(words) && !told.text().contains("CANARY"), "{}", told.text());
    }
    assert_eq!(service.connections(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_writes_a_key_and_is_run_again_when_that_was_refused() {
    let service = service(&["sk-2"], 401).await;
    let folder = Folder::new();
    let script = "echo x >> runs; [ -e last ] && echo sk-2 || echo sk-1; touch last";
    let argv = |script: &str| {
        let script = format!("cd '{}'; {script}", folder.path().display());
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    };
    let source = Source::Command { argv: argv(script), ttl: Some(std::time::Duration::from_secs(1)) };
    let bench = Bench::with(with(&service.url(), source, &folder)).await;
    is_untouched(&bench.ask(&bare()).await, 401);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(folder.read("runs"), "x\nx\n");
    for (script, words) in [
        ("exit 3", "exit status: 3"),
        ("echo two words", "wrote no key"),
        ("yes CANARY", "wrote no key"),
        ("echo sk-ant-oat01-CANARY", "a sign-in of Claude"),
    ] {
        let source = Source::Command { argv: argv(script), ttl: None };
        let bench = Bench::with(with(&service.url(), source, &folder)).await;
        let told = bench.ask(&bare()).await.text();
        assert!(told.contains(words) && !told.contains("CANARY"), "{script}: {told}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_may_leave_another_one_behind() {
    let service = service(&["sk-2"], 401).await;
    let folder = Folder::new();
    let pid = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > '{}'; echo sk-2", pid.display());
    let source = Source::Command { argv: ["sh", "-c", &script].map(str::to_owned).to_vec(), ttl: None };
    let bench = Bench::with(with(&service.url(), source, &folder)).await;
    // It has the other end of the pipe for ten minutes.
    assert_eq!(bench.ask(&bare()).await.status, 200);
    let left = folder.read("pid").trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_variable_that_is_not_set_stops_the_start_and_a_file_that_is_not_there_does_not() {
    let home = Folder::new();
    let with = |credential: &str| {
        let used = "[upstream.openai]\ncredential = \"mine\"\n";
        home.write("relay.toml", &format!("{used}[credential.mine]\n{credential}\n"))
    };
    let file = with("key_env = \"MY_KEY\"");
    let told = "error: credential `mine`: the variable MY_KEY is not set\nhint: set it in the environment";
    for verb in [&["serve", "--port", "0"][..], &["config", "check"]] {
        let mut command = program(&home);
        let (code, _, said) = run(command.args(verb).arg("--config").arg(&file)).await;
        assert!(code == 2 && said.contains(told), "{verb:?}: {said}");
    }
    let mut command = program(&home);
    let (code, shown, _) =
        run(command.args(["config", "check", "--config"]).arg(&file).env("MY_KEY", "sk-CANARY")).await;
    assert_eq!((code, shown.as_str()), (0, "ok\n"));
    let file = with("key = \"sk-CANARY\"");
    let (code, shown, _) = run(program(&home).args(["config", "show", "--config"]).arg(&file)).await;
    assert!(code == 0 && shown.contains("[credential.mine]") && !shown.contains("CANARY"), "{shown}");
    let file = with("key_command = [\"no-such-program\"]");
    let (code, shown, said) = run(program(&home).args(["config", "check", "--config"]).arg(&file)).await;
    assert_eq!((code, shown.as_str()), (0, "ok\n"));
    assert!(said.contains("note: credential `mine`: there is no program no-such-program"), "{said}");
    let file = with("key_file = \"my-key\"");
    let (code, shown, _) =
        run(program(&home).args(["config", "check", "--json", "--config"]).arg(&file)).await;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let note = shown["notices"][0].as_str().unwrap_or_default();
    assert!(
        code == 0 && note.starts_with("credential `mine`: the file") && note.contains("cannot be read"),
        "{shown}"
    );
    let mut command = program(&home);
    let mut relay = Serving::start(
        command.args(["serve", "--listen", "127.0.0.1", "--port", "0", "--config"]).arg(&file),
    )
    .await;
    assert!(relay.said().contains("credential `mine`: the file"), "{}", relay.said());
    relay.signal(rustix::process::Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
    let mut command = program(&home);
    let (_, found, _) = run(command.args(["doctor", "--json", "--config"]).arg(&file)).await;
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let checks = found["findings"].as_array().unwrap_or_else(|| panic!("{found}"));
    let own = checks.iter().find(|check| check["check"] == "credentials").unwrap();
    assert_eq!(own["level"], "fail", "{own}");
}
