import { defineConfig } from "vitest/config";

// Relative addresses: the same folder is served by the command and is part of the site, whose pages
// have the figure.
export default defineConfig({
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, rollupOptions: { input: ["index.html", "figure.html"] } },
  worker: { format: "es" },
  test: { include: ["tests/unit/**/*.test.ts"] },
});
