#!/bin/sh
# Prints the agent's settings for its manual page, from the table that the agent reads them by.
sed -n 's/^SETTING_\(TEXT\|FILE\)([a-z_]*, "\(KILN_[A-Z_]*\)", "\(.*\)")$/\2|\3|/p
	s/^SETTING_NUMBER([a-z_]*, "\(KILN_[A-Z_]*\)", \([0-9]*\), "\(.*\)")$/\1|\3|\2/p' \
	"$(dirname "$0")/../src/agent/settings.def" |
	sed 's/[_*\\]/\\&/g' |
	awk -F'|' '{ printf "\n*%s*\n\t%s%s.%s\n", $1, toupper(substr($2, 1, 1)), substr($2, 2),
		($3 == "" || $3 == "0") ? "" : " Default: " $3 "." }'
