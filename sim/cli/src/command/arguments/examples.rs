//! Texts below the help of each command: exit codes and examples.

pub(super) const AFTER_HELP: &str = "\
Examples:
  redlock-sim                                    run every scenario
  redlock-sim run node-clock-jump                run one scenario, with all of its cases
  redlock-sim replay node-clock-jump --seed 0    explain one run

Exit codes:
  0 every expectation met, 1 an expectation failed,
  2 wrong usage, invalid file or unwritable reports,
  3 inconclusive, 4 nothing selected, 5 nondeterminism, 70 internal error";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  redlock-sim run tag:counterexample --seeds 0..10
  redlock-sim run pause-in-flight --engine turmoil -v
  redlock-sim run node-clock-jump --set fault.jump.clock-jump.by=90ms --out /tmp/jump
  redlock-sim run ./my-scenarios/ -q && echo as expected";

pub(super) const REPLAY_EXAMPLES: &str = "\
Examples:
  redlock-sim replay node-clock-jump --seed 0
  redlock-sim replay pause-sweep::this-client-stopped-before-deliver --seed 7 -v";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  redlock-sim check reports/node-clock-jump/base.0.jsonl.gz";

pub(super) const EXPLORE_EXAMPLES: &str = "\
Examples:
  redlock-sim explore --for 60s
  redlock-sim explore --subject redlock-no-step-3 --plans 10000
  redlock-sim explore --break clock --break memory --seed 7";

pub(super) const MERGE_EXAMPLES: &str = "\
Examples:
  redlock-sim run --shard 1/2 --out parts
  redlock-sim run --shard 2/2 --out parts
  redlock-sim merge parts
  SHARDS=64 redlock-sim run --shard-from-env --out shared/; redlock-sim merge shared/

Exit codes:
  as those of the command that wrote the shards; 3 if a shard is missing, unfinished or unreadable";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  redlock-sim list
  redlock-sim list --format json | jq -r '.[].cases[].name'";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  redlock-sim show node-clock-jump
  redlock-sim show node-clock-jump > node-clock-jump.toml    a copy, to be changed";

pub(super) const GATE_EXAMPLES: &str = "\
Exit codes:
  0  nothing but known departures
  1  a new departure, another verdict or blame, or a case that was not played
  2  wrong usage, or a file that cannot be read or written
  4  the results have no case

Examples:
  redlock-sim gate --baseline known.toml --bless --reason 'no fencing yet'
  redlock-sim gate --baseline known.toml --format github --junit junit.xml";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  redlock-sim serve --nodes 3 --for 60s
  redlock-sim serve ./three-clocks-jump.toml --profile valkey-9";

pub(super) const DRIVE_EXAMPLES: &str = "\
The command of a worker may contain {client}, {nodes} (HOST:PORT, comma-separated), {observer},
{resource}, {ttl-ms}, {seed} and {scenario}. Its environment has the same values as DRIVE_CLIENT,
DRIVE_NODES, DRIVE_OBSERVER, DRIVE_RESOURCE, DRIVE_TTL_MS, DRIVE_SEED and DRIVE_SCENARIO.

Examples:
  redlock-sim drive ./scenarios/ --worker 'python3 worker.py {client}'
  redlock-sim drive ./pause.toml --worker './worker {client} {nodes}' --seeds 0..20 --jobs 4";

pub(super) const INIT_EXAMPLES: &str = "\
Examples:
  redlock-sim init --client python
  redlock-sim init --client rust --dir ../my-repository";

pub(super) const MASTER_EXAMPLES: &str = "\
Examples:
  redlock-sim master --port 7000
  redlock-sim master --profile valkey-9 --port 7000 --requirepass secret";
