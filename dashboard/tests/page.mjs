// The page in a real browser, through an overload that is played by the pretend service behind the relay. Started by
// crates/relay/tests/dashboard/browser.rs, which tells by variables where everything is:
//
//   CHROMIUM  the browser's program      RELAY     the relay's address, http://127.0.0.1:PORT
//   TOKEN     the relay's local token    UPSTREAM  the pretend service: POST /open and /shut change how it answers
//   LOCKED    a relay that asks for a token, without an upstream, and KEY, its token
//   SHOTS     where pictures go
//
// Each step waits until what it wants is so; it ends with 1 and one message at the first that is not.

import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const { CHROMIUM, RELAY, UPSTREAM, TOKEN, LOCKED, KEY, SHOTS } = process.env;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PORT = new URL(RELAY).port;
const VIEWS = ["live", "charts", "settings", "log"];
const PATIENCE = { timeout: 30_000 };

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  // The browser's own sandbox needs rights that a container may not give; it opens only what is on this machine.
  args: ["--no-sandbox", `--host-resolver-rules=MAP evil.example 127.0.0.1`],
});

/** What went wrong in any page, whatever was tested. */
const faults = [];

async function page(look = {}) {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1280, height: look.height ?? 900 },
    colorScheme: look.theme ?? "light",
    locale: look.locale ?? "en-US",
    reducedMotion: "reduce",
  });
  const made = await context.newPage();
  made.setDefaultTimeout(PATIENCE.timeout);
  await made.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) =>
      globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  made.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== RELAY && !["data:", "blob:"].includes(url.protocol)) faults.push(`it asked ${url.origin}`);
  });
  made.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  made.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("403")) faults.push(`console: ${message.text()}`);
  });
  return made;
}

async function done(made) {
  const violations = await made.evaluate(() => globalThis.violations);
  if (violations.length > 0) faults.push(`the policy was violated: ${violations.join(", ")}`);
  await made.context().close();
}

async function accessible(made, where) {
  await made.evaluate(AXE);
  const { violations } = await made.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map((node) => `${node.html.slice(0, 120)} ${node.any[0]?.message ?? ""}`)
        .join(" | ")}`,
  );
  assert.deepEqual(told, [], `axe, ${where}`);
}

async function open(made, view) {
  await made.goto(`${RELAY}/__steady/#${view}`);
  await made.locator(".link-live").waitFor();
  await made.locator(".tiles").waitFor();
  if (view === "charts") await made.locator(".heat table").waitFor();
  if (view === "settings") await made.locator(".settings table").first().waitFor();
  if (view === "log") await made.locator(".line").first().waitFor();
}

const shot = (made, name, more = {}) => made.screenshot({ path: `${SHOTS}/dashboard-${name}.png`, ...more });
const says = (made, place, words) => made.locator(place).filter({ hasText: words }).first().waitFor();
const tell = (word) => fetch(`${UPSTREAM}/${word}`, { method: "POST" }).then((answer) => answer.text());

/** A call of a client. */
function call(model) {
  const body = JSON.stringify({ model, stream: true, input: "canary-prompt" });
  const headers = {
    "content-type": "application/json",
    authorization: "Bearer canary-key",
    "user-agent": "codex_cli_rs/0.99",
  };
  return fetch(`${RELAY}/v1/responses`, { method: "POST", headers, body }).then((answer) => answer.text());
}

