// The stream of events. It is read with fetch: EventSource would hide why there is none, and the
// pings by which a connection is known to live.
import { endSession, type Command, type Halt } from './client';
import type { AlertChange } from '../state/alerts.svelte';
import { clean } from '../text';
import { serverTime } from './servertime';
import { EventReader, type ServerEvent } from './sse';

export interface StatusChange {
  vehicle_id: number;
  at: string;
  location?: Record<string, unknown>;
  telemetry?: Record<string, unknown>;
  diagnostics?: Record<string, unknown>;
  connectivity?: Record<string, unknown>;
  oem_data?: Record<string, unknown>;
  /** Fields whose values are too large for an event. */
  too_large?: string[];
}

/** A booking was made or changed. */
export interface BookingChange {
  vehicle_id: number;
  booking_id: number;
}

/** What has become of a start, pause, resumption or end of a rental. */
export interface RentalChange extends BookingChange {
  transition: { id: string; state: string; needs_staff: boolean };
}

export interface Handlers {
  command(command: Command, at: string): void;
  status(change: StatusChange): void;
  presence(vehicle: number, connectivity: { status: string; last_seen: string | null }): void;
  alert(change: AlertChange): void;
  halt(inForce: boolean, halt: Halt): void;
  booking(change: BookingChange): void;
  rental(change: RentalChange): void;
  /** Events may be missing: read again what is shown. Also after the first connection. */
  reset(): void;
  /** An event could not be handled: what is shown may be old until it is read again. reset() follows. */
  failed(error: unknown): void;
  /**
   * Whether events arrive; if not, why, in the words of the API; null: the service cannot read them; empty: it cannot be
   * reached. since, in the service's time: from when on events are missing; without one, from now on.
   */
  connected(yes: boolean, why: string | null, since?: number): void;
}

// The service sends a ping every 15 s.
const silentFor = 25_000;
const tick = 1000;
const retryAfter = 2000;

/** Follows events until the returned function is called. */
export function follow(handlers: Handlers): () => void {
  const stop = new AbortController();
  void run(handlers, stop.signal);
  return () => stop.abort();
}

async function run(handlers: Handlers, stopped: AbortSignal) {
  let last = '';
  while (!stopped.aborted) {
    const connection = new AbortController();
    const end = () => connection.abort();
    stopped.addEventListener('abort', end, { once: true });
    addEventListener('offline', end, { once: true });
    let why = '';
    let since: number | undefined;
    let heard = serverTime.now();
    let quiet = 0; // ticks
    // Timers stand still while the computer sleeps, and the clock goes on.
    const watch = setInterval(() => {
      if (++quiet * tick <= silentFor && serverTime.now() - heard <= silentFor) return;
      since = heard;
      end();
    }, tick);
    const hear = () => {
      heard = serverTime.now();
      quiet = 0;
    };
    try {
      const response = await fetch('../api/v1/admin/events', {
        headers: { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) },
        credentials: 'same-origin',
        cache: 'no-store',
        signal: connection.signal,
      });
      if (response.status === 401) {
        endSession();
        return;
      }
      if (!response.ok || !response.body) {
        why = (await response.json().then(clean).catch(() => null))?.message ?? response.statusText;
      } else {
        handlers.connected(true, '');
        if (!last) handlers.reset();
        last = await readAll(response.body, last, handlers, hear);
      }
    } catch {
      // The connection ended: the network, or the service.
    } finally {
      clearInterval(watch);
      stopped.removeEventListener('abort', end);
      removeEventListener('offline', end);
      connection.abort();
    }
    if (stopped.aborted) return;
    handlers.connected(false, why, since);
    await new Promise((resolve) => setTimeout(resolve, retryAfter));
  }
}

/** Hands over events until the connection ends, and calls hear for all that arrives. Returns the position of the last event. */
async function readAll(body: ReadableStream<Uint8Array>, last: string, handlers: Handlers, hear: () => void): Promise<string> {
  const events = new EventReader();
  events.lastID = last;
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      hear();
      handleAll(events.read(decoder.decode(value, { stream: true })), handlers);
    }
  } catch {
    // Cut: what was read counts.
  }
  return events.lastID;
}

/** Hands over events. After one that could not be handled, what is shown is read again. */
export function handleAll(events: ServerEvent[], handlers: Handlers) {
  const errors: unknown[] = [];
  for (const event of events) {
    try {
      handle(event, handlers);
    } catch (error) {
      console.error(`event ${event.event} could not be handled`, error);
      errors.push(error);
    }
  }
  if (errors.length === 0) return;
  handlers.failed(errors[0]);
  handlers.reset();
}

function handle({ event, data }: ServerEvent, handlers: Handlers) {
  const d = clean(JSON.parse(data));
  switch (event) {
    case 'command':
      return handlers.command(d.command, d.at);
    case 'status':
      return handlers.status(d);
    case 'presence':
      return handlers.presence(d.vehicle_id, d.connectivity);
    case 'alert':
      return handlers.alert(d);
    case 'halt':
      return handlers.halt(d.in_force, d.halt);
    case 'booking':
      return handlers.booking(d);
    case 'rental':
      return handlers.rental(d);
    case 'reset':
      return handlers.reset();
    case 'stalled':
      return handlers.connected(false, null, Date.parse(d.at));
    case 'resumed':
      return handlers.connected(true, '');
  }
}
