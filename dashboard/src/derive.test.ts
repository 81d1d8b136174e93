import { describe, expect, it } from "vitest";
import { Calls, MOST } from "./calls";
import * as derive from "./derive";
import type { Call, Lane, Status } from "./types";

function call(number: number, more: Partial<Call> = {}): Call {
  return {
    call: number,
    opened: 1_000_000 + number,
    client: "codex",
    dialect: "openai_responses",
    transport: "http",
    upstream: "openai",
    model: "gpt-x",
    profile: "interactive",
    lane: "0f",
    inherited_sends: 0,
    state: "sending",
    sends: [{ send: 1, began: 0 }],
    ...more,
  };
}

const closed = (outcome: string, sends = 1, fault?: string): Call["closed"] => ({
  outcome,
  sends,
  waited: 4000,
  took: 9000,
  capacity_faults: sends - 1,
  maybe_billed_twice: 0,
  received: 10,
  sent: 20,
  ...(fault === undefined ? {} : { last_fault: fault }),
});

/** Refused once, waited in line, answered. */
const saved = call(7, {
  state: "closed",
  committed: 4500,
  closed: closed("served", 2, "at_capacity")!,
  sends: [
    { send: 1, began: 10, head: 200, status: 503, failed: { at: 200, fault: "at_capacity", rule: "openai.busy" } },
    {
      send: 2,
      wait: { why: "line", began: 200, took: 3800, waiting: 2 },
      began: 4000,
      head: 4400,
      status: 200,
      request_id: "req_9",
    },
  ],
});

const lane = (id: string, more: Partial<Lane> = {}): Lane => ({
  id,
  upstream: "openai",
  model: "gpt-x",
  state: "open",
  why: null,
  shut_for_s: null,
  next_send_in_s: null,
  held_for_s: null,
  parked_for_s: null,
  waiting: 0,
  sending: 0,
  running: 0,
  max_running: null,
  recovery_s: null,
  rate_per_s: null,
  random: false,
  circuit: "closed",
  circuit_open_for_s: null,
  ...more,
});

describe("a call", () => {
  it("has a fate", () => {
    expect(derive.fateOf(saved)).toBe("saved");
    expect(derive.fateOf(call(1, { state: "closed", closed: closed("served")! }))).toBe("served");
    for (const [outcome, fate] of [
      ["gave_up", "failed"],
      ["refused", "failed"],
      ["returned", "failed"],
      ["broken", "failed"],
      ["passed", "passed"],
      ["client_left", "left"],
      ["cut", "cut"],
    ]) {
      expect(derive.fateOf(call(1, { state: "closed", closed: closed(outcome!)! }))).toBe(fate);
    }
    expect(derive.fateOf(call(1, { state: "waiting" }))).toBe("waiting");
    expect(derive.fateOf(call(1, { state: "waiting", unseen: true }))).toBe("unseen");
  });

  it("waits as long as it does", () => {
    expect(derive.waitedOf(saved, 99_999)).toBe(4000);
    const waits = call(1, {
      state: "waiting",
      sends: [
        { send: 1, began: 0 },
        { send: 2, wait: { why: "told", began: 500, planned: 2000 } },
      ],
    });
    expect(derive.waitedOf(waits, 1700)).toBe(1200);
    expect(derive.waitsUntil(waits)).toBe(2500);
    expect(derive.waitsUntil(saved)).toBeUndefined();
    expect(derive.sendsOf(waits)).toBe(1);
    expect(derive.sendsOf(saved)).toBe(2);
  });

  it("spends its time on this and that", () => {
    expect(derive.stretches(saved, 0)).toEqual([
      { kind: "send", from: 10, to: 200 },
      { kind: "queue", from: 200, to: 4000 },
      { kind: "send", from: 4000, to: 4500 },
      { kind: "answer", from: 4500, to: 9000 },
    ]);
    expect(derive.stretches(call(1), 300)).toEqual([{ kind: "send", from: 0, to: 300 }]);
  });

  it("has a story in the order of its times", () => {
    const steps = derive.stepsOf(saved);
    expect(steps.map((step) => step.what)).toEqual([
      "opened",
      "send",
      "failed",
      "wait",
      "send",
      "head",
      "committed",
      "closed",
    ]);
    expect(steps.map((step) => step.at)).toEqual([0, 10, 200, 200, 4000, 4400, 4500, 9000]);
    const moved = { upstream: "second", model: "gpt-y", why: "shut" };
    const [, , failed, wait, went] = derive.stepsOf({
      ...saved,
      sends: saved.sends.map((send) => (send.send === 2 ? { ...send, moved } : send)),
    });
    expect([failed?.what, wait?.what, went]).toEqual(["failed", "wait", { what: "moved", at: 4000, moved }]);
    const long = call(1, {
      left_out: 90,
      sends: [
        { send: 1, began: 0 },
        { send: 92, began: 50 },
      ],
    });
    expect(derive.stepsOf(long).map((step) => step.what)).toEqual(["opened", "send", "left_out", "send"]);
  });

  it("is found by any of its names", () => {
    for (const filter of ["c7", "GPT", "saved", "req_9", "at_cap codex", "", "  "]) {
      expect(derive.matches(saved, derive.wordsOf(filter))).toBe(true);
    }
    expect(derive.matches(saved, derive.wordsOf("gpt claude"))).toBe(false);
    const recorded = { ...saved, run: 3 };
    expect([derive.nameOf(saved), derive.nameOf(recorded)]).toEqual(["c7", "3-c7"]);
    expect(derive.matches(recorded, ["3-c7"]) && derive.matches(recorded, ["c7"])).toBe(true);
  });
});

