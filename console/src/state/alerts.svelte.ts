// The alerts that are open: what needs a person. They are read once, and events keep them current.
import { ApiError, call, getPages, type Alert } from '../api/client';

export const severities = ['critical', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

// Of each severity, so that many of one push none of another out of sight.
const pagesOfEach = 5;
// An event does not say who has the vehicle; and what could not be read, must be.
const readAgainAfter = 5000;

export interface AlertChange {
  change: 'opened' | 'raised' | 'acknowledged' | 'cleared';
  alert: Omit<Alert, 'holder'>;
}

/** The order in which people look at alerts: those that no one has seen, the most severe, the newest. */
export function inOrder(alerts: Iterable<Alert>): Alert[] {
  const rank = (a: Alert) => (a.acknowledged_at === null ? 0 : 10) + severities.indexOf(a.severity);
  return [...alerts].sort((a, b) => rank(a) - rank(b) || b.opened_at.localeCompare(a.opened_at) || b.id.localeCompare(a.id));
}

export class Alerts {
  /** Open ones, by id. */
  #open = $state.raw<ReadonlyMap<string, Alert>>(new Map());
  loaded = $state(false);
  /** The severities of which there are more than were read. */
  more = $state.raw<Severity[]>([]);
  problem = $state('');
  #reading = 0;
  #changed = new Map<string, Alert | null>(); // while all are read; null: cleared
  #later: ReturnType<typeof setTimeout> | undefined;
  #watching = new Set<(change: AlertChange) => void>();

  queue = $derived(inOrder(this.#open.values()));
  /** How many of each severity no one has seen. */
  unseen = $derived.by(() => {
    const count = { critical: 0, warning: 0, info: 0 };
    // One of a later version has none: it is counted with the most severe, as it is shown.
    const rank = (severity: Severity) => (severity in count ? severity : 'critical');
    for (const { severity, acknowledged_at } of this.#open.values()) if (acknowledged_at === null) count[rank(severity)]++;
    return count;
  });

  async read() {
    clearTimeout(this.#later);
    this.#later = undefined;
    const reading = ++this.#reading;
    this.#changed.clear();
    try {
      const lists = await Promise.all(severities.map((of) => getPages<Alert>(`alerts?state=open&severity=${of}`, pagesOfEach)));
      if (reading !== this.#reading) return;
      const open = new Map(lists.flatMap(({ items }) => items).map((alert) => [alert.id, alert]));
      for (const [id, alert] of this.#changed) {
        if (alert === null) open.delete(id);
        else open.set(id, { ...alert, holder: open.get(id)?.holder ?? null });
      }
      const before = this.#open;
      this.#open = open;
      this.more = severities.filter((_, i) => lists[i]?.more);
      this.problem = '';
      // What happened while no events came.
      if (this.loaded)
        for (const alert of open.values()) if (before.get(alert.id)?.severity !== alert.severity) this.#tell({ change: 'opened', alert });
      this.loaded = true;
    } catch (error) {
      if (reading !== this.#reading || (error instanceof ApiError && error.status === 401)) return;
      this.problem = error instanceof Error ? error.message : String(error);
      this.#readLater();
    }
  }

  #readLater() {
    this.#later ??= setTimeout(() => void this.read(), readAgainAfter);
  }

  /** Takes what an event says. */
  take({ change, alert }: AlertChange) {
    this.#put(change === 'cleared' ? null : { ...alert, holder: this.#open.get(alert.id)?.holder ?? null }, alert.id);
    if (change === 'opened') this.#readLater();
    this.#tell({ change, alert });
  }

  #tell(change: AlertChange) {
    for (const listener of this.#watching) listener(change);
  }

  #put(alert: Alert | null, id: string) {
    this.#changed.set(id, alert);
    const open = new Map(this.#open);
    if (alert === null) open.delete(id);
    else open.set(id, alert);
    this.#open = open;
  }

  /** Acknowledges an alert, and returns it: where another person was faster, with what that one noted. */
  async acknowledge(id: string, note: string): Promise<Alert> {
    const { data } = await call<Alert>('POST', `api/v1/admin/alerts/${id}/acknowledge`, { body: note.trim() ? { note } : {} });
    this.#put(data.state === 'open' ? data : null, id);
    return data;
  }

  /** Hands over changes until the returned function is called. */
  watch(listener: (change: AlertChange) => void): () => void {
    this.#watching.add(listener);
    return () => this.#watching.delete(listener);
  }
}

export const alerts = new Alerts();
