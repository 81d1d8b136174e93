//! `steady-relay setup` and `undo`: shows what would change, asks, and writes.

use std::fs::{File, TryLockError};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::{Path, PathBuf};

use relay_core::Lang;
use relay_core::config::Config;
use serde_json::json;
use steady_relay::cli::Flags;
use steady_relay::held;
use steady_relay::running::{self, Who};
use steady_relay::settings::{self, Loaded};
use steady_relay::setup::{
    self, Client, ClientState, Fate, Notebook, Options, Plan, RealDisk, RelayAt, Standing, UndoOptions,
    Undone, Wish, here,
};
use steady_relay::words::{self, setup as say_in, start};

use super::{Failure, Process, failed, files, lang_of_data, load, places, print, print_json, say};

/// How many ports above a taken one are tried.
const NEAR: u16 = 100;

/// Points clients at the relay.
pub(crate) fn setup(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let (clients, env_files) = setup::asked(words::lang(), &options.clients).map_err(wrong)?;
    let (folder, notebook) = notebook(flags)?;
    // The settings may name another language.
    let loaded = load(flags, &files(flags))?;
    let lang = lang_of_data(options.json);
    let config = loaded.file.clone().or_else(|| places(flags, &files(flags)).config);
    let mut relay = relay_at(&loaded)?;
    let machine = here::machine();
    if options.status {
        let states = setup::standings(lang, &machine, &relay, (&mut RealDisk, &notebook))
            .map_err(|error| failed(1, &error.said(words::lang())))?;
        return status(lang, options, &relay, &states);
    }
    let found = (machine.who)(running::address(&loaded.config));
    let new_port = free_port(&loaded, config.as_deref(), found)?;
    relay.port = new_port.unwrap_or(relay.port);
    let _alone = if options.dry_run { None } else { lock(&folder)? };
    let wish = Wish { clients, env_files, config, new_port };
    let mut plan = setup::prepare(lang, &machine, &relay, (&mut RealDisk, &notebook), &wish)
        .map_err(|error| failed(1, &error.said(words::lang())))?;
    if let Some(port) = new_port.filter(|_| !plan.is_empty()) {
        plan.notes.insert(0, say_in::port_taken(lang, loaded.config.port, port));
        plan.notes.insert(1, say_in::restart_relay(lang));
    }
    let done = proceed(lang, options, &notebook, &plan)?;
    let end = End { is_silent: new_port.is_some() || found == Who::Nobody, config: &loaded.config };
    told(lang, options, (&plan, &done), end)
}

/// What came of a plan.
#[derive(Default)]
struct Done {
    written: bool,
    /// Files that could not be written.
    failed: Vec<(PathBuf, String)>,
    /// The answer was no.
    declined: bool,
}

/// Shows the plan, asks where it has to, and writes.
fn proceed(lang: Lang, options: &Options, notebook: &Notebook, plan: &Plan) -> Result<Done, Failure> {
    if !options.json {
        told_before(lang, plan)?;
    }
    if plan.is_empty() || options.dry_run {
        return Ok(Done::default());
    }
    if !options.yes && !agreed(lang)? {
        return Ok(Done { declined: true, ..Done::default() });
    }
    let failed = setup::carry_out(lang, &mut RealDisk, notebook, plan)
        .map_err(|error| failed(1, &error.said(words::lang())))?;
    Ok(Done { written: true, failed, declined: false })
}

fn told_before(lang: Lang, plan: &Plan) -> Result<(), Failure> {
    for client in &plan.ready {
        say(&say_in::is_ready(lang, client));
    }
    for (client, why) in &plan.left {
        say(&say_in::is_left(lang, client, why));
    }
    for (client, what) in &plan.by_hand {
        say(&say_in::do_by_hand(lang, client, what));
    }
    for note in &plan.notes {
        say(&start::note(lang, note));
    }
    if !plan.is_empty() {
        print(plan.diff().trim_end())?;
    }
    Ok(())
}

