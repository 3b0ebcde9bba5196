import atexit
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from serve_lib import KILN, TMP, Server, SmallDisk, check, done, equal, profile

MB = 1 << 20
DAY = 86400
SECOND = 1000000000
# What is on a disk takes long on a busy machine, and is as large.
QUICK = tempfile.mkdtemp(dir="/dev/shm") if os.access("/dev/shm", os.W_OK) else TMP
atexit.register(shutil.rmtree, QUICK, ignore_errors=True)
ALL = {"from": "2000-01-01T00:00:00", "to": "2100-01-01T00:00:00"}


class Watch:
    """Asks for the size of all files of a folder, as often as it can, in a process of its own."""
    PROGRAM = """
import os, select, sys, time
most = looks = 0
while not select.select([0], [], [], 0)[0]:
    sizes = []
    for f in os.scandir(sys.argv[1]):
        try:
            sizes.append(f.stat().st_size)
        except FileNotFoundError:
            pass
    most, looks = max(most, sum(sizes)), looks + 1
    time.sleep(0.0005)
print(most, looks)
"""

    def __init__(self, folder):
        self.process = subprocess.Popen([sys.executable, "-c", self.PROGRAM, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def end(self):
        most, looks = map(int, self.process.communicate("\n")[0].split())
        return most, looks


def stacks(dice, n):
    """What no book has yet."""
    return {"x%s;work;main" % hashlib.sha1(dice.randbytes(8)).hexdigest(): (1, i + 1) for i in range(n)}


def push(server, body, **params):
    return server.ask("/api/0/profiles?" + urllib.parse.urlencode(params), "POST", body)


class Load:
    """Pushes what takes room: traces, which can only be dropped, and profiles of the last days, which can be thinned."""

    def __init__(self, server, want):
        self.server, self.want, self.taken, self.refused, self.wrong = server, want, 0, 0, []
        self.first = time.time() - 3 * DAY
        dice = random.Random(0)
        self.profiles = [profile(stacks(dice, 500), duration=SECOND) for _ in range(20)]
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(4)]
        for t in self.threads:
            t.start()
        for t in self.threads:
            t.join()

    def body(self, dice, n):
        """In the order of time, as they come in life, and up to now."""
        at = time.gmtime(self.first + 3 * DAY * min(self.taken / self.want, 1))
        params = {"type": "trace" if n % 4 else "cpu", "created_at": time.strftime("%Y-%m-%dT%H:%M:%S", at)}
        return dice.randbytes(dice.randrange(10000, 300000)) if n % 4 else dice.choice(self.profiles), params

    def run(self, number):
        dice, n = random.Random(number), 0
        while self.taken < self.want and not self.wrong:
            n += 1
            body, params = self.body(dice, n)
            status, headers, answer = push(self.server, body, service="s%d" % number, labels="pod=%d" % (n % 5), **params)
            with self.lock:
                if status == 200:
                    self.taken += len(body)
                elif status == 507 and headers.get("x-kiln-limit") == "max-disk":
                    self.refused += 1
                else:
                    self.wrong.append((status, answer))
            if status != 200:
                time.sleep(0.02)


def limited(cap_mb, times):
    server = Server("--max-disk", "%dMB" % cap_mb, "--min-free", "0", "--rate-profiles", "0", "--access-log=false",
                    "--keep-raw", "1d", data=QUICK + "/limited")
    watch = Watch(server.data)
    load = Load(server, times * cap_mb * MB)
    equal(load.wrong, [])
    status, _, body = server.ask("/api/0/profiles/merge?" + urllib.parse.urlencode({"service": "s0", "type": "cpu", **ALL}))
    equal(status, 200)
    _, refusals = server.get("/api/1/refusals")
    totals = {t["limit"]: t["count"] for t in refusals["totals"]}
    _, stats = server.get("/api/1/stats")
    equal(server.stop(), 0)
    most, looks = watch.end()
    print("# pushed %.1f MB, refused %d times; the folder had %.2f MB of %d MB at most, in %d looks; %d thinned, %d dropped"
          % (load.taken / MB, load.refused, most / MB, cap_mb, looks, stats["thinned"], stats["deleted"]))
    assert most <= cap_mb * MB, "the folder had %d bytes" % most
    assert most > cap_mb * MB / 2, "only half of the room is used: %d bytes" % most
    assert stats["deleted"] > 0 and stats["thinned"] > 0, stats
    equal(totals.get("max-disk", 0), load.refused)
    assert "Sanitizer" not in server.log() and "background has failed" not in server.log(), server.log()
    # What is left is whole.
    checked = subprocess.run([KILN, "store", "check", server.data], capture_output=True, text=True)
    assert checked.returncode == 0 and " 0 problems" in checked.stdout, checked.stdout + checked.stderr
    return server.data


def less_than_before(data, cap_mb):
    """The limit is lowered: it shrinks, and goes on."""
    server = Server("--max-disk", "%dMB" % cap_mb, "--min-free", "0", "--access-log=false", data=data)
    dice, deadline = random.Random(1), time.monotonic() + 60
    while sum(f.stat().st_size for f in os.scandir(data)) > cap_mb * MB or \
            push(server, dice.randbytes(1000), service="s", type="trace")[0] != 200:
        assert time.monotonic() < deadline, "it stays too large"
        time.sleep(0.1)
    equal(server.stop(), 0)


def too_small():
    done = subprocess.run([KILN, "serve", "--data", TMP + "/x", "--max-disk", "15MB"], capture_output=True, text=True)
    equal(done.returncode, 2)
    assert "--max-disk must be 16 MB or more" in done.stderr, done.stderr


# ---- free disk

OTLP = json.dumps({
    "resourceProfiles": [{"scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1}, "samples": [{"values": [1]}]}]}]}],
    "dictionary": {"stringTable": ["", "wall"]}})


def wait_for(what, is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def least_free(disk):
    """Others fill the disk: profiles go until as much is free as was asked for, and no more of them."""
    server = disk.serve("--min-free", "12MB")
    dice = random.Random(2)

    def free():
        disk_now = os.statvfs(disk.folder)
        return disk_now.f_bavail * disk_now.f_bsize

    now = time.time()
    for i in range(200):
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - 10 * DAY + i * DAY / 20))
        meta = server.push(dice.randbytes(100000), service="s", type="trace", created_at=at)
        assert "id" in meta, meta
    equal(server.get("/api/1/stats")[1]["profiles"], 200)
    assert free() > 12 * MB, free()
    # Any change of that makes it look, which it else does every ten seconds: the log is copied, too.
    ask(server, "PUT", service="other", raw="1d")
    wait_for("the log is not copied", lambda: os.stat(disk.folder + "/data/profiles.db").st_size > 19 * MB)
    # 6 MB are missing, with the log: of the 20 MB of profiles, most stay.
    disk.fill(6 * 1024 - os.stat(disk.folder + "/data/profiles.db-wal").st_size // 1024)
    push(server, b"x", service="s", type="trace")
    wait_for("no room is made", lambda: free() >= 12 * MB)
    time.sleep(0.5)
    _, stats = server.get("/api/1/stats")
    print("# of 200 profiles %d are left, and %.1f MB free" % (stats["profiles"], free() / MB))
    assert 100 <= stats["profiles"] < 190, stats
    assert stats["newest"] > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - DAY)), stats
    # What the others take is more than all that is here: then they do not cost what is left.
    disk.empty()
    disk.fill(700)
    before = stats["profiles"]
    equal(push(server, b"x", service="s", type="trace")[0], 507)
    # OpenTelemetry's exporters give up on that, and send 503 again.
    status, headers, answer = server.ask("/v1development/profiles", "POST", OTLP, {"Content-Type": "application/json"})
    equal((status, headers.get("retry-after"), headers.get("x-kiln-limit"), json.loads(answer)["code"]), (503, "30", "disk", 14))
    time.sleep(1)
    equal(server.get("/api/1/stats")[1]["profiles"], before)
    disk.empty()
    wait_for("it stays full", lambda: "id" in server.push(dice.randbytes(1000), service="s", type="trace"))
    equal(server.stop(), 0)
    assert "min-free: 0 profiles are only in sums now" in server.log(), server.log()


# ---- how long

def ask(server, method, ok=200, **params):
    status, _, body = server.ask("/api/1/keep?" + urllib.parse.urlencode(params), method)
    equal(status, ok)
    return json.loads(body)


def services(answer):
    return {s["service"]: (s["raw"], s["day"], s["stored"]) for s in answer["services"]}


def rules():
    config = TMP + "/rules.yaml"
    with open(config, "w") as f:
        f.write("services:\n  batch-*: {keep-raw: 2d, keep-day: 30d}\n")
    args = "--config", config, "--keep-service", "web:raw=1h", "--keep-service=api:raw=2h", "--keep-day", "400d"
    server = Server(*args)
    equal(server.get("/api/1/keep")[1]["all"], {"raw": "0", "minute": "0", "hour": "0", "day": "400d"})
    wanted = {"api": ("2h", None, False), "web": ("1h", None, False), "batch-*": ("2d", "30d", False)}
    equal(services(server.get("/api/1/keep")[1]), wanted)
    # Of a service that is not there yet, too.
    equal(services(ask(server, "PUT", service="old;x", raw="10d", day="0")), {**wanted, "old;x": ("10d", "0", True)})
    server.stop()
    server = Server(*args, data=server.data)
    equal(services(server.get("/api/1/keep")[1]), {**wanted, "old;x": ("10d", "0", True)})
    equal(services(ask(server, "DELETE", service="old;x")), wanted)
    ask(server, "DELETE", 404, service="old;x")
    for wrong in {"raw": "1d"}, {"service": "a"}, {"service": "a", "raw": "-1d"}, {"service": "a", "week": "1d"}:
        ask(server, "PUT", 400, **wrong)
    # What is old becomes sums at once when that is set.
    old = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 3 * DAY))
    assert "id" in server.push(profile({"main": (1, 1)}), service="x", type="cpu", created_at=old)
    # First in a dry run, which changes nothing.
    answer = ask(server, "PUT", service="x", raw="1d", dry_run="true")
    equal((answer["dry_run"], services(answer)), ({"thinned": 1, "dropped": 0, "series": 1}, wanted))
    equal(ask(server, "PUT", service="x", raw="1d", minute="1d", hour="1d", day="1d", dry_run="true")["dry_run"]["dropped"], 1)
    equal(ask(server, "GET", dry_run="1")["dry_run"], {"thinned": 0, "dropped": 0, "series": 0})
    ask(server, "DELETE", 404, service="x", dry_run="true")
    ask(server, "PUT", 400, service="x", dry_run="true")
    ask(server, "PUT", service="x", raw="1d")
    deadline = time.monotonic() + 60
    while server.get("/api/1/stats")[1]["thinned"] == 0:
        assert time.monotonic() < deadline, "it is not thinned"
        time.sleep(0.05)
    equal(server.stop(), 0)
    tokens = TMP + "/tokens"
    with open(tokens, "w") as f:
        f.write("read,write 0123456789abcdef rw\nadmin fedcba9876543210 root\n")
    server = Server(*args, "--tokens", tokens)
    for token, status in ("0123456789abcdef", 403), ("fedcba9876543210", 200):
        got = server.ask("/api/1/keep?service=a&raw=1d", "PUT", headers={"Authorization": "Bearer " + token})[0]
        equal((token, got), (token, status))
    equal(server.stop(), 0)
    done = subprocess.run([KILN, "serve", "--data", TMP + "/x", "--keep-service", "raw=1d"], capture_output=True, text=True)
    equal(done.returncode, 2)
    assert "--keep-service" in done.stderr and "no service" in done.stderr, done.stderr


disk = SmallDisk(48)
if disk.is_there:
    check("--min-free costs what is missing", least_free, disk)
    disk.close()
else:
    check("--min-free costs what is missing # SKIP nobody but root can mount a small disk", lambda: None)
check("services may be kept for another time", rules)
check("--max-disk has a least value", too_small)
data = []
check("the folder is never larger than --max-disk", lambda: data.append(limited(int(os.environ.get("CAP", 20)), 5)))
if data:
    check("a limit that is lower than what is there", less_than_before, data[0], 16)
done()
