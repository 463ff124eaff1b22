// The parts that a worker plays, the same for every library written for node.
//
// A library is an object with `acquire(resource, ttlMs)`, which tries once and answers what it was
// granted or throws; `validityMs(lease)`; `extend(lease, ttlMs)`, which answers the lease from then
// on or throws; `release(lease)`; and `quit()`.
"use strict";

const net = require("node:net");
const readline = require("node:readline");

const variable = process.env;
const ports = variable.FOREIGN_NODES.split(",").map(Number);
const resource = variable.FOREIGN_RESOURCE;
const who = variable.FOREIGN_WHO;
const ttlMs = Number(variable.FOREIGN_TTL_MS);
const warmTtlMs = 10_000;

const say = (step, what = {}) => console.log(JSON.stringify({ step, ...what }));

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Waits until the runner says that it goes on.
async function told() {
  if ((await lines.next()).done) process.exit(1);
}

function observe() {
  const socket = net.connect(Number(variable.FOREIGN_OBSERVER), "127.0.0.1");
  const tell = (verb, who) =>
    new Promise((resolve, reject) => {
      socket.once("data", (answer) =>
        answer.toString().startsWith("+OK") ? resolve() : reject(new Error(answer.toString())),
      );
      socket.write(`${verb} ${resource} ${who}\r\n`);
    });
  return { tell, end: () => socket.destroy() };
}

async function cycle(first, second, observer) {
  let lease = await first.acquire(resource, ttlMs);
  say("acquired", { validity_ms: first.validityMs(lease) });
  await observer.tell("ENTER", "first");
  // Again, since the keys of the first must outlive the release after a refusal.
  for (const step of ["refused", "refused again"]) {
    const granted = await second.acquire(resource, ttlMs).catch(() => undefined);
    say(granted ? "granted twice" : step);
  }
  lease = await first.extend(lease, 2 * ttlMs);
  say("extended", { validity_ms: first.validityMs(lease) });
  await observer.tell("LEAVE", "first");
  await first.release(lease);
  say("released");
  lease = await second.acquire(resource, ttlMs);
  await observer.tell("ENTER", "second");
  say("acquired by the second");
  await observer.tell("LEAVE", "second");
  await second.release(lease);
}

// Has connections and scripts at every node before the faults begin.
async function warm(library) {
  await library.release(await library.acquire(`warm-${who}`, warmTtlMs));
  say("ready");
  await told();
}

async function late(library, observer) {
  await warm(library);
  const began = performance.now();
  const after = () => Math.trunc(performance.now() - began);
  let lease;
  try {
    lease = await library.acquire(resource, ttlMs);
  } catch (error) {
    say("late", { outcome: "refuses", after_ms: after(), why: String(error) });
    return;
  }
  say("late", { outcome: "granted", after_ms: after(), validity_ms: library.validityMs(lease) });
  await hold(library, lease, observer);
}

async function section(library, observer) {
  await warm(library);
  const lease = await library.acquire(resource, ttlMs).catch(() => undefined);
  if (lease === undefined) return say("refused");
  await hold(library, lease, observer);
}

async function hold(library, lease, observer) {
  await observer.tell("ENTER", who);
  say("entered");
  await told();
  await observer.tell("LEAVE", who);
  await library.release(lease).catch((error) => say("not released", { why: String(error) }));
  say("left");
}

// Plays the part that the environment names with libraries that `connect(ports)` makes.
exports.play = async (connect) => {
  const observer = observe();
  const part = { cycle, late, section }[variable.FOREIGN_PART];
  const libraries = [await connect(ports)];
  if (part === cycle) libraries.push(await connect(ports));
  try {
    await part(...libraries, observer);
  } catch (error) {
    say("failed", { why: String(error) });
    process.exitCode = 1;
  }
  for (const library of libraries) await library.quit();
  observer.end();
  process.stdin.destroy();
};
