// Takes a picture of the page: node tests/browser/shot.mjs FRAGMENT OUT.png WIDTH HEIGHT [light|dark] [SCALE]
import { launch, open, serve } from "./browser.mjs";

const [fragment, path, width, height, colorScheme = "light", scale = "1"] = process.argv.slice(2);
const [server, browser] = [await serve(), await launch()];
const viewport = { width: Number(width), height: Number(height) };
const { page, faults } = await open(browser, server.address + fragment, { viewport, colorScheme, deviceScaleFactor: Number(scale) });
await page.waitForTimeout(2500);
await page.screenshot({ path });
console.log(faults);
await browser.close();
server.end();
