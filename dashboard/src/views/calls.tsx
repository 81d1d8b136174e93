// The list of calls, of which only the rows in sight are there, and beside it the chosen one.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSays } from "../context";
import { type Fate, fateOf, isOpen, keyOf, matches, nameOf, sendsOf, waitedOf, waitsUntil, wordsOf } from "../derive";
import type { Live } from "../live";
import type { Call } from "../types";
import type { Says } from "../words";
import { Details } from "./details";
import { FateMark } from "./marks";

/** The height of a row, as the style has it. */
const ROW = 56;
/** Rows above and below those in sight. */
const BEYOND = 6;
const NONE: readonly Call[] = [];
/** Where the style has room for one of both. */
const NARROW = "(max-width: 860px)";

export function CallsView({ live, now }: { live: Live; now: number }): JSX.Element {
  const says = useSays();
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState("");
  /** Whether a person chose it. */
  const [isOwn, setOwn] = useState(false);
  // Where there is no room for both, the chosen call is in place of the list.
  const [isInside, setInside] = useState(false);
  const [still, setStill] = useState<readonly Call[]>();
  const all = still ?? live.calls.list;
  const pause = (): void => setStill((is) => (is ? undefined : live.calls.list));
  const kept = useMemo(() => new Set(still), [still]);
  const held = still ? live.calls.list.reduce((count, call) => count + (kept.has(call) ? 0 : 1), 0) : 0;
  const shown = useMemo(() => {
    const words = wordsOf(filter);
    return words.length === 0 ? all : all.filter((call) => matches(call, words));
  }, [all, filter]);
  useEffect(() => {
    if (live.link === "live" && live.calls.list.length < 100) void live.earlier();
  }, [live, live.link]);
  const current = shown.find((call) => keyOf(call) === chosen) ?? shown[0];
  // Until a person chooses one, it is one that waits, if any does, and stays until it is over.
  const waits =
    isOwn || (current && chosen !== "" && isOpen(current)) ? undefined : shown.find((call) => call.state === "waiting");
  const usual = waits ?? (chosen === "" && live.link === "live" ? shown[0] : undefined);
  useEffect(() => {
    if (usual) setChosen(keyOf(usual));
  }, [usual]);
  const list = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLInputElement>(null);
  const panel = useRef<HTMLElement>(null);

  const choose = (call: Call): void => {
    setChosen(keyOf(call));
    setOwn(true);
  };
  const open = (call: Call | undefined): void => {
    if (!call) return;
    choose(call);
    setInside(true);
    setTimeout(() => {
      panel.current?.focus();
      panel.current?.scrollIntoView({ block: "nearest" });
    });
  };
  // Beside the list there is nothing to open.
  const pick = (call: Call): void => {
    if (matchMedia(NARROW).matches) open(call);
    else choose(call);
  };
  const leave = (): void => {
    setInside(false);
    setTimeout(() => list.current?.focus({ preventScroll: true }));
  };
  const move = (by: number): void => {
    const at = current ? shown.indexOf(current) : -1;
    const next = shown[Math.min(shown.length - 1, Math.max(0, at + by))];
    if (next) choose(next);
  };
  const keys = useRef((_: KeyboardEvent): void => undefined);
  keys.current = (event) => {
    const target = event.target instanceof HTMLElement ? event.target : undefined;
    if (event.ctrlKey || event.metaKey || event.altKey || target?.closest("dialog, select")) return;
    if (target === box.current) {
      if (event.key === "Escape") {
        setFilter("");
        list.current?.focus();
      } else if (event.key === "Enter" || event.key === "ArrowDown") {
        list.current?.focus();
        event.preventDefault();
      }
      return;
    }
    const isIn = (place: HTMLElement | null): boolean =>
      target !== undefined && place !== null && place.contains(target);
    if (event.key === "/") box.current?.focus();
    else if (event.key === "p") pause();
    else if (event.key === "Escape" && (isIn(panel.current) || isInside)) leave();
    else if (event.key === "Escape" && filter !== "") setFilter("");
    else if (!isIn(list.current) && target !== document.body) return;
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "PageDown") move(8);
    else if (event.key === "PageUp") move(-8);
    else if (event.key === "Home") move(-shown.length);
    else if (event.key === "End") move(shown.length);
    else if (event.key === "Enter") open(current);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => keys.current(event);
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  return (
    <div class={`split ${isInside ? "is-inside" : ""}`}>
      <section class="calls card" aria-labelledby="calls-title">
        <div class="head">
          <h2 id="calls-title">{says.say("calls")}</h2>
          <span class="muted">
            {filter === "" ? says.number(all.length) : says.say("calls_shown", shown.length, all.length)}
          </span>
          <button type="button" aria-pressed={still !== undefined} onClick={pause}>
            {says.say(still ? "resume" : "pause")}
          </button>
        </div>
        <input
          ref={box}
          type="search"
          aria-label={says.say("filter")}
          placeholder={says.say("filter_hint")}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        {held > 0 && <p class="held muted">{says.counted(held, "paused_new_one", "paused_new")}</p>}
        <List list={list} shown={shown} current={current} now={now} choose={pick} end={() => void live.earlier()} />
        {shown.length === 0 && (
          <p class="muted none">{says.say(all.length === 0 ? "calls_none" : "calls_none_match")}</p>
        )}
        {live.hasEarlier && all.length > 0 && all.length < 10_000 && (
          <button type="button" class="quiet earlier" disabled={live.isLoading} onClick={() => void live.earlier()}>
            {says.say(live.isLoading ? "earlier_loading" : "earlier")}
          </button>
        )}
      </section>
      <section class="details card" aria-label={says.say("details")} ref={panel} tabIndex={-1}>
        <button type="button" class="quiet back" onClick={leave}>
          ← {says.say("back")}
        </button>
        {current ? <Details call={current} now={now} /> : <p class="muted">{says.say("details_none")}</p>}
      </section>
    </div>
  );
}

