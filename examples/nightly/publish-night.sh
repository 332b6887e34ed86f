#!/bin/sh
# Publish what was trained tonight: embeddings, decoder and indexes change together, in one step.
#
#   publish-night.sh DIR FILES [NAME]
#
# DIR is the database, with the collections users and items. FILES is a folder with users.npy,
# users.tsv, items.npy, items.tsv (row, key), decoder.safetensors and, if there are any, links that
# the model was not trained on, newest.tsv. Without these, links are used that were recorded since
# the time in the file cut, such as 2026-03-01T02:00:00Z: that at which the data was cut that the
# model was trained on. NAME is that of the release, by default the date.
#
# A run that failed or was killed is continued by the next one of that name.
#
# Exit code: 0 published, 1 an error, 2 refused as it is worse than the live release, 3 another
# process has DIR open and serves no control socket.
set -eu
flashdb=${FLASHDB:-flashdb}
dir=$1
files=$2
name=${3:-night-$(date +%F)}

# The releases, a line for each: name, state.
list() {
	releases=$("$flashdb" release list "$dir" --json)
	echo "$releases" | sed 's/^{"release":"\([^"]*\)".*"state":"\([a-z]*\)".*/\1 \2/'
}

states=$(list)
state=$(echo "$states" | sed -n "s/^$name //p")
if [ "$state" = live ]; then
	echo "$name is live already"
	exit 0
fi
# Earlier nights that were refused, or gone back from, take as much space as this one.
echo "$states" | while read -r other is; do
	case $other in
	"$name") ;;
	night-*) if [ "$is" = staged ]; then "$flashdb" release drop "$dir" "$other" </dev/null; fi ;;
	esac
done
if [ -z "$state" ]; then
	if [ -f "$files/cut" ]; then
		"$flashdb" release stage "$dir" "$name" users items --cut "$(cat "$files/cut")"
	else
		"$flashdb" release stage "$dir" "$name" users items
	fi
fi
"$flashdb" release add "$dir" "$name" users "$files/users.npy" --keys "$files/users.tsv"
"$flashdb" release add "$dir" "$name" items "$files/items.npy" --keys "$files/items.tsv"
"$flashdb" release decoder "$dir" "$name" items buys "$files/${DECODER:-decoder.safetensors}"
"$flashdb" release build "$dir" "$name"
if [ -f "$files/newest.tsv" ]; then
	"$flashdb" release publish "$dir" "$name" --edges "$files/newest.tsv" --collection items --source-collection users
else
	"$flashdb" release publish "$dir" "$name"
fi
