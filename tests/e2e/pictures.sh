#!/bin/sh
# Pictures: Graphviz that works, is missing, fails or hangs; viewers, and the files they are shown.
: "${KILN:?}" "${DATA:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$DATA" || exit 1
unset BROWSER DISPLAY
mkdir "$tmp/bin" "$tmp/tmp" "$tmp/hang" "$tmp/fail" "$tmp/dir"

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
# program DIR NAME LINE...: a program for $PATH.
program() {
	path=$1/$2
	shift 2
	{ echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$path"
	chmod +x "$path"
}
# Shows a file: says what it was given, keeps a copy.
program "$tmp/bin" browser 'echo "$@" >"'"$tmp"'/shown"' 'for file; do :; done' 'cp "$file" "'"$tmp"'/copy"'
program "$tmp/bin" kcachegrind 'exit 3'
program "$tmp/hang" dot 'sleep 100'
program "$tmp/fail" dot 'echo broken >&2' 'exit 7'

starts_with() { # FORMAT BYTES: within the first few
	"$KILN" "-$1" worked_a.pb >"$tmp/picture" && head -c 8 "$tmp/picture" | grep -aqF -- "$2"
}
well_formed() { "$KILN" "$@" >"$tmp/p.svg" && xmllint --noout --nonet "$tmp/p.svg"; }
is_json() { "$KILN" -speedscope "$@" | perl -MJSON::PP -0777 -ne 'decode_json($_)->{profiles}[0]{samples} or die'; }
missing() {
	PATH="$tmp/bin" "$KILN" -svg worked_a.pb 2>"$tmp/err"
	[ $? = 2 ] && cat "$tmp/err" && sed -n 1p "$tmp/err" | grep -qxF 'pprof: failed to execute dot. Is Graphviz installed? Error: exec: "dot": executable file not found in $PATH' &&
		grep -q 'apt-get install graphviz' "$tmp/err"
}
hangs() {
	PATH="$tmp/hang:$PATH" "$KILN" -png -dot_timeout=1 -output="$tmp/kept" worked_a.pb 2>"$tmp/err"
	[ $? = 2 ] && cat "$tmp/err" && grep -q 'within 1 seconds.*-nodecount=40.*-dot_timeout' "$tmp/err"
}
fails() {
	echo old >"$tmp/kept"
	PATH="$tmp/fail:$PATH" "$KILN" -png -output="$tmp/kept" worked_a.pb 2>"$tmp/err"
	[ $? = 2 ] && cat "$tmp/err" && grep -qx broken "$tmp/err" && grep -q 'Error: exit status 7$' "$tmp/err" &&
		grep -qx old "$tmp/kept"
}
web() {
	PATH="$tmp/bin:$PATH" TMPDIR="$tmp/tmp" BROWSER="browser --new window" "$KILN" -web worked_a.pb &&
		grep -qx -- "--new window $tmp/tmp/pprof001.svg" "$tmp/shown" &&
		grep -q '<g id="viewport"' "$tmp/copy" && [ -z "$(ls "$tmp/tmp")" ]
}
next_browser() {
	mv "$tmp/bin/browser" "$tmp/bin/chrome"
	PATH="$tmp/bin:$PATH" TMPDIR="$tmp/tmp" BROWSER=no-such-browser "$KILN" -web worked_a.pb &&
		grep -qx "$tmp/tmp/pprof001.svg" "$tmp/shown"
}
to_file_instead() {
	rm -f "$tmp/shown"
	PATH="$tmp/bin:$PATH" BROWSER=browser "$KILN" -web -output="$tmp/w.svg" worked_a.pb &&
		[ ! -e "$tmp/shown" ] && grep -q '<g id="viewport"' "$tmp/w.svg"
}
viewer_fails() {
	PATH="$tmp/bin" TMPDIR="$tmp/tmp" "$KILN" -kcachegrind worked_a.pb 2>"$tmp/err"
	[ $? = 2 ] && grep -qx 'pprof: exit status 3' "$tmp/err" && [ -z "$(ls "$tmp/tmp")" ]
}
viewer_missing() {
	PATH=/nonexistent TMPDIR="$tmp/tmp" "$KILN" -kcachegrind worked_a.pb 2>"$tmp/err"
	[ $? = 2 ] && grep -qxF 'pprof: exec: "kcachegrind": executable file not found in $PATH' "$tmp/err" &&
		[ -z "$(ls "$tmp/tmp")" ]
}
terminal() {
	(cd "$tmp/dir" && script -qec "$KILN -png $DATA/worked_a.pb; $KILN -flamegraph $DATA/worked_a.pb" /dev/null </dev/null) >"$tmp/screen"
	grep -q 'Generating report in profile001.png' "$tmp/screen" && [ -s "$tmp/dir/profile001.png" ] &&
		grep -q 'Generating report in profile001.svg' "$tmp/screen" && [ -s "$tmp/dir/profile001.svg" ]
}

check "svg" starts_with svg '<?xml'
check "pdf" starts_with pdf '%PDF-'
check "png" starts_with png PNG
check "gif" starts_with gif GIF8
check "ps" starts_with ps '%!PS-'
check "svg is XML" well_formed -svg worked_a.pb
check "svg is XML whatever the names" well_formed -svg hostile.pb
check "flame graphs are XML whatever the names" well_formed -flamegraph hostile.pb
check "and whatever their length" well_formed -flamegraph long_name.pb
check "speedscope's stacks are JSON whatever the names" is_json hostile.pb
check "no dot: says how to get it" missing
check "a dot that fails: its own words, and the old file stays" fails
check "a dot that hangs: says how to draw less" hangs
check "web: the browser is given a file, which is gone afterwards" web
check "web: browsers that are not there are passed over" next_browser
check "web: with -output no browser is started" to_file_instead
check "a viewer that fails" viewer_fails
check "a viewer that is not there" viewer_missing
check "on a terminal pictures go to files" terminal
echo "1..$n"
