"""kiln collect of fake targets, good ones and bad ones, into a real server; and of the kubectl plugin all that needs no
cluster: get, load, top, diff, flame, install --dry-run."""
import datetime
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import serve_lib as lib
from serve_lib import Server, check, equal
from serve_target import Target, free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BIN = lib.TMP + "/bin"
os.mkdir(BIN)
for name in ("kubectl-kiln", "kubectl-profefe", "kubectl_complete-kiln", "kprofefe"):
    os.symlink(lib.KILN, BIN + "/" + name)
SLOW = 3 if lib.IS_SLOW else 1


def run(*args, env=None):
    return subprocess.run(args, capture_output=True, text=True, errors="replace", timeout=120,
                          env={**os.environ, **(env or {})})


def collect(*args, status=0, **more):
    done = run(lib.KILN, "collect", *args, **more)
    assert done.returncode == status, "status %d: %s%s" % (done.returncode, done.stdout, done.stderr)
    return done


def plugin(*args, status=0, program="kubectl-kiln", **more):
    done = run(BIN + "/" + program, *args, **more)
    assert done.returncode == status, "status %d: %s%s" % (done.returncode, done.stdout, done.stderr)
    return done


def stored(server, service):
    """{type: labels}"""
    found = server.get("/api/1/profiles", service=service, **{"from": "now-1h"})[1]["profiles"]
    return {p["type"]: {x["key"]: x["value"] for x in p["labels"]} for p in found}


# ---- collect

def takes_all():
    server, one, two = Server(), Target(), Target()
    types = ["cpu", "heap", "goroutine", "mutex", "block"]
    done = collect("--to", server.url, "shop=" + one.address, "http://%s/debug/pprof/heap" % two.address,
                   "--types", ",".join(types), "--seconds", "1")
    equal(stored(server, "shop"), {t: {"instance": one.address} for t in types})
    equal(sorted(stored(server, two.address.replace(":", "_"))), sorted(types))
    equal([n for n, _, _ in one.asked], ["profile", "heap", "goroutine", "mutex", "block"])
    equal(one.asked[0][1], "1")
    assert re.search(r"^shop=%s +shop +5 +0 +0 +0 " % one.address, done.stdout, re.M), done.stdout
    assert "2 targets: 10 stored, 0 empty, 0 absent, 0 failed" in done.stdout, done.stdout
    body = server.ask("/api/1/merge?service=shop&type=cpu")[2]
    equal(lib.values(body), {"work_profile;main": (5, 5)})


def bad_ones_cost_themselves():
    server = Server()
    bad = {mode: Target(mode=mode) for mode in ("hang", "die", "endless", "busy", "garbage", "wrong", "redirect", "drip")}
    good, empty, part, none = Target(), Target(mode="empty"), Target(heap="absent"), Target(mode="absent")
    targets = ["%s=%s" % (m, t.address) for m, t in bad.items()]
    targets += ["good=" + good.address, "empty=" + empty.address, "part=" + part.address, "none=" + none.address,
                "down=127.0.0.1:%d" % free_port()]
    start = time.monotonic()
    done = collect("--to", server.url, "--types", "cpu,heap", "--seconds", "1", "--timeout", "3s", "--retries", "1",
                   "-o", "json", *targets, status=1)
    assert time.monotonic() - start < 20 * SLOW, "it takes too long"
    result = {(p["service"], p["type"]): p for p in json.loads(done.stdout)["profiles"]}
    equal(sorted(stored(server, "good")), ["cpu", "heap"])
    equal({t: result["part", t]["result"] for t in ("cpu", "heap")}, {"cpu": "ok", "heap": "absent"})
    equal(result["empty", "cpu"]["result"], "empty")
    equal(result["none", "cpu"]["result"], "absent")
    for mode in [*bad, "down"]:
        assert result[mode, "cpu"]["result"] in ("wrong", "unreachable"), result[mode, "cpu"]
        equal(stored(server, mode), {})
    assert "no profile" in result["garbage", "heap"]["problem"]
    assert "not of cpu" in result["wrong", "cpu"]["problem"], result["wrong", "cpu"]
    assert "redirects are not followed" in result["redirect", "heap"]["problem"]
    assert "?[31mcpu profiling already" in result["busy", "cpu"]["problem"]
    equal(bad["busy"].count("profile"), 2)  # once more
    equal(bad["garbage"].count("profile"), 1)  # that does not pass
    assert all(t.most <= 1 for t in bad.values() if t is not bad["hang"])
    for t in bad.values():
        t.close()


