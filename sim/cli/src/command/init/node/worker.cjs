// A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.
//
// Node alone is enough. To judge your own client, replace the class `Redlock` with calls to it; keep
// `Observer` and `main`.
'use strict';

const { randomBytes } = require('node:crypto');
const { connect } = require('node:net');
const { setTimeout: sleep } = require('node:timers/promises');

const CLIENT = process.env.DRIVE_CLIENT;
const NODES = process.env.DRIVE_NODES.split(',');
const RESOURCE = process.env.DRIVE_RESOURCE;
const TTL_MS = Number(process.env.DRIVE_TTL_MS);

const ROUNDS = 2;
// Time in the critical section, a third of the lease.
const HOLD_MS = TTL_MS / 3;
// Time for the replies of all nodes, much less than the lease.
const REPLIES_MS = TTL_MS / 10;
// Time for one acquisition with all its attempts.
const PATIENCE_MS = 20_000;

// Deletes the key only if it is ours: after our lease it may be another client's.
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

// Milliseconds on a clock that nobody sets.
const now = () => performance.now();

// A connection that knows replies of one line, dialled again after each failure.
class Connection {
  constructor(address, introduction = []) {
    const [host, port] = address.split(':');
    Object.assign(this, { host, port: Number(port), introduction, socket: null });
  }

  dial() {
    const socket = connect(this.port, this.host);
    Object.assign(this, { socket, waiting: [], text: '' });
    socket.setNoDelay(true);
    socket.on('data', (data) => this.received(socket, data));
    socket.on('error', () => {});
    socket.on('close', () => this.close(socket));
    for (const words of this.introduction) this.request(words);
  }

  request(words) {
    const parts = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`);
    this.socket.write(`*${parts.length}\r\n${parts.join('')}`);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  // The reply to a request; null if there is none in time.
  async ask(words, withinMs) {
    if (this.socket === null) this.dial();
    const { socket } = this;
    const reply = this.request(words);
    const timer = setTimeout(() => this.close(socket), withinMs);
    const text = await reply;
    clearTimeout(timer);
    return text;
  }

  received(socket, data) {
    if (socket !== this.socket) return;
    const lines = (this.text + data).split('\r\n');
    this.text = lines.pop();
    for (const line of lines) this.waiting.shift()?.(line);
  }

  // A reply that still comes would be taken for the next one.
  close(socket = this.socket) {
    if (socket === null || socket !== this.socket) return;
    this.socket = null;
    socket.destroy();
    for (const resolve of this.waiting) resolve(null);
  }
}

// The lock: a majority of the nodes, all asked at once.
class Redlock {
  constructor() {
    // The name tells the masters whose connection it is.
    this.nodes = NODES.map((node) => new Connection(node, [['CLIENT', 'SETNAME', CLIENT]]));
  }

  ask(...words) {
    return Promise.all(this.nodes.map((node) => node.ask(words, REPLIES_MS)));
  }

  // One attempt; its token if the lock is ours.
  async acquire() {
    const token = randomBytes(20).toString('hex');
    const began = now();
    const replies = await this.ask('SET', RESOURCE, token, 'NX', 'PX', TTL_MS);
    const votes = replies.filter((reply) => reply === '+OK').length;
    // The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
    const leftMs = TTL_MS * 0.99 - 2 - (now() - began);
    if (votes > this.nodes.length / 2 && leftMs > 0) return token;
    await this.release(token);
    return null;
  }

  release(token) {
    return this.ask('EVAL', RELEASE, 1, RESOURCE, token);
  }

  close() {
    for (const node of this.nodes) node.close();
  }
}

// Learns when this worker enters and leaves its critical section.
class Observer extends Connection {
  async tell(...words) {
    const reply = await this.ask(words, 10_000);
    if (reply !== '+OK') throw new Error(`the observer refuses ${words.join(' ')}: ${reply}`);
  }
}

// Attempts until the lock is ours.
async function acquired(redlock) {
  const until = now() + PATIENCE_MS;
  while (now() < until) {
    const token = await redlock.acquire();
    if (token !== null) return token;
    await sleep(10 + Math.random() * 90);
  }
  throw new Error(`no lock within ${PATIENCE_MS} ms`);
}

async function main() {
  const redlock = new Redlock();
  const observer = new Observer(process.env.DRIVE_OBSERVER);
  for (let round = 0; round < ROUNDS; round += 1) {
    const token = await acquired(redlock);
    await observer.tell('ENTER', RESOURCE, CLIENT, token);
    await sleep(HOLD_MS);
    await observer.tell('LEAVE', RESOURCE, CLIENT);
    await redlock.release(token);
  }
  redlock.close();
  observer.close();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
