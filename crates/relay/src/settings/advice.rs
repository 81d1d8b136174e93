//! What can be, and is hardly meant: settings that are valid, and of which a part has no effect or not the one that whoever
//! wrote it expects. It is told, and stops nothing. What can never work is found in [`super::build`].

use std::time::Duration;

use crate::credential::is_key_header;
use crate::profile::changed;
use relay_core::config::{
    Config, Pool, ProfileChoice, Upstream, UpstreamChoice, shipped_profiles, shipped_upstreams,
};
use relay_core::router::Strategy;
use relay_core::{Profile, ProfileOverrides, Scheme, breaker, dialect};

/// The least patience that a quota is worth waiting for with. The windows of plans are hours, those of an API seldom less
/// than some minutes; what takes a minute is a rate limit, which parks nothing.
const A_QUOTA: Duration = Duration::from_secs(10 * 60);

/// All of it, one sentence each.
pub(super) fn of(config: &Config) -> Vec<String> {
    let mut told = parking(config);
    told.extend(impatient(config));
    told.extend(breaker(config));
    told.extend(in_one_line(config));
    told.extend(unused(config));
    for (name, pool) in &config.pools {
        told.extend(weights(name, pool));
        told.extend(alone(name, pool));
        told.extend(signed_in(name, pool, config));
        told.extend(keyless(name, pool, config));
    }
    told
}

/// A lane is parked by its gate.
fn parking(config: &Config) -> Vec<String> {
    let in_routes =
        |asks: fn(&ProfileOverrides) -> bool| config.routes.iter().any(|route| asks(&route.overrides));
    let in_profiles = |asks: fn(&Profile) -> bool| config.profiles.values().any(asks);
    let is_wanted =
        in_profiles(|profile| profile.park_quota) || in_routes(|route| route.park_quota == Some(true));
    if !config.gate {
        let is_done = in_profiles(Profile::parks) || in_routes(|route| route.gate == Some(true));
        let what = "`park_quota` has no effect without the gate: take out `gate = false`, or `park_quota`";
        return if is_wanted && !is_done { vec![what.to_owned()] } else { Vec::new() };
    }
    // Those that ship without a gate were not asked for it.
    let shipped = shipped_profiles();
    let has_none = |(name, profile): &(&String, &Profile)| {
        let is_own = shipped.get(*name).is_none_or(|shipped| shipped.gate.is_some());
        profile.park_quota && profile.gate.is_none() && is_own
    };
    let told = config.profiles.iter().filter(has_none).map(|(name, _)| {
        format!(
            "`park_quota` has no effect with profile `{name}`, which waits by its own curve: say `park_quota = false` in it, \
             or let it use the gate"
        )
    });
    told.collect()
}

/// Whoever parks a quota, and waits for none. One profile that has the patience is enough: who wrote it knows.
fn impatient(config: &Config) -> Option<String> {
    let none = ProfileOverrides::default();
    let of = |choice: &ProfileChoice, by: &ProfileOverrides| {
        let name = match choice {
            ProfileChoice::Named(name) => name.as_str(),
            // What most get of it: who works unattended gets a patient one.
            ProfileChoice::Auto => "interactive",
        };
        let profile = config.profiles.get(name)?.clone();
        Some((name.to_owned(), changed(by, changed(&config.numbers, profile))))
    };
    let named = |name: &String| of(&ProfileChoice::Named(name.clone()), &none);
    let shipped = shipped_profiles();
    let of_clients = config.clients.values().filter_map(|client| client.profile.as_ref());
    let of_routes = config.routes.iter().map(|route| {
        let choice = route.profile.as_ref().unwrap_or(&config.profile);
        of(choice, &route.overrides)
    });
    let used = [of(&config.profile, &none)]
        .into_iter()
        .chain(of_clients.map(|choice| of(choice, &none)))
        .chain(of_routes)
        .chain(config.profiles.keys().filter(|name| !shipped.contains_key(*name)).map(named));
    let parking: Vec<_> = used.flatten().filter(|(_, profile)| profile.parks()).collect();
    let (name, _) = parking.first()?;
    parking.iter().all(|(_, profile)| profile.patience < A_QUOTA).then(|| {
        format!(
            "`park_quota` makes hardly any call wait for a quota, since profile `{name}` has less patience than most quotas \
             take: say `profile = \"patient\"`, or a longer `patience`"
        )
    })
}

/// Where nothing could stand in for an upstream, nothing is cut off.
fn breaker(config: &Config) -> Option<String> {
    let rules = &config.breaker;
    let is_set = *rules != breaker::Rules::default();
    let has_none = config.pools.is_empty() && config.fallbacks.is_empty() && !rules.alone;
    (is_set && has_none).then(|| {
        "[breaker] has no effect, since no upstream has another that could stand in for it: add a [pool.NAME] or a \
         [[fallback]], or say `alone = true`"
            .to_owned()
    })
}