async function overload() {
  const made = await page();
  await open(made, "live");
  // Already there is what was before this run.
  await made.locator(".row").first().waitFor();
  for (const model of ["gpt-5.4-mini", "o5-pro", "gpt-5.4-mini", "o5-pro", "gpt-5.4-mini", "o5-pro"]) await call(model);
  await says(made, ".said", /3 of 6 calls failed at first/);
  await tell("shut");
  const waiting = Array.from({ length: 7 }, () => call("gpt-5.4"));
  await says(made, ".verdict", /^gpt-5\.4 is at capacity\. \d calls? waits?/);
  await says(made, ".lane.is-short", "Shut");
  await says(made, ".row", "waiting");
  await made.locator(".details .part-queue").first().waitFor();
  // A countdown counts.
  await says(made, ".lane.is-short, .verdict", /next (is sent|send) in|next send now/);
  await says(made, ".verdict", /7 calls wait/);
  await shot(made, "overload");
  await accessible(made, "overload");
  await made.waitForFunction(() => document.title.startsWith("7 waiting"));

  // Both themes, both languages, both widths while calls wait.
  for (const theme of ["light", "dark"]) {
    for (const locale of ["en-US", "zh-CN"]) {
      for (const width of [1280, 360]) {
        const other = await page({ theme, locale, width, height: width === 360 ? 740 : 900 });
        await open(other, "live");
        await other.locator(".row").first().waitFor();
        await says(other, ".verdict", locale === "zh-CN" ? /gpt-5\.4 容量已满/ : /gpt-5\.4 is at capacity/);
        assert.equal(await other.locator("html").getAttribute("lang"), locale === "zh-CN" ? "zh-CN" : "en");
        const ground = await other.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(ground, theme === "dark" ? "rgb(14, 17, 22)" : "rgb(245, 246, 248)");
        await accessible(other, `${theme} ${locale} ${width}`);
        if (width === 1280 && theme === "dark" && locale === "zh-CN") await shot(other, "zh-dark");
        await done(other);
      }
    }
  }

  await askNow(made);
  await tell("open");
  const answers = await Promise.all(waiting);
  assert.ok(
    answers.every((answer) => answer.includes("response.completed")),
    "every call got its answer",
  );
  await says(made, ".verdict", "All clear. No call is open.");
  await says(made, ".said", /10 of 13 calls failed at first and got their answer all the same/);
  await says(made, ".tile", /Calls saved\s*10/);
  await says(made, ".row", "saved");
  await done(made);
}

/** The one thing that changes something, without a mouse. */
async function askNow(made) {
  await made.locator(".lane.is-short button").focus();
  await made.keyboard.press("Enter");
  await made.locator("dialog[open] input").waitFor();
  await accessible(made, "asking");
  await made.keyboard.type("wrong");
  await made.keyboard.press("Enter");
  await says(made, "dialog[open]", "this is not the token");
  await made.keyboard.press("ControlOrMeta+a");
  await made.keyboard.type(TOKEN);
  await made.keyboard.press("Enter");
  await says(made, "dialog[open]", "A call was sent.");
  await made.keyboard.press("Escape");
  await made.locator("dialog[open]").waitFor({ state: "detached" });
}

