import { defineConfig } from "vite";

// Names without a hash: the relay serves them with a tag of their content. Nothing is put inline, since the page's own
// policy forbids that; and all paths are relative, since a token may stand before them.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith(".css")) ? "app.css" : "[name][extname]"),
      },
    },
  },
  test: { include: ["src/**/*.test.ts"] },
});
