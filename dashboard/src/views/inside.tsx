// The settings in force, and the last lines of the log.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSays } from "../context";
import { read } from "../live";
import type { Key, Line } from "../types";

export function SettingsView(): JSX.Element {
  const says = useSays();
  const [keys, setKeys] = useState<Key[]>();
  const [error, setError] = useState("");
  const [only, setOnly] = useState(false);
  useEffect(() => {
    read<{ keys: Key[] }>("config").then(
      (page) => setKeys(page.keys),
      (why: unknown) => setError(String(why)),
    );
  }, []);
  const shown = (keys ?? []).filter((key) => !only || key.origin !== "default");
  const sections: { name: string; keys: Key[] }[] = [];
  for (const key of shown) {
    const last = sections.at(-1);
    if (last && last.keys[0]?.section === key.section && last.keys[0].nth === key.nth) last.keys.push(key);
    else sections.push({ name: key.section, keys: [key] });
  }
  return (
    <section class="card settings" aria-labelledby="settings-title">
      <div class="head">
        <h2 id="settings-title">{says.say("view_settings")}</h2>
        <label class="check">
          <input type="checkbox" checked={only} onChange={(event) => setOnly(event.currentTarget.checked)} />
          {says.say("settings_only")}
        </label>
      </div>
      <p class="muted">{says.say("settings_sub")}</p>
      {error !== "" && <p class="bad">{says.say("load_failed", error)}</p>}
      {keys && shown.length === 0 && <p>{says.say(keys.length === 0 ? "settings_unknown" : "settings_none")}</p>}
      {sections.map((section, nth) => (
        <table key={nth}>
          <caption>{section.name}</caption>
          <thead class="hidden">
            <tr>
              <th scope="col">{says.say("col_setting")}</th>
              <th scope="col">{says.say("col_value")}</th>
              <th scope="col">{says.say("col_origin")}</th>
            </tr>
          </thead>
          <tbody>
            {section.keys.map((key) => (
              <tr key={key.key} class={key.origin === "default" ? "" : "is-set"}>
                <th scope="row">{key.key}</th>
                <td class="break">{key.value ?? <span class="muted">{says.say("not_set")}</span>}</td>
                <td class="muted break">{key.origin}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ))}
    </section>
  );
}

const MOST = 1_000;
const EVERY_MS = 2_000;

export function LogView(): JSX.Element {
  const says = useSays();
  const [lines, setLines] = useState<Line[]>([]);
  const [error, setError] = useState("");
  const last = useRef(0);
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    let isOver = false;
    const look = async (): Promise<void> => {
      try {
        const page = await read<{ last: number; lines: Line[] }>(`log?since=${last.current}`);
        if (isOver) return;
        setError("");
        const isAnew = page.last < last.current;
        last.current = page.last;
        if (page.lines.length > 0 || isAnew) {
          setLines((known) => (isAnew ? page.lines : known.concat(page.lines)).slice(-MOST));
        }
      } catch (why) {
        if (!isOver) setError(String(why));
      }
    };
    void look();
    const timer = setInterval(() => !document.hidden && void look(), EVERY_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, []);
  useLayoutEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const scrolled = (): void => {
    const place = box.current;
    if (place) follows.current = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
  };
  return (
    <section class="card log" aria-labelledby="log-title">
      <div class="head">
        <h2 id="log-title">{says.say("view_log")}</h2>
      </div>
      <p class="muted">{says.say("log_sub")}</p>
      {error !== "" && <p class="bad">{says.say("load_failed", error)}</p>}
      {lines.length === 0 && error === "" && <p>{says.say("log_none")}</p>}
      <div class="lines" ref={box} role="log" aria-labelledby="log-title" tabIndex={0} onScroll={scrolled}>
        {lines.map((line) => (
          <div key={line.n} class={`line line-${line.level}`}>
            <span class="muted">{says.time(line.at)}</span> <span class="level">{line.level}</span>{" "}
            <span class="text">{line.text}</span>
          </div>
        ))}
      </div>
    </section>
  );
}
