//! Settings that change while the relay runs.

use relay_sim::{Signal, Upstream};
use rustix::process::Signal as Kill;

use crate::program::{CONFIG, Home, QUICK, good, refusal, run, serve, turn};

/// Long enough for a relay to have read its settings.
const TO_READ: std::time::Duration = std::time::Duration::from_millis(500);

fn to(url: &str) -> String {
    format!("[relay]\nupstream = \"{url}\"\n")
}

#[tokio::test]
async fn a_changed_file_holds_for_new_calls_and_open_ones_go_on() {
    let opened = Signal::new();
    let slow = good().when(opened.clone());
    let (old, new) = (Upstream::start(slow).await.unwrap(), Upstream::start(good()).await.unwrap());
    let home = Home::with_config(&to(&old.url()));
    let mut relay = home.serve(&[]).await;
    let mut client = relay.client().await;
    client.send(&turn()).await.unwrap();
    while old.requests().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    home.write(CONFIG, to(&new.url()));
    relay.says("settings reloaded").await;
    assert_eq!(relay.ask(&turn()).await.status, 200);
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
    opened.release();
    let answer = client.read().await;
    assert!(answer.text().contains("response.completed"), "{}", answer.text());
}

#[tokio::test]
async fn a_bad_file_is_refused_with_its_errors_and_the_old_settings_stay() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config(&to(&up.url()));
    let mut relay = home.serve(&[]).await;
    for (text, error) in [
        ("{{{ not a valid config\n", "config.toml:1:1"),
        ("[relay]\nprot = 1\nprofile = \"none\"\n", "did you mean `port`?"),
        ("[relay]\nca_file = \"none.pem\"\n", "none.pem"),
        (&to(&format!("http://{}", relay.addr)), "which is this relay itself"),
    ] {
        home.write(CONFIG, text);
        relay.signal(Kill::HUP);
        relay.says(error).await;
        assert_eq!(relay.ask(&turn()).await.status, 200);
    }
    assert!(relay.said().contains("settings not reloaded, the old ones stay"), "{}", relay.said());
    assert!(!relay.said().contains("settings reloaded"), "{}", relay.said());
    home.write(CONFIG, to(&up.url()));
    relay.signal(Kill::HUP);
    relay.says("settings read again: the settings are as they were").await;
}

#[tokio::test]
async fn what_was_changed_is_named_at_info_and_a_reload_without_a_change_is_no_warning() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config(&to(&up.url()));
    let mut relay = home.serve(&["--log-format", "json"]).await;
    relay.signal(Kill::HUP);
    relay.says("the settings are as they were").await;
    home.write(CONFIG, format!("{}profile = \"batch\"\n[timeouts]\nidle = \"9s\"\n", to(&up.url())));
    relay.signal(Kill::HUP);
    relay.says("settings reloaded: they hold for new calls (relay.profile, timeouts.idle)\"").await;
    home.write(CONFIG, "[relay]\nupstream = \"http://127.0.0.1:1/hunter2\"\n");
    relay.signal(Kill::HUP);
    relay.says("(relay.upstream, relay.profile, timeouts.idle)\"").await;
    let said = relay.said();
    assert!(!said.contains("\"level\":\"warn\"") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn what_needs_a_restart_is_said_and_the_rest_holds() {
    let up = Upstream::start(refusal(503, "server_is_overloaded")).await.unwrap();
    let home = Home::with_config("[log]\nlevel = \"info\"\n");
    let mut relay = home.serve(&["--upstream", &up.url()]).await;
    let changed = format!(
        "[relay]\nlisten = \"127.0.0.1\"\ntoken = \"0123456789abcdef\"\nprofile = \"x\"\n[log]\nlevel = \"trace\"\nformat = \"json\"\n\
         [timeouts]\nconnect = \"1s\"\n[bodies]\ntotal = \"256MiB\"\n[profile.x]\nsends = 2\n{QUICK}"
    );
    home.write(CONFIG, changed);
    relay.signal(Kill::HUP);
    relay.says("only after a restart").await;
    assert!(
        relay.said().contains("relay.listen, relay.token, log.format only after a restart"),
        "{}",
        relay.said()
    );
    // No token is asked for, the new profile holds, and so does the new level.
    relay.ask(&turn()).await;
    assert_eq!(up.requests().len(), 2);
    relay.says("[open] client=").await;
}

#[tokio::test]
async fn a_gate_that_is_switched_on_holds_for_new_calls() {
    let nobody = relay_sim::Refused::port().unwrap();
    let quick = "[profile.interactive]\nnever_sent_base = \"10ms\"\nnever_sent_cap = \"10ms\"\n";
    let settings = |gate: bool| format!("{}gate = {gate}\n{quick}", to(&nobody.url()));
    let home = Home::with_config(&settings(false));
    let mut relay = home.serve(&[]).await;
    relay.ask(&turn()).await;
    relay.says("[done] outcome=gave_up why=sends_spent sends=8 ").await;
    home.write(CONFIG, settings(true));
    relay.signal(Kill::HUP);
    relay.says("settings reloaded: they hold for new calls (relay.gate, profile.batch.gate, ").await;
    // Another call, so that it goes on from nothing.
    let another = turn().json(serde_json::json!({"model": "gpt-y", "stream": true, "input": "you"}));
    relay.ask(&another).await;
    relay.says("[done] outcome=gave_up why=sends_spent sends=40 ").await;
}

#[tokio::test]
async fn the_number_of_connections_follows_the_settings() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config(&format!("{}[limits]\nconnections = 1\n", to(&up.url())));
    let relay = home.serve(&[]).await;
    let mut first = relay.client().await;
    assert_eq!(first.ask(&turn()).await.unwrap().status, 200);
    assert_eq!(relay.ask(&turn()).await.status, 503);
    for (reloads, connections, status) in [(1, 2, 200), (2, 1, 503)] {
        home.write(CONFIG, format!("{}[limits]\nconnections = {connections}\n", to(&up.url())));
        relay.signal(Kill::HUP);
        while relay
            .said()
            .matches("settings reloaded: they hold for new calls (limits.connections)\n")
            .count()
            < reloads
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(relay.ask(&turn()).await.status, status, "{connections}");
    }
    // Whoever was there before the limit fell stays.
    assert_eq!(first.ask(&turn()).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_misspelt_variable_is_told_once_at_the_start_and_by_check_and_fails_neither() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config(&to(&up.url()));
    let told = "note: STEADY_RELAY_PROT in the environment is not read: did you mean `STEADY_RELAY_PORT`?\n";
    let mut command = home.program(&["--port", "0"]);
    let mut relay = serve(command.env("STEADY_RELAY_PROT", "9000")).await;
    home.write(CONFIG, format!("{}profile = \"batch\"\n", to(&up.url())));
    relay.says("settings reloaded").await;
    assert_eq!(relay.said().matches(told).count(), 1, "{}", relay.said());
    let mut command = home.program(&["config", "check"]);
    assert_eq!(run(command.env("STEADY_RELAY_PROT", "9000")).await, (0, "ok\n".to_owned(), told.to_owned()));
}

#[tokio::test]
async fn an_env_file_is_followed_too() {
    let (old, new) = (Upstream::start(good()).await.unwrap(), Upstream::start(good()).await.unwrap());
    let home = Home::new();
    home.write("relay.env", format!("STEADY_RELAY_UPSTREAM={}\n", old.url()));
    let mut relay = home.serve(&["--env-file", "relay.env"]).await;
    home.write("relay.env", format!("STEADY_RELAY_UPSTREAM={}\n# changed\n", new.url()));
    relay.says("settings reloaded").await;
    relay.ask(&turn()).await;
    assert_eq!((old.requests().len(), new.requests().len()), (0, 1));
}

fn make_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()));
}

