#!/usr/bin/env python3
"""kiln serve: how fast it takes profiles and merges them, and how much room that needs.

  tests/bench/serve.py --kiln build/kiln --tools build/release/tests/bench --work build/bench/serve [--quick]
  tests/bench/serve.py --only many --many 100000

The profiles are of one service that repeats itself: CPU profiles of 568 samples, 26 KB packed, all different, each
with its own time, sent over 16 connections that are kept. Beside each row is what profefe does with its kind of
profile on such a machine, if it does it.
"""
import argparse
import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

# Stacks as deep as those of Go's CPU profiles, which have 12 frames on average, and as many places for the samples.
SERVICE = "functions=420 locations=1000 pool=2000 depth=13 labels=1 mappings=3 timeless=1"
SAMPLES, FEW_SAMPLES, FILES, CONNECTIONS, MINUTE = 568, 50, 256, 16, 60
FORTNIGHT = 14 * 24 * 60
FIRST = int(time.time()) - FORTNIGHT * MINUTE
MB = 1 << 20
failed = 0


def row(what, figure, unit, least=None, most=None, peer=""):
    global failed
    is_ok = (least is None or figure >= least) and (most is None or figure <= most)
    failed += not is_ok
    wanted = "at least %g" % least if most is None else "at most %g" % most
    print("%-44s %10.6g %-14s %-18s %-20s %s" % (what, figure, unit, wanted, peer, "ok" if is_ok else "FAILS"), flush=True)


