// Takes pictures of the page: node tests/browser/shot.mjs URL OUT WIDTH HEIGHT [dark] [WAIT_MS]
import { chromium } from "playwright-core";

const [url, out, width, height, scheme = "light", wait = "2500"] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: Number(width), height: Number(height) }, colorScheme: scheme });
page.on("console", (message) => console.log("console:", message.type(), message.text()));
page.on("pageerror", (error) => console.log("error:", error.message));
await page.goto(url);
await page.waitForTimeout(Number(wait));
await page.screenshot({ path: out, fullPage: process.env.FULL === "1" });
console.log(await page.evaluate(() => [location.hash, document.querySelector(".clock")?.textContent, [...document.querySelectorAll(".hero")].map((e) => e.textContent)]));
await browser.close();
