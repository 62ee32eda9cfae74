#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows: real models on real files. usage: demo.py BUILD"""

import os
import sys

import common
import draw
import magika
import ocr


def picture(demo, name, model, options):
    """Writes NAME.svg; returns it."""
    fused = demo.dump(model, "fused", options)
    plan = demo.dump(model, "plan", options)
    path = demo.path(name + ".svg")
    steps, buffers, memory = draw.draw(fused, plan, name, path)
    print(f"  {name}: {steps} steps, {buffers} buffers; {memory}")
    return path


def write_index(demo, pictures):
    path = demo.path("index.html")
    with open(path, "w") as f:
        f.write("<!DOCTYPE html>\n<title>Pestle: make demo</title>\n")
        for picture in pictures:
            with open(picture) as svg:
                f.write(f"<p>{svg.read()}</p>\n")
    print(f"\nOpen {os.path.relpath(path)} in a browser to look at them.")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py BUILD")
    demo = common.Demo(os.path.abspath(sys.argv[1]))
    print(common.run([demo.pestle, "plugins"]).stdout.splitlines()[-1][:72])
    shown = [("detector", *ocr.show(demo)), ("magika", *magika.show(demo))]
    print("\nThe fused graphs and their memory plans")
    pictures = [picture(demo, *row) for row in shown]
    write_index(demo, [demo.path("page.svg"), *pictures])


if __name__ == "__main__":
    main()
