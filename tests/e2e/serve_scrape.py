"""kiln serve takes profiles of targets: fake ones that answer, die, hang, restart and lie; what it says of them; and
profiles at somebody's wish."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse

import jsonschema

import serve_lib as lib
from serve_lib import Server, check, equal
from serve_target import BlackHole, Target, free_port

SLOW = 3 if lib.IS_SLOW else 1


def config(text):
    path = "%s/scrape%d.yaml" % (lib.TMP, next(lib.names))
    with open(path, "w") as f:
        f.write(text)
    return path


def until(what, seconds=15):
    end = time.monotonic() + seconds * SLOW
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < end, "it does not come to pass: %r" % (got,)
        time.sleep(0.05)


def is_as_described(server, answer, schema):
    doc = json.loads(server.ask("/api/1/openapi.json")[2])
    jsonschema.validate(answer, {"$ref": "#/components/schemas/" + schema, "components": doc["components"]})


def targets(server, **params):
    """{address: target}, and of each {type: profile}."""
    status, answer = server.get("/api/1/targets", **params)
    equal(status, 200)
    out = {}
    for job in answer["jobs"]:
        for t in job["targets"]:
            t["types"] = {p["type"]: p for p in t["profiles"]}
            out[t["target"]] = t
    return out


def is_in(server, address, state):
    return lambda: targets(server)[address]["state"] == state


def profiles(server, query, limit=1000):
    status, answer = server.get("/api/1/profiles", query=query, limit=limit)
    equal(status, 200)
    return answer["profiles"]


# ---- targets that are as they should be

def scrapes_what_the_configuration_says():
    a, b, c = Target(mutex="empty", block="absent"), Target(), Target()
    file = lib.TMP + "/more.json"
    with open(file, "w") as f:
        json.dump([{"targets": [c.address], "labels": {"service": "cart", "zone": "z1", "__meta_x": "y"}}], f)
    server = Server("--config", config("""
keep: {raw: 0}
scrape:
  - job: shop
    interval: 2s
    labels: {env: test, zone: z0}
    profiles: {cpu: {seconds: 1}, heap: , goroutine: , mutex: , block: }
    targets:
      - %s
      - targets: [%s]
        labels: {version: "2"}
    files: [%s]
""" % (a.address, b.address, os.path.basename(file))))
    until(lambda: all(t["state"] == "up" and p["ok"] + (p["state"] == "absent")
                      for t in targets(server).values() for p in t["profiles"]))
    got = {(p["service"], p["type"], tuple((l["key"], l["value"]) for l in p["labels"])) for p in profiles(server, "")}
    base = (("env", "test"), ("instance", a.address), ("zone", "z0"))
    assert ("shop", "cpu", base) in got and ("shop", "heap", base) in got and ("shop", "goroutine", base) in got, got
    assert ("shop", "cpu", (("env", "test"), ("instance", b.address), ("version", "2"), ("zone", "z0"))) in got, got
    assert ("cart", "heap", (("env", "test"), ("instance", c.address), ("zone", "z1"))) in got, got
    now = targets(server)
    equal(len(now), 3)
    equal((now[a.address]["types"]["block"]["state"], now[a.address]["state"]), ("absent", "up"))
    assert "no samples" in now[a.address]["types"]["mutex"]["problem"], now
    equal([p for p in profiles(server, "{instance=\"%s\"}" % a.address) if p["type"] in ("mutex", "block")], [])
    assert ("profile", "1") in {(n, s) for n, s, _ in a.asked}, a.asked
    assert a.count("profile") <= 1.5 + (time.monotonic() - a.asked[0][2]) / 2, "more than once in an interval"
    equal(list(targets(server, service="cart")), [c.address])
    equal(server.get("/api/1/targets", job="none")[1], {"jobs": []})
    is_as_described(server, server.get("/api/1/targets")[1], "Targets")
    text = server.ask("/metrics")[2].decode()
    assert 'kiln_scrape_targets{job="shop",state="up"} 3' in text, text
    assert re.search(r'kiln_scrapes_total\{job="shop",result="ok"\} \d', text), text
    assert re.search(r'kiln_scrape_duration_seconds_count\{job="shop"\} \d', text), text
    equal(server.stop(), 0)
    for t in (a, b, c):
        t.close()


def a_trace_is_kept_as_it_came():
    a = Target(trace="garbage")
    server = Server("--config", config("""
