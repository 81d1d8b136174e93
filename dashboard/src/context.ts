// What all parts of the page share: the language, and the present.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { type Lang, preferred, Says } from "./words";

export const Language = createContext<Says>(new Says("en"));
export const useSays = (): Says => useContext(Language);

const KEPT = "steady-language";

/** The language that was chosen here before, or the browser's. A browser may keep nothing. */
export function firstLang(): Lang {
  try {
    const kept = localStorage.getItem(KEPT);
    if (kept === "en" || kept === "zh") return kept;
  } catch {
    // It is asked again the next time.
  }
  return preferred(navigator.languages);
}

export function keepLang(lang: Lang): void {
  try {
    localStorage.setItem(KEPT, lang);
  } catch {
    // It is chosen again the next time.
  }
}

/** The relay's time, which goes on while `moves`. */
export function useNow(ahead: number, moves: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!moves) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [moves]);
  return (moves ? Math.max(now, Date.now()) : Date.now()) + ahead;
}
