"""Does to the operator's page what an operator does, a step a line from standard input: a JSON array of the step's
name and what it needs. Each is answered with a line: `ok`, or what is wrong.

usage: drive.py URL-OF-THE-PAGE
"""

import json
import sys

from browser import Browser, Failed, find

VIEWS = ["now", "origins", "explain", "configuration"]


class Operator:
    def __init__(self, url):
        self.url = url
        self.browser = Browser()
        self.run, self.wait = self.browser.run, self.browser.wait

    def open(self, width):
        self.browser.size(width)
        # The page's own address with another fragment would be no new document.
        self.browser.open("about:blank")
        self.browser.open(self.url)
        self.wait("the page", "location.protocol === 'http:' && document.title === 'robotgate'")

    def ready(self):
        self.wait("its state", f"{find('#state')}.innerText.startsWith('ready')")

    def go(self, view):
        self.browser.click(f"nav a[href='#{view}']")
        self.wait(view, f"{find('#view-' + view)}.checkVisibility()")

    def counted(self, verdict, count):
        """So many decisions have this verdict."""
        self.go("now")
        self.wait(f"{count} {verdict}", f"{find('#sum-' + verdict)}.innerText === {json.dumps(f'{count} in all')}")

    def refusal(self, url, verdict, why):
        """The newest refusal, and all that its record says."""
        self.go("now")
        row = "document.querySelector('#tail > li')"
        self.wait("a refusal", f"{row}?.querySelector('.url').innerText === {json.dumps(url)}")
        shown = self.run(f"{row}.querySelector('summary').innerText")
        expect(shown, verdict, why)
        self.browser.click("#tail > li summary")
        self.wait("its record", f"{row}.querySelector('dl')?.checkVisibility()")
        expect(self.run(f"{row}.querySelector('dl').innerText"), url, "robots_sha256", "user_agent")

    def badge(self, id, text):
        """The refusal with this id has this badge; none where the text is empty."""
        self.go("now")
        row = f"[...document.querySelectorAll('#tail > li')].find(row => row.text.includes({json.dumps(id)}))"
        self.wait("the refusal", f"{row} !== undefined")
        shown = self.run(f"{row}.querySelector('.badge')?.innerText ?? ''")
        if shown != text:
            raise Failed(f"the badge is {shown!r}")

    def opened(self, id, *texts):
        """The refusal with this id says all of this when it is opened."""
        self.filtered(id, 1)
        row = "#tail > li:not([hidden])"
        self.browser.click(f"{row} summary")
        self.wait("its record", f"{find(row + ' .whole')}?.checkVisibility()")
        expect(self.run(f"{find(row + ' .whole p')}.innerText"), *texts)

    def closed(self):
        """The refusal that is open is closed again."""
        self.go("now")
        self.browser.click("#tail details[open] summary")

    def asked_why(self, answer, *texts):
        """From the refusal that is open to this answer, with these texts."""
        self.browser.click("#tail details[open] a[href^='#explain']")
        self.wait(answer, f"document.querySelector('#answer .said')?.innerText === {json.dumps(answer)}")
        self.answered(*texts)

    def filtered(self, text, count):
        """So many refusals are left by this filter."""
        self.go("now")
        self.browser.fill("#filter", text)
        left = "[...document.querySelectorAll('#tail > li')].filter(row => row.checkVisibility()).length"
        self.wait(f"{count} refusals", f"{left} === {count}")

    def why(self, line):
        """From the refusal that is open to the line that decided."""
        self.browser.click("#tail details[open] a[href^='#explain']")
        self.marked(line)

    def marked(self, line):
        mark = "document.querySelector('#answer mark')"
        self.wait("the marked line", f"{mark}?.innerText.trim() === {json.dumps(line)}")
        seen = (
            f"((mark, box) => mark.top >= box.top && mark.bottom <= box.bottom)"
            f"({mark}.getBoundingClientRect(), {mark}.closest('.file').getBoundingClientRect())"
        )
        self.wait("the marked line to be in sight", seen)

    def ask(self, agent, url, answer):
        self.go("explain")
        self.browser.fill("#agent", agent)
        self.browser.fill("#url", url)
        self.browser.click("#ask button")
        self.wait(answer, f"document.querySelector('#answer .said')?.innerText === {json.dumps(answer)}")

    def answered(self, *texts):
        """All of these stand in the answer."""
        expect(self.run(f"{find('#answer')}.innerText"), *texts)

    def search(self, text, origins):
        """These origins and no other have this in their names."""
        self.go("origins")
        self.browser.fill("#search", text)
        names = "[...document.querySelectorAll('#origins th')].map(cell => cell.innerText)"
        wanted = json.dumps(json.dumps(origins, separators=(",", ":")))
        # What is on disk gets there a moment later.
        again = "void (Date.now() % 500 < 60 && document.querySelector('#refresh').click())"
        self.wait(f"{origins}", f"JSON.stringify({names}) === {wanted} || {again}")

    def origin(self, origin, *texts):
        """All of these stand on an origin's own view, which its row leads to."""
        self.browser.click("#origins th a")
        self.wait(origin, f"{find('#h-origin')}.innerText === {json.dumps(origin)}")
        self.wait("its facts", "document.querySelector('#origin dl') !== null")
        expect(self.run(f"{find('#origin')}.innerText"), *texts)

    def configuration(self, *texts):
        self.go("configuration")
        view = f"{find('#view-configuration')}.innerText"
        self.wait(f"{texts}", f"{json.dumps(texts)}.every(text => {view}.includes(text))")

    def rejected(self, *texts):
        """The banner of a rejected configuration is there, whatever the view."""
        banner = "document.querySelector('#banner-reload')"
        told = f"{json.dumps(texts)}.every(text => {banner}.innerText.includes(text))"
        self.wait(f"{texts}", f"{banner}?.checkVisibility() && {told}")

    def not_rejected(self):
        self.wait("no banner", "document.querySelector('#banner-reload') === null")

    def gone(self):
        self.wait("a banner", "document.querySelector('#banner-gone')?.checkVisibility()")

    def fits(self, width):
        """Nothing is wider than the window in any view."""
        self.browser.size(width)
        for view in VIEWS:
            self.go(view)
            wide = self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                raise Failed(f"{view} is {wide} pixels too wide at {width}")

    def log_in(self, token):
        self.wait("the question for a token", f"{find('#view-login')}.checkVisibility()")
        self.browser.fill("#token", token)
        self.browser.click("#login button")
        self.forgive("status of 401")

    def not_logged_in(self):
        self.wait("an error", f"{find('#login-error')}.innerText !== ''")
        self.forgive("status of 401")
        if self.run("[...document.querySelectorAll('.view')].some(view => view.checkVisibility())"):
            raise Failed("a view can be seen without a token")

    def log_out(self):
        self.browser.click("#log-out")
        self.wait("the question for a token", f"{find('#view-login')}.checkVisibility()")
        self.forgive("status of 401")

    def clean(self):
        """Nothing failed in the page, and nothing was tried that its policy forbids."""
        # What it has told before the answer has been heard then.
        self.run("1")
        if self.browser.complaints:
            raise Failed(f"the browser complains: {self.browser.complaints}")

    def forgive(self, text):
        """The browser tells of every request that fails; these had to."""
        self.run("1")
        self.browser.complaints = [each for each in self.browser.complaints if text not in str(each)]


def expect(shown, *texts):
    for text in texts:
        if text not in shown:
            raise Failed(f"{text!r} is not in what is shown:\n{shown}")


def main():
    operator = Operator(sys.argv[1])
    try:
        for line in sys.stdin:
            name, *needs = json.loads(line)
            try:
                getattr(operator, name)(*needs)
                answer = "ok"
            except Failed as failed:
                answer = " ⏎ ".join(str(failed).splitlines())
            print(answer, flush=True)
    finally:
        operator.browser.close()


main()
