#!/usr/bin/env python3
"""Pods of a real API server: lists in pages, watches that survive what can happen to them, who may ask and who may not."""
import base64
import json
import os
import signal
import subprocess
import threading
import time

from cluster import ROOT, TMP, Cluster, done, ok, until

DRIVER = os.environ.get("DRIVER", ROOT + "/build/release/tests/kube/driver")
NPODS = 2000
MAX_RSS_KB = 64 << 10

cluster = Cluster()


def write(name, text):
    path = TMP + "/" + name
    with open(path + ".new", "w") as out:
        out.write(text if isinstance(text, str) else json.dumps(text))
    os.rename(path + ".new", path)
    return path


def run(*args, kubeconfig=None, env=None):
    """Status, lines of JSON, the error."""
    it = subprocess.run([DRIVER, f"kubeconfig={kubeconfig or cluster.kubeconfig}", *args], capture_output=True, text=True,
                        stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, timeout=120)
    lines = [json.loads(line) for line in it.stdout.splitlines() if line.startswith("{")]
    return it.returncode, lines, it.stderr.strip()


class Follow:
    """A driver that follows; .state is what it said last."""

    def __init__(self, *args, kubeconfig=None):
        self.process = subprocess.Popen([DRIVER, f"kubeconfig={kubeconfig or cluster.kubeconfig}", *args, "follow"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.state, self.states = {"synced": False, "npods": 0, "problem": "", "pods": []}, []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.state = json.loads(line)
            self.states.append(self.state)

    def until(self, what, seconds=60):
        return until(lambda: what(self.state), seconds)

    def end(self):
        start = time.monotonic()
        self.process.stdin.close()
        self.process.wait(30)
        return time.monotonic() - start


# ---- what a pod is

cluster.namespace("shop")
cluster.pod("web-5d4f-x", "shop", {"kiln.dev/scrape": "true", "odd": 'ü"\\\n'}, {"app": "web", "pod-template-hash": "5d4f"},
            "10.9.8.7", ports=[("http", 8080), ("pprof", 6060)])
cluster.pod("job", "shop", phase="Succeeded")
cluster.pod("new", "default", phase="Pending")
status, pods, error = run("list")
ok(status == 0 and [p["namespace"] + "/" + p["name"] for p in pods] == ["default/new", "shop/job", "shop/web-5d4f-x"],
   "all pods of all namespaces", error or pods)
web = pods[-1] if pods else {}
ok(web.get("annotations") == {"kiln.dev/scrape": "true", "odd": 'ü"\\\n'} and web["labels"]["app"] == "web",
   "annotations and labels are whole", web)
ok(web.get("ip") == "10.9.8.7" and web["node"] == "node" and web["host_ip"] == "127.0.0.1" and web["running"] and web["uid"],
   "addresses, node and state", web)
ok(web.get("containers") == [{"name": "main", "image": "shop:1.2", "ready": True, "ports": [8080, 6060]}],
   "containers and ports", web)
ok([p["running"] for p in pods] == [False, False, True], "only who runs does", pods)
status, pods, error = run("namespace=shop", "selector=app in (web,api)", "list")
ok([p["name"] for p in pods] == ["web-5d4f-x"], "a namespace and a selector", error)
status, pods, error = run("fields=status.phase=Running", "list")
ok([p["name"] for p in pods] == ["web-5d4f-x"], "a field selector", error)
status, pods, error = run("namespace=shop", "pod", "job")
ok(status == 0 and pods[0]["name"] == "job", "one pod by its name", error)
status, pods, error = run("namespace=shop", "pod", "none")
ok(status == 1 and error == f'2 {cluster.server}: GET /api/v1/namespaces/shop/pods/none: 404 Not Found: pods "none" not found',
   "a pod that is not there", error)

# ---- who asks

status, _, error = run("token=nobody", "list")
ok(status == 1 and f"{cluster.server}: GET /api/v1/pods: 401 Unauthorized: Unauthorized; it does not take the credentials of "
   f"{cluster.kubeconfig}, context test" in error, "401 names the cluster and the configuration", error)
status, _, error = run("token=viewer-token", "list")
ok(status == 1 and 'GET /api/v1/pods: 403 Forbidden: pods is forbidden: User "viewer" cannot list resource "pods" in API '
   'group "" at the cluster scope' in error, "403 has the server's reason", error)
cluster.allow("viewer", ["list", "watch", "get"], ["pods"])
ok(until(lambda: run("token=viewer-token", "list")[0] == 0, 20), "a role lets in")
status, _, error = run("as=someone", "list")
ok('User "someone" cannot list' in error, "impersonation", error)


def pem(name):
    with open(cluster.file(name), "rb") as text:
        return base64.b64encode(text.read()).decode()


config = cluster.config({"client-certificate-data": pem("admin.crt"), "client-key-data": pem("admin.key")})
config["clusters"][0]["cluster"] = {"server": cluster.server, "certificate-authority-data": pem("ca.crt")}
status, pods, error = run("list", kubeconfig=write("certificates", config))
ok(status == 0 and len(pods) == 3, "certificates inside of the kubeconfig", error)
config = cluster.config({"client-certificate": cluster.file("admin.crt"), "client-key": cluster.file("admin.key")})
status, pods, error = run("list", kubeconfig=write("files", config))
ok(status == 0 and len(pods) == 3, "certificates in files", error)
config["clusters"][0]["cluster"] = {"server": cluster.server}
status, _, error = run("list", kubeconfig=write("no-ca", config))
ok(status == 1 and "x509: certificate signed by unknown authority" in error, "a server of another CA is not trusted", error)
status, _, error = run("insecure=1", "list", kubeconfig=TMP + "/no-ca")
ok(status == 0, "unless that is said not to matter", error)
config = cluster.config()
config["clusters"][0]["cluster"]["tls-server-name"] = "kubernetes.default.svc"
status, _, error = run("list", kubeconfig=write("named", config))
ok(status == 0, "a server by the name of its certificate", error)
config["clusters"][0]["cluster"]["tls-server-name"] = "other.example"
status, _, error = run("list", kubeconfig=write("misnamed", config))
ok(status == 1 and "tls" in error, "not by another name", error)
config["clusters"][0]["cluster"] = {"server": cluster.server, "certificate-authority-data": base64.b64encode(b"no PEM").decode()}
status, _, error = run("list", kubeconfig=write("bad-ca", config))
ok(status == 1 and "could not load CA" in error, "a CA that is none", error)
status, _, error = run("server=https://127.0.0.1:1", "list")
ok(status == 1 and 'dial tcp 127.0.0.1:1: connect: connection refused' in error, "a server that is not there", error)

# ---- a pod's own account

os.makedirs(TMP + "/account", exist_ok=True)
with open(cluster.file("ca.crt")) as text:
    write("account/ca.crt", text.read())
write("account/namespace", "shop")
write("account/token", "viewer-token\n")
inside = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port), "HOME": "/nowhere"}
it = subprocess.run([DRIVER, f"account_dir={TMP}/account", "pod", "job"], env={**os.environ, **inside}, capture_output=True, text=True)
ok(it.returncode == 0 and '"job"' in it.stdout, "a pod's account, in its namespace", it.stderr)

