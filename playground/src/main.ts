import { App } from "./app";

const root = document.getElementById("app")!;
const app = new App(root);
app.start().catch((error: unknown) => app.fail(error));
