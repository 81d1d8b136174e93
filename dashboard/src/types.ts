// What the relay tells, with the names that it uses (docs/history.md, docs/status.md). Only what the page reads.

export type State = "opening" | "sending" | "waiting" | "streaming" | "closed";
export type WaitWhy = "told" | "backoff" | "line" | "parked" | "circuit" | "credential" | "cut";

export interface Wait {
  why: WaitWhy;
  began: number;
  planned?: number;
  took?: number;
  waiting?: number;
  notices?: number;
}

export interface Tokens {
  input: number;
  cached: number;
  output: number;
}

export interface Failed {
  at: number;
  fault: string;
  evidence?: string;
  code?: string;
  rule?: string;
  told?: number;
}

export interface Moved {
  upstream: string;
  model?: string;
  why: string;
}

export interface Send {
  send: number;
  wait?: Wait;
  began?: number;
  moved?: Moved;
  may_run_twice?: boolean;
  head?: number;
  status?: number;
  request_id?: string;
  failed?: Failed;
}

export interface Closed {
  outcome: string;
  why?: string;
  status?: number;
  sends: number;
  waited: number;
  took: number;
  last_fault?: string;
  capacity_faults: number;
  maybe_billed_twice: number;
  received: number;
  sent: number;
  tokens?: Tokens;
}

/** One call. `opened` is milliseconds since 1970; all other times are milliseconds since then, or spans. */
export interface Call {
  run?: number;
  call: number;
  opened: number;
  client: string;
  dialect: string;
  transport: string;
  upstream: string;
  model?: string;
  profile: string;
  lane: string;
  pool?: string;
  bound?: string;
  request_id?: string;
  inherited_sends: number;
  state: State;
  sends: Send[];
  left_out?: number;
  committed?: number;
  closed?: Closed;
  /** Set by the page: it was open when its relay ended, and nobody saw how it went on. */
  unseen?: boolean;
}

export interface Lane {
  id: string;
  upstream: string;
  model: string | null;
  state: "open" | "shut";
  why: string | null;
  shut_for_s: number | null;
  next_send_in_s: number | null;
  held_for_s: number | null;
  parked_for_s: number | null;
  waiting: number;
  sending: number;
  running: number;
  max_running: number | null;
  recovery_s: number | null;
  rate_per_s: number | null;
  random: boolean;
  circuit: "closed" | "open" | "half_open";
  circuit_open_for_s: number | null;
}

export interface Totals {
  calls: number;
  sends: number;
  waits: number;
  waited_s: number;
  calls_waited: number;
  calls_judged: number;
  calls_served: number;
  calls_saved: number;
  calls_lost: number;
  calls_handed_back: number;
  calls_broken: number;
  maybe_billed_twice: number;
}

export interface Status {
  version: string;
  uptime_s: number;
  now: number;
  open: number;
  totals: Totals;
  lanes: Lane[];
  warming: { upstream: string; model: string | null; state: string; tries: number }[];
}

export interface Hello {
  v: number;
  run: string;
  resumes: boolean;
  version: string;
  may_change: boolean;
}

export type Span = "hour" | "day" | "week";

export interface Chart {
  from: number;
  step: number;
  calls: number[];
  served: number[];
  saved: number[];
  failed: number[];
  refusals: number[];
  waited: number[];
  waits: number[];
  sends: number[];
}

export interface Heat {
  from: number;
  models: { model: string; calls: number[]; short: number[] }[];
}

export interface Key {
  section: string;
  nth: number;
  key: string;
  value: string | null;
  origin: string;
}

export interface Line {
  n: number;
  at: number;
  level: string;
  text: string;
}
