//! Steady Relay: a local relay between AI coding agents and model services that run out of capacity.
//!
//! This crate does; [`relay_core`] decides. One request goes
//! `listen` → `serve` → `body` → `drive` ⇄ [`upstream`] → `answer` → [`reply`], and everything that happens on
//! the way is an event for the [`observe`]rs.

mod admin;
pub mod alerts;
mod answer;
pub mod app;
mod bell;
pub mod body;
mod body_text;
mod call_report;
pub mod cli;
mod client_facts;
mod client_socket;
pub mod clock;
pub mod cookies;
pub mod crash;
pub mod credential;
pub mod credentials;
mod dashboard;
pub mod decode;
pub mod demo;
pub mod descriptors;
pub mod diagnose;
pub mod doctor;
mod drive;
mod fallback;
pub mod files;
pub mod guard;
pub mod headers;
pub mod held;
pub mod history;
mod hops;
pub mod https;
mod inbound;
pub mod installed;
mod interim;
mod keepalive;
mod kept;
mod key_variables;
mod lanes;
pub mod learned;
mod legs;
pub mod listen;
#[cfg(feature = "history")]
pub mod local_time;
mod local_token;
pub mod metrics_door;
pub mod observe;
mod open;
mod otlp;
mod parked;
mod private;
mod process_group;
mod profile;
pub mod proxy;
mod query;
mod quota;
pub mod recorded;
pub mod reload;
pub mod replay;
pub mod reply;

mod request_ids;
pub mod run;
pub mod running;
pub mod selftest;
pub mod send;
mod serve;
pub mod service;
pub mod sessions;
pub mod settings;
pub mod setup;
mod shared;
pub mod snapshots;
pub mod stats;
pub mod target;
mod terminal;
pub mod tls;
#[cfg(feature = "top")]
pub mod top;
mod traces;
mod tunnel;
mod understand;
pub mod upstream;
mod waiting;
mod warm;
mod websocket;
pub mod why;
mod wishes;
pub mod words;
mod wsl;