# ---- credentials that change

config = cluster.config({"tokenFile": write("token", "nobody")})
follow = Follow(kubeconfig=write("by-file", config))
ok(follow.until(lambda s: "401" in s["problem"]), "a token that is refused is a problem", follow.state)
write("token", "viewer-token")
ok(follow.until(lambda s: s["synced"] and s["npods"] == 1 and not s["problem"]), "until its file has another", follow.state)
follow.end()
plugin = write("plugin", f"""#!/bin/sh
echo run >> {TMP}/plugin.runs
n=$(wc -l < {TMP}/plugin.runs)
token=admin-token; [ $n != 2 ] || token=nobody
echo '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{{"token":"'$token'",
"expirationTimestamp":"'$(date -u -d "+12 seconds" +%Y-%m-%dT%H:%M:%SZ)'"}}}}'
""")
os.chmod(plugin, 0o700)
config = cluster.config({"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": plugin}})
write("by-exec", config)


def runs():
    with open(TMP + "/plugin.runs") as text:
        return len(text.readlines())


status, pods, error = run("list", kubeconfig=TMP + "/by-exec")
ok(status == 0 and len(pods) == 3 and runs() == 1, "a program prints credentials, once", error)
status, pods, error = run("list", kubeconfig=TMP + "/by-exec")
ok(status == 0 and runs() == 3, "if they are refused it is asked again", f"{error} {runs()}")
follow = Follow(kubeconfig=TMP + "/by-exec")
ok(follow.until(lambda s: s["synced"]), "it can be followed", follow.state)
before = runs()
time.sleep(3)
cluster.restart_apiserver()  # ends the watch; what comes next needs credentials that have not expired
cluster.pod("later", "shop")
ok(follow.until(lambda s: s["npods"] == 2 and not s["problem"]) and runs() > before, "credentials that expire are got anew",
   f"{follow.state} {before} {runs()}")
