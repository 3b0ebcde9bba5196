#!/bin/sh
# Takes a small real profile and shows it. Usage: tools/demo.sh KILN EXAMPLE
set -eu
kiln=$1 example=$2 profile=build/example.pb.gz

echo "Profiling $example ..."
"$example" "$profile"
echo "\$ $kiln -top $profile"
"$kiln" -top -symbolize=none "$profile"
cat <<END

Now try:
  $kiln -peek=fibonacci $profile     who calls it, and what it calls
  $kiln -tags $profile               by label
  $kiln -traces $profile             every stack
END
