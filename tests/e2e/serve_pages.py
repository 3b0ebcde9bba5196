"""The pages of kiln serve by HTTP: what they are made of, who may see them, and profiles of the store in the viewer.

How they look and work is for tests/browser. Prints TAP. Needs KILN in the environment.
"""
import base64
import json
import re
import urllib.parse

from serve_lib import CPU, IS_SLOW, TMP, Server, check, done, equal, names, profile

HOUR = 3600 * 10**9
START = 1_790_000_000 * 10**9 // HOUR * HOUR  # nanoseconds
PAGES = ["/", "/services", "/timeline", "/fleet", "/regressions", "/targets", "/storage"]


def at(i):
    """The i-th minute, as seconds since 1970."""
    return START // 10**9 + 60 * i


def selection(**params):
    return urllib.parse.urlencode({"service": "web", "type": "cpu", "from": at(0), "to": at(60), **params})


def view(server, request, a, b=None, **params):
    """Status and body of what the viewer's page asks for."""
    sides = {"a": a, **({"b": b} if b else {})}
    status, _, body = server.ask("/ui/api/v1/%s?%s" % (request, urllib.parse.urlencode({**sides, **params})))
    return status, body


def top(server, a, **params):
    """{function: (self, total)} of it."""
    status, body = view(server, "top", a, **params)
    equal(status, 200)
    answer = json.loads(body)
    functions = {f[0]: f[1] for f in answer["functions"]}
    return {functions[row[0]]: (row[1], row[2]) for row in answer["rows"]}


