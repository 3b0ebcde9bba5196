#!/usr/bin/env python3
"""kiln collect and kubectl kiln against a real API server: pods whose annotations lead to a Go program, to a C program
under the agent, and to programs that hang, lie and die; roles, secrets, manifests."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

from cluster import ROOT, TMP, Cluster, annotations, done, ok, start_c, start_go, stored, top, until

sys.path.insert(0, ROOT + "/tests/e2e")
import serve_lib as lib
from serve_target import Target, free_port

AGENT = os.environ.get("AGENT", ROOT + "/build/libkiln.so")
PATH_HOST = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
BIN = TMP + "/bin"
os.mkdir(BIN)
for name in ("kubectl-kiln", "kubectl-profefe", "kprofefe", "kiln"):
    os.symlink(lib.KILN, BIN + "/" + name)

cluster = Cluster(has_kubelet=True)
server = lib.Server()
env = {**os.environ, "KUBECONFIG": cluster.kubeconfig, "PATH": BIN + ":" + os.environ["PATH"]}


def run(*args, stdin=None):
    it = subprocess.run(args, capture_output=True, text=True, errors="replace", env=env, timeout=180, input=stdin)
    it.both = "status %d\n%s%s" % (it.returncode, it.stdout, it.stderr)
    return it


def collect(*args):
    return run("kiln", "collect", "--kubernetes", "--to", server.url, "--seconds", "2", *args)


# ---- real programs

def go_and_c():
    port = free_port()
    start_go("127.0.0.2:%d" % port)
    cluster.namespace("shop")
    cluster.pod("go-1", "shop", {"profefe.com/enable": "true", "profefe.com/port": str(port), "profefe.com/service": "go"},
                {"app": "go", "pod-template-hash": "5d8f"}, ip="127.0.0.2", image="registry:5000/shop/go:1.2.3", node="n7")
    cluster.send("PATCH", "/api/v1/namespaces/shop/pods/go-1", {"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "go-5d8f", "uid": "1", "controller": True}]}})
    has_agent = os.path.exists(AGENT)
    if has_agent:
        c_port = free_port()
        start_c("127.0.0.3:%d" % c_port, AGENT)
        cluster.pod("c-1", "shop", annotations("pprof", "c", profiles="cpu,heap,threads", labels="tier=back, zone=a=b"),
                    {"app": "c"}, ip="127.0.0.3", ports=[("http", 80), ("pprof", c_port)], image="c@sha256:ab")
        until(lambda: run("curl", "-sf", "http://127.0.0.3:%d/debug/pprof/" % c_port).returncode == 0)
    it = collect("-n", "shop", "--pod-labels", "app,none")
    ok(it.returncode == 0, "profiles of all pods of a namespace", it.both)
    want = {"namespace": "shop", "pod": "go-1", "node": "n7", "owner": "go", "container": "main",
            "image": "registry:5000/shop/go:1.2.3", "version": "1.2.3", "app": "go"}
    got = stored(server, "go")
    ok(got.get("cpu") == want and set(got) >= {"cpu", "heap", "goroutine", "mutex", "threadcreate"},
       "of a Go program, with the cluster's labels", (got, it.both))
    ok("main.busyInGo" in top(server, "go", "cpu") and "main.main" in top(server, "go", "heap"), "in which its functions are",
       top(server, "go", "cpu")[:500])
    if has_agent:
        want = {"namespace": "shop", "pod": "c-1", "node": "node", "container": "main", "image": "c@sha256:ab",
                "version": "sha256:ab", "app": "c", "tier": "back", "zone": "a=b"}
        got = stored(server, "c")
        ok(got == {t: want for t in ("cpu", "heap", "threads")}, "of a C program under the agent", (got, it.both))
        ok("busy_in_c" in top(server, "c", "cpu") and "main" in top(server, "c", "heap"), "in which its functions are", top(server, "c", "cpu")[:500])


# ---- who is asked

def chosen():
    a, b, c = Target(), Target(), Target()
    cluster.namespace("choose")
    cluster.pod("a", "choose", annotations(a.port, "ch-a"), {"tier": "x"})
    cluster.pod("b", "choose", annotations(b.port, "ch-b"), {"tier": "y"})
    cluster.pod("plain", "choose", {"kiln.dev/port": str(c.port)}, {"tier": "x"})
    cluster.pod("pending", "choose", annotations(c.port), {"tier": "x"}, phase="Pending")
    cluster.pod("failed", "choose", annotations(c.port), {"tier": "x"}, phase="Failed")
    it = collect("-n", "choose", "-l", "tier=x", "--types", "heap")
    ok(it.returncode == 0 and (a.count("heap"), b.count("heap"), c.count("heap")) == (1, 0, 0), "pods by their labels", it.both)
    it = collect("-n", "choose", "b", "pod/plain", "--types", "heap")
    ok(it.returncode == 0 and (a.count("heap"), b.count("heap"), c.count("heap")) == (1, 1, 1), "and by name", it.both)
    it = collect("-n", "choose", "none", "pending", "a", "--types", "heap")
    ok(it.returncode == 1 and "none" in it.stdout and "pending: it does not run" in it.stdout and a.count("heap") == 2,
       "a name that there is none of", it.both)
    it = collect("-A", "-l", "tier=y", "--types", "heap", "-o", "json")
    ok(it.returncode == 0 and json.loads(it.stdout)["stored"] == 1, "in all namespaces", it.both)
    it = collect("-n", "nobody")
    ok(it.returncode == 0 and "0 targets" in it.stdout, "nobody is no error", it.both)
    for args, text in ((["-A", "a"], "not with -A"), (["-l", "x=y", "a"], "not both"),
                       (["--kubeconfig", "/none"], "/none"), (["--context", "none"], "none")):
        it = collect(*args)
        ok(it.returncode == 2 and text in it.stderr, "wrong: " + " ".join(args), it.both)
    it = collect("-n", "choose", "--token", "viewer-token")
    ok(it.returncode == 1 and "forbidden" in it.stderr, "who may not look at pods is told so", it.both)
    it = run("kprofefe", "-n", "choose", "--profefe-hostport", server.url, "-l", "tier=y", "--request-timeout", "10s",
             "--cache-dir", TMP, "--tracer", "dev", "b")
    ok(it.returncode == 2 and "not both" in it.stderr, "kprofefe takes names or labels", it.both)


def containers():
    """One after the other, and each with labels of its own."""
    a, b = Target(), Target()
    cluster.namespace("two")
    cluster.send("POST", "/api/v1/namespaces/two/pods", {
        "metadata": {"name": "p", "annotations": {
            "kiln.dev/enable": "true", "kiln.dev/port.web": str(a.port), "kiln.dev/port.side": "admin",
            "kiln.dev/service": "two", "kiln.dev/service.side": "two-side", "kiln.dev/profiles": "cpu"}},
        "spec": {"nodeName": "node", "containers": [
            {"name": "web", "image": "web:1"},
            {"name": "side", "image": "side:2", "ports": [{"name": "admin", "containerPort": b.port}]}]}})
    cluster.set_phase("p", "Running", "two")
    it = collect("-n", "two")
    labels = [stored(server, s).get("cpu", {}) for s in ("two", "two-side")]
    ok(it.returncode == 0 and [(x.get("container"), x.get("version")) for x in labels] == [("web", "1"), ("side", "2")],
       "containers of a pod", (it.both, labels))
    begins = [t.asked[0][2] for t in (a, b)]
    ok(begins[1] - begins[0] > 1.9, "one CPU profile at a time", begins)


def bad_ones():
    """Each costs only itself, and what has changed holds the next time."""
    good, modes = Target(), {mode: Target(mode=mode) for mode in ("hang", "busy", "garbage", "die", "drip", "wrong")}
    cluster.namespace("bad")
    cluster.pod("good", "bad", annotations(good.port, "good-one"))
    for mode, target in modes.items():
        cluster.pod(mode, "bad", annotations(target.port, "bad-" + mode))
    cluster.pod("gone", "bad", annotations(free_port(), "bad-gone"))
    cluster.pod("port", "bad", {"kiln.dev/enable": "true", "kiln.dev/port": "http"})
    cluster.pod("word", "bad", {"profefe.com/enable": "yes"})
    cluster.pod("grafana", "bad", {"profiles.grafana.com/cpu.scrape": "true"})
    begin = time.monotonic()
    it = collect("-n", "bad", "--types", "cpu,heap", "--timeout", "3s", "--retries", "1")
    took = time.monotonic() - begin
    ok(it.returncode == 1 and set(stored(server, "good-one")) == {"cpu", "heap"}, "bad pods beside a good one", it.both)
    ok(took < 25, "cost no time", took)
    ok(not any(stored(server, "bad-" + m) for m in [*modes, "gone"]), "and give nothing")
    for text in ('pod bad/port: annotation kiln.dev/port is "http": write a number',
                 'pod bad/word: annotation profefe.com/enable is "yes": write "true"',
                 "pod bad/grafana: annotation profiles.grafana.com/cpu.scrape is", "3 pods passed over"):
        ok(text in it.stdout, "it says: " + text, it.both)
    modes["busy"].mode = "ok"
    cluster.annotate("port", {"kiln.dev/port": str(good.port), "kiln.dev/service": "mended"}, "bad")
    cluster.annotate("word", {"profefe.com/enable": None}, "bad")
    for name in ("hang", "garbage", "die", "drip", "wrong", "gone", "grafana"):
        cluster.delete(name, "bad")
    it = collect("-n", "bad", "--types", "heap")
    ok(it.returncode == 0 and stored(server, "mended") and stored(server, "bad-busy") and "3 targets: 3 stored" in it.stdout,
       "and all is well when they are mended or gone", it.both)
    for target in modes.values():
        target.close()


def same_as_kprofefe():
    """What kprofefe sends for a target (continuous.md, B.2), and what kiln collect does."""
    class Still(Target):
        def body(self, name, mode):
            return lib.profile({"f;main": (7, 70), "g;main": (3, 30)}, lib.CPU, time=1_700_000_000 * 10**9, duration=10**9)
    target = Still()
    cluster.namespace("same")
    cluster.pod("p-1", "same", {"profefe.com/enable": "true", "profefe.com/port": str(target.port), "profefe.com/service": "same"})
    body = target.body("profile", "ok")
    theirs = server.ask("/api/0/profiles?service=same&instance_id=127.0.0.1&type=cpu&labels=,namespace=same,from=kube-profefe,"
                        "pod=p-1", "POST", body)
    theirs = json.loads(theirs[2])["body"]
    it = run("kprofefe", "-n", "same", "--profefe-hostport", server.url, "--types", "cpu", "--seconds", "1")
    found = server.get("/api/0/profiles", service="same", type="cpu", **{"from": "2023-11-14T00:00:00", "to": "2023-11-16T00:00:00"})[1]["body"]
    ours = [p for p in found if p["id"] != theirs["id"]]
    ok(it.returncode == 0 and len(found) == 2 and len(ours) == 1, "kprofefe's call stores a profile as it does", (it.both, found))
    labels = {x["key"]: x["value"] for x in ours[0]["labels"]}
    ok((ours[0]["service"], ours[0]["type"], ours[0]["created_at"], labels["namespace"], labels["pod"]) ==
       ("same", "cpu", theirs["created_at"], "same", "p-1"), "of the same service, type, time, namespace and pod", ours)
    values = [lib.values(server.ask("/api/0/profiles/" + p["id"])[2]) for p in (theirs, ours[0])]
    ok(values[0] == values[1] == {"f;main": (7, 70), "g;main": (3, 30)}, "with the same samples", values)


def secrets():
    target = Target()
    cluster.namespace("secret")
    cluster.send("POST", "/api/v1/namespaces/secret/secrets", {"metadata": {"name": "pprof"}, "data": {
        "token": base64.b64encode(b"open-sesame\n").decode(), "two": base64.b64encode(b"a\nb").decode()}})
    cluster.pod("p", "secret", annotations(target.port, "sec", auth_secret="pprof"))
    it = collect("-n", "secret", "--types", "heap")
    ok(it.returncode == 0 and target.headers.get("Authorization") == "Bearer open-sesame", "a token of a secret", it.both)
    cluster.annotate("p", {"kiln.dev/auth-user": "ann", "kiln.dev/auth-secret": "pprof/token"}, "secret")
    it = collect("-n", "secret", "--types", "heap")
    ok(target.headers.get("Authorization") == "Basic " + base64.b64encode(b"ann:open-sesame").decode(), "a password of one", it.both)
    for key, text in (("none", "it has no key none"), ("two", "not one line")):
        cluster.annotate("p", {"kiln.dev/auth-secret": "pprof/" + key}, "secret")
        it = collect("-n", "secret", "--types", "heap")
        ok(it.returncode == 1 and "pod secret/p: secret pprof: " in it.stdout and text in it.stdout, "a secret: " + text, it.both)
    target.close()


# ---- the plugin

def captures():
    target, out = Target(), TMP + "/captured"
    cluster.namespace("cap")
    cluster.pod("web-1", "cap", annotations(target.port, "cap"))
    cluster.pod("other", "cap")
    args = ["--types", "cpu,heap", "--seconds", "1"]
    it = run("kubectl", "kiln", "capture", "-n", "cap", *args, "--output-dir", out)
    files = sorted(os.listdir(out))
    ok(it.returncode == 0 and [re.sub(r"\d{9,}", "N", f) for f in files] ==
       ["profile-cpu-web-1-N.pb.gz", "profile-heap-web-1-N.pb.gz"] and sorted(it.stdout.split()) == sorted(out + "/" + f for f in files),
       "capture through a forwarded port, into files", it.both)
    ok("work_profile" in lib.cli("-top", out + "/" + files[0]), "which are profiles")
    ok("selected 1 of 2 pods" in it.stderr and re.search(r"^cap/web-1 +cap +2 ", it.stderr, re.M), "it says what became of it", it.both)
    it = run("kubectl-profefe", "capture", "web-1", "-n", "cap", *args, "--profefe-hostport", server.url)
    ok(it.returncode == 0 and set(stored(server, "cap")) == {"cpu", "heap"} and
       re.search(r"^%s/api/0/profiles/\S+ type=heap$" % server.url, it.stdout, re.M), "capture into a server", it.both)
    it = run("kubectl", "kiln", "capture", "-n", "cap", *args, "--output-dir", out, "-o", "json")
    got = json.loads(it.stdout)
    ok(it.returncode == 0 and got["stored"] == 2 and all(os.path.exists(f) for f in got["files"]) and len(got["files"]) == 2, "as JSON", it.both)
    it = run("kubectl", "kiln", "capture", "none", "-n", "cap", *args, "--output-dir", out)
    ok(it.returncode == 1 and "none" in it.stderr, "a pod that there is none of", it.both)
    cluster.pod("closed", "cap", annotations(free_port()))
    it = run("kubectl", "kiln", "capture", "closed", "-n", "cap", *args, "--timeout", "3s", "--output-dir", out)
    ok(it.returncode == 1 and re.search(r"^cap/closed .* 2 ", it.stderr, re.M), "a port where nobody listens", it.both)
    target.mode = "garbage"
    it = run("kubectl", "kiln", "capture", "web-1", "-n", "cap", *args, "--output-dir", TMP + "/none")
    ok(it.returncode == 1 and "no profile" in it.stderr and not os.listdir(TMP + "/none"), "garbage becomes no file", it.both)
    target.close()


def proxies():
    """Without a port-forward, through the API server's proxy, which goes to no loopback."""
    host = [a for a in PATH_HOST if "." in a]
    if not host:
        return ok(True, "# SKIP the proxy: this machine has no address")
    port = free_port()
    start_go("0.0.0.0:%d" % port)
    cluster.namespace("proxy")
    cluster.pod("p", "proxy", annotations(port, "proxied"), ip=host[0], node="nowhere")
    it = run("kubectl", "kiln", "capture", "p", "-n", "proxy", "--types", "heap,goroutine,nope=nope", "--to", server.url)
    ok(it.returncode == 0 and set(stored(server, "proxied")) == {"heap", "goroutine"} and re.search(r" 2 +0 +1 +0 ", it.stderr),
       "capture through the proxy, where there is no port-forward", it.both)


