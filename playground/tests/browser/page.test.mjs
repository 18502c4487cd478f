// The page in Chromium: node --test tests/browser/
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { digests } from "../digest.mjs";
import { delay, drop, launch, open, output, PYTHON, run, serve, settled, SOJOURN, summary, visit as visitAddress } from "./browser.mjs";

let browser;
let server;
let folder;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "sojourn-playground-"));
  server = await serve();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.end();
  rmSync(folder, { recursive: true });
});

const visit = (fragment, work, options) => visitAddress(browser, `${server.address}${fragment}`, work, options);

const HOME = "#rate=10mbit&rtt=50ms&buffer=300kB&flows=3*upload,1*call&q=droptail&q=fq_codel&seed=1&speed=1&t=8000ms&paused=1";

test("the page opens with a moving comparison and loads nothing afterwards", () =>
  visit("", async (page, { requests }) => {
    const clock = () => page.evaluate(() => globalThis.playground.nowMs);
    await page.waitForFunction(() => globalThis.playground.loaded);
    const loaded = requests.length;
    await page.waitForFunction((ms) => globalThis.playground.nowMs > ms + 500, await clock());
    assert.ok((await delay(page, "call", 0)) > 20 * (await delay(page, "call", 1)), "the call waits in drop-tail only");
    await page.keyboard.press("f");
    await settled(page);
    assert.equal(await page.locator(".pane").count(), 3);
    for (const name of ["TOML", "Python", "tc", "link to this", "keys"]) {
      await page.locator("footer > button", { hasText: name }).click();
      await page.locator("dialog > button", { hasText: "close" }).click();
    }
    await page.locator("select[aria-label='add a pane']").selectOption("cake");
    await settled(page);
    assert.equal(await page.locator(".pane").count(), 4);
    assert.equal(requests.length, loaded, "no request after load");
  }));

test("half a buffer is half a delay", () =>
  visit(HOME, async (page) => {
    const before = await delay(page, "call");
    const buffer = page.locator(".line [data-name=buffer] input[type=text]");
    await buffer.fill("150kB");
    await buffer.press("Enter");
    await settled(page);
    await run(page, 5);
    const now = await delay(page, "call");
    assert.ok(now < 0.65 * before && now > 0.3 * before, `${before} s, then ${now} s`);
  }));

test("a longer target is a longer delay, at once and without a restart", () =>
  visit("#rate=10mbit&rtt=50ms&buffer=300kB&flows=3*upload&q=codel&seed=1&t=8000ms&paused=1", async (page) => {
    const before = await delay(page, "upload");
    const target = page.locator(".pane [data-name=target] input[type=text]");
    await target.fill("40ms");
    await target.press("Enter");
    await settled(page);
    assert.match(await page.evaluate(() => location.hash), /q=codel@8000ms:.target=40ms/, "a change at this time");
    await run(page, 8);
    assert.ok((await delay(page, "upload")) > 1.5 * before);
  }));

