<?php
// A lock of our own writing on php-redis that decides as the widespread PHP class does: one node
// after the other, the wall clock, a drift of 1 % and 2 ms, one token for three tries, and half of
// the nodes and one in floats for a quorum, so that of five nodes it wants four.

const WARM_TTL_MS = 10000;

class Lock
{
    const TRIES = 3;
    const RETRY_DELAY_MS = 200;
    const RELEASE = <<<'LUA'
        if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end
        return 0
        LUA;

    private $nodes = [];

    function __construct(array $ports)
    {
        foreach ($ports as $port) {
            $node = new Redis();
            $node->connect('127.0.0.1', (int) $port, 1.0);
            $this->nodes[] = $node;
        }
    }

    function acquire(string $resource, int $ttl_ms)
    {
        $count = count($this->nodes);
        $token = uniqid();
        for ($try = 0; $try < self::TRIES; $try++) {
            $began_ms = microtime(true) * 1000;
            $granted = 0;
            foreach ($this->nodes as $node) {
                $granted += $node->set($resource, $token, ['NX', 'PX' => $ttl_ms]) ? 1 : 0;
            }
            $elapsed_ms = microtime(true) * 1000 - $began_ms;
            $validity_ms = $ttl_ms - $elapsed_ms - ($ttl_ms * 0.01 + 2);
            $lease = ['resource' => $resource, 'token' => $token, 'validity_ms' => $validity_ms];
            if ($granted >= min($count, $count / 2 + 1) && $validity_ms > 0) {
                return $lease;
            }
            $this->release($lease);
            usleep(mt_rand((int) (self::RETRY_DELAY_MS / 2), self::RETRY_DELAY_MS) * 1000);
        }
        return null;
    }

    function release(array $lease)
    {
        foreach ($this->nodes as $node) {
            $node->eval(self::RELEASE, [$lease['resource'], $lease['token']], 1);
        }
    }
}

function say(string $step, array $what = [])
{
    echo json_encode(['step' => $step] + $what), "\n";
}

// Waits until the runner says that it goes on.
function told()
{
    if (fgets(STDIN) === false) {
        exit(1);
    }
}

function tell(string $verb, string $who)
{
    static $socket = null;
    $socket = $socket ?? fsockopen('127.0.0.1', (int) getenv('FOREIGN_OBSERVER'));
    fwrite($socket, "$verb " . getenv('FOREIGN_RESOURCE') . " $who\r\n");
    $answer = fgets($socket);
    if (strncmp($answer, '+OK', 3) !== 0) {
        throw new RuntimeException("the observer answered $answer");
    }
}

function cycle(array $ports, string $resource, int $ttl_ms)
{
    [$first, $second] = [new Lock($ports), new Lock($ports)];
    if (!($lease = $first->acquire($resource, $ttl_ms))) {
        return say('not acquired');
    }
    say('acquired', ['validity_ms' => (int) $lease['validity_ms']]);
    tell('ENTER', 'first');
    // Again, since the keys of the first must outlive the release after a refusal.
    foreach (['refused', 'refused again'] as $step) {
        say($second->acquire($resource, $ttl_ms) ? 'granted twice' : $step);
    }
    tell('LEAVE', 'first');
    $first->release($lease);
    say('released');
    if (!($lease = $second->acquire($resource, $ttl_ms))) {
        return say('not acquired by the second');
    }
    tell('ENTER', 'second');
    say('acquired by the second');
    tell('LEAVE', 'second');
    $second->release($lease);
}

function late(array $ports, string $resource, int $ttl_ms)
{
    $lock = new Lock($ports);
    $lock->release($lock->acquire('warm', WARM_TTL_MS));
    say('ready');
    told();
    $began_ns = hrtime(true);
    $lease = $lock->acquire($resource, $ttl_ms);
    $after_ms = intdiv(hrtime(true) - $began_ns, 1000000);
    if (!$lease) {
        return say('late', ['outcome' => 'refuses', 'after_ms' => $after_ms]);
    }
    $validity_ms = (int) $lease['validity_ms'];
    say('late', ['outcome' => 'granted', 'after_ms' => $after_ms, 'validity_ms' => $validity_ms]);
    $who = getenv('FOREIGN_WHO');
    tell('ENTER', $who);
    say('entered');
    told();
    tell('LEAVE', $who);
    $lock->release($lease);
    say('left');
}

$play = ['cycle' => 'cycle', 'late' => 'late'][getenv('FOREIGN_PART')];
$play(explode(',', getenv('FOREIGN_NODES')), getenv('FOREIGN_RESOURCE'), (int) getenv('FOREIGN_TTL_MS'));
