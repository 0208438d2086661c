"""A headless Chromium, driven through its DevTools protocol over a pipe. It needs only the browser itself."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome"]
# Seconds until a wait fails. This is long, because the machine can be busy. A passing test waits far less.
DEADLINE = 120
SWITCHES = [
    "--headless=new",
    "--remote-debugging-pipe",
    # The browser opens only the tests' pages, and its sandbox does not work in most containers.
    "--no-sandbox",
    "--no-proxy-server",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
]


class Failed(Exception):
    """A step failed. The text says what was expected, and what the page shows instead."""


class Browser:
    """A Chromium with one page."""

    def __init__(self):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if not program:
            raise Failed("there is no Chromium; the README's test command installs it")
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from file descriptor 3 and writes answers to 4.
        theirs_in, self.commands = os.pipe()
        answers, theirs_out = os.pipe()
        self.chromium = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", program]
            + SWITCHES
            + [f"--user-data-dir={self.folder.name}", "about:blank"],
            pass_fds=[theirs_in, theirs_out],
            env=os.environ | {"HOME": self.folder.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.answers = answers
        self.buffer = b""
        self.last = 0
        self.session = None
        # Errors and warnings of the page.
        self.complaints = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def close(self):
        self.chromium.terminate()
        self.chromium.wait()
        self.folder.cleanup()

    def call(self, method, **parameters):
        """Sends a command and returns its result. Keeps complaints that arrive meanwhile."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.last:
                if "error" in message:
                    raise Failed(f"{method}: {message['error']}")
                return message["result"]
            self.hear(message)

    def read(self):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], DEADLINE)[0]:
                raise Failed("Chromium says nothing")
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise Failed("Chromium has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def hear(self, message):
        told = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(told["exceptionDetails"])
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(told["args"])
            # These include violations of the content security policy.
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(told["entry"])

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """Evaluates a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failed(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, what, script):
        """Waits until the expression is truthy, and returns its value."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                found = self.run(script)
            except Failed as failed:
                # Between two documents, elements can be missing.
                found, script_failed = None, failed
            else:
                script_failed = None
            if found:
                return found
            if time.monotonic() > end:
                why = script_failed or script
                raise Failed(f"waited in vain for {what} ({why}); the page shows:\n{self.text()}")
            time.sleep(0.05)

    def text(self):
        return self.run("document.body.innerText")

    def click(self, selector):
        click = "node => node && node.checkVisibility() && (node.click(), true)"
        self.wait(selector, f"({click})({find(selector)})")

    def fill(self, selector, text):
        """Replaces the text in a field."""
        focus = "node => node && node.checkVisibility() && (node.focus(), node.select(), true)"
        self.wait(selector, f"({focus})({find(selector)})")
        self.call("Input.insertText", text=text)
        self.wait(f"the text in {selector}", f"{find(selector)}.value === {json.dumps(text)}")


def find(selector):
    return f"document.querySelector({json.dumps(selector)})"
