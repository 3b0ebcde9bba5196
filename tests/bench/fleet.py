#!/usr/bin/env python3
"""The heaviest functions of a fleet: 1,000 services with 24 hours of profiles, asked of kiln serve.

  tests/bench/fleet.py --kiln build/kiln --tools build/release/tests/bench --work build/bench/fleet [--quick] [--again]

Each service has sums of 24 hours and since then a profile a minute, of 420 functions and 2,000 stacks; half of its
functions are its own. A server sums all of it up by itself after it has started; how long that takes is told, and has no
limit. Then each service pushes a profile more, and people ask: one that runs, which nobody has asked for these before; one
that has just been started, once for each question; and one that has been asked. Totals must be what was put in. With
--quick a tenth of the services; with --again of what is there from the last time."""
import argparse
import calendar
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

SERVICE = "functions=420 locations=1000 pool=2000 depth=13 labels=1 mappings=3 timeless=1".split()
MOST_S = 1
QUIET_S = 12  # the store's own work begins each 10 seconds
FRESH = "&fresh=true"
COLD = ("", FRESH, "&group=category", "&by=service")
WARM = ("", "&sort=services", "&group=category", "&group=package&sort=trend", "&by=service", FRESH, FRESH + "&sort=trend")


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("kiln", "build/kiln"), ("tools", "build/release/tests/bench"), ("work", "build/bench/fleet")):
        parser.add_argument("--" + name, default=value)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    services = 100 if options.quick else 1000
    if not options.again:
        load(options, services)
    with open(options.work + "/totals") as f:
        totals = [tuple(map(int, line.split())) for line in f]
    with Server(options, "1d") as server:
        begin = time.time()
        server.wait_until_quiet()
        print("%-60s %8.3f s" % ("all of it summed up by the server itself", time.time() - begin - QUIET_S), flush=True)
        push_more(options, server, services, totals)
        slowest = ask(server, services, totals, FRESH, ", not read before")
    for query in COLD:
        with Server(options, "0") as server:
            slowest = max(slowest, ask(server, services, totals, query, ", just started"))
    with Server(options, "0") as server:
        ask(server, services, totals, FRESH, ", once more")
        for query in WARM:
            slowest = max(slowest, ask(server, services, totals, query, ""))
        with open("/proc/%d/status" % server.process.pid) as f:
            print("%-60s %8s kB" % ("memory, at most", re.search(r"VmHWM:\s+(\d+)", f.read())[1]))
    print("%-60s %8.3f s   at most %g   %s" % ("the slowest", slowest, MOST_S, "ok" if slowest <= MOST_S else "FAILS"))
    sys.exit(slowest > MOST_S)


def load(options, services):
    shutil.rmtree(options.work, ignore_errors=True)
    os.makedirs(options.work)
    files = {}
    for name, count, samples in (("hour", 24, 8000), ("minute", 64, 568)):
        folder = os.path.join(options.work, name)
        subprocess.run([options.tools + "/gen", folder, "count=%d" % count, "samples=%d" % samples, *SERVICE], check=True)
        files[name] = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]
    with open(options.work + "/totals", "w") as totals:
        subprocess.run([options.tools + "/fleet_load", options.work + "/data", "services=%d" % services, "hours=24", "minutes=60",
                        *files["hour"], "--", *files["minute"]], check=True, stdout=totals)


def push_more(options, server, services, totals):
    """A profile of each service, of now."""
    folder = os.path.join(options.work, "minute")
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    values = [total_of(options, path) for path in paths]

    def push(service):
        with open(paths[service % len(paths)], "rb") as f:
            urllib.request.urlopen("http://localhost:%s/api/0/profiles?service=service-%d&type=cpu" % (server.port, service),
                                   f.read(), timeout=900).read()

    begin, cpu = time.time(), server.cpu()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(push, range(services)))
    print("%-60s %8.3f s   %6.2f s of CPU" % ("a profile of each service is pushed", time.time() - begin, server.cpu() - cpu), flush=True)
    totals.append((int(begin * 10**9), sum(values[i % len(values)] for i in range(services))))
    with open(options.work + "/totals", "a") as f:
        f.write("%d %d\n" % totals[-1])


def total_of(options, path):
    lines = subprocess.run([options.kiln, "-folded", "-nodefraction=0", path], check=True, capture_output=True, text=True).stdout
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines.splitlines())


class Server:
    def __init__(self, options, window):
        self.log = options.work + "/log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([options.kiln, "serve", "--data", options.work + "/data", "--listen", "localhost:0",
                                             "--access-log=false", "--regression-interval", "0", "--fleet-window", window], stderr=log)

    def __enter__(self):
        found = None
        while not found and self.process.poll() is None:
            time.sleep(0.1)
            with open(self.log) as f:
                found = re.search(r"listens at http://\S*:(\d+),", f.read())
        self.port = found[1]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_quiet(self):
        used, since = -1, time.time()
        while time.time() - since < QUIET_S:
            time.sleep(0.5)
            if self.cpu() - used > 0.1:
                used, since = self.cpu(), time.time()


def ask(server, services, totals, query, when):
    begin, cpu = time.time(), server.cpu()
    url = "http://localhost:%s/api/1/top?type=cpu&from=now-1d%s%s" % (server.port, "" if FRESH in query else "&fresh=false", query)
    answer = json.load(urllib.request.urlopen(url, timeout=900))
    seconds = time.time() - begin
    print("%-60s %8.3f s   %6.2f s of CPU" % ("top of %d services, 24 h%s%s" % (services, query, when), seconds, server.cpu() - cpu), flush=True)
    assert answer["services"] == services, answer["services"]
    ends = [time_of(answer[end]) for end in ("from", "to")]
    wanted = sum(total for at, total in totals if ends[0] <= at <= ends[1])
    assert answer["total"] == wanted, (answer["total"], wanted)
    if "group=category" in query:
        flat = sum(row["flat"] for row in answer["rows"])
        assert flat == wanted, (flat, wanted)
    return seconds


def time_of(text):
    """In nanoseconds."""
    seconds, _, fraction = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction.ljust(9, "0") if fraction else 0)


main()