/// Where all models of an upstream have one line, none of them is a way out. A route with a line of its own may be one.
fn in_one_line(config: &Config) -> Vec<String> {
    let has_one =
        |name: &str| config.upstreams.get(name).is_some_and(|upstream| upstream.max_running.is_some());
    let is_stuck = |name: &str| match config.pools.get(name) {
        Some(pool) => pool.members.iter().all(|member| has_one(member)),
        None => has_one(name),
    };
    if config.routes.iter().any(|route| route.max_running.is_some()) {
        return Vec::new();
    }
    // Where all calls go, unless a route says otherwise.
    let everything = match &config.upstream {
        Some(UpstreamChoice::Named(name) | UpstreamChoice::Pool(name))
            if config.routes.iter().all(|route| route.upstream.is_none()) =>
        {
            Some(name)
        }
        Some(UpstreamChoice::Named(_) | UpstreamChoice::Pool(_) | UpstreamChoice::Url(_)) | None => None,
    };
    let told = config.fallbacks.iter().filter_map(|fallback| {
        let name = fallback.upstream.as_ref().or(everything).filter(|name| is_stuck(name))?;
        let model = &fallback.model;
        Some(format!(
            "the fallback of `{model}` has no effect at `{name}`, where `max_running` puts all models into one line: take \
             out the one or the other"
        ))
    });
    told.collect()
}

fn unused(config: &Config) -> impl Iterator<Item = String> {
    let is_used =
        |name: &str| config.upstreams.values().any(|upstream| upstream.credential.as_deref() == Some(name));
    config.credentials.keys().filter(move |name| !is_used(name)).map(|name| {
        format!("credential `{name}` is for no upstream: write `credential = \"{name}\"` into the one that it is for")
    })
}

fn weights(name: &str, pool: &Pool) -> Option<String> {
    let has_weights = pool.weights.iter().any(|weight| weight.get() > 1);
    let is_blind = match pool.strategy {
        Strategy::InOrder => true,
        Strategy::Weighted | Strategy::LeastWaiting | Strategy::Sticky => false,
    };
    (has_weights && is_blind).then(|| {
        format!(
            "the `weights` of pool `{name}` have no effect, since its `strategy` is \"in_order\": make that \"weighted\", \
             or take them out"
        )
    })
}

fn alone(name: &str, pool: &Pool) -> Option<String> {
    let what = || format!("pool `{name}` has one member, so no other can stand in for it");
    (pool.members.len() == 1).then(what)
}

/// Members that a person signs in at. Of those no key can be asked for: whoever comes with a sign-in is refused.
fn signed_in(name: &str, pool: &Pool, config: &Config) -> Vec<String> {
    let is_one = |member: &&String| config.upstreams.get(*member).is_some_and(wants_sign_in);
    let told = pool.members.iter().filter(is_one).map(|member| {
        format!(
            "`{member}` of pool `{name}` takes a person's sign-in of ChatGPT and no key, and a pool refuses that: take it out, \
             and let `upstream` name it itself"
        )
    });
    told.collect()
}

fn wants_sign_in(member: &Upstream) -> bool {
    let shipped = shipped_upstreams();
    shipped.get("chatgpt").is_some_and(|chatgpt| member.url.host().eq_ignore_ascii_case(chatgpt.url.host()))
}

/// Members that would be asked without any credential: what a client brings is for the first that speaks its dialect.
/// Servers of one's own often need none, and are reached on this machine or without TLS.
fn keyless(name: &str, pool: &Pool, config: &Config) -> Vec<String> {
    let members: Vec<(&String, &Upstream)> =
        pool.members.iter().filter_map(|member| Some((member, config.upstreams.get(member)?))).collect();
    let needs_one = |member: &Upstream| {
        let speaks = |upstream: &Upstream, what| {
            upstream.dialects.as_ref().is_none_or(|dialects| dialects.contains(&what))
        };
        let goes_there_without = |what| {
            let first = members.iter().find(|(_, first)| speaks(first, what));
            speaks(member, what) && first.is_some_and(|(_, first)| !is_same_place(first, member))
        };
        dialect::ALL.iter().any(|dialect| goes_there_without(dialect.name()))
    };
    let told = members.iter().filter(|(_, member)| expects_one(member) && needs_one(member));
    told.map(|(member, _)| {
        format!(
            "`{member}` of pool `{name}` is asked without any key, since that of a client goes to the first member alone: \
             write `api_key` or `credential` into [upstream.{member}]"
        )
    })
    .collect()
}

fn expects_one(member: &Upstream) -> bool {
    let has_one = member.api_key.is_some()
        || member.credential.is_some()
        || member.headers.iter().any(|(name, _)| is_key_header(name));
    let is_own = member.url.is_loopback() || member.url.scheme() == Scheme::Http && !member.allow_plaintext;
    !has_one && !is_own && !wants_sign_in(member)
}

fn is_same_place(one: &Upstream, other: &Upstream) -> bool {
    one.url.scheme() == other.url.scheme() && one.url.authority() == other.url.authority()
}
