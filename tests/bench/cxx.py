#!/usr/bin/env python3
"""Builds a C++ program with 40 MB and more of debug information, and a CPU profile of it.

  tests/bench/cxx.py DIR        writes DIR/cxx/big, its sources, and DIR/cxx/big.prof

The profile is made up: stacks of random addresses in the program's text, in the format of gperftools.
"""
import concurrent.futures
import os
import random
import re
import struct
import subprocess
import sys

UNITS = 13
FUNCTIONS = 20  # that are instantiated in each unit
ADDRESSES = 1000
SAMPLES = 5000
DEPTH = 12

# Names are short on purpose: pprof's demangler needs minutes for what maps of vectors of strings are
# called, and this is about symbols.
SOURCE = """
#include <algorithm>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <vector>

namespace unit%(unit)d {
template <int N> struct Item {
	long weight[N %% 7 + 1];
	bool operator<(const Item &o) const { return weight[0] < o.weight[0]; }
};

template <int N> __attribute__((noinline)) long run(long n)
{
	std::vector<Item<N>> items;
	for (long i = 0; i < n; i++)
		items.push_back(Item<N>{ { i } });
	std::sort(items.begin(), items.end());
	std::reverse(items.begin(), items.end());
	std::stable_sort(items.begin(), items.end());
	items.erase(std::unique(items.begin(), items.end(), [](auto &a, auto &b) { return !(a < b); }), items.end());
	return std::accumulate(items.begin(), items.end(), 0L, [](long s, auto &i) { return s + i.weight[0]; });
}

%(instances)s
long all(long n)
{
	return %(calls)s + std::regex_match(std::to_string(n), std::regex("[0-9]+"));
}
}
"""


def write_sources(directory):
    for unit in range(UNITS):
        values = {"unit": unit,
                  "instances": "\n".join("template long run<%d>(long);" % i for i in range(FUNCTIONS)),
                  "calls": " + ".join("run<%d>(n)" % i for i in range(FUNCTIONS))}
        with open(os.path.join(directory, "unit%d.cc" % unit), "w") as f:
            f.write(SOURCE % values)
    with open(os.path.join(directory, "main.cc"), "w") as f:
        f.write("".join("namespace unit%d { long all(long); }\n" % u for u in range(UNITS)))
        f.write("int main(int argc, char **) { return int(%s); }\n" % " + ".join("unit%d::all(argc)" % u for u in range(UNITS)))


def build(directory):
    write_sources(directory)
    names = ["main"] + ["unit%d" % u for u in range(UNITS)]

    def compile_one(name):
        subprocess.run(["g++", "-g", "-O1", "-c", name + ".cc", "-o", name + ".o"], cwd=directory, check=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, names))
    subprocess.run(["g++", "-no-pie", "-o", "big"] + [n + ".o" for n in names], cwd=directory, check=True)
    for name in names:
        os.unlink(os.path.join(directory, name + ".o"))


def text_of(program):
    """Address and size of .text."""
    sections = subprocess.run(["readelf", "-WS", program], check=True, capture_output=True, text=True).stdout
    found = re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections)
    return int(found[1], 16), int(found[2], 16)


def executable_segment(program):
    segments = subprocess.run(["readelf", "-Wl", program], check=True, capture_output=True, text=True).stdout
    found = re.search(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+) 0x[0-9a-f]+ R E", segments)
    return tuple(int(found[i], 16) for i in (1, 2, 3))


def write_profile(program, path):
    start, size = text_of(program)
    offset, address, file_size = executable_segment(program)
    rng = random.Random(1)
    places = [rng.randrange(start, start + size) for _ in range(ADDRESSES)]
    with open(path, "wb") as f:
        f.write(struct.pack("<5Q", 0, 3, 0, 10000, 0))
        for _ in range(SAMPLES):
            stack = [rng.choice(places) for _ in range(DEPTH)]
            f.write(struct.pack("<%dQ" % (DEPTH + 2), 1, DEPTH, *stack))
        f.write(struct.pack("<3Q", 0, 1, 0))
        end = (address + file_size + 4095) // 4096 * 4096
        f.write(b"%08x-%08x r-xp %08x 00:00 1 %s\n" % (address, end, offset, program.encode()))


def generate(data):
    """Names of the program and of the profile; made when they are not there."""
    directory = os.path.join(os.path.abspath(data), "cxx")
    program, profile = os.path.join(directory, "big"), os.path.join(directory, "big.prof")
    os.makedirs(directory, exist_ok=True)
    if not os.path.exists(program):
        build(directory)
    if not os.path.exists(profile):
        write_profile(program, profile)
    return program, profile


if __name__ == "__main__":
    print(*generate(sys.argv[1]))
