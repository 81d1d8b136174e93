//! Pretend upstreams and clients.
