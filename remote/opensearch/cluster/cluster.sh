#!/bin/sh
# Runs OpenSearch on loopback for tests. See README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${OPENSEARCH_DIR:-${TMPDIR:-/tmp}/flashdb-opensearch}
heap=${OPENSEARCH_HEAP:-1g}

fetch() {
	mkdir -p "$dir/build"
	cp "$here/pom.xml" "$dir/build"
	mvn -q -B -f "$dir/build/pom.xml" package
	javac -d "$dir/build/classes" -cp "$dir/build/target/node/*" "$here/Node.java"
	cp "$here/log4j2.properties" "$dir/build/classes"
}

# node starts node $1 of $2.
node() {
	if alive "$1"; then
		return
	fi
	mkdir -p "$dir/node$1"
	java -Xms"$heap" -Xmx"$heap" -Dopensearch.set.netty.runtime.available.processors=false \
		-cp "$dir/build/classes:$dir/build/target/node/*" Node "$1" "$2" "$dir/node$1" >>"$dir/node$1/out" 2>&1 &
	echo $! >"$dir/node$1/pid"
}

alive() {
	[ -f "$dir/node$1/pid" ] && kill -0 "$(cat "$dir/node$1/pid")" 2>/dev/null
}

# wait_for waits until there are $1 nodes and every copy of a shard is there.
wait_for() {
	i=0
	while [ $i -lt 120 ]; do
		n=1
		while [ "$n" -le "$1" ]; do
			if curl -sf -m 5 "http://127.0.0.1:920$n/_cluster/health?wait_for_nodes=%3E%3D$1&wait_for_status=green&timeout=4s" >/dev/null 2>&1; then
				return
			fi
			n=$((n + 1))
		done
		sleep 1
		i=$((i + 1))
	done
	echo "the cluster has not come up: see $dir/node*/out" >&2
	exit 1
}

start() {
	[ -d "$dir/build/target/node" ] || fetch
	echo "$1" >"$dir/nodes"
	n=1
	while [ "$n" -le "$1" ]; do
		node "$n" "$1"
		n=$((n + 1))
	done
	wait_for "$1"
}

# urls prints the addresses of all nodes, for OPENSEARCH_URL.
urls() {
	seq -s, -f 'http://127.0.0.1:920%g' 1 "$(cat "$dir/nodes")"
}

stop() {
	for pid in "$dir"/node*/pid; do
		[ -f "$pid" ] || continue
		kill "$(cat "$pid")" 2>/dev/null || true
	done
	for n in 1 2 3; do
		while alive $n; do sleep 1; done
	done
	rm -rf "$dir"/node* "$dir/nodes"
}

# suite runs the conformance suite, and with three nodes kills one under queries.
suite() {
	start "$1"
	trap stop EXIT
	cd "$here/.."
	OPENSEARCH_URL=$(urls) go test -count=1 -run 'TestConformance|TestLimits' .
	if [ "$1" -gt 1 ]; then
		OPENSEARCH_URL=$(urls) OPENSEARCH_CLUSTER="$here/cluster.sh" go test -count=1 -v -run TestNodeKilled .
	fi
}

case "${1:-}" in
fetch) fetch ;;
start) start "${2:-1}" && urls ;;
urls) urls ;;
kill) kill -9 "$(cat "$dir/node$2/pid")" ;;
restart) node "$2" "$(cat "$dir/nodes")" && wait_for "$(cat "$dir/nodes")" ;;
stop) stop ;;
suite) suite "${2:-3}" ;;
*)
	echo "usage: $0 fetch | start [NODES] | urls | kill N | restart N | stop | suite [NODES]" >&2
	exit 2
	;;
esac
