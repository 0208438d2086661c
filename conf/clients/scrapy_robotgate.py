"""A Scrapy downloader middleware that logs why robotgate refused a request, and repeats only temporary refusals.

Put this file where Python finds it: next to the project's scrapy.cfg, or in a folder of PYTHONPATH, as
`robotgate env --write DIR scrapy` does. Add this to settings.py:

    USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
    ROBOTSTXT_OBEY = False  # robotgate checks it; otherwise each site is asked for its robots.txt twice
    DOWNLOADER_MIDDLEWARES = {"scrapy_robotgate.RobotgateMiddleware": 560}

With 560, a refusal gets here before RetryMiddleware (550) sees it. Scrapy calls a spider's errback with IgnoreRequest,
and the stats count refusals by reason (robotgate/refused/rule and so on). RetryMiddleware retries a 503
(refusals.unreachable-status), but no refused CONNECT. If a request came too early (429), or before the site's
tdmrep.json (403, usage), the middleware sends it again after the time in Retry-After, as often as needed. The spider
stays open meanwhile, and other requests continue.
"""

import asyncio
import logging
import re

from scrapy import signals
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import DontCloseSpider, IgnoreRequest

logger = logging.getLogger(__name__)

# A refused CONNECT, with a status that refusals.status or refusals.unreachable-status allows. The reason phrase of each
# refusal begins with "Disallowed". The 503 of an overloaded proxy has a different phrase, so Scrapy retries it.
REFUSED_CONNECT = re.compile(r"'status': (403|451|503), 'reason': b?['\"]Disallowed")
# A CONNECT that came too early.
DEFERRED_CONNECT = re.compile(r"'status': 429, 'reason': b?['\"]Disallowed")
# Why robotgate refused the request, in a Proxy-Status field.
DETAILS = re.compile(r'details="((?:[^"\\]|\\.)*)"')
# Seconds until a request is sent again, if its refusal does not say.
DEFAULT_WAIT = 10


def refusal(decision):
    """Returns the reason of a refusal from a Robots-Decision field, or None if the request was forwarded."""
    if not decision or decision.startswith("allow") or "enforcement=report" in decision:
        return None
    reason = re.search(r"reason=([a-z0-9-]+)", decision)
    return reason.group(1) if reason else "unknown"


def call_later(seconds, function):
    """Calls the function after so many seconds. The result has the method cancel()."""
    try:
        return asyncio.get_running_loop().call_later(seconds, function)
    except RuntimeError:
        # Importing the reactor before Scrapy has chosen one would install the wrong one.
        from twisted.internet import reactor

        return reactor.callLater(seconds, function)


class RobotgateMiddleware:
    @classmethod
    def from_crawler(cls, crawler):
        if crawler.settings.getbool("ROBOTSTXT_OBEY"):
            logger.warning(
                "ROBOTSTXT_OBEY is on, so each site is asked for its robots.txt twice, unless robots.serve-copies is on "
                "in robotgate: set it to False, robotgate checks it"
            )
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    def __init__(self, crawler):
        self.crawler = crawler
        self.stats = crawler.stats
        self.waiting = set()

    def spider_idle(self):
        if self.waiting:
            raise DontCloseSpider

    def spider_closed(self):
        for call in self.waiting:
            call.cancel()
        self.waiting.clear()

    def process_response(self, request, response, spider=None):
        decision = response.headers.get("Robots-Decision", b"").decode("latin-1")
        reason = refusal(decision)
        if reason is None:
            return response
        seconds = response.headers.get("Retry-After", b"")
        # With `usage` and Retry-After, robotgate is still fetching the site's tdmrep.json.
        if decision.startswith("defer") or (reason == "usage" and seconds):
            raise self.deferred(request, int(seconds) if seconds.isdigit() else DEFAULT_WAIT)
        if reason == "unreachable" and response.status == 503:
            return response  # RetryMiddleware tries again.
        # Robots-Decision names the rule, but not why a site is closed or its robots.txt is unreachable.
        status = response.headers.get("Proxy-Status", b"").decode("latin-1")
        details = None if reason == "rule" else DETAILS.search(status)
        cause = " (" + re.sub(r"\\(.)", r"\1", details[1]) + ")" if details else ""
        raise self.refused(request, reason, decision + cause)

    def process_exception(self, request, exception, spider=None):
        # Of the response to a refused CONNECT, Scrapy keeps only the status and the reason phrase.
        if isinstance(exception, TunnelError) and DEFERRED_CONNECT.search(str(exception)):
            raise self.deferred(request, DEFAULT_WAIT)
        if isinstance(exception, TunnelError) and REFUSED_CONNECT.search(str(exception)):
            raise self.refused(request, "connect", str(exception))

    def deferred(self, request, seconds):
        """Sends the request again later. It holds no place among CONCURRENT_REQUESTS until then."""
        # Without dont_cache, Scrapy's cache would answer the repeated request with the stored 429.
        again = request.replace(dont_filter=True, meta={**request.meta, "dont_cache": True})

        def send():
            self.waiting.discard(call)
            self.crawler.engine.crawl(again)

        call = call_later(seconds, send)
        self.waiting.add(call)
        self.stats.inc_value("robotgate/deferred")
        # Only the repeated request may call the spider, so this one gets no errback.
        request.errback = None
        return IgnoreRequest(f"robotgate deferred {request.url}: again in {seconds} s")

    def refused(self, request, reason, told):
        logger.warning("robotgate refused %s: %s", request.url, told)
        self.stats.inc_value(f"robotgate/refused/{reason}")
        return IgnoreRequest(f"robotgate refused {request.url}: {told}")
