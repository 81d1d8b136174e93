//! From drafts to a `Config`: names are looked up, profiles get their numbers, and what one key demands of another
//! is checked, so that nothing is checked again later.

mod fallbacks;

use super::ReadFile;
use super::credentials::{self, Reading, Variables};
use super::errors::{Findings, Place, line_of};
use super::file::{Drafts, Entry, unreadable};
use super::keys::{PoolDraft, ProfileDraft, RouteDraft, UpstreamDraft};
use super::layers::{Layers, OtlpLayer, shown};
use super::reference::unknown_name;
use super::rules::{Lack, RuleDraft};
use relay_core::client::Kind;
use relay_core::config::{
    ClientSettings, Config, HistorySettings, OtlpSettings, Pool, ProfileChoice, Route, SnapshotSettings,
    Upstream, UpstreamChoice, shipped_profiles,
};
use relay_core::listen::is_self;
use relay_core::overrides::Contradiction;
use relay_core::router::Strategy;
use relay_core::units::{Invalid, show_bytes};
use relay_core::{BaseUrl, ClientLimit, Profile, ProfileOverrides, Scheme};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The configuration file, and what lies around it.
pub(super) struct Around<'a> {
    pub(super) text: &'a str,
    pub(super) folder: Option<&'a Path>,
    pub(super) read: ReadFile<'a>,
    pub(super) variables: Variables<'a>,
}

/// Builds the settings. They are to be used only if nothing was found.
pub(super) fn build(drafts: Drafts, layers: &Layers, around: Around<'_>, found: &mut Findings) -> Config {
    let mut build = Build { config: Config::default(), found, around };
    build.plain(&drafts, layers);
    build.certificates(&drafts, layers);
    let Around { variables, folder, .. } = build.around;
    build.config.credentials =
        Reading { variables, folder, found: &mut *build.found }.all(drafts.credentials);
    build.upstreams(drafts.upstreams);
    build.pools(drafts.pools);
    build.profiles(&drafts.profiles);
    build.choices(layers);
    build.clients(&drafts.clients);
    build.routes(drafts.routes);
    build.rules(drafts.rules);
    build.fallbacks(drafts.fallbacks);
    build.guarded(layers);
    build.config
}

struct Build<'a> {
    config: Config,
    found: &'a mut Findings,
    around: Around<'a>,
}

/// What the file says of OTLP, and the variables before it.
fn otlp(file: &OtlpSettings, layer: &OtlpLayer) -> OtlpSettings {
    let endpoint = layer.endpoint.clone().or_else(|| file.endpoint.clone());
    OtlpSettings {
        endpoint: endpoint.filter(|_| !layer.disabled),
        headers: layer.headers.clone().unwrap_or_else(|| file.headers.clone()),
        service_name: layer.service_name.clone().unwrap_or_else(|| file.service_name.clone()),
        ..file.clone()
    }
}

type ProfileEntry = Entry<(ProfileDraft, ProfileOverrides)>;

