#!/usr/bin/env python3
"""The shell on a profile of a million samples: how long a report takes after a new filter.

  tests/bench/shell.py --kiln build/kiln --tools build/release/tests/bench --data build/bench [--quick]

At a pseudo terminal, as a person has it: a filter, a pause in which the person types the next command, and the time from
Enter to the next prompt. Beside it the same commands sent at once, as a script does. The slowest of all filters counts.
"""
import argparse
import itertools
import os
import pty
import select
import subprocess
import sys
import tempfile
import time

PROFILE = "cpu_1m_labels.pb.gz"
GENERATE = "samples=1000000 labels=2"
MOST_MS, TYPING_S = 100, 1.0
PROMPT = b"(pprof) "
HOME = tempfile.TemporaryDirectory()  # for its history
FILTERS = ["focus=pager", "focus=Merge", "focus=flushToken1294", "ignore=oven", "ignore=Decode", "hide=flush", "show=pager|btree",
           "show_from=pager", "prune_from=find.*9", "tagfocus=endpoint=shelf4", "tagignore=endpoint=shelf4"]
COMMANDS = ["top", "top -cum", "tree", "tree -cum", "peek flushToken1294", "peek Merge", "list flushToken1294",
            "disasm flushToken1294", "dot", "tags"]


class Shell:
    def __init__(self, kiln, profile):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(kiln, [kiln, profile], dict(os.environ, TERM="xterm", HOME=HOME.name))
        self.wait()

    def wait(self):
        seen = b""
        while not seen.endswith(PROMPT) and PROMPT not in seen[-200:]:
            if not select.select([self.fd], [], [], 120)[0]:
                sys.exit("shell.py: no prompt, but %r" % seen[-300:])
            seen += os.read(self.fd, 1 << 16)
        if b"unrecognized" in seen:
            sys.exit("shell.py: %r" % seen[-300:])

    def run(self, line):
        """Milliseconds from Enter to the next prompt."""
        start = time.monotonic()
        os.write(self.fd, line.encode() + b"\n")
        self.wait()
        return (time.monotonic() - start) * 1000

    def close(self):
        os.write(self.fd, b"quit\n")
        os.waitpid(self.pid, 0)
        os.close(self.fd)


fresh = itertools.count()


def measure(shell, filters, command, pause):
    """The slowest of all filters, and its name. Each is new, as what was asked before is known."""
    found = []
    for text in filters:
        shell.run("%s|none%d" % (text, next(fresh)))
        time.sleep(pause)
        found.append((shell.run(command + " > /dev/null"), text))
        shell.run(text.split("=")[0] + "=")
    return max(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--tools", default="build/release/tests/bench")
    parser.add_argument("--data", default="build/bench")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    path = os.path.join(args.data, PROFILE)
    if not os.path.exists(path):
        os.makedirs(args.data, exist_ok=True)
        subprocess.run([os.path.join(args.tools, "gen"), path + ".part", *GENERATE.split()], check=True)
        os.rename(path + ".part", path)
    filters, failed = FILTERS[::3] if args.quick else FILTERS, 0
    shell = Shell(os.path.abspath(args.kiln), path)
    print("the shell on 1M samples, after a filter: the slowest of %d filters, %g s of typing; and sent at once" % (len(filters), TYPING_S))
    for command in COMMANDS:
        typed, text = measure(shell, filters, command, TYPING_S)
        at_once, text_at_once = measure(shell, filters, command, 0)
        is_ok = max(typed, at_once) <= MOST_MS
        failed += not is_ok
        print("%-22s %4.0f ms (%s) %s at once %4.0f ms (%s) %s at most %d  %s" %
              (command, typed, text, " " * (25 - len(text)), at_once, text_at_once, " " * (25 - len(text_at_once)), MOST_MS, "ok" if is_ok else "FAILS"),
              flush=True)
    shell.close()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