interface ListProps {
  list: { current: HTMLDivElement | null };
  shown: readonly Call[];
  current: Call | undefined;
  now: number;
  choose: (call: Call) => void;
  /** The last rows are in sight. */
  end: () => void;
}

function List({ list, shown, current, now, choose, end }: ListProps): JSX.Element {
  const says = useSays();
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const first = useRef("");
  const previous = useRef(NONE);
  useEffect(() => {
    const place = list.current;
    if (!place) return undefined;
    const sized = new ResizeObserver(() => setHeight(place.clientHeight));
    sized.observe(place);
    return () => sized.disconnect();
  }, [list]);
  // What is being read stays where it is when new ones come above it.
  useLayoutEffect(() => {
    const place = list.current;
    if (place && place.scrollTop > ROW && previous.current !== shown && first.current !== "") {
      const from = Math.floor(place.scrollTop / ROW);
      const was = previous.current[from];
      const at = was ? shown.findIndex((call) => keyOf(call) === keyOf(was)) : -1;
      if (at > from) place.scrollTop += (at - from) * ROW;
    }
    previous.current = shown;
    first.current = shown[0] ? keyOf(shown[0]) : "";
  }, [shown, list]);
  const key = current ? keyOf(current) : "";
  const at = current ? shown.indexOf(current) : -1;
  useLayoutEffect(() => {
    const place = list.current;
    if (!place || at < 0 || document.activeElement !== place) return;
    if (at * ROW < place.scrollTop) place.scrollTop = at * ROW;
    else if ((at + 1) * ROW > place.scrollTop + place.clientHeight)
      place.scrollTop = (at + 1) * ROW - place.clientHeight;
  }, [key, list]);
  const from = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const to = Math.min(shown.length, Math.ceil((top + height) / ROW) + BEYOND);
  const rows = shown.slice(from, to).map((call, nth) => ({ call, at: from + nth }));
  // The chosen one is always there, so that it can be told of.
  if (current && at >= 0 && (at < from || at >= to)) rows.push({ call: current, at });
  return (
    <div
      class="rows"
      ref={list}
      role="listbox"
      tabIndex={0}
      aria-labelledby="calls-title"
      aria-activedescendant={current && at >= 0 ? `call-${key}` : undefined}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        setTop(scrollTop);
        if (scrollTop > 0 && scrollHeight - scrollTop - clientHeight < 20 * ROW) end();
      }}
    >
      <div class="rows-all" role="presentation" style={{ height: `${shown.length * ROW}px` }}>
        {rows.map(({ call, at: place }) => (
          <div
            key={keyOf(call)}
            id={`call-${keyOf(call)}`}
            class={`row ${call === current ? "is-chosen" : ""}`}
            role="option"
            aria-selected={call === current}
            aria-posinset={place + 1}
            aria-setsize={shown.length}
            style={{ transform: `translateY(${place * ROW}px)` }}
            onClick={() => choose(call)}
          >
            <Row call={call} now={now} says={says} />
          </div>
        ))}
      </div>
    </div>
  );
}

const LOUD: readonly Fate[] = ["failed", "waiting", "saved"];

function Row({ call, now, says }: { call: Call; now: number; says: Says }): JSX.Element {
  const fate = fateOf(call);
  const since = now - call.opened;
  const sends = sendsOf(call);
  const waited = waitedOf(call, since);
  const until = waitsUntil(call);
  const took = call.closed?.took ?? (isOpen(call) ? since : undefined);
  const wait =
    until !== undefined && until > since
      ? says.say("next_in", says.span(until - since))
      : fate !== "waiting" && waited >= 100 && says.say("waited", says.span(waited));
  return (
    <>
      <FateMark fate={fate} />
      <span class="row-main">
        <span class="name clip">{call.model ?? call.upstream}</span>
        <span class="muted clip">
          {says.time(call.opened)} · {call.client} · {nameOf(call)}
        </span>
      </span>
      <span class="row-end">
        <span class={`fate fate-${fate} ${LOUD.includes(fate) ? "is-loud" : ""}`}>
          {says.say(`fate_${fate}`)}
          {took !== undefined && <span class="muted"> {says.span(took)}</span>}
        </span>
        <span class="muted clip">
          {sends > 1 && <span class="if-room">{`${says.say("sends", sends)}${wait ? " · " : ""}`}</span>}
          {wait}
        </span>
      </span>
    </>
  );
}