impl Build<'_> {
    /// What stands for itself.
    fn plain(&mut self, drafts: &Drafts, layers: &Layers) {
        let file = drafts.log.file.as_ref().map(|path| self.beside(path));
        let state_dir = drafts.relay.state_dir.as_ref().map(|path| self.beside(path));
        let snapshots = drafts.snapshots.folder.as_ref().map(|path| self.beside(path));
        let history = drafts.history.file.as_ref().map(|path| self.beside(path));
        let config = &mut self.config;
        config.listen = layers.listen.as_ref().map_or(config.listen, |set| set.value);
        config.port = layers.port.as_ref().map_or(config.port, |set| set.value);
        config.metrics_port = layers.metrics_port;
        config.token = layers.token.as_ref().map(|set| set.value.clone());
        config.timeouts = drafts.timeouts.clone();
        config.hold = drafts.hold.clone();
        config.waiting = drafts.waiting.clone();
        config.bodies = drafts.bodies.clone();
        config.limits = drafts.limits.clone();
        config.gate = layers.gate.unwrap_or(config.gate);
        config.park_quota = drafts.relay.park_quota.unwrap_or(config.park_quota);
        config.tls = layers.tls.unwrap_or(config.tls);
        config.names.clone_from(&drafts.relay.names);
        config.http2 = drafts.relay.http2.unwrap_or(config.http2);
        config.websocket = drafts.relay.websocket.unwrap_or(config.websocket);
        config.proxy = drafts.relay.proxy.clone().unwrap_or_default();
        config.numbers.sends = layers.sends.map(Some);
        config.numbers.patience = layers.patience;
        // A time that is asked for holds, even where the client would bear more.
        config.numbers.client_limit = layers.patience.map(|_| ClientLimit::Shortens);
        config.log = drafts.log.clone();
        config.log.file = layers.log_file.clone().or(file);
        config.log.level = layers.log_level.unwrap_or(config.log.level);
        config.log.format = layers.log_format.unwrap_or(config.log.format);
        config.history = HistorySettings { file: history, ..drafts.history.clone() };
        config.alerts.clone_from(&drafts.alerts);
        config.breaker = drafts.breaker;
        config.otlp = otlp(&drafts.otlp, &layers.otlp);
        config.snapshots = SnapshotSettings { folder: snapshots, ..drafts.snapshots.clone() };
        config.allowed_origins.clone_from(&drafts.relay.allowed_origins);
        config.lang = layers.lang;
        config.state_dir = layers.state_dir.clone().or(state_dir).or_else(|| layers.usual_state_dir.clone());
        let unheard = drafts.otlp.endpoint.as_ref().and_then(|_| drafts.otlp_spans.get("endpoint"));
        if let (false, Some(span)) = (cfg!(feature = "otlp"), unheard) {
            let what = "this program was built without `otlp`, so nothing can be sent there";
            let hint = "build it with the feature `otlp`, as docs/otlp.md says, or leave `endpoint` out";
            self.found.add(Place::File(span.clone()), what, hint);
        }
        config.credentials_dir = config.state_dir.as_ref().map(|folder| folder.join("credentials"));
        let (each, total) = (drafts.bodies.each, drafts.bodies.total);
        if each > total {
            let spans = &drafts.bodies_spans;
            let place = spans.get("each").or_else(|| spans.get("total"));
            let place = place.map_or(Place::Default, |span| Place::File(span.clone()));
            let [each, total] = [each, total].map(show_bytes);
            let what = format!("`bodies.each` ({each}) is more than `bodies.total` ({total})");
            self.found.add(place, what, "raise `total` to `each` or more");
        }
    }

    /// A path of the file: a relative one starts at its folder.
    fn beside(&self, path: &Path) -> PathBuf {
        self.around.folder.map_or(path.to_owned(), |folder| folder.join(path))
    }

    /// Files of certificates have to be there: one that is missing would stop the start. Whether they hold any is
    /// seen when TLS is set up.
    fn certificates(&mut self, drafts: &Drafts, layers: &Layers) {
        let place =
            drafts.relay_spans.get("ca_file").map_or(Place::Default, |span| Place::File(span.clone()));
        let own = drafts.relay.ca_file.as_ref().map(|path| (self.beside(path), place));
        let added = layers.ca_file.as_ref().map(|set| (set.value.clone(), set.place.clone()));
        for (path, place) in own.into_iter().chain(added) {
            // Those of a whole company may be larger than any settings.
            let refused = |error: &io::Error| error.kind() != io::ErrorKind::FileTooLarge;
            if let Some(error) = (self.around.read)(&path).err().filter(refused) {
                let (what, hint) = unreadable(&error, "ca.pem", "check the path");
                self.found.add(place, format!("the certificate file {}: {what}", path.display()), hint);
            }
            self.config.ca_files.push(path);
        }
    }

    fn upstreams(&mut self, entries: BTreeMap<String, Entry<UpstreamDraft>>) {
        for (name, Entry { draft, spans, name: name_span }) in entries {
            let known = self.config.upstreams.remove(&name);
            let Some(url) = draft.url.or_else(|| known.as_ref().map(|known| known.url.clone())) else {
                if !spans.contains_key("url") {
                    let hint = "write its address: url = \"https://api.example.com/v1\"";
                    self.found.add(Place::File(name_span), format!("upstream `{name}` has no `url`"), hint);
                }
                // It keeps its name, so that whatever names it is not reported too.
                let nowhere = "https://invalid".parse::<BaseUrl>().ok();
                self.config.upstreams.extend(nowhere.map(|url| (name, Upstream::at(url))));
                continue;
            };
            if let Some(span) = spans.get("url") {
                self.not_ourselves(&url, Place::File(span.clone()));
            }
            let before = known.unwrap_or_else(|| Upstream::at(url.clone()));
            let upstream = Upstream {
                url,
                headers: draft.headers.unwrap_or(before.headers),
                api_key: draft.api_key.or(before.api_key),
                dialects: draft.dialects.or(before.dialects),
                credential: draft.credential.or(before.credential),
                replace_credential: draft.replace_credential.unwrap_or(before.replace_credential),
                allow_plaintext: draft.allow_plaintext.unwrap_or(before.allow_plaintext),
                strip_v1: draft.strip_v1.or(before.strip_v1),
                http2: draft.http2.or(before.http2),
                websocket: draft.websocket.or(before.websocket),
                proxy: draft.proxy.or(before.proxy),
                max_running: draft.max_running.or(before.max_running),
                warm: draft.warm.or(before.warm),
                warm_on_start: draft.warm_on_start.unwrap_or(before.warm_on_start),
            };
            if let Some(span) =
                spans.get("warm_on_start").filter(|_| upstream.warm.is_none() && upstream.warm_on_start)
            {
                let what = format!("upstream `{name}` is to be warmed at the start, and has no `warm`");
                self.found.add(Place::File(span.clone()), what, "name the model: warm = \"llama3\"");
            }
            credentials::of_upstream(&name, &upstream, &spans, &self.config.credentials, self.found);
            if let Some(span) = spans.get("api_key").or_else(|| spans.get("credential")) {
                self.not_in_the_clear(&upstream, Place::File(span.clone()));
            }
            self.config.upstreams.insert(name, upstream);
        }
    }

    fn pools(&mut self, entries: BTreeMap<String, Entry<PoolDraft>>) {
        let pools: BTreeSet<String> = entries.keys().cloned().collect();
        for (name, Entry { draft, spans, name: name_span }) in entries {
            let place = |key: &str| spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()));
            if self.config.upstreams.contains_key(&name) {
                let what = format!("`{name}` is an upstream and a pool");
                self.found.add(Place::File(name_span.clone()), what, "give the pool a name of its own");
            }
            let Some(mut members) = draft.members else {
                if !spans.contains_key("members") {
                    let hint = "list the names of upstreams: members = [\"one\", \"two\"]";
                    self.found.add(Place::File(name_span), format!("pool `{name}` has no `members`"), hint);
                }
                // It keeps its name, so that whatever names it is not reported too.
                members_of_nothing(&mut self.config, name);
                continue;
            };
            let known: Vec<_> = self.config.upstreams.keys().map(String::as_str).collect();
            for member in members.iter().filter(|member| !self.config.upstreams.contains_key(*member)) {
                if pools.contains(member) {
                    let what = format!(
                        "pool `{name}` lists `{member}`, which is a pool, and a pool holds upstreams alone"
                    );
                    let hint = "list the members of the other pool in its place";
                    self.found.add(place("members"), what, hint);
                    continue;
                }
                let error = self.found.unknown(member, "upstream", &known);
                let (key, at) = (format!("pool.{name}.members"), place("members"));
                self.found.invalid(at.clone(), &key, quoted(member, &at).as_deref(), error);
            }
            let mut seen = BTreeSet::new();
            for member in &members {
                if !seen.insert(member.as_str()) {
                    let what = format!("pool `{name}` lists `{member}` twice");
                    self.found.add(
                        place("members"),
                        what,
                        "list each member once; `weights` gives it a larger share",
                    );
                }
            }
            for (member, _) in draft.weights.iter().filter(|(member, _)| !members.contains(member)) {
                let what = format!("pool `{name}` gives `{member}` a weight, which is none of its members");
                self.found.add(place("weights"), what, "name a member, or take the weight out");
            }
            members.retain(|member| self.config.upstreams.contains_key(member));
            let weight = |member: &String| {
                let named = draft.weights.iter().find(|(name, _)| name == member);
                named.map_or(NonZeroU32::MIN, |(_, weight)| *weight)
            };
            let weights = members.iter().map(weight).collect();
            self.config.pools.insert(name, Pool { members, strategy: draft.strategy, weights });
        }
    }

    /// The shipped ones first, since the user's own build on them.
    fn profiles(&mut self, entries: &BTreeMap<String, ProfileEntry>) {
        if !self.config.gate {
            self.config.profiles.values_mut().for_each(|profile| profile.gate = None);
        }
        let park_quota = self.config.park_quota;
        self.config.profiles.values_mut().for_each(|profile| profile.park_quota = park_quota);
        let shipped = shipped_profiles();
        for (name, entry) in entries.iter().filter(|(name, _)| shipped.contains_key(*name)) {
            if let Some(span) = entry.spans.get("based_on") {
                let what = format!("`{name}` ships with the relay and cannot be based on another profile");
                let hint = "set its numbers one by one, or make a profile of your own with another name";
                self.found.add(Place::File(span.clone()), what, hint);
            }
            if let Some(profile) = self.config.profiles.get(name).cloned() {
                self.profile(name, entry, &profile);
            }
        }
        let mut waiting: Vec<_> = entries.iter().filter(|(name, _)| !shipped.contains_key(*name)).collect();
        let names: Vec<&str> = shipped.keys().chain(entries.keys()).map(String::as_str).collect();
        // Each round settles the profiles whose base is settled; what a round leaves untouched never settles.
        loop {
            let before = waiting.len();
            waiting.retain(|(name, entry)| {
                let base = entry.draft.0.based_on.as_deref().unwrap_or("interactive");
                let Some(profile) = self.config.profiles.get(base).cloned() else { return true };
                self.profile(name, entry, &profile);
                false
            });
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        for (name, entry) in waiting {
            let base = entry.draft.0.based_on.as_deref().unwrap_or_default();
            let error = if names.contains(&base) {
                Invalid::new(
                    "leads back to itself",
                    "base one of them on a profile that ships, such as interactive",
                )
            } else {
                self.found.unknown(base, "profile", &names)
            };
            let place = entry.spans.get("based_on").map_or(Place::Default, |span| Place::File(span.clone()));
            let value = quoted(base, &place);
            self.found.invalid(place, &format!("profile.{name}.based_on"), value.as_deref(), error);
            self.config.profiles.insert(name.clone(), Profile::interactive());
        }
    }

    fn profile(&mut self, name: &str, entry: &ProfileEntry, base: &Profile) {
        let profile = match entry.draft.1.apply(base) {
            Ok(profile) => profile,
            Err(error) => {
                let span = error.keys.iter().find_map(|key| entry.spans.get(key)).unwrap_or(&entry.name);
                let what = format!("profile `{name}`: {}", error.what.why);
                self.found.add(Place::File(span.clone()), what, error.what.allowed);
                base.clone()
            }
        };
        self.config.profiles.insert(name.to_owned(), profile);
    }

    /// The upstream and the profile for everything.
    fn choices(&mut self, layers: &Layers) {
        if let Some(set) = &layers.upstream {
            match upstream_choice(&set.value, &self.config) {
                Ok(choice) => {
                    if let UpstreamChoice::Url(upstream) = &choice {
                        self.not_ourselves(&upstream.url, set.place.clone());
                    }
                    self.config.upstream = Some(choice);
                    self.lend_key(layers);
                }
                Err(error) => {
                    let value = quoted(&set.value, &set.place);
                    self.found.invalid(set.place.clone(), "relay.upstream", value.as_deref(), error);
                }
            }
        }
        if let Some(set) = &layers.profile {
            self.config.profile = self.profile_named(&set.value, set.place.clone(), "relay.profile");
        }
    }

    /// The key that an env file brings, for the upstream of everything.
    fn lend_key(&mut self, layers: &Layers) {
        let Some(key) = &layers.api_key else { return };
        let upstream = match &mut self.config.upstream {
            Some(UpstreamChoice::Named(name)) => self.config.upstreams.get_mut(name),
            Some(UpstreamChoice::Url(upstream)) => Some(upstream),
            Some(UpstreamChoice::Pool(_)) | None => None,
        };
        if let Some(upstream) = upstream {
            if upstream.credential.is_some() {
                let what = "the upstream has a `credential` of its own already";
                return self.found.add(key.place.clone(), what, "keep one of the two");
            }
            upstream.api_key = Some(key.value.clone());
            let upstream = upstream.clone();
            self.not_in_the_clear(&upstream, key.place.clone());
        }
    }

    fn not_in_the_clear(&mut self, upstream: &Upstream, key: Place) {
        if upstream.url.scheme() == Scheme::Http && !upstream.url.is_loopback() && !upstream.allow_plaintext {
            let what = format!("the key would go to {} over plain http", upstream.url.authority());
            let hint = "use https, or say allow_plaintext = true in the upstream's own entry";
            self.found.add(key, what, hint);
        }
    }

    fn profile_named(&mut self, name: &str, place: Place, key: &str) -> ProfileChoice {
        let choice = ProfileChoice::from_name(name);
        if choice != ProfileChoice::Auto && !self.config.profiles.contains_key(name) {
            let known: Vec<_> =
                ["auto"].into_iter().chain(self.config.profiles.keys().map(String::as_str)).collect();
            let error = self.found.unknown(name, "profile", &known);
            self.found.invalid(place.clone(), key, quoted(name, &place).as_deref(), error);
        }
        choice
    }

    fn clients(&mut self, entries: &BTreeMap<Kind, Entry<ClientSettings>>) {
        for (client, Entry { draft, spans, name: _ }) in entries {
            if let (Some(profile), Some(span)) = (&draft.profile, spans.get("profile")) {
                let key = format!("client.{}.profile", client.name());
                self.profile_named(profile.name(), Place::File(span.clone()), &key);
            }
            self.config.clients.insert(*client, draft.clone());
        }
    }

    fn routes(&mut self, entries: Vec<Entry<(RouteDraft, ProfileOverrides)>>) {
        let places: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        for Entry { draft: (draft, overrides), spans, name } in entries {
            let place = |key: &str| spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()));
            if let Some(upstream) = draft.upstream.as_deref().filter(|name| !self.config.sends_to(name)) {
                let known: Vec<_> = self.config.destinations().collect();
                let error = self.found.unknown(upstream, "upstream", &known);
                let value = quoted(upstream, &place("upstream"));
                self.found.invalid(place("upstream"), "route.upstream", value.as_deref(), error);
            }
            let profile = draft
                .profile
                .as_deref()
                .map(|name| self.profile_named(name, place("profile"), "route.profile"));
            if let Some((error, what, hint)) = self.contradiction(profile.as_ref(), &overrides) {
                let span = error.keys.iter().find_map(|key| spans.get(key)).unwrap_or(&name).clone();
                self.found.add(Place::File(span), what, hint);
            }
            let RouteDraft { path, client, model, upstream, profile: _, max_running } = draft;
            self.config.routes.push(Route { path, client, model, upstream, profile, max_running, overrides });
        }
        self.reached(&places);
    }

    /// What contradicts what in a route's numbers, with what to say of it and what to do: in any profile, or in the
    /// first one that it can meet where it does not fit.
    fn contradiction(
        &self,
        profile: Option<&ProfileChoice>,
        overrides: &ProfileOverrides,
    ) -> Option<(Contradiction, String, String)> {
        if let Err(error) = overrides.agrees() {
            let (what, hint) = (format!("the route's {}", error.what.why), error.what.allowed.clone());
            return Some((error, what, hint));
        }
        let meets = |name: &String| match profile {
            Some(ProfileChoice::Named(wanted)) => wanted == name,
            Some(ProfileChoice::Auto) | None => true,
        };
        let mut met = self.config.profiles.iter().filter(|(name, _)| meets(name));
        let (name, error) = met.find_map(|(name, profile)| Some((name, overrides.apply(profile).err()?)))?;
        let what = format!("with profile `{name}`, the route's {}", error.what.why);
        let hint = format!("{}, or name one `profile` that fits", error.what.allowed);
        Some((error, what, hint))
    }

    /// Every route has to be reached by some call: the first that fits one holds, so an earlier one can hide a later.
    fn reached(&mut self, places: &[Range<usize>]) {
        // What a route with a slip in it fits is not known.
        let ends = places.iter().skip(1).map(|next| next.start).chain([usize::MAX]);
        let sound: Vec<_> = places
            .iter()
            .zip(ends)
            .zip(&self.config.routes)
            .filter(|((place, end), _)| !self.found.has_in(place.start..*end))
            .map(|((place, _), route)| (place, route))
            .collect();
        let line = |place: &Range<usize>| line_of(self.around.text, place.start);
        let mut hidden = Vec::new();
        for (at, (place, route)) in sound.iter().enumerate() {
            let earlier = sound.iter().take(at).find(|(_, earlier)| earlier.covers(route));
            if let Some((before, _)) = earlier.filter(|(_, earlier)| !earlier.fits_all()) {
                let what = format!(
                    "the route is never reached: the one in line {} fits every call that it fits",
                    line(before)
                );
                let hint = "change what it fits, put it before the other, or make one of the two";
                hidden.push((*place, what, hint));
            }
            let after = sound.len() - at - 1;
            if route.fits_all() && earlier.is_none() && after > 0 {
                const LISTED: usize = 20;
                let lines = if after == 1 { "line" } else { "lines" };
                let listed = sound.iter().skip(at + 1).take(LISTED);
                let listed: Vec<_> = listed.map(|(after, _)| line(after).to_string()).collect();
                let more = match after.saturating_sub(LISTED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let what = format!(
                    "the route fits every call, so none after it is ever reached: {lines} {}{more}",
                    listed.join(", ")
                );
                hidden.push((
                    *place,
                    what,
                    "name what it fits (`path`, `client`, `model`), or make it the last",
                ));
            }
        }
        for (place, what, hint) in hidden {
            self.found.add(Place::File(place.clone()), what, hint);
        }
    }

    fn rules(&mut self, entries: Vec<Entry<RuleDraft>>) {
        for (index, Entry { draft, spans, name }) in entries.into_iter().enumerate() {
            let upstream = draft.upstream.as_deref();
            if let Some(upstream) = upstream.filter(|name| !self.config.upstreams.contains_key(*name)) {
                let place = spans.get("upstream").map_or(Place::Default, |span| Place::File(span.clone()));
                let known: Vec<_> = self.config.upstreams.keys().map(String::as_str).collect();
                let error = self.found.unknown(upstream, "upstream", &known);
                let value = quoted(upstream, &place);
                self.found.invalid(place, "rule.upstream", value.as_deref(), error);
            }
            match draft.finish(index + 1) {
                Ok(rule) => self.config.rules.push(rule),
                // A value that is there and wrong was told of where it stands.
                Err(lack) if lack.of.iter().any(|key| spans.contains_key(key)) => {}
                Err(Lack { of: _, at, what }) => {
                    let span = at.and_then(|key| spans.get(key)).unwrap_or(&name).clone();
                    self.found.add(Place::File(span), format!("the rule {}", what.why), what.allowed);
                }
            }
        }
    }

    /// Beyond loopback, only with a token.
    fn guarded(&mut self, layers: &Layers) {
        let listen = self.config.listen;
        if listen.is_loopback() || layers.has_token {
            return;
        }
        let place = layers.listen.as_ref().map_or(Place::Default, |set| set.place.clone());
        let what =
            format!("listening on {listen} lets other machines spend your credentials, and no token is set");
        let hint = "set STEADY_RELAY_TOKEN, or `token` below [relay], to a secret of 16 characters or more";
        self.found.add(place, what, hint);
    }

    fn not_ourselves(&mut self, url: &BaseUrl, place: Place) {
        let Config { listen, port, .. } = self.config;
        if is_self(url, listen, port) {
            let what = format!("{url} is this relay itself: every call would go round in a circle");
            self.found.add(
                place,
                what,
                "name the service behind it, or let the relay listen on another port",
            );
        }
    }
}

