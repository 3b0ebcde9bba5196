"""Profiles whose samples have times, through the API of kiln -http. What is asked for is made here, so it is known.

Prints TAP. Needs KILN and DATA in the environment.
"""
import json
import os
import time

from http_lib import API, IS_SLOW, TMP, Server, check, cli, equal, run_checks

PERIOD = 10_000_000  # nanoseconds
STACKS = {"parse": ["parse", "handle", "main"], "copy": ["memcpy", "copy", "handle", "main"], "idle": ["poll", "main"]}


def script(samples):
    """perf script's text of (seconds, thread, stack)."""
    text = []
    for at, thread, stack in samples:
        text.append("worker%d 100/%d [000] %.6f: %d cpu-clock:\n" % (thread, 100 + thread, at, PERIOD))
        text.extend("\t%x %s+0x1 (/bin/app)\n" % (0x1000 + 16 * sum(map(ord, f)), f) for f in STACKS[stack])
        text.append("\n")
    return "".join(text)


def made():
    """A minute of two threads; the second does nothing from 20 s to 30 s, and the first copies then."""
    for i in range(6000):
        at = i / 100
        yield 1000 + at, 0, "copy" if 20 <= at < 30 else "parse"
        if not 20 <= at < 30:
            yield 1000.003 + at, 1, "idle"


def write(name, samples):
    path = "%s/%s" % (TMP, name)
    with open(path, "w") as f:
        f.write(script(samples))
    return path


def top(server, **params):
    answer = server.get("top", **params)
    names = {f[0]: f[1] for f in answer["functions"]}
    return answer["total"], {names[row[0]]: row[1] for row in answer["rows"] if row[1]}


@check("the profile says that it has times")
def knows_times(server):
    about = server.get("meta")["profiles"][0]
    equal((about["ticks"], about["samples"]), (11000, 3))
    assert 59.9e9 < about["span_nanos"] < 60e9, about


@check("a part of the time is a filter of all reports")
def takes_a_part(server):
    equal(top(server), (11000 * PERIOD, {"parse": 5000 * PERIOD, "memcpy": 1000 * PERIOD, "poll": 5000 * PERIOD}))
    equal(top(server, tm="20-30"), (1000 * PERIOD, {"memcpy": 1000 * PERIOD}))
    total, functions = top(server, tm="19.5-20.5")
    equal((total, functions["memcpy"], functions["parse"]), (150 * PERIOD, 50 * PERIOD, 50 * PERIOD))
    equal(top(server, tm="100-200"), (0, {}))
    # With other filters, and of all reports.
    equal(top(server, tm="0-10", f="poll")[1], {"poll": 1000 * PERIOD})
    equal(server.get("labels", tm="20-30")["total"], 1000 * PERIOD)
    equal(server.get("graph", tm="20-30")["total"], 1000 * PERIOD)
    folded = server.get("export/folded", tm="20-30", si="samples").decode().split()
    equal(folded, ["main;handle;copy;memcpy", "1000"])


