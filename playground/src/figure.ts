/** Figure of a page of the documentation: `#discipline=NAME`, or `#story=NAME`. */

import { App } from "./app";
import { figureOf } from "./model/figures";

const root = document.getElementById("app")!;
const place = figureOf(location.hash);
if (place === undefined) root.textContent = `There is no figure ${location.hash}.`;
else {
  const app = new App(root, place);
  // For the console of the browser, and for tests.
  Object.assign(window, { playground: app });
  app.start().catch((error: unknown) => app.fail(error));
}