scrape:
  - job: shop
    interval: 2s
    profiles: {trace: {path: trace, seconds: 1}}
    targets: [%s]
""" % a.address))
    until(is_in(server, a.address, "up"))
    found = profiles(server, "type=trace")
    equal((found[0]["service"], found[0]["samples"]), ("shop", 0))
    equal(len(server.ask("/api/0/profiles/" + found[0]["id"])[2]), 2000)
    equal(server.stop(), 0)
    a.close()


def files_are_read_again_when_they_change():
    a, b = Target(), Target()
    folder = lib.TMP + "/sd"
    os.makedirs(folder, exist_ok=True)

    def write(name, text):
        with open(folder + "/.new", "w") as f:
            f.write(text)
        os.rename(folder + "/.new", folder + "/" + name)

    write("one.yaml", "- targets: ['%s']\n" % a.address)
    server = Server("--config", config("""
scrape: [{job: sd, interval: 1s, profiles: [heap], files: ["%s/*.yaml"]}]
""" % folder))
    until(is_in(server, a.address, "up"))
    write("two.yaml", "[{targets: ['%s'], labels: {service: two}}]" % b.address)
    until(lambda: b.address in targets(server))
    ok = targets(server)[a.address]["types"]["heap"]["ok"]
    write("one.yaml", "- targets: ['http://no/address']\n")  # what was there stays
    job = until(lambda: [j for j in server.get("/api/1/targets")[1]["jobs"] if j["problem"]])[0]
    assert "one.yaml: line 1" in job["problem"] and "host:port" in job["problem"], job["problem"]
    until(lambda: targets(server)[a.address]["types"]["heap"]["ok"] > ok)
    os.unlink(folder + "/one.yaml")
    until(lambda: list(targets(server)) == [b.address])
    n = a.count("heap")
    time.sleep(1.5)
    equal(a.count("heap"), n)
    assert "one.yaml" in server.log()
    equal(server.stop(), 0)
    a.close(), b.close()


def sighup_keeps_what_is_known():
    a, b = Target(), Target()
    text = "scrape:\n  - {job: j, interval: 1s, profiles: [heap%s], targets: ['%s'%s]}\n"
    path = config(text % ("", a.address, ""))
    server = Server("--config", path)
    until(lambda: targets(server)[a.address]["types"]["heap"]["ok"] >= 2)
    with open(path, "w") as f:
        f.write(text % (", goroutine", a.address, ", '%s'" % b.address))
    ok = targets(server)[a.address]["types"]["heap"]["ok"]
    server.process.send_signal(signal.SIGHUP)
    until(lambda: b.address in targets(server))
    now = targets(server)[a.address]
    assert now["state"] == "up" and now["types"]["heap"]["ok"] >= ok, now
    until(lambda: targets(server)[a.address]["types"]["goroutine"]["ok"])
    with open(path, "w") as f:
        f.write("scrape:\n  - job: j\n    interval: soon\n    targets: [x:1]\n")
    server.process.send_signal(signal.SIGHUP)
    until(lambda: "stay as they were" in server.log())
    assert re.search(r"line 3: interval", server.log()), server.log()
    equal(len(targets(server)), 2)
    with open(path, "w") as f:
        f.write("listen: localhost:1\n")
    server.process.send_signal(signal.SIGHUP)
    until(lambda: not targets(server))
    assert 'kiln_scrape_targets{job="j",state="up"} 0' in server.ask("/metrics")[2].decode()
    equal(server.stop(), 0)
    a.close(), b.close()


def sighup_keeps_targets_of_a_file_that_is_wrong():
    a = Target()
    file = lib.TMP + "/broken.yaml"
    with open(file, "w") as f:
        f.write("- targets: ['%s']\n" % a.address)
    server = Server("--config", config("scrape: [{job: j, interval: 1s, profiles: [heap], files: ['%s']}]" % file))
    until(is_in(server, a.address, "up"))
    for text, problem in (("- targets: [", "line"), ("", "write []")):
        with open(file, "w") as f:
            f.write(text)
        until(lambda: [j for j in server.get("/api/1/targets")[1]["jobs"] if problem in j["problem"]])
        n = server.log().count("have been read again")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: server.log().count("have been read again") > n)
        time.sleep(0.2)
        assert problem in server.get("/api/1/targets")[1]["jobs"][0]["problem"]
        equal(targets(server)[a.address]["state"], "up")
    equal(server.stop(), 0)
    a.close()


def sighup_tries_what_was_left_alone():
    a = Target(mode="absent")
    server = Server("--config", config("scrape: [{job: j, interval: 1s, profiles: [heap], targets: ['%s']}]" % a.address))
    until(is_in(server, a.address, "down"))
    a.mode = "ok"
    time.sleep(1.5)
    equal((targets(server)[a.address]["state"], a.count("heap")), ("down", 1))
    server.process.send_signal(signal.SIGHUP)
    until(is_in(server, a.address, "up"), 5)
    equal(server.stop(), 0)
    a.close()


def a_process_takes_one_cpu_profile_at_a_time():
    a = Target()
    job = "{job: %s, interval: 2s, profiles: {cpu: {seconds: 1}}, targets: ['" + a.address + "']}"
    server = Server("--config", config("scrape: [%s]" % ", ".join(job % name for name in "abc")))

    def counts():
        return [p["ok"] for j in server.get("/api/1/targets")[1]["jobs"] for t in j["targets"] for p in t["profiles"]]

    until(lambda: min(counts()) >= 2, 30)
    equal(a.most, 1)
    equal(server.stop(), 0)
    a.close()


def speaks_tls_and_says_who_it_is():
    key, cert, secret = lib.TMP + "/key.pem", lib.TMP + "/cert.pem", lib.TMP + "/secret"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=t", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with open(secret, "w") as f:
        f.write("geheim\n")
    a, b, c = (Target(tls=(cert, key)) for _ in range(3))
    server = Server("--config", config("""
