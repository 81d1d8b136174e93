//! The reference page, `docs/config.md`, made from the lists in `keys` and `variables`.

use super::keys::WEEK;
use super::reference::{KeyDoc, reference};
use super::variables::{Scope, VARIABLES};
use relay_core::units::{show_duration, size_units, time_units};
use std::fmt::Write as _;

const HEAD: &str = "\
# Settings

<!-- Made from the key table: `UPDATE_DOCS=1 cargo test -p steady-relay --lib reference_page` writes it anew. -->

Nothing has to be set: `steady-relay` listens on 127.0.0.1:8787 and knows the usual upstreams.

One TOML file holds all settings, of upstreams, profiles, routes and rules up to 1000 each. `steady-relay config path`
tells where it is looked for, `config check` says what is wrong with it, twenty errors at once, `config show --origin`
tells for each key who set it, and `config schema` prints a JSON Schema for editors (`steady-relay config schema >
steady-relay.schema.json`, then `#:schema ./steady-relay.schema.json` as the first line of the file).

Of several places that set a key, the first in this list holds:

1. a flag,
2. a variable of the process environment,
3. a variable in the file named by `--env-file` or `STEADY_RELAY_ENV_FILE`,
4. a variable in the file `env` beside the usual configuration file,
5. the configuration file,
6. the default.

A relay that runs reads its files anew when one of them changes, looked at every two seconds, and on SIGHUP. New calls
go by the new settings, open ones by those they began with. A file with errors is refused as a whole, its errors are
said, and the old settings stay. So do they where a file is now a pipe or larger than 1 MiB; one that is suddenly empty
is looked at again after two seconds, since it may be in the middle of being replaced. A pipe that `--config` names is
read once, at the start. `listen`, `port`, `metrics_port`, `token`, `state_dir` and what is below `[history]`, `[otlp]` and `[log]`, except
`otlp.propagate` and `log.level`, need a restart; where they were changed, the relay says so. The relay of `steady-relay run` does not reload.

## Headers of a single call

A client can change one call by headers, which are never forwarded. What they cannot mean is answered with a 400.

| header | meaning |
| --- | --- |
| `x-steady-profile: NAME` | this profile, in place of all that would choose another; a route's numbers do not apply |
| `x-steady-patience: 30s` | no longer wait between sends than this, whatever the client is known to bear |
| `x-steady-limit: 30s` | the client hangs up when nothing came for so long: no wait outlasts that; a limit that is known of the client anyway comes first |
| `x-steady-report: call` | the head of the answer tells how the call went, as JSON in a header of the same name ([python.md](python.md#the-report)) |
| `x-steady: off` | nothing is sent again and nothing is changed: the call passes through as it is |

";

/// One kind of value: what it is called, how it is written, and examples, each with a section and key that takes it.
struct Value {
    kind: &'static str,
    /// `UNITS` stands for the units that are read, `LONGEST` for the longest time.
    how: &'static str,
    examples: &'static [(&'static str, &'static str, &'static str)],
}

const VALUES: &[Value] = &[
    Value {
        kind: "time",
        how: "in quotes: a number and one unit, UNITS; from nothing to LONGEST, and less where a key needs it",
        examples: &[
            ("profile.x", "base", "\"400ms\""),
            ("timeouts", "connect", "\"1.5s\""),
            ("timeouts", "idle", "\"15min\""),
            ("profile.x", "patience", "\"6h\""),
            ("timeouts", "drain", "\"1d\""),
        ],
    },
    Value {
        kind: "size",
        how: "in quotes: a number and one unit, UNITS (with `i` by 1024, without by 1000), or a bare count of bytes",
        examples: &[
            ("hold", "bytes", "\"64KiB\""),
            ("bodies", "total", "\"1.5GiB\""),
            ("bodies", "each", "65536"),
        ],
    },
    Value {
        kind: "number",
        how: "without quotes; `\"unlimited\"`, with quotes, where a key says so",
        examples: &[("relay", "port", "9000"), ("profile.x", "factor", "1.5")],
    },
    Value {
        kind: "true or false",
        how: "without quotes",
        examples: &[("upstream.openai", "strip_v1", "true"), ("client.codex", "cut_fatal", "false")],
    },
    Value {
        kind: "text, name, URL, choice",
        how: "in quotes; between single ones a `\\` is just that",
        examples: &[("relay", "profile", "\"batch\""), ("relay", "upstream", "'https://llm.example.com/v1'")],
    },
    Value {
        kind: "path of a file",
        how: "in quotes; a relative one starts at the folder of the file that names it, from a flag or the environment \
              at the working directory. Neither `~` nor `$HOME` is replaced",
        examples: &[("log", "file", "\"logs/relay.log\""), ("log", "file", "'C:\\logs\\relay.log'")],
    },
    Value {
        kind: "list",
        how: "in brackets, with commas",
        examples: &[("relay", "allowed_origins", "[\"http://localhost:3000\", \"http://localhost:5173\"]")],
    },
    Value {
        kind: "table",
        how: "in braces, with commas",
        examples: &[("upstream.openai", "headers", "{ \"x-team\" = \"blue\", \"x-cost\" = \"42\" }")],
    },
];

