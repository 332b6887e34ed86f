#!/bin/sh
# Predicts for every node of a collection in 8 processes that read one snapshot. Kills one of them
# with SIGKILL, gives its command again, and compares the joined files with those of a single run.
#
#     ./local.sh papers.flash papers 100 /tmp/batch    # DIR COLLECTION K, and a new directory
#
# PARTS is the number of processes, FLASHDB the command, OPTIONS what else predict is told.
set -eu

dir=$1 collection=$2 k=$3 work=$4
flashdb=${FLASHDB:-flashdb} parts=${PARTS:-8}
mkdir "$work"

# predict takes the place of the shell that runs it, so that $! is its process.
predict() { # ARGUMENT...
	# shellcheck disable=SC2086 # OPTIONS are words
	exec "$flashdb" predict "$work/snap" "$collection" --all -k "$k" ${OPTIONS:-} "$@"
}

part() { # I
	predict --shard "$1/$parts" --out "$work/part-$1.jsonl" >>"$work/part-$1.log" 2>&1
}

# kill_part starts a part in $pid and kills it after its first answers. It fails if the part was
# done before.
kill_part() { # I
	rm -f "$work/part-$1.jsonl"
	part "$1" &
	pid=$!
	while [ ! -e "$work/part-$1.jsonl.state" ] && kill -0 "$pid" 2>/dev/null; do
		sleep 0.01
	done
	kill -KILL "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	[ -e "$work/part-$1.jsonl.state" ]
}

"$flashdb" snapshot "$dir" "$work/snap"

running=
i=1
while [ "$i" -le "$parts" ]; do
	if [ "$i" -ne 2 ]; then
		part "$i" &
		running="$running $!"
	fi
	i=$((i + 1))
done
tries=1
until kill_part 2; do
	tries=$((tries + 1))
	if [ "$tries" -gt 10 ]; then
		echo "part 2 is done before it can be killed: take a larger collection" >&2
		exit 1
	fi
done
echo "killed part 2 when it had answered some sources; giving its command again"
(part 2)
for pid in $running; do
	wait "$pid"
done
grep 'continuing after them' "$work/part-2.log"

i=1
while [ "$i" -le "$parts" ]; do
	cat "$work/part-$i.jsonl"
	i=$((i + 1))
done >"$work/joined.jsonl"

(predict --out "$work/single.jsonl")
cmp "$work/joined.jsonl" "$work/single.jsonl"
echo "the $parts parts, joined, are the bytes of the single run: $(wc -l <"$work/joined.jsonl" | tr -d ' ') sources"