scrape:
  - {job: a, interval: 1s, profiles: [heap], scheme: https, targets: ["%s"], tls: {ca: %s},
     basic_auth: {username: me, password_file: secret}}
  - {job: b, interval: 1s, profiles: [heap], scheme: https, targets: ["%s"], tls: {insecure: true}, bearer_token_file: secret}
  - {job: c, interval: 1s, profiles: [heap], scheme: https, targets: ["%s"]}
  - {job: d, interval: 1s, profiles: [heap], scheme: https, targets: ["%s"], labels: {service: d}, tls: {ca: secret}}
""" % (a.address, cert, b.address, c.address, c.address)))
    until(lambda: targets(server)[a.address]["state"] == targets(server)[b.address]["state"] == "up")
    until(lambda: targets(server, job="c")[c.address]["state"] == "down")
    equal(a.headers["Authorization"], "Basic bWU6Z2VoZWlt")
    equal(b.headers["Authorization"], "Bearer geheim")
    assert "certificate" in targets(server, job="c")[c.address]["problem"]
    problem = until(lambda: targets(server, job="d")[c.address]["problem"])
    assert "CA specified by tls-ca: " in problem, problem
    assert "geheim" not in server.ask("/api/1/targets")[2].decode() + server.log()
    equal(server.stop(), 0)
    for t in (a, b, c):
        t.close()


def some_replicas_are_taken_at_a_time():
    some = [Target() for _ in range(5)]
    server = Server("--config", config("""
scrape: [{job: r, interval: 1s, replicas: 2, profiles: [heap], targets: %s}]
""" % json.dumps([t.address for t in some])))
    start = time.monotonic()
    until(lambda: sum(t.count("heap") for t in some) >= 14, 30)
    rounds = time.monotonic() - start + 1
    n = [t.count("heap") for t in some]
    assert sum(n) <= 2 * rounds + 2, (n, rounds)
    until(lambda: all(t.count("heap") for t in some), 30)  # each has its turn
    assert "resting" in {t["types"]["heap"]["state"] for t in targets(server).values()}
    equal(server.stop(), 0)
    for t in some:
        t.close()


def a_native_program_is_scraped():
    """Any program under the agent, which the release build has beside kiln."""
    agent, port = os.path.dirname(lib.KILN) + "/libkiln.so", free_port()
    program = subprocess.Popen(
        [sys.executable, "-c", "while True: sorted([str(i) for i in range(20000)])"],
        env={**os.environ, "LD_PRELOAD": agent, "KILN_PPROF_ADDR": "localhost:%d" % port, "KILN_HEAP_RATE": "4096"})
    try:
        address = "localhost:%d" % port
        server = Server("--config", config("""
