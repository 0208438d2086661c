// Sends fetch, http and https of Node.js through the proxy that https_proxy and http_proxy name. Node before 22.21, and 23
// to 24.4, ignore these variables. Later ones read them if NODE_USE_ENV_PROXY=1 is set, but not for an http.Agent that a
// program creates. `robotgate env --write DIR node` writes this file, and prints the variable that loads it:
//
//   export NODE_OPTIONS=--require=DIR/robotgate-node.cjs
//
// Every connection becomes a CONNECT, also for http://. This file ignores no_proxy, because bots must not bypass
// robotgate. Code that opens its own sockets still bypasses it: node:http2, node:net, the package ws without an agent,
// a dispatcher that a program creates with undici, and the package undici 8. For undici, use its ProxyAgent.
"use strict";

const http = require("node:http");
const https = require("node:https");
const net = require("node:net");
const tls = require("node:tls");

function proxyFor(isTls) {
  const { https_proxy, HTTPS_PROXY, http_proxy, HTTP_PROXY } = process.env;
  const proxy = isTls ? https_proxy || HTTPS_PROXY : http_proxy || HTTP_PROXY;
  return proxy && new URL(proxy.includes("://") ? proxy : `http://${proxy}`);
}

/** Connects through the proxy, then calls `done(error)` or `done(null, socket)`. TLS options are those of tls.connect. */
function connect(proxy, { isTls, host, port, ...options }, done) {
  const authority = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
  const headers = { host: authority };
  if (proxy.username) {
    const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    headers["proxy-authorization"] = `Basic ${Buffer.from(user).toString("base64")}`;
  }
  const over = proxy.protocol === "https:" ? https : http;
  const request = over.request({
    host: bare(proxy.hostname),
    port: portOf(proxy),
    method: "CONNECT",
    path: authority,
    headers,
    agent: false,
    [TO_PROXY]: true,
  });
  request.once("error", done);
  request.once("connect", (response, socket) => {
    if (response.statusCode !== 200) {
      socket.destroy();
      const { statusCode, statusMessage } = response;
      return done(new Error(`the proxy refuses to connect to ${authority}: ${statusCode} ${statusMessage}`));
    }
    if (!isTls) return done(null, socket);
    const secure = tls.connect({ servername: net.isIP(host) ? "" : host, ...options, host, socket });
    secure.once("error", done);
    secure.once("secureConnect", () => {
      secure.removeListener("error", done);
      done(null, secure);
    });
  });
  request.end();
}

/** Marks the request to the proxy itself. */
const TO_PROXY = Symbol("robotgate");

/** Returns whether the program itself sends a request to the proxy, as axios does. */
function isProxy(proxy, { host, port }) {
  return proxy && bare(host ?? "") === bare(proxy.hostname) && Number(port) === portOf(proxy);
}

function portOf(proxy) {
  return Number(proxy.port) || (proxy.protocol === "https:" ? 443 : 80);
}

/** Returns a URL's host without the brackets of an IPv6 address. */
function bare(host) {
  return host.replace(/^\[|\]$/g, "");
}

/** Makes all agents of a class connect through the proxy, also those that a program creates. */
function patchAgent(Agent, isTls) {
  const direct = Agent.prototype.createConnection;
  Agent.prototype.createConnection = function createConnection(options, done) {
    const proxy = proxyFor(isTls);
    // An agent with proxyEnv uses the proxy without this.
    const isOwn = options[TO_PROXY] || this.options?.proxyEnv || isProxy(proxy, options);
    if (!proxy || isOwn || options.socketPath) {
      return direct.apply(this, arguments);
    }
    const { host = "localhost", port = isTls ? 443 : 80 } = options;
    connect(proxy, { ...options, isTls, host, port, path: undefined }, done);
  };
}

/** Makes fetch, and the package undici if a program loads it, connect through the proxy. */
function setDispatcher() {
  void globalThis.Headers; // loads the undici that fetch uses
  const symbol = Symbol.for("undici.globalDispatcher.1");
  const Agent = globalThis[symbol]?.constructor;
  if (Agent?.name === "EnvHttpProxyAgent") return; // set by NODE_USE_ENV_PROXY
  if (Agent?.name !== "Agent") {
    process.emitWarning("fetch of this Node.js cannot be sent through the proxy", "robotgate");
    return;
  }
  const connectAs = ({ protocol, hostname, port, servername }, done) => {
    const isTls = protocol === "https:";
    const options = { isTls, host: bare(hostname), port: port || (isTls ? 443 : 80), ALPNProtocols: ["http/1.1"] };
    if (servername) options.servername = servername;
    const proxy = proxyFor(isTls);
    if (proxy) return connect(proxy, options, done);
    const socket = isTls ? tls.connect(options) : net.connect(options);
    socket.once("error", done).once(isTls ? "secureConnect" : "connect", () => done(null, socket));
  };
  globalThis[symbol] = new Agent({ connect: connectAs });
}

if (proxyFor(true) || proxyFor(false)) {
  patchAgent(http.Agent, false);
  patchAgent(https.Agent, true);
  if (globalThis.fetch) setDispatcher();
}