class Server:
    def __init__(self, kiln, folder, *args):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.log = open(folder + ".log", "w+")
        self.process = subprocess.Popen([kiln, "serve", "--data", folder, "--listen", "localhost:0", "--access-log=false",
                                         "--rate-profiles", "0", "--rate-bytes", "0",
                                         *(args or ("--keep-raw", "30d"))], stderr=self.log)
        atexit.register(self.process.kill)
        for _ in range(300):
            with open(folder + ".log") as f:
                found = re.search(r"listens at http://\S*:(\d+),", f.read())
            if found or self.process.poll() is not None:
                break
            time.sleep(0.1)
        if not found:
            sys.exit("kiln serve does not start: see " + folder + ".log")
        self.port = int(found[1])

    def memory(self, field="VmRSS"):
        """Megabytes."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(field + r":\s+(\d+) kB", f.read())[1]) / 1024

    def cpu(self):
        """Seconds that all its threads have taken."""
        with open("/proc/%d/stat" % self.process.pid) as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self):
        with open("/proc/%d/clear_refs" % self.process.pid, "w") as f:
            f.write("5")

    def merge(self, service, first, count):
        """Seconds, and megabytes of the whole server at most, of the merge of so many profiles. The best of three."""
        query = {"service": service, "type": "cpu"}
        for name, second in ("from", first), ("to", first + (count - 1) * MINUTE):
            query[name] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        url = "http://localhost:%d/api/0/profiles/merge?%s" % (self.port, urllib.parse.urlencode(query))
        seconds = []
        self.forget_peak()
        for _ in range(3):
            start = time.monotonic()
            body = urllib.request.urlopen(url).read()
            seconds.append(time.monotonic() - start)
        return min(seconds), self.memory("VmHWM"), body

    def size(self):
        return sum(os.path.getsize(os.path.join(self.folder, f)) for f in os.listdir(self.folder))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(120):
            sys.exit("kiln serve ended badly: see " + self.folder + ".log")


class Bench:
    def __init__(self, options):
        self.options = options
        self.files = self.make("profiles", SAMPLES)
        self.server = None

    def make(self, name, samples):
        folder = os.path.join(self.options.work, name)
        if not os.path.exists("%s/%05d.pb.gz" % (folder, FILES - 1)):
            os.makedirs(self.options.work, exist_ok=True)
            subprocess.run([os.path.join(self.options.tools, "gen"), folder, "count=%d" % FILES, "samples=%d" % samples]
                           + SERVICE.split(), check=True)
        return ["%s/%05d.pb.gz" % (folder, i) for i in range(FILES)]

    def load(self, puts, service, server=None, files=None, **params):
        """Profiles a second, and milliseconds within which 99 of 100 were answered."""
        args = ["%s=%s" % p for p in {"puts": puts, "connections": CONNECTIONS, "first": FIRST, "service": service,
                                      "step": MINUTE, **params}.items()]
        done = subprocess.run([os.path.join(self.options.tools, "serve_load"), str((server or self.server).port), *args,
                               *(files or self.files)],
                              stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("serve.py: %s were not pushed" % " ".join(args))
        _, rate, p99 = done.stdout.split()
        return float(rate), float(p99)

    def check_merge(self):
        """A merge of all files is what it is without a server."""
        path = os.path.join(self.options.work, "merged.pb.gz")
        self.load(FILES, "right")
        with open(path, "wb") as f:
            f.write(self.server.merge("right", FIRST, FILES)[2])
        if self.total(path) != self.total(*self.files):
            sys.exit("a merge has %s samples, not %s" % (self.total(path), self.total(*self.files)))

    def total(self, *files):
        out = subprocess.run([self.options.kiln, "-top", "-symbolize=none", "-sample_index=0", "-unit=minimum", *files],
                             check=True, capture_output=True, text=True).stdout
        return re.search(r"of (\d+) total", out)[1]

    def run(self):
        wanted, quick = self.options.only, self.options.quick
        if wanted in ("", "fortnight"):
            self.run_fortnight()
        if wanted in ("", "day"):
            self.run_day(10 if quick else 50)
        if wanted == "many" or not (wanted or quick):
            self.run_many(self.options.many)

    def run_fortnight(self):
        self.server = Server(self.options.kiln, os.path.join(self.options.work, "data"))
        self.check_merge()
        before, cpu = self.server.size(), self.server.cpu()
        rate, p99 = self.load(FORTNIGHT, "fortnight")
        cpu = self.server.cpu() - cpu
        row("profiles a second, durable, 16 connections", rate, "/s", least=3000, peer="profefe 252")
        row("... CPU time of the server for each", cpu / FORTNIGHT * 1000, "ms", most=0.5)
        row("... 99 of 100 answered in", p99, "ms", most=100)
        for count, seconds, peer in (1000, 0.5, "profefe 21.3"), (5000, 0.5, "profefe 94.6"), (FORTNIGHT, 1, ""):
            took, peak, _ = self.server.merge("fortnight", FIRST, count)
            row("merge of %s" % format(count, ","), took, "s", most=seconds, peer=peer)
            row("... memory of the server", peak, "MB", most=200, peer="profefe 3,700" if count == 5000 else "")
        row("bytes on disk a sample", (self.server.size() - before) / FORTNIGHT / SAMPLES, "bytes", most=8, peer="profefe 41-54")
        self.server.stop()

    def run_day(self, pods):
        """A day of so many pods, a profile of each a minute, as fast as it goes, in less room than that needs."""
        cap_mb, memory_mb = pods * 2, 128
        server = Server(self.options.kiln, os.path.join(self.options.work, "day"), "--max-disk", "%dMB" % cap_mb,
                        "--max-memory", "%dMB" % memory_mb, "--min-free", "0", "--keep-raw", "30d")
        sizes, is_over = [0], threading.Event()

        def watch():
            while not is_over.wait(0.1):
                sizes.append(server.size())

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.load(24 * 60 * pods, "day", server, series=pods, first=int(time.time()) - 24 * 60 * MINUTE)
        is_over.set()
        watcher.join()
        row("a day of %d pods at once: the folder at most" % pods, max(sizes) / MB, "MB", most=cap_mb)
        row("... memory at most", server.memory("VmHWM"), "MB", most=memory_mb)
        server.stop()

    def run_many(self, count):
        """Small profiles of 50 pods and a fortnight, of which a day is kept: what is older becomes sums as it comes."""
        files = self.make("small", FEW_SAMPLES)
        server = Server(self.options.kiln, os.path.join(self.options.work, "many"),
                        "--keep-raw", "1d", "--keep-minute", "2d", "--keep-hour", "7d")
        pods, done, memory, start = 50, 0, {}, time.monotonic()
        for percent in 10, 50, 100:
            more = count * percent // 100 - done
            self.load(more, "many", server, files, series=pods, first=FIRST + done // pods * MINUTE)
            done += more
            memory[percent] = server.memory()
            row("%s profiles, memory after %d %%" % (format(count, ","), percent), memory[percent], "MB", most=512)
        row("... after all, to that after a tenth", memory[100] / memory[10], "times", most=1.25)
        row("... at most", server.memory("VmHWM"), "MB", most=512)
        row("... a second", count / (time.monotonic() - start), "/s", least=3000)
        row("... the folder", server.size() / MB, "MB", most=2048)
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln", default="build/kiln")
    parser.add_argument("--tools", default="build/release/tests/bench")
    parser.add_argument("--work", default="build/bench/serve")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", choices=["fortnight", "day", "many"])
    parser.add_argument("--many", type=int, default=1000000, help="so many profiles in the last row")
    Bench(parser.parse_args()).run()
    sys.exit(failed > 0)


main()