scrape: [{job: native, interval: 2s, max_backoff: 2s, profiles: {cpu: {seconds: 1}, heap: , goroutine: }, targets: ["%s"]}]
""" % address))
        until(lambda: all(p["ok"] for p in targets(server)[address]["profiles"]), 30)
        equal({p["type"] for p in profiles(server, "{service=\"native\"}")}, {"cpu", "heap", "goroutine"})
        body = server.ask("/api/1/merge?service=native&type=cpu&format=top&sort=cum&limit=100000")[2].decode()
        assert "_PyEval_EvalFrameDefault" in body, body[:2000]  # which a stripped Python has, too
        equal(server.stop(), 0)
    finally:
        program.kill()
        program.wait()


# ---- targets that are not

def a_bad_target_costs_only_itself():
    good = [Target() for _ in range(3)]
    bad = {m: Target(mode=m) for m in ("garbage", "wrong", "bomb", "inner bomb", "endless", "redirect", "die", "hang", "drip",
                                       "absent", "busy")}
    bad["redirect"].elsewhere = good[0].address
    nobody = "127.0.0.1:%d" % free_port()
    server = Server("--max-memory", "512MB", "--max-unpacked", "4MB", "--config", config("""
scrape:
  - job: mixed
    interval: 1s
    timeout: 1500ms
    max_backoff: 4s
    profiles: {heap: , goroutine: }
    targets: %s
""" % json.dumps([t.address for t in good] + [t.address for t in bad.values()] + [nobody])))
    until(lambda: all(targets(server)[t.address]["state"] == "down" for t in bad.values()), 30)
    until(is_in(server, nobody, "down"))
    reasons = {m: targets(server)[t.address]["problem"] for m, t in bad.items()}
    for mode, text in (("garbage", "malformed"), ("wrong", "not of"), ("bomb", "more than"), ("inner bomb", "unpacks"),
                       ("endless", "more than|deadline"), ("redirect", "redirects are not followed"), ("die", "EOF|bytes"),
                       ("hang", "deadline exceeded"), ("drip", "deadline exceeded"), ("absent", "path-prefix"),
                       ("busy", r"already in use")):
        assert re.search(text, reasons[mode]), (mode, reasons[mode])
    assert "\x1b" not in reasons["busy"], reasons["busy"]
    assert "connection refused" in targets(server)[nobody]["problem"]
    before = [t.count("heap") for t in good]
    start = time.monotonic()
    time.sleep(4)
    for t, n in zip(good, before):
        took = t.count("heap") - n
        assert took >= (time.monotonic() - start) * (0.4 if SLOW > 1 else 0.7), (took, reasons)
    for t in good:
        now = targets(server)[t.address]
        equal((now["state"], now["types"]["heap"]["failed"], now["types"]["goroutine"]["failed"]), ("up", 0, 0))
    asked = bad["garbage"].count("heap")
    equal([p for p in profiles(server, "{service=\"mixed\"}") if
           {"key": "instance", "value": bad["garbage"].address} in p["labels"]], [])
    assert asked <= good[0].count("heap") * 0.7, "it is not left alone: %d" % asked
    assert "mixed %s is down" % nobody in server.log(), server.log()
    status, refusals = server.get("/api/1/refusals")
    assert any(r["client"] == bad["inner bomb"].address and r["what"] == "scrape mixed heap" for r in refusals["latest"]), refusals
    mixed = {r["reason"] for s in refusals["services"] if s["service"] == "mixed" for r in s["reasons"]}
    assert "format" in mixed and "max-unpacked" in mixed, refusals["services"]
    rss = int(re.search(r"VmHWM:\s*(\d+)", open("/proc/%d/status" % server.process.pid).read())[1])
    assert rss < 700 << 10 or lib.IS_SLOW, rss
    start = time.monotonic()
    equal(server.stop(), 0)  # with some of them hanging
    assert time.monotonic() - start < 2 * SLOW, time.monotonic() - start
    for t in good + list(bad.values()):
        t.close()


def an_endpoint_that_hangs_costs_only_itself():
    a = Target(goroutine="hang")
    server = Server("--config", config("""