def accepts(*args):
    """What install prints, which kubectl takes all of."""
    text = run("kubectl", "kiln", "install", "--dry-run", *args).stdout
    it = run("kubectl", "apply", "--dry-run=server", "-f", "-", stdin=text)
    ok(it.returncode == 0 and len(it.stdout.splitlines()) == text.count("\nkind: "), " ".join(["kubectl accepts all manifests", *args]),
       it.both)
    return text


def roles():
    """The manifests' roles are enough, and not too much."""
    cluster.namespace("kiln")
    text = accepts()
    is_old = "cronjobs" not in cluster.send("GET", "/apis/batch/v1", raw=True).decode()
    ok(("batch/v1beta1" if is_old else "batch/v1") + "\nkind: CronJob" in text, "cron jobs are as this server has them", text)
    kinds = re.findall(r"^kind: (\w+)$", text, re.M)
    it = run("kubectl", "kustomize", ROOT + "/packaging/kubernetes")
    ok(it.returncode == 0 and sorted(re.findall(r"^kind: (\w+)$", it.stdout, re.M)) == sorted(kinds), "and so does kustomize", it.both)
    it = run("kubectl", "kiln", "install")
    ok(it.returncode == 0 and "deployment.apps/kiln created" in it.stdout and "/kiln-collect created" in it.stdout,
       "install applies them", it.both)
    account = ["--as", "system:serviceaccount:kiln:kiln-collect"]
    it = collect("-A", "--types", "heap", "-l", "tier=y", *account)
    ok(it.returncode == 0 and "1 stored" in it.stdout, "the collector's role is enough", it.both)
    it = collect("-n", "secret", *account)
    ok(it.returncode == 1 and "forbidden" in it.stdout, "and not for secrets", it.both)
    target = Target()
    cluster.namespace("ann")
    cluster.pod("w", "ann", annotations(target.port))
    capture = ["kubectl", "kiln", "capture", "w", "-n", "ann", "--types", "heap", "--output-dir", TMP + "/ann", "--as", "ann"]
    it = run(*capture)
    ok(it.returncode == 1 and "forbidden" in it.stderr, "who is not allowed to captures nothing", it.both)
    run("kubectl", "create", "rolebinding", "kiln-capture", "-n", "ann", "--clusterrole=kiln-capture", "--user=ann")
    it = until(lambda: (lambda x: x if x.returncode == 0 else None)(run(*capture)), 20) or run(*capture)
    ok(it.returncode == 0 and len(os.listdir(TMP + "/ann")) == 1, "kiln-capture is enough to", it.both)
    target.close()


