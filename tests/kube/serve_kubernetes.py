#!/usr/bin/env python3
"""kiln serve with kubernetes: jobs against a real API server: pods that come, go, change, lie and hang; an API server
that goes away, forgets, and wants another token; secrets; 2,000 pods."""
import base64
import collections
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

import jsonschema

from cluster import ROOT, TMP, Cluster, annotations, done, ok, start_c, start_go, stored, top, until

sys.path.insert(0, ROOT + "/tests/e2e")
import serve_lib as lib
from serve_target import Target, free_port

AGENT = os.environ.get("AGENT", ROOT + "/build/libkiln.so")
SLOW = 3 if lib.IS_SLOW else 1
NPODS = 2000
cluster = Cluster()


def write(name, text):
    with open(TMP + "/" + name, "w") as out:
        out.write(text)
    return TMP + "/" + name


TOKEN = write("token", "viewer-token\n")
KUBECONFIG = write("kubeconfig", json.dumps(cluster.config({"tokenFile": TOKEN})))


def config(jobs):
    return write("kiln.yaml", "scrape:\n" + jobs)


def job(name, more="", **keys):
    keys = {"kubeconfig": KUBECONFIG, **{k.replace("_", "-"): v for k, v in keys.items()}}
    return "  - job: %s\n    interval: 2s\n    timeout: 1s\n    max_backoff: 4s\n    kubernetes: %s\n%s" % (
        name, json.dumps(keys), more)


def view(name=None):
    answer = server.get("/api/1/targets")[1]
    return next((j for j in answer["jobs"] if j["job"] == name), None) if name else answer


def targets(name):
    """{pod: target}"""
    return {label["value"]: t for t in view(name)["targets"] for label in t["labels"] if label["key"] == "pod"}


def soon(what, text, why=lambda: "", seconds=30):
    return ok(until(what, seconds * SLOW), text, why())


# ---- what is wrong with a configuration

def configs():
    for keys, text in (("{namespace: [a]}", "line 3: kubernetes-namespace is one value"),
                       ("{namespace: A/b}", "line 3: kubernetes-namespace is one name"),
                       ("{nope: 1}", 'line 3: a job has no "kubernetes-nope"'),
                       ("{pod-labels: 'a,,p d'}", "line 3: kubernetes-pod-labels: "),
                       ("{kubeconfig: /none/x}", "line 3: kubernetes: kubeconfig: open /none/x"),
                       ("{kubeconfig: %s, context: none}" % KUBECONFIG, "line 3: kubernetes: "),
                       ("[]", "line 3: kubernetes is written as {namespace: NAME}")):
        path = config("  - job: pods\n    kubernetes: %s\n" % keys)
        it = subprocess.run([lib.KILN, "serve", "--data", TMP + "/none", "--listen", "localhost:0", "--config", path],
                            capture_output=True, text=True, timeout=60)
        ok(it.returncode == 1 and "scrape job pods: " + text in it.stderr, "wrong: " + keys, it.stderr)


# ---- real programs

def go_and_c():
    port, c_port = free_port(), free_port()
    programs = [start_go("127.0.0.2:%d" % port)]
    cluster.pod("go-1", "shop", {"profefe.com/enable": "true", "profefe.com/port": str(port)}, {"app": "go"},
                ip="127.0.0.2", image="registry:5000/shop/go:1.2.3", node="n7")
    if os.path.exists(AGENT):
        programs.append(start_c("127.0.0.3:%d" % c_port, AGENT))
        cluster.pod("c-1", "shop", annotations("pprof", "c", profiles="cpu,heap,threads", labels="tier=back"),
                    {"app": "c"}, ip="127.0.0.3", ports=[("http", 80), ("pprof", c_port)], image="c@sha256:ab")
    want = {"namespace": "shop", "pod": "go-1", "node": "n7", "container": "main", "image": "registry:5000/shop/go:1.2.3",
            "version": "1.2.3", "app": "go", "instance": "127.0.0.2:%d" % port}
    soon(lambda: set(stored(server, "go-1")) == {"cpu", "heap"}, "profiles of a Go program come, for the pod's name", lambda: view("shop"))
    ok(stored(server, "go-1").get("cpu") == want, "with the cluster's labels", stored(server, "go-1"))
    soon(lambda: "main.busyInGo" in top(server, "go-1", "cpu"), "its functions are in them", lambda: top(server, "go-1", "cpu")[:500])
    if os.path.exists(AGENT):
        want = {"namespace": "shop", "pod": "c-1", "node": "node", "container": "main", "image": "c@sha256:ab",
                "version": "sha256:ab", "app": "c", "tier": "back", "instance": "127.0.0.3:%d" % c_port}
        soon(lambda: stored(server, "c") == {t: want for t in ("cpu", "heap", "threads")}, "those of a C program under the agent, too",
             lambda: (stored(server, "c"), view("shop")))
        soon(lambda: "busy_in_c" in top(server, "c", "cpu"), "with its functions", lambda: top(server, "c", "cpu")[:500])
    for process in programs:
        process.kill()
    cluster.delete("go-1", "shop")
    if os.path.exists(AGENT):
        cluster.delete("c-1", "shop")
    soon(lambda: not view("shop")["targets"], "pods that go away are no targets any more", lambda: view("shop"))


