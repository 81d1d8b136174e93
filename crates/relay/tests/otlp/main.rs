//! What a collector of OpenTelemetry is sent, decoded as it decodes it; and that a relay whose collector is dead or hangs
//! does what it did.

#[cfg(test)]
mod collector;
#[cfg(test)]
mod sent;
#[cfg(test)]
#[cfg(unix)]
#[path = "../wire/started.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod started;
#[cfg(test)]
#[path = "../wire/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
#[cfg(test)]
mod trouble;
