// The map library, which pages load when they show a map: it is larger than all of the rest.
import { addProtocol, setWorkerUrl } from 'maplibre-gl';
import 'maplibre-gl/dist/maplibre-gl.css';
import { Protocol } from 'pmtiles';
import worker from 'maplibre-gl/dist/maplibre-gl-worker.mjs?url';

// A file of the console: its Content-Security-Policy has workers from blobs refused.
setWorkerUrl(new URL(worker, document.baseURI).href);
// A style may have sources pmtiles://https://…, which are read in parts.
addProtocol('pmtiles', new Protocol().tile);

export { AttributionControl, LngLatBounds, Map, NavigationControl, ScaleControl } from 'maplibre-gl';
