#!/usr/bin/env python3
"""The heaviest functions of a fleet: 1,000 services with 24 hours of profiles, asked of kiln serve.

  tests/bench/fleet.py --kiln build/kiln --tools build/release/tests/bench --work build/bench/fleet [--quick]

Each service has sums of 24 hours and since then a profile a minute, of 420 functions and 2,000 stacks; half of its
functions are its own. The first figure is what it takes to sum up all of it, which the server does by itself after it
has started; then people ask. With --quick a tenth of the services, and a tenth of the time."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

SERVICE = "functions=420 locations=1000 pool=2000 depth=13 labels=1 mappings=3 timeless=1".split()
MOST_S = 1


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("kiln", "build/kiln"), ("tools", "build/release/tests/bench"), ("work", "build/bench/fleet")):
        parser.add_argument("--" + name, default=value)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    services = 100 if options.quick else 1000
    shutil.rmtree(options.work, ignore_errors=True)
    os.makedirs(options.work)
    files = {}
    for name, count, samples in (("hour", 24, 8000), ("minute", 64, 568)):
        folder = os.path.join(options.work, name)
        subprocess.run([options.tools + "/gen", folder, "count=%d" % count, "samples=%d" % samples, *SERVICE], check=True)
        files[name] = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]
    data = options.work + "/data"
    subprocess.run([options.tools + "/fleet_load", data, "services=%d" % services, "hours=24", "minutes=60", *files["hour"], "--",
                    *files["minute"]], check=True)
    with open(options.work + "/log", "w+") as log:
        server = subprocess.Popen([options.kiln, "serve", "--data", data, "--listen", "localhost:0", "--access-log=false",
                                   "--regression-interval", "0", "--fleet-window", "0"], stderr=log)
        try:
            sys.exit(measure(server, options.work + "/log", services))
        finally:
            server.kill()


def measure(server, log, services):
    found = None
    while not found and server.poll() is None:
        time.sleep(0.1)
        with open(log) as f:
            found = re.search(r"listens at http://\S*:(\d+),", f.read())
    times = []
    for query in ("", "", "&sort=services", "&group=category", "&group=package&sort=trend", "&by=service"):
        begin = time.time()
        url = "http://localhost:%s/api/1/top?type=cpu&from=now-1d&fresh=false%s" % (found[1], query)
        answer = json.load(urllib.request.urlopen(url, timeout=900))
        times.append(time.time() - begin)
        assert answer["services"] == services, answer["services"]
        print("%-60s %8.3f s" % ("top of %d services, 24 h%s" % (services, query if len(times) > 1 else ", first"), times[-1]), flush=True)
    with open("/proc/%d/status" % server.pid) as f:
        print("%-60s %8s kB" % ("memory, at most", re.search(r"VmHWM:\s+(\d+)", f.read())[1]))
    slowest = max(times[1:])
    print("%-60s %8.3f s   at most %g   %s" % ("the slowest once it is summed up", slowest, MOST_S, "ok" if slowest <= MOST_S else "FAILS"))
    return slowest > MOST_S


main()
