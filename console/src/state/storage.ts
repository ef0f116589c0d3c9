/** Keeps a text in a storage of the browser; null: removes it. Where there is no room, it is not kept. */
export function keep(store: Storage, name: string, text: string | null) {
  try {
    if (text === null) store.removeItem(name);
    else store.setItem(name, text);
  } catch {
    // The page goes on without it.
  }
}
