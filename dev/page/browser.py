"""A headless Chromium driven by its DevTools protocol over a pipe: nothing but Python is needed."""

import atexit
import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

from palette import with_palette

KEYS = {
    "Enter": (13, "\r"), "Tab": (9, None), "Escape": (27, None), "ArrowUp": (38, None),
    "ArrowDown": (40, None), "ArrowLeft": (37, None), "ArrowRight": (39, None),
}


class Browser:
    """One page of a browser, what it asked the network for, and the errors of its console."""

    def __init__(self, program):
        # The protocol is on the descriptors 3 and 4 of the browser.
        while os.open("/dev/null", os.O_RDONLY) < 10:
            pass
        (read_end, self.to), (self.of, write_end) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_end, write_end)]

        def connect():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.profile = tempfile.TemporaryDirectory(prefix="thalweg-page-")
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update",
            "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.profile.name,
            "about:blank",
        ]
        self.process = subprocess.Popen(
            command, preexec_fn=connect, pass_fds=(3, 4), stderr=subprocess.DEVNULL,
        )
        atexit.register(self.close)
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.replies = [], [], {}
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        attach = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attach["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        """Ends the browser."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def call(self, method, **params):
        """Calls a method, and returns its result."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        # Turns are counted, not the clock: a machine that is held up for a while is no failure.
        turns = 600
        while number not in self.replies:
            turns -= 0 if self.pump(0.1) else 1
            if not turns:
                raise TimeoutError(method)
        reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    def pump(self, seconds):
        """Takes the first messages that come in this time. Returns whether there were some."""
        if not select.select([self.of], [], [], seconds)[0]:
            return False
        chunk = os.read(self.of, 1 << 20)
        if not chunk:
            raise RuntimeError("the browser has ended")
        *messages, self.buffer = (self.buffer + chunk).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.replies[message["id"]] = message
            else:
                self.take(message["method"], message["params"])
        return True

    def rest(self, seconds):
        """Takes messages for some time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.pump(0.1)

    def take(self, event, params):
        """Notes what the page asked for, and what it complained about."""
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Network.webSocketCreated":
            self.requests.append(params["url"])
        elif event == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            self.errors.append("exception: " + text)
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            texts = [str(one.get("value", one.get("description"))) for one in params["args"]]
            self.errors.append(f"console: {' '.join(texts)}")
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.errors.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

    def run(self, script):
        """Runs a script in the page, and returns the value of its promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                          returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script[:200]}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, what, script, seconds=20):
        """Waits until a script returns something, and returns that."""
        for _ in range(int(seconds * 20)):
            found = self.run(script)
            if found:
                return found
            self.rest(0.05)
        shown = self.run("document.body.innerText")
        raise AssertionError(f"not seen in {seconds} s: {what}\n{shown}")

    def key(self, name, shift=False):
        """Presses a key, as a keyboard does."""
        code, text = KEYS.get(name) or (ord(name.upper()), name)
        params = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **params, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def type(self, text):
        """Types a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, script):
        """Clicks with the mouse on the element that a script returns."""
        place = f"(() => {{ const e = {script}; e.scrollIntoView({{ block: 'center',"
        place += " behavior: 'instant' }); const r = e.getBoundingClientRect();"
        place += " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        x, y = self.run(place)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                      clickCount=0 if kind == "mouseMoved" else 1)

    def size(self, width, height):
        """Makes the window so large."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """Has the system prefer `dark` or `light`."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path):
        """Writes a picture of the window."""
        self.run("document.activeElement.blur()")
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        with open(path, "wb") as file:
            file.write(with_palette(base64.b64decode(shot["data"])))
