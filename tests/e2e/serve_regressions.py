"""Regressions of kiln serve: profiles of services that change and of some that do not, pushed over HTTP as if two
hours had gone by, compared, told to a webhook, and what people say of them remembered. Prints TAP. Needs KILN."""
import contextlib
import http.client
import http.server
import json
import os
import random
import re
import signal
import threading
import time
import urllib.parse

import jsonschema

from serve_lib import IS_SLOW, TMP, Server, check, done, equal, profile

MINUTES = 58  # of each side
NS = 10**9
PERIOD = 10 * 10**6
NOW = time.time() // 60 * 60
# What a service's functions take; the rest of 30 is alike in all.
SHARES = {"f%d" % i: 1 / (i + 2) for i in range(30)}
TOTAL = sum(SHARES.values())
OPTIONS = ("--regression-window", "1h", "--regression-interval", "0", "--rate-profiles", "0", "--access-log=false")


def minute(chance, samples, growth=0, mix=0.02):
    """A profile of a minute of a service whose f3 takes so much of it more."""
    load = samples * chance.uniform(0.5, 1.5)
    stacks = {}
    for name, weight in SHARES.items():
        share = weight / TOTAL + (growth if name == "f3" else 0)
        mean = share * load * (1 + mix * chance.gauss(0, 1))
        n = max(0, round(chance.gauss(mean, max(mean, 0) ** 0.5)))
        if n or not stacks:
            stacks[name + ";main"] = (n, n * PERIOD)
    return profile(stacks, period=("cpu", "nanoseconds", PERIOD), duration=60 * NS)


def fill(server, service, samples, growth=0, versions=True, first=-2 * MINUTES):
    chance = random.Random(service)
    for i in range(first, 0):
        at = NOW + i * 60
        is_new = i >= -MINUTES
        labels = {"labels": "version=%s" % ("2.0" if is_new else "1.0")} if versions else {}
        body = minute(chance, samples, growth if is_new else 0)
        got = server.push(body, service=service, type="cpu", created_at=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)), **labels)
        assert isinstance(got, dict), got


class Hook(http.server.BaseHTTPRequestHandler):
    """Answers with the next status; redirects are to where everything is welcome. /large sends more than anybody reads,
    /only/SERVICE fails for others."""
    bodies, statuses = [], []

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append((dict(self.headers), body))
        status = self.statuses.pop(0) if self.statuses else 200
        if self.path.startswith("/only/") and body["regressions"][0]["service"] != self.path[6:]:
            status = 500
        self.send_response(status)
        if status in (301, 302, 307):
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        if self.path == "/large":
            self.wfile.write(b"x" * (1 << 20))

    def log_message(self, *args):
        pass


hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
threading.Thread(target=hook.serve_forever, daemon=True).start()
URL = "http://127.0.0.1:%d/told?by=kiln" % hook.server_port


def hold(server, path, answer, method):
    doc = server.get("/api/1/openapi.json")[1]
    schema = doc["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": doc["components"]})


def look(server, **params):
    status, _, body = server.ask("/api/1/regressions?" + urllib.parse.urlencode(params), "POST")
    answer = json.loads(body)
    assert status == 200, answer
    hold(server, "/api/1/regressions", answer, "post")
    return answer


def listed(server, **params):
    status, answer = server.get("/api/1/regressions", **params)
    equal(status, 200)
    hold(server, "/api/1/regressions", answer, "get")
    return answer


def of(answer, service):
    return [r for r in answer["regressions"] if r["service"] == service]


def wait_for(what, seconds=20):
    end = time.time() + seconds
    while not what():
        assert time.time() < end, "it does not happen"
        time.sleep(0.05)


def metric(server, name):
    text = server.ask("/metrics")[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(re.escape(name) + r"[{ ]", line))


Hook.statuses[:] = [500, 503]
server = Server(*OPTIONS, "--webhook", URL)
found = {}