def empty_and_absent_are_fine():
    server, empty, part, none = Server(), Target(mode="empty"), Target(mutex="absent"), Target(mode="absent")
    args = ["--to", server.url, "--types", "heap,mutex"]
    collect(*args, empty.address, part.address)
    done = collect(*args, none.address, status=1)
    assert "there is nothing at http://%s/debug/pprof" % none.address in done.stdout, done.stdout


def tries_again():
    server, target = Server(), Target(mode="busy")
    process = subprocess.Popen([lib.KILN, "collect", "--to", server.url, "--types", "heap", "--retries", "5",
                                "x=" + target.address], stdout=subprocess.PIPE)
    while not target.count("heap"):
        time.sleep(0.02)
    target.mode = "ok"
    equal(process.wait(60), 0)
    equal(target.count("heap"), 2)
    equal(list(stored(server, "x")), ["heap"])


def pushes_again():
    """What has been taken is not taken again when the server is not there yet."""
    port, target = free_port(), Target()
    process = subprocess.Popen([lib.KILN, "collect", "--to", "http://127.0.0.1:%d" % port, "--types", "heap", "--retries",
                                "20", "--timeout", "1m", "x=" + target.address], stdout=subprocess.PIPE)
    while not target.count("heap"):
        time.sleep(0.02)
    time.sleep(0.3)
    server = Server(listen="localhost:%d" % port)
    equal(process.wait(60), 0)
    equal(target.count("heap"), 1)
    equal(list(stored(server, "x")), ["heap"])


def labels_are_exact():
    server, target = Server(), Target()
    collect("--to", server.url + "/", "--types", "heap", "--labels", "a= b+c%3D ,ü=x", "x=" + target.address, status=2)
    collect("--to", server.url + "/", "--types", "heap", "--labels", "a=b=c%3D&d é,e.f/g=1+1", "x=" + target.address)
    equal(stored(server, "x"), {"heap": {"instance": target.address, "a": "b=c%3D&d é", "e.f/g": "1+1"}})


def is_interrupted():
    server, target = Server(), Target()
    process = subprocess.Popen([lib.KILN, "collect", "--to", server.url, "--seconds", "60", "x=" + target.address],
                               stdout=subprocess.PIPE, text=True)
    while not target.count("profile"):
        time.sleep(0.02)
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    equal(process.wait(30), 1)
    assert time.monotonic() - start < 5 * SLOW
    assert "0 stored" in process.stdout.read()


def wrong_calls():
    for args, text in ((["--nope", "h:1"], "there is no option --nope"), ([], "no target given"), (["-A", "h:1"], "--kubernetes is missing"),
                       (["--types", "x", "h:1"], "write x=PATH"), (["--types", "cpu,cpu", "h:1"], "cpu is there twice"),
                       (["--seconds", "0", "h:1"], "--seconds"), (["--workers", "65", "h:1"], "--workers"),
                       (["--retries", "-1", "h:1"], "--retries"), (["--timeout", "0", "h:1"], "--timeout"),
                       (["-o", "yaml", "h:1"], "table or json"), (["--labels", "a", "h:1"], "NAME=VALUE"),
                       (["--pod-labels", "pod", "h:1"], "cannot be the name"), (["--token-file", "/none", "h:1"], "/none")):
        assert text in collect(*args, status=2).stderr, args
    assert "--kubernetes" in collect("--help").stdout
    assert "--profefe-hostport" not in collect("--help").stdout
    server, target = Server(), Target()
    collect("-profefe-hostport=" + server.url, target.address, "--types", "heap", "--cache-dir", "x", "-f", "y", "-R",
            "--tracer", "dev", "----tracer.jaeger-address", "z")


def knows_who_it_is():
    tokens = lib.TMP + "/tokens"
    with open(tokens, "w") as f:
        f.write("read,write secret-of-twenty-two me\n")
    server, target = Server("--tokens", tokens), Target()
    args = ["--to", server.url, "--types", "heap", "x=" + target.address]
    assert "401" in collect(*args, status=1).stdout
    collect(*args, env={"KILN_TOKEN": "secret-of-twenty-two"})
    plugin("get", "services", "--kiln", server.url, status=1)
    assert "x " in plugin("get", "services", "--kiln", server.url, env={"KILN_TOKEN": "secret-of-twenty-two"}).stdout


# ---- pods, of something that answers like an API server; tests/kube has a real one

