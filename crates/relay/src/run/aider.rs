//! Moving aider, whose requests LiteLLM makes: by `--set-env`, once for each address.
//!
//! Measured with aider 0.86 and LiteLLM 1.81: `.env` files and `.aider.conf.yml` win over the environment, and flags win
//! over both, the last of several; `OPENAI_BASE_URL` wins over `OPENAI_API_BASE` and over `--openai-api-base`,
//! `ANTHROPIC_API_BASE` over `ANTHROPIC_BASE_URL`; Gemini's paths are appended without a version.

use std::ffi::OsString;
use std::path::PathBuf;

use super::files::{Variables, dot_env};
use super::variables::{OF_LITELLM, of_environment, values};
use super::{Own, Plan, RelayAddr, RunError, Surroundings};
use crate::words::{lang, run};

/// The flag, key and variable of aider itself for OpenAI's address, which it hands to LiteLLM as this variable.
const FLAG: &str = "--openai-api-base";
const HANDED_ON: &str = "OPENAI_API_BASE";

pub(super) fn plan(plan: &mut Plan, around: Surroundings<'_>, relay: RelayAddr) -> Result<(), RunError> {
    let given = Given::read(&plan.args);
    let files = Files::read(around, given.env_file.as_deref(), &mut plan.notices);
    let own = |name: &str| {
        given.own(name).or_else(|| files.own(name)).or_else(|| {
            let handed_on =
                if name == HANDED_ON { of_environment(around, "AIDER_OPENAI_API_BASE") } else { None };
            handed_on.or_else(|| of_environment(around, name))
        })
    };
    let values = values(plan, &OF_LITELLM, relay, &own)?;
    for (name, value) in values {
        // Also as variables: what aider starts itself inherits them.
        plan.set(name, &value);
        plan.args.extend([OsString::from("--set-env"), OsString::from(format!("{name}={value}"))]);
    }
    Ok(())
}

/// What its arguments say.
#[derive(Default)]
struct Given {
    /// Variables with their values, the last one wins.
    set: Vec<(String, String)>,
    env_file: Option<String>,
}

impl Given {
    fn read(args: &[OsString]) -> Self {
        let mut given = Self::default();
        let mut words = args.iter().filter_map(|arg| arg.to_str());
        while let Some(word) = words.next() {
            let (flag, inside) =
                word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
            if !matches!(flag, FLAG | "--set-env" | "--env-file") {
                continue;
            }
            let Some(value) = inside.or_else(|| words.next()) else { break };
            match (flag, value.split_once('=')) {
                (FLAG, _) => given.set.push((HANDED_ON.to_owned(), value.to_owned())),
                ("--env-file", _) => given.env_file = Some(value.to_owned()),
                (_, Some((name, value))) => given.set.push((name.to_owned(), value.to_owned())),
                (_, None) => {}
            }
        }
        given
    }

    fn own(&self, name: &str) -> Option<Own> {
        let (_, url) = self.set.iter().rev().find(|(set, value)| set == name && !value.is_empty())?;
        Some(Own { url: url.clone(), origin: run::on_command_line(lang(), name) })
    }
}

/// What its files say, strongest first.
struct Files(Vec<(PathBuf, Says)>);

enum Says {
    /// The text of a `.aider.conf.yml`.
    Conf(String),
    Env(Variables),
}

impl Files {
    fn read(around: Surroundings<'_>, env_file: Option<&str>, notices: &mut Vec<String>) -> Self {
        let root = around.folder.ancestors().find(|above| {
            // A file that every repository has; in a worktree, `.git` itself is one.
            around.text(&above.join(".git/HEAD")).is_ok_and(|text| text.is_some())
                || around.text(&above.join(".git")).is_ok_and(|text| text.is_some())
        });
        let folders = [Some(around.folder.to_owned()), root.map(PathBuf::from), around.home()];
        let folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
        let confs = folders.iter().filter_map(|folder| {
            let file = folder.join(".aider.conf.yml");
            let text = around.text(&file).ok().flatten()?;
            Some((file, Says::Conf(text)))
        });
        let named = env_file.map(|file| around.folder.join(file));
        let envs = named.into_iter().chain(folders.iter().map(|folder| folder.join(".env")));
        let envs = envs.filter_map(|file| {
            let all = dot_env(around, &file, notices)?;
            Some((file, Says::Env(all)))
        });
        Self(confs.chain(envs).collect())
    }

    fn own(&self, name: &str) -> Option<Own> {
        self.0.iter().find_map(|(file, says)| {
            let url = match says {
                Says::Conf(text) => in_conf(text, name),
                Says::Env(all) => in_env(all, name),
            }?;
            Some(Own { url, origin: run::in_place(lang(), name, &file.display().to_string()) })
        })
    }
}

fn in_env(all: &Variables, name: &str) -> Option<String> {
    let own = if name == HANDED_ON { all.get("AIDER_OPENAI_API_BASE") } else { None };
    own.or_else(|| all.get(name))
}

