#!/bin/sh
# kiln diff on profiles of a simulated program, whose samples are drawn by a seeded generator.
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
# simulate FILE SEED SAMPLES PARSE: folded stacks; `parse` costs PARSE beside 10 other functions, 90.
simulate() {
	perl -e '
		my ($seed, $samples, $parse) = @ARGV;
		srand($seed);
		my @cost = ($parse, map { 9 } 1 .. 10);
		my $all = 90 + $parse;
		my %count;
		for (1 .. $samples * $all / 120) {
			my $x = rand($all), my $i = 0;
			$x -= $cost[$i++] while $x >= $cost[$i];
			$count{$i ? "main;work;f$i" : "main;parse"}++;
		}
		print "$_ $count{$_}\n" for sort keys %count' "$2" "$3" "$4" >"$1"
}
# status WANTED ARGUMENT...: kiln diff must end with it.
status() {
	wanted=$1
	shift
	"$KILN" diff "$@" >out 2>err
	got=$?
	cat out err
	[ $got = "$wanted" ]
}
verdict() { # of a function, in out
	grep -q " $1  *$2\$" out || { cat out; return 1; }
}
nothing_changed() { status 0 "$@" --fail-over=0% && ! grep -Eq '(more|less|slower|faster)  ' out; }
found() { status 1 --per-run --fail-over=5% old slow && verdict more parse && grep -q '^parse: +' err; }
found_by_share() { status 1 --fail-over=3% old slow && verdict more parse; }
found_by_runs() { status 0 --per-run short1 short2 short3 short4 -- slow1 slow2 slow3 slow4 && verdict more parse; }
unsure() { status 0 --per-run --fail-over=0% short1 slow1 && verdict 'not enough samples' parse; }
escaped() {
	printf '%s 100\n' 'a|b`<i>@x;_y_*#1' >names
	status 0 --markdown -symbolize=none names names || return 1
	grep -qF '<code>\_y\_\*#1</code>' out || return 1
	status 0 --markdown -symbolize=none -cum names names && grep -qF '<code>a\|b\`&lt;i&gt;@x</code>' out
}
valid_json() {
	printf '%s 100\nq"\\\001\377 100\n' 'a|b`<i>' >names
	status 0 --json -n 0 names names && perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		exit !(@{$d->{functions}} == 2 && $d->{functions}[0]{verdict} eq "same")' out
}
to_file() { status 0 -output=table old same && [ ! -s out ] && grep -q parse table; }
flags_anywhere() { status 0 old -n 1 slow -cum --fdr 0.01 && grep -q 'cumulative' out && grep -q '12 not shown' out; }
many() { # all on one side, more than there are cores
	for i in $(seq 40); do cat old >"many$i"; done
	status 0 many* -- old && grep -q '40 profiles' out
}
warns() { status 0 -focus=f1 -ignore=nosuch old slow && grep -q '^old: Ignore expression matched no samples' err; }
terminal() { script -qec "$KILN diff $tmp/old $tmp/slow" /dev/null </dev/null >screen && grep -q parse screen; }

simulate old 1 12000 30
simulate same 2 12000 30
simulate slow 3 12000 39
for i in 1 2 3 4; do
	simulate short$i 1$i 350 30
	simulate slow$i 2$i 350 39
done
: >nothing

check "two runs of the same program" nothing_changed old same
check "the same by value per run" nothing_changed --per-run old same
check "the same, cumulative" nothing_changed -cum old same
check "the same, several runs" nothing_changed short1 short2 -- short3 short4
check "a function made 30% slower is found" found
check "by its share too" found_by_share
check "one short run does not tell" unsure
check "four short runs do" found_by_runs
check "a limit that is kept" status 0 --fail-over=20% old slow
check "names cannot break a Markdown table" escaped
check "JSON is valid" valid_json
check "the table goes to a file" to_file
check "flags may stand anywhere" flags_anywhere
check "many profiles on a side" many
check "warnings name the profile" warns
check "takes the binaries of both sides" status 0 --old-binary="$KILN" --new-binary "$KILN" old same
check "works at a terminal" terminal
check "no new profile" status 2 old --
check "an empty file" status 2 nothing old
check "a flag that is not there" status 2 --nosuchflag old same
check "a flag without its value" status 2 old same --fdr
check "a report is no flag of it" status 2 -top old same
check "a file that is not there" status 2 old nosuch
check "a limit that is no number" status 2 --fail-over=much old same
check "addresses cannot be compared" status 2 -addresses old same
check "a full disk is an error" sh -c "! $KILN diff old same >/dev/full"
echo "1..$n"
