//! Other models in place of some: what a `[[fallback]]` says, and what is wrong with it.

use std::collections::BTreeSet;

use relay_core::config::Fallback;

use super::{Build, quoted};
use crate::settings::errors::{Place, line_of};
use crate::settings::file::Entry;
use crate::settings::keys::FallbackDraft;

impl Build<'_> {
    pub(super) fn fallbacks(&mut self, entries: Vec<Entry<FallbackDraft>>) {
        let mut known = Vec::new();
        for Entry { draft, spans, name } in entries {
            let place = |key: &str| spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()));
            let FallbackDraft { model, to, after, upstream } = draft;
            for (key, form, is_there) in [
                ("model", "name the model that is asked for: model = \"gpt-x\"", model.is_some()),
                ("to", "list the names of models: to = [\"gpt-y\"]", to.is_some()),
            ] {
                // A value that is there and wrong was told of where it stands.
                if !is_there && !spans.contains_key(key) {
                    self.found.add(Place::File(name.clone()), format!("the fallback has no `{key}`"), form);
                }
            }
            if let Some(upstream) = upstream.as_deref().filter(|name| !self.config.sends_to(name)) {
                let among: Vec<_> = self.config.destinations().collect();
                let error = self.found.unknown(upstream, "upstream", &among);
                let value = quoted(upstream, &place("upstream"));
                self.found.invalid(place("upstream"), "fallback.upstream", value.as_deref(), error);
            }
            let (Some(model), Some(to)) = (model, to) else { continue };
            let mut seen = BTreeSet::from([model.as_str()]);
            if let Some(twice) = to.iter().find(|name| !seen.insert(name)) {
                let what = format!("the fallback names `{twice}` twice");
                self.found.add(place("to"), what, "list other models than `model`, each of them once");
            }
            let fallback = Fallback { model, to, after, upstream };
            if let Some((before, _)) = known.iter().find(|(_, it): &&(_, Fallback)| it.covers(&fallback)) {
                let what = format!(
                    "the fallback is never reached: the one in line {before} fits every call that it fits"
                );
                let hint = "change what it fits, put it before the other, or make one of the two";
                self.found.add(Place::File(name.clone()), what, hint);
            }
            known.push((line_of(self.around.text, name.start), fallback));
        }
        self.config.fallbacks.extend(known.into_iter().map(|(_, fallback)| fallback));
    }
}
