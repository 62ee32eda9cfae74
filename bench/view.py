#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fluid the page of 'pestle view' is over 10,000 ops: a headless browser pans,
zooms and searches while it records its own trace; the figure is the time of script,
style, layout and paint in a frame. usage: view.py BUILD [OPS]

Prints one JSON line."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = {"FunctionCall", "EventDispatch", "FireAnimationFrame", "UpdateLayoutTree",
        "Layout", "PrePaint", "Paint", "Layerize", "RunMicrotasks", "Commit",
        "TimerFire", "EvaluateScript"}  # fmt: skip


def measure(page, act):
    """Milliseconds of work in the main thread for each frame while |act| runs."""
    page.call("Tracing.start", transferMode="ReportEvents", traceConfig={
        "includedCategories": ["devtools.timeline", "disabled-by-default-devtools.timeline"]})
    act()
    page.call("Tracing.end")
    events = []
    while True:
        event = page.events.pop(0) if page.events else page.read()
        if event.get("method") == "Tracing.dataCollected":
            events += event["params"]["value"]
        if event.get("method") == "Tracing.tracingComplete":
            break
    frames = [e for e in events if e.get("name") == "FireAnimationFrame"]
    if not frames:
        return []
    thread = (frames[0]["pid"], frames[0]["tid"])
    events = [e for e in events if e.get("ph") == "X" and e["name"] in WORK
              and (e["pid"], e["tid"]) == thread]
    # Time from the end of a frame to the end of the next; what is nested counts once.
    events.sort(key=lambda e: (e["ts"], -e.get("dur", 0)))
    ends = sorted(e["ts"] + e.get("dur", 0) for e in frames if e.get("ph") == "X")
    spent, k, until = [0.0] * (len(ends) + 1), 0, 0
    for e in events:
        begin, end = max(e["ts"], until), e["ts"] + e.get("dur", 0)
        while k < len(ends) and e["ts"] > ends[k]:
            k += 1
        if end > begin:
            spent[k] += (end - begin) / 1e3
            until = end
    return spent[1:-1]


def main():
    build = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    os.environ["PESTLE_BUILD_DIR"] = str(build)
    sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "tests")]
    import browser
    import view_test

    program = browser.find()
    if not program:
        sys.exit("there is no browser: chromium in PATH, or PESTLE_BROWSER")
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "m.mlir")
        model.write_text(view_test.long_model(count))
        path = pathlib.Path(folder, "v.html")
        subprocess.run([build / "pestle", "view", model, "-o", path, "--no-run",
                        "--no-fuse", "--device", "ref"], check=True)  # fmt: skip
        page = browser.Browser(program)
        page.open(path)
        page.run("pestleView.showGraph(pestleView.sheets[0], pestleView.reports[0], 0)")
        page.frame()

        def pan():
            for k in range(60):
                page.drag(500, 400, 0, -200 if k % 8 else 900)

        def zoom():
            page.run("pestleView.sheets[0].fit()")
            for k in range(60):
                page.wheel(500, 400, -120 if k < 40 else 240)

        def search():
            page.key("/")
            for letter in "multiply b77":
                page.type(letter)
            for _ in range(30):
                page.key("Enter")

        result = {"ops": count, "load": os.getloadavg()[0]}
        for act in (pan, zoom, search):
            frames = measure(page, act)
            result[act.__name__] = {
                "frames": len(frames), "median_ms": round(statistics.median(frames), 3),
                "p90_ms": round(statistics.quantiles(frames, n=10)[-1], 3),
                "most_ms": round(max(frames), 3)}
        result["elements"] = page.run("document.querySelectorAll('*').length")
        page.close()
        print(json.dumps(result))


if __name__ == "__main__":
    main()
