// What the page knows of the relay, kept up by its events.

import { Calls, MOST } from "./calls";
import type { Call, Hello, Status } from "./types";

export type Link = "connecting" | "live" | "lost" | "full";

/** The connection comes back after so long where the browser does not bring it back by itself. */
const AGAIN_MS = 5_000;
/** So many earlier calls are asked for at a time. */
const EARLIER = 1_000;

export class Live {
  readonly calls = new Calls();
  status: Status | undefined;
  link: Link = "connecting";
  version = "";
  mayChange = false;
  /** What the relay's clock shows beyond this one. */
  ahead = 0;
  /** When the status came, by this clock. */
  statusAt = 0;
  /** Whether the file may have earlier calls than are known. */
  hasEarlier = true;
  isLoading = false;

  #source: EventSource | undefined;
  #run = "";
  /** The number of the relay's run in its file. */
  #number: number | undefined;
  #id = "";
  #came: Call[] = [];
  #isDue = false;
  readonly #heard = new Set<() => void>();

  /** `changed` is called once in a while, after something has changed. */
  subscribe(changed: () => void): () => void {
    this.#heard.add(changed);
    return () => this.#heard.delete(changed);
  }

  /** Listens for as long as the page can be seen: browsers open few connections to one place. */
  start(): void {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#close();
      else if (!this.#source) this.#open();
    });
    this.#open();
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
  }

  #open(): void {
    this.#close();
    const source = new EventSource(this.#id === "" ? "events" : `events?since=${this.#id}`);
    this.#source = source;
    source.addEventListener("hello", (event) => this.#hello(JSON.parse(event.data) as Hello));
    source.addEventListener("status", (event) => {
      this.status = JSON.parse(event.data) as Status;
      this.statusAt = Date.now();
      this.ahead = this.status.now - this.statusAt;
      this.#tell();
    });
    source.addEventListener("call", (event) => {
      const call = JSON.parse(event.data) as Call;
      if (event.lastEventId !== "") this.#id = event.lastEventId;
      this.#number = call.run;
      this.#came.push(call);
      this.#tell();
    });
    source.addEventListener("error", () => {
      this.link = "lost";
      // The relay said no, and the browser does not try again.
      if (source.readyState === EventSource.CLOSED && this.#source === source) {
        this.#source = undefined;
        void this.#comeBack();
      }
      this.#tell();
    });
  }

  async #comeBack(): Promise<void> {
    const answer = await fetch("status").catch(() => undefined);
    if (answer?.ok) this.link = "full";
    this.#tell();
    setTimeout(() => {
      if (!this.#source && !document.hidden) this.#open();
    }, AGAIN_MS);
  }

  #hello(hello: Hello): void {
    if (this.#run !== "" && hello.run !== this.#run) {
      // Another run of the relay: what was open is open no more.
      this.calls.clear();
      this.#came = [];
      this.#id = "";
      this.hasEarlier = true;
    }
    this.#run = hello.run;
    this.version = hello.version;
    this.mayChange = hello.may_change;
    this.link = "live";
    this.#tell();
  }

  /** Calls that were before those that are known, out of the file. */
  async earlier(): Promise<void> {
    if (this.isLoading || !this.hasEarlier || this.calls.list.length >= MOST) return;
    this.isLoading = true;
    this.#tell();
    this.#take();
    const oldest = this.calls.list.at(-1)?.opened ?? Date.now() + this.ahead;
    try {
      const answer = await fetch(`calls?before=${oldest}&limit=${EARLIER}`);
      const page = answer.ok ? ((await answer.json()) as { calls: Call[] }) : { calls: [] };
      const fresh = page.calls.map((call) => this.#ofFile(call));
      const before = this.calls.list.length;
      this.calls.put(fresh);
      this.hasEarlier = fresh.length === EARLIER && this.calls.list.length > before;
    } catch {
      this.hasEarlier = true;
    } finally {
      this.isLoading = false;
      this.#tell();
    }
  }

  /** One that stands there as open and is of another run was cut short with it. */
  #ofFile(call: Call): Call {
    return call.state !== "closed" && call.run !== this.#number ? { ...call, unseen: true } : call;
  }

  #take(): void {
    if (this.#came.length === 0) return;
    const came = this.#came;
    this.#came = [];
    this.calls.put(came);
  }

  /** Much comes at once: the page changes once for it. */
  #tell(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const now = (): void => {
      this.#isDue = false;
      this.#take();
      for (const heard of this.#heard) heard();
    };
    setTimeout(now, 50);
  }
}

/** Reads JSON that lies beside the page. */
export async function read<T>(path: string): Promise<T> {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status}`);
  return (await answer.json()) as T;
}

/** Sends the next call of a lane now; whether one waited. The only thing that the page changes. */
export async function askNow(lane: string, token: string): Promise<boolean> {
  const answer = await fetch(`lanes/${encodeURIComponent(lane)}/probe`, {
    method: "POST",
    headers: { "x-steady-token": token },
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status}`);
  return ((await answer.json()) as { asked: boolean }).asked;
}
