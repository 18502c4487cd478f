import { App } from "./app";

const root = document.getElementById("app")!;
const app = new App(root);
// For the console of the browser, and for tests.
Object.assign(window, { playground: app });
app.start().catch((error: unknown) => app.fail(error));