#[tokio::test]
async fn what_is_no_file_or_too_large_keeps_the_settings_and_signals_are_heard() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::with_config(&to(&up.url()));
    let mut relay = home.serve(&[]).await;
    let config = home.path(CONFIG);
    let without = |with: &dyn Fn()| {
        std::fs::remove_file(&config).unwrap();
        with();
    };
    without(&|| std::os::unix::fs::symlink("/dev/zero", &config).unwrap());
    relay.signal(Kill::HUP);
    relay.says("config.toml: this is a pipe or a device, not a file").await;
    without(&|| drop(home.write(CONFIG, vec![b'#'; 2 << 20])));
    relay.signal(Kill::HUP);
    relay.says("config.toml: the file is larger than 1 MiB").await;
    home.write(CONFIG, "[relay]\nca_file = \"ca.pipe\"\n");
    make_fifo(&config.with_file_name("ca.pipe"));
    relay.signal(Kill::HUP);
    relay.says("ca.pipe: this is a pipe or a device").await;
    assert_eq!(relay.ask(&turn()).await.status, 200);
    without(&|| make_fifo(&config));
    // Noticed without being told.
    while relay.said().matches("config.toml: this is a pipe or a device").count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(relay.ask(&turn()).await.status, 200);
    relay.stop().await;
}

#[tokio::test]
async fn a_file_that_is_empty_for_a_moment_is_in_the_middle_of_being_replaced() {
    let (old, new) = (Upstream::start(good()).await.unwrap(), Upstream::start(good()).await.unwrap());
    let home = Home::with_config(&to(&old.url()));
    let mut relay = home.serve(&[]).await;
    home.write(CONFIG, "");
    relay.signal(Kill::HUP);
    tokio::time::sleep(TO_READ).await;
    assert_eq!(relay.ask(&turn()).await.status, 200);
    home.write(CONFIG, to(&new.url()));
    relay.says("settings reloaded").await;
    assert_eq!(relay.ask(&turn()).await.status, 200);
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
    assert_eq!(relay.said().matches("settings reloaded").count(), 1, "{}", relay.said());
    // Whoever means it is believed.
    home.write(CONFIG, "");
    while relay.said().matches("settings reloaded").count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn settings_come_from_a_pipe_at_the_start_alone() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    for name in ["relay.pipe", "env.pipe"] {
        make_fifo(&home.path(name));
    }
    let (config, env) = (home.path("relay.pipe"), home.path("env.pipe"));
    let text = to(&up.url());
    let writer = std::thread::spawn(move || {
        std::fs::write(env, "STEADY_RELAY_PROFILE=batch\n").unwrap();
        std::fs::write(config, text).unwrap();
    });
    let mut relay =
        home.serve(&["--config", "relay.pipe", "--env-file", "env.pipe", "--log-level", "trace"]).await;
    writer.join().unwrap();
    assert_eq!(relay.ask(&turn()).await.status, 200);
    relay.says("profile=batch").await;
    relay.signal(Kill::HUP);
    relay.says("relay.pipe: this is a pipe or a device, not a file").await;
    assert!(relay.said().contains("the old ones stay"), "{}", relay.said());
    assert_eq!(relay.ask(&turn()).await.status, 200);
    assert_eq!(up.requests().len(), 2);
    assert_eq!(relay.said().matches("the old ones stay").count(), 1, "{}", relay.said());
}

#[tokio::test]
async fn certificates_may_be_more_than_any_settings() {
    let home = Home::with_config("[relay]\nca_file = \"ca.pem\"\n");
    home.write("config/steady-relay/ca.pem", "# none\n".repeat(200_000));
    let (code, _, said) = home.run(&["config", "check"]).await;
    assert!(code == 2 && said.contains("no usable certificate in "), "{said}");
}
