#!/bin/sh
# Takes a small real profile and shows it. Usage: tools/demo.sh KILN EXAMPLE
set -eu
kiln=$1 example=$2 profile=build/example.pb.gz

echo "Profiling $example ..."
"$example" "$profile"
echo "\$ $kiln -top $profile"
"$kiln" -top "$profile"
cat <<END

Now try:
  $kiln -list=collatz $profile                  the lines of it
  $kiln -flamegraph $profile > build/flame.svg  a picture, for a browser
  $kiln $profile                                one question after the other: top, peek, help
END
