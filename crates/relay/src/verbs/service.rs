//! `steady-relay service …`: installs, starts, stops and removes the relay as a service of this user, and tells how it
//! is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use relay_core::Lang;
use relay_core::config::Config;
use serde_json::json;
use steady_relay::cli::Flags;
use steady_relay::held;
use steady_relay::listen::{BindError, bind};
use steady_relay::running::Who;
use steady_relay::service::act::{Manager, State, Status, is_program};
use steady_relay::service::{
    AsService, CARRIED, Job, Record, ServiceError, Verb, Written, arguments, left_behind,
};
use steady_relay::settings::{self, Environment as _, Loaded};
use steady_relay::words::{self, service as table, start};

use super::{
    Failure, Process, block_on, failed, files, lang_of_data, place, print, print_json, say, settled, wrong,
};

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        failed(error.exit_code(), &error)
    }
}

/// Carries out one of the verbs.
pub(crate) fn service(flags: &Flags, verb: &Verb) -> Result<u8, Failure> {
    let manager = manager()?;
    match *verb {
        Verb::Install { dry_run, json } => install(&manager, flags, dry_run, json),
        Verb::Start => {
            manager.is_there()?;
            let record = manager.start()?;
            say(&table::started(words::lang(), &url(&record)));
            Ok(0)
        }
        Verb::Stop => {
            manager.is_there()?;
            let record = manager.stop()?;
            say(&table::stopped(words::lang(), &url(&record)));
            Ok(0)
        }
        Verb::Status { json } => status(&manager, json),
        Verb::Remove { dry_run, json } => remove(&manager, dry_run, json),
    }
}

fn manager() -> Result<Manager, ServiceError> {
    Manager::here(&Process, words::lang())
}

/// Whether a service is installed that listens at this port.
pub(super) fn has_port(port: u16) -> bool {
    let record = manager().and_then(|manager| manager.record());
    record.is_ok_and(|record| record.addresses.iter().any(|at| at.port() == port))
}

fn install(manager: &Manager, flags: &Flags, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    // As the service will see them: what is wrong with them then would be told to nobody.
    let files = files(flags);
    let read = |path: &Path| files.read(path);
    let loaded = settings::load(flags, &AsService(&Process), &read);
    let Loaded { config, notices, .. } = loaded.map(settled).map_err(|error| wrong(&error))?;
    let job = job(manager, flags, &config, dry_run)?;
    let written = manager.files(&job)?;
    if dry_run {
        return print_what_would_be(manager, &job, &written, as_json);
    }
    manager.is_there()?;
    if manager.record().is_ok() {
        say(&table::stopping(words::lang(), config.timeouts.drain.as_secs()));
    }
    let installed = manager.install(&job)?;
    for words in notices {
        say(&start::note(words::lang(), &words));
    }
    tell_what_is_left_behind(flags);
    let now = Record { program: job.program, addresses: job.addresses };
    if let Some(before) = installed.before.filter(|before| before.addresses != now.addresses) {
        say(&table::moved(words::lang(), &url(&before), &url(&now)));
    }
    if as_json {
        return print_json(&json!({"v": 1, "url": url(&now), "files": installed.files}));
    }
    say(&table::installed(words::lang(), &url(&now)));
    say(&held::how_to_see(words::lang(), config.waiting.desktop));
    Ok(0)
}

/// What a dry run prints. Where there is no service manager the files can still be had, for another machine.
fn print_what_would_be(
    manager: &Manager,
    job: &Job,
    written: &[Written],
    as_json: bool,
) -> Result<u8, Failure> {
    let obstacle = manager.is_there().err().map(|error| error.to_string());
    if as_json {
        let files: Vec<_> =
            written.iter().map(|file| json!({"path": file.path, "text": file.text})).collect();
        return print_json(&json!({"v": 1, "dry_run": true, "files": files, "obstacle": obstacle}));
    }
    let shown: Vec<_> =
        written.iter().map(|file| format!("==> {} <==\n{}", file.path.display(), file.text)).collect();
    print(shown.join("\n").trim_end())?;
    let record = Record { program: job.program.clone(), addresses: job.addresses.clone() };
    say(&match obstacle {
        Some(why) => table::would_not_install(words::lang(), &why),
        None => table::would_install(words::lang(), &url(&record)),
    });
    Ok(0)
}

fn job(manager: &Manager, flags: &Flags, config: &Config, dry_run: bool) -> Result<Job, Failure> {
    let folder = std::env::current_dir()
        .map_err(|error| failed(1, &start::no_folder(words::lang(), &error.to_string())))?;
    let program = program().ok_or_else(|| failed(1, &start::no_own_path(words::lang())))?;
    if !is_program(&program) {
        return Err(ServiceError::NoProgram(program).into());
    }
    let carried = CARRIED.iter().filter_map(|name| {
        let value = Process.value(name)?.into_string().ok().filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value))
    });
    Ok(Job {
        program,
        arguments: arguments(flags, &folder)?,
        addresses: addresses(manager, config, dry_run)?,
        environment: carried.collect(),
        drain: config.timeouts.drain,
        has_log: config.log.file.is_some(),
    })
}

