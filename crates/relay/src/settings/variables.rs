//! Every variable that is read, declared once: its name, what it sets, and where it counts. Variables are read from
//! the process environment and from env files. Not the reading (that is `layers`).

/// Where a variable counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the process environment and in env files.
    Everywhere,
    /// In env files alone: in the process environment the name belongs to somebody else.
    EnvFiles,
    /// In the process environment alone.
    Process,
}

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The key that it sets, or what else it does.
    pub sets: &'static str,
    /// Where it counts.
    pub scope: Scope,
    /// For a name of an older tool: what to write today.
    pub instead: Option<&'static str>,
}

const fn ours(name: &'static str, sets: &'static str) -> Variable {
    Variable { name, sets, scope: Scope::Everywhere, instead: None }
}

const fn older(name: &'static str, sets: &'static str, scope: Scope, instead: &'static str) -> Variable {
    Variable { name, sets, scope, instead: Some(instead) }
}

/// What `MAX_RETRIES` sets.
pub(super) const RETRIES: &str = "sends of every profile, less one";
/// What `TOTAL_TIMEOUT` sets.
pub(super) const TOTAL_TIMEOUT: &str =
    "patience of every profile, in seconds, and `client_limit = \"shortens\"` in every profile";
/// What `ENABLE_LOGGING` sets.
pub(super) const ENABLE_LOGGING: &str = "log.level, which is `error` where this is `false`";
/// What `OTEL_SDK_DISABLED` sets.
pub(super) const OTLP_DISABLED: &str = "no otlp.endpoint, where this is `true`";
/// What `CODEX_API_KEY` sets.
pub(super) const API_KEY: &str = "api_key of the upstream that the same file names";
/// What `STEADY_RELAY_ENV_FILE` sets.
const ENV_FILE: &str = "the env file, as `--env-file` does";
/// What `STEADY_RELAY_CONFIG` sets.
pub(super) const CONFIG: &str = "the configuration file, as `--config` does";

/// All of them; of several that set the same, the first that is there holds.
pub const VARIABLES: &[Variable] = &[
    ours("STEADY_RELAY_LISTEN", "relay.listen"),
    ours("STEADY_RELAY_PORT", "relay.port"),
    older("PORT", "relay.port", Scope::Everywhere, "STEADY_RELAY_PORT"),
    ours("STEADY_RELAY_TOKEN", "relay.token"),
    ours("STEADY_RELAY_UPSTREAM", "relay.upstream"),
    older("UPSTREAM_URL", "relay.upstream", Scope::Everywhere, "STEADY_RELAY_UPSTREAM"),
    older("CODEX_ENDPOINT", "relay.upstream", Scope::Everywhere, "STEADY_RELAY_UPSTREAM"),
    ours("STEADY_RELAY_PROFILE", "relay.profile"),
    ours("STEADY_RELAY_GATE", "relay.gate"),
    ours("STEADY_RELAY_TLS", "relay.tls"),
    ours("SSL_CERT_FILE", "relay.ca_file"),
    ours("STEADY_RELAY_METRICS_PORT", "relay.metrics_port"),
    ours("STEADY_RELAY_STATE_DIR", "relay.state_dir"),
    ours("STEADY_RELAY_LANG", "relay.lang"),
    ours("STEADY_RELAY_LOG_LEVEL", "log.level"),
    // Names that many programs share: read from the process environment, they would be somebody else's. A log that is
    // switched off is off, whatever its level would be.
    older("ENABLE_LOGGING", ENABLE_LOGGING, Scope::EnvFiles, "STEADY_RELAY_LOG_LEVEL=error"),
    older("LOG_LEVEL", "log.level", Scope::EnvFiles, "STEADY_RELAY_LOG_LEVEL"),
    ours("STEADY_RELAY_LOG_FORMAT", "log.format"),
    ours("STEADY_RELAY_LOG_FILE", "log.file"),
    older("LOG_FILE", "log.file", Scope::EnvFiles, "STEADY_RELAY_LOG_FILE"),
    older("MAX_RETRIES", RETRIES, Scope::Everywhere, "`sends` in a [profile.NAME]"),
    older("TOTAL_TIMEOUT", TOTAL_TIMEOUT, Scope::Everywhere, "`patience` in a [profile.NAME]"),
    // In the process environment this is the key of Codex itself.
    older("CODEX_API_KEY", API_KEY, Scope::EnvFiles, "`api_key` in an [upstream.NAME]"),
    // Those of OpenTelemetry. Without the feature `otlp` they are somebody else's.
    ours("OTEL_EXPORTER_OTLP_ENDPOINT", "otlp.endpoint"),
    ours("OTEL_EXPORTER_OTLP_HEADERS", "otlp.headers"),
    ours("OTEL_SERVICE_NAME", "otlp.service_name"),
    ours("OTEL_SDK_DISABLED", OTLP_DISABLED),
    ours("STEADY_RELAY_CONFIG", CONFIG),
    Variable { name: "STEADY_RELAY_ENV_FILE", sets: ENV_FILE, scope: Scope::Process, instead: None },
];

/// Those that set this, the strongest first.
pub(super) fn setting(sets: &str) -> impl Iterator<Item = &'static Variable> {
    VARIABLES.iter().filter(move |variable| variable.sets == sets)
}

/// Where a variable stands among those that set the same: the smaller, the stronger.
pub(super) fn rank(name: &str) -> usize {
    VARIABLES.iter().position(|variable| variable.name == name).unwrap_or(VARIABLES.len())
}