def allowed(*what):
    return run("kubectl", "auth", "can-i", *what, "-A", "--as", "system:serviceaccount:kiln:kiln").stdout.strip()


def spec(kind):
    return json.loads(run("kubectl", "get", kind, "-n", "kiln", "-o", "json").stdout)


def has_token():
    return (spec("serviceaccount/kiln")["automountServiceAccountToken"],
            spec("deployment/kiln")["spec"]["template"]["spec"]["automountServiceAccountToken"])


def in_pod():
    """How to start a program where a pod of the account kiln would be, and with what in its environment."""
    made = cluster.send("POST", "/api/v1/namespaces/kiln/serviceaccounts/kiln/token", {"spec": {}})
    account = TMP + "/account"
    os.mkdir(account)
    shutil.copy(cluster.file("ca.crt"), account)
    for name, text in (("token", made["status"]["token"]), ("namespace", "kiln")):
        with open(account + "/" + name, "w") as out:
            out.write(text)
    script = ('cd "$1" && mount -t tmpfs none /run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && '
              'cp * /var/run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"')
    return (["unshare", "-rm", "sh", "-c", script, "sh", account],
            {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port)})


def scrapes():
    """What --scrape installs is enough for a server that follows pods, and not too much."""
    ok(allowed("list", "pods") == "no" and has_token() == (False, False), "the server may do nothing")
    before, env = in_pod()
    if run(*before, "true").returncode:
        return ok(True, "# SKIP a server in a pod: this machine lets nobody mount")
    cluster.namespace("followed")
    target = Target()
    cluster.pod("web-1", "followed", annotations(target.port, "followed", profiles="heap", auth_secret="pprof"))
    accepts("--scrape")
    it = run("kubectl", "kiln", "install", "--scrape")
    ok(it.returncode == 0 and "kiln-scrape created" in it.stdout and "configmap/kiln created" in it.stdout, "install --scrape", it.both)
    ok(has_token() == (True, True) and spec("cronjob/kiln-collect")["spec"]["suspend"] is True,
       "the server has a token, and nobody collects", (has_token(), spec("cronjob/kiln-collect")))
    ok([allowed(verb, "pods") for verb in ("get", "list", "watch", "delete")] == ["yes", "yes", "yes", "no"] and
       allowed("get", "secrets") == "no" and allowed("get", "configmaps") == "no", "it may look at pods, and that is all")
    container = spec("deployment/kiln")["spec"]["template"]["spec"]["containers"][0]
    mount = next(m["mountPath"] for m in container["volumeMounts"] if m["name"] == "config")
    config, = [a[len("--config="):] for a in container["args"] if a.startswith("--config=")]
    text = spec("configmap/kiln")["data"][os.path.relpath(config, mount)]
    with open(TMP + "/scrape.yaml", "w") as out:
        out.write(text.replace("interval: 60s", "interval: 1s"))
    follower = lib.Server("--config", TMP + "/scrape.yaml", before=before, env=env)
    view = lambda: follower.get("/api/1/targets")[1]["jobs"][0]
    problem = lambda: " ".join(t["problem"] for t in view()["targets"] if "followed" in json.dumps(t))
    ok(until(lambda: "forbidden" in problem()), "it follows pods; secrets it may not read", view())
    data = {"data": {"token": base64.b64encode(b"open-sesame").decode()}}
    cluster.send("POST", "/api/v1/namespaces/followed/secrets", {"metadata": {"name": "pprof"}, **data})
    run("kubectl", "create", "role", "kiln-secret", "-n", "followed", "--verb=get", "--resource=secrets", "--resource-name=pprof")
    run("kubectl", "create", "rolebinding", "kiln-secret", "-n", "followed", "--role=kiln-secret", "--serviceaccount=kiln:kiln")
    ok(until(lambda: stored(follower, "followed")) and target.headers.get("Authorization") == "Bearer open-sesame",
       "until a role says which", (view(), target.headers))
    follower.stop()
    target.close()
    it = run("kubectl", "kiln", "install")
    ok(it.returncode == 0 and has_token() == (False, False) and not spec("cronjob/kiln-collect")["spec"].get("suspend"),
       "install without it takes the token back", it.both)


go_and_c()
chosen()
containers()
bad_ones()
same_as_kprofefe()
secrets()
captures()
proxies()
roles()
scrapes()
done()