/// How each kind of value is written.
fn values(page: &mut String) {
    line(page, format_args!("## Values\n\n| value | how it is written | examples |\n| --- | --- | --- |"));
    for Value { kind, how, examples } in VALUES {
        let units = if *kind == "size" { size_units() } else { time_units() };
        let units = units.iter().map(|unit| format!("`{unit}`")).collect::<Vec<_>>();
        let how = how.replace("UNITS", &or(&units)).replace("LONGEST", &show_duration(WEEK));
        let examples = examples.iter().map(|(_, _, value)| format!("`{value}`")).collect::<Vec<_>>();
        line(page, format_args!("| {kind} | {how} | {} |", examples.join(", ")));
    }
    line(
        page,
        format_args!(
            "\nFlags and variables take the same without the quotes of TOML; `TOTAL_TIMEOUT` takes bare\nseconds, too.\n"
        ),
    );
}

/// `a, b or c`.
fn or(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

const VARIABLES_HEAD: &str = "\
## Variables

Of several in the same place that set the same key, the first in this table holds: `ENABLE_LOGGING=false` silences the log,
whatever `LOG_LEVEL` says. Env files hold `NAME=value` lines, with an optional
`export `, `# comments`, 'single quotes' that keep all as it is, and \"double quotes\" with the escapes `\\n`, `\\r`, `\\t`,
`\\\\`, `\\\"` and `\\$`; nothing is replaced in a value. They may begin with a byte order mark, be UTF-16 and have the line
ends of Windows. A `.env` in the working directory is never read by itself: whoever wrote that folder could send your
keys elsewhere.

| variable | sets | where |
| --- | --- | --- |
";

const VARIABLES_TAIL: &str = "
A name that begins with `STEADY_RELAY_` and is not in this table is told with the nearest that is: from the process
environment as a note at the start and in `config check`, in an env file as an error.
`CODEX_API_KEY` in the process environment belongs to Codex and is never used by the relay. In an env file it is added
to requests that carry no credential, and only where the same env file, or the configuration file, names the upstream.
`ENABLE_LOGGING`, `LOG_LEVEL` and `LOG_FILE` count in env files alone, since many programs share these names.
Variables that begin with `OTEL_` are read where the program was built with the feature `otlp`, and by no other.
`MAX_RETRIES=3` is four sends.
";

/// The page.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    values(&mut page);
    for section in reference() {
        line(&mut page, format_args!("## `{}`\n\n{}\n", section.head, section.doc));
        for key in &section.keys {
            line(&mut page, format_args!("### `{}`\n\n{}\n\n{}\n", key.name, shape(key), key.doc));
        }
    }
    page += VARIABLES_HEAD;
    for variable in VARIABLES {
        let place = match variable.scope {
            Scope::Everywhere => "environment, env files",
            Scope::EnvFiles => "env files",
            Scope::Process => "environment",
        };
        let instead = variable.instead.map_or_else(String::new, |now| format!(" (older; today {now})"));
        let sets = variable.sets;
        let is_key = sets.contains('.') && !sets.contains(' ');
        let sets = if is_key { format!("`{sets}`") } else { sets.to_owned() };
        line(&mut page, format_args!("| `{}` | {sets}{instead} | {place} |", variable.name));
    }
    page + VARIABLES_TAIL
}

fn line(page: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _always = writeln!(page, "{words}");
}

fn shape(key: &KeyDoc) -> String {
    let choices = key.choices.iter().map(|choice| format!("`\"{choice}\"`")).collect::<Vec<_>>().join(", ");
    let shape = if choices.is_empty() { key.shape.to_owned() } else { format!("one of {choices}") };
    let default = if key.default.is_empty() { "not set".to_owned() } else { format!("`{}`", key.default) };
    format!("*{shape}; default: {default}*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Flags, NO_VARIABLES, load};

    #[test]
    fn every_example_of_a_value_is_read() {
        for (section, key, value) in VALUES.iter().flat_map(|value| value.examples) {
            let text = format!("[{section}]\n{key} = {value}\n");
            let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
            let loaded = load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec()));
            let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(loaded.config, relay_core::Config::default(), "{text} sets nothing");
        }
    }

    #[test]
    fn the_units_of_the_page_are_those_that_are_read() {
        use relay_core::units::{bytes, duration};
        assert!(time_units().iter().all(|unit| duration(&format!("1{unit}")).is_ok()));
        assert!(size_units().iter().all(|unit| bytes(&format!("1{unit}")).is_ok()));
        let page = page();
        assert!(page.contains("unit, `ms`, `s`, `min`, `h` or `d`; from nothing to 7d,"), "{page}");
        assert!(page.contains("unit, `B`, `KB`, `kB`, `KiB`, `MB`, `MiB`, `GB` or `GiB` (with"), "{page}");
    }

    #[test]
    fn reference_page_is_the_committed_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap();
            std::fs::write(path, page()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
        let hint = "docs/config.md is not what the key table says: UPDATE_DOCS=1 cargo test -p steady-relay --lib reference_page";
        assert!(committed == page(), "{hint}");
    }
}
