from redis import Redis

from play import play


class Library:
    """The Lock of redis-py knows one node."""

    def __init__(self, ports):
        self.redis = Redis(host="127.0.0.1", port=ports[0])

    def acquire(self, resource, ttl_ms):
        lock = self.redis.lock(resource, timeout=ttl_ms / 1000, blocking=False)
        return lock if lock.acquire() else None

    def validity_ms(self, lease):
        """`acquire` answers a bool."""
        return None

    def extend(self, lease, ttl_ms):
        return lease.extend(ttl_ms / 1000, replace_ttl=True)

    def release(self, lease):
        lease.release()


play(Library)
