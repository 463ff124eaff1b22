<?php
// A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.
//
// PHP 8.1 alone is enough. To judge your own client, replace the class `Redlock` with calls to it; keep
// `Observer` and `main`.

declare(strict_types=1);

define('CLIENT', getenv('DRIVE_CLIENT'));
define('NODES', explode(',', getenv('DRIVE_NODES')));
define('OBSERVER', getenv('DRIVE_OBSERVER'));
define('RESOURCE', getenv('DRIVE_RESOURCE'));
define('TTL_MS', (int) getenv('DRIVE_TTL_MS'));

const ROUNDS = 2;
// Time in the critical section, a third of the lease.
const HOLD_S = TTL_MS / 1000 / 3;
// Time for the replies of all nodes, much less than the lease.
const REPLIES_S = TTL_MS / 1000 / 10;
// Time for one acquisition with all its attempts.
const PATIENCE_S = 20;

// Deletes the key only if it is ours: after our lease it may be another client's.
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** Seconds on a clock that nobody sets. */
function now(): float
{
    return hrtime(true) / 1e9;
}

/** A request in RESP. */
function encoded(string|int ...$words): string
{
    $parts = array_map(fn ($word) => '$' . strlen((string) $word) . "\r\n$word\r\n", $words);
    return '*' . count($parts) . "\r\n" . implode('', $parts);
}

function fail(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(1);
}

/** A connection to one node, dialled again after each failure. */
final class Node
{
    /** @var resource|null */
    private $stream = null;
    private bool $introduced = false;

    public function __construct(private string $address)
    {
    }

    /** Sends a request; true if it was sent. */
    public function send(string|int ...$words): bool
    {
        $request = encoded(...$words);
        if ($this->stream === null) {
            $stream = @stream_socket_client("tcp://$this->address", $code, $message, REPLIES_S);
            if ($stream === false) {
                return false;
            }
            $this->stream = $stream;
            // The name tells the masters whose connection it is.
            $request = encoded('CLIENT', 'SETNAME', CLIENT) . $request;
            $this->introduced = false;
        }
        if (@fwrite($this->stream, $request) === strlen($request)) {
            return true;
        }
        $this->close();
        return false;
    }

    /** The reply to the request: its first line; null if it does not come by `$until`. */
    public function reply(float $until): ?string
    {
        $this->introduced = $this->introduced || $this->line($until) !== null;
        $reply = $this->introduced ? $this->line($until) : null;
        if ($reply === null) {
            // A reply that still comes would be taken for the next one.
            $this->close();
        }
        return $reply;
    }

    private function line(float $until): ?string
    {
        stream_set_timeout($this->stream, 0, (int) (1e6 * max(0.001, $until - now())));
        $text = fgets($this->stream);
        return $text !== false && str_ends_with($text, "\r\n") ? rtrim($text) : null;
    }

    private function close(): void
    {
        fclose($this->stream);
        $this->stream = null;
    }
}

/** The lock: a majority of the nodes, all asked at once. */
final class Redlock
{
    /** @var Node[] */
    private array $nodes;

    public function __construct()
    {
        $this->nodes = array_map(fn ($address) => new Node($address), NODES);
    }

    /** The replies of all nodes; null for a node that gives none in time. */
    private function ask(string|int ...$words): array
    {
        $until = now() + REPLIES_S;
        $sent = array_filter($this->nodes, fn ($node) => $node->send(...$words));
        return array_map(fn ($node) => $node->reply($until), $sent);
    }

    /** One attempt; its token if the lock is ours. */
    public function acquire(): ?string
    {
        $token = bin2hex(random_bytes(20));
        $began = now();
        $replies = $this->ask('SET', RESOURCE, $token, 'NX', 'PX', TTL_MS);
        $votes = count(array_keys($replies, '+OK', true));
        // The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
        $left = TTL_MS / 1000 * 0.99 - 0.002 - (now() - $began);
        if ($votes > intdiv(count($this->nodes), 2) && $left > 0) {
            return $token;
        }
        $this->release($token);
        return null;
    }

    public function release(string $token): void
    {
        $this->ask('EVAL', RELEASE, 1, RESOURCE, $token);
    }
}

/** Learns when this worker enters and leaves its critical section. */
final class Observer
{
    /** @var resource */
    private $stream;

    public function __construct()
    {
        $stream = @stream_socket_client('tcp://' . OBSERVER, $code, $message, 10);
        $this->stream = $stream ?: fail("the observer cannot be reached: $message");
    }

    public function tell(string ...$words): void
    {
        fwrite($this->stream, encoded(...$words));
        $reply = rtrim((string) fgets($this->stream));
        if ($reply !== '+OK') {
            fail('the observer refuses ' . implode(' ', $words) . ": $reply");
        }
    }
}

/** Attempts until the lock is ours. */
function acquired(Redlock $redlock): string
{
    $until = now() + PATIENCE_S;
    while (now() < $until) {
        $token = $redlock->acquire();
        if ($token !== null) {
            return $token;
        }
        usleep(random_int(10_000, 100_000));
    }
    fail('no lock within ' . PATIENCE_S . ' s');
}

function main(): void
{
    $redlock = new Redlock();
    $observer = new Observer();
    for ($round = 0; $round < ROUNDS; $round++) {
        $token = acquired($redlock);
        $observer->tell('ENTER', RESOURCE, CLIENT, $token);
        usleep((int) (HOLD_S * 1e6));
        $observer->tell('LEAVE', RESOURCE, CLIENT);
        $redlock->release($token);
    }
}

main();