def test_found():
    fill(server, "by1", 3000, 0.01)
    fill(server, "by5", 300, 0.05)
    fill(server, "by20", 60, 0.20)
    fill(server, "same", 3000)
    fill(server, "plain", 300, 0.05, versions=False)
    fill(server, "few", 3)
    fill(server, "young", 300, first=-MINUTES)
    answer = look(server, comparisons="true")
    for service, growth in (("by1", 0.01), ("by5", 0.05), ("by20", 0.2)):
        got = of(answer, service)
        equal([(r["function"], r["kind"], r["old_version"], r["new_version"], r["status"], r["current"]) for r in got],
              [("f3", "version", "1.0", "2.0", "new", True)])
        r = got[0]
        want = (SHARES["f3"] / TOTAL + growth) / (1 + growth) - SHARES["f3"] / TOTAL
        assert r["change_low"] <= want <= r["change_high"], (service, want, r)
        assert r["change_low"] > 0 and r["q"] <= 0.05, r
        equal(round(r["new_share"] - r["old_share"], 9), round(r["change"], 9))
        assert r["new_samples"] > r["old_samples"] > 0 and r["old_total"] > r["old_samples"], r
    equal(of(answer, "same") + of(answer, "few") + of(answer, "young"), [])
    found.update({r["service"]: r for r in answer["regressions"]})


def test_cores():
    """Profiles are of a minute each, and follow each other: samples of 10 ms over that time are cores."""
    r = found["by5"]
    cores = r["new_total"] * PERIOD / NS / (60 * MINUTES)
    assert abs(r["new_cores"] / (cores * r["new_share"]) - 1) < 0.03, (r, cores)


def test_time():
    """Of windows the change is found where it was, of versions it is when the new one came."""
    def seconds(text):
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))

    equal([(r["kind"], r["function"], r["new_version"]) for r in [found["plain"]]], [("window", "f3", "")])
    change = NOW - MINUTES * 60
    assert abs(seconds(found["plain"]["changed"]) - change) <= 180, found["plain"]
    equal(seconds(found["by5"]["changed"]), change)


def test_results():
    answer = listed(server, comparisons="true")
    results = {(c["service"], c["kind"]): c for c in answer["comparisons"]}
    equal(results["few", "version"]["result"], "not enough samples")
    equal(results["young", "version"]["result"], "nothing to compare with")
    equal(results["young", "window"]["result"], "nothing to compare with")
    equal(results["plain", "version"]["result"], "nothing to compare with")
    same = results["same", "version"]
    equal((same["result"], same["found"], same["functions"]), ("compared", 0, len(SHARES)))
    assert 0 < same["detectable"] < 0.01, same
    equal((same["old"]["parts"], same["new"]["parts"]), (8, 8))
    equal(sum(answer["results"].values()), len(answer["comparisons"]))
    equal(listed(server)["comparisons"], [])
    equal({r["service"] for r in listed(server, service="by5")["regressions"]}, {"by5"})
    equal(listed(server, kind="window", current="true")["total"], 1)
    assert metric(server, "kiln_regressions_found_total") == 4


def test_diff():
    """The link compares the same, and finds the same."""
    status, answer = server.get(found["by5"]["diff"])
    equal(status, 200)
    row = [f for f in answer["comparison"]["functions"] if f["name"] == "f3"][0]
    equal(row["verdict"], "more")
    assert abs(row["change"] - found["by5"]["change"]) < 1e-9, (row, found["by5"])


def test_webhook():
    """After two failures it arrives: those of a comparison together, each once."""
    wait_for(lambda: metric(server, "kiln_webhook_sent_total") == 4)
    equal(metric(server, "kiln_webhook_failures_total"), 2)
    told = [(r["service"], r["function"]) for _, b in Hook.bodies[2:] for r in b["regressions"]]
    equal(sorted(told), [("by1", "f3"), ("by20", "f3"), ("by5", "f3"), ("plain", "f3")])
    headers, body = Hook.bodies[2]
    equal((headers["Content-Type"], body["event"]), ("application/json", "regressions"))
    hold(server, "/api/1/regressions/{id}", {**body["regressions"][0], "diff": ""}, "get")
    look(server)
    equal({r["webhook"] for r in listed(server)["regressions"]}, {"sent"})
    equal(len(Hook.bodies), 6)


