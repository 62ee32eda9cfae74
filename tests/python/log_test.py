#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library has to say goes to Python's logging, as logger "pestle"."""

import os
import subprocess
import sys
import tempfile

from case import HOME, run

CODE = """
import logging, sys, threading
rows = []
class Handler(logging.Handler):
    def emit(self, record):
        rows.append((record.name, record.levelname, record.getMessage(),
                     threading.current_thread() is threading.main_thread()))
logging.getLogger("pestle").addHandler(Handler())
logging.getLogger("pestle").propagate = False
import pestle as pt
work = threading.Thread(target=lambda: (pt.asarray([1.0]) + 1).tolist())
work.start(); work.join()
try:
    pt.backends.load(sys.argv[1])
except Exception as error:
    print("raised", type(error).__name__)
for _ in range(100): pass
for row in rows: print(*row)
"""


def test_logger():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "libpestle-broken.so")
        with open(path, "wb") as file:
            file.write(b"this is no library")
        environment = dict(os.environ, PYTHONPATH=str(HOME), PESTLE_BACKEND_PATH=folder)
        done = subprocess.run([sys.executable, "-c", CODE, path], env=environment,
                              capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert not done.stderr, done.stderr
    assert "pestle WARNING" in done.stdout and "broken" in done.stdout, done.stdout


run(globals())