class FakeApi:
    """Lists pods, and has a proxy to them; no port-forward."""

    def __init__(self, *pods):
        self.pods, self.asked = pods, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.asked.append(self.path)
                status, body = outer.answer(urllib.parse.urlsplit(self.path).path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.env = {"KUBECONFIG": "%s/kubeconfig%d" % (lib.TMP, next(lib.names))}
        with open(self.env["KUBECONFIG"], "w") as f:
            json.dump({"current-context": "t", "clusters": [{"name": "c", "cluster": {
                "server": "http://127.0.0.1:%d" % self.server.server_port}}], "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "t", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}]}, f)

    def answer(self, path):
        found = [p for p in self.pods if path.endswith("/pods/" + p["metadata"]["name"])]
        proxied = re.match(r"/api/v1/namespaces/ns/pods/http:\w+:(\d+)/proxy(/.*)", path)
        if path == "/api/v1/namespaces/ns/pods":
            return 200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": self.pods}).encode()
        if proxied:
            with urllib.request.urlopen("http://127.0.0.1:%s%s" % proxied.groups()) as answer:
                return 200, answer.read()
        return (200, json.dumps(found[0]).encode()) if found else (404, b'{"message": "there is none"}')


def pod(name, port, **annotations):
    annotations = {"kiln.dev/" + k: v for k, v in annotations.items()}
    return {"metadata": {"name": name, "namespace": "ns", "uid": "u-" + name, "annotations": {"kiln.dev/port": str(port), **annotations}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "shop:1.2"}]},
            "status": {"phase": "Running", "podIP": "127.0.0.1"}}


def takes_pods():
    server, one, two = Server(), Target(), Target()
    api = FakeApi(pod("a", one.port, enable="true"), pod("b", two.port), pod("c", "x", enable="true"))
    args = ["--kubernetes", "--to", server.url, "--types", "heap"]
    done = collect(*args, env=api.env, status=1)
    assert 'pod ns/c: annotation kiln.dev/port is "x": write a number' in done.stdout, done.stdout
    assert "1 target: 1 stored, 0 empty, 0 absent, 0 failed, 1 pod passed over" in done.stdout, done.stdout
    labels = {"namespace": "ns", "pod": "a", "node": "n1", "container": "main", "image": "shop:1.2", "version": "1.2"}
    equal((stored(server, "a"), stored(server, "b")), ({"heap": labels}, {}))
    collect(*args, "b", env=api.env)
    equal(stored(server, "b"), {"heap": {**labels, "pod": "b"}})
    assert "404" in collect(*args, "none", env=api.env, status=1).stdout
    collect(*args, "-A", "b", env=api.env, status=2)


def captures_by_proxy():
    target, folder = Target(), lib.TMP + "/captured"
    api = FakeApi(pod("a", target.port, enable="true"))
    done = plugin("capture", "--types", "heap,goroutine", "--output-dir", folder, env=api.env)
    equal(sorted(re.sub(r"-\d+\.", ".", f) for f in os.listdir(folder)), ["profile-goroutine-a.pb.gz", "profile-heap-a.pb.gz"])
    equal(sorted(done.stdout.split()), sorted(folder + "/" + f for f in os.listdir(folder)))
    assert any("/portforward" in path for path in api.asked), api.asked
    target.mode = "garbage"
    plugin("capture", "a", "--types", "heap", "--output-dir", folder, env=api.env, status=1)
    equal(len(os.listdir(folder)), 2)


# ---- kubectl kiln

def now_minus(hours):
    return datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=hours)


def filled():
    """Profiles of web, of now, of 2 hours ago, and of 30 hours ago; with more in b than before."""
    server = Server()
    for version, hours, stacks in (("1.0", 30, {"a;main": (90, 900), "b;main": (10, 100)}),
                                   ("1.1", 2, {"a;main": (5000, 50000), "b;main": (1000, 10000)}),
                                   ("1.2", 0.1, {"a;main": (1000, 10000), "b;main": (5000, 50000)})):
        body = lib.profile(stacks, time=int(now_minus(hours).timestamp() * 1e9), duration=10**10)
        server.push(body, service="web", type="cpu", labels="version=%s,namespace=shop" % version)
    return server


