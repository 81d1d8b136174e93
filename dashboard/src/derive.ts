// What the page makes of what it is told. Pure: no page, no clock.

import type { Call, Chart, Lane, Status, Totals } from "./types";

/** A call's own name on the page. */
export const keyOf = (call: Call): string => `${call.run ?? ""}-${call.call}`;

/** What a call is called everywhere: `7-c12`, call 12 of run 7, or `c12` where nothing is recorded. */
export const nameOf = (call: Call): string => (call.run === undefined ? `c${call.call}` : `${call.run}-c${call.call}`);

/** What a call is or was, for its mark and its word. */
export type Fate =
  | "opening"
  | "sending"
  | "waiting"
  | "streaming"
  | "served"
  | "saved"
  | "passed"
  | "failed"
  | "left"
  | "cut"
  | "unseen";

export function fateOf(call: Call): Fate {
  if (call.unseen) return "unseen";
  if (call.state !== "closed" || !call.closed) return call.state === "closed" ? "unseen" : call.state;
  switch (call.closed.outcome) {
    case "served":
      return call.closed.sends > 1 && call.closed.last_fault ? "saved" : "served";
    case "passed":
      return "passed";
    case "client_left":
      return "left";
    case "cut":
      return "cut";
    default:
      return "failed";
  }
}

export const isOpen = (call: Call): boolean => call.state !== "closed" && !call.unseen;

/** How often it was sent. */
export const sendsOf = (call: Call): number =>
  call.closed?.sends ?? call.sends.filter((send) => send.began !== undefined).length + (call.left_out ?? 0);

/** How long it waited until now, in milliseconds; `now` is milliseconds since it was accepted. */
export function waitedOf(call: Call, now: number): number {
  if (call.closed) return call.closed.waited;
  let sum = 0;
  for (const { wait } of call.sends) {
    if (wait) sum += wait.took ?? (isOpen(call) ? Math.max(0, now - wait.began) : 0);
  }
  return sum;
}

/** Until when it waits, in milliseconds since it was accepted, where that is known. */
export function waitsUntil(call: Call): number | undefined {
  const wait = call.state === "waiting" ? call.sends.at(-1)?.wait : undefined;
  return wait && wait.took === undefined && wait.planned !== undefined ? wait.began + wait.planned : undefined;
}

/** The last thing that went wrong. */
export function lastFault(call: Call): string | undefined {
  return call.closed?.last_fault ?? call.sends.findLast((send) => send.failed)?.failed?.fault;
}

