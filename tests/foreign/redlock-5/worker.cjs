"use strict";

const Redis = require("ioredis");
const Redlock = require("redlock").default;
const { play } = require("../node/play.cjs");

play(async (ports) => {
  const locks = new Redlock(
    ports.map((port) => new Redis(port, "127.0.0.1")),
    { retryCount: 0 },
  );
  return {
    acquire: (resource, ttlMs) => locks.acquire([resource], ttlMs),
    validityMs: (lease) => lease.expiration - Date.now(),
    extend: (lease, ttlMs) => lease.extend(ttlMs),
    release: (lease) => lease.release(),
    quit: () => locks.quit(),
  };
});
