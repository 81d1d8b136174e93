//! Servers of one's own: Ollama, llama.cpp, vLLM, SGLang, TGI, LM Studio.

use super::super::rule::{Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;

use Fault::{AtCapacity, BadRequest, ModelLoading, ServerFailed, TooLong};
use Says::{Failed, Final, Refused};
use Statuses::{Any, Inside, MayHeal, RequestsFault};

const OLLAMA: &str = "Ollama, source";
const LLAMA: &str = "llama.cpp server, source";
const VLLM: &str = "vLLM, source";
const LM_STUDIO: &str = "LM Studio, public issues";
const HUGGING_FACE: &str = "Hugging Face inference, documentation";

pub(super) const RULES: &[Rule] = &[
    // A model that is on its way into memory: nobody is short of capacity, and a wait heals it.
    Rule::code_and(["unavailable_error", "loading model"], MayHeal, ModelLoading, Refused, LLAMA),
    Rule::phrase("loading model", MayHeal, ModelLoading, Refused, LLAMA),
    Rule::phrase("is currently loading", MayHeal, ModelLoading, Refused, HUGGING_FACE),
    // llama.cpp: "no slot available".
    Rule::code("unavailable_error", MayHeal, AtCapacity, Refused, LLAMA),
    Rule::code("exceed_context_size_error", Any, TooLong, Final, LLAMA),
    // Ollama. A runner that died is started anew by the next request.
    Rule::phrase("server busy", MayHeal, AtCapacity, Refused, OLLAMA),
    Rule::phrase("runner process has terminated", Inside, ServerFailed, Failed, OLLAMA),
    Rule::phrase("model runner has unexpectedly stopped", Inside, ServerFailed, Failed, OLLAMA),
    Rule::phrase("out of memory", Inside, ServerFailed, Failed, OLLAMA),
    Rule::phrase("requires more system memory", Inside, ServerFailed, Failed, OLLAMA),
    // vLLM and SGLang; the type is beside a number for a code.
    Rule::code_and(["BadRequestError", "maximum context length"], RequestsFault, TooLong, Final, VLLM),
    Rule::code("ServiceUnavailableError", MayHeal, AtCapacity, Refused, VLLM),
    Rule::phrase("queue is full", MayHeal, AtCapacity, Refused, VLLM),
    Rule::code("EngineDeadError", Inside, ServerFailed, Failed, VLLM),
    // LM Studio says so with 200.
    Rule::phrase("unexpected endpoint or method", Any, BadRequest, Final, LM_STUDIO),
    Rule::phrase("no models loaded", Any, BadRequest, Final, LM_STUDIO),
    Rule::phrase("failed to load model", Any, BadRequest, Final, LM_STUDIO),
];