async function keysAlone() {
  const made = await page();
  await open(made, "live");
  const chosen = () => made.locator(".row.is-chosen").getAttribute("id");
  const press = async (...keys) => {
    for (const key of keys) await made.keyboard.press(key);
  };
  // What is drawn takes the focus a moment later.
  const holdsFocus = (what) =>
    made.waitForFunction((what) => document.activeElement?.matches(what), what);
  await made.locator(".row.is-chosen").waitFor();
  // With those that were before.
  await says(made, ".calls .head", /^Calls\s*1,\d\d\d/);
  await press("/");
  await made.keyboard.type("saved gpt-5.4 req_1b9d44e2");
  await press("Enter");
  await says(made, ".calls .head", /^Calls\s*7 of /);
  await press("Home", "ArrowDown");
  await made.locator(".row.is-chosen[aria-posinset='2']").waitFor();
  const list = made.locator("[role=listbox]");
  assert.equal(await list.getAttribute("aria-activedescendant"), await chosen());
  await press("Enter");
  await holdsFocus(".details");
  await says(made, ".story", "Refused with 503: the model is at capacity");
  await says(made, ".story", "Waits in line");
  await says(made, ".story", "The client has the whole answer.");
  await shot(made, "call");
  await press("Escape");
  await holdsFocus("[role=listbox]");
  await press("Escape");
  await says(made, ".calls .head", /^Calls\s*[\d,]+\s*Pause/);
  await press("p");
  const before = await made.locator(".row").first().getAttribute("id");
  await call("gpt-5.4-mini");
  await says(made, ".held", "1 call has changed since");
  assert.equal(await made.locator(".row").first().getAttribute("id"), before, "a list that is held does not move");
  await press("p");
  await made.locator(`#${before}`).waitFor();
  await made.waitForFunction((id) => document.querySelector(".row").id !== id, before);
  await press("?");
  await says(made, "dialog[open]", "Keys");
  await accessible(made, "keys");
  await press("Escape");
  for (const [nth, view] of VIEWS.entries()) {
    await press(`${nth + 1}`);
    await made.waitForFunction((hash) => location.hash === hash, `#${view}`);
  }
  // Whatever can be used can be reached, and is seen to be.
  for (const view of VIEWS) {
    await open(made, view);
    const wanted = await made.evaluate(() => {
      const all = [
        ...document.querySelectorAll("a[href], button:not(:disabled), input, select, summary, [tabindex='0']"),
      ];
      return all.filter((it) => it.checkVisibility() && !it.closest("dialog:not([open])")).length;
    });
    const reached = new Set();
    await made.evaluate(() => document.activeElement?.blur());
    for (let nth = 0; nth < wanted + 12; nth++) {
      await press("Tab");
      const at = await made.evaluate(() => {
        const it = document.activeElement;
        if (!it || it === document.body) return undefined;
        globalThis.reached ??= new Map();
        if (!globalThis.reached.has(it)) globalThis.reached.set(it, globalThis.reached.size);
        const { outlineStyle, outlineWidth } = getComputedStyle(it);
        return {
          nth: globalThis.reached.get(it),
          seen: outlineStyle !== "none" && outlineWidth !== "0px",
          what: it.outerHTML.slice(0, 80),
        };
      });
      if (!at) continue;
      assert.ok(at.seen, `focus is seen: ${at.what}`);
      reached.add(at.nth);
    }
    assert.ok(reached.size >= wanted, `${view}: ${reached.size} of ${wanted} are reached by Tab`);
    await made.evaluate(() => globalThis.reached.clear());
  }
  await done(made);
}

async function elsewhere() {
  const made = await page();
  await open(made, "live");
  await made.locator(".row.is-chosen").waitFor();
  await made.keyboard.press("/");
  await made.keyboard.type("req_moved");
  await made.keyboard.press("Enter");
  await says(made, ".calls .head", /^Calls\s*1 of /);
  await made.locator(".row").first().click();
  await says(made, ".facts", /Pool\s*main/);
  await says(made, ".story", "Goes to second and asks for gpt-y. · the breaker of the one before is open");
  await accessible(made, "a call that moved");
  await done(made);
}

async function everyView() {
  for (const theme of ["light", "dark"]) {
    for (const locale of ["en-US", "zh-CN"]) {
      for (const width of [1280, 360]) {
        const made = await page({ theme, locale, width });
        for (const view of VIEWS) {
          await open(made, view);
          const where = `${view} ${theme} ${locale} ${width}`;
          const wide = await made.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= width, `${where}: ${wide} pixels are wider than the window`);
          await accessible(made, where);
          if (view === "charts" && theme === "light" && locale === "en-US" && width === 1280) {
            await made.getByRole("button", { name: "Week" }).click();
            await made.waitForFunction(() => document.querySelector(".chart table")?.rows.length > 60);
            await shot(made, "charts", { fullPage: true });
          }
          if (view === "live" && theme === "light" && locale === "en-US" && width === 360) {
            await shot(made, "narrow");
            // In place of the list.
            await made.locator(".row").first().click();
            await made.locator(".details .back").click();
            await made.locator(".rows").waitFor();
          }
        }
        await done(made);
      }
    }
  }
  // A choice lasts.
  const made = await page();
  await open(made, "live");
  await made.getByRole("button", { name: "中文" }).click();
  await says(made, "h2", "请求");
  await made.reload();
  await says(made, "h2", "请求");
  await done(made);
}

