"""A headless Chromium, driven by chromedriver. SPDX-License-Identifier: Apache-2.0

The WebDriver protocol is JSON over HTTP, and little of it is needed here."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

from command_harness import DEADLINE_S, wait_for

# No service of the browser's own may be asked for anything.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
         "--window-size=1280,1000", "--lang=en-GB"]


class Browser:
    """One window, with a profile of its own. What a page says to the console is kept: see said()."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="divvy-browser.")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env={**os.environ, "TZ": "UTC"})
        self.session = None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self):
        self.port = self._read_port()
        options = {"args": FLAGS + ["--user-data-dir=" + self.folder], "binary": shutil.which("chromium")}
        told = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = told["sessionId"]

    def _read_port(self):
        for line in self.driver.stdout:
            found = re.search(r"successfully on port ([0-9]+)", line)
            if found:
                threading.Thread(target=self.driver.stdout.read, daemon=True).start()
                return int(found.group(1))
        raise AssertionError("chromedriver has not started")

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError("%s: %s" % (path, error.read().decode())) from error

    def _do(self, verb, body=None, method="POST"):
        return self._ask(method, "/session/%s/%s" % (self.session, verb), body if body is not None else {})

    def open(self, url):
        self._do("url", {"url": url})

    def open_afresh(self, url):
        """Opens a page, without what the one before has left or said."""
        self.open("about:blank")
        self.said()
        self.open(url)

    def run(self, script, *arguments):
        """Runs JavaScript in the page; what it returns."""
        return self._do("execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, what):
        """Waits until the expression is true in the page."""
        wait_for(lambda: self.run("return !!(%s)" % script), what)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def press(self, *keys):
        """Presses keys of the keyboard, where the focus is; a name as ENTER, or a character."""
        names = {"TAB": "\ue004", "ENTER": "\ue007", "ESCAPE": "\ue00c", "RIGHT": "\ue014", "LEFT": "\ue012"}
        actions = [{"type": kind, "value": names.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def drag(self, start, end, touch=False):
        """Presses at a place, moves to another one and lets go, by mouse or finger; a place is [x, y] in the window."""
        kind = "touch" if touch else "mouse"
        places = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)} for x, y in
                  (start, [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2], end)]
        actions = [places[0], {"type": "pointerDown", "button": 0}, *places[1:], {"type": "pointerUp", "button": 0}]
        self._do("actions", {"actions": [{"type": "pointer", "id": kind, "parameters": {"pointerType": kind},
                                          "actions": actions}]})

    def tell(self, command, **parameters):
        """Asks by the protocol of Chromium's own tools."""
        return self._do("goog/cdp/execute", {"cmd": command, "params": parameters})

    def used_ms(self):
        """The processor time that the page's thread has used: how busy the machine is does not matter."""
        self.tell("Performance.enable", timeDomain="threadTicks")
        return next(1000 * one["value"] for one in self.tell("Performance.getMetrics")["metrics"]
                    if one["name"] == "ThreadTime")

    def prefer(self, scheme):
        """light or dark."""
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height):
        """Shows the page as wide and high as that, without bars to scroll it. It scrolls all the same."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.tell("Emulation.setScrollbarsHidden", hidden=True)

    def said(self):
        """What the pages have said to the console since the last call: errors, and what their policy forbids."""
        return [entry["message"] for entry in self._do("se/log", {"type": "browser"})]

    def screenshot(self):
        return base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"])

    def close(self):
        if self.session:
            self._ask("DELETE", "/session/" + self.session)
        self.driver.terminate()
        self.driver.wait(DEADLINE_S)
        shutil.rmtree(self.folder, ignore_errors=True)


class WithBrowser:
    """For a case: one browser for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
