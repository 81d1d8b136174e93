//! What the service behind LiteLLM said. LiteLLM answers with a type of its own that says little (`api_error`,
//! `throttling_error`), and puts the service's message, or its whole body, into one sentence:
//!
//! ```text
//! litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, …
//! litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - {"error": {"code": …}}
//! litellm.RateLimitError: AzureException RateLimitError - …
//! ```
//!
//! It is no judgement: the rows are asked about what comes out of here as about any other error. (LiteLLM 1.110.2,
//! measured; Azure by its source.)

use crate::json::{ErrorFields, error_fields};

/// Where what LiteLLM adds begins.
const ADDED: [&str; 2] = ["\n\nLiteLLM: ", "\nmodel="];

/// The error inside the sentence. `None`: there is no such sentence, or it is not known that the words in it are the
/// service's and no model's.
pub(super) fn behind(fields: &ErrorFields) -> Option<ErrorFields> {
    let sentence = fields.message.as_deref()?.strip_prefix("litellm.")?;
    // LiteLLM itself gave up, and whatever it quotes does not say that nothing runs.
    if sentence.starts_with("Timeout") {
        return None;
    }
    let (_, rest) = sentence.split_once("Exception")?;
    let (kind, said) = rest.split_once(" - ")?;
    if !kind.chars().all(|c| c.is_ascii_alphabetic() || c == ' ') {
        return None;
    }
    let end = ADDED.iter().filter_map(|added| said.find(added)).min().unwrap_or(said.len());
    let said = said[..end].trim();
    // What came instead of an error is quoted, and an answer may say anything.
    if said.is_empty() || said.contains("Received: ") {
        return None;
    }
    let fields = error_fields(said.as_bytes())
        .unwrap_or_else(|| ErrorFields { message: Some(said.to_owned()), ..ErrorFields::default() });
    (!fields.names_output).then_some(fields)
}
