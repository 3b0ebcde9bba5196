#!/bin/sh
# Takes a small real profile and shows it; at a terminal, in the browser. Usage: tools/demo.sh KILN EXAMPLE
set -eu
kiln=$1 example=$2 profile=build/example.pb.gz

echo "Profiling $example ..."
"$example" "$profile"
echo "\$ $kiln -top $profile"
"$kiln" -top "$profile"
cat <<END

Now try:
  $kiln -http=localhost:8080 $profile           all of it in a browser
  $kiln -list=collatz $profile                  the lines of it
  $kiln $profile                                one question after the other: top, peek, help
END
if [ -t 1 ]; then
	echo
	echo "The page of this profile, until you type Ctrl-C:"
	exec "$kiln" -http=localhost: "$profile"
fi
