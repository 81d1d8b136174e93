// Hours by weekdays: how often a model was out of capacity then.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useSays } from "../context";
import { bestHours, heatLevel } from "../derive";
import type { Heat } from "../types";
import type { Word } from "../words";

const DAYS = [0, 1, 2, 3, 4, 5, 6] as const;
const HOURS = [...Array(24).keys()];

export function HeatMap({ heat }: { heat: Heat }): JSX.Element {
  const says = useSays();
  const [chosen, setChosen] = useState(0);
  const of = heat.models[chosen] ?? heat.models[0];
  const best = of && bestHours(of.calls, of.short);
  return (
    <div class="card heat">
      <div class="head">
        <h2 id="heat-title">{says.say("heat")}</h2>
        {heat.models.length > 0 && (
          <label>
            <span class="hidden">{says.say("heat_model")}</span>
            <select value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
              {heat.models.map(({ model }, nth) => (
                <option key={model} value={nth}>
                  {model}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <p class="muted">
        {says.say(of ? "heat_sub" : "heat_none")}{" "}
        {best && <strong>{says.say("heat_best", `${best.from}:00–${best.to}:00`)}</strong>}
      </p>
      {of && (
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="heat-title">
          <table>
            <thead>
              <tr>
                <td />
                {HOURS.map((hour) => (
                  <th key={hour} scope="col">
                    {hour}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {DAYS.map((day) => (
                <tr key={day}>
                  <th scope="row">{says.say(`day_${day}` as Word)}</th>
                  {HOURS.map((hour) => {
                    const [calls, short] = [of.calls[day * 24 + hour] ?? 0, of.short[day * 24 + hour] ?? 0];
                    const level = heatLevel(calls, short);
                    return (
                      <td
                        key={hour}
                        class={level === undefined ? "" : `heat-${level}`}
                        title={says.say("heat_cell", short, calls)}
                      >
                        {level !== undefined && <span class="hidden">{says.share(short / calls)}</span>}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {of && (
        <p class="scale muted" aria-hidden="true">
          {says.say("heat_less")}
          {[0, 1, 2, 3, 4, 5].map((level) => (
            <i key={level} class={`heat-${level}`} />
          ))}
          {says.say("heat_more")}
        </p>
      )}
    </div>
  );
}