def gets():
    server = filled()
    to = ["--profefe-hostport", server.url]
    done = plugin("get", "services", *to)
    assert re.search(r"^NAME +SERIES +PROFILES +FIRST +LAST\nweb +3 +3 ", done.stdout), done.stdout
    for what in ("types", "profile-types"):
        assert re.search(r"^cpu +3 +3 ", plugin("get", what, *to).stdout, re.M)
    equal(json.loads(plugin("get", "services", *to, "-o", "json").stdout)["services"][0]["name"], "web")
    for args, n in ((["--from=-24h"], 2), (["--from", "24h"], 2), ([], 2), (["--from", "-1h"], 1), (["--from", "now-3h"], 2),
                    (["--from", "3d"], 3), (["--from", now_minus(3).isoformat()], 2), (["--from", "3d", "--to", "-24h"], 1),
                    (["--from", "3d", "--to", "24h"], 1), (["--from", "24h", "--to", "0m"], 2), (["--limit", "1"], 1),
                    (["--query", "version=1.2"], 1), (["-q", '{version="1.2"}', "-n", "shop"], 1), (["-n", "other"], 0),
                    (["-n", "other", "-A"], 2), (["--service", "web", "--profile-type", "cpu"], 2), (["--type", "heap"], 0)):
        for program in ("kubectl-kiln", "kubectl-profefe"):
            done = plugin("get", "profiles", *to, *args, program=program)
            equal((args, max(0, done.stdout.count("\n") - 1)), (args, n))
            if not n:
                equal(done.stderr, "nothing found\n")
    done = plugin("get", "profiles", *to)
    assert re.search(r"^\S+ +cpu +web +\S+Z +2 +namespace=shop,version=1\.2$", done.stdout, re.M)
    assert "is no time" in plugin("get", "profiles", *to, "--from", "2x", status=2).stderr
    assert "get what?" in plugin("get", "cows", *to, status=2).stderr
    done = plugin("get", "profiles", "--to", "http://127.0.0.1:1", status=1)  # an address is no time
    assert "connection refused" in done.stderr


def loads():
    server, folder = Server(), lib.TMP + "/load"
    os.mkdir(folder)
    files = {"c.pb.gz": (lib.CPU, "cpu"), "h.pb.gz": (lib.HEAP, "heap"), "g.pb.gz": ((("goroutine", "count"),), "goroutine"),
             "profile-mutex-web-1.pb.gz": ((("contentions", "count"), ("delay", "nanoseconds")), "mutex"),
             "block.pb": ((("contentions", "count"), ("delay", "nanoseconds")), "block"),
             "t.pb.gz": ((("threadcreate", "count"),), "threadcreate")}
    for name, (types, _) in files.items():
        with open("%s/%s" % (folder, name), "wb") as f:
            f.write(lib.profile({"a;main": (3,) * len(types)}, types, time=time.time_ns()))
    paths = ["%s/%s" % (folder, name) for name in files]
    done = plugin("load", "--service", "s/1", "--to", server.url, "--labels", "version=1", *paths)
    equal(stored(server, "s/1"), {t: {"version": "1"} for _, t in files.values()})
    found = re.search(r"^Profile \(%s\) stored: (%s/api/0/profiles/\S+) type=heap$" % (re.escape(paths[1]), server.url),
                      done.stdout, re.M)
    equal(lib.values(server.ask(urllib.parse.urlsplit(found[1]).path)[2], 4), {"a;main": (3,) * 4})
    with open(folder + "/odd.pb.gz", "wb") as f:
        f.write(lib.profile({"a;main": (3,)}, (("cows", "count"),)))
    done = plugin("load", folder + "/odd.pb.gz", folder + "/none", paths[0], "--service", "odd", "--kiln", server.url, status=1)
    assert "odd.pb.gz: what is it of? Say --type" in done.stderr and "/none" in done.stderr, done.stderr
    equal(list(stored(server, "odd")), ["cpu"])
    done = plugin("load", folder + "/odd.pb.gz", "--type", "cows", "--service", "odd", "--kiln", server.url, "-o", "json")
    equal(json.loads(done.stdout)[0]["type"], "cows")
    plugin("load", paths[0], "--kiln", server.url, status=2)
    plugin("load", "--service", "x", status=2)
    plugin("load", "--service", "x", paths[0], "--kiln", "http://127.0.0.1:1", status=1)


