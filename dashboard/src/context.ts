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

/** The relay's time. While something `moves`, it is looked at more often. */
export function useNow(ahead: number, moves: boolean): number {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), moves ? 250 : 5_000);
    return () => clearInterval(timer);
  }, [moves]);
  return Date.now() + ahead;
}
