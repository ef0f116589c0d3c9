// Clients that are found by a part of their name, while people type it.
import { get, type Client } from '../api/client';

const askAfter = 200;
const shortest = 2; // letters

export class ClientSearch {
  found = $state.raw<Client[]>([]);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #text = '';

  /** Finds the clients with a text in their name, a moment later. Where that fails there are none. */
  find(text: string) {
    this.#text = text.trim();
    clearTimeout(this.#timer);
    this.found = [];
    if (this.#text.length < shortest) return;
    const asked = this.#text;
    this.#timer = setTimeout(() => {
      get<Client[]>(`clients?${new URLSearchParams({ q: asked })}`).then(
        ({ data }) => asked === this.#text && (this.found = data),
        () => {},
      );
    }, askAfter);
  }
}

export const clientPage = ({ agency_id, client }: Client) => `#/client?${new URLSearchParams({ agency_id: String(agency_id), client })}`;
