"""Numbers of the web page's server are those of the command line, for every profile and with all filters.

  http_oracle.py [--every=N] DIRECTORY...

Every file of the directories that is a profile (none of those called bad, bin, srcs) is given to a server, and
what it answers is compared with what kiln prints for the same file and options. Of the sets of options each
profile gets every Nth, another part of them for each profile. Prints TAP, a line for each profile. Needs KILN
and DATA in the environment.
"""
import base64
import collections
import gzip
import json
import multiprocessing
import os
import re
import subprocess
import sys
import urllib.parse

from http_lib import API, DATA, KILN, Flame, Server, equal, is_plain, read_varint

FLAGS = {"f": "focus", "i": "ignore", "h": "hide", "s": "show", "sf": "show_from", "prunefrom": "prune_from", "tf": "tagfocus",
         "ti": "tagignore", "ts": "tagshow", "th": "taghide", "tr": "tagroot", "tl": "tagleaf", "rel": "relative_percentages",
         "mean": "mean", "dropneg": "drop_negative", "n": "nodecount", "nf": "nodefraction", "ef": "edgefraction", "trim": "trim",
         "noinlines": "noinlines", "calltree": "call_tree", "si": "sample_index", "unit": "unit", "compact": "compact_labels"}
EXPORTS = (("text", "-top"), ("raw", "-raw"), ("dot", "-dot"), ("folded", "-folded"), ("svg", "-flamegraph"), ("speedscope", "-speedscope"),
           ("pprof", "-proto"))
EXACT = 2 ** 53  # larger numbers the command line has rounded
LARGE = 500000  # files for which Python takes long


def flags_of(params):
    """The flags that mean what the parameters of a URL do."""
    return ["-" + v if k in ("g", "sort") else "-%s=%s" % (FLAGS[k], v) for k, v in params.items()]


