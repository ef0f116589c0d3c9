// The commands that are known. Pages hand over what they have read of them, and events keep them current.
import { SvelteMap } from 'svelte/reactivity';
import { getPages, type Command } from '../api/client';

const rank = { accepted: 0, sent: 1, received: 2 } as Record<string, number>;

/** Whether one reading of a command is newer than another: events may overtake each other. */
export function isNewer(read: Command, known: Command | undefined): boolean {
  if (!known) return true;
  if (read.completed_at !== known.completed_at) {
    return known.completed_at === null || (read.completed_at !== null && read.completed_at > known.completed_at);
  }
  if (read.completed_at !== null) return true; // the same end, perhaps contradicted since
  const [newer, older] = [rank[read.state] ?? 3, rank[known.state] ?? 3];
  return newer > older || (newer === older && read.attempts >= known.attempts);
}

const held = 5000;

class Commands {
  /** By id. */
  all = new SvelteMap<string, Command>();

  /** Takes what was read of a command, unless something newer is known. */
  take(command: Command) {
    if (!isNewer(command, this.all.get(command.id))) return;
    this.all.set(command.id, command);
    if (this.all.size <= held) return;
    const [first] = this.all.keys(); // the one that became known first
    if (first !== undefined) this.all.delete(first);
  }

  of(vehicle: number): Command[] {
    return [...this.all.values()]
      .filter((c) => c.vehicle_id === vehicle)
      .sort((a, b) => b.requested_at.localeCompare(a.requested_at));
  }

  /** Reads all that are open: they may have ended meanwhile. */
  async readOpen() {
    const open = [...this.all.values()].filter((c) => c.completed_at === null);
    if (open.length === 0) return;
    const [oldest] = open.map((c) => c.requested_at).sort();
    const { items, more } = await getPages<Command>(`commands?from=${oldest}`, held / 100);
    for (const command of items) this.take(command);
    const read = new Set(items.map((c) => c.id));
    for (const { id } of open) if (!more && !read.has(id)) this.all.delete(id); // its vehicle belongs to another agency now
  }
}

export const commands = new Commands();
