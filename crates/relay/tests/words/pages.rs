//! Completions, as shells load them, and manual pages, as their readers take them.

use std::process::{Command, Stdio};

use crate::support::{Home, verbs};
use crate::tools::missing;

/// What a program of the system prints, or `None`, with a word about it, where it is not there.
fn with_program(command: &mut Command) -> Option<(bool, String)> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
        }
        Err(_missing) => {
            missing(&command.get_program().to_string_lossy());
            None
        }
    }
}

fn script(home: &Home, shell: &str) -> std::path::PathBuf {
    let script = home.run(&["completions", shell], &[]);
    assert_eq!((script.code, script.err.as_str()), (Some(0), ""));
    let path = home.0.join(format!("completions.{shell}"));
    std::fs::write(&path, script.out).unwrap();
    path
}

#[test]
fn bash_completes_verbs_flags_and_values() {
    let home = Home::new();
    let path = script(&home, "bash");
    let completed = |words: &str, at: usize| {
        let program = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={at}; \
             function=$(complete -p steady-relay); function=${{function#*-F }}; ${{function%% *}} steady-relay \"${{COMP_WORDS[{at}]}}\" \
             \"${{COMP_WORDS[{}]}}\"; echo \"${{COMPREPLY[*]}}\"",
            path.display(),
            at - 1
        );
        with_program(Command::new("bash").args(["--norc", "-c", &program]))
    };
    for (words, at, expected) in [
        ("steady-relay com", 1, "completions"),
        ("steady-relay serve --up", 2, "--upstream"),
        ("steady-relay config sh", 2, "show"),
        ("steady-relay --lang z", 2, "zh"),
        ("steady-relay completions fi", 2, "fish"),
        ("steady-relay serve --profile pat", 3, "patient"),
        ("steady-relay --gate o", 2, "off"),
        ("steady-relay setup co", 2, "codex"),
        ("steady-relay undo re", 2, "relay"),
    ] {
        let Some((ok, shown)) = completed(words, at) else { return };
        assert!(ok && shown.split_whitespace().any(|word| word == expected), "{words}: {shown}");
    }
}

#[test]
fn zsh_and_fish_load_their_scripts() {
    let home = Home::new();
    let path = script(&home, "zsh");
    let program = format!(
        "autoload -U compinit; compinit -u -d '{}'; source '{}'; print -r -- ${{_comps[steady-relay]}}",
        home.0.join("zcompdump").display(),
        path.display()
    );
    if let Some((ok, shown)) = with_program(Command::new("zsh").args(["-f", "-c", &program])) {
        assert!(ok && shown.trim() == "_steady-relay", "{shown}");
    }
    let path = script(&home, "fish");
    let program = format!(
        "source '{}'; complete -C 'steady-relay com'; complete -C 'steady-relay --la'",
        path.display()
    );
    let mut fish = Command::new("fish");
    fish.args(["--no-config", "-c", &program])
        .env("HOME", &home.0)
        .env("XDG_CONFIG_HOME", home.0.join("config"));
    if let Some((ok, shown)) = with_program(&mut fish) {
        assert!(ok && shown.contains("completions\t") && shown.contains("--lang\t"), "{shown}");
    }
    for shell in ["powershell", "elvish"] {
        let script = std::fs::read_to_string(script(&home, shell)).unwrap();
        assert!(script.contains("completions") && script.contains("--upstream"), "{shell}");
    }
}

#[test]
fn completions_say_what_verbs_do_in_the_language_that_is_spoken() {
    let script = Home::new().run(&["completions", "fish", "--lang", "zh"], &[]).out;
    assert!(script.contains("监听并中继请求"), "{script}");
}

#[test]
fn every_verb_has_a_manual_page_that_its_readers_take() {
    let home = Home::new();
    for lang in ["en", "zh"] {
        let dir = home.0.join(format!("man-{lang}"));
        let shown = dir.to_str().unwrap();
        let written = home.run(&["man", "--dir", shown, "--lang", lang], &[]);
        assert_eq!((written.code, written.out.as_str()), (Some(0), ""), "{written:?}");
        assert!(written.err.contains(shown), "{}", written.err);
        for verb in verbs() {
            let name = [&["steady-relay".to_owned()], &verb[..]].concat().join("-");
            let page = dir.join(format!("{name}.1"));
            assert!(page.exists(), "{}", page.display());
            let mut lint = Command::new("mandoc");
            if let Some((ok, shown)) = with_program(lint.args(["-Tlint", "-Werror"]).arg(&page)) {
                assert!(ok, "{}: {shown}", page.display());
            }
            let mut groff = Command::new("groff");
            if let Some((ok, shown)) =
                with_program(groff.args(["-man", "-Tutf8", "-Kutf8", "-wall"]).arg(&page))
            {
                assert!(ok && !shown.contains("warning"), "{}: {shown}", page.display());
            }
        }
    }
    let one = home.run(&["man"], &[]);
    let written = std::fs::read_to_string(home.0.join("man-en/steady-relay.1")).unwrap();
    assert!(
        one.code == Some(0) && one.out.starts_with(".ie") && one.out.contains("STEADY\\-RELAY")
            || one.out == written,
        "{}",
        one.out
    );
    let file = home.0.join("file");
    std::fs::write(&file, "").unwrap();
    let refused = home.run(&["man", "--dir", file.join("x").to_str().unwrap()], &[]);
    assert!(refused.code == Some(1) && refused.err.contains("hint: name a folder"), "{}", refused.err);
}
