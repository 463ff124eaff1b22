import asyncio

from aioredlock import Aioredlock, LockError

from play import play

LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


class Library:
    def __init__(self, ports):
        LOOP.run_until_complete(self.connect(ports))

    async def connect(self, ports):
        nodes = [("127.0.0.1", port) for port in ports]
        self.locks = Aioredlock(nodes, retry_count=1)

    def acquire(self, resource, ttl_ms):
        try:
            return LOOP.run_until_complete(self.locks.lock(resource, lock_timeout=ttl_ms / 1000))
        except LockError:
            return None

    def validity_ms(self, lease):
        """The lock says `valid` and not for how long."""
        return None

    def extend(self, lease, ttl_ms):
        """Raises unless it extended."""
        LOOP.run_until_complete(self.locks.extend(lease, ttl_ms / 1000))
        return True

    def release(self, lease):
        LOOP.run_until_complete(self.locks.unlock(lease))


play(Library)
