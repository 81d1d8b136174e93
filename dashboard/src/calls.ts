// The calls that the page knows, the newest first. Bounded: the oldest go, but none that is open.

import { isOpen, keyOf } from "./derive";
import type { Call } from "./types";

/** The most that are kept. */
export const MOST = 10_000;

const isBefore = (a: Call, b: Call): boolean => a.opened > b.opened || (a.opened === b.opened && a.call > b.call);

export class Calls {
  #byKey = new Map<string, Call>();
  #list: Call[] = [];

  /** The newest first. */
  get list(): readonly Call[] {
    return this.#list;
  }

  get(key: string): Call | undefined {
    return this.#byKey.get(key);
  }

  /** Nothing is known any more. */
  clear(): void {
    this.#byKey.clear();
    this.#list = [];
  }

  /** These are so now. */
  put(calls: readonly Call[]): void {
    const changed = new Map<string, Call>();
    for (const call of calls) changed.set(keyOf(call), call);
    if (changed.size === 0) return;
    const list = this.#list.map((call) => {
      const key = keyOf(call);
      const now = changed.get(key);
      if (!now) return call;
      changed.delete(key);
      this.#byKey.set(key, now);
      return now;
    });
    const fresh = [...changed.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
    for (const call of fresh) this.#byKey.set(keyOf(call), call);
    this.#list = merged(fresh, list);
    this.#bound();
  }

  #bound(): void {
    let over = this.#list.length - MOST;
    for (let nth = this.#list.length - 1; over > 0 && nth >= 0; nth--) {
      const call = this.#list[nth];
      if (!call || isOpen(call)) continue;
      this.#list.splice(nth, 1);
      this.#byKey.delete(keyOf(call));
      over--;
    }
  }
}

function merged(a: Call[], b: Call[]): Call[] {
  const all: Call[] = [];
  let [i, j] = [0, 0];
  for (;;) {
    const [x, y] = [a[i], b[j]];
    if (!x) return all.concat(b.slice(j));
    if (!y) return all.concat(a.slice(i));
    if (isBefore(x, y)) {
      all.push(x);
      i++;
    } else {
      all.push(y);
      j++;
    }
  }
}