/// Asks at the terminal.
fn agreed(lang: Lang) -> Result<bool, Failure> {
    let (input, error) = (std::io::stdin(), std::io::stderr());
    if !input.is_terminal() || !error.is_terminal() {
        return Err(failed(2, &say_in::needs_yes(words::lang())));
    }
    let asked = write!(error.lock(), "{}", say_in::question(lang)).and_then(|()| error.lock().flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| input.lock().read_line(&mut answer));
    Ok(read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// What there is to say when all is written.
struct End<'a> {
    /// No relay runs yet.
    is_silent: bool,
    config: &'a Config,
}

fn told(lang: Lang, options: &Options, (plan, done): (&Plan, &Done), end: End<'_>) -> Result<u8, Failure> {
    if options.json {
        print_json(&in_json(options, plan, done))?;
    } else if done.declined || options.dry_run {
        say(&say_in::not_written(lang));
    }
    for (file, why) in &done.failed {
        say(&start::error(lang, &say_in::file_is_bad(lang, &file.display().to_string(), why)));
    }
    if plan.states.is_empty()
        && plan.left.is_empty()
        && plan.by_hand.is_empty()
        && plan.is_empty()
        && !options.json
    {
        return Err(failed(1, &say_in::none_found(words::lang())));
    }
    if done.written && !options.json {
        if done.failed.is_empty() {
            let clients = plan.clients().into_iter().filter(|client| *client != Client::Relay.name());
            say(&say_in::written(lang, &clients.collect::<Vec<_>>().join(", ")));
            say(&held::how_to_see(lang, end.config.waiting.desktop));
        }
        if end.is_silent {
            say(&say_in::start_relay(lang));
        }
    }
    Ok(u8::from(done.declined || !done.failed.is_empty() || !plan.left.is_empty()))
}

fn in_json(options: &Options, plan: &Plan, done: &Done) -> serde_json::Value {
    let failed = |path: &Path| done.failed.iter().any(|(file, _)| file == path);
    let edits: Vec<_> = plan
        .keys()
        .map(|(client, file, key, old, new)| {
            json!({"client": client, "file": file.display().to_string(), "key": key, "old": old, "new": new,
                   "written": done.written && !failed(file)})
        })
        .collect();
    let pairs = |pairs: &[(String, String)], name: &str| {
        pairs.iter().map(|(client, what)| json!({"client": client, name: what})).collect::<Vec<_>>()
    };
    json!({
        "v": 1,
        "dry_run": options.dry_run,
        "written": done.written && done.failed.is_empty(),
        "edits": edits,
        "ready": plan.ready,
        "left": pairs(&plan.left, "why"),
        "by_hand": pairs(&plan.by_hand, "what"),
        "notes": plan.notes,
    })
}

/// Which clients are at the relay.
fn status(lang: Lang, options: &Options, relay: &RelayAt, states: &[ClientState]) -> Result<u8, Failure> {
    if options.json {
        let clients: Vec<_> = states.iter().map(|state| state.in_json(lang)).collect();
        let at = format!("{}:{}", relay.host, relay.port);
        return print_json(&json!({"v": 1, "relay": at, "clients": clients}));
    }
    if states.is_empty() {
        return Err(failed(1, &say_in::none_found(words::lang())));
    }
    let mut text = String::new();
    for state in states {
        text += &say_in::state_line(lang, &state.title, &state.standing.said(lang));
        text.push('\n');
        if !state.file.as_os_str().is_empty() {
            text += &format!("  {}  {}\n", state.file.display(), state.key);
        }
        if let Standing::ByHand(steps) = &state.standing {
            steps.iter().for_each(|step| text += &format!("  {step}\n"));
        }
        state.notes.iter().for_each(|note| text += &format!("  {}\n", start::note(lang, note)));
    }
    print(text.trim_end())
}

/// Takes back what `setup` wrote.
pub(crate) fn undo(flags: &Flags, options: &UndoOptions) -> Result<u8, Failure> {
    let lang = lang_of_data(options.json);
    let mut clients = Vec::new();
    for name in &options.clients {
        match Client::of(name) {
            Some(client) => clients.push(client),
            None => {
                let known: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
                return Err(wrong(say_in::unknown_client(words::lang(), name, &known.join(", "))));
            }
        }
    }
    let (folder, notebook) = notebook(flags)?;
    let _alone = if options.dry_run || !folder.exists() { None } else { lock(&folder)? };
    let undone = setup::undo(lang, &mut RealDisk, &notebook, &clients, !options.dry_run)
        .map_err(|error| failed(1, &error.said(words::lang())))?;
    let left = undone.iter().any(|key| matches!(key.fate, Fate::Left(_)));
    if options.json {
        let keys: Vec<_> = undone.iter().map(undone_in_json).collect();
        print_json(&json!({"v": 1, "dry_run": options.dry_run, "keys": keys}))?;
    } else if undone.is_empty() {
        say(&say_in::nothing_to_undo(lang));
    } else {
        let lines: Vec<String> = undone.iter().map(|key| undone_said(lang, key, options.dry_run)).collect();
        print(&lines.join("\n"))?;
        if options.dry_run {
            say(&say_in::not_written(lang));
        }
    }
    Ok(u8::from(left))
}

fn undone_in_json(key: &Undone) -> serde_json::Value {
    let why = if let Fate::Left(why) = &key.fate { Some(why) } else { None };
    json!({"client": key.client, "file": key.file.display().to_string(), "key": key.key, "value": key.value,
           "fate": key.fate.name(), "why": why})
}

fn undone_said(lang: Lang, key: &Undone, dry_run: bool) -> String {
    let file = key.file.display().to_string();
    match (&key.fate, &key.value) {
        (Fate::Restored, Some(value)) if dry_run => say_in::would_restore(lang, &key.key, &file, value),
        (Fate::Restored, Some(value)) => say_in::restored_to(lang, &key.key, &file, value),
        (Fate::Restored, None) if dry_run => say_in::would_take_out(lang, &key.key, &file),
        (Fate::Restored, None) => say_in::taken_out(lang, &key.key, &file),
        (Fate::Nothing, _) => say_in::was_restored(lang, &key.key, &file),
        (Fate::Left(why), _) => say_in::was_left(lang, &key.key, &file, why),
    }
}

fn wrong(words: String) -> Failure {
    failed(2, &words)
}

/// The journal is found without readable settings, or `undo` would not be possible without them: by flag, variable or
/// habit, whatever `state_dir` in the configuration file says.
fn notebook(flags: &Flags) -> Result<(PathBuf, Notebook), Failure> {
    let folder = settings::state_dir_without_settings(flags, &Process)
        .ok_or_else(|| wrong(say_in::no_state_folder(words::lang())))?;
    let notebook = Notebook::in_folder(&folder);
    Ok((folder, notebook))
}

/// Keeps two of us from writing at once. A folder that cannot be written is told by the journal, and better.
fn lock(folder: &Path) -> Result<Option<File>, Failure> {
    let Ok(file) = setup::lock_file(folder) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(failed(1, &say_in::another_runs(words::lang()))),
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Where clients reach the relay that these settings make.
fn relay_at(loaded: &Loaded) -> Result<RelayAt, Failure> {
    match loaded.config.port {
        0 => Err(wrong(say_in::port_is_any(words::lang()))),
        _ => Ok(RelayAt::of(&loaded.config)),
    }
}

/// Another port, where some other program has the relay's. Only one that the configuration file can change.
fn free_port(loaded: &Loaded, config: Option<&Path>, who: Who) -> Result<Option<u16>, Failure> {
    let port = loaded.config.port;
    let is_ours = match who {
        Who::Relay | Who::StandIn | Who::Nobody => true,
        // A service manager holds the port of a relay that has not started yet.
        Who::Silent => super::service::has_port(port),
        Who::Stranger => false,
    };
    if is_ours {
        return Ok(None);
    }
    let shown = loaded.shown.iter().find(|shown| shown.section == "[relay]" && shown.key == "port");
    let origin = shown.map_or("default", |shown| shown.origin.as_str());
    let in_file = config.is_some_and(|file| origin.starts_with(&file.display().to_string()));
    if config.is_none() || !(in_file || origin == "default") {
        return Err(wrong(say_in::port_taken_here(words::lang(), port, origin)));
    }
    let near = (1..=NEAR).filter_map(|above| port.checked_add(above));
    match near.into_iter().find(|port| is_free(*port)) {
        Some(free) => Ok(Some(free)),
        None => Err(failed(1, &say_in::no_free_port(words::lang(), port))),
    }
}

/// Whether the relay could listen there, on both addresses that it has.
fn is_free(port: u16) -> bool {
    let open = |ip: IpAddr| TcpListener::bind((ip, port));
    let taken = |ip: IpAddr| open(ip).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse);
    open(Ipv4Addr::LOCALHOST.into()).is_ok() && !taken(Ipv6Addr::LOCALHOST.into())
}
