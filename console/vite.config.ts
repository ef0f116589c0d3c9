import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  // Relative: the console works below any path prefix.
  base: './',
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // A data: URL in a style would need its own rule in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    target: 'es2023',
  },
  server: {
    // `npm run dev` shows changes while the service of `make dev` runs.
    proxy: { '/api': 'http://127.0.0.1:8080', '/auth': 'http://127.0.0.1:8080' },
  },
  test: { include: ['src/**/*.test.ts'] },
});