# ---- pods change

def reloads():
    """Whoever watched before ends."""
    def count():
        return len(os.listdir("/proc/%d/task" % server.process.pid))
    soon(lambda: view("shop")["problem"] == "", "all is well")
    before, began = count(), time.monotonic()
    for i in range(10):
        n = server.log().count("have been read again")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: server.log().count("have been read again") > n, 10)
    server.get("/api/1/targets")
    took = time.monotonic() - began
    soon(lambda: count() <= before + 1, "after ten SIGHUPs there is one that watches", lambda: (before, count()), 10)
    print("# ten SIGHUPs took %.2f s; %d threads before, %d after" % (took, before, count()))
    ok(took < 20 * SLOW, "and they took little time", took)


def changes():
    a, b = Target(), Target()
    cluster.pod("p", "shop", annotations(a.port, "one", profiles="heap"))
    soon(lambda: set(stored(server, "one")) == {"heap"}, "only the types that annotations say", lambda: (stored(server, "one"), view("shop")))
    cluster.annotate("p", {"kiln.dev/port": str(b.port), "kiln.dev/service": "two"}, "shop")
    soon(lambda: stored(server, "two"), "a pod changes port and service", lambda: view("shop"))
    n = a.count("heap")
    cluster.annotate("p", {"kiln.dev/profiles": "goroutine,cpu", "kiln.dev/seconds": "2", "kiln.dev/path": "/x/pprof"}, "shop")
    soon(lambda: set(stored(server, "two")) == {"heap", "goroutine", "cpu"}, "its types, seconds and path", lambda: view("shop"))
    ok(a.count("heap") == n and any(x[:2] == ("profile", "2") for x in b.asked), "nobody asks where it was", b.asked)
    soon(lambda: b.count("profile") > 3, "its CPU is profiled again and again")
    ok(b.most == 1, "one at a time", b.most)
    cluster.annotate("p", {"kiln.dev/enable": "false"}, "shop")
    soon(lambda: not view("shop")["targets"], "it wants it no more", lambda: view("shop"))
    cluster.delete("p", "shop")
    for target in (a, b):
        target.close()


# ---- bad pods

