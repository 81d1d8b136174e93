//! What `setup` would write: files with their texts before and after, and the journal's entry for each key. Pure.

use std::fmt;
use std::path::{Path, PathBuf};

use relay_core::units::Invalid;
use relay_core::{BaseUrl, Lang};
use serde_json::Value;

use super::address::{RelayAt, shown};
use super::clients::{self, Client, Finding, Key, Look, Wanted, Way};
use super::diff::seen;
use super::document::{Document, Format, Stuck};
use super::journal::{Entry, Journal};
use super::machine::{Bad, Held, Machine};
use super::survey::{ClientState, state};
use crate::proxy::catching_clients;
use crate::target::is_version;
use crate::words::{settings, setup as words};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// These clients alone; none named: all that are there.
    pub clients: Vec<Client>,
    /// An env file.
    pub env_files: Vec<PathBuf>,
    /// The relay's own configuration file, where something is to be written into it.
    pub config: Option<PathBuf>,
    /// The port to write into it, where the one it had is taken.
    pub new_port: Option<u16>,
}

/// All that would be written, and what is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The files that change, the relay's own first.
    pub(super) files: Vec<FileEdit>,
    /// The relay's own file: without it no other one is written.
    pub(super) first: Option<PathBuf>,
    /// Clients that have all they need.
    pub ready: Vec<String>,
    /// What only the user can do, with the name of the client.
    pub by_hand: Vec<(String, String)>,
    /// Clients that are left alone, and why.
    pub left: Vec<(String, String)>,
    /// What the user should know, a sentence each.
    pub notes: Vec<String>,
    /// Every client as it was found.
    pub states: Vec<ClientState>,
}

/// One file that changes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct FileEdit {
    pub(super) file: PathBuf,
    pub(super) format: Format,
    /// The text before; `None`: there is no such file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) entries: Vec<Entry>,
    /// Files of one number are of use to their client only all together.
    pub(super) group: usize,
}

/// Without the texts: whole files of settings, with the keys in them.
impl fmt::Debug for FileEdit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("FileEdit");
        out.field("file", &self.file).field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Plan {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Each key: client, file, key, the value before and the value then, ready to be shown.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &Path, String, Option<String>, String)> {
        self.files.iter().flat_map(|file| &file.entries).map(|entry| {
            let new = entry.ours.last().map(seen).unwrap_or_default();
            (entry.client.as_str(), entry.file.as_path(), entry.key(), entry.old.as_ref().map(seen), new)
        })
    }

    /// The clients that change.
    #[must_use]
    pub fn clients(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.files.iter().flat_map(|file| &file.entries).map(|entry| entry.client.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Decides what is to be written so that the clients come to `relay`.
pub(super) fn plan(
    lang: Lang,
    machine: &Machine<'_>,
    relay: &RelayAt,
    journal: &Journal,
    wish: &Wish,
) -> Plan {
    let look = Look { machine, relay, lang, named: &wish.clients };
    let mut planner = Planner { look, journal, wish, plan: Plan::default(), group: 0 };
    let named = !wish.clients.is_empty() || !wish.env_files.is_empty();
    let mut found = if named && wish.clients.is_empty() { Vec::new() } else { clients::find(look) };
    for client in &wish.clients {
        if !found.iter().any(|finding| finding.client == *client) {
            let why = words::not_found(lang, client.name());
            planner.plan.left.push((client.name().to_owned(), why));
        }
    }
    found.extend(wish.env_files.iter().map(|file| clients::env_file(look, machine.folder.join(file))));
    // Each env file stands for itself; of a client, all files of one title go together.
    let is_one = |a: &Finding, b: &Finding| a.client != Client::EnvFile && title(a) == title(b);
    for (group, findings) in found.chunk_by(is_one).enumerate() {
        planner.group = group;
        planner.client(findings);
    }
    if let (Some(port), Some(config)) = (wish.new_port, &wish.config)
        && !planner.plan.is_empty()
    {
        let place = At { client: Client::Relay, file: config, format: Format::Toml, comments: true };
        let path = ["relay".to_owned(), "port".to_owned()];
        if let Err(why) = planner.set(&place, &path, Value::from(port)) {
            // Without it, clients would be pointed at a port where nobody will be.
            planner.plan.files.clear();
            planner.plan.left.push(("relay".to_owned(), why));
        }
    }
    let mut plan = planner.plan;
    plan.first = wish.config.clone();
    plan.files.sort_by_key(|edit| plan.first.as_ref() != Some(&edit.file));
    plan.notes.extend(proxy(look).filter(|_| !plan.is_empty()));
    plan.notes.sort();
    plan.notes.dedup();
    plan
}

/// A proxy that clients would ask for the relay.
fn proxy(look: Look<'_>) -> Option<String> {
    let name = catching_clients(&|name| look.machine.variable(name))?;
    Some(words::proxy_in_between(look.lang, name))
}

struct Planner<'a> {
    look: Look<'a>,
    journal: &'a Journal,
    wish: &'a Wish,
    plan: Plan,
    /// Which client it is at.
    group: usize,
}

/// The file that a key goes to, and for whom.
struct At<'a> {
    client: Client,
    file: &'a Path,
    format: Format,
    comments: bool,
}

