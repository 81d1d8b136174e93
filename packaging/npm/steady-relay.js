#!/usr/bin/env node
// Starts the program that lies in the package of this platform, and is to its parent what the program is: same
// terminal, same signals, same end.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "steady-relay.exe" : "steady-relay";

/** The path of the program. */
function program() {
  try {
    return require.resolve(`@steady-relay/${platform}/bin/${file}`);
  } catch {
    console.error(`steady-relay: there is no package @steady-relay/${platform} beside this one`);
    console.error(`hint: install it without --omit=optional, or the archive steady-relay-${platform}-VERSION.tgz beside it`);
    console.error("hint: other ways to get the program: https://github.com/steady-relay/steady-relay");
    process.exit(1);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit", windowsHide: false });

// What a terminal sends goes to both of us, and the program decides what it means; the rest is handed on. SIGUSR1 would
// have Node open a port for debuggers. `process.stdin` and its like are not looked at: Node would make them streams of its
// own, and a pipe one that its readers do not wait for, the program among them.
const hasTerminal = [0, 1, 2].some(isatty);
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => hasTerminal || child.kill(signal));
}
for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`steady-relay: cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Ends as the program did, so that a shell sees the same.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
});
