//! An env file that somebody names: what SDKs read, each service by its own variable.
//!
//! | variable | SDK (measured) |
//! |---|---|
//! | `OPENAI_BASE_URL`, with `/v1` | `openai` of Python and Node |
//! | `ANTHROPIC_BASE_URL`, without | `anthropic` of Python and Node |
//! | `GOOGLE_GEMINI_BASE_URL`, without | `google-genai` of Python and Node |

use std::path::PathBuf;

use super::{Client, Finding, Format, Home, Look, Side, Wanted};
use crate::key_variables;

/// Variable, version, and the service, whose keys tell that it is used.
const SERVICES: [(&str, &str, &str); 3] = [
    ("OPENAI_BASE_URL", "/v1", "openai"),
    ("ANTHROPIC_BASE_URL", "", "anthropic"),
    ("GOOGLE_GEMINI_BASE_URL", "", "gemini"),
];

/// The variables of the services whose key or address is in it; of OpenAI and Anthropic where there is none.
pub(super) fn look(look: Look<'_>, file: PathBuf) -> Finding {
    let home = Home { path: PathBuf::new(), system: look.machine.system, side: Side::Here };
    let title = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut finding = Finding::new(Client::EnvFile, &title, &home, file, Format::Env);
    let Some(document) = look.open(&mut finding) else { return finding };
    let used: Vec<_> = SERVICES
        .iter()
        .filter(|(name, _, upstream)| {
            let keys = key_variables::of_upstream(upstream).map(|key| key.name);
            keys.chain([*name]).any(|key| document.has(&[key.to_owned()]))
        })
        .collect();
    let all = if used.is_empty() { SERVICES.iter().take(2).collect() } else { used };
    for (name, version, _) in all {
        finding = finding.key(&[name], Wanted::Address(version));
    }
    finding
}
