// The chosen call: what it is, where its time went, and what happened to it step by step.

import type { JSX } from "preact";
import { useSays } from "../context";
import { fateOf, isOpen, nameOf, sendsOf, type Step, stepsOf, type Stretch, stretches, waitedOf } from "../derive";
import type { Call } from "../types";
import type { Says, Word } from "../words";
import { FateMark } from "./marks";

export function Details({ call, now }: { call: Call; now: number }): JSX.Element {
  const says = useSays();
  const fate = fateOf(call);
  const since = Math.max(0, now - call.opened);
  const open = isOpen(call);
  const took = call.closed?.took ?? since;
  const soFar = (text: string): string => (open ? says.say("so_far", text) : text);
  const tokens = call.closed?.tokens;
  const facts: [Word, string][] = [
    ["fact_client", call.client],
    ["fact_upstream", call.upstream],
    ["fact_began", says.day(call.opened)],
    ["fact_took", call.closed || open ? soFar(says.span(took)) : "–"],
    ["fact_waited", soFar(says.span(waitedOf(call, since)))],
    ["fact_sends", soFar(says.number(sendsOf(call)))],
  ];
  if (call.pool) {
    const bound = call.bound && says.say("pool_bound", says.named("bound", call.bound, call.bound));
    facts.push(["fact_pool", bound ? `${call.pool} · ${bound}` : call.pool]);
  }
  if (call.closed) facts.push(["fact_bytes", says.bytes(call.closed.sent)]);
  if (tokens) facts.push(["fact_tokens", says.say("tokens", tokens.input, tokens.output)]);
  if (call.request_id) facts.push(["fact_request", call.request_id]);
  return (
    <article>
      <header class="details-head">
        <FateMark fate={fate} />
        <h2>
          {call.model ?? call.upstream} <span class="muted">{nameOf(call)}</span>
        </h2>
        <span class={`fate fate-${fate} is-loud`}>{says.say(`fate_${fate}`)}</span>
      </header>
      <dl class="facts">
        {facts.map(([word, text]) => (
          <div key={word}>
            <dt>{says.say(word)}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {(call.closed || open) && <Bar parts={stretches(call, since)} whole={took} />}
      <h3>{says.say("story")}</h3>
      <ol class="story">
        {stepsOf(call).map((step, nth) => (
          <li key={nth} class={`step step-${step.what}`}>
            <span class="at">{says.span(step.at)}</span>
            <span class="what">
              <StepWords step={step} />
            </span>
          </li>
        ))}
      </ol>
    </article>
  );
}

const KINDS = ["queue", "wait", "send", "answer"] as const;

function Bar({ parts, whole }: { parts: Stretch[]; whole: number }): JSX.Element {
  const says = useSays();
  const sums = KINDS.map((kind) => ({
    kind,
    sum: parts.reduce((sum, part) => sum + (part.kind === kind ? part.to - part.from : 0), 0),
  })).filter(({ sum }) => sum > 0);
  const all = sums.map(({ kind, sum }) => says.say("stretch_label", says.say(`stretch_${kind}`), says.span(sum)));
  const percent = (ms: number): string => `${whole > 0 ? (ms / whole) * 100 : 0}%`;
  return (
    <figure class="time">
      <div class="time-bar" role="img" aria-label={`${says.say("time_bar")}. ${all.join(", ")}`}>
        {parts.map((part, nth) => (
          <span
            key={nth}
            class={`part part-${part.kind}`}
            style={{ left: percent(part.from), width: percent(part.to - part.from) }}
          />
        ))}
      </div>
      <figcaption>
        {sums.map(({ kind, sum }) => (
          <span key={kind}>
            <i class={`swatch part-${kind}`} /> {says.say(`stretch_${kind}`)} {says.span(sum)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function StepWords({ step }: { step: Step }): JSX.Element {
  const says = useSays();
  switch (step.what) {
    case "opened":
      return <>{says.say("step_opened")}</>;
    case "wait":
      return <WaitWords says={says} wait={step.wait} />;
    case "moved": {
      const { upstream, model, why } = step.moved;
      return (
        <>
          <strong>{model ? says.say("step_moved_for", upstream, model) : says.say("step_moved", upstream)}</strong>
          <span class="muted"> · {says.named("left", why, why)}</span>
        </>
      );
    }
    case "send":
      return (
        <>
          {says.say("step_send", step.send)}
          {step.twice && <span class="bad"> · {says.say("step_twice")}</span>}
        </>
      );
    case "head":
      return (
        <>
          {says.say("step_head", `${step.status}`)}
          {step.id && <span class="muted break"> · {step.id}</span>}
        </>
      );
    case "failed": {
      const fault = says.named("fault", step.failed.fault, step.failed.fault);
      const { told, rule, code } = step.failed;
      const more = [
        told !== undefined && says.say("step_told_wait", says.span(told)),
        // A rule that looked at the code names it.
        code !== undefined && !rule?.includes(code) && says.say("step_code", code),
        rule !== undefined && says.say("step_rule", rule.replaceAll("`", "")),
      ].filter((part) => part !== false);
      return (
        <>
          <strong>
            {step.status === undefined
              ? says.say("step_failed", fault)
              : says.say("step_failed_status", fault, `${step.status}`)}
          </strong>
          {more.length > 0 && <span class="muted break"> · {more.join(" · ")}</span>}
        </>
      );
    }
    case "left_out":
      return <>{says.say("step_left_out", step.count)}</>;
    case "committed":
      return <>{says.say("step_committed")}</>;
    case "closed": {
      const { outcome, why, maybe_billed_twice: twice } = step.closed;
      const word = says.named("step", outcome === "cut" ? "cut_end" : outcome, outcome);
      return (
        <>
          <strong>{word}</strong>
          {why && <span class="muted"> · {why}</span>}
          {twice > 0 && <span class="bad"> · {says.say("billed_twice", twice)}</span>}
        </>
      );
    }
  }
}

function WaitWords({ says, wait }: { says: Says; wait: (Step & { what: "wait" })["wait"] }): JSX.Element {
  const waiting = wait.waiting ?? 0;
  const why =
    wait.why === "line"
      ? says.say(waiting > 1 ? "step_line" : "step_line_first", waiting)
      : says.say(`step_${wait.why}`);
  const long =
    wait.took !== undefined
      ? says.span(wait.took)
      : wait.planned !== undefined && says.say("step_wait_planned", says.span(wait.planned));
  return (
    <>
      {why} {long && <strong>{long}</strong>}
      {wait.notices ? <span class="muted"> · {says.say("step_notices", wait.notices)}</span> : null}
    </>
  );
}
