#!/usr/bin/env bash
# Runs every peer that is installed on every graph, one after the other, under a quarter
# of an hour on 2 cores.
#
#   bench/peers/run.sh DATA OUT.jsonl
#
# Appends to OUT.jsonl, and the speed of FAISS's scan to OUT.scan.jsonl. DATA holds the
# folders go-stdlib, debian and genes. PYTHON is the interpreter (default python3); NODE_PATH
# where npm's modules are, unless beside this file. GRAPHS chooses other graphs. README.md
# says what to install. Wants a quiet machine.
set -euo pipefail

if [ $# -ne 2 ]; then
	echo "usage: bench/peers/run.sh DATA OUT.jsonl" >&2
	exit 1
fi
data=$(realpath "$1")
out=$(realpath "$2")
export PYTHON=${PYTHON:-python3}
read -ra graphs <<<"${GRAPHS:-go-stdlib debian genes}"
cd "$(dirname "$0")"

lacks() {
	echo "left out: no $1" >&2
	return 1
}
has() { "$PYTHON" -c "import $1" 2>/dev/null || lacks "$1 in $PYTHON"; }
has_lancedb() { node -e 'require("@lancedb/lancedb")' 2>/dev/null || lacks "@lancedb/lancedb for node"; }

# Fewer sources where a query takes long.
few() { [ "$1" = genes ] && echo 10 || echo 20; }
half() { [ "$1" = genes ] && echo 50 || echo 100; }

if ! has numpy || ! has zstandard || ! has torch; then
	exit 1
fi
for graph in "${graphs[@]}"; do
	args=(--data "$data" --graph "$graph" --out "$out")
	for threads in 1 2; do
		"$PYTHON" torch_exhaustive.py "${args[@]}" --threads "$threads" --sources "$(few "$graph")"
	done
	if has faiss; then
		"$PYTHON" faiss_ivfpq.py "${args[@]}"
	fi
	if has scann; then
		"$PYTHON" scann_ah.py "${args[@]}"
	fi
	if has hnswlib; then
		# Inner product as such finds two fifths on genes, after a minute of building.
		"$PYTHON" hnswlib_ip.py "${args[@]}" $([ "$graph" = genes ] && echo --space l2)
	fi
	if has_lancedb; then
		node lancedb_ivfpq.mjs "${args[@]}" --sources "$(half "$graph")" 2> >(grep -v WARN >&2)
	fi
done