/// The address in a `.aider.conf.yml`, of whose YAML this reads the plain lines that its documentation shows.
fn in_conf(text: &str, name: &str) -> Option<String> {
    let bare = |text: &str| {
        let text = text.split(" #").next().unwrap_or_default();
        text.trim().trim_matches(['"', '\'', ',', ' ']).to_owned()
    };
    let key = (name == HANDED_ON).then_some("openai-api-base:");
    let by_key = key.and_then(|key| text.lines().find_map(|line| line.strip_prefix(key)).map(bare));
    let set = || {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("set-env:"));
        let first = lines.next()?.strip_prefix("set-env:")?;
        let below = lines.take_while(|line| line.starts_with([' ', '-', '#']) || line.is_empty());
        let inline = first.trim().trim_matches(['[', ']']).split(',');
        let all = inline.chain(below.map(|line| line.trim_start_matches([' ', '-'])));
        all.map(bare).find_map(|pair| {
            let (set, value) = pair.split_once('=')?;
            (set.trim() == name).then(|| value.trim().to_owned())
        })
    };
    by_key.filter(|url| !url.is_empty()).or_else(set).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BASE, Machine, upstreams, variable};
    use super::*;

    fn args(plan: &Plan) -> Vec<String> {
        plan.args.iter().map(|arg| arg.to_str().unwrap().replace(BASE, "~")).collect()
    }

    fn aider(machine: &Machine, args: &[&str]) -> Plan {
        machine.plan(&[&["aider"], args].concat()).unwrap()
    }

    #[test]
    fn every_address_is_set_by_flag_behind_the_users_own() {
        let plan = aider(&Machine::new(), &["--message", "hi", "a.py"]);
        let set = |pair: &str| ["--set-env".to_owned(), pair.to_owned()];
        let expected: Vec<String> = ["--message", "hi", "a.py"]
            .map(str::to_owned)
            .into_iter()
            .chain(set("OPENAI_BASE_URL=~/v1"))
            .chain(set("OPENAI_API_BASE=~/v1"))
            .chain(set("ANTHROPIC_BASE_URL=~"))
            .chain(set("ANTHROPIC_API_BASE=~"))
            .chain(set("GEMINI_API_BASE=~/v1beta"))
            .collect();
        assert_eq!(args(&plan), expected);
        assert_eq!(variable(&plan, "ANTHROPIC_API_BASE"), Some(BASE));
    }

    #[test]
    fn the_strongest_address_of_the_users_own_is_the_upstream() {
        let mut machine = Machine::new().env("OPENAI_API_BASE", "https://shell/v1");
        let seen = |machine: &Machine, args: &[&str]| {
            let plan = aider(machine, args);
            let all: Vec<String> = upstreams(&plan).iter().map(|(_, url)| (*url).to_owned()).collect();
            assert!(all.len() == 1, "{all:?}");
            all[0].clone()
        };
        assert_eq!(seen(&machine, &[]), "https://shell/v1");
        machine = machine.env("AIDER_OPENAI_API_BASE", "https://aider/v1");
        assert_eq!(seen(&machine, &[]), "https://aider/v1");
        for (file, text, url) in [
            ("/home/u/.env", "OPENAI_API_BASE=https://home/v1", "https://home/v1"),
            ("/project/.env", "export OPENAI_API_BASE='https://env/v1'", "https://env/v1"),
            ("/project/more", "AIDER_OPENAI_API_BASE=https://more/v1", "https://more/v1"),
            ("/home/u/.aider.conf.yml", "openai-api-base: https://homeconf/v1", "https://homeconf/v1"),
            ("/project/.aider.conf.yml", "a: b\nopenai-api-base: \"https://conf/v1\" # x", "https://conf/v1"),
        ] {
            machine = machine.file(file, text);
            assert_eq!(seen(&machine, &["--env-file", "more"]), url, "{file}");
        }
        assert_eq!(seen(&machine, &["--openai-api-base", "https://flag/v1"]), "https://flag/v1");
        assert_eq!(
            seen(&machine, &["--openai-api-base=https://f/v1", "--set-env", "OPENAI_API_BASE=https://g/v1"]),
            "https://g/v1"
        );
    }

    #[test]
    fn variables_in_the_conf_file_are_seen() {
        for conf in [
            "set-env: [ANTHROPIC_API_BASE=https://a, X=1]",
            "set-env:\n  - X=1\n  - ANTHROPIC_API_BASE=https://a\nmodel: m",
            "set-env:\n- \"ANTHROPIC_API_BASE=https://a\"",
        ] {
            let plan = aider(&Machine::new().file("/project/.aider.conf.yml", conf), &[]);
            assert_eq!(upstreams(&plan), [("anthropic_api_base", "https://a")], "{conf}");
        }
        let other = "model: m\nother:\n  - ANTHROPIC_API_BASE=https://a\n";
        assert_eq!(upstreams(&aider(&Machine::new().file("/project/.aider.conf.yml", other), &[])), []);
    }
}
