//! What can be, and is hardly meant: settings that are valid, and of which a part has no effect or not the one that whoever
//! wrote it expects. It is told, and stops nothing. What can never work is found in [`super::build`].

use crate::credential::is_key_header;
use relay_core::config::{Config, Pool, Upstream, shipped_profiles};
use relay_core::dialect;
use relay_core::router::Strategy;
use relay_core::{Profile, ProfileOverrides, Scheme};

/// All of it, one sentence each.
pub(super) fn of(config: &Config) -> Vec<String> {
    let mut told = parking(config);
    told.extend(unused(config));
    for (name, pool) in &config.pools {
        told.extend(weights(name, pool));
        told.extend(alone(name, pool));
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
    !has_one && !is_own
}

fn is_same_place(one: &Upstream, other: &Upstream) -> bool {
    one.url.scheme() == other.url.scheme() && one.url.authority() == other.url.authority()
}
