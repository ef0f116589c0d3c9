// What was typed when the session ended, or the page was loaded again: the same person has it again then.
import { onDestroy } from 'svelte';
import { session } from './session.svelte';

const place = 'forms';

interface Kept {
  person: string;
  values: Record<string, unknown>;
}

const shown = new Map<string, () => unknown>();

/** Stores what is typed in the forms that are shown. */
export function keepForms() {
  const values = Object.fromEntries([...shown].map(([name, read]) => [name, read()]).filter(([, value]) => value !== null));
  if (session.me && Object.keys(values).length > 0)
    sessionStorage.setItem(place, JSON.stringify({ person: session.me.subject, values } satisfies Kept));
}

/** Keeps a form of a component. read returns null while nothing is typed; restore gets what it returned last. */
export function keptForm<Values>(name: string, read: () => Values | null, restore: (values: Values) => void) {
  shown.set(name, read);
  onDestroy(() => shown.delete(name));
  $effect(() => {
    if (!session.me) return;
    const kept = JSON.parse(sessionStorage.getItem(place) ?? 'null') as Kept | null;
    if (!kept || !(name in kept.values)) return;
    const { [name]: values, ...rest } = kept.values;
    const isOver = kept.person !== session.me.subject || Object.keys(rest).length === 0;
    if (isOver) sessionStorage.removeItem(place);
    else sessionStorage.setItem(place, JSON.stringify({ ...kept, values: rest }));
    if (kept.person === session.me.subject) restore(values as Values);
  });
}
