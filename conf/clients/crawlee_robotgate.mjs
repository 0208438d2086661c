// Hooks for Crawlee 3 that log why robotgate refused a request, and retry only what ends by itself, and that name the bot.
// `robotgate env --write DIR crawlee` writes this file too.
//
//   import { CheerioCrawler, ProxyConfiguration } from "crawlee";
//   import { nameBot, stopAtRefusal } from "./crawlee_robotgate.mjs";
//
//   const crawler = new CheerioCrawler({
//     proxyConfiguration: new ProxyConfiguration({ proxyUrls: ["http://127.0.0.1:3128"] }),
//     preNavigationHooks: [nameBot("ExampleBot/1.0 (+https://example.com/bot)")],
//     postNavigationHooks: [stopAtRefusal],
//     respectRobotsTxtFile: false, // robotgate checks it; Crawlee would ask each site for its robots.txt once more
//     …
//   });
//
// Crawlee by itself takes a 403 for a site that blocks it, and tries three more times. PlaywrightCrawler and
// PuppeteerCrawler take stopAtRefusal too; they name the bot by launchContext: { userAgent: … } instead of nameBot.

/** The reason that a Robots-Decision field gives for a refusal, or null: the request went on to the site. */
export function refusal(decision) {
  if (!decision || decision.startsWith("allow") || decision.includes("enforcement=report")) return null;
  return /reason=([a-z0-9-]+)/.exec(decision)?.[1] ?? "unknown";
}

/**
 * A hook for postNavigationHooks of every crawler. The request fails and failedRequestHandler sees it: at once, or after
 * Crawlee's retries where the site's robots.txt is unreachable.
 */
export function stopAtRefusal({ request, response, log }) {
  const headers = typeof response?.headers === "function" ? response.headers() : response?.headers;
  const decision = headers?.["robots-decision"];
  const reason = refusal(decision);
  if (reason === null) return;
  log.warning(`robotgate refused ${request.url}: ${decision}`, { reason });
  // An unreachable robots.txt is a refusal that ends by itself.
  if (reason !== "unreachable" && !decision.startsWith("defer")) request.noRetry = true;
  throw new Error(`robotgate refused ${request.url}: ${decision}`);
}

/** A hook for preNavigationHooks of crawlers without a browser, which send a browser's made-up User-Agent otherwise. */
export function nameBot(userAgent) {
  return (_context, options) => {
    options.useHeaderGenerator = false;
    options.headers = { ...options.headers, "user-agent": userAgent };
  };
}