test("dragging the dotted line sets the target", () =>
  visit("#rate=10mbit&rtt=50ms&buffer=300kB&flows=3*upload&q=codel&seed=1&t=8000ms&paused=1", async (page) => {
    const canvas = page.locator("canvas.delay");
    const box = await canvas.boundingBox();
    // Height of 5 ms on the logarithmic axis from 0.1 ms to 2 s, with margins of 6 and 4 pixels.
    const share = Math.log(0.005 / 0.0001) / Math.log(2 / 0.0001);
    const y = box.y + box.height - 4 - share * (box.height - 10);
    await page.mouse.move(box.x + 200, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, y - 25, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    const target = await page.locator(".pane [data-name=target] input[type=text]").inputValue();
    assert.match(target, /^[2-9]\d(\.\d+)?ms$/);
  }));

test("a link restores the state, with changes made while it ran", () =>
  visit(HOME, async (page) => {
    await run(page, 1.500017);
    const rate = page.locator(".line [data-name=rate] input[type=text]");
    await rate.fill("5mbit");
    await rate.press("Enter");
    await settled(page);
    await run(page, 2.250009);
    await page.locator("footer > button", { hasText: "link to this" }).click();
    const address = await page.locator("dialog textarea").inputValue();
    const [one, other] = [await summary(page, 0), await summary(page, 1)];
    await visit(new URL(address).hash, async (copy) => {
      assert.deepEqual(await summary(copy, 0), one);
      assert.deepEqual(await summary(copy, 1), other);
      assert.equal(await copy.locator(".line [data-name=rate] input[type=text]").inputValue(), "5mbit");
      assert.equal(await copy.evaluate(() => globalThis.playground.playing), false);
    });
  }));

test("the command and Python give the numbers of the page", () =>
  visit(HOME, async (page) => {
    const rate = page.locator(".line [data-name=rate] input[type=text]");
    await rate.fill("6mbit");
    await rate.press("Enter");
    await settled(page);
    await run(page, 2.000333);
    const target = page.locator(".pane").nth(1).locator("[data-name=target] input[type=text]");
    await target.fill("9ms");
    await target.press("Enter");
    await settled(page);
    await run(page, 2.100007);
    const expected = await summary(page, 1);
    await page.locator("footer > button", { hasText: "TOML" }).click();
    const file = join(folder, "export.toml");
    writeFileSync(file, await page.locator("dialog textarea").nth(1).inputValue());
    await page.locator("dialog > button", { hasText: "close" }).click();
    const command = JSON.parse(output(SOJOURN, ["run", file, "--json"]));
    assert.deepEqual(command.links, expected.links);
    assert.deepEqual(command.flows, expected.flows);
    await page.locator("footer > button", { hasText: "Python" }).click();
    const code = await page.locator("dialog textarea").nth(1).inputValue();
    const script = join(folder, "export.py");
    writeFileSync(script, `${code.replace(/print\(result\)\n$/, "")}import json; print(json.dumps(result.summary["links"]))\n`);
    assert.deepEqual(JSON.parse(output(PYTHON, [script])), expected.links);
  }));

test("keys pause, fork, go back, restart and undo", () =>
  visit(HOME.replace("&paused=1", ""), async (page) => {
    const playing = () => page.evaluate(() => globalThis.playground.playing);
    await page.keyboard.press("Space");
    assert.equal(await playing(), false);
    await settled(page);
    const now = await page.evaluate(() => globalThis.playground.nowMs);
    await page.keyboard.press("ArrowLeft");
    await settled(page);
    assert.ok(Math.abs((await page.evaluate(() => globalThis.playground.nowMs)) - (now - 5000)) < 1);
    await page.keyboard.press("f");
    await settled(page);
    assert.equal(await page.locator(".pane").count(), 3);
    assert.deepEqual(await summary(page, 2), await summary(page, 1), "a fork was the same until now");
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal(await page.locator(".pane").count(), 2);
    await page.keyboard.press("r");
    await settled(page);
    assert.equal(await page.evaluate(() => globalThis.playground.nowMs), 0);
    await page.keyboard.press("4");
    assert.equal(await page.evaluate(() => globalThis.playground.state.speed), Number.POSITIVE_INFINITY);
  }));

test("bad input is refused with the message of the command, and the run continues", () =>
  visit(HOME, async (page) => {
    const rate = page.locator(".line [data-name=rate] input[type=text]");
    await rate.fill("10");
    await rate.press("Enter");
    await settled(page);
    assert.match(await page.locator(".line > .refused").textContent(), /has no unit; a rate is written like/);
    const target = page.locator(".pane").nth(1).locator("[data-name=target] input[type=text]");
    await target.fill("5");
    await target.press("Enter");
    await settled(page);
    assert.match(await page.locator(".pane").nth(1).locator(".refused:not(:empty)").first().textContent(), /target: "5" has no unit/);
    await run(page, 1);
    assert.equal(await page.evaluate(() => globalThis.playground.state.rate), "10mbit");
    assert.ok((await delay(page, "call")) > 0.1);
  }));

const FILE = `duration = "20s"
seed = 5
[links.bottleneck]
rate = "4mbit"
delay = "10ms"
qdisc = "codel(target=15ms, limit=100p)"
[[flows]]
name = "bulk"
count = 2
path = ["bottleneck"]
rtt = "30ms"
`;

test("a dropped scenario and a dropped tc line run", () =>
  visit(HOME, async (page) => {
    await drop(page, "mine.toml", FILE);
    await settled(page);
    await run(page, 6);
    const result = await summary(page, 0);
    assert.equal(result.links.bottleneck.qdisc, "codel");
    assert.deepEqual(Object.keys(result.links), ["bottleneck"]);
    await drop(page, "setup.sh", "tc qdisc replace dev eth0 root fq_codel target 7ms\n");
    await settled(page);
    assert.match(await page.evaluate(() => location.hash), /q=fq_codel\(.*target=7ms/);
    await drop(page, "wrong.toml", "links = ");
    await settled(page);
    assert.match(await page.locator(".line > .refused").textContent(), /^wrong\.toml: neither a scenario nor/);
  }));

test("a file of the command opens, and its address holds it", async () => {
  const file = join(folder, "own.toml");
  writeFileSync(file, FILE);
  const own = await serve(file);
  const visitor = await open(browser, own.address);
  try {
    const { page } = visitor;
    assert.match(await page.locator(".file").textContent(), /own\.toml, link bottleneck/);
    await run(page, 3);
    const [expected, hash] = [await summary(page, 0), await page.evaluate(() => location.hash)];
    await visit(hash, async (copy) => assert.deepEqual(await summary(copy, 0), expected));
    assert.deepEqual(visitor.faults, []);
  } finally {
    await visitor.close();
    own.end();
  }
});

test("every step of every story runs", () =>
  visit("", async (page) => {
    const menu = page.locator("select[aria-label='story']");
    const names = await menu.locator("option").evaluateAll((options) => options.map((option) => option.value).filter(Boolean));
    assert.equal(names.length, 12);
    for (const name of names) {
      await menu.selectOption(name);
      await settled(page);
      for (;;) {
        await page.locator(".step-actions button").nth((await page.locator(".step-actions button").count()) - 2).click();
        await settled(page);
        assert.equal(await page.locator(".refused:not(:empty)").count(), 0, name);
        const next = page.locator(".step-actions button").last();
        const last = (await next.textContent()) === "close";
        await next.click();
        if (last) break;
      }
      assert.equal(await page.locator(".story").isVisible(), false);
    }
  }));

test("a colleague sees why a call stutters", () =>
  visit("", async (page) => {
    await page.locator("select[aria-label='story']").selectOption("bufferbloat");
    await settled(page);
    await page.waitForFunction(() => document.querySelector(".hero")?.dataset.feel === "bad");
    for (let i = 0; i < 2; i++) await page.locator(".step-actions button").last().click();
    await page.locator(".step-actions button.primary").click();
    await settled(page);
    await page.waitForFunction(() => document.querySelectorAll(".hero")[1]?.dataset.feel === "good");
    assert.match(await page.locator(".say").textContent(), /no longer waits/);
  }));

test("every control has a name, and the page fits a phone", () =>
  visit("", async (page) => {
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, select, input, textarea, canvas")]
        .filter((e) => !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim()))
        .map((e) => e.outerHTML),
    );
    assert.deepEqual(nameless, []);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} pixels wider than the screen`);
  }, { viewport: { width: 390, height: 844 } }));

test("with reduced motion the page is still between seconds", () =>
  visit("", async (page) => {
    assert.ok(await page.evaluate(() => matchMedia("(prefers-reduced-motion: reduce)").matches));
    await page.waitForFunction(() => globalThis.playground.nowMs > 5000);
  }, { reducedMotion: "reduce" }));

test("Chromium gives the bytes of native code for every discipline, TCP and source", async () => {
  const code =
    "import sys, json; sys.path[:0] = ['tests', '.']; import test_playground as t; " +
    "print(json.dumps([[s, t.digest(s)] for s in t.scenarios()]))";
  const list = JSON.parse(output(PYTHON, ["-c", code]));
  await visit(HOME, async (page) => {
    const direct = await inPage(page, list.map(([scenario]) => scenario));
    assert.deepEqual(direct, list.map(([, digest]) => digest));
  });
});

/** Digests that the page computes. The policy of the page permits no code from texts, so it comes from the browser. */
async function inPage(page, scenarios) {
  await page.context().addInitScript(`globalThis.digests = ${digests.toString()}`);
  await page.reload();
  await page.waitForSelector(".pane");
  return page.evaluate(async (list) => {
    const read = async (file) => (await fetch(file)).arrayBuffer();
    return globalThis.digests(await read("sojourn.wasm"), await read("rest.wasm"), list);
  }, scenarios);
}
