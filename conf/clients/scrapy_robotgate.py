"""A Scrapy downloader middleware that logs why robotgate refused a request, and repeats only temporary refusals.

Put this file where Python finds it: next to the project's scrapy.cfg, or in a folder of PYTHONPATH, as
`robotgate env --write DIR scrapy` does. Add this to settings.py:

    USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
    ROBOTSTXT_OBEY = False  # robotgate checks it; otherwise each site is asked for its robots.txt twice
    DOWNLOADER_MIDDLEWARES = {"scrapy_robotgate.RobotgateMiddleware": 560}

With 560, a refusal gets here before RetryMiddleware (550) sees it. Scrapy calls a spider's errback with IgnoreRequest,
and the stats count refusals by reason (robotgate/refused/rule and so on). RetryMiddleware retries a 503
(refusals.unreachable-status), but no refused CONNECT. If a request came too early (429), the middleware waits as long as
Retry-After says, and then sends it again, as often as needed. The request counts as one of CONCURRENT_REQUESTS meanwhile.
"""

import logging
import re

import scrapy.utils.defer
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import IgnoreRequest

logger = logging.getLogger(__name__)

# The statuses that refusals.status and refusals.unreachable-status allow. The phrase of every refusal begins with this
# word. The 503 of an overloaded proxy has a different phrase, so Scrapy retries it.
REFUSED_CONNECT = re.compile(r"'status': (403|451|503), 'reason': b?['\"]Disallowed")


def refusal(decision):
    """Returns the reason of a refusal from a Robots-Decision field, or None if the request was forwarded."""
    if not decision or decision.startswith("allow") or "enforcement=report" in decision:
        return None
    reason = re.search(r"reason=([a-z0-9-]+)", decision)
    return reason.group(1) if reason else "unknown"


async def sleep(seconds):
    # Importing the reactor before Scrapy has chosen one would install the wrong one.
    from twisted.internet import reactor, task

    await scrapy.utils.defer.maybe_deferred_to_future(task.deferLater(reactor, seconds, lambda: None))


class RobotgateMiddleware:
    @classmethod
    def from_crawler(cls, crawler):
        if crawler.settings.getbool("ROBOTSTXT_OBEY"):
            logger.warning(
                "ROBOTSTXT_OBEY is on, so each site is asked for its robots.txt twice, unless robots.serve-copies is on "
                "in robotgate: set it to False, robotgate checks it"
            )
        return cls(crawler.stats)

    def __init__(self, stats):
        self.stats = stats

    async def process_response(self, request, response, spider=None):
        decision = response.headers.get("Robots-Decision", b"").decode("latin-1")
        reason = refusal(decision)
        if reason is None:
            return response
        if decision.startswith("defer"):
            await sleep(int(response.headers.get("Retry-After", b"1")))
            self.stats.inc_value("robotgate/deferred")
            return request.replace(dont_filter=True)
        if reason == "unreachable" and response.status == 503:
            return response  # RetryMiddleware tries again.
        raise self.refused(request, reason, decision)

    def process_exception(self, request, exception, spider=None):
        # Of the response to a refused CONNECT, Scrapy keeps only the status and the reason phrase.
        if isinstance(exception, TunnelError) and REFUSED_CONNECT.search(str(exception)):
            raise self.refused(request, "connect", str(exception))

    def refused(self, request, reason, told):
        logger.warning("robotgate refused %s: %s", request.url, told)
        self.stats.inc_value(f"robotgate/refused/{reason}")
        return IgnoreRequest(f"robotgate refused {request.url}: {told}")