def kiln(*args):
    done = subprocess.run([KILN, *args], capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


# ---- profiles that the command line writes

def fields(data):
    """(number, value) of a message of protobuf: integers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def numbers(value):
    """Of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    return [v for _, v in fields(b"".join(b"\x08" + n for n in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", value, re.S)))]


def signed(v):
    return v - (1 << 64) if v >> 63 else v


class Written:
    """A profile as -proto and -topproto write it: samples as (stack of locations, values, labels)."""

    def __init__(self, packed):
        data = gzip.decompress(packed)
        self.strings, self.samples, functions, locations = [], [], {}, {}
        raw = []
        for field, value in fields(data):
            if field == 2:
                raw.append(value)
            elif field == 4:
                f = collections.defaultdict(int)
                lines = []
                for k, v in fields(value):
                    if k == 4:
                        lines.append(dict(fields(v)))
                    else:
                        f[k] = v
                locations[f[1]] = (f[3], lines)
            elif field == 5:
                f = collections.defaultdict(int, fields(value))
                functions[f[1]] = f
            elif field == 6:
                self.strings.append(value.decode(errors="replace"))
        self.functions, self.locations = functions, locations
        for s in raw:
            stack, values, labels = [], [], []
            for k, v in fields(s):
                if k == 1:
                    stack += numbers(v)
                elif k == 2:
                    values += [signed(n) for n in numbers(v)]
                elif k == 3:
                    labels.append(collections.defaultdict(int, fields(v)))
            self.samples.append((stack, values, labels))

    def text(self, location):
        """A node's name, by the rules of -top; empty if it has none."""
        address, lines = self.locations[location]
        line = collections.defaultdict(int, lines[0] if lines else {})
        f = self.functions.get(line[1]) or collections.defaultdict(int)
        name, file = self.strings[f[2]], self.strings[f[4]]
        parts = ["%016x" % address] if address else []
        if name:
            parts.append(name)
        if line[2]:
            parts.append("%s:%d%s" % (file, signed(line[2]), ":%d" % line[3] if line[3] else ""))
        elif file:
            parts.append(file)
        return " ".join(parts) if name or file else ""


# ---- the comparisons

class Comparison:
    """A profile on a server, and the same file for the command line."""

    def __init__(self, server, path, about):
        self.server, self.path, self.about, self.n = server, path, about, 0
        self.is_large = os.path.getsize(path) > LARGE
        functions = self.get("top")["functions"]
        self.is_unnamed = any(f[5] & 2 for f in functions)
        self.has_base = any(k["key"] == "pprof::base" for k in self.get("labels")["keys"])

    def ask(self, what, params):
        query = urllib.parse.urlencode({"a": self.about["id"], **params})
        status, headers, body = self.server.ask("%s%s?%s" % (API, what, query))
        self.n += 1
        return status, headers, body

    def get(self, what, **params):
        status, headers, body = self.ask(what, params)
        if status != 200:
            raise AssertionError("%s %r: %d %s" % (what, params, status, body.decode()))
        return json.loads(body) if headers["content-type"] == "application/json" else body

    def both(self, what, params, *args):
        """The server's bytes and the command line's; None if both fail, in the same words."""
        status, _, body = self.ask(what, params)
        code, out, err = kiln(*args, self.path)
        if code == 0:
            if status != 200:
                raise AssertionError("%s %r: %d %s" % (what, params, status, body.decode()))
            return body, out
        equal((status, "pprof: " + json.loads(body)["error"]), (400, err.splitlines()[-1]), "%s %r" % (what, params))
        return None

    def same_bytes(self, what, params, *args):
        got = self.both(what, params, *args)
        if what == "export/pprof" and got:
            got = tuple(map(gzip.decompress, got))
        if got and got[0] != got[1]:
            at = next((i for i, (a, b) in enumerate(zip(*got)) if a != b), min(map(len, got)))
            raise AssertionError("%s %r: at byte %d %r, want %r" % (what, params, at, got[0][at - 40:at + 60], got[1][at - 40:at + 60]))

    def top(self, params):
        """All rows, and their sums as a file for spreadsheets has them."""
        got = self.both("top", params, "-topproto", "-trim=false", *flags_of(params))
        if not got:
            return
        top, want = json.loads(got[0]), Written(got[1])
        functions = {f[0]: f for f in top["functions"]}
        ours, theirs, unnamed = collections.Counter(), collections.Counter(), 0
        for row in top["rows"]:
            f = functions[row[0]]
            if f[5] & 2:
                unnamed += row[1]
            else:
                name = "%s %s" % (f[1], f[2]) if params.get("g", "functions") != "functions" and f[2] not in f[1] else f[1]
                ours[name, float(row[1]), float(row[2])] += 1
        rest = 0
        for (location,), (cum, flat), _ in want.samples:
            name = want.text(location)
            if name and not (self.is_unnamed and self.is_address(name)):
                theirs[name, float(flat), float(cum)] += 1
            else:
                rest += flat
        if any("\ufffd" in k[0] for k in theirs):
            ours, theirs = (collections.Counter(k[1:] for k in c.elements()) for c in (ours, theirs))
        if ours != theirs:
            raise AssertionError("top %r: %r, want %r" % (params, dict(ours - theirs), dict(theirs - ours)))
        if not params.keys() & {"mean", "dropneg"}:  # which go by node: an address here, a binary there
            equal(float(unnamed), float(rest), "top %r of what has no name" % params)

    @staticmethod
    def is_address(name):
        return re.fullmatch(r"[0-9a-f]{16}", name)

    def flame(self, params):
        """The tree's paths are -folded's lines, whichever way it is asked for."""
        got = self.both("flame", {**params, "min": 0}, "-folded", *flags_of(params))
        if not got:
            return
        flame = Flame(got[0])
        folded = collections.Counter()
        lines = got[1].decode(errors="replace").split("\n")[:-1]
        has_base = self.has_base and all(re.search(r" -?\d+ -?\d+$", line) for line in lines)
        for line in lines:
            stack, value = line.rsplit(" ", 1)
            if has_base:
                stack, base = stack.rsplit(" ", 1)
                folded[stack] -= int(base)
            folded[stack] += int(value)
        if max(map(abs, folded.values()), default=0) > EXACT:
            return  # sums overflow
        ours = collections.Counter(self.net(flame))
        del ours[""]
        if flame.header["cut"]["nodes"] or self.is_unnamed or any("\ufffd" in n for n in flame.names):
            equal(sum(self.net(flame).values()) + self.lost(flame), sum(folded.values()) + self.rootless(flame), "sum of flame %r" % params)
            return
        nonzero = {k: v for k, v in ours.items() if v}
        if nonzero != {k: v for k, v in folded.items() if v}:
            odd = [(k, nonzero.get(k), folded.get(k)) for k in nonzero.keys() | folded.keys() if nonzero.get(k) != folded.get(k)]
            raise AssertionError("flame %r: %r" % (params, odd[:3]))
        inverted = Flame(self.get("flame", **params, min=0, dir="callers"))
        equal(self.net(inverted, True), self.net(flame), "inverted %r" % params)
        cut = Flame(self.get("flame", **params, min=0.05))
        equal((cut.total[0], cut.total_b[0]), (flame.total[0], flame.total_b[0]), "sum of what is cut %r" % params)

    @staticmethod
    def net(flame, is_inverted=False):
        """Path, as -folded writes it -> what it weighs itself."""
        out = collections.Counter()
        for i in range(flame.n):
            own = flame.columns["self"][i]
            if flame.has_two:
                own = flame.columns["self_b"][i] - own
            if own:
                path = flame.path(i)[::-1] if is_inverted else flame.path(i)
                out[";".join(re.sub(r"[\r\n]", " ", n.replace(";", ":")) for n in path)] += own
        return out

    @staticmethod
    def lost(flame):
        return sum(flame.columns["lost_b"]) - sum(flame.columns["lost"]) if flame.has_two else sum(flame.columns["lost"])

    @staticmethod
    def rootless(flame):
        """Samples without a stack, which have no line."""
        return flame.columns["self_b"][0] - flame.columns["self"][0] if flame.has_two else flame.columns["self"][0]

    def labels(self, params, index):
        got = not self.is_large and self.both("labels", params, "-proto", *flags_of(params))
        if not got:
            return
        want, totals = collections.Counter(), collections.Counter()
        written = Written(got[1])
        for _, values, labels in written.samples:
            for label in labels:
                key = written.strings[label[1]]
                value = written.strings[label[2]] if label[2] else signed(label[3])
                want[key, str(value)] += values[index]
                totals[key] += values[index]
        answer = json.loads(got[0])
        if answer["more_keys"]:
            return
        ours = collections.Counter()
        for key in answer["keys"]:
            ours[key["key"]] += key["total"]
            for v in key["values"]:
                if "\ufffd" not in str(v["value"]):
                    equal(v["weight"], want[key["key"], str(v["value"])], "label %s=%s %r" % (key["key"], v["value"], params))
        if is_plain(ours):
            equal(dict(ours), dict(totals), "labels %r" % params)
            text = kiln("-tags", "-unit=count", *flags_of(params), self.path)[1].decode(errors="replace")
            equal(set(re.findall(r"^ *(\S.*): Total ", text, re.M)), {k for k in ours if k}, "keys of -tags %r" % params)

    def search(self, params, text):
        folded = kiln("-folded", *flags_of(params), self.path)[1].decode(errors="replace")
        if self.is_unnamed or self.has_base or "\ufffd" in folded or ";" in text:
            return
        total = own = 0
        for line in folded.split("\n")[:-1]:
            stack, value = line.rsplit(" ", 1)
            frames = stack.split(";")
            total += int(value) * any(text in f for f in frames)
            own += int(value) * (text in frames[-1])
        got = self.get("search", **params, q=quote(text), re=1)
        equal((got["total"], got["self"]), (total, own), "search %r for %r" % (params, text))
        if text != text.lower():
            equal(self.get("search", **params, q=text)["ids"], got["ids"], "a text, and an expression of it")

    def function(self, params, name):
        """Callers and callees are those of -peek."""
        answer = self.get("function", **params, id=name)
        unit = answer["unit"] or "count"
        text = kiln("-peek=^%s$" % quote(name), "-functions", "-unit=" + unit, *flags_of(params), self.path)[1].decode(errors="replace")
        block = text.split("-" * 58 + "+" + "-" * 13 + "\n")[1:]
        rows = re.findall(r"^ +(-?[\d.]+)\S* +\S+ \|   (.*)$", block[1] if len(block) > 1 else "", re.M)
        names = {f[0]: f[1] for f in answer["functions"] if is_plain([f[1]]) and not f[5] & 2}
        for id, weight in answer["callers"] + answer["callees"]:
            if id in names and abs(weight) < EXACT:
                shown = [re.sub(r" \((partial-)?inline\)$", "", n) for v, n in rows if float(v) == weight]
                if names[id] not in shown:
                    raise AssertionError("function %s %r: %s %d is not in %r" % (name, params, names[id], weight, rows[:9]))

    def graph(self, params):
        got = self.both("graph", {"unit": "count", **params}, "-dot", "-unit=count", *flags_of(params))
        if not got:
            return
        answer, dot = json.loads(got[0]), got[1].decode(errors="replace")
        edges = [e for e in re.findall(r'^N(\d+) -> N(\d+) \[label=" (-?[\d.]+)', dot, re.M) if e[1] != "0"]  # one that is not shown
        equal(len(answer["nodes"]), len(re.findall(r"^N\d+ \[label", dot, re.M)), "nodes %r" % params)
        equal(sorted((a + 1, b + 1) for a, b, *_ in answer["edges"]), sorted((int(a), int(b)) for a, b, _ in edges), "edges %r" % params)
        if self.about["types"][0]["unit"] == "count" and len(self.about["types"]) == 1:
            equal(sorted(e[2] for e in answer["edges"]), sorted(int(float(v)) for _, _, v in edges), "weights of edges %r" % params)

    def html(self, params):
        """The page in one file has the same numbers, and beside its name is the same."""
        got = self.both("export/html", params, "-html", *flags_of(params))
        if not got:
            return
        ours, theirs = (json.loads(re.search(rb"window\.__KILN_DATA__ = (\{.*?\});\n", page, re.S)[1]) for page in got)
        for part in ours.keys() | theirs.keys():
            if part != "meta":
                equal(ours[part] == theirs[part], True, "%s of export/html %r" % (part, params))
        if "mean" not in params:
            equal(Flame(base64.b64decode(ours["flame"])).header["total"], ours["top"]["total"], "totals of html %r" % params)


    def diff(self, before):
        """Against another profile: kiln diff."""
        status, _, body = self.ask("diff", {"a": before.about["id"], "b": self.about["id"]})
        code, out, err = kiln("diff", "-json", "-n=0", before.path, self.path)
        if code:
            equal(status, 400, "diff: %s, %s" % (body, err))
            return
        ours, theirs = json.loads(body), json.loads(out)
        for key, side in (("total_a", "old"), ("total_b", "new")):
            equal(is_near(ours[key], theirs[side]["total"]), True, "%s of diff" % key)
        if self.is_unnamed or before.is_unnamed:
            return
        equal(len(ours["rows"]), theirs["functions_in_all"], "rows of diff")
        want = {row["name"]: row for row in theirs["functions"]}
        for row in ours["rows"]:
            their = want[row["function"][1]]
            for key, other in (("a", "old"), ("b", "new"), ("delta", "delta"), ("share_a", "old_share"), ("share_b", "new_share"), ("p", "p")):
                if not is_near(row[key], their[other]):
                    raise AssertionError("diff of %s: %s is %r, want %r" % (their["name"], key, row[key], their[other]))
            equal(row["significant"], their["verdict"] in ("more", "less", "slower", "faster"), "verdict on " + their["name"])


def is_near(a, b):
    """kiln diff prints ten digits."""
    return a == b if a is None or b is None else abs(a - b) <= 1e-9 * abs(b)


def quote(name):
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", name)


# ---- options

def exact(name):
    return "^%s$" % quote(name)


def option_sets(c):
    """Parameters with names and labels of this profile."""
    top = c.get("top")
    usable = [f[1] for f in top["functions"] if is_plain([f[1]]) and len(f[1]) < 900 and not f[5] & 2]
    names = usable or ["nosuchname"]
    leaf, other = names[0], names[len(names) // 2]
    sets = [{"f": exact(leaf)}, {"i": exact(leaf)}, {"h": exact(other)}, {"s": "%s|%s" % (exact(leaf), exact(other))}, {"sf": exact(other)},
            {"prunefrom": exact(other)}, {"f": quote(other[:4]), "i": exact(leaf)}, {"g": "lines"}, {"g": "files"}, {"g": "filefunctions"},
            {"g": "addresses"}, {"noinlines": "t"}, {"sort": "cum"}, {"rel": "t", "f": exact(other)}, {"mean": "t"}, {"dropneg": "t"},
            {"n": "5"}, {"n": "7", "nf": "0.01", "ef": "0.02", "sort": "cum"}, {"trim": "f"}, {"calltree": "t"}, {"unit": "auto"},
            {"g": "lines", "noinlines": "t", "f": exact(leaf)}, {"h": exact(leaf), "sort": "cum", "rel": "t"}, {"f": "nosuchname"}, {"f": "("},
            {"compact": "t"}]
    for key in c.get("labels")["keys"][:1]:
        value = key["values"][0]["value"]
        if not is_plain([key["key"], str(value)]) or "," in key["key"]:
            continue
        tag = "%s=%s" % (key["key"], value if key["is_number"] else quote(str(value)))
        sets += [{"tf": tag}, {"ti": tag}, {"ts": exact(key["key"])}, {"th": exact(key["key"])}, {"tr": key["key"]}, {"tl": key["key"]},
                 {"tr": key["key"], "tf": tag, "sort": "cum"}]
    return sets, usable


def compare_type(c, index, names):
    """One of the profile's types, without filters."""
    unit = c.about["types"][index]["unit"] or "count"
    params = {"si": str(index), "unit": unit}
    c.top(params)
    c.flame({"si": str(index)})
    c.labels({"si": str(index)}, index)
    for name in names[:1]:
        c.search({"si": str(index)}, name[:12])
        c.function({"si": str(index)}, name)
    for form, flag in EXPORTS:
        c.same_bytes("export/" + form, {"si": str(index)}, flag, *flags_of({"si": str(index)}))


def compare_options(c, params, i, default, unit):
    form, flag = EXPORTS[i % len(EXPORTS)]
    c.same_bytes("export/" + form, params, flag, *flags_of(params))
    pattern = params.get("f", ".*")
    c.same_bytes("peek", params, "-peek=" + pattern, *flags_of(params))
    if params.get("f") == "(":
        return
    c.top({"unit": unit, **params} if "unit" not in params else {**params, "unit": unit})
    if not params.keys() & {"mean", "dropneg", "g", "noinlines", "calltree"}:
        c.flame(params)
    if not params.keys() & {"mean", "tr", "tl"}:
        c.labels(params, default)
    if i % 3 == 0:
        c.graph(params)
    if i % 4 == 1 and "tr" not in params and "tl" not in params:
        c.html(params)


def load(server, path):
    """None if it is no profile, as the command line says as well."""
    with open(path, "rb") as f:
        status, about = server.post("profiles", f.read(), name=os.path.basename(path))
    is_profile = kiln("-raw", path)[0] == 0
    equal(status, 200 if is_profile else 400, "%s: %s" % (path, about))
    return Comparison(server, path, about) if is_profile else None


def unload(server, c):
    if c:
        server.post("profiles", method="DELETE", id=c.about["id"])


def compare(server, number, path, before, every):
    """How many answers were compared; `before` is another profile, to compare with."""
    c, other = load(server, path), None
    if not c:
        return 1
    about = c.about
    try:
        other = load(server, before)
        if other:
            c.diff(other)
        default = [t["type"] for t in about["types"]].index(about["default_type"])
        sets, names = option_sets(c)
        for index in range(len(about["types"])):
            compare_type(c, index, names)
        for i, params in enumerate(sets):
            if (i + number) % (10 * every if c.is_large else every) == 0:
                compare_options(c, params, i + number // every, default, about["types"][default]["unit"] or "count")
        return c.n
    finally:
        unload(server, c)
        unload(server, other)


# ---- all of them

def profiles(directories):
    for directory in directories:
        for where, inner, files in os.walk(directory):
            inner[:] = sorted(set(inner) - {"bad", "bin", "srcs"})
            for name in sorted(files):
                if name not in ("done", "MANIFEST", "README.md"):
                    yield os.path.join(where, name)


def work(tasks, results, every):
    server = Server(DATA + "/worked_a.pb")
    for number, path, before in iter(tasks.get, None):
        try:
            results.put((path, compare(server, number, path, before, every), None))
        except Exception as e:
            results.put((path, 0, "%s: %s" % (type(e).__name__, e)))
            if server.process.poll() is not None:
                server = Server(DATA + "/worked_a.pb")
    results.put(server.stop())


def main():
    every = 1
    directories = sys.argv[1:]
    if directories[0].startswith("--every="):
        every = int(directories.pop(0).split("=")[1])
    all_paths = list(profiles(directories))
    common = os.path.commonpath(directories) if len(directories) == 1 else ""
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    jobs = os.cpu_count()
    for number, path in enumerate(all_paths):
        tasks.put((number, path, all_paths[number - 1]))
    for _ in range(jobs):
        tasks.put(None)
    workers = [multiprocessing.Process(target=work, args=(tasks, results, every)) for _ in range(jobs)]
    for w in workers:
        w.start()
    n = failed = 0
    ends = []
    while len(ends) < jobs:
        result = results.get()
        if isinstance(result, int):
            ends.append(result)
            continue
        path, count, error = result
        n += 1
        failed += bool(error)
        name = os.path.relpath(path, common) if common else os.path.basename(path)
        print("%s %d - %s%s" % ("not ok" if error else "ok", n, name, "" if error else ", %d answers" % count), flush=True)
        if error:
            print("# " + "\n# ".join(error[:3000].splitlines()), flush=True)
    for w in workers:
        w.join()
    n += 1
    failed += any(ends)
    print("%s %d - all servers end with status 0" % ("not ok" if any(ends) else "ok", n))
    print("1..%d" % n)
    sys.exit(failed > 0)


main()
