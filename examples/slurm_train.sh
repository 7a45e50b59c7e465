#!/bin/bash
# Train on one or more SLURM nodes with torchrun. Submit it from the folder that holds the run:
#
#     sbatch --nodes=1 --gpus-per-node=8 examples/slurm_train.sh shear-flow-7m data.path=datasets/shear_flow
#
# It is safe to queue again: --resume goes on from the newest complete checkpoint.
#SBATCH --job-name=overtone
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue

set -euo pipefail

head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}

srun torchrun \
    --nnodes="$SLURM_NNODES" \
    --nproc-per-node="${SLURM_GPUS_ON_NODE:-1}" \
    --rdzv-backend=c10d --rdzv-endpoint="$head_node:29500" --rdzv-id="$SLURM_JOB_ID" \
    --max-restarts=3 \
    -m overtone train "$@" parallel.strategy=fsdp train.precision=bf16 --resume
