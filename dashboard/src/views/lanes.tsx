// The lanes: who is open, who is shut and for how long.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useSays } from "../context";
import { inOrder } from "../derive";
import type { Live } from "../live";
import type { Lane } from "../types";
import { AskNow } from "./dialogs";

const FEW = 4;

export function Lanes({ live, now }: { live: Live; now: number }): JSX.Element {
  const says = useSays();
  const [all, setAll] = useState(false);
  const [asked, setAsked] = useState<Lane>();
  const lanes = inOrder(live.status?.lanes ?? []);
  const age = now - live.statusAt - live.ahead;
  return (
    <section class="lanes" aria-labelledby="lanes-title">
      <div class="head">
        <h2 id="lanes-title">{says.say("lanes")}</h2>
        {lanes.length > FEW && (
          <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? says.say("lanes_less") : says.say("lanes_more", lanes.length)}
          </button>
        )}
      </div>
      {lanes.length === 0 && <p class="muted">{says.say("lanes_none")}</p>}
      <ul class="cards">
        {lanes.slice(0, all ? undefined : FEW).map((lane) => (
          <li key={lane.id} class={`card lane ${lane.state === "shut" || lane.circuit === "open" ? "is-short" : ""}`}>
            <LaneCard lane={lane} age={age} ask={live.mayChange ? () => setAsked(lane) : undefined} />
          </li>
        ))}
      </ul>
      {asked && <AskNow lane={asked} done={() => setAsked(undefined)} />}
    </section>
  );
}

function LaneCard({ lane, age, ask }: { lane: Lane; age: number; ask: (() => void) | undefined }): JSX.Element {
  const says = useSays();
  const isShut = lane.state === "shut";
  const isCut = lane.circuit === "open" || lane.circuit === "half_open";
  const probe = lane.circuit_open_for_s === null ? 0 : lane.circuit_open_for_s * 1000 - age;
  const name = lane.model ?? says.say("lane_no_model");
  const next = lane.next_send_in_s === null ? undefined : lane.next_send_in_s * 1000 - age;
  const parked = lane.parked_for_s === null ? undefined : lane.parked_for_s * 1000 - age;
  const facts = [
    lane.waiting > 0 && says.say("lane_waiting", lane.waiting),
    lane.running + lane.sending > 0 && says.say("lane_running", lane.running + lane.sending),
    lane.rate_per_s !== null && says.say("lane_rate", lane.rate_per_s),
  ].filter((fact) => fact !== false);
  return (
    <>
      <div class="lane-head">
        <span class="name" title={name}>
          {name}
        </span>
        <span class={`state ${isShut || isCut ? "is-short" : "is-good"}`}>
          {says.say(isCut ? "lane_cut" : parked !== undefined ? "lane_parked" : isShut ? "lane_shut" : "lane_open")}
          {!isCut && lane.shut_for_s !== null && ` ${says.span(lane.shut_for_s * 1000 + age)}`}
        </span>
      </div>
      <div class="muted clip" title={lane.upstream}>
        {lane.upstream}
      </div>
      {isShut && (
        <p class="lane-why clip">
          {says.named("fault", lane.why ?? "", says.named("shut", lane.why ?? "", says.say("shut_other")))}
        </p>
      )}
      {isCut && (
        <p class="lane-why clip">{probe > 0 ? says.say("lane_probe_in", says.span(probe)) : says.say("lane_probe")}</p>
      )}
      <p class="lane-facts">
        {facts.length > 0 ? facts.join(" · ") : <span class="muted">{says.say(isShut && parked === undefined ? "lane_unasked" : "lane_idle")}</span>}
        {parked !== undefined && <strong> · {says.say("lane_quota", says.span(parked))}</strong>}
        {parked === undefined && next !== undefined && lane.waiting > 0 && (
          <strong> · {next > 0 ? says.say("lane_next", says.span(next)) : says.say("lane_due")}</strong>
        )}
        {isShut && parked === undefined && lane.recovery_s !== null && (
          <span class="muted"> · {says.say("lane_usual", says.span(lane.recovery_s * 1000))}</span>
        )}
      </p>
      {ask && (isShut || lane.held_for_s !== null) && (
        <button type="button" aria-label={says.say("ask_now_for", name)} onClick={ask}>
          {says.say("ask_now")}
        </button>
      )}
    </>
  );
}
