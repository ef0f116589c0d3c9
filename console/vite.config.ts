import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  // Relative: the console works below any path prefix.
  base: './',
  // The map library from its sources: its bundle would be one file of more than a megabyte.
  resolve: {
    // Tests that draw pages need Svelte as browsers have it.
    ...(process.env.VITEST ? { conditions: ['browser'] } : {}),
    alias: [{ find: /^maplibre-gl$/, replacement: fileURLToPath(new URL('node_modules/maplibre-gl/src/index.ts', import.meta.url)) }],
  },
  // Its classes declare fields of their parents again, which must not reset them.
  oxc: { typescript: { removeClassFieldsWithoutInitializer: true }, assumptions: { setPublicClassFields: true } },
  build: {
    outDir: process.env.CONSOLE_DIST ?? 'dist',
    emptyOutDir: true,
    // A data: URL in a style would need its own rule in the Content-Security-Policy.
    assetsInlineLimit: 0,
    // What a page imports is loaded with it, not after it.
    modulePreload: { polyfill: false },
    // From it a test computes what browsers load.
    manifest: true,
    target: 'es2023',
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'map-style', test: /node_modules\/@(maplibre|mapbox)\// },
            { name: 'map', test: /node_modules\/maplibre-gl\/src\// },
          ],
        },
      },
    },
  },
  server: {
    // `npm run dev` shows changes while the service of `make dev` runs.
    proxy: {
      '/api': 'http://127.0.0.1:8080',
      '/auth': 'http://127.0.0.1:8080',
    },
  },
  // A zone with summer time, whatever the computer has. Tests that draw pages are slow while the machine does other work.
  test: {
    include: ['src/**/*.test.ts'],
    css: { include: [/(tokens|style)\.css/] },
    env: { TZ: 'Europe/Berlin' },
    maxWorkers: '100%',
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
