import { defineConfig } from "vitest/config";

// Relative addresses: the same folder is served by the command and is part of the site.
export default defineConfig({
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: "es" },
  test: { include: ["tests/unit/**/*.test.ts"] },
});
