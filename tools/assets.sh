#!/bin/sh
# Prints C text that makes a table of files: each an array, made of the list of bytes that the
# Makefile writes for it. Files of folders below have the name alone, so no two may have the same.
set -eu
i=0
for file; do
	printf 'static const unsigned char asset_%d[] = {\n#include "%s.inc"\n};\n' "$i" "${file#src/}"
	i=$((i + 1))
done
echo 'const struct asset assets[] = {'
i=0
for file; do
	printf '\t{ "%s", asset_%d, sizeof(asset_%d) },\n' "${file##*/}" "$i" "$i"
	i=$((i + 1))
done
printf '\t{ "", (const unsigned char *)"", 0 },\n};\nconst size_t assets_n = %d;\n' "$i"
