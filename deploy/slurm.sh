#!/usr/bin/env bash
# A campaign as a Slurm array: 64 shards on one core each, in a directory that all nodes share.
#
#   jobid=$(sbatch --parsable slurm.sh)
#   sbatch --dependency="afterany:$jobid" --wrap "redlock-sim merge campaign"
#SBATCH --job-name=campaign
#SBATCH --array=1-64
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#SBATCH --time=12:00:00
set -euo pipefail
RAYON_NUM_THREADS=1 exec "${REDLOCK_SIM:-redlock-sim}" run --seeds 0..100000 --shard-from-env --out campaign
