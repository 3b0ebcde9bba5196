#!/bin/sh
# kiln store: check, compact, export, import.
: "${KILN:?}" "${DATA:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# check NAME COMMAND...: the command must succeed.
check() {
	name=$1 n=$((n + 1))
	shift
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/log"
	fi
}
fails() {
	! "$@"
}
says() {
	text=$1
	shift
	"$@" 2>&1 | grep -q "$text"
}

mkdir in
for i in 0 1 2 3; do
	id=dbsvu938di18pqh8frj$(echo $i | tr 0123 0g0g)
	[ $i -lt 2 ] || id=dbsvu938di18pqh8frk$(echo $i | tr 23 0g)
	printf 'main;work %d\nmain 5\n' $((i + 1)) >stacks
	"$KILN" -proto -output "in/$id.pb.gz" stacks 2>/dev/null
	printf '{"file":"%s.pb.gz","service":"shop","type":"cpu","created_ns":"%d000000000","labels":[["pod","a \\"b\\""]]}\n' \
		"$id" $((1700000000 + i)) >>in/index.jsonl
done
check "imports" says "4 profiles imported" "$KILN" store import db in
check "imports nothing twice" says "0 profiles imported" "$KILN" store import db in
check "finds nothing wrong" says "4 profiles and 0 sums read, 0 problems" "$KILN" store check db
check "exports" says "4 profiles exported" "$KILN" store export db out
check "what was exported is what was imported" cmp in/index.jsonl out/index.jsonl
for f in in/*.pb.gz; do
	"$KILN" -raw "$f" >a 2>/dev/null
	"$KILN" -raw "out/${f#in/}" >b 2>/dev/null
	check "${f#in/} is the same" cmp a b
done
check "compacts" "$KILN" store compact db
check "nothing is lost by that" says "4 profiles and 0 sums read, 0 problems" "$KILN" store check db
check "is no store" fails "$KILN" store check nowhere
check "makes none either" test ! -e nowhere
printf '{"file":"../dbsvu938di18pqh8frj0.pb.gz","service":"s","type":"cpu","created_ns":"1","labels":[]}\n' >in/index.jsonl
check "names do not lead out of the folder" says 'index.jsonl:1.*"file"' "$KILN" store import db in
# A few bytes in the middle of the file are not what they were.
size=$(wc -c <db/profiles.db)
i=0
while [ $i -lt "$size" ]; do
	printf 'damage' | dd of=db/profiles.db bs=1 seek=$((i + 8000)) conv=notrunc 2>/dev/null
	i=$((i + 8192))
done
check "damage is found" fails "$KILN" store check db
echo "1..$n"
