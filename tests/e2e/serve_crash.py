import datetime
import gzip
import hashlib
import http.client
import json
import os
import random
import signal
import threading
import time
import urllib.parse

from serve_lib import TMP, Server, SmallDisk, check, cli, done, equal, profile

CRASHES = int(os.environ.get("CRASHES", 5))
SEED = int(os.environ.get("SEED", time.time()))
SECOND = 1000000000
T0 = 1600000000
LARGE = 1000000
ALL = {"from": "2000-01-01T00:00:00", "to": "2100-01-01T00:00:00"}
SERVICES = ["a", "b", "c"]
dice = random.Random(SEED)


# ---- profiles that tell whether they are whole

def stacks(n):
    """Some stacks are of all profiles, some of a few, and one is new; large ones have names that nothing packs."""
    out = {"work;main": (n, n * 10), "part%d;work;main" % (n % 97): (1, n), "new%d;work;main" % n: (2, 3)}
    for i in range(300 if n >= LARGE else 0):
        out["x%s;work;main" % hashlib.sha1(b"%d %d" % (n, i)).hexdigest()] = (1, 1)
    return out


def body_of(n):
    return profile(stacks(n), time=(T0 + n) * SECOND, duration=SECOND)


def fields(data):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            at += value
            yield tag >> 3, data[at - value:at]
        else:
            yield tag >> 3, value


def packed(values):
    """Numbers, in one field or in several."""
    out = []
    for v in values:
        out += [x for x, _ in decode_varints(v)] if isinstance(v, bytes) else [v]
    return out


def decode_varints(data):
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield value, at


def read(body):
    """{"leaf;caller;main": (values...)} and the time of a profile."""
    strings, functions, locations, samples, nanos = [], {}, {}, [], 0
    for number, value in fields(gzip.decompress(body)):
        if number == 6:
            strings.append(value.decode())
        elif number == 5:
            parts = dict(fields(value))
            functions[parts[1]] = parts[2]
        elif number == 4:
            parts = dict(fields(value))
            locations[parts[1]] = dict(fields(parts[4]))[1]
        elif number == 2:
            parts = list(fields(value))
            samples.append([packed([v for k, v in parts if k == i]) for i in (1, 2)])
        elif number == 9:
            nanos = value
    return {";".join(strings[functions[locations[i]]] for i in ids): tuple(v) for ids, v in samples}, nanos


# ---- a client that notes what was acknowledged

