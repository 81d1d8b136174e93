//! `steady-relay demo`, as a user runs it.

#[cfg(test)]
mod demo {
    use std::process::{Command, Output};

    fn demo(arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
        command.arg("demo").args(arguments).env_remove("CLICOLOR_FORCE").env("LC_ALL", "C");
        command
    }

    fn output(arguments: &[&str]) -> Output {
        demo(arguments).output().unwrap()
    }

    #[test]
    fn the_relay_serves_what_the_client_alone_loses() {
        let output = output(&["--quick", "--json", "--seed", "3"]);
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        assert_eq!(out.lines().count(), 1, "{out}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["v"], &report["seed"], &report["ok"]), (&1.into(), &3.into(), &true.into()));
        assert!(report["took_s"].as_f64().unwrap() <= 15.0, "{out}");
        let scenes = report["scenes"].as_array().unwrap();
        let names: Vec<_> = scenes.iter().map(|scene| scene["scene"].as_str().unwrap()).collect();
        assert_eq!(names, ["dialogue", "batch", "streams"]);
        for scene in scenes {
            let share = |side: &str| scene[side]["share"].as_f64().unwrap();
            assert!(share("with") >= share("without") && share("with") >= 0.95, "{scene}");
            let calls = scene["calls"].as_u64().unwrap();
            assert!(scene["with"]["sends"].as_u64().unwrap() <= calls * 8, "{scene}");
        }
        // A service that refuses nobody would prove nothing.
        assert!(scenes.iter().any(|scene| scene["without"]["share"].as_f64().unwrap() < 0.9), "{out}");
        // Progress in a pipe is whole lines, without colour.
        assert!(!err.contains(['\r', '\x1b']) && err.ends_with('\n'), "{err:?}");
        assert!(names.len() * 2 < err.lines().count(), "{err}");
    }

    #[test]
    fn the_flags_of_the_relay_are_refused() {
        let output = output(&["--port", "9000"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.starts_with("error: unexpected argument '--port' found\n"), "{err}");
        assert!(err.contains("Usage: steady-relay demo [OPTIONS]"), "{err}");
    }

    #[test]
    fn the_help_says_what_the_seed_does_not_fix() {
        let help = String::from_utf8(output(&["--help"]).stdout).unwrap();
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("the same service, but not the same figures"), "{help}");
        assert!(words.contains("When a request arrives is not fixed"), "{help}");
    }

    #[cfg(unix)]
    #[test]
    fn an_interrupt_ends_it_at_once() {
        use std::io::{BufRead as _, BufReader, Read as _};
        use std::process::Stdio;
        use std::time::Duration;
        use steady_relay::clock::{Clock as _, SystemClock};

        let mut child = demo(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut String::new()).unwrap();
        let interrupted = SystemClock.now();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(SystemClock.now().since(interrupted) < Duration::from_secs(5));
        let (mut out, mut rest) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        err.read_to_string(&mut rest).unwrap();
        assert!(out.is_empty() && rest.ends_with("stopped\n"), "{out:?} {rest:?}");
    }
}
