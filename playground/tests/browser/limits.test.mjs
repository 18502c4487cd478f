// Figures of the documentation, and what the page needs: node --test tests/browser/
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, run, serve, settled, visit } from "./browser.mjs";

let browser;
let server;

before(async () => {
  server = await serve();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.end();
});

const at = (fragment, work, options) => visit(browser, `${server.address}${fragment}`, work, options);

test("a figure of the documentation runs at the settings of its page, and opens the whole page", () =>
  at("figure.html#discipline=codel", async (page) => {
    assert.equal(await page.locator(".pane").count(), 1);
    await page.waitForFunction(() => globalThis.playground.nowMs > 4200);
    const { qdisc, params } = await page.evaluate(() => globalThis.playground.state.panes[0]);
    assert.deepEqual([qdisc, params], ["codel", { limit: "500p" }]);
    assert.equal(await page.evaluate(() => location.hash), "#discipline=codel", "the address stays");
    await page.locator("a.whole").dispatchEvent("click");
    const whole = await page.locator("a.whole").getAttribute("href");
    await at(whole, async (other) => assert.match(await other.locator(".file").textContent(), /codel under a step in load, link bottleneck/));
  }));

test("a figure that does not exist says so", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${server.address}figure.html#discipline=nothing`);
  await page.waitForFunction(() => document.body.textContent.includes("There is no figure #discipline=nothing."));
  await context.close();
});

test("figure 11 of HRED: its queue is back in the band within seconds, BLUE's is not", () =>
  at("figure.html#story=hred", async (page) => {
    await page.evaluate(() => globalThis.playground.pause(true));
    await page.locator(".step-actions button.primary").click();
    await settled(page);
    assert.match(await page.locator(".say").textContent(), /This is figure 11/);
    const now = await page.evaluate(() => globalThis.playground.nowMs / 1000);
    const queues = async (until) => {
      await run(page, until - (await page.evaluate(() => globalThis.playground.nowMs / 1000)));
      return page.evaluate(() => globalThis.playground.views.map((view) => view.series.mean("links/bottleneck/queue_bytes", 250)));
    };
    assert.ok(now < 30, "before the step");
    const [before] = await queues(30);
    const [hred, , blue] = await queues(45);
    for (const queue of [before, hred]) assert.ok(queue > 75e3 && queue < 150e3, `${queue} bytes are outside HRED's band`);
    assert.ok(blue > 200e3, `${blue} bytes`);
  }));

test("a page in the background simulates nothing", () =>
  at("", async (page) => {
    const clock = () => page.evaluate(() => globalThis.playground.nowMs);
    const hide = (hidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { configurable: true, value });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    await settled(page);
    const hidden = await clock();
    await page.waitForTimeout(1000);
    assert.equal(await clock(), hidden);
    await hide(false);
    await page.waitForFunction((ms) => globalThis.playground.nowMs > ms + 100, hidden);
  }));

test("an hour of simulated time takes less than 200 MB", () =>
  at("#rate=10mbit&rtt=50ms&buffer=300kB&flows=3*upload,1*call&q=fq_codel&seed=1&t=0ms&paused=1", async (page) => {
    const session = await page.context().newCDPSession(page);
    for (let s = 0; s < 3600; s += 60) await run(page, 60);
    const bytes = await page.evaluate(async () => {
      const app = globalThis.playground;
      const modules = await Promise.all(app.views.map((view) => view.client.memory()));
      return modules.reduce((sum, one) => sum + one, 0);
    });
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const megabytes = (bytes + usedSize) / 1e6;
    console.log(`memory after an hour: ${(bytes / 1e6).toFixed(0)} MB of the module, ${(usedSize / 1e6).toFixed(0)} MB of the page`);
    assert.ok(megabytes < 200, `${megabytes} MB`);
  }));

test("steps of 16 ms with 100 flows fit into a frame", () =>
  at("#rate=45mbit&rtt=100ms&buffer=300kB&flows=100*reno&q=codel&seed=1&t=10000ms&paused=1", async (page) => {
    const steps = await page.evaluate(async () => {
      const { client } = globalThis.playground.views[0];
      const times = [];
      for (let ms = 10_016; ms < 16_000; ms += 16) {
        const before = performance.now();
        await client.advance(ms, 20, true);
        times.push(performance.now() - before);
      }
      return times.sort((a, b) => a - b);
    });
    const [median, high] = [0.5, 0.99].map((share) => steps[Math.floor(share * steps.length)]);
    console.log(`step of 16 ms with 100 flows: median ${median.toFixed(1)} ms, 99 % ${high.toFixed(1)} ms, worst ${steps.at(-1).toFixed(1)} ms`);
    // A machine with other work delays single steps, so the bound is on the median.
    assert.ok(median < 16, `${median} ms`);
  }));

test("the page can be used soon on a slow computer behind a slow line", async () => {
  let received = 0;
  const before = async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 20, downloadThroughput: 1.25e6, uploadThroughput: 1.25e6 });
    session.on("Network.loadingFinished", ({ encodedDataLength }) => (received += encodedDataLength));
    // Turns a knob as soon as there is one.
    await page.addInitScript(() => {
      const turn = () => {
        const slider = document.querySelector(".line [data-name=rtt] input[type=range]");
        if (slider === null || performance.getEntriesByName("controls").length === 0) return void requestAnimationFrame(turn);
        globalThis.loadedAtFirst = globalThis.playground.started;
        slider.value = "900";
        slider.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("turned")));
      };
      requestAnimationFrame(turn);
    });
  };
  const { page, faults, close } = await open(browser, server.address, { before });
  const { times, early, rtt, shown } = await page.evaluate(() => ({
    times: Object.fromEntries(performance.getEntriesByType("mark").map(({ name, startTime }) => [name, startTime / 1000])),
    early: !globalThis.loadedAtFirst,
    rtt: globalThis.playground.state.rtt,
    shown: document.querySelector(".line [data-name=rtt] input[type=text]").value,
  }));
  console.log(
    `a quarter of the processor, 10 Mbit/s: controls after ${times.controls.toFixed(1)} s, the first knob turned after ${times.turned.toFixed(1)} s, ` +
      `panes run after ${times.panes.toFixed(1)} s; ${(received / 1000).toFixed(0)} kB`,
  );
  assert.ok(early, "the knob could be turned before the simulator was loaded");
  assert.notEqual(rtt, "50ms");
  assert.equal(shown, rtt);
  assert.ok(received < 1.2e6, `${received} bytes`);
  await page.locator("footer > button", { hasText: "keys" }).click();
  assert.deepEqual(faults, []);
  await close();
  // Loose, for machines with other work: the goal is 2 s.
  assert.ok(times.turned < 30, `${times.turned} s`);
});

test("on paper there are no controls", () =>
  at("", async (page) => {
    await page.evaluate(() => globalThis.playground.pause(true));
    await page.emulateMedia({ media: "print" });
    for (const name of [".params", "footer", ".speeds", ".direction"]) assert.equal(await page.locator(name).first().isVisible(), false, name);
    for (const name of ["canvas.queue", "canvas.delay", ".numbers"]) assert.equal(await page.locator(name).first().isVisible(), true, name);
    const pdf = await page.pdf({ printBackground: true });
    assert.ok(pdf.length > 10_000, "the charts are in it");
  }));