async function tenThousand() {
  const made = await page();
  await open(made, "live");
  await made.locator(".row.is-chosen").waitFor();
  const known = () => made.locator(".row.is-chosen").getAttribute("aria-setsize").then(Number);
  await made.locator(".rows").focus();
  for (let nth = 0; nth < 200 && (await known()) < 10_000; nth++) {
    await made.keyboard.press("End");
    await made.waitForTimeout(50);
  }
  assert.equal(await known(), 10_000);
  const rows = await made.locator(".row").count();
  assert.ok(rows < 60, `${rows} rows are in the page`);
  await made.keyboard.press("Home");
  // From key to picture, with all of them.
  const took = await made.evaluate(async () => {
    const list = document.querySelector(".rows");
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const began = performance.now();
    for (let nth = 0; nth < 20; nth++) {
      list.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
      await frame();
    }
    return (performance.now() - began) / 20;
  });
  assert.ok(took < 250, `a page of rows takes ${took} ms`);
  await made.keyboard.press("/");
  await made.keyboard.type("gave_up");
  await made.waitForFunction(() =>
    /^\d+ of 10,000$/.test(document.querySelector(".calls .head span")?.textContent ?? ""),
  );
  process.stdout.write(`10,000 calls: ${rows} rows in the page, ${took.toFixed(0)} ms for a page of them\n`);
  await done(made);
}

/** Pages of somebody else. */
async function strangers() {
  const made = await browser.newPage();
  const rebound = await made.goto(`http://evil.example:${PORT}/__steady/`);
  assert.equal(rebound.status(), 403, "a name of somebody else that leads here");
  await made.goto(`${UPSTREAM}/page`);
  const said = [];
  made.on(
    "response",
    (response) => response.url().startsWith(RELAY) && said.push(`${response.status()} ${response.url()}`),
  );
  const read = await made.evaluate(async (relay) => {
    let read = "";
    for (const path of ["status", "calls", "events", "config", "app.js"]) {
      for (const mode of ["cors", "no-cors"]) {
        read += await fetch(`${relay}/__steady/${path}`, { mode }).then(
          (answer) => answer.text(),
          () => "",
        );
      }
    }
    const frame = document.createElement("iframe");
    frame.src = `${relay}/__steady/`;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    return read;
  }, RELAY);
  assert.equal(read, "", "a page from elsewhere reads nothing");
  assert.ok(said.length >= 6 && said.every((told) => told.startsWith("403 ")), said.join(", "));
  const framed = made.frames().find((frame) => frame !== made.mainFrame());
  assert.equal(await framed.locator("#app").count(), 0, "no page shows it in a frame");
  await made.close();
}

/** A relay that asks for its token, opened by hand. */
async function locked() {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
  const made = await context.newPage();
  made.setDefaultTimeout(PATIENCE.timeout);
  made.on("console", (message) => {
    if (message.type() === "error" && !/40[13]/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  for (const start of ["/__steady/", "/"]) {
    await made.goto(`${LOCKED}${start}`);
    await made.locator("input").waitFor();
    await accessible(made, "asking for the token");
    await made.keyboard.type("another-token-than-it");
    await made.keyboard.press("Enter");
    await says(made, "[role=alert]", "the token is not the one");
    await made.keyboard.type(KEY);
    await made.keyboard.press("Enter");
    await made.locator(".link-live").waitFor();
    assert.equal(made.url(), `${LOCKED}/~${KEY}/__steady/`);
  }
  // With it, the root leads here as well, since it leads nowhere else.
  await made.goto(`${LOCKED}/~${KEY}/`);
  await made.locator(".link-live").waitFor();
  await context.close();
}

for (const step of [locked, overload, keysAlone, elsewhere, everyView, tenThousand, strangers]) {
  try {
    await step();
    assert.deepEqual(faults, [], "all along");
    process.stdout.write(`${step.name}: ok\n`);
  } catch (error) {
    process.stdout.write(`${step.name}: ${error.stack}\n${faults.join("\n")}\n`);
    await browser.close();
    process.exit(1);
  }
}
await browser.close();
