"use strict";

const { createClient } = require("redis");
const { NodeRedisAdapter, createRedlock } = require("redlock-universal");
const { play } = require("../node/play.cjs");

play(async (ports) => {
  const clients = ports.map((port) => createClient({ url: `redis://127.0.0.1:${port}` }));
  await Promise.all(clients.map((client) => client.connect()));
  const adapters = clients.map((client) => new NodeRedisAdapter(client));
  const locks = new Map();
  const lock = (key, ttl) => {
    if (!locks.has(key)) locks.set(key, createRedlock({ adapters, key, ttl, retryAttempts: 0 }));
    return locks.get(key);
  };
  return {
    acquire: (resource, ttlMs) => lock(resource, ttlMs).acquire(),
    // The handle says when it was granted and for how long it was asked.
    validityMs: (lease) => lease.acquiredAt + lease.ttl - Date.now(),
    async extend(lease, ttlMs) {
      if (!(await lock(lease.key).extend(lease, ttlMs))) throw new Error("not extended");
      return lease;
    },
    release: (lease) => lock(lease.key).release(lease),
    quit: () => Promise.all(clients.map((client) => client.close())),
  };
});
