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
check "imports" says "4 profiles imported, 0 sums" "$KILN" store import db in
check "imports nothing twice" says "0 profiles imported" "$KILN" store import db in
check "finds nothing wrong" says "4 profiles and 0 sums read, 0 problems" "$KILN" store check db
check "exports" says "4 profiles exported, 0 sums" "$KILN" store export db out
check "what was exported is what was imported" cmp in/index.jsonl out/index.jsonl
for f in in/*.pb.gz; do
	"$KILN" -raw "$f" >a 2>/dev/null
	"$KILN" -raw "out/${f#in/}" >b 2>/dev/null
	check "${f#in/} is the same" cmp a b
done
# Sums of hours and days, one of them in place of profiles, and a rule; then all of it again from what was exported.
mkdir more
cp in/dbsvu938di18pqh8frj0.pb.gz more/sum-1.pb.gz
cp in/dbsvu938di18pqh8frk0.pb.gz more/sum-2.pb.gz
cp in/dbsvu938di18pqh8frkg.pb.gz more/dbsvu938di18pqh8frkg.pb.gz
sum() {
	printf '{"file":"sum-%d.pb.gz","service":"shop","type":"cpu","labels":[["pod","b"]],"sum":"%s","start_ns":"%d000000000","first_ns":"%d000000000","last_ns":"%d000000000","duration_ns":"20","until_ns":"1700006400000000000","profiles":"7","differences":false,"thinned":true}\n' "$@"
}
{
	printf '{"file":"dbsvu938di18pqh8frkg.pb.gz","service":"shop","type":"cpu","created_ns":"1700092800000000000","labels":[["pod","b"]],"process":"-5"}\n'
	sum 1 hour 1699999200 1699999201 1699999209
	sum 2 day 1699920000 1699920001 1699920009
	printf '{"rule":"shop","raw_ns":"3600000000000","minute_ns":"-1","hour_ns":"-1","day_ns":"0"}\n'
	printf '{"annotation":"deployed \\"1.2\\"","time_ns":"1700000000000000000","end_ns":"1700000100000000000","service":"shop","tags":"deploy,eu","who":"ci"}\n'
} >more/index.jsonl
check "imports sums and rules" says "1 profiles imported, 2 sums, 1 rules, 1 annotations" "$KILN" store import sums more
check "sums are not imported twice" says "0 profiles imported, 0 sums, 1 rules, 0 annotations" "$KILN" store import sums more
check "sums are checked" says "1 profiles and 2 sums read, 0 problems" "$KILN" store check sums
check "exports sums and rules" says "1 profiles exported, 2 sums, 1 rules, 1 annotations" "$KILN" store export sums again
check "the index says the same" cmp more/index.jsonl again/index.jsonl
for f in more/*.pb.gz; do
	"$KILN" -raw "$f" >a 2>/dev/null
	"$KILN" -raw "again/${f#more/}" >b 2>/dev/null
	check "${f#more/} is the same" cmp a b
done
check "no index of an export that has not ended" test ! -e again/index.jsonl.part
check "a folder without an index" says "index.jsonl: no such file" "$KILN" store import sums nowhere
sed -i 's/sum-2/..\/x/' more/index.jsonl
check "names of sums do not lead out of the folder" says 'index.jsonl:3.*"file"' "$KILN" store import other more
check "helps" says "kiln store export DIR FOLDER" "$KILN" store --help
check "called wrongly" fails "$KILN" store export db
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