def tops_and_diffs():
    server = filled()
    to = ["--kiln", server.url]
    done = plugin("top", *to, "--from", "3h")
    assert re.search(r"^ *60\S+ +50.00% .*a$", done.stdout, re.M) and done.stdout.split()[-4:] == ["120us", "0", "1", "main"], done.stdout
    equal(len(json.loads(plugin("top", *to, "--from", "3h", "-o", "json", "--limit", "1").stdout)["rows"]), 1)
    assert re.search(r" 1\.1 +a$", plugin("top", *to, "--from", "3h", "--by", "version").stdout, re.M)
    args = ["--service", "web", "--from", "2d", "--old", "version=1.1", "--new", "version=1.2"]
    done = plugin("diff", *to, *args)
    assert re.search(r"\+66\.67% +more +b$", done.stdout, re.M) and re.search(r"-66\.67% +less +a$", done.stdout, re.M), done.stdout
    done = plugin("diff", *to, "--service", "web", "--from", "1h", "--old-from", "3h", "--old-to", "1h", "-o", "json")
    equal({f["name"]: f["verdict"] for f in json.loads(done.stdout)["comparison"]["functions"]}, {"a": "less", "b": "more"})
    assert "say what is compared" in plugin("diff", *to, status=2).stderr
    for more in ([], args[2:]):
        url = plugin("flame", *to, *args[:4], "-n", "shop", *more).stdout.strip()
        assert url.startswith(server.url + "/ui/flamegraph?a=")
        status, _, body = server.ask(url[len(server.url):])
        equal((status, b"<html" in body or b"<!doctype" in body.lower()), (200, True))
        api = url[len(server.url):].replace("/ui/flamegraph?", "/ui/api/v1/top?")
        names = server.ask(api)[2]
        assert b'"a"' in names and b'"b"' in names, names[:300]


def installs():
    with open(ROOT + "/packaging/kubernetes/kustomization.yaml") as f:
        files = re.findall(r"^  - (.*\.yaml)$", f.read(), re.M)
    want = "".join(open(ROOT + "/packaging/kubernetes/" + name).read() for name in files)
    equal(plugin("install", "--dry-run").stdout, want)
    other = plugin("install", "--dry-run", "--image", "my/kiln:2").stdout
    equal(other, want.replace("image: kiln:latest", "image: my/kiln:2"))
    assert other.count("image: my/kiln:2") == 2
    scrape = plugin("install", "--dry-run", "--scrape").stdout
    assert scrape.endswith(open(ROOT + "/packaging/kubernetes/scrape.yaml").read())
    assert "#scrape" not in scrape and "not with" not in scrape and scrape.count("automountServiceAccountToken: true") == 2, scrape
    assert "            - --config=/etc/kiln/kiln.yaml\n" in scrape and "automountServiceAccountToken: false" not in scrape, scrape
    assert "no name of an image" in plugin("install", "--dry-run", "--image", "a b", status=2).stderr


def starts_as_installed():
    for more in ([], ["--scrape"]):
        text = plugin("install", "--dry-run", *more).stdout
        args = re.search(r"args:\n +- serve\n((?: +#?.*--.*\n)+)", text)[1]
        args = [a for a in re.findall(r"^ +- (--.*)$", args, re.M) if not re.match("--(data|listen|config)=", a)]
        equal(args, ["--insecure", "--max-memory=512MB", "--max-disk=18GB"])
        it = lib.Server(*args, listen=":0")
        equal([it.ask(path)[0] for path in ("/healthz", "/readyz")], [200, 200])
        equal(it.stop(), 0)


def helps():
    done = plugin("--help")
    assert "usage: kubectl kiln COMMAND" in done.stdout and "capture" in done.stdout
    assert "usage: kubectl profefe get" in plugin("get", "--help", program="kubectl-profefe").stdout
    assert "usage: kiln kubectl top" in run(lib.KILN, "kubectl", "top", "-h").stdout
    assert "there is no command" in plugin("nope", status=2).stderr
    plugin(status=2)
    for command in ("capture", "get", "load", "top", "diff", "flame", "install"):
        done = plugin(command, "--help")
        assert "--namespace" in done.stdout and done.stderr == ""
    equal(plugin("", program="kubectl_complete-kiln").stdout.split()[:2], ["capture", "get"])
    assert plugin("get", "", program="kubectl_complete-kiln").stdout.startswith("profiles\nservices\n")
    assert "no target" not in run(BIN + "/kprofefe", "--kubeconfig", "/none").stderr
    equal(run(BIN + "/kprofefe", "--help").returncode, 0)


check("collect takes one profile after the other, of all targets", takes_all)
check("targets that hang, die, lie and drip cost only themselves", bad_ones_cost_themselves)
check("what is empty or absent is no error, but nothing at all is", empty_and_absent_are_fine)
check("what may pass is tried again", tries_again)
check("what has come is only pushed again", pushes_again)
check("labels arrive as they are", labels_are_exact)
check("it can be interrupted", is_interrupted)
check("wrong calls, and kprofefe's options", wrong_calls)
check("tokens", knows_who_it_is)
check("pods of an API server", takes_pods)
check("capture through its proxy", captures_by_proxy)
check("get, with times of all kinds", gets)
check("load, of types of all kinds", loads)
check("top, diff and flame", tops_and_diffs)
check("install prints the manifests", installs)
check("the server takes the arguments of the manifests", starts_as_installed)
check("help and completion", helps)
lib.done()
