// The file of streets (--map), where the service has one: an archive that the browser reads in parts.
import { addProtocol } from 'maplibre-gl';
import { Compression, FetchSource, PMTiles, Protocol, SharedPromiseCache, type DecompressFunc } from 'pmtiles';
import { ApiError, endSession } from '../api/client';
import { t } from '../texts/index.svelte';
import type { Box } from './markers';

export interface Archive {
  /** For a source of the map library. */
  url: string;
  /** HTML that names whose data it is. */
  attribution: string;
  bounds: Box;
  /** The map draws nothing of it below this level. */
  minZoom: number;
}

const answerWithin = 10_000;
const protocol = new Protocol();
addProtocol('pmtiles', protocol.tile);

/** The service's file of streets; null: it has none. */
export async function findArchive(): Promise<Archive | null> {
  const address = new URL('map.pmtiles', document.baseURI);
  const request = { headers: { Range: 'bytes=0-0', Accept: 'application/json' }, cache: 'no-store', signal: AbortSignal.timeout(answerWithin) } as const;
  const response = await fetch(address, request).catch(() => {
    throw new Error(t().trouble.unreachable);
  });
  if (response.status === 204) return null;
  if (response.status === 401) endSession();
  if (!response.ok) {
    const { message = response.statusText, error } = await response.json().catch(() => ({}));
    throw new ApiError(response.status, error?.code ?? 'unknown', message);
  }
  await response.body?.cancel();
  if (response.status !== 206) throw new Error(t().streets.noRanges);
  // A file that was replaced has another address, so that the browser never mixes the two.
  address.searchParams.set('v', response.headers.get('ETag')?.replace(/^W\//, '').replaceAll('"', '') ?? '');
  const archive = new PMTiles(new Parts(address.href), new SharedPromiseCache(undefined, undefined, unpack), unpack);
  const [header, metadata] = await Promise.all([archive.getHeader(), archive.getMetadata()]);
  protocol.add(archive);
  return {
    url: `pmtiles://${address.href}`,
    attribution: credit((metadata as { attribution?: unknown }).attribution),
    bounds: [header.minLon, header.minLat, header.maxLon, header.maxLat],
    minZoom: header.minZoom,
  };
}

/** Requests each part at a separate address: those of one address wait for each other in the cache of a browser. */
class Parts extends FetchSource {
  override getBytes(...[offset, ...rest]: Parameters<FetchSource['getBytes']>) {
    return new FetchSource(`${this.url}&at=${offset}`).getBytes(offset, ...rest);
  }
}

/** Unpacks a part of the file. A browser's own error does not say what is wrong. */
const unpack: DecompressFunc = async (part, compression) => {
  if (compression !== Compression.Gzip) return part;
  try {
    return await new Response(new Blob([part]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
  } catch {
    throw new Error(t().streets.damaged);
  }
};

/** The text of what a file says of its origin, as a link where it is OpenStreetMap. */
function credit(attribution: unknown): string {
  const said = new DOMParser().parseFromString(typeof attribution === 'string' ? attribution : '', 'text/html').body.textContent;
  const link = document.createElement('a');
  link.textContent = said || '© OpenStreetMap';
  if (!link.textContent.includes('OpenStreetMap')) return link.innerHTML;
  link.href = 'https://www.openstreetmap.org/copyright';
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  return link.outerHTML;
}