@check("two parts of the time are compared: tb is that of side a, tm that of side b")
def compares_parts(server):
    for more in ({}, {"a": "0", "b": "0"}):
        answer = server.get("diff", tb="0-10", tm="20-30", **more)
        equal((answer["total_a"], answer["total_b"]), (2000 * PERIOD, 1000 * PERIOD))
        equal({row["function"][1]: (row["a"], row["b"], row["state"]) for row in answer["rows"]},
              {"parse": (1000 * PERIOD, 0, "gone"), "poll": (1000 * PERIOD, 0, "gone"), "memcpy": (0, 1000 * PERIOD, "new")})
    # Of the same work the same share, and per second as much, however long.
    rows = server.get("diff", tb="0-5", tm="30-50", per="second")["rows"]
    equal({row["function"][1]: (row["a"], row["b"], row["significant"]) for row in rows},
          {name: (500 * PERIOD, 2000 * PERIOD, False) for name in ("parse", "poll")})
    # Shares are of all that was sampled then, whatever filters leave.
    rows = server.get("diff", tb="0-10", tm="15-25", f="parse")["rows"]
    equal([(row["function"][1], row["share_a"], round(row["share_b"], 3)) for row in rows], [("parse", 0.5, round(500 / 1500, 3))])
    answer = server.get("top", tb="0-10", tm="20-30")
    names = {f[0]: f[1] for f in answer["functions"]}
    equal({names[row[0]]: (row[1], row[4]) for row in answer["rows"] if row[1] or row[4]},
          {"parse": (1000 * PERIOD, 0), "poll": (1000 * PERIOD, 0), "memcpy": (0, 1000 * PERIOD)})
    flame = server.ask(API + "flame?tb=0-10&tm=20-30")[2]
    header = json.loads(flame[12:12 + int.from_bytes(flame[8:12], "little")])
    equal((flame[5] & 1, header["total"], header["total_b"]), (1, 2000 * PERIOD, 1000 * PERIOD))
    equal({f[1] for f in header["functions"]}, {"root", "main", "handle", "parse", "poll", "copy", "memcpy"})
    # All of it is a time, too; and what does not compare shows tm.
    equal(server.get("diff", tb="0-10")["total_b"], 11000 * PERIOD)
    equal(server.get("labels", tb="0-10", tm="20-30")["total"], 1000 * PERIOD)
    for tb in ("x", "3-1", "1", "-"):
        status, _, body = server.ask(API + "diff?tm=1-2&tb=" + tb)
        equal((tb, status, b"tb=" in body), (tb, 400, True))
    equal(server.ask(API + "diff?tm=1-2")[0], 400)


@check("what is no time is refused")
def refuses_other_times(server):
    for tm in ("1", "2-1", "a-b", "-1-2", "1-1", "1-nan", "1-1e300", "1-2-3"):
        status, _, body = server.ask(API + "top?tm=" + tm)
        equal((tm, status), (tm, 400))
        assert "seconds after the first sample" in json.loads(body)["error"], body
    for columns in ("0", "x", "100000"):
        equal(server.ask(API + "chart?columns=" + columns)[0], 400)


@check("the heat map has all samples at their places")
def has_a_heat_map(server):
    heat = server.get("heat")
    equal((heat["step"], heat["columns"], heat["rows"], len(heat["cells"])), (10**9, 60, 50, 3000))
    equal(sum(heat["cells"]), 11000 * PERIOD)
    equal(heat["cells"][25 * 50:26 * 50], [2 * PERIOD] * 50)
    equal(server.get("heat", tm="20-30")["cells"], heat["cells"])
    copies = server.get("heat", f="copy")["cells"]
    equal((sum(copies), sum(copies[20 * 50:30 * 50])), (1000 * PERIOD, 1000 * PERIOD))


def boxes(chart, lane):
    """(function, depth, start, width) of a lane."""
    flat = chart["lanes"][lane]["boxes"]
    names = [f[1] for f in chart["functions"]]
    return sorted((names[flat[i + 3]], *flat[i:i + 3]) for i in range(0, len(flat), 4))


@check("the chart joins what goes on, and shows gaps")
def has_a_chart(server):
    chart = server.get("chart", columns=600)
    equal([lane["name"] for lane in chart["lanes"]], ["worker0, tid 100", "worker1, tid 101"])
    equal((chart["more_lanes"], chart["is_cut"]), (0, False))
    equal([lane["depth"] for lane in chart["lanes"]], [4, 2])
    # Frames that go on are one box.
    first = {(name, depth): (x, width) for name, depth, x, width in boxes(chart, 0) if name in ("main", "handle", "copy")}
    equal(first[("main", 0)], (0, 600))
    equal(first[("handle", 1)], (0, 600))
    assert 199 <= first[("copy", 2)][0] <= 201 and 99 <= first[("copy", 2)][1] <= 101, first
    # Where a thread has no samples there is nothing.
    idle = [box for box in boxes(chart, 1) if box[0] == "main"]
    equal(len(idle), 2)
    assert 199 <= idle[0][3] <= 201 and 299 <= idle[1][2] <= 301, idle