/** Whether a call has all of these words somewhere about it. */
export function matches(call: Call, words: string[]): boolean {
  if (words.length === 0) return true;
  const ids = call.sends.map((send) => send.request_id ?? "");
  const about = [
    nameOf(call),
    call.model,
    call.upstream,
    call.client,
    call.profile,
    call.transport,
    call.request_id,
    fateOf(call),
    call.closed?.outcome,
    lastFault(call),
    ...ids,
  ];
  const text = about.join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

export const wordsOf = (filter: string): string[] =>
  filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");

/** A stretch of a call's time. */
export interface Stretch {
  kind: "queue" | "wait" | "send" | "answer";
  from: number;
  to: number;
}

/** What a call's time went to, up to `now` (milliseconds since it was accepted) where it is open. */
export function stretches(call: Call, now: number): Stretch[] {
  const all: Stretch[] = [];
  const end = call.closed?.took ?? now;
  const put = (kind: Stretch["kind"], from: number, to: number): void => {
    if (to > from) all.push({ kind, from, to: Math.min(to, end) });
  };
  call.sends.forEach((send, nth) => {
    if (send.wait) {
      const until = send.wait.took === undefined ? (send.began ?? end) : send.wait.began + send.wait.took;
      put(["line", "parked", "circuit", "credential"].includes(send.wait.why) ? "queue" : "wait", send.wait.began, until);
    }
    if (send.began === undefined) return;
    const isLast = nth === call.sends.length - 1;
    const answers = isLast ? call.committed : undefined;
    put("send", send.began, send.failed?.at ?? answers ?? (isLast ? end : (send.head ?? send.began)));
  });
  if (call.committed !== undefined) put("answer", call.committed, end);
  return all;
}

/** One line of a call's story. */
export type Step =
  | { what: "opened"; at: number }
  | { what: "wait"; at: number; send: number; wait: NonNullable<Call["sends"][number]["wait"]> }
  | { what: "moved"; at: number; moved: NonNullable<Call["sends"][number]["moved"]> }
  | { what: "send"; at: number; send: number; twice: boolean }
  | { what: "head"; at: number; status: number; id?: string }
  | { what: "failed"; at: number; failed: NonNullable<Call["sends"][number]["failed"]>; status?: number }
  | { what: "left_out"; at: number; count: number }
  | { what: "committed"; at: number }
  | { what: "closed"; at: number; closed: NonNullable<Call["closed"]> };

/** A call's story from its beginning. */
export function stepsOf(call: Call): Step[] {
  const steps: Step[] = [{ what: "opened", at: 0 }];
  let before = 0;
  for (const send of call.sends) {
    if (call.left_out && send.send > before + 1 && before > 0) {
      steps.push({ what: "left_out", at: send.wait?.began ?? send.began ?? 0, count: call.left_out });
    }
    before = send.send;
    if (send.wait) steps.push({ what: "wait", at: send.wait.began, send: send.send, wait: send.wait });
    if (send.moved) steps.push({ what: "moved", at: send.began ?? send.wait?.began ?? 0, moved: send.moved });
    if (send.began !== undefined) {
      steps.push({ what: "send", at: send.began, send: send.send, twice: send.may_run_twice ?? false });
    }
    if (send.failed) {
      const status = send.status === undefined ? {} : { status: send.status };
      steps.push({ what: "failed", at: send.failed.at, failed: send.failed, ...status });
    } else if (send.head !== undefined && send.status !== undefined) {
      const id = send.request_id === undefined ? {} : { id: send.request_id };
      steps.push({ what: "head", at: send.head, status: send.status, ...id });
    }
  }
  if (call.committed !== undefined) steps.push({ what: "committed", at: call.committed });
  if (call.closed) steps.push({ what: "closed", at: call.closed.took, closed: call.closed });
  return steps;
}

/** What is on top of the page. */
export interface Summary {
  /** Calls that ended. */
  ended: number;
  /** The share that was served, with the relay and without it, as the relay counts it; none before a call counts. */
  success?: number;
  without?: number;
  saved: number;
  failed: number;
  waitedS: number;
  /** How long a call that waited did so on average; none where none did. */
  meanWaitS?: number;
  open: number;
  waiting: number;
}

export function summaryOf(status: Status): Summary {
  const totals: Totals = status.totals;
  const { calls_judged: judged, calls_served: served, calls_saved: saved, calls_waited: waited } = totals;
  const shares = judged > 0 ? { success: served / judged, without: (served - saved) / judged } : {};
  return {
    ended: Math.max(0, totals.calls - status.open),
    ...shares,
    saved,
    failed: judged - served,
    waitedS: totals.waited_s,
    ...(waited > 0 ? { meanWaitS: totals.waited_s / waited } : {}),
    open: status.open,
    waiting: status.lanes.reduce((sum, lane) => sum + lane.waiting, 0),
  };
}

/** Lanes, those first that a person should see: shut, then with calls that wait. The others keep their places. */
export function inOrder(lanes: Lane[]): Lane[] {
  const weight = (lane: Lane): number => (lane.state === "shut" || lane.circuit === "open" ? 1e6 : 0) + lane.waiting;
  const name = (lane: Lane): string => `${lane.model ?? ""} ${lane.upstream}`;
  return [...lanes].sort((a, b) => weight(b) - weight(a) || name(a).localeCompare(name(b)));
}

/** The lane that holds most calls, where any is shut or holds some. */
export const worst = (lanes: Lane[]): Lane | undefined =>
  inOrder(lanes).find((lane) => lane.state === "shut" || lane.waiting > 0);

/** The lines of a chart, part by part; nothing where no call came. */
export function linesOf(chart: Chart): {
  at: number[];
  success: (number | null)[];
  without: (number | null)[];
  wait: (number | null)[];
} {
  const at = chart.calls.map((_, nth) => (chart.from + nth * chart.step) / 1000);
  const share = (good: number, bad: number): number | null => (good + bad > 0 ? (good / (good + bad)) * 100 : null);
  return {
    at,
    success: chart.served.map((served, nth) => share(served, chart.failed[nth] ?? 0)),
    without: chart.served.map((served, nth) => {
      const saved = chart.saved[nth] ?? 0;
      return share(served - saved, (chart.failed[nth] ?? 0) + saved);
    }),
    wait: chart.waited.map((waited, nth) => {
      const waits = chart.waits[nth] ?? 0;
      return waits > 0 ? waited / 1000 / waits : null;
    }),
  };
}

/** How dark a square of the heat map is, from 0 (never) to 5; nothing where no call came. */
export function heatLevel(calls: number, short: number): number | undefined {
  if (calls === 0) return undefined;
  const share = short / calls;
  return share === 0 ? 0 : Math.min(5, 1 + Math.floor(share * 5));
}

/** The four hours of a day, one after the other, with the smallest share of refusals; none where too little is known. */
export function bestHours(calls: number[], short: number[]): { from: number; to: number } | undefined {
  const sum = (list: number[], hour: number): number =>
    [0, 1, 2, 3, 4, 5, 6].reduce((all, day) => all + (list[day * 24 + (hour % 24)] ?? 0), 0);
  const parts = [...Array(24).keys()].map((from) => {
    const hours = [from, from + 1, from + 2, from + 3];
    const all = hours.map((hour) => sum(calls, hour));
    const no = hours.reduce((count, hour) => count + sum(short, hour), 0);
    const whole = all.reduce((count, some) => count + some, 0);
    return { from, to: (from + 4) % 24, share: no / whole, isKnown: all.every((some) => some >= 3) };
  });
  const known = parts.filter((part) => part.isKnown);
  const worst = Math.max(...known.map((part) => part.share));
  const best = known.reduce<(typeof known)[number] | undefined>((a, b) => (a && a.share <= b.share ? a : b), undefined);
  return best && known.length > 4 && best.share < worst ? { from: best.from, to: best.to } : undefined;
}
