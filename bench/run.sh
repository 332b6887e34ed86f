#!/usr/bin/env bash
# Measures everything of docs/benchmarks.md and rewrites its tables and plots.
#
#   bench/run.sh DATA [PEERS.jsonl ...]
#
# DATA holds the folders go-stdlib, debian and genes; dataset.go says what is in
# each. With PEERS=1 the scripts in bench/peers measure other programs in the same
# run, graph by graph in turns with ours, into docs/benchmarks-peers.jsonl; without,
# the files of peers named are those that they wrote on the same machine before.
# Wants a quiet machine, 2 GB of temporary space and a quarter of an hour, half an
# hour with peers; ROTATIONS (default 5) is how often every setting has its turn.
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

# Built once, for all runs; the build records the commit that the results are of.
go build -buildvcs=auto -o "$scratch/bench" .
bench=$scratch/bench
results=$scratch/results.jsonl
rotations=${ROTATIONS:-5}

for graph in go-stdlib debian genes; do
	"$bench" graph -data "$data" -graph "$graph" -grid -rotations "$rotations" -json >>"$results"
	if [ "${PEERS:-}" = 1 ]; then
		GRAPHS=$graph peers/run.sh "$data" "$scratch/peers.jsonl"
	fi
done
"$bench" growth -data "$data" -rotations "$rotations" -json >>"$results"

# Only a complete run replaces the results of the one before.
cp "$results" ../docs/benchmarks-data.jsonl
if [ "${PEERS:-}" = 1 ]; then
	cp "$scratch/peers.jsonl" ../docs/benchmarks-peers.jsonl
	peers+=(-peers ../docs/benchmarks-peers.jsonl)
fi
mkdir -p ../docs/img
"$bench" report -in ../docs/benchmarks-data.jsonl "${peers[@]}" -doc ../docs/benchmarks.md -img ../docs/img
