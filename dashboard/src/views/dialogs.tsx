// What opens above the page.

import type { JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useSays } from "../context";
import { askNow } from "../live";
import type { Lane } from "../types";

/** As long as the page is open, and nowhere else. */
let kept = "";

export function AskNow({ lane, done }: { lane: Lane; done: () => void }): JSX.Element {
  const says = useSays();
  const dialog = useRef<HTMLDialogElement>(null);
  const [token, setToken] = useState(kept);
  const [told, setTold] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const name = lane.model ?? lane.upstream;
  const send = async (): Promise<void> => {
    try {
      const asked = await askNow(lane.id, token.trim());
      kept = token.trim();
      setTold(says.say(asked ? "asked" : "asked_none"));
    } catch (error) {
      setTold(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask-title" onClose={done}>
      <h2 id="ask-title">{says.say("ask_title", name)}</h2>
      <p>{says.say("ask_text")}</p>
      <label>
        {says.say("ask_token")}
        <input
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && token !== "" && void send()}
        />
      </label>
      <p role="status">{told}</p>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          {told === "" ? says.say("cancel") : says.say("close")}
        </button>
        <button type="button" class="main" disabled={token === ""} onClick={() => void send()}>
          {says.say("ask_send")}
        </button>
      </div>
    </dialog>
  );
}

export function Keys({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }): JSX.Element {
  const says = useSays();
  const rows = [
    ["/", "key_filter"],
    ["↑ ↓", "key_move"],
    ["Enter", "key_enter"],
    ["Esc", "key_escape"],
    ["p", "key_pause"],
    ["1 – 4", "key_views"],
    ["?", "key_help"],
  ] as const;
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">{says.say("keys")}</h2>
      <dl class="keys">
        {rows.map(([key, word]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{says.say(word)}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          {says.say("close")}
        </button>
      </div>
    </dialog>
  );
}