impl Planner<'_> {
    /// All keys of a client, in whatever files, or none of them.
    fn client(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.plan.states.extend(state(self.look, finding.clone()));
        }
        let before = self.plan.clone();
        for finding in findings {
            if let Err(why) = self.file(finding) {
                self.plan = before;
                self.plan.left.push((title(finding), why));
                return;
            }
        }
        let Some(moved) = findings.iter().find(|finding| finding.way == Way::Keys) else { return };
        if self.plan.files == before.files {
            self.plan.ready.push(title(moved));
        } else if moved.client == Client::Claude {
            self.plan.notes.push(words::claude_costs(self.look.lang));
        }
    }

    /// What one file of a client needs.
    fn file(&mut self, finding: &Finding) -> Result<(), String> {
        match &finding.way {
            Way::ByHand(steps) => {
                self.plan.by_hand.extend(steps.iter().map(|step| (title(finding), step.clone())));
                return Ok(());
            }
            Way::No(why) => return Err(why.clone()),
            Way::Bad(bad) => {
                let file = finding.file.display().to_string();
                return Err(words::file_is_bad(self.look.lang, &file, &bad.said(self.look.lang)));
            }
            Way::Keys => {}
        }
        for key in &finding.keys {
            self.key(finding, key)?;
        }
        self.plan.notes.extend(finding.notes.iter().cloned());
        Ok(())
    }

    fn key(&mut self, finding: &Finding, key: &Key) -> Result<(), String> {
        let place = At {
            client: finding.client,
            file: &finding.file,
            format: finding.format,
            comments: finding.comments,
        };
        let value = match key.value {
            Wanted::Text(text) => text.to_owned(),
            Wanted::Address(version) => {
                let document = self.document(&place)?;
                let said = document.get(&key.path).ok().flatten();
                let said = said.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
                match said.or_else(|| finding.around.clone()) {
                    None => format!("{}{version}", self.look.relay.base()),
                    Some(said) => self.address(finding, &said, version)?,
                }
            }
        };
        self.set(&place, &key.path, Value::String(value))
    }

    /// The address for a client that has one already.
    fn address(&mut self, finding: &Finding, said: &str, version: &str) -> Result<String, String> {
        let relay = self.look.relay;
        let plain = format!("{}{version}", relay.base());
        if relay.is(said) {
            // One that names an upstream goes on naming it.
            return Ok(said.find("/to/").and_then(|at| said.get(at..)).map_or(plain, |to| relay.base() + to));
        }
        if let Some(upstream) = &relay.one_upstream {
            if upstream.trim_end_matches('/') == said.trim_end_matches('/') {
                return Ok(plain);
            }
            let note = words::one_upstream(self.look.lang, &finding.title, &shown(said));
            self.plan.notes.push(note);
            return Ok(plain);
        }
        let url: BaseUrl = said.parse().map_err(|why: Invalid| {
            words::bad_address(
                self.look.lang,
                &shown(said),
                &settings::said_of(self.look.lang, &why.to_string()),
            )
        })?;
        // One that was made for another client goes when that client is undone.
        let is_of_another = |name: &str| {
            let path = ["upstream", name, "url"];
            let mut entries = self.journal.entries.iter();
            entries.any(|entry| entry.client != finding.client.name() && entry.path == path)
        };
        let same = |(name, known): &&(String, String)| {
            known.parse::<BaseUrl>().is_ok_and(|known| known.to_string() == url.to_string())
                && !is_of_another(name)
        };
        let name = match relay.upstreams.iter().find(same) {
            Some((name, _)) if relay_core::config::shipped_upstreams().contains_key(name) => {
                return Ok(plain);
            }
            Some((name, _)) => name.clone(),
            None => self.own_upstream(finding, &url, version)?,
        };
        let note = words::goes_on_to(self.look.lang, &finding.title, &shown(said), &name);
        self.plan.notes.push(note);
        let last = url.path().rsplit('/').next().unwrap_or_default();
        let version = match version {
            "" => String::new(),
            _ if is_version(last) => format!("/{last}"),
            "/v1" => version.to_owned(),
            _ => String::new(),
        };
        Ok(format!("{}/to/{name}{version}", relay.base()))
    }

    /// Makes the service that a client asked so far an upstream of the relay.
    fn own_upstream(&mut self, finding: &Finding, url: &BaseUrl, version: &str) -> Result<String, String> {
        let lang = self.look.lang;
        let Some(config) = self.wish.config.clone() else { return Err(words::no_config(lang)) };
        let place = At { client: finding.client, file: &config, format: Format::Toml, comments: true };
        let text = url.to_string();
        let document = self.document(&place)?;
        let known = |name: &str| document.at(&["upstream", name, "url"]).map(str::to_owned);
        let base = format!("own-{}", finding.client.name());
        let names =
            (1..=99).map(|number| if number == 1 { base.clone() } else { format!("{base}-{number}") });
        let free = |name: &String| {
            let taken = self.look.relay.upstreams.iter().any(|(known, _)| known == name);
            known(name).map_or(!taken, |url| url == text)
        };
        let Some(name) = names.into_iter().find(free) else { return Err(words::no_config(lang)) };
        let path = |key: &str| ["upstream".to_owned(), name.clone(), key.to_owned()];
        self.set(&place, &path("url"), Value::String(text))?;
        let plain_elsewhere = url.scheme().name() == "http" && !url.is_loopback();
        if plain_elsewhere {
            // The client itself would send its credential there like this.
            self.set(&place, &path("allow_plaintext"), Value::Bool(true))?;
        }
        let last = url.path().rsplit('/').next().unwrap_or_default();
        if version == "/v1" && !is_version(last) {
            // The client appended its paths to an address without a version.
            self.set(&place, &path("strip_v1"), Value::Bool(true))?;
        }
        Ok(name)
    }

    /// The text of a file as it would be by now.
    fn document(&self, place: &At<'_>) -> Result<Document, String> {
        let lang = self.look.lang;
        let bad = |bad: Bad| words::file_is_bad(lang, &place.file.display().to_string(), &bad.said(lang));
        let text = match self.plan.files.iter().find(|edit| edit.file == place.file) {
            Some(edit) => edit.after.clone(),
            None => match self.look.machine.text(place.file) {
                Held::Nothing => String::new(),
                Held::Text(text) => text,
                Held::Bad(why) => return Err(bad(why)),
            },
        };
        Document::read(place.format, &text).map_err(|flaw| bad(Bad::Flaw(flaw)))
    }

    /// Plans one key.
    fn set(&mut self, place: &At<'_>, path: &[String], value: Value) -> Result<(), String> {
        let lang = self.look.lang;
        let file = place.file.display().to_string();
        let stuck = |stuck: Stuck| match stuck {
            Stuck::Flaw(flaw) => words::file_is_bad(lang, &file, &Bad::Flaw(flaw).said(lang)),
            Stuck::Shape => words::shape(lang, &file, &path.join("."), &value.to_string()),
        };
        let document = self.document(place)?;
        let current = document.get(path).map_err(|flaw| stuck(Stuck::Flaw(flaw)))?.cloned();
        if current.as_ref() == Some(&value) {
            return Ok(());
        }
        let known = self.journal.entry(place.file, path);
        let ours = known.filter(|entry| current.as_ref().is_some_and(|now| entry.ours.contains(now)));
        let (after, entry) = match ours {
            Some(entry) => {
                let (after, _) = document.put(path, &value, "").map_err(stuck)?;
                (after, entry.clone().also(value))
            }
            None => {
                let comment = self.comment(place, document.raw(path));
                let (after, splice) = document.put(path, &value, &comment).map_err(stuck)?;
                let is_relay = |old: &Value| old.as_str().is_some_and(|old| self.look.relay.is(old));
                let old = current.filter(|old| !is_relay(old));
                let entry = Entry {
                    client: place.client.name().to_owned(),
                    file: place.file.to_owned(),
                    format: place.format,
                    path: path.to_owned(),
                    raw: old.as_ref().and_then(|_| document.raw(path)).unwrap_or_default().to_owned(),
                    old,
                    ours: vec![value],
                    splice,
                    comment,
                    made_file: false,
                    made_folders: Vec::new(),
                };
                (after, entry)
            }
        };
        self.edit(place, &after, entry);
        Ok(())
    }

    fn edit(&mut self, place: &At<'_>, after: &Document, mut entry: Entry) {
        if let Some(edit) = self.plan.files.iter_mut().find(|edit| edit.file == place.file) {
            if let Some(first) = edit.entries.first() {
                entry.made_file |= first.made_file;
                if entry.made_folders.is_empty() {
                    entry.made_folders.clone_from(&first.made_folders);
                }
            }
            edit.after = after.text().to_owned();
            edit.entries.push(entry);
            return;
        }
        let before = match self.look.machine.text(place.file) {
            Held::Text(text) => Some(text),
            Held::Nothing | Held::Bad(_) => None,
        };
        if before.is_none() {
            // What a setup that was stopped had made already is ours as well.
            let known = self.journal.entries.iter().find(|known| known.file == place.file);
            let ours = known.map_or(&[][..], |known| &known.made_folders);
            let folders = place.file.ancestors().skip(1);
            let missing = folders.take_while(|folder| {
                !self.look.machine.has(folder) || ours.iter().any(|made| made == folder)
            });
            entry.made_file = true;
            entry.made_folders = missing.map(Path::to_owned).collect();
            entry.made_folders.reverse();
        } else if let Some(made) =
            self.journal.entries.iter().find(|known| known.file == place.file && known.made_file)
        {
            // The last one that is taken back takes the file along.
            entry.made_file = true;
            entry.made_folders.clone_from(&made.made_folders);
        }
        self.plan.files.push(FileEdit {
            file: place.file.to_owned(),
            format: place.format,
            before,
            after: after.text().to_owned(),
            entries: vec![entry],
            group: self.group,
        });
    }

    /// The line above a key that says how it is undone.
    fn comment(&self, place: &At<'_>, before: Option<&str>) -> String {
        if !place.comments {
            return String::new();
        }
        let sign = if place.format == Format::Json { "//" } else { "#" };
        let (lang, client) = (self.look.lang, place.client.name());
        let words = match before {
            // What may be a secret stands in one place alone, and the relay's own address is nothing to go back to.
            Some(raw)
                if shown(raw) == raw
                    && !raw.contains('\n')
                    && !self.look.relay.is(raw.trim_matches(['"', '\''])) =>
            {
                words::comment_put_back(lang, client, raw)
            }
            Some(_) => words::comment_replaced(lang, client),
            None => words::comment_added(lang, client),
        };
        format!("{sign} {words}")
    }
}

/// What a client is called where it may stand on the other side of Windows.
pub(super) fn title(finding: &Finding) -> String {
    use super::machine::Side;
    match &finding.side {
        Side::Here => finding.title.clone(),
        Side::Windows => format!("{} (Windows)", finding.title),
        Side::Wsl(distro) => format!("{} ({distro})", finding.title),
    }
}
