// The page: what is on top of it, its four views, and its keys.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { firstLang, keepLang, Language, useNow } from "./context";
import type { Live } from "./live";
import { CallsView } from "./views/calls";
import { ChartsView } from "./views/charts";
import { Keys } from "./views/dialogs";
import { LogView, SettingsView } from "./views/inside";
import { Lanes } from "./views/lanes";
import { Summary } from "./views/summary";
import { type Lang, Says } from "./words";

const VIEWS = ["live", "charts", "settings", "log"] as const;
type View = (typeof VIEWS)[number];

const viewOf = (hash: string): View => VIEWS.find((view) => `#${view}` === hash) ?? "live";

/** Whether keys go to a field. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input, select, textarea, dialog") !== null;

export function App({ live }: { live: Live }): JSX.Element {
  const [, setTurn] = useState(0);
  useEffect(() => live.subscribe(() => setTurn((turn) => turn + 1)), [live]);
  const [view, setView] = useState<View>(() => viewOf(location.hash));
  useEffect(() => {
    const moved = (): void => setView(viewOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const [lang, setLang] = useState<Lang>(firstLang);
  const says = useMemo(() => new Says(lang), [lang]);
  useEffect(() => {
    document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
  }, [lang]);
  const waiting = live.status?.lanes.reduce((sum, lane) => sum + lane.waiting, 0) ?? 0;
  useEffect(() => {
    document.title = waiting > 0 ? says.say("title_waiting", waiting) : says.say("title");
  }, [says, waiting]);
  const choose = (next: Lang): void => {
    keepLang(next);
    setLang(next);
  };
  const keys = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const nth = Number(event.key) - 1;
      if (event.key === "?") keys.current?.showModal();
      else if (VIEWS[nth]) location.hash = VIEWS[nth];
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  // These look for themselves: what changes around them is nothing to them.
  const inside = useMemo(() => {
    if (view === "charts") return <ChartsView />;
    if (view === "settings") return <SettingsView />;
    return view === "log" ? <LogView /> : undefined;
  }, [view]);
  const status = live.status;
  const moves = status !== undefined && (status.open > 0 || status.lanes.some((lane) => lane.state === "shut"));
  const now = useNow(live.ahead, moves);
  return (
    <Language.Provider value={says}>
      <header class="bar">
        <h1>
          <Mark />
          {says.say("title")}
        </h1>
        <nav aria-label={says.say("views")}>
          {VIEWS.map((name) => (
            <a key={name} href={`#${name}`} aria-current={name === view ? "page" : undefined}>
              {says.say(`view_${name}`)}
            </a>
          ))}
        </nav>
        <div class="bar-end">
          <span class={`link link-${live.link}`} role="status">
            {says.say(`link_${live.link}`)}
          </span>
          <div class="choice" role="group" aria-label={says.say("language")}>
            <button type="button" lang="en" aria-pressed={lang === "en"} onClick={() => choose("en")}>
              EN
            </button>
            <button type="button" lang="zh-CN" aria-pressed={lang === "zh"} onClick={() => choose("zh")}>
              中文
            </button>
          </div>
          <button type="button" class="quiet" aria-label={says.say("keys")} onClick={() => keys.current?.showModal()}>
            ?
          </button>
        </div>
      </header>
      <main>
        <Summary status={status} version={live.version} now={now} statusAt={live.statusAt + live.ahead} />
        {inside ?? (
          <>
            <Lanes live={live} now={now} />
            <CallsView live={live} now={now} />
          </>
        )}
      </main>
      <Keys dialog={keys} />
    </Language.Provider>
  );
}

function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M5 19h5l3-8 5 12 3-7h6" />
    </svg>
  );
}
