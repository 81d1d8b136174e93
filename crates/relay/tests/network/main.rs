//! The relay's network on real sockets: HTTP/2 on both sides, proxies, addressed upstreams, and what a listener
//! has to refuse. Peers are written by hand, or with the `h2` crate.

mod addressed;
mod from_clients;
mod limits;
mod malformed;
mod proxies;
mod support;
mod to_upstreams;
