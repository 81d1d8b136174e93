// A mark for what became of a call: its shape tells as much as its colour.

import type { JSX } from "preact";
import type { Fate } from "../derive";

const PATHS: Record<Fate, string> = {
  opening: "M8 3v5l3 2",
  sending: "M8 12V4M4.5 7.5 8 4l3.5 3.5",
  waiting: "M6 4.5v7M10 4.5v7",
  streaming: "M8 4v8M4.5 8.5 8 12l3.5-3.5",
  served: "M4 8.5 7 11.5 12 5",
  saved: "M4 8.5 7 11.5 12 5",
  passed: "M8 4v5M8 11.6v.4",
  failed: "M4.8 4.8l6.4 6.4M11.2 4.8l-6.4 6.4",
  left: "M4 8h8",
  cut: "M5 4l6 8M11 4l-6 8",
  unseen: "M6 6.2C6 4 10 4 10 6.3 10 8 8 7.8 8 9.4M8 11.8v.2",
};

export function FateMark({ fate }: { fate: Fate }): JSX.Element {
  return (
    <svg class={`fate-mark fate-${fate}`} viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="7.25" />
      <path d={PATHS[fate]} />
    </svg>
  );
}
