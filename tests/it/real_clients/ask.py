"""Requests one URL through a proxy with a given client, and prints what the client shows: one JSON object with
`status`, `reason`, `decision`, `body`, or `error` if the client raises an exception.

usage: ask.py CLIENT PROXY CA URL
"""

import asyncio
import inspect
import json
import ssl
import sys
import urllib.error
import urllib.request

client, proxy, ca, url = sys.argv[1:]
headers = {"User-Agent": "TestBot/1.0"}
FIELD = "Robots-Decision"


def with_urllib():
    trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy, "https": proxy}), trust)
    try:
        response = opener.open(urllib.request.Request(url, headers=headers), timeout=20)
    except urllib.error.HTTPError as error:
        response = error
    return response.status, response.reason, response.headers.get(FIELD), response.read().decode()


def with_requests():
    import requests

    response = requests.get(url, headers=headers, proxies={"http": proxy, "https": proxy}, verify=ca, timeout=20)
    return response.status_code, response.reason, response.headers.get(FIELD), response.text


def with_httpx(http2=False):
    import httpx

    # From version 0.26 on, httpx calls this setting `proxy`, and `proxies` before.
    setting = "proxy" if "proxy" in inspect.signature(httpx.Client).parameters else "proxies"
    with httpx.Client(verify=ca, http2=http2, timeout=20, **{setting: proxy}) as session:
        response = session.get(url, headers=headers)
        assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1"), response.http_version
        return response.status_code, response.reason_phrase, response.headers.get(FIELD), response.text


def with_aiohttp():
    import aiohttp

    async def ask():
        async with aiohttp.ClientSession() as session:
            trust = ssl.create_default_context(cafile=ca)
            async with session.get(url, headers=headers, proxy=proxy, ssl=trust, timeout=20) as response:
                return response.status, response.reason, response.headers.get(FIELD), await response.text()

    return asyncio.run(ask())


clients = {
    "urllib": with_urllib,
    "requests": with_requests,
    "httpx": with_httpx,
    "httpx-h2": lambda: with_httpx(http2=True),
    "aiohttp": with_aiohttp,
}
try:
    status, reason, decision, body = clients[client]()
    shown = {"status": status, "reason": reason, "decision": decision, "body": body}
except Exception as error:
    shown = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(shown))