def test_status():
    r = found["by1"]
    path = "/api/1/regressions/" + r["id"]
    status, _, body = server.ask(path + "?status=expected&note=more+work", "PUT")
    answer = json.loads(body)
    equal((status, answer["status"], answer["note"], answer["status_by"]), (200, "expected", "more work", "somebody"))
    assert answer["status_at"], answer
    equal(json.loads(server.ask(path + "?status=expected", "PUT")[2])["note"], "more work")
    hold(server, "/api/1/regressions/{id}", answer, "put")
    look(server, service="by1")
    equal(server.get(path)[1]["status"], "expected")
    equal([r["service"] for r in listed(server, status="expected")["regressions"]], ["by1"])
    for bad, status in (("?status=wrong", 400), ("", 400), ("?status=new&note=" + 1001 * "x", 400)):
        equal((bad, server.ask(path + bad, "PUT")[0]), (bad, status))
    equal(server.ask("/api/1/regressions/0000000000000000?status=new", "PUT")[0], 404)
    equal(server.ask("/api/1/regressions/../x")[0], 404)


def test_restart():
    """What was found and said is there again, even after kill -9, and is not told again."""
    global server
    before = listed(server)["regressions"]
    server.stop(signal.SIGKILL)
    server = Server(*OPTIONS, "--webhook", URL, data=server.data)
    equal(listed(server)["regressions"], before)
    look(server)
    equal({r["status"] for r in of(listed(server), "by1")}, {"expected"})
    time.sleep(0.3)
    equal(len(Hook.bodies), 6)


def test_gone():
    """A newer version without the change: what was found is not current any more, and stays in the list."""
    chance = random.Random("newer")
    for i in range(30):
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOW - 900 + i * 30))
        server.push(minute(chance, 300), service="by5", type="cpu", labels="version=3.0", created_at=at)
    look(server, service="by5")
    equal([(r["new_version"], r["current"]) for r in of(listed(server), "by5")], [("2.0", False)])


def test_damaged():
    """A list that is damaged is put aside, and said so."""
    global server
    equal(server.stop(), 0)
    path = server.data + "/regressions.json"
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) // 2)
    server = Server(*OPTIONS, data=server.data)
    equal(listed(server)["regressions"], [])
    assert os.path.exists(path + ".damaged"), os.listdir(server.data)
    assert "regressions.json cannot be read" in server.log(), server.log()


def test_refused():
    """A webhook that says no is not asked again; other URLs are refused."""
    Hook.statuses[:] = [403] * 10
    before = len(Hook.bodies)
    with_hook = Server(*OPTIONS, "--webhook", URL)
    fill(with_hook, "by20", 60, 0.20)
    look(with_hook)
    wait_for(lambda: metric(with_hook, "kiln_webhook_given_up_total") == 1)
    equal(len(Hook.bodies), before + 1)
    equal([r["webhook"] for r in listed(with_hook)["regressions"]], ["failed"])
    equal(with_hook.stop(), 0)
    Hook.statuses[:] = []
    for bad in ("ftp://x/", "http://", "file:///etc/passwd", "http://a b/"):
        refused = Server("--webhook", bad, wait=False)
        equal((bad, refused.wait()), (bad, 2))
        assert "--webhook" in refused.log(), refused.log()


def told(path, *services):
    """A server whose webhook is this path, once it has found that these became slower."""
    with_hook = Server(*OPTIONS, "--webhook", "http://127.0.0.1:%d%s" % (hook.server_port, path))
    for service in services:
        fill(with_hook, service, 60, 0.20)
    look(with_hook)
    return with_hook


def states(server):
    return {r["service"]: r["webhook"] for r in listed(server)["regressions"]}


