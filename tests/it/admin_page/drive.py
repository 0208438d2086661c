"""Drives the page for operators. Each line on standard input is a step: a JSON array of the step's name and its
arguments. The answer to each is a line: `ok`, or what is wrong.

usage: drive.py URL-OF-THE-PAGE
"""

import json
import sys

from browser import Browser, Failed, find

VIEWS = ["now", "history", "refusals", "origins", "explain", "what-if", "configuration"]


# JavaScript that returns the words that break over two lines, in keys, heads of columns, buttons, labels and links of
# the menu.
BROKEN_WORDS = """
[...document.querySelectorAll("dt, thead th, button, nav a, label")]
  .filter(node => node.checkVisibility())
  .flatMap(node => {
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), words = [];
    while (texts.nextNode())
      for (const word of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) words.push(word[0]);
      }
    return words;
  })
"""


class Operator:
    def __init__(self, url):
        self.url = url
        self.browser = Browser()
        self.run, self.wait = self.browser.run, self.browser.wait

    def open(self, width):
        self.browser.size(width)
        # Leave the page first, because a change of only the fragment would not load it again.
        self.browser.open("about:blank")
        self.browser.open(self.url)
        self.wait("the page", "location.protocol === 'http:' && document.title === 'robotgate'")

    def ready(self):
        self.wait("its state", f"{find('#state')}.innerText.startsWith('ready')")

    def go(self, view):
        self.browser.click(f"nav a[href='#{view}']")
        self.wait(view, f"{find('#view-' + view)}.checkVisibility()")

    def counted(self, verdict, count):
        """Checks the number of decisions with this verdict."""
        self.go("now")
        self.wait(f"{count} {verdict}", f"{find('#sum-' + verdict)}.innerText === {json.dumps(f'{count} in all')}")

    def refusal(self, url, verdict, why):
        """Checks the newest refusal, and opens its record."""
        self.go("refusals")
        row = "document.querySelector('#tail > li')"
        self.wait("a refusal", f"{row}?.querySelector('.url').innerText === {json.dumps(url)}")
        shown = self.run(f"{row}.querySelector('summary').innerText")
        expect(shown, verdict, why)
        self.browser.click("#tail > li summary")
        self.wait("its record", f"{row}.querySelector('dl')?.checkVisibility()")
        expect(self.run(f"{row}.querySelector('dl').innerText"), url, "robots_sha256", "user_agent")

    def changed(self, *texts):
        """Checks the newest change of a robots.txt, opens it, and checks its texts."""
        self.go("now")
        row = "document.querySelector('#changes li details')"
        self.wait("a change", f"{row} !== null")
        self.browser.click("#changes li summary")
        self.wait("its rules", f"{row}.querySelector('dl')?.checkVisibility()")
        expect(self.run(f"{row}.innerText"), *texts)

    def badge(self, id, text):
        """Checks the badge of the refusal with this id. An empty text means no badge."""
        self.go("refusals")
        self.browser.fill("#filter", "")
        row = f"[...document.querySelectorAll('#tail > li')].find(row => row.dataset.id === {json.dumps(id)})"
        self.wait("the refusal", f"{row} !== undefined")
        shown = self.run(f"{row}.querySelector('.badge')?.innerText ?? ''")
        if shown != text:
            raise Failed(f"the badge is {shown!r}")

    def opened(self, id, *texts):
        """Opens the refusal with this id and checks its texts."""
        self.filtered(f"id:{id}", 1)
        row = "#tail > li"
        self.browser.click(f"{row} summary")
        self.wait("its record", f"{find(row + ' .whole')}?.checkVisibility()")
        expect(self.run(f"{find(row + ' .whole p')}.innerText"), *texts)

    def asked_why(self, answer, *texts):
        """Follows the link of the open refusal, and checks the answer and its texts."""
        self.browser.click("#tail details[open] a[href^='#explain']")
        self.wait(answer, f"document.querySelector('#answer .said')?.innerText === {json.dumps(answer)}")
        self.answered(*texts)

    def filtered(self, text, count):
        """Sets the filter, and checks the number of refusals that it leaves."""
        self.go("refusals")
        self.browser.fill("#filter", text)
        note = find("#tail-note") + ".innerText"
        told = f"{note}.includes('fit the filter')" if text else "true"
        left = "document.querySelectorAll('#tail > li').length"
        kept = f"location.hash.includes(new URLSearchParams({{ filter: {json.dumps(text)} }}))"
        self.wait(f"{count} refusals", f"{kept} && {told} && {left} === {count}")

    def filter_fails(self, text, error):
        """Sets a filter with a mistake, and checks what the page says about it."""
        self.go("refusals")
        self.browser.fill("#filter", text)
        self.wait(error, f"{find('#filter-error')}.innerText.includes({json.dumps(error)})")
        self.forgive("status of 400")

    def saved(self, kind, *texts):
        """Saves the refusals that the list shows, and checks the file."""
        keep = (
            "URL.createObjectURL = (keep => blob => (blob.text().then(text => window.kept = text), keep(blob)))"
            "(URL.createObjectURL.bind(URL))"
        )
        self.run(f"window.kept = null, {keep}, 0")
        self.browser.click(f"[data-save={kind}]")
        self.wait("a file", "window.kept !== null")
        expect(self.run("window.kept"), *texts)

    def why(self, line):
        """Follows the link of the open refusal, and checks the line that decided."""
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
        """Checks that the answer contains these texts."""
        expect(self.run(f"{find('#answer')}.innerText"), *texts)

    def what_if(self, origin, robots, config, *texts):
        """Asks what would change with a robots.txt of a site and a configuration, either of which can be empty."""
        self.go("what-if")
        for field, text in [("#if-origin", origin), ("#if-robots", robots), ("#if-config", config)]:
            self.run(f"{find(field)}.value = ''")
            if text:
                self.browser.fill(field, text)
        self.browser.click("#assume button")
        shown = f"{find('#differences')}.innerText"
        self.wait(f"{texts}", f"{json.dumps(texts)}.every(text => {shown}.includes(text))")

    def edited(self, origin, text):
        """Follows the link of the open site, and checks that its robots.txt is filled in."""
        self.browser.click("#origin a[href^='#what-if']")
        self.wait("its text", f"{find('#if-robots')}.value === {json.dumps(text)}")
        self.wait("its name", f"{find('#if-origin')}.value === {json.dumps(origin)}")

    def search(self, text, origins):
        """Searches for a text, and checks that exactly these origins are found."""
        self.go("origins")
        self.browser.fill("#search", text)
        names = "[...document.querySelectorAll('#origins th')].map(cell => cell.innerText)"
        # The page searches a moment after the last keystroke, and changes its fragment then.
        searched = f"location.hash.includes(new URLSearchParams({{ search: {json.dumps(text)} }}))"
        note = f"!{find('#origins-note')}.innerText.startsWith('Searching')"
        wanted = json.dumps(json.dumps(origins, separators=(",", ":")))
        # Copies are written to the disk a moment later, so search again about twice a second.
        again = "void (Date.now() % 500 < 60 && document.querySelector('#refresh').click())"
        self.wait(f"{origins}", f"{searched} && {note} && JSON.stringify({names}) === {wanted} || {again}")

    def sorted_by(self, column, texts):
        """Sorts the sites by a column, and checks the cells of that column on the first page, as far as given."""
        self.go("origins")
        self.browser.click(f"[data-sort='{column}']")
        self.sites(column, texts)

    def sites(self, column, texts):
        """Checks the first cells of a column."""
        index = f"[...document.querySelectorAll('#origins-heads button')].findIndex(head => head.dataset.sort === {json.dumps(column)})"
        cells = f"[...document.querySelectorAll('#origins tr')].map(row => row.children[{index}].innerText).slice(0, {len(texts)})"
        wanted = json.dumps(json.dumps(texts, separators=(",", ":")))
        self.wait(f"{texts} in {column}", f"JSON.stringify({cells}) === {wanted}")

    def state(self, state, note):
        """Shows only sites of a state, and checks what the page says about their number."""
        self.go("origins")
        select = find("#state-filter")
        self.run(f"{select}.value = {json.dumps(state)}, {select}.dispatchEvent(new Event('change')), 0")
        self.wait(note, f"{find('#origins-note')}.innerText.includes({json.dumps(note)})")

    def next_page(self, text):
        self.browser.click("#more")
        self.wait(text, f"{find('#page-of')}.innerText === {json.dumps(text)}")

    def versions(self, count, *texts):
        """Opens the last version of the open site, and checks its difference from the one before."""
        self.wait("its versions", f"document.querySelectorAll('.versions details').length === {count}")
        self.browser.click(".versions summary")
        shown = f"{find('.versions details')}.innerText"
        self.wait(f"{texts}", f"{json.dumps(texts)}.every(text => {shown}.includes(text))")

    def pasted(self, agent, urls, robots, said, *texts):
        """Asks about several URLs. If `robots` is not empty, it takes the place of the site's robots.txt."""
        self.go("explain")
        self.run(f"{find('#pasted')}.open = {json.dumps(bool(robots))}, 0")
        self.browser.fill("#agent", agent)
        self.browser.fill("#url", "\n".join(urls))
        if robots:
            self.browser.fill("#robots", robots)
        self.browser.click("#ask button")
        self.wait(said, f"document.querySelector('#answer .said')?.innerText === {json.dumps(said)}")
        self.answered(*texts)

    def history(self, range, by, *texts):
        """Chooses a time range and a series of the history, and checks that the view contains these texts."""
        self.go("history")
        for field, value in [("range", range), ("by", by)]:
            select = find(f"#{field}")
            self.run(f"{select}.value = {json.dumps(value)}, {select}.dispatchEvent(new Event('change')), 0")
        view = f"{find('#view-history')}.innerText"
        # The page asks for most histories only every ten seconds. Setting drawnAt makes it ask at once.
        self.wait(f"{texts}", f"{json.dumps(texts)}.every(text => {view}.includes(text)) || void (drawnAt = -Infinity)")

    def read_chart(self, keys, text):
        """Presses keys in the chart, and checks what the chart then says, or the fragment of the page's URL."""
        self.run(f"{find('#history-chart .plot')}.focus()")
        for key in keys:
            for kind in ["keyDown", "keyUp"]:
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=13 if key == "Enter" else 0)
        self.wait(text, f"{find('#history-chart .told')}.innerText.includes({json.dumps(text)}) || location.hash.includes({json.dumps(text)})")

    def empty(self, text):
        """Checks that the page of a proxy without requests says what to type."""
        self.go("now")
        self.wait(text, f"{find('#now-empty')}.checkVisibility() && {find('#now-empty')}.innerText.includes({json.dumps(text)})")

    def height(self, view, most):
        """Checks that a view is not taller than `most` pixels."""
        self.go(view)
        tall = self.run("document.documentElement.scrollHeight")
        if tall > most:
            raise Failed(f"{view} is {tall} pixels tall")

    def origin(self, origin, *texts):
        """Opens the view of an origin from its row, and checks that it contains these texts."""
        self.browser.click("#origins th a")
        self.opens(origin, *texts)

    def opens(self, origin, *texts):
        """Checks the view of an origin."""
        self.wait(origin, f"{find('#h-origin')}.innerText === {json.dumps(origin)}")
        self.wait("its facts", "document.querySelector('#origin dl') !== null")
        expect(self.run(f"{find('#origin')}.innerText"), *texts)

    def configuration(self, *texts):
        self.go("configuration")
        view = f"{find('#view-configuration')}.innerText"
        self.wait(f"{texts}", f"{json.dumps(texts)}.every(text => {view}.includes(text))")

    def rejected(self, *texts):
        """Checks the banner about a rejected configuration, which every view shows."""
        banner = "document.querySelector('#banner-reload')"
        told = f"{json.dumps(texts)}.every(text => {banner}.innerText.includes(text))"
        self.wait(f"{texts}", f"{banner}?.checkVisibility() && {told}")

    def not_rejected(self):
        self.wait("no banner", "document.querySelector('#banner-reload') === null")

    def gone(self):
        self.wait("a banner", "document.querySelector('#banner-gone')?.checkVisibility()")

    def fits(self, width):
        """Checks every view as `within` does."""
        self.browser.size(width)
        for view in VIEWS:
            self.go(view)
            self.within(width, view)

    def within(self, width, view):
        """Checks that what is shown now is not wider than the window, and that no key or button breaks inside a word."""
        self.browser.size(width)
        wide = self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            raise Failed(f"{view} is {wide} pixels too wide at {width}")
        broken = self.run(BROKEN_WORDS)
        if broken:
            raise Failed(f"{view} breaks {broken} at {width}")

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
        """Checks that nothing failed in the page or violated its content security policy."""
        # The browser reports earlier complaints before it answers this.
        self.run("1")
        if self.browser.complaints:
            raise Failed(f"the browser complains: {self.browser.complaints}")

    def forgive(self, text):
        """Forgets complaints with this text, about requests that were expected to fail."""
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