/// This program, by the name that it was found under: behind a link of a package, the next version stands.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let called = std::env::args_os().next().map(PathBuf::from)?;
    let found = if called.components().count() > 1 {
        std::path::absolute(&called).ok()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(&called)).find(|path| is_program(path))
    };
    let is_own = |path: &PathBuf| path.is_absolute() && path.canonicalize().ok() == own.canonicalize().ok();
    Some(found.filter(is_own).unwrap_or(own))
}

/// Where the service listens. Who has the port now is an error, unless it is the service itself.
fn addresses(manager: &Manager, config: &Config, dry_run: bool) -> Result<Vec<SocketAddr>, Failure> {
    let port = config.port;
    if port == 0 {
        return Err(ServiceError::AnyPort.into());
    }
    let open = |port| block_on(async move { Ok(bind(place(config, port)).map(|bound| bound.addresses())) });
    match open(port)? {
        Ok(addresses) => Ok(addresses),
        Err(error @ BindError::Taken { .. }) if !dry_run && !manager.holds(port) => {
            Err(ServiceError::Taken(error).into())
        }
        // Which families there are shows at any other port.
        Err(_) => match open(0)? {
            Ok(found) => Ok(found.iter().map(|at| SocketAddr::new(at.ip(), port)).collect()),
            Err(error) => Err(ServiceError::Taken(error).into()),
        },
    }
}

fn tell_what_is_left_behind(flags: &Flags) {
    let (ours, proxies) = left_behind(&Process);
    let usual = super::places(flags, &files(flags)).usual_env_file;
    let path = usual.map_or_else(|| "steady-relay/env".to_owned(), |path| path.display().to_string());
    if !ours.is_empty() {
        say(&table::left_behind(words::lang(), &ours.join(", "), &path));
    }
    if !proxies.is_empty() {
        say(&table::proxies_left_behind(words::lang(), &proxies.join(", ")));
    }
}

/// Where clients find it.
fn url(record: &Record) -> String {
    let first = record.addresses.first().copied();
    let first = first.unwrap_or_else(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    format!("http://{}", steady_relay::listen::reached_at(first))
}

fn status(manager: &Manager, as_json: bool) -> Result<u8, Failure> {
    let status = manager.status()?;
    let code = if status.answer == Who::Relay { 0 } else { 6 };
    let Some(record) = &status.installed else {
        if as_json {
            return print_json(&json!({"v": 1, "installed": false})).map(|_printed| 6);
        }
        return Err(failed(6, &ServiceError::NotInstalled));
    };
    let problem = problem(lang_of_data(as_json), &status, record);
    if as_json {
        let page = json!({
            "v": 1, "installed": true, "url": url(record), "addresses": record.addresses,
            "program": record.program, "has_program": status.has_program, "state": status.state,
            "pid": status.pid, "restarts": status.restarts, "answer": status.answer,
            "files": status.files, "problem": problem,
        });
        return print_json(&page).map(|_printed| code);
    }
    let lang = words::lang();
    let state = match status.state {
        State::Running => {
            let pid = status.pid.map(|pid| table::process(lang, pid)).unwrap_or_default();
            table::running(lang, &pid, status.restarts)
        }
        State::Changing => table::changing(lang),
        State::Stopped => table::not_running(lang),
        State::Failed => table::failed(lang),
        // Who answers tells.
        State::Unknown if status.answer == Who::Relay => table::running(lang, "", status.restarts),
        State::Unknown => table::unknown(lang),
    };
    let answer = match status.answer {
        Who::Relay => table::answers(lang),
        Who::StandIn => table::stand_in(lang),
        Who::Stranger => table::stranger(lang),
        Who::Silent | Who::Nobody => table::silent(lang),
    };
    let mut lines = vec![
        table::status_service(lang, &state),
        table::status_address(lang, &url(record), &answer),
        table::status_program(lang, &record.program.display().to_string()),
    ];
    lines.extend(status.files.iter().map(|path| table::status_file(lang, &path.display().to_string())));
    print(&lines.join("\n"))?;
    if let Some(problem) = problem {
        say(&problem);
    }
    Ok(code)
}

/// What a person should do something about.
fn problem(lang: Lang, status: &Status, record: &Record) -> Option<String> {
    if !status.has_program {
        return Some(table::problem_gone(lang, &record.program.display().to_string(), &url(record)));
    }
    (status.answer != Who::Relay).then(|| table::problem_silent(lang, &url(record)))
}

fn remove(manager: &Manager, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    let files = if dry_run { manager.installed()? } else { manager.remove()? };
    let paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
    if as_json {
        return print_json(&json!({"v": 1, "dry_run": dry_run, "files": paths}));
    }
    let Some((_, record)) = files.first() else {
        say(&table::nothing_to_remove(words::lang()));
        return Ok(0);
    };
    if dry_run {
        let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return print(&shown.join("\n"));
    }
    say(&table::removed(words::lang(), &url(record)));
    Ok(0)
}