scrape: [{job: j, interval: 1s, timeout: 1s, max_backoff: 8s, profiles: [heap, goroutine], targets: ["%s"]}]
""" % a.address))
    until(is_in(server, a.address, "up"))
    n, start = a.count("heap"), time.monotonic()
    until(lambda: targets(server)[a.address]["types"]["goroutine"]["failed"] >= 3, 30)
    took = a.count("heap") - n
    assert took >= (time.monotonic() - start) * 0.7 - 1, (took, time.monotonic() - start)
    assert time.monotonic() - start > 4, "it is not left alone"
    assert "is down" not in server.log(), server.log()
    equal(server.stop(), 0)
    a.close()


def what_the_server_refuses_is_no_failure_of_the_target():
    a = Target()
    server = Server("--max-series", "1", "--config", config("""
scrape: [{job: j, interval: 1s, profiles: [heap, goroutine], targets: ["%s"]}]
""" % a.address))
    until(is_in(server, a.address, "up"))
    until(lambda: a.count("heap") >= 6 and a.count("goroutine") >= 6, 12)  # neither is left alone
    types = targets(server)[a.address]["types"]
    equal([t["failed"] for t in types.values()], [0, 0])
    assert any("series" in t["problem"] for t in types.values()), types
    assert re.search(r'kiln_scrapes_total\{job="j",result="refused"\} \d', server.ask("/metrics")[2].decode())
    equal(server.stop(), 0)
    a.close()


def slow_liars_leave_memory_to_others():
    liars = [Target(mode="stall") for _ in range(12)]
    for t in liars:
        t.stall_bytes = 15 << 19
    server = Server("--max-memory", "256MB", "--config", config("""
scrape: [{job: liars, interval: 1s, timeout: 12s, profiles: [heap], targets: %s}]
""" % json.dumps([t.address for t in liars])))
    until(lambda: sum(t.nstalled for t in liars) >= 2)
    time.sleep(2)
    body = lib.profile({"f%d;main" % i: (1, 1) for i in range(20000)}, pack=False)
    for i in range(3):
        got = server.push(body, service="s", type="cpu", labels="n=%d" % i)
        assert isinstance(got, dict), got
    equal(server.stop(), 0)
    for t in liars:
        t.close()


def nobody_waits_for_a_black_hole():
    a = BlackHole()
    server = Server("--config", config("""
scrape: [{job: j, interval: 1h, timeout: 1s, profiles: {cpu: {seconds: 20}}, targets: ["%s"]}]
""" % a.address))
    until(lambda: targets(server))
    x = capture(server, target=a.address)[1]
    x = until(lambda: [y for y in [server.get("/api/1/capture/" + x["id"])[1]] if y["state"] == "failed"], 6)[0]
    assert "timeout" in x["problem"], x
    equal(server.stop(), 0)
    a.close()


def it_ends_while_profiles_come():
    some = [Target() for _ in range(20)]
    for i, t in enumerate(some):
        t.delay = 0.1 + i * 0.03
    server = Server("--config", config("""
scrape: [{job: j, interval: 1s, profiles: [heap], targets: %s}]
""" % json.dumps([t.address for t in some])))
    until(lambda: sum(t.count("heap") > 0 for t in some) > 10)
    equal(server.stop(), 0)
    for t in some:
        t.close()


def a_target_comes_back():
    a = Target()
    port = a.port
    server = Server("--config", config("""
scrape: [{job: j, interval: 1s, timeout: 1s, max_backoff: 2s, profiles: [heap, goroutine], targets: ["%s"]}]
""" % a.address))
    until(is_in(server, a.address, "up"))
    a.close()
    until(is_in(server, a.address, "down"))
    n = server.log().count("is down")
    a = Target(port)
    until(is_in(server, a.address, "up"))
    until(lambda: a.count("heap") >= 2 and a.count("goroutine") >= 2)
    a.mode = "hang"
    until(is_in(server, a.address, "down"))
    a.mode = "ok"
    until(is_in(server, a.address, "up"))
    equal((n, server.log().count("is down"), server.log().count("is up")), (1, 2, 3))
    equal(server.stop(), 0)
    a.close()


# ---- profile now

def capture(server, **params):
    status, _, body = server.ask("/api/1/capture?" + urllib.parse.urlencode(params), "POST")
    return status, json.loads(body)


def a_profile_is_taken_at_somebodys_wish():
    a = Target()
    server = Server("--config", config("""
