// Hooks for Crawlee 3. They log why robotgate refused a request, retry only temporary refusals, and name the bot. They
// do not see a refused CONNECT, so Crawlee retries it. `robotgate env --write DIR crawlee` writes this file too.
//
//   import { CheerioCrawler, ProxyConfiguration } from "crawlee";
//   import { nameBot, stopAtRefusal } from "./crawlee_robotgate.mjs";
//
//   const crawler = new CheerioCrawler({
//     proxyConfiguration: new ProxyConfiguration({ proxyUrls: ["http://127.0.0.1:3128"] }),
//     preNavigationHooks: [nameBot("ExampleBot/1.0 (+https://example.com/bot)")],
//     postNavigationHooks: [stopAtRefusal],
//     respectRobotsTxtFile: false, // robotgate checks it; otherwise each site is asked for its robots.txt twice
//     …
//   });
//
// Without these hooks, Crawlee takes a 403 for a block by the site, and tries three more times. stopAtRefusal works with
// PlaywrightCrawler and PuppeteerCrawler, too. Instead of nameBot they need launchContext: { userAgent: … }.

/** Returns the reason of a refusal from a Robots-Decision field, or null if the request was forwarded. */
export function refusal(decision) {
  if (!decision || decision.startsWith("allow") || decision.includes("enforcement=report")) return null;
  return /reason=([a-z0-9-]+)/.exec(decision)?.[1] ?? "unknown";
}

/**
 * A hook for postNavigationHooks of every crawler. A refused request fails, and failedRequestHandler gets it. Crawlee
 * retries it only if the refusal is temporary.
 */
export function stopAtRefusal({ request, response, log }) {
  const headers = typeof response?.headers === "function" ? response.headers() : response?.headers;
  const decision = headers?.["robots-decision"];
  const reason = refusal(decision);
  if (reason === null) return;
  // Robots-Decision names the rule, but not why a site is closed or its robots.txt is unreachable.
  const details = reason === "rule" ? null : /details="((?:[^"\\]|\\.)*)"/.exec(headers["proxy-status"] ?? "");
  const cause = details ? ` (${details[1].replace(/\\(.)/g, "$1")})` : "";
  const refused = `robotgate refused ${request.url}: ${decision}${cause}`;
  log.warning(refused, { reason });
  // These refusals are temporary. With `usage` and Retry-After, robotgate is still fetching the site's tdmrep.json.
  const isTemporary =
    reason === "unreachable" || decision.startsWith("defer") || (reason === "usage" && headers["retry-after"]);
  if (!isTemporary) request.noRetry = true;
  throw new Error(refused);
}

/** A hook for preNavigationHooks of crawlers without a browser. Without it, they send the User-Agent of a browser. */
export function nameBot(userAgent) {
  return (_context, options) => {
    options.useHeaderGenerator = false;
    options.headers = { ...options.headers, "user-agent": userAgent };
  };
}
