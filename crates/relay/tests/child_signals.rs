//! What `run` does with signals. They go to the whole process, so this is a program of its own.
#![cfg(unix)]

use std::time::Duration;

use steady_relay::run::{Ended, Plan, supervise};

fn shell(script: &str) -> Plan {
    Plan {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        notices: Vec::new(),
        upstreams: Vec::new(),
        claude_limit: None,
    }
}

/// The child sends each signal to us and then waits for what comes of it.
#[tokio::test]
async fn terminal_signals_are_survived_and_others_handed_on() {
    let me = std::process::id();
    let tty = std::fs::File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(&tty).ok());
    // In front of a terminal, which tells the child as well; else they are handed on.
    let shared = tty == Some(rustix::process::getpgrp());
    let or_signal = |number| if shared { Ended::Code(0) } else { Ended::Signal(number) };
    let rows = [
        (format!("kill -INT {me}; exec sleep 0.2"), or_signal(2)),
        (format!("kill -QUIT {me}; exec sleep 0.2"), or_signal(3)),
        (format!("kill -TERM {me}; exec sleep 20"), Ended::Signal(15)),
        (format!("kill -HUP {me}; exec sleep 20"), Ended::Signal(1)),
        (format!("trap 'exit 5' TERM; kill -TERM {me}; while :; do sleep 0.05; done"), Ended::Code(5)),
    ];
    for (script, ended) in rows {
        let plan = shell(&script);
        let got = tokio::time::timeout(Duration::from_secs(10), supervise(&plan)).await;
        assert_eq!(got.unwrap().unwrap(), ended, "{script}");
    }
}
