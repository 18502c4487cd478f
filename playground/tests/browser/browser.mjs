// Server and browser of the tests: the command `sojourn playground` and Chromium.
import assert from "node:assert/strict";
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
  const { before: _, ...settings } = options;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...settings });
  const page = await context.newPage();
  const [faults, requests] = [[], []];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    requests.push(request.url());
    if (!/^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:)/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  await options.before?.(page);
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

/** Drops a file on the page: its name, and a text or bytes in base64. */
export function drop(page, name, text, base64 = false) {
  return page.evaluate(
    ([file, content, encoded]) => {
      const data = new DataTransfer();
      const bytes = encoded ? Uint8Array.from(atob(content), (char) => char.charCodeAt(0)) : content;
      data.items.add(new File([bytes], file));
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    },
    [name, text, base64],
  );
}

/** Writes a value into a text field of the line. */
export async function type(page, name, value) {
  const field = page.locator(`.line [data-name=${name}] input[type=text]`);
  await field.fill(value);
  await field.press("Enter");
  await settled(page);
}

/** TOML of pane `i`, as the page gives it. */
export async function toml(page, i = 0) {
  await page.locator("footer > button", { hasText: "TOML" }).click();
  const text = await page.locator("dialog textarea").nth(i).inputValue();
  await page.locator("dialog > button", { hasText: "close" }).click();
  return text;
}

/** Opens the page at a fragment, runs `work`, and asserts that there were no faults. */
export async function visit(browser, address, work, options) {
  const visitor = await open(browser, address, options);
  try {
    await work(visitor.page, visitor);
    assert.deepEqual(visitor.faults, []);
  } finally {
    await visitor.close();
  }
}

/** Runs a command and returns its output. */
export function output(command, words) {
  const done = spawnSync(command, words, { encoding: "utf8", maxBuffer: 1 << 28, cwd: ROOT });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout;
}
