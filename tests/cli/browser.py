# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that is spoken to through its debugging pipe, with Python's own
library alone: opens a page, evaluates JavaScript, sends keys and the pointer."""

import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The browser of PESTLE_BROWSER, or one in PATH; None: none."""
    given = os.environ.get("PESTLE_BROWSER")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


class Failure(Exception):
    pass


class Browser:
    def __init__(self, program, size=(1400, 900)):
        self.folder = tempfile.mkdtemp(prefix="pestle-browser-")
        to_child, self.to = os.pipe()
        self.frm, from_child = os.pipe()
        # The protocol is on descriptors 3 and 4; a shell puts them there.
        script = f'exec "$0" "$@" 3<&{to_child} 4>&{from_child}'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu",
                   "--hide-scrollbars", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", "--disable-component-update",
                   f"--window-size={size[0]},{size[1]}",
                   f"--user-data-dir={self.folder}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            ["sh", "-c", script, program, *options, "about:blank"],
            pass_fds=(to_child, from_child), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.rest, self.count, self.session = b"", 0, None
        self.events = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        os.close(self.to)
        os.close(self.frm)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self):
        while b"\0" not in self.rest:
            data = os.read(self.frm, 1 << 20)
            if not data:
                raise Failure("the browser ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while True:
            for i, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(i)["params"]
            self.events.append(self.read())

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("Page.loadEventFired")
        self.frame()

    def run(self, text):
        """The value of an expression, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=text, awaitPromise=True,
                         returnByValue=True)
        if "exceptionDetails" in done:
            raise Failure(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def frame(self):
        """Waits until what was asked for is painted."""
        self.run("new Promise(d => requestAnimationFrame(() =>"
                 " requestAnimationFrame(() => d(1))))")

    def errors(self):
        """What the page complained of since it was opened."""
        self.run("1")
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"])[:800])
            if event.get("method") == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
        return found

    # --- A user's hands ---

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def drag(self, x, y, dx, dy):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for k in range(1, 5):
            self.mouse("mouseMoved", x + dx * k / 4, y + dy * k / 4, button="left",
                       buttons=1)
        self.mouse("mouseReleased", x + dx, y + dy, button="left", clickCount=1)
        self.frame()

    def wheel(self, x, y, delta):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        self.frame()

    def key(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.frame()

    def picture(self, path):
        import base64

        data = self.call("Page.captureScreenshot")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