def fill(server):
    for i in range(60):
        stacks = {"copy;handle;main": (1, 10**7), "parse;handle;main": (2, 2 * 10**7 if i < 30 else 4 * 10**7)}
        server.push(profile(stacks, CPU, time=START + i * 60 * 10**9, duration=10**10), service="web", type="cpu",
                    labels="version=%d,region=eu" % (i // 30))


def has_pages():
    for path in PAGES:
        status, headers, body = server.ask(path)
        equal((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        assert b"static/fleet.js" in body, path
        for name, want in (("content-security-policy", "default-src 'none'; script-src 'self'"), ("x-content-type-options", "nosniff"),
                           ("x-frame-options", "DENY"), ("referrer-policy", "no-referrer")):
            assert headers[name].startswith(want), (path, name, headers.get(name))
    equal(server.ask("/pages")[0], 404)


def has_files():
    _, headers, body = server.ask("/static/fleet.js")
    equal(headers["content-type"], "text/javascript; charset=utf-8")
    assert b"import " not in body.replace(b"important", b""), "modules are bundled"
    assert len(body) < 250_000, len(body)
    for path in ("/static/", "/static/../server.c", "/static/%2e%2e/fleet.js", "/static/nothing.js", "/static/a%00b"):
        status = server.ask(path)[0]
        assert status in (400, 404), (path, status)


def repeats_cheaply():
    _, headers, _ = server.ask("/static/fleet.js")
    equal(server.ask("/static/fleet.js", headers={"If-None-Match": headers["etag"]})[0], 304)


# ---- the viewer

def merges():
    equal(top(server, selection()), {"copy": (60 * 10**7, 60 * 10**7), "parse": (180 * 10**7, 180 * 10**7), "handle": (0, 240 * 10**7),
                                     "main": (0, 240 * 10**7)})
    equal(top(server, selection(to=at(29)))["parse"], (60 * 10**7, 60 * 10**7))
    equal(top(server, selection(query='version="1"'))["parse"], (120 * 10**7, 120 * 10**7))


def shows_one():
    _, answer = server.get("/api/1/profiles", service="web", type="cpu", **{"from": at(0), "to": at(0) + 1})
    equal(top(server, "id=" + answer["profiles"][0]["id"])["parse"], (2 * 10**7, 2 * 10**7))
    equal(view(server, "top", "id=00000000000000000000")[0], 404)
    equal(view(server, "top", "id=x")[0], 404)


def compares():
    a, b = selection(to=at(29)), selection(**{"from": at(30)})
    status, body = view(server, "diff", a, b, si="cpu")
    equal(status, 200)
    rows = {row["function"][1]: (row["a"], row["b"]) for row in json.loads(body)["rows"]}
    equal((rows["parse"], rows["copy"]), ((60 * 10**7, 120 * 10**7), (30 * 10**7, 30 * 10**7)))
    _, meta = view(server, "meta", a, b)
    equal([p["id"] for p in json.loads(meta)["profiles"]], [a, b])


def tells_what_it_shows():
    status, body = view(server, "meta", selection())
    meta = json.loads(body)
    equal((status, meta["home"], meta["title"].split(",")[:2], meta["configs"]), (200, "../", ["web", " cpu"], []))
    equal(meta["profiles"][0]["duration_nanos"], 60 * 10**10)


def fixes_times():
    query = "service=web&type=cpu&from=now-1h"
    status, headers, _ = server.ask("/ui/top?%s" % urllib.parse.urlencode({"a": query, "f": "x&y"}))
    equal(status, 307)
    where = urllib.parse.urlparse(headers["location"])
    params = dict(urllib.parse.parse_qsl(where.query))
    inner = dict(urllib.parse.parse_qsl(params["a"]))
    equal((where.path, params["f"], inner["service"], inner["type"]), ("top", "x&y", "web", "cpu"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", inner["from"]) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", inner["to"]), inner
    equal(server.ask("/ui/" + headers["location"])[0], 200)
    status, body = view(server, "top", query)
    equal((status, "fixed times" in json.loads(body)["error"]), (400, True))


def explains_wrong_selections():
    for a, want in (("", "says which profiles"), ("service=web&nope=1&from=1&to=2", "no parameter \"nope\""),
                    ("from=5&to=2&type=cpu", "from is after to"), ("query=%7Bx%3D~%22(%22%7D&from=1&to=2", "query")):
        status, body = view(server, "top", a)
        equal(status, 400)
        assert want in json.loads(body)["error"], (a, body)
    equal(view(server, "top", selection(service="nobody"))[0], 404)
    equal(view(server, "top", "a" * 20000)[0], 400)


def has_no_files():
    a = urllib.parse.urlencode({"a": selection()})
    for method, path in (("POST", "api/v1/profiles"), ("POST", "api/v1/profiles?url=http://127.0.0.1:1/"),
                         ("DELETE", "api/v1/profiles?id=0"), ("POST", "api/v1/subtract?" + a), ("POST", "api/v1/saveconfig?config=x"),
                         ("POST", "saveconfig?config=x"), ("DELETE", "deleteconfig?config=x")):
        status, _, _ = server.ask("/ui/" + path, method)
        assert status in (403, 405), (method, path, status)


def urls_last():
    """A zoom in a URL means the same to another server, which has seen other profiles first."""
    def numbers(server):
        _, body = view(server, "top", selection())
        return {f[1]: f[0] for f in json.loads(body)["functions"]}
    other = Server()
    other.push(profile({"aaa;bbb;main": (1, 5)}, CPU, time=START, duration=10**10), service="other", type="cpu")
    view(other, "top", selection(service="other"))
    fill(other)
    equal(numbers(other), numbers(server))
    numbers = numbers(server)
    path = "%d.%d.%d" % (numbers["main"], numbers["handle"], numbers["parse"])
    status, body = view(other, "flame", selection(), root=path)
    assert status == 200 and b"parse" in body and b'"copy"' not in body, body[:300]
    equal(view(other, "flame", selection(), root="1.2.3")[0], 404)
    other.stop()


def gives_memory_back():
    def taken():
        return float(re.search(r"^kiln_request_memory_bytes (\S+)", small.ask("/metrics")[2].decode(), re.M)[1])
    small = Server("--max-memory", "64MB")
    fill(small)
    empty = taken()
    for i in range(20):
        equal(view(small, "top", selection(to=at(30 + i)))[0], 200)
    kept = taken() - empty
    open_now = float(re.search(r"^kiln_viewer_profiles (\S+)", small.ask("/metrics")[2].decode(), re.M)[1])
    assert 0 < open_now <= 8, open_now
    assert 0 < kept < 8 * 2**20, kept
    equal(view(small, "top", selection(to=at(30)))[0], 200)
    equal(small.stop(), 0)


def refuses_for_want_of_memory():
    small = Server("--max-memory", "64MB")
    for i in range(16):
        stacks = {";".join("%d_%d_%d_%s" % (i, n, k, "x" * 90) for k in range(12)): (1, 10) for n in range(800)}
        pushed = small.push(profile(stacks, CPU, time=START, duration=10**10), service="web", type="cpu", labels="i=%d" % i)
        assert isinstance(pushed, dict), pushed
    status, answer = view(small, "top", selection())
    assert status in (413, 503) and "max-memory" in json.loads(answer)["error"], (status, answer[:300])
    equal(small.get("/api/1/refusals")[1]["totals"][0]["limit"], "max-memory")
    equal(view(small, "top", selection(query='i="3"'))[0], 200)
    equal(small.stop(), 0)


# ---- who may

def wants_to_know_who():
    path = "%s/tokens%d" % (TMP, next(names))
    with open(path, "w") as f:
        f.write("read tttttttttttttttt1 ann\nwrite tttttttttttttttt2 agents\n")
    guarded = Server("--tokens", path)
    page = {"Accept": "text/html,*/*;q=0.8"}

    def basic(password, user=""):
        return {**page, "Authorization": "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()}
    for where in ("/", "/timeline", "/static/fleet.js", "/ui/flamegraph", "/ui/api/v1/meta", "/api/1/stats"):
        status, headers, body = guarded.ask(where, headers=page)
        equal((status, headers["www-authenticate"].split()[0]), (401, "Basic"))
    status, headers, body = guarded.ask("/", headers=page)
    equal(headers["content-type"], "text/html; charset=utf-8")
    assert b"A token goes where the browser asks for the password" in body, body
    equal(guarded.ask("/", headers=basic("wrong-wrong-wrong"))[0], 401)
    equal(guarded.ask("/", headers=basic("tttttttttttttttt1"))[0], 200)
    equal(guarded.ask("/static/fleet.js", headers=basic("tttttttttttttttt1", "anybody"))[0], 200)
    equal(guarded.ask("/", headers=basic("tttttttttttttttt2"))[0], 403)
    guarded.stop()


def other_sites_may_not_write():
    for headers, want in (({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
                          ({"Sec-Fetch-Site": "same-site"}, 403), ({"Origin": server.url}, 400), ({"Sec-Fetch-Site": "same-origin"}, 400), ({}, 400)):
        equal((headers, server.ask("/api/0/profiles?service=x&type=cpu", "POST", b"no profile", headers)[0]), (headers, want))
    equal(server.ask("/", headers={"Host": "evil.example"})[0], 403)


# ---- series

def has_levels():
    """5 seconds of CPU time in each 10 s of a minute are half a core, of each of the processes."""
    s = Server()
    for i in range(60):
        for pod in range(2):
            s.push(profile({"a;main": (1, 5 * 10**9)}, CPU, time=START + i * 60 * 10**9, duration=10**10), service="half", type="cpu",
                   labels="pod=%d" % pod)
    window = {"from": at(0), "to": at(60) - 1}
    _, plain = s.get("/api/1/series", service="half", type="cpu", step="7s", **window)
    equal(len(plain["lines"][0]["points"]), 60)
    for step in ("2s", "7s", "1m", "10m", "1h"):
        _, answer = s.get("/api/1/series", service="half", type="cpu", step=step, levels="true", **window)
        line = answer["lines"][0]
        equal((line["unit"], line["per_second"]), ("nanoseconds", True))
        for point in line["points"]:
            assert abs(point[3] / 1e9 - 1) < 0.02, (step, point)
    # One that was replaced by another in the middle of an hour counts for as long as it was there.
    for i in range(60):
        s.push(profile({"a;main": (1, 5 * 10**9)}, CPU, time=START + i * 60 * 10**9, duration=10**10), service="new", type="cpu",
               labels="version=%d" % (i // 30))
    _, answer = s.get("/api/1/series", service="new", type="cpu", step="1h", levels="true", **window)
    assert abs(answer["lines"][0]["points"][0][3] / 1e9 - 0.5) < 0.02, answer
    _, plain = s.get("/api/1/series", service="half", type="cpu", step="1h", **window)
    equal([len(p) for p in plain["lines"][0]["points"]], [3])
    s.stop()


server = Server()
fill(server)
check("each page is there, with the headers that keep others out", has_pages)
check("scripts and styles, and nothing beside them", has_files)
check("what a browser has is not sent again", repeats_cheaply)
check("a window is merged", merges)
check("one profile", shows_one)
check("two windows are compared", compares)
check("the page knows what it shows", tells_what_it_shows)
check("relative times become fixed ones", fixes_times)
check("wrong selections are explained", explains_wrong_selections)
check("no files of the server, no uploads, no settings", has_no_files)
check("numbers of functions in URLs last", urls_last)
check("memory of profiles is counted and given back", gives_memory_back)
if not IS_SLOW:  # sanitizers take more than that for themselves
    check("too much for the memory is refused, and the server lives", refuses_for_want_of_memory)
check("people log in", wants_to_know_who)
check("pages of other sites may not write", other_sites_may_not_write)
check("levels are cores, however much of the time was profiled", has_levels)
done()
