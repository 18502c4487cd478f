// Server and browser of the tests: the command `sojourn playground` and Chromium.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const ROOT = new URL("../../../", import.meta.url).pathname;
export const SOJOURN = `${ROOT}.venv/bin/sojourn`;
export const PYTHON = `${ROOT}.venv/bin/python`;

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

function program() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const found = places.find((place) => place !== undefined && existsSync(place));
  if (found === undefined) throw new Error("Chromium is missing: install it, or set CHROMIUM to its path");
  return found;
}

/** Starts the command and returns its address, and a function that ends it. */
export function serve(...words) {
  return new Promise((resolve, reject) => {
    const command = spawn(SOJOURN, ["playground", "--json", ...words], { stdio: ["ignore", "pipe", "inherit"] });
    command.once("error", reject);
    command.once("exit", (code) => reject(new Error(`sojourn playground ended with ${code}`)));
    command.stdout.once("data", (data) => resolve({ address: JSON.parse(String(data)).address, end: () => command.kill("SIGINT") }));
  });
}

export function launch() {
  return chromium.launch({ executablePath: program(), args: FLAGS });
}

/** Opens the page. `faults` collects errors of the console, of the page, and foreign requests. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const [faults, requests] = [[], []];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    requests.push(request.url());
    if (!/^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:)/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForFunction(() => globalThis.playground?.ready || document.querySelector(".failure"));
  return { page, faults, requests, close: () => context.close() };
}

/** Result of pane `i` so far, as the command prints it. */
export function summary(page, i = 0) {
  return page.evaluate(async (at) => JSON.parse(await globalThis.playground.views[at].client.summary()), i);
}

/** Waits until the page has done what it was asked for. */
export async function settled(page) {
  await page.waitForTimeout(150);
  await page.evaluate(async () => {
    // A change that the engine refuses is followed by a new start, so several rounds.
    for (let i = 0; i < 5; i++) {
      await globalThis.playground.exclusive(async () => undefined);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
}

/** Queueing delay of a group in the last second, seconds. */
export function delay(page, group, i = 0) {
  return page.evaluate(
    ([name, at]) => globalThis.playground.views[at].series.mean(`links/bottleneck/${name}/sojourn_s`, 50),
    [group, i],
  );
}

/** Simulates further, as fast as possible. */
export async function run(page, seconds) {
  await page.evaluate(async (s) => {
    const app = globalThis.playground;
    app.pause(true);
    const until = Math.round((app.nowMs + s * 1000) * 1000) / 1000;
    await app.exclusive(async () => {
      for (const view of app.views) view.take(await view.client.advance(until, 20, true));
      app.nowMs = until;
    });
    app.remember();
  }, seconds);
}

/** Runs a command and returns its output. */
export function output(command, words) {
  const done = spawnSync(command, words, { encoding: "utf8", maxBuffer: 1 << 28, cwd: ROOT });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout;
}