follow.end()
cluster.delete("later", "shop")

# ---- what changes is seen

follow = Follow("namespace=shop")
ok(follow.until(lambda s: s["synced"] and s["npods"] == 1), "who runs is kept", follow.state)
cluster.pod("api", "shop")
ok(follow.until(lambda s: s["npods"] == 2), "a pod that comes", follow.state)
cluster.annotate("api", {"colour": "red"}, "shop")
ok(follow.until(lambda s: "shop/api colour=red" in s["pods"]), "an annotation that changes", follow.state)
cluster.set_phase("api", "Failed", "shop")
ok(follow.until(lambda s: s["npods"] == 1), "a pod that fails", follow.state)
cluster.set_phase("api", "Running", "shop")
cluster.delete("api", "shop")
cluster.pod("last", "shop")
ok(follow.until(lambda s: s["npods"] == 2 and s["pods"][0] == "shop/last"), "a pod that is deleted", follow.state)
cluster.end(cluster.apiserver)
ok(follow.until(lambda s: "connection refused" in s["problem"]), "a server that is gone is a problem", follow.state)
ok(follow.state["npods"] == 2, "what was known stays", follow.state)
cluster.start_apiserver()
cluster.pod("after", "shop")
ok(follow.until(lambda s: s["npods"] == 3 and not s["problem"]), "until it is back", follow.state)
seconds = follow.end()
ok(seconds < 5, "who follows no more ends soon", seconds)

# ---- 410: the server has forgotten where we were

follow = Follow("namespace=shop")
follow.until(lambda s: s["synced"])
follow.process.send_signal(signal.SIGSTOP)
then = cluster.send("GET", "/api/v1/namespaces/shop/pods?limit=1")["metadata"]["resourceVersion"]
for i in range(20):
    cluster.annotate("last", {"n": str(i)}, "shop")
cluster.delete("after", "shop")
cluster.compact()
cluster.restart_apiserver()
event = json.loads(cluster.send("GET", f"/api/v1/namespaces/shop/pods?watch=1&timeoutSeconds=5&resourceVersion={then}", raw=True))
ok(event["type"] == "ERROR" and event["object"]["code"] == 410, "the server says 410 to who was there then", event)
follow.process.send_signal(signal.SIGCONT)
ok(follow.until(lambda s: s["npods"] == 2 and not s["problem"] and any("n=19" in p for p in s["pods"])),
   "after 410 it lists anew", follow.state)
follow.end()

# ---- many


def make(n):
    padding = "x" * 1000
    for i in n:
        name = f"many-{i:05d}"
        cluster.pod(name, "default", {"kiln.dev/scrape": "true", "padding": padding}, {"app": f"app-{i % 50}"}, ip=f"10.1.{i >> 8}.{i & 255}")


threads = [threading.Thread(target=make, args=(range(k, NPODS, 4),)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
status, pods, error = run("namespace=default", "list")
names = [p["name"] for p in pods if p["name"].startswith("many-")]
ok(status == 0 and names == sorted(names) and len(set(names)) == NPODS, f"{NPODS} pods come in pages of 500, each once", error or len(names))
follow = Follow()
ok(follow.until(lambda s: s["synced"] and s["npods"] == NPODS + 2, 120), f"{NPODS} pods are followed", follow.state)
cluster.annotate("many-00777", {"colour": "blue"})
cluster.delete("many-01999")
follow.until(lambda s: s["npods"] == NPODS + 1)
state = follow.state
print(f"# {NPODS} pods: {state['rss_kb']} kB now, {state['peak_kb']} kB at most")
ok(state["npods"] == NPODS + 1 and (os.environ.get("BUILD", "release") != "release" or state["peak_kb"] <= MAX_RSS_KB),
   f"in less than {MAX_RSS_KB >> 10} MB", state["peak_kb"])
follow.end()
follow = Follow("max=100")
ok(follow.until(lambda s: s["synced"]) and follow.state["npods"] == 100 and follow.state["ndropped"] == NPODS - 99,
   "no more than wanted are kept, and the rest are counted", follow.state)
follow.end()
cluster.stop()
done()