scrape: [{job: now, interval: 1h, profiles: {cpu: {seconds: 2}, heap: }, targets: ["%s"], labels: {env: x}}]
""" % a.address))
    until(lambda: targets(server))
    status, first = capture(server, service="now", seconds=2)
    equal((status, first["target"], first["type"], first["seconds"]), (200, a.address, "cpu", 2))
    running = until(lambda: [x for x in [server.get("/api/1/capture/" + first["id"])[1]] if x["state"] == "running"])[0]
    is_as_described(server, running, "Capture")
    assert 0 < running["left"] <= 2 and running["profile"] is None, running
    second = capture(server, target=a.address, type="cpu", seconds=1)[1]
    waiting = server.get("/api/1/capture/" + second["id"])[1]
    equal(waiting["state"], "waiting")
    assert "another cpu profile" in waiting["problem"] and waiting["left"] > 1, waiting
    heap = capture(server, target=a.address, type="heap", seconds=5)[1]  # that need not wait
    until(lambda: server.get("/api/1/capture/" + heap["id"])[1]["state"] == "done", 2)
    equal(server.get("/api/1/capture/" + first["id"])[1]["state"], "running")
    done = until(lambda: [x for x in [server.get("/api/1/capture/" + second["id"])[1]] if x["state"] == "done"])[0]
    equal(a.most, 1)
    is_as_described(server, done, "Capture")
    assert done["left"] == 0 and done["started"] and done["ended"], done
    body = server.ask("/api/1/profiles/" + done["profile"])[2]
    equal(lib.values(body), {"work_profile;main": (5, 5)})
    meta = [p for p in profiles(server, "{service=\"now\",type=\"cpu\"}") if p["id"] == done["profile"]][0]
    equal({l["key"]: l["value"] for l in meta["labels"]}, {"env": "x", "instance": a.address})
    a.mode = "empty"
    x = capture(server, target=a.address, type="heap")[1]
    x = until(lambda: [y for y in [server.get("/api/1/capture/" + x["id"])[1]] if y["state"] == "empty"])[0]
    assert x["profile"] is None and "no samples" in x["problem"], x
    a.mode = "busy"
    x = capture(server, target=a.address, seconds=1)[1]
    x = until(lambda: [y for y in [server.get("/api/1/capture/" + x["id"])[1]] if y["state"] == "failed"])[0]
    assert "already in use" in x["problem"], x
    a.mode = "ok"
    for params, status, text in (({"target": "127.0.0.1:1"}, 404, "no such target"), ({"service": "x"}, 404, "no such target"),
                                 ({}, 400, "service or target"), ({"service": "now", "type": "x"}, 400, "knows"),
                                 ({"service": "now", "seconds": 601}, 400, "between"),
                                 ({"service": "now", "url": "http://x"}, 400, "no parameter")):
        got, answer = capture(server, **params)
        assert got == status and text in answer["error"], (params, got, answer)
    equal(server.get("/api/1/capture/nope")[0], 404)
    many = [capture(server, service="now", seconds=5) for _ in range(17)]
    equal([s for s, _ in many], [200] * 16 + [429])
    start = time.monotonic()
    equal(server.stop(), 0)
    assert time.monotonic() - start < 2 * SLOW, time.monotonic() - start
    a.close()


def roles_hold_here_too():
    a = Target()
    tokens = lib.TMP + "/tokens"
    with open(tokens, "w") as f:
        f.write("read rrrrrrrrrrrrrrrrrrrr r\nwrite wwwwwwwwwwwwwwwwwwww w\n")
    server = Server("--tokens", tokens, "--config", config("""