@check("the chart shows a window")
def zooms(server):
    chart = server.get("chart", columns=1000, tm="20-21")
    equal((chart["from"], chart["to"]), (20 * 10**9, 21 * 10**9 + 1))
    equal([lane["name"] for lane in chart["lanes"]], ["worker0, tid 100"])
    equal(boxes(chart, 0)[0], ("copy", 2, 0, 1000))
    # What began before the window goes on in it.
    near = server.get("chart", columns=1000, tm="20.001-20.002")
    equal(near["lanes"], [])
    near = server.get("chart", columns=1000, tm="20.005-20.015")
    equal([box for box in boxes(near, 0) if box[0] == "main"], [("main", 0, 0, 1000)])


@check("profiles without times have none of it")
def has_none(server):
    """A profile without times says so, and has nothing of it."""
    plain = Server(os.environ["DATA"] + "/labels.pb")
    about = plain.get("meta")["profiles"][0]
    assert "ticks" not in about, about
    for path in ("heat", "chart"):
        status, _, body = plain.ask(API + path)
        equal(status, 400)
        assert "no times" in json.loads(body)["error"], body
    equal(plain.get("top", tm="0-1")["total"], plain.get("top")["total"])
    plain.stop()


@check("labels of pprof's profiles may be times")
def reads_labels(server):
    """The same as a profile of pprof's whose samples have the label timestamp."""
    labels = Server(os.environ["DATA"] + "/times.pb")
    equal(labels.get("meta")["profiles"][0]["ticks"], 6)
    equal(top(labels, tm="0-1.5")[1], {"decode": 3_000_000, "write": 1_000_000})
    equal([lane["name"] for lane in labels.get("chart")["lanes"]], ["reader", "writer"])
    labels.stop()


@check("other reports do not change")
def changes_no_report(server):
    """Reports of the command line do not know of times."""
    path = write("same.txt", made())
    for report in ("-top", "-raw", "-tags", "-traces"):
        assert b"timestamp" not in cli(report, path), report
    equal(server.get("export/folded"), cli("-folded", path))


@check("large ones are bounded")
def is_bounded(server):
    """A million samples, of more threads and deeper than can be seen."""
    n = 100_000 if IS_SLOW else 1_000_000
    path = TMP + "/large.txt"
    with open(path, "w") as f:
        for i in range(n):
            thread = i % 100
            f.write("w%d 7/%d [000] %.6f: 1000000 cpu-clock:\n" % (thread, 100 + thread, 5 + i / 10000))
            for k in range(3):
                f.write("\t%x f%d+0x1 (/bin/app)\n" % (0x1000 + 16 * ((i * 7 + k * 31) % 997), (i * 7 + k * 31) % 997))
            f.write("\n")
    large = Server(path)
    os.unlink(path)
    equal(large.get("meta")["profiles"][0]["ticks"], n)
    for path, most_bytes in (("heat", 200_000), ("chart?columns=4000", 2_000_000)):
        begin = time.monotonic()
        status, _, body = large.ask(API + path, headers={"Accept-Encoding": "identity"})
        took = time.monotonic() - begin
        equal(status, 200)
        assert len(body) < most_bytes, (path, len(body))
        assert took < 10, (path, took)
        print("# %s: %d bytes, %.2f s" % (path, len(body), took))
    chart = large.get("chart", columns=4000)
    equal((len(chart["lanes"]), chart["more_lanes"]), (24, 76))
    print("# resident: %d MB" % (large.rss() // 10**6))
    assert large.rss() < 800e6, large.rss()
    large.stop()


run_checks(Server(write("made.txt", made())))
