#!/bin/sh
# Fails when a module includes one that tools/layers.txt does not allow it to, or skips a module. The
# agent may include kiln.h, which is everybody's.
cd "$(dirname "$0")/.." || exit 1
grep -Hn '^#include "' src/*/*.[ch] | grep -v '^src/agent/.*"kiln.h"$' | awk -F'[:/"]' '
	FNR == NR { split($0, part, ":"); known[part[1]] = 1
		    n = split(part[2], to, " "); for (i = 1; i <= n; i++) may[part[1], to[i]] = 1; next }
	{ from = $2; file = $2 "/" $3; line = $4; to_module = $6
	  if (!(from in known)) { print "src/" file ": module " from " is not in tools/layers.txt"; bad = 1 }
	  else if (NF < 8) { print "src/" file ":" line ": include it as \"module/file.h\""; bad = 1 }
	  else if (from != to_module && !((from, to_module) in may)) {
		print "src/" file ":" line ": " from " may not include " to_module; bad = 1 } }
	END { exit bad }' tools/layers.txt -
