// What goes on and what it was good for, in two sentences and four numbers.

import type { JSX } from "preact";
import { useSays } from "../context";
import { type Summary as Sums, summaryOf, worst } from "../derive";
import type { Lane, Status } from "../types";
import type { Says } from "../words";

interface Props {
  status: Status | undefined;
  version: string;
  now: number;
  statusAt: number;
}

export function Summary({ status, version, now, statusAt }: Props): JSX.Element {
  const says = useSays();
  if (!status) {
    return (
      <section class="summary" aria-label={says.say("summary")}>
        <p class="verdict">{says.say("now_starting")}</p>
      </section>
    );
  }
  const sums = summaryOf(status);
  const lane = worst(status.lanes);
  const age = now - statusAt;
  const none = says.say("tile_none");
  return (
    <section class="summary" aria-label={says.say("summary")}>
      <div class="said">
        <p class={`verdict ${lane?.state === "shut" ? "is-short" : ""}`}>{verdict(says, status, lane, age)}</p>
        <p class="muted">{saved(says, sums, status)}</p>
        <p class="muted since">
          v{version} · {says.say("up", says.span(status.uptime_s * 1000 + age))}
        </p>
      </div>
      <dl class="tiles">
        <Tile
          name={says.say("tile_success")}
          value={sums.success === undefined ? "–" : says.share(sums.success)}
          sub={sums.without === undefined ? none : says.say("tile_success_sub", says.share(sums.without))}
        />
        <Tile
          name={says.say("tile_saved")}
          value={says.number(sums.saved)}
          sub={says.say("tile_saved_sub", sums.failed)}
        />
        <Tile
          name={says.say("tile_wait")}
          value={sums.meanWaitS === undefined ? "–" : says.span(sums.meanWaitS * 1000)}
          sub={sums.meanWaitS === undefined ? says.say("tile_no_wait") : says.say("tile_wait_sub", says.span(sums.waitedS * 1000))}
        />
        <Tile
          name={says.say("tile_open")}
          value={says.number(sums.open)}
          sub={says.say("tile_open_sub", sums.waiting)}
        />
      </dl>
    </section>
  );
}

function Tile({ name, value, sub }: { name: string; value: string; sub: string }): JSX.Element {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        <span class="value">{value}</span>
        <span class="muted">{sub}</span>
      </dd>
    </div>
  );
}

function verdict(says: Says, status: Status, lane: Lane | undefined, age: number): string {
  if (!lane) {
    return status.open === 0
      ? says.say("now_idle")
      : says.say("now_clear", says.counted(status.open, "open_call", "open_calls"));
  }
  const name = lane.model ?? lane.upstream;
  const waiting = says.counted(lane.waiting, "waiting_call", "waiting_calls");
  if (lane.state !== "shut") return says.say("now_waiting", name, waiting);
  const why = says.named("shut", lane.why ?? "", says.say("shut_other"));
  const next = lane.next_send_in_s === null ? undefined : lane.next_send_in_s * 1000 - age;
  return next === undefined || next <= 0
    ? says.say("now_shut", name, why, waiting)
    : says.say("now_shut_next", name, why, waiting, says.span(next));
}

function saved(says: Says, { saved: count, ended, waiting }: Sums, status: Status): string {
  if (count > 1) return says.say("saved_some", count, ended);
  if (count === 1) return says.say("saved_one", ended);
  return waiting > 0 ? says.say("saved_soon") : says.say("saved_none", says.span(status.uptime_s * 1000));
}
