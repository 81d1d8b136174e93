//! The relay's network on real sockets: HTTP/2 on both sides, proxies, addressed upstreams, relays in a row and in a
//! ring, and what a listener has to refuse. Peers are written by hand, or with the `h2` crate.

#[cfg(test)]
mod addressed;
#[cfg(test)]
mod from_clients;
#[cfg(test)]
mod interim;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod loops;
#[cfg(test)]
mod malformed;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod support;
#[cfg(test)]
mod to_upstreams;
#[cfg(test)]
mod ways;