def bad_ones():
    good, modes = Target(), {mode: Target(mode=mode) for mode in ("hang", "busy", "garbage", "die", "drip", "wrong")}
    cluster.pod("good", "shop", annotations(good.port, "good-one", profiles="heap"))
    for mode, target in modes.items():
        cluster.pod(mode, "shop", annotations(target.port, "bad-" + mode))
    cluster.pod("gone", "shop", annotations(free_port(), "bad-gone"))
    cluster.pod("port", "shop", {"kiln.dev/enable": "true", "kiln.dev/port": "http"})
    cluster.pod("word", "shop", {"profefe.com/enable": "yes"})
    cluster.pod("long", "shop", {"kiln.dev/enable": "true", "kiln.dev/labels": ",".join("a%d=%s" % (i, "x" * 900) for i in range(4)),
                                 "kiln.dev/profiles": "\x1b[31m"})
    down = [*modes, "gone"]
    soon(lambda: all(targets("shop").get(p, {}).get("state") == "down" for p in down), "bad pods are down, each by itself",
         lambda: {p: (t["state"], t["problem"]) for p, t in targets("shop").items()}, 60)
    n = good.count("heap")
    time.sleep(10)
    ok(targets("shop")["good"]["state"] == "up" and good.count("heap") - n >= 4, "while the good one is taken all the time",
       good.count("heap") - n)
    ok(not any(stored(server, "bad-" + p) for p in down), "and they give nothing", [stored(server, "bad-" + p) for p in down])
    found = view("shop")
    lines = "\n".join(found["left_out"])
    for text in ('pod shop/port: annotation kiln.dev/port is "http": write a number',
                 'pod shop/word: annotation profefe.com/enable is "yes": write "true"',
                 'pod shop/long: annotation kiln.dev/profiles is "\\x1b[31m"'):
        ok(text in lines and sum(text.split(" is ")[0] in line for line in server.lines) == 1, "it says, and logs once: " + text,
           (found["left_out"], [line for line in server.lines if "method=" not in line]))
    ok(len(found["left_out"]) == 3 and found["more_left_out"] == 0 and found["problem"].startswith("3 are left out; the first: pod shop/"),
       "and tells how many", found["problem"])
    doc = json.loads(server.ask("/api/1/openapi.json")[2])
    jsonschema.validate(view(), {"$ref": "#/components/schemas/Targets", "components": doc["components"]})
    modes["busy"].mode = "ok"
    cluster.annotate("port", {"kiln.dev/port": str(good.port), "kiln.dev/service": "mended"}, "shop")
    for pod in ("hang", "garbage", "die", "drip", "wrong", "gone", "word", "long"):
        cluster.delete(pod, "shop")
    soon(lambda: stored(server, "mended") and stored(server, "bad-busy") and view("shop")["problem"] == "" and set(targets("shop")) ==
         {"good", "busy", "port"}, "all is well when they are mended or gone", lambda: view("shop"))
    for pod in ("good", "busy", "port"):
        cluster.delete(pod, "shop")
    for target in [good, *modes.values()]:
        target.close()


# ---- secrets

def secrets():
    target, data = Target(), lambda text: {"data": {"token": base64.b64encode(text).decode()}}
    path = "/api/v1/namespaces/shop/secrets"
    cluster.pod("p", "shop", annotations(target.port, "sec", auth_secret="pprof", profiles="heap"))
    problem = lambda: targets("shop").get("p", {}).get("problem", "")
    soon(lambda: "secret pprof: " in problem() and "forbidden" in problem(), "who may not read secrets is told so", problem)
    cluster.allow("viewer", ["get"], ["secrets"])
    soon(lambda: "secret pprof: " in problem() and "not found" in problem(), "or that there is none", problem)
    cluster.send("POST", path, {"metadata": {"name": "pprof"}, **data(b"open-sesame\n")})
    soon(lambda: stored(server, "sec"), "a token of a secret is sent", problem)
    ok(target.headers.get("Authorization") == "Bearer open-sesame", "as it is", target.headers)
    cluster.annotate("p", {"kiln.dev/auth-user": "ann", "kiln.dev/auth-secret": "pprof/token"}, "shop")
    basic = lambda text: "Basic " + base64.b64encode(text).decode()
    soon(lambda: target.headers.get("Authorization") == basic(b"ann:open-sesame"), "or a password", lambda: target.headers)
    cluster.send("PATCH", path + "/pprof", data(b"other"))
    soon(lambda: target.headers.get("Authorization") == basic(b"ann:other"), "and a new one when it changes", lambda: target.headers, 60)
    ok("sesame" not in server.log() and "sesame" not in json.dumps(view()), "nobody says what it is")
    cluster.delete("p", "shop")
    target.close()


# ---- the API server goes away