scrape: [{job: now, interval: 1h, profiles: [heap], targets: ["%s"]}]
""" % a.address))

    def ask(path, method, who):
        return server.ask(path, method, headers={"Authorization": "Bearer " + who * 20} if who else {})[0]

    equal([ask("/api/1/targets", "GET", w) for w in ("", "w", "r")], [401, 403, 200])
    equal([ask("/api/1/capture?service=now&type=heap", "POST", w) for w in ("", "r", "w")], [401, 403, 200])
    equal(server.stop(), 0)
    a.close()


# ---- the configuration

def none_at_a_time_is_a_mistake():
    for n in ("0", "-1", "100000"):
        done = subprocess.run([lib.KILN, "serve", "--data", lib.TMP + "/none", "--max-scrapes", n], capture_output=True,
                              text=True, timeout=10 * SLOW)
        assert "--max-scrapes must be between 1 and 10000" in done.stderr, done.stderr


def mistakes_in_the_configuration_are_named():
    job = "scrape:\n  - job: j\n    targets: ['h:1']\n"
    for text, wanted in (("scrape:\n  - targets: ['h:1']\n", r"line 2: the job has no name: write  - job: NAME"),
                         ("scrape:\n  - job: j\n", r"line 2: job j has neither targets nor files"),
                         (job + "    interval: 5x\n", r"line 4: interval: .*5x"),
                         (job + "    interval: 1ms\n", r"interval is between 1s and 1d"),
                         (job + "    intervall: 5s\n", r"line 4: a job has no \"intervall\""),
                         (job + "    profiles: [cpu, magic]\n", r"line 4: kiln does not know where targets have magic: write"),
                         (job + "    interval: 5s\n    profiles: {cpu: {seconds: 9}}\n", r"cpu takes 9s, and its interval is 5s"),
                         (job + "    profiles: {cpu: {second: 9}}\n", r"line 4: a profile has path, seconds and interval, no"),
                         (job + "    scheme: ftp\n", r"scheme is http or https, not \"ftp\""),
                         (job + "    tls: {ca: /nope}\n", r"tls is for scheme: https"),
                         (job + "    scheme: https\n    tls: {ca: /nope}\n", r"tls-ca: open /nope: no such file"),
                         (job + "    labels: [a]\n", r"line 4: labels are written as {name: value}"),
                         (job + "  - job: j\n    targets: ['h:2']\n", r"line 4: there are two jobs j"),
                         (job + "    targets: ['h:1']\n", r"line 4: targets is there twice"),
                         ("scrape:\n  - job: j\n    targets: ['http://h:1/x']\n", r"line 3: .* is no target: write host:port"),
                         ("scrape:\n  - job: j\n    targets: &a ['h:1']\n    files: *a\n", r"line 4: aliases"),
                         (job + "    basic_auth: {username: a, password: b}\n    bearer_token_file: /etc/passwd\n", r"only one")):
        path = config(text)
        error = lib.cli("serve", "--data", lib.TMP + "/none", "--config", path, ok=False)
        assert path in error and re.search(wanted, error), (text, error)


ALL = (scrapes_what_the_configuration_says, a_trace_is_kept_as_it_came, files_are_read_again_when_they_change, sighup_keeps_what_is_known,
       sighup_keeps_targets_of_a_file_that_is_wrong, sighup_tries_what_was_left_alone, a_process_takes_one_cpu_profile_at_a_time,
       speaks_tls_and_says_who_it_is, some_replicas_are_taken_at_a_time, a_bad_target_costs_only_itself,
       an_endpoint_that_hangs_costs_only_itself, what_the_server_refuses_is_no_failure_of_the_target,
       slow_liars_leave_memory_to_others, nobody_waits_for_a_black_hole, it_ends_while_profiles_come, a_target_comes_back,
       none_at_a_time_is_a_mistake, a_profile_is_taken_at_somebodys_wish, roles_hold_here_too, mistakes_in_the_configuration_are_named)
if not lib.IS_SLOW:  # with sanitizers there is no agent
    ALL += (a_native_program_is_scraped,)
chosen = [each for each in ALL if len(sys.argv) < 2 or each.__name__ in sys.argv[1:]]
with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:  # they wait most of the time
    for each, result in [(each, pool.submit(each)) for each in chosen]:
        check(each.__name__.replace("_", " "), result.result)
lib.done()