class Client:
    """One connection that is kept."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path, method="GET", body=None, **params):
        self.http.request(method, path + "?" + urllib.parse.urlencode(params), body)
        r = self.http.getresponse()
        return r.status, r.read()

    def push(self, n):
        return self.ask("/api/0/profiles", "POST", body_of(n), service=SERVICES[n % 3], type="cpu", labels="pod=%d" % (n % 7))


class Load:
    """Pushes over several connections until the server is gone; a reader merges meanwhile."""

    def __init__(self, port, first, connections=8):
        self.port, self.next, self.acknowledged, self.wrong = port, first, {}, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.until_gone, args=(run,)) for run in [self.push] * connections + [self.merge]]
        for t in self.threads:
            t.start()

    def until_gone(self, run):
        client = Client(self.port)
        try:
            while run(client):
                pass
        except (OSError, http.client.HTTPException):
            pass

    def push(self, client):
        with self.lock:
            n, self.next = self.next, self.next + 1
        status, answer = client.push(n)
        if status == 200:
            id = json.loads(answer)["body"]["id"]
            with self.lock:
                self.acknowledged[n] = id
        else:
            self.wrong.append((status, answer))
        return status == 200

    def merge(self, client):
        status, answer = client.ask("/api/0/profiles/merge", service="a", type="cpu", **ALL)
        if status == 200:
            read(answer)
        elif status != 404:
            self.wrong.append((status, answer))
        time.sleep(0.05)
        return status in (200, 404)

    def join(self):
        for t in self.threads:
            t.join()


def found(client):
    """{n: id} of all that is there."""
    out = {}
    for service in SERVICES:
        status, answer = client.ask("/api/0/profiles", service=service, **ALL)
        for meta in json.loads(answer)["body"] if status == 200 else []:
            n = int(datetime.datetime.fromisoformat(meta["created_at"].replace("Z", "+00:00")).timestamp()) - T0
            assert n not in out and SERVICES[n % 3] == service, (n, service)
            out[n] = meta["id"]
    return out


def look_for(port, acknowledged, known, merges=SERVICES):
    """All that was acknowledged is found, all that is found is whole, and merges have just that."""
    client = Client(port)
    there = found(client)
    lost = {n: id for n, id in acknowledged.items() if there.get(n) != id}
    assert not lost, "of %d acknowledged, %d are lost: %r" % (len(acknowledged), len(lost), sorted(lost)[:20])
    for n in sorted(there.keys() - known):
        status, answer = client.ask("/api/0/profiles/" + there[n])
        equal((n, status), (n, 200))
        equal(read(answer), (stacks(n), (T0 + n) * SECOND))
    known |= there.keys()
    for service in merges:
        mine = [n for n in there if SERVICES[n % 3] == service]
        status, answer = client.ask("/api/0/profiles/merge", service=service, type="cpu", **ALL)
        equal(status, 200 if mine else 404)
        if mine:
            got = read(answer)[0]
            equal(got.get("work;main", (0, 0)), (sum(mine), sum(mine) * 10))
            equal({int(k[3:].split(";")[0]) for k in got if k.startswith("new")}, set(mine))
    return there


# ---- kill -9

def crashes():
    data = TMP + "/crash"
    acknowledged, known, next = {}, set(), 1
    for i in range(CRASHES):
        # Some die while they start.
        if dice.random() < 0.3:
            early = Server(data=data, wait=False)
            time.sleep(dice.random() * 0.05)
            early.stop(signal.SIGKILL)
        server = Server("--rate-profiles", "0", "--access-log=false", data=data)
        look_for(server.port, acknowledged, known)
        load = Load(server.port, next)
        time.sleep(dice.random() * dice.choice([0.2, 1, 3]))
        server.stop(signal.SIGKILL)
        load.join()
        equal(load.wrong, [])
        acknowledged.update(load.acknowledged)
        next = load.next
    server = Server(data=data)
    there = look_for(server.port, acknowledged, known)
    print("# %d crashes, seed %d: %d acknowledged, %d there" % (CRASHES, SEED, len(acknowledged), len(there)))
    assert len(acknowledged) > 5 * CRASHES, "too few to tell"
    equal(server.stop(), 0)
    for word in "repair", "corrupt", "malformed", "Sanitizer":
        assert word not in server.log(), server.log()


# ---- sums by function of what is new

def weighs(server, total, profiles):
    """All ways to ask say so, also of a store that is a minute old."""
    for params in {}, {"fresh": "false"}, {"from": "now-1d"}, {"from": "now-1d", "fresh": "false"}, {"from": "now-40m", "group": "module"}:
        status, top = server.get("/api/1/top", type="cpu", limit=100, **params)
        equal((status, top["total"], top["profiles"]), (200, total, profiles))
        equal(sum(row["flat"] for row in top["rows"]), total)


def new_sums():
    data = TMP + "/sums"
    total = profiles = 0
    for how in signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM:
        server = Server("--access-log=false", data=data)
        weighs(server, total, profiles)
        for i in range(6):
            body = profile({"f%d;main" % profiles: (1, 10), "work;main": (1, i)}, time=time.time_ns() - dice.randrange(60) * SECOND, duration=SECOND)
            server.push(body, service="s%d" % (i % 2), type="cpu", labels="pod=%d" % (i % 3))
            total, profiles = total + 10 + i, profiles + 1
            weighs(server, total, profiles)
        # Once before what is new has been written down, and once after it.
        time.sleep(dice.choice([0, 7]))
        server.stop(how)
    cli("store", "check", data)
    server = Server("--access-log=false", data=data)
    weighs(server, total, profiles)
    status, _, answer = server.ask("/api/1/delete?service=s1", "POST")
    equal(status, 200)
    left = total - 4 * (3 * 10 + 1 + 3 + 5)
    weighs(server, left, profiles // 2)
    server.stop(signal.SIGKILL)
    server = Server("--access-log=false", data=data)
    weighs(server, left, profiles // 2)
    equal(server.stop(), 0)


# ---- a full disk

def push_until_refused(client, acknowledged, first):
    for n in range(first, first + 100000):
        status, answer = client.push(n)
        if status != 200:
            return n, status, json.loads(answer)["error"]
        acknowledged[n] = json.loads(answer)["body"]["id"]
    raise AssertionError("the disk is never full")


def full_disk(disk):
    server, acknowledged, known = disk.serve("--min-free", "0"), {}, set()
    few = ()  # merges are large here, and slow to read: those at the end tell
    client = Client(server.port)
    for n in range(1, 50):
        status, answer = client.push(n)
        equal(status, 200)
        acknowledged[n] = json.loads(answer)["body"]["id"]
    disk.fill(3000)
    next, status, error = push_until_refused(client, acknowledged, LARGE)
    equal(status, 507)
    assert "disk is full" in error, error
    assert len(acknowledged) > 60, len(acknowledged)
    look_for(server.port, acknowledged, known, few)
    # Copying the log makes some room, so a few more may be taken, till it is full again.
    for _ in range(3):
        next, status, error = push_until_refused(client, acknowledged, next)
        equal(status, 507)
    equal(client.ask("/healthz")[0], 200)
    equal(client.ask("/readyz")[0], 503)
    # Whoever starts again on a full disk can still read.
    server.stop(signal.SIGKILL)
    server = disk.serve("--min-free", "0")
    look_for(server.port, acknowledged, known, few)
    client = Client(server.port)
    # The log is shorter now, so there may be room for some.
    next = push_until_refused(client, acknowledged, next)[0]
    look_for(server.port, acknowledged, known, few)
    # With room again it goes on by itself.
    disk.empty()
    deadline = time.monotonic() + 60
    while client.push(next)[0] != 200:
        assert time.monotonic() < deadline, "it stays full"
        time.sleep(0.1)
    for n in range(next + 1, next + 50):
        status, answer = client.push(n)
        equal(status, 200)
        acknowledged[n] = json.loads(answer)["body"]["id"]
    equal(client.ask("/readyz")[0], 200)
    look_for(server.port, acknowledged, known)
    equal(server.stop(), 0)
    assert "disk is full" in server.log() and "Sanitizer" not in server.log(), server.log()


check("kill -9 loses nothing", crashes)
check("sums by function of what is new are right after a restart, and after kill -9", new_sums)
disk = SmallDisk(24)
if disk.is_there:
    check("a full disk", full_disk, disk)
    disk.close()
else:
    check("a full disk # SKIP nobody but root can mount a small one", lambda: None)
done()
