// Which page is at which address. A page is loaded when it is first opened.
import type { Component } from 'svelte';
import NoPage from './pages/NoPage.svelte';

type Page = { default: Component<any> };

const table: Record<string, () => Promise<Page>> = {
  '/attention': () => import('./pages/Attention.svelte'),
  '/': () => import('./pages/Fleet.svelte'),
  '/vehicles/{number}': () => import('./pages/Vehicle.svelte'),
  '/bulk': () => import('./pages/Bulks.svelte'),
  '/bulk/{uuid}': () => import('./pages/Bulk.svelte'),
  '/commands': () => import('./pages/Commands.svelte'),
  '/commands/{uuid}': () => import('./pages/Command.svelte'),
  '/bookings': () => import('./pages/Bookings.svelte'),
  '/bookings/{number}': () => import('./pages/Booking.svelte'),
  '/client': () => import('./pages/Client.svelte'),
  '/charges': () => import('./pages/Charges.svelte'),
  '/activity': () => import('./pages/Activity.svelte'),
  '/agencies': () => import('./pages/Agencies.svelte'),
  '/units': () => import('./pages/Units.svelte'),
  '/tour': () => import('./pages/Tour.svelte'),
};

const routes = Object.entries(table).map(([path, load]) => {
  const pattern = path
    .replace('{number}', '(?<number>\\d{1,15})')
    .replace('{uuid}', '(?<uuid>[\\da-fA-F]{8}(?:-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12})');
  let loaded: Page | undefined;
  return { pattern: new RegExp(`^${pattern}$`), load: () => loaded ?? load().then((page) => (loaded = page)) };
});

/** The page at a path: what loads it, immediately where it was loaded before, and the id that stands in the path. */
export function pageAt(path: string): { load: () => Page | Promise<Page>; id?: number | string } {
  for (const { pattern, load } of routes) {
    const found = pattern.exec(path);
    if (found) return { load, id: found.groups?.uuid ?? Number(found.groups?.number) };
  }
  return { load: () => ({ default: NoPage }) };
}

/** Loads the page at a path before it is shown. If that fails, showing it says so. */
export async function prefetch(path: string) {
  await Promise.resolve(pageAt(path).load()).catch(() => {});
}