def away():
    target, late = Target(), Target()
    cluster.pod("stays", "shop", annotations(target.port, "stays", profiles="heap"))
    soon(lambda: stored(server, "stays"), "before", lambda: view("shop"))
    for i in range(20):
        cluster.namespace("noise-%d" % i)
    cluster.end(cluster.apiserver)
    soon(lambda: "scrape job shop: kubernetes: " in view("shop")["problem"], "the API server is away, and the job says so", lambda: view("shop"))
    n = target.count("heap")
    soon(lambda: target.count("heap") > n + 2, "targets are profiled meanwhile")
    server.process.send_signal(signal.SIGHUP)
    soon(lambda: "have been read again" in server.log(), "jobs are read again meanwhile", server.log, 10)
    ok(set(targets("shop")) == {"stays"}, "and the targets stay", view("shop"))
    n = target.count("heap")
    soon(lambda: target.count("heap") > n + 2, "and are profiled")
    with open(cluster.file("tokens.csv")) as f:
        tokens = f.read()
    with open(cluster.file("tokens.csv"), "w") as f:
        f.write(tokens.replace("viewer-token", "fresh-token"))
    cluster.compact()
    cluster.start_apiserver()
    soon(lambda: "401" in view("shop")["problem"], "its token has expired", lambda: view("shop"), 60)
    ok(set(targets("shop")) == {"stays"}, "and the targets stay", view("shop"))
    cluster.pod("late", "shop", annotations(late.port, "late", profiles="heap"))
    write("token", "fresh-token\n")
    soon(lambda: view("shop")["problem"] == "" and stored(server, "late"), "with a new token all goes on", lambda: view("shop"), 90)
    cluster.delete("stays", "shop")
    soon(lambda: set(targets("shop")) == {"late"}, "what has changed is seen", lambda: view("shop"))
    # Who watches from what etcd has forgotten is told 410.
    for i in range(20):
        cluster.namespace("more-noise-%d" % i)
    cluster.end(cluster.apiserver)
    cluster.compact()
    cluster.start_apiserver()
    cluster.delete("late", "shop")
    cluster.pod("last", "shop", annotations(late.port, "last", profiles="heap"))
    soon(lambda: set(targets("shop")) == {"last"} and stored(server, "last") and view("shop")["problem"] == "",
         "after a restart that has forgotten all, it lists anew", lambda: view("shop"), 90)
    counted = [line for line in cluster.send("GET", "/metrics", raw=True).decode().splitlines() if
               line.startswith("apiserver_request_total{") and 'resource="pods"' in line and ("LIST" in line or 'code="410"' in line)]
    print("# " + "\n# ".join(counted))
    cluster.delete("last", "shop")
    for t in (target, late):
        t.close()


# ---- many

def rss():
    with open("/proc/%d/status" % server.process.pid) as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))


def many():
    interval = 60
    target = Target(host="0.0.0.0")
    config(job("fleet", "    profiles: [heap]\n", namespace="fleet").replace("interval: 2s", "interval: %ds" % interval)
           .replace("timeout: 1s", "timeout: 10s"))
    before = rss()
    server.process.send_signal(signal.SIGHUP)
    soon(lambda: view("fleet"), "another job")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cluster.pod("pod-%d" % i, "fleet", annotations(target.port, "svc-%d" % (i % 50)), {"app": "x"},
                                            ip="127.1.%d.%d" % (i // 250, i % 250 + 1)), range(NPODS)))
    made = time.monotonic()
    got = soon(lambda: len(view("fleet")["targets"]) == NPODS, "all are found", lambda: len(view("fleet")["targets"]), 60)
    seen = time.monotonic()
    print("# %d pods made in %.1f s, all are targets %.1f s later: %s" % (NPODS, made - began, seen - made, got))
    time.sleep(interval + 5)
    end = time.monotonic() - 2
    with target.lock:
        times = [t for _, _, t in target.asked if end - interval <= t < end]
    per_second = collections.Counter(int(t - end + interval) for t in times)
    mean, most = len(times) / interval, max(per_second.values())
    after = rss()
    print("# in %d s %d profiles: %.1f a second, at most %d, at least %d; RSS %.1f MB before, %.1f MB after" % (
        interval, len(times), mean, most, min(per_second[i] for i in range(interval)), before, after))
    ok(abs(len(times) - NPODS) <= NPODS * 0.03, "each is profiled once in the interval", len(times))
    ok(most <= 2 * mean or lib.IS_SLOW, "they are spread evenly", (mean, most))
    ok(after - before <= 64 or lib.IS_SLOW, "and take little memory", (before, after))
    states = collections.Counter(t["state"] for t in view("fleet")["targets"])
    ok(states["up"] >= NPODS * 0.99, "all are up", states)
    began = time.monotonic()
    status = server.stop()
    ok(status == 0 and time.monotonic() - began < 5, "it ends at once", (status, time.monotonic() - began))
    target.close()


cluster.namespace("shop")
cluster.namespace("fleet")
cluster.allow("viewer", ["get", "list", "watch"], ["pods"])
configs()
server = lib.Server("--config", config(job("shop", "    profiles: {cpu: {seconds: 1}, heap: }\n", namespace="shop", pod_labels="app")),
                    "--rate-profiles", "0")
for test in (go_and_c, reloads, changes, bad_ones, secrets, away, many):
    if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
        test()
done()
