#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows: real models on real files. usage: demo.py BUILD"""

import os
import sys

import common
import magika
import ocr


def picture(demo, name, model, options):
    """Writes NAME.html, the report of the model; returns it."""
    path = demo.path(name + ".html")
    command = [demo.pestle, "view", model, "-o", path, *options]
    common.run(command + ["--cache-dir", demo.cache])
    print(f"  {name}: {os.path.relpath(path)}")
    return path


def write_index(demo, page, reports):
    path = demo.path("index.html")
    with open(path, "w") as f:
        f.write("<!DOCTYPE html>\n<title>Pestle: make demo</title>\n")
        for report in reports:
            name = os.path.basename(report)
            f.write(f'<p><a href="{name}">The report of {name[:-5]}</a></p>\n')
        with open(page) as svg:
            f.write(f"<p>{svg.read()}</p>\n")
    print(f"\nOpen {os.path.relpath(path)} in a browser to look at them.")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py BUILD")
    demo = common.Demo(os.path.abspath(sys.argv[1]))
    print(common.run([demo.pestle, "plugins"]).stdout.splitlines()[-1][:72])
    shown = [("detector", *ocr.show(demo)), ("magika", *magika.show(demo))]
    print("\nReports: graphs after each pass, kernels, times, memory")
    reports = [picture(demo, *row) for row in shown]
    write_index(demo, demo.path("page.svg"), reports)


if __name__ == "__main__":
    main()
