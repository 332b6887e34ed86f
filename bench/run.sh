#!/usr/bin/env bash
# Measures everything of docs/benchmarks.md and rewrites its tables and plots.
#
#   bench/run.sh DATA [PEERS.jsonl ...]
#
# DATA holds the folders go-stdlib, debian and genes; dataset.go says what is in
# each. The files of peers are those that the scripts in bench/peers wrote on the
# same machine. Wants a quiet machine, 2 GB of temporary space and a quarter of an
# hour; ROTATIONS (default 5) is how often every setting has its turn.
set -euo pipefail

if [ $# -lt 1 ]; then
	echo "usage: bench/run.sh DATA [PEERS.jsonl ...]" >&2
	exit 1
fi
data=$(realpath "$1")
shift
peers=()
for file in "$@"; do
	peers+=(-peers "$(realpath "$file")")
done

cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Built, not run, so that the results name the commit they are of.
go build -buildvcs=auto -o "$scratch/bench" .
bench=$scratch/bench
results=$scratch/results.jsonl
rotations=${ROTATIONS:-5}

for graph in go-stdlib debian genes; do
	"$bench" graph -data "$data" -graph "$graph" -grid -rotations "$rotations" -json >>"$results"
done
"$bench" growth -data "$data" -rotations "$rotations" -json >>"$results"

# Only a complete run replaces the results of the one before.
cp "$results" ../docs/benchmarks-data.jsonl
mkdir -p ../docs/img
"$bench" report -in ../docs/benchmarks-data.jsonl "${peers[@]}" -doc ../docs/benchmarks.md -img ../docs/img
