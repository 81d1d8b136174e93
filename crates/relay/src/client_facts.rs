//! What `run` and `setup` both have to know of clients: files that win over the user's own, and what moves a client past
//! any base URL.

use std::path::{Path, PathBuf};

use crate::setup::System;

/// The variable, and the key of settings, that moves Claude Code.
pub(crate) const CLAUDE_BASE_URL: &str = "ANTHROPIC_BASE_URL";
/// Services that Claude Code reaches by other means than a base URL.
pub(crate) const CLAUDE_CLOUDS: [&str; 3] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// Whether such a variable is on.
pub(crate) fn is_on(value: &str) -> bool {
    !matches!(value, "0" | "false" | "no" | "off")
}

/// The file by which an organisation has the last word over Claude Code.
pub(crate) const fn claude_managed(system: System) -> &'static str {
    match system {
        System::Linux => "/etc/claude-code/managed-settings.json",
        System::Mac => "/Library/Application Support/ClaudeCode/managed-settings.json",
        System::Windows => r"C:\Program Files\ClaudeCode\managed-settings.json",
    }
}

/// The provider of Codex that stands for OpenAI and ChatGPT.
pub(crate) const CODEX_BUILT_IN: &str = "openai";
/// The key that moves it.
pub(crate) const CODEX_BASE_URL: &str = "openai_base_url";
/// The key that names the provider.
pub(crate) const CODEX_PROVIDER: &str = "model_provider";

/// The file by which an organisation has the last word over Codex; `folder` is Codex's own. Where it is on Windows is
/// read, not measured.
pub(crate) fn codex_managed(system: System, folder: &Path) -> PathBuf {
    match system {
        System::Linux | System::Mac => PathBuf::from("/etc/codex/managed_config.toml"),
        System::Windows => folder.join("managed_config.toml"),
    }
}