/// The value as its layer writes it.
fn quoted(value: &str, place: &Place) -> Option<String> {
    let value = shown(value)?;
    Some(if matches!(place, Place::File(_)) { format!("\"{value}\"") } else { value.to_owned() })
}

/// A pool without anything in it.
fn members_of_nothing(config: &mut Config, name: String) {
    let nothing = Pool { members: Vec::new(), strategy: Strategy::default(), weights: Vec::new() };
    config.pools.insert(name, nothing);
}

fn upstream_choice(text: &str, config: &Config) -> Result<UpstreamChoice, Invalid> {
    if config.upstreams.contains_key(text) {
        return Ok(UpstreamChoice::Named(text.to_owned()));
    }
    if config.pools.contains_key(text) {
        return Ok(UpstreamChoice::Pool(text.to_owned()));
    }
    if text.contains("://") {
        return text.parse().map(|url| UpstreamChoice::Url(Upstream::at(url)));
    }
    let with_scheme = format!("http://{text}");
    if text.contains([':', '.', '/']) && shown(text).is_some() && with_scheme.parse::<BaseUrl>().is_ok() {
        return Err(Invalid::new("has no scheme", format!("did you mean \"{with_scheme}\", or https?")));
    }
    let names: Vec<_> = config.destinations().collect();
    let Invalid { why, allowed } = unknown_name(text, "upstream", &names);
    let or = if allowed.ends_with('?') { " Or" } else { "; or" };
    Err(Invalid::new(why, format!("{allowed}{or} write a URL")))
}
