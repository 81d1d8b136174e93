// An hour, a day or a week in four charts, and the hours at which a model has no capacity.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { useSays } from "../context";
import { linesOf } from "../derive";
import { read } from "../live";
import type { Chart, Heat, Span } from "../types";
import type { Says, Word } from "../words";
import { HeatMap } from "./heat";

const SPANS: readonly Span[] = ["hour", "day", "week"];
const AGAIN_MS: Record<Span, number> = { hour: 5_000, day: 15_000, week: 60_000 };

export function ChartsView(): JSX.Element {
  const says = useSays();
  const [span, setSpan] = useState<Span>("hour");
  const [chart, setChart] = useState<Chart>();
  const [heat, setHeat] = useState<Heat>();
  const [error, setError] = useState("");
  useEffect(() => {
    let isOver = false;
    const look = (): void => {
      read<Chart>(`charts?span=${span}`).then(
        (page) => {
          if (isOver) return;
          setChart(page);
          setError("");
        },
        (why: unknown) => !isOver && setError(String(why)),
      );
    };
    look();
    const timer = setInterval(() => !document.hidden && look(), AGAIN_MS[span]);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [span]);
  useEffect(() => {
    read<Heat>(`heat?offset=${-new Date().getTimezoneOffset()}`).then(setHeat, (why: unknown) => setError(String(why)));
  }, []);
  // The charts are drawn anew where these change, and not where the page around them does.
  const lines = useMemo(() => {
    if (!chart) return undefined;
    const { at, success, without, wait } = linesOf(chart);
    const refusals = chart.refusals.map((count) => count || null);
    return { at, success: [success, without], wait: [wait], refusals: [refusals], sends: [chart.sends, chart.calls] };
  }, [chart]);
  const isEmpty = chart?.calls.every((count) => count === 0) ?? false;
  const percent = (value: number): string => says.share(value / 100);
  const seconds = (value: number): string => says.span(value * 1000);
  return (
    <>
      <section aria-labelledby="charts-title">
        <div class="head">
          <h2 id="charts-title">{says.say("view_charts")}</h2>
          <div class="choice" role="group" aria-label={says.say("span")}>
            {SPANS.map((name) => (
              <button key={name} type="button" aria-pressed={name === span} onClick={() => setSpan(name)}>
                {says.say(`span_${name}`)}
              </button>
            ))}
          </div>
        </div>
        {error !== "" && <p class="bad">{says.say("load_failed", error)}</p>}
        {isEmpty && <p class="muted">{says.say("chart_none")}</p>}
        {lines && (
          <div class="charts">
            <Figure
              name="chart_success"
              at={lines.at}
              rows={lines.success}
              columns={["col_with", "col_without"]}
              show={percent}
              top={100}
            />
            <Figure name="chart_wait" at={lines.at} rows={lines.wait} columns={["col_value"]} show={seconds} />
            <Figure
              name="chart_refusals"
              at={lines.at}
              rows={lines.refusals}
              columns={["col_value"]}
              show={says.number}
              bars
            />
            <Figure
              name="chart_sends"
              at={lines.at}
              rows={lines.sends}
              columns={["col_sends", "col_calls"]}
              show={says.number}
            />
          </div>
        )}
      </section>
      {heat && <HeatMap heat={heat} />}
    </>
  );
}

interface FigureProps {
  name: "chart_success" | "chart_wait" | "chart_refusals" | "chart_sends";
  at: number[];
  /** The first is drawn solid, another one dashed. */
  rows: (number | null)[][];
  columns: Word[];
  show: (value: number) => string;
  top?: number;
  bars?: boolean;
}

function Figure({ name, at, rows, columns, show, top, bars }: FigureProps): JSX.Element {
  const says = useSays();
  const place = useRef<HTMLDivElement>(null);
  const [under, setUnder] = useState<number | null>(null);
  const [isDark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  const plot = useRef<uPlot | undefined>(undefined);
  const step = (at[1] ?? 0) - (at[0] ?? 0);
  useEffect(() => {
    const box = place.current;
    if (!box) return undefined;
    const made = new uPlot(
      options(box, { says, rows: rows.length, show, top, bars: bars ?? false, step, hover: setUnder }),
      [at, ...rows],
      box,
    );
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }));
    sized.observe(box);
    return () => {
      sized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // Made anew only where it would look different.
  }, [says, isDark, step]);
  useEffect(() => plot.current?.setData([at, ...rows]), [at, rows]);
  const lastAt = (rows[0] ?? []).findLastIndex((value) => value !== null);
  const nth = under ?? lastAt;
  const values = rows.map((row) => row[nth] ?? null);
  const shown = values.filter((value) => value !== null).map((value) => show(value));
  const when = (place: number): string => says.day((at[place] ?? 0) * 1000);
  return (
    <figure class="card chart">
      <figcaption>
        <h3>{says.say(name)}</h3>
        <span class="muted">{says.say(`${name}_sub`)}</span>
        <span class="read" aria-hidden="true">
          {nth >= 0 && shown.length > 0 && `${shown.join(" / ")} · ${when(nth)}`}
        </span>
      </figcaption>
      <div
        ref={place}
        class="plot"
        role="img"
        aria-label={says.say("chart_alt", says.say(name), when(0), when(at.length - 1), shown.join(" / ") || "–")}
      />
      <details>
        <summary>{says.say("as_table")}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={says.say(name)}>
          <table>
            <thead>
              <tr>
                <th scope="col">{says.say("col_time")}</th>
                {columns.map((column) => (
                  <th key={column} scope="col">
                    {says.say(column)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {at.map((_, place) =>
                rows.some((row) => row[place]) ? (
                  <tr key={place}>
                    <th scope="row">{when(place)}</th>
                    {rows.map((row, column) => (
                      <td key={column}>{row[place] === null || row[place] === undefined ? "–" : show(row[place])}</td>
                    ))}
                  </tr>
                ) : null,
              )}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

const HEIGHT = 150;

/** The values with nothing beside them, through which no line goes. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  const isThere = (nth: number): boolean => values[nth] !== null && values[nth] !== undefined;
  return [...values.keys()].filter((nth) => isThere(nth) && !isThere(nth - 1) && !isThere(nth + 1));
}

interface Look {
  says: Says;
  rows: number;
  show: (value: number) => string;
  top: number | undefined;
  bars: boolean;
  step: number;
  hover: (nth: number | null) => void;
}

function options(box: HTMLElement, look: Look): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const [accent, muted, line] = [colour("--accent"), colour("--muted"), colour("--line")];
  const font = `11px ${style.fontFamily}`;
  const grid = { stroke: line, width: 1 };
  const pad = (value: number): string => String(value).padStart(2, "0");
  const clock = (at: number): string => {
    const date = new Date(at * 1000);
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    return isMidnight && look.step >= 900
      ? `${date.getMonth() + 1}/${date.getDate()}`
      : `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  };
  const paths = look.bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.8, 24], align: 1 }) } : {};
  const drawn: uPlot.Series[] = [
    // Nothing is drawn where nothing is known; a value between two such stands alone, as a point.
    look.bars
      ? { stroke: accent, width: 0, fill: accent, points: { show: false }, ...paths }
      : {
          stroke: accent,
          width: 2,
          fill: `${accent}22`,
          points: { show: true, size: 4, fill: accent, width: 0, filter: alone },
        },
    { stroke: muted, width: 1.5, dash: [4, 4], points: { show: true, size: 3, fill: muted, width: 0, filter: alone } },
  ];
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !look.bars } },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, look.top ?? Math.max(max * 1.1, 1)] } },
    axes: [
      {
        stroke: muted,
        font,
        grid: { show: false },
        ticks: grid,
        size: 28,
        space: 60,
        values: (_, at) => at.map(clock),
      },
      {
        stroke: muted,
        font,
        grid,
        ticks: { show: false },
        size: 52,
        space: 34,
        values: (_, values) => values.map((value) => look.show(value)),
      },
    ],
    series: [{}, ...drawn.slice(0, look.rows)],
    hooks: { setCursor: [(plot) => look.hover(plot.cursor.idx ?? null)] },
  };
}
