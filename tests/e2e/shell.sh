#!/bin/sh
# The shell with a script as its input; terminal.py has the shell at a terminal.
: "${KILN:?}" "${DATA:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$DATA" || exit 1
export TZ=UTC

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
# shell LINES [PROFILE]: runs them; stdout in $tmp/out, stderr without the greeting in $tmp/err.
shell() {
	printf "$1" | "$KILN" "${2:-worked_a.pb}" >"$tmp/out" 2>"$tmp/all"
	status=$?
	sed '1,/^Entering interactive mode/d' "$tmp/all" >"$tmp/err"
	return $status
}
says() { shell "$1" && printf "$2" | diff - "$tmp/err"; }
# same LINES FLAGS...: the last report is the one that the flags ask for.
same() {
	lines=$1
	shift
	shell "$lines" && "$KILN" -compact_labels "$@" worked_a.pb | diff - "$tmp/out"
}
no_prompt() { shell 'top\n' && ! grep -q '(pprof)' "$tmp/out" "$tmp/all"; }
scripts_have_pipes() { shell 'top 2 >| wc -l\ntraces >|head -n 3\n' && [ "$(head -n 1 "$tmp/out")" -gt 3 ] && [ "$(wc -l <"$tmp/out")" = 4 ]; }
no_bar_is_a_pipe() { shell 'top 2 | cat\n' && grep -q '^   focus=||cat$' "$tmp/out"; }
long_line() {
	{ head -c 3000000 /dev/zero | tr '\0' x; printf '\ncum=true\n'; head -c 900000 /dev/zero | tr '\0' ' '; echo top; } |
		"$KILN" worked_a.pb >"$tmp/out" 2>"$tmp/err"
	[ $? = 0 ] && grep -q 'a line is longer than 1048576 bytes' "$tmp/err" && grep -q 'flat%' "$tmp/out"
}
to_file() { shell "top 2 > $tmp/f\n" && grep -q "Generating report in $tmp/f" "$tmp/err" && grep -q 'flat%' "$tmp/f"; }
quits() { shell 'q\ntop\n' && [ ! -s "$tmp/out" ]; }
no_end_of_line() { shell 'top 2' && grep -q 'flat%' "$tmp/out"; }
goes_on() { shell 'nosuch\nfocus=(\ntop\nfocus=\ntop\n' && grep -q unrecognized "$tmp/err" && grep -q 'missing closing' "$tmp/err" && grep -q 'flat%' "$tmp/out"; }
settings_stay() {
	shell 'top 1\ntop 2\nnodecount=1\ntop\n' && [ "$(grep -c '^ .*ms .*%' "$tmp/out")" = 4 ]
}
# kept FILTER: what one report leaves for the next does not change it, whichever was first, before
# the filter or after it, or without any before it, by functions or by lines.
kept() {
	for profile in worked_a recursion inlines heap; do
		for reports in 'top list=. peek=. tree tags' 'list=. peek=[aeiou] tree top list=[aeiou]' 'dot peek=. peek=[aeiou] peek=b tree'; do
			lines='nodecount=200\n'
			[ "${reports%% *}" = dot ] || lines="$lines"'granularity=lines\ntop\ngranularity=functions\ntop\ngranularity=lines\ntop\n'
			lines="$lines$1\\n"
			rm -f "$tmp"/kept.*
			for by in lines functions lines; do
				lines="${lines}granularity=$by\\n"
				for r in $reports; do
					lines="$lines$(echo "$r" | tr = ' ') > $tmp/kept.$by.$r\\n"
				done
			done
			shell "$lines" $profile.pb || return 1
			for by in lines functions; do
				for r in $reports; do
					"$KILN" -compact_labels -nodecount=200 "-$1" -$by "-$r" $profile.pb >"$tmp/want"
					[ -e "$tmp/kept.$by.$r" ] || : >"$tmp/kept.$by.$r" # an error writes none
					diff "$tmp/want" "$tmp/kept.$by.$r" || return 1
				done
			done
		done
	done
}
full_disk() { echo traces | "$KILN" worked_a.pb 2>"$tmp/err" >/dev/full; [ $? = 0 ] && grep -q 'No space left' "$tmp/err"; }

check "there is no prompt without a terminal" no_prompt
check "a report is the command line's" same 'tree\n' -tree
check "settings are options" same 'focus=rec\nsort=cum\nnodecount=3\ntop\n' -top -cum -nodecount=3 -focus=rec
check "words are options" same 'top3 rec -c --cum\n' -top -cum -nodecount=3 -focus=rec -ignore=c
check "a comment is cut off" same 'focus=rec //: the one\ntop 10\n' -top -nodecount=10 -focus=rec
check "a colon clears filters" same 'focus=rec\nhide=b\n:\ntop 10\n' -top -nodecount=10
check "a sample type is a command" same 'samples\ntop 10\n' -top -nodecount=10 -sample_index=samples
check "mean_ and total_" same 'mean_cpu\ntotal_samples\ntop 10\n' -top -nodecount=10 -sample_index=samples
for filter in focus=. focus=e ignore=b hide=e show=a show_from=e prune_from=odd tagfocus=x tagignore=x; do
	check "reports after $filter are those without the ones before" kept $filter
done
check "settings last, words do not" settings_stay
check "unknown commands are told" says 'nosuch 5\nTOP\n12\n' 'unrecognized command: "nosuch"\nunrecognized command: "TOP"\nunrecognized command: "12"\n'
check "settings without = are told" says 'focus main\nfocus\nsort\nlines 5\n' 'did you mean: focus=main\nplease specify a value, e.g. focus=<val>\nplease specify a value, e.g. sort=<val>\ndid you mean: lines=5\n'
check "bad values are told" says 'trim=x\nsort=x\ncum\nsample_index=x\n' 'illegal value "x" for bool variable\ninvalid "sort" value "x"\nunknown config field "cum"\nsample_index "x" must be one of: [samples cpu]\n'
check "missing words are told" says 'peek\ntop >\n' 'command peek requires an argument\nunexpected end of line after >\n'
check "the shell goes on after errors" goes_on
check "the last line needs no end" no_end_of_line
check "quit ends it" quits
check "a report goes to a file" to_file
check "a full disk is told" full_disk
check "a script's bar is no pipe, as in pprof" no_bar_is_a_pipe
check "but >| is" scripts_have_pipes
check "a line of any length" long_line
echo "1..$n"