describe("the list", () => {
  const numbers = (calls: Calls): number[] => calls.list.map((it) => it.call);

  it("has the newest first, each once, as it is now", () => {
    const calls = new Calls();
    calls.put([call(1), call(3)]);
    calls.put([call(2), call(1, { state: "waiting" }), call(4)]);
    expect(numbers(calls)).toEqual([4, 3, 2, 1]);
    expect(calls.get("-1")?.state).toBe("waiting");
    calls.put([]);
    calls.put([call(1, { run: 7, opened: 5 })]);
    expect(numbers(calls)).toEqual([4, 3, 2, 1, 1]);
    calls.clear();
    expect(numbers(calls)).toEqual([]);
  });

  it("is bounded, and what is open stays", () => {
    const calls = new Calls();
    const over = closed("served")!;
    calls.put([call(0)]);
    const began = Date.now();
    for (let nth = 0; nth < 12; nth++) {
      calls.put(Array.from({ length: 1000 }, (_, at) => call(1 + nth * 1000 + at, { state: "closed", closed: over })));
    }
    expect(calls.list.length).toBe(MOST);
    expect(calls.list.at(-1)?.call).toBe(0);
    expect(calls.list[0]?.call).toBe(12_000);
    expect(calls.get("-1")).toBeUndefined();
    expect(Date.now() - began).toBeLessThan(2_000);
  });
});

describe("the summary", () => {
  const status = (totals: Partial<Status["totals"]>, open = 0): Status => ({
    version: "1",
    uptime_s: 60,
    now: 0,
    open,
    totals: {
      calls: 0,
      sends: 0,
      waits: 0,
      waited_s: 0,
      calls_waited: 0,
      calls_judged: 0,
      calls_served: 0,
      calls_saved: 0,
      calls_lost: 0,
      calls_handed_back: 0,
      calls_broken: 0,
      maybe_billed_twice: 0,
      ...totals,
    },
    lanes: [lane("a", { waiting: 2 })],
    warming: [],
  });

  it("tells what was saved", () => {
    const sums = derive.summaryOf(
      // Five say nothing of the relay: requests that were wrong, clients that changed their mind.
      status({ calls: 46, calls_judged: 40, calls_served: 36, calls_saved: 10, calls_waited: 16, waited_s: 80 }, 1),
    );
    expect(sums).toMatchObject({
      ended: 45,
      success: 0.9,
      without: 0.65,
      saved: 10,
      failed: 4,
      meanWaitS: 5,
      open: 1,
      waiting: 2,
    });
  });

  it("says nothing of shares before a call has ended", () => {
    const sums = derive.summaryOf(status({ calls: 1 }, 1));
    expect(sums.success).toBeUndefined();
    expect(sums.meanWaitS).toBeUndefined();
  });

  it("shows what is shut first", () => {
    const lanes = [
      lane("a"),
      lane("b", { waiting: 5 }),
      lane("c", { state: "shut" }),
      lane("d", { running: 1, model: "gpt-z" }),
    ];
    expect(derive.inOrder(lanes).map((it) => it.id)).toEqual(["c", "b", "a", "d"]);
    expect(derive.worst(lanes)?.id).toBe("c");
    expect(derive.worst([lane("a", { running: 3 })])).toBeUndefined();
  });
});

describe("charts", () => {
  it("have no value where nothing came", () => {
    const lines = derive.linesOf({
      from: 60_000,
      step: 60_000,
      calls: [0, 4],
      served: [0, 3],
      saved: [0, 2],
      failed: [0, 1],
      refusals: [0, 5],
      waited: [0, 2000],
      waits: [0, 2],
      sends: [0, 9],
    });
    expect(lines).toEqual({ at: [60, 120], success: [null, 75], without: [null, 25], wait: [null, 1] });
  });

  it("have squares as dark as the share of refusals", () => {
    expect(
      [
        [0, 0],
        [9, 0],
        [100, 1],
        [10, 5],
        [3, 3],
      ].map(([calls, short]) => derive.heatLevel(calls!, short!)),
    ).toEqual([undefined, 0, 1, 3, 5]);
  });

  it("name the best hours where enough is known", () => {
    const calls = Array<number>(168).fill(5);
    const short = calls.map((_, at) => (at % 24 >= 2 && at % 24 < 6 ? 0 : 2));
    expect(derive.bestHours(calls, short)).toEqual({ from: 2, to: 6 });
    expect(
      derive.bestHours(
        calls,
        calls.map(() => 0),
      ),
    ).toBeUndefined();
    expect(
      derive.bestHours(
        calls.map(() => 0),
        short,
      ),
    ).toBeUndefined();
  });
});