def test_redirect():
    """A redirect is no arrival: what would be asked there is something else."""
    for status in (301, 302, 307):
        Hook.statuses[:] = [status]
        before = len(Hook.bodies)
        with_hook = told("/moved", "by20")
        wait_for(lambda: states(with_hook) == {"by20": "failed"})
        equal((status, len(Hook.bodies)), (status, before + 1))
        assert "it answers %d" % status in with_hook.log() and "is not followed" in with_hook.log(), with_hook.log()
        equal(with_hook.stop(), 0)


def test_large_answer():
    """What follows a status of 2xx is nobody's business."""
    before = len(Hook.bodies)
    with_hook = told("/large", "by20")
    wait_for(lambda: states(with_hook) == {"by20": "sent"})
    equal((metric(with_hook, "kiln_webhook_failures_total"), len(Hook.bodies)), (0, before + 1))
    equal(with_hook.stop(), 0)


def test_queue():
    """One that cannot be sent keeps no other from it."""
    with_hook = told("/only/b", "a", "b")
    wait_for(lambda: states(with_hook) == {"a": "queued", "b": "sent"}, 5)
    equal(with_hook.stop(), 0)


def test_again():
    """Nothing new: it is not compared again."""
    alone = Server(*OPTIONS)
    fill(alone, "by20", 60, 0.20)
    name = "kiln_regression_comparisons_total"
    if time.time() % 60 > 50:
        time.sleep(11)  # a new minute is a new window
    look(alone)
    equal(metric(alone, name), 2)
    look(alone)
    equal(metric(alone, name), 2)
    body = minute(random.Random(1), 60, 0.20)
    alone.push(body, service="by20", type="cpu", labels="version=2.0", created_at=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOW)))
    look(alone)
    equal(metric(alone, name), 4)
    equal(alone.stop(), 0)


def test_busy():
    """Who asks waits for one comparison, not for all that the background has to do; and so does the end."""
    services = ["large%d" % i for i in range(6)]
    busy = Server(*OPTIONS)
    body = profile({"f%d;main" % i: (5, 5 * PERIOD) for i in range(10000)}, period=("cpu", "nanoseconds", PERIOD), duration=60 * NS)
    for service in services:
        for i in range(16):
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOW - 60 - i * 420))
            busy.push(body, service=service, type="cpu", labels="version=%d" % (i < 8), created_at=at)
    equal(busy.stop(), 0)
    busy = Server("--regression-window", "1h", "--regression-interval", "1s", "--exit-timeout", "1s", data=busy.data)
    name = "kiln_regression_comparisons_total"
    wait_for(lambda: metric(busy, name) > 0)
    look(busy, service=services[-1])
    count = metric(busy, name)
    assert 0 < count < 2 * len(services), count

    def ask():
        with contextlib.suppress(http.client.HTTPException, OSError):  # it is cut off
            busy.ask("/api/1/regressions", "POST")

    threading.Thread(target=ask, daemon=True).start()
    time.sleep(0.1)
    before = time.time()
    equal(busy.stop(), 0)
    assert time.time() - before < (30 if IS_SLOW else 5), time.time() - before


def test_background():
    """Nobody asks: it looks by itself, soon after the start."""
    alone = Server("--regression-window", "1h", "--regression-interval", "1s", "--rate-profiles", "0")
    fill(alone, "by20", 60, 0.20)
    wait_for(lambda: of(listed(alone), "by20"), 60)
    equal(alone.stop(), 0)


check("seeded changes of 1, 5 and 20 % are found, and nothing else", test_found)
check("cores of a function are its share of what was profiled", test_cores)
check("the time of the change", test_time)
check("what was compared, and where there are not enough samples", test_results)
check("the link to the comparison", test_diff)
check("the webhook is called again after failures, and told once", test_webhook)
check("what people say", test_status)
check("it survives kill -9", test_restart)
check("what is gone", test_gone)
check("a damaged list", test_damaged)
check("webhooks that refuse, and that are none", test_refused)
check("nobody waits for a pass", test_busy)
check("a webhook that sends elsewhere", test_redirect)
check("a webhook whose answer is large", test_large_answer)
check("a webhook that takes only some", test_queue)
check("nothing is compared again without need", test_again)
check("in the background", test_background)
server.stop()
done()
