// The stream of events. The browser reconnects by itself, with Last-Event-ID.
import type { Command, Halt } from './client';

export interface StatusChange {
  vehicle_id: number;
  at: string;
  location?: Record<string, unknown>;
  telemetry?: Record<string, unknown>;
  diagnostics?: Record<string, unknown>;
  connectivity?: Record<string, unknown>;
}

export interface Handlers {
  command(command: Command, at: string): void;
  status(change: StatusChange): void;
  presence(vehicle: number, connectivity: { status: string; last_seen: string | null }): void;
  alarm(vehicle: number, at: string, alarm: { kind: string; text: string | null }): void;
  halt(inForce: boolean, halt: Halt): void;
  /** Events may be missing: read again what is shown. Also after the first connection. */
  reset(): void;
  connected(yes: boolean): void;
}

/** Follows events until the returned function is called. */
export function follow(handlers: Handlers): () => void {
  let source: EventSource;
  let opened = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    source = new EventSource('../api/v1/admin/events');
    const on = <Data>(kind: string, handle: (data: Data) => void) =>
      source.addEventListener(kind, (event) => handle(JSON.parse((event as MessageEvent).data)));
    on<{ at: string; command: Command }>('command', (d) => handlers.command(d.command, d.at));
    on<StatusChange>('status', handlers.status);
    on<{ vehicle_id: number; connectivity: { status: string; last_seen: string | null } }>('presence', (d) =>
      handlers.presence(d.vehicle_id, d.connectivity),
    );
    on<{ vehicle_id: number; at: string; alarm: { kind: string; text: string | null } }>('alarm', (d) =>
      handlers.alarm(d.vehicle_id, d.at, d.alarm),
    );
    on<{ in_force: boolean; halt: Halt }>('halt', (d) => handlers.halt(d.in_force, d.halt));
    on('reset', () => handlers.reset());
    source.onopen = () => {
      handlers.connected(true);
      if (!opened) handlers.reset();
      opened = true;
    };
    source.onerror = () => {
      handlers.connected(false);
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
      opened = false; // without the last id: what was missed is read again
      timer = setTimeout(open, 3000);
    };
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
