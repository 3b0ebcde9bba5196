#!/usr/bin/env python3
"""A Kubernetes API server of its own, with its etcd and, if wanted, a kubelet for port-forward, at free ports of
loopback; see tools/kube.sh for where they come from. What this gives to other tests:

    cluster = Cluster()              or skips all of the test, if the programs are not there
    cluster.send("POST", path, object)
    cluster.pod("web", annotations={...}); cluster.kubeconfig (a file); cluster.stop()

As a program: cluster.py COMMAND...; the command has KUBECONFIG, KUBE_SERVER, KUBE_CA and KUBE_TOKEN.
"""
import atexit
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TMP = tempfile.mkdtemp(prefix="kiln-kube-")
for name in [n for n in os.environ if n.lower().endswith("_proxy") or n.startswith("KUBE")]:
    os.environ.pop(name)
os.environ["HOME"], CACHE_HOME = TMP, os.environ.get("HOME", "")
started = []
count = 0


@atexit.register
def clean_up():
    for process in reversed(started):
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(TMP, ignore_errors=True)


def ok(is_good, what, why=""):
    global count
    count += 1
    print(f"{'ok' if is_good else 'not ok'} {count} - {what}", flush=True)
    if not is_good and why != "":
        print("\n".join("# " + line for line in str(why).splitlines()), flush=True)
    return is_good


def done():
    print(f"1..{count}", flush=True)


def until(what, seconds=60, every=0.05):
    """Its result once it is true; else the last one."""
    end = time.monotonic() + seconds
    while True:
        result = what()
        if result or time.monotonic() > end:
            return result
        time.sleep(every)


def programs():
    """The folder of kube-apiserver, or the end of this test."""
    found = subprocess.run([ROOT + "/tools/kube.sh", "where"], capture_output=True, text=True,
                           env={**os.environ, "HOME": CACHE_HOME})
    if found.returncode:
        print("1..0 # SKIP there is no Kubernetes API server: make kube-apiserver builds one")
        sys.exit(0)
    return found.stdout.strip()


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_go(address):
    """A Go program with /debug/pprof, which works in main.busyInGo."""
    subprocess.run(["go", "build", "-o", TMP + "/go-target", HERE + "/target.go"], check=True,
                   env={**os.environ, "GOCACHE": TMP + "/go-cache", "GO111MODULE": "off", "HOME": TMP})
    process = subprocess.Popen([TMP + "/go-target", address], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    started.append(process)
    process.stdout.readline()
    return process


def start_c(address, agent):
    """A C program under the agent, which works in busy_in_c."""
    with open(TMP + "/c.c", "w") as out:
        out.write("#include <stdlib.h>\nvolatile unsigned x; char *volatile kept;\n"
                  "__attribute__((noinline)) void busy_in_c(void) { for (unsigned i = 0; i < 1u << 24; i++) x += i; }\n"
                  "int main(void) { kept = malloc(64 << 20); for (;;) busy_in_c(); }\n")
    subprocess.run(["gcc", "-g", "-O1", "-o", TMP + "/c-target", TMP + "/c.c"], check=True)
    process = subprocess.Popen([TMP + "/c-target"], env={**os.environ, "LD_PRELOAD": agent, "KILN_PPROF_ADDR": address})
    started.append(process)
    return process


def stored(server, service):
    """Of the profiles that kiln serve has: {type: labels}"""
    found = server.get("/api/1/profiles", service=service, **{"from": "now-1h"})[1]["profiles"]
    return {p["type"]: {x["key"]: x["value"] for x in p["labels"]} for p in found}


def top(server, service, type):
    return server.ask("/api/1/merge?service=%s&type=%s&format=top" % (service, type))[2].decode()


def annotations(port, service=None, **more):
    return {"kiln.dev/enable": "true", "kiln.dev/port": str(port), **({"kiln.dev/service": service} if service else {}),
            **{"kiln.dev/" + k.replace("_", "-"): v for k, v in more.items()}}


def openssl(*args, stdin=None):
    subprocess.run(["openssl", *args], check=True, capture_output=True, input=stdin, text=True)


class Cluster:
    def __init__(self, has_kubelet=False, args=()):
        self.bin = programs()
        self.dir = tempfile.mkdtemp(dir=TMP)
        self.args = list(args)
        self.port, self.etcd_port, self.peer_port = free_ports(3)
        self.server = f"https://127.0.0.1:{self.port}"
        self.etcd_url = f"http://127.0.0.1:{self.etcd_port}"
        self.token = "admin-token"
        self.make_keys()
        self.context = ssl.create_default_context(cafile=self.file("ca.crt"))
        self.start_etcd()
        self.start_apiserver()
        self.kubeconfig = self.file("kubeconfig")
        with open(self.kubeconfig, "w") as out:
            json.dump(self.config(), out)
        if has_kubelet:
            self.start_kubelet()

    def file(self, name):
        return f"{self.dir}/{name}"

    def config(self, user=None):
        """A kubeconfig. JSON is YAML."""
        return {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "c", "cluster": {"server": self.server,
                                                       "certificate-authority": self.file("ca.crt")}}],
                "users": [{"name": "u", "user": user or {"token": self.token}}],
                "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}]}

    # ---- keys

    def make_key(self, name, subject, extension):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                self.file(name + ".key"), "-out", self.file(name + ".csr"), "-subj", subject)
        with open(self.file(name + ".ext"), "w") as out:
            out.write(extension)
        openssl("x509", "-req", "-in", self.file(name + ".csr"), "-CA", self.file("ca.crt"), "-CAkey",
                self.file("ca.key"), "-CAcreateserial", "-days", "30", "-out", self.file(name + ".crt"),
                "-extfile", self.file(name + ".ext"))

    def make_keys(self):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                self.file("ca.key"), "-out", self.file("ca.crt"), "-days", "30", "-subj", "/CN=test-ca")
        names = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        self.make_key("server", "/CN=kube-apiserver", names)
        self.make_key("kubelet", "/CN=kubelet", names)
        client = "extendedKeyUsage=clientAuth"
        self.make_key("admin", "/O=system:masters/CN=admin-by-certificate", client)
        self.make_key("apiserver", "/O=system:masters/CN=apiserver-to-kubelet", client)
        openssl("genrsa", "-out", self.file("sa.key"), "2048")
        openssl("rsa", "-in", self.file("sa.key"), "-pubout", "-out", self.file("sa.pub"))
        with open(self.file("tokens.csv"), "w") as out:
            out.write('admin-token,admin,1,"system:masters"\nsecond-token,second,2,"system:masters"\n'
                      'viewer-token,viewer,3,"viewers"\n')

    # ---- processes

    def start(self, name, *command, **more):
        with open(self.file(name + ".log"), "ab") as log:
            process = subprocess.Popen(command, stderr=log, **{"stdin": subprocess.DEVNULL, "stdout": log, **more})
        started.append(process)
        return process

    def log(self, name):
        with open(self.file(name + ".log"), errors="replace") as text:
            return "".join(text.readlines()[-20:])

    def start_etcd(self):
        peer = f"http://127.0.0.1:{self.peer_port}"
        self.etcd = self.start("etcd", "etcd", "--name", "t", "--data-dir", self.file("etcd"), "--listen-client-urls",
                               self.etcd_url, "--advertise-client-urls", self.etcd_url, "--listen-peer-urls", peer,
                               "--initial-advertise-peer-urls", peer, "--initial-cluster", "t=" + peer,
                               "--unsafe-no-fsync", "--log-level", "warn")

    def start_apiserver(self):
        keys = {"tls-cert-file": "server.crt", "tls-private-key-file": "server.key", "client-ca-file": "ca.crt",
                "token-auth-file": "tokens.csv", "service-account-signing-key-file": "sa.key",
                "service-account-key-file": "sa.pub", "kubelet-client-certificate": "apiserver.crt",
                "kubelet-client-key": "apiserver.key", "kubelet-certificate-authority": "ca.crt"}
        self.apiserver = self.start(
            "apiserver", self.bin + "/kube-apiserver", *[f"--{k}={self.file(v)}" for k, v in keys.items()],
            "--bind-address=127.0.0.1", f"--secure-port={self.port}", "--advertise-address=127.0.0.1",
            "--etcd-servers=" + self.etcd_url, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=" + self.server, "--endpoint-reconciler-type=none",
            "--enable-garbage-collector=false", "--kubelet-preferred-address-types=InternalIP",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority", *self.args)
        self.await_ready()

    def await_ready(self):
        def is_ready():
            if self.apiserver.poll() is not None:
                raise AssertionError("kube-apiserver ended: " + self.log("apiserver"))
            try:
                return self.send("GET", "/readyz", raw=True) == b"ok"
            except (OSError, http.client.HTTPException, AssertionError):
                return False
        if not until(is_ready, 180, 0.1):
            raise AssertionError("kube-apiserver is not ready: " + self.log("apiserver"))

    def end(self, process):
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart_apiserver(self):
        self.end(self.apiserver)
        self.start_apiserver()

    def stop(self):
        for process in (self.apiserver, self.etcd):
            self.end(process)

    def start_kubelet(self):
        self.kubelet = self.start("kubelet", self.bin + "/kubelet", *map(self.file, ("kubelet.crt", "kubelet.key", "ca.crt")),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = int(self.kubelet.stdout.readline())
        self.send("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
        self.send("PATCH", "/api/v1/nodes/node/status",
                  {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                              "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})

    # ---- requests

    def send(self, method, path, body=None, token=None, raw=False):
        """The answer's object. Any status but 2xx is an AssertionError."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=60)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": "Bearer " + (token or self.token), "Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status // 100 != 2:
            raise AssertionError(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return text if raw else json.loads(text)

    def namespace(self, name):
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def pod(self, name, namespace="default", annotations=None, labels=None, ip="127.0.0.1", phase="Running", ports=(),
            node="node", image="shop:1.2"):
        pods = f"/api/v1/namespaces/{namespace}/pods"
        self.send("POST", pods, {
            "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": image, "ports": [
                {"name": n, "containerPort": p} for n, p in ports]}]}})
        if phase != "Pending":
            self.set_phase(name, phase, namespace, ip)

    def set_phase(self, name, phase, namespace="default", ip="127.0.0.1"):
        self.send("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {
            "phase": phase, "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "127.0.0.1",
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": "", "imageID": ""}]}})

    def annotate(self, name, annotations, namespace="default"):
        self.send("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", {"metadata": {"annotations": annotations}})

    def delete(self, name, namespace="default"):
        """At once: there is nobody who would end it."""
        self.send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")

    def allow(self, user, verbs, resources):
        """A cluster role for a user."""
        api, name = "/apis/rbac.authorization.k8s.io/v1/", user + "-" + resources[0].replace("/", "-")
        self.send("POST", api + "clusterroles", {"metadata": {"name": name}, "rules": [
            {"apiGroups": [""], "verbs": verbs, "resources": resources}]})
        self.send("POST", api + "clusterrolebindings", {
            "metadata": {"name": name}, "subjects": [{"kind": "User", "name": user}],
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}})

    def compact(self):
        """etcd forgets all that was: who watches from then on gets 410."""
        def post(path, body):
            connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=30)
            connection.request("POST", path, json.dumps(body))
            return json.loads(connection.getresponse().read())
        revision = post("/v3/kv/range", {"key": "Lw=="})["header"]["revision"]
        post("/v3/kv/compaction", {"revision": revision, "physical": True})


if __name__ == "__main__":
    it = Cluster(has_kubelet=True)
    status = subprocess.run(sys.argv[1:], env={
        **os.environ, "KUBECONFIG": it.kubeconfig, "KUBE_SERVER": it.server, "KUBE_CA": it.file("ca.crt"),
        "KUBE_TOKEN": it.token}).returncode
    it.stop()
    sys.exit(status)
