// Clients that are found by a part of their name, while people type it.
import { get, type Client } from '../api/client';

const askAfter = 200;
const shortest = 2; // letters

const foundAtMost = 20; // by the service

const find = (query: Record<string, string>) => get<Client[]>(`clients?${new URLSearchParams(query)}`);

/** Whether a client has a card or a booking; also where that cannot be found out. */
export const isKnown = (agency_id: number, client: string): Promise<boolean> =>
  find({ q: client, agency_id: String(agency_id) }).then(
    ({ data }) => data.length === foundAtMost || data.some((c) => c.client === client),
    () => true,
  );

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
      find({ q: asked }).then(
        ({ data }) => asked === this.#text && (this.found = data),
        () => {},
      );
    }, askAfter);
  }
}

export const clientPage = ({ agency_id, client }: Client) => `#/client?${new URLSearchParams({ agency_id: String(agency_id), client })}`;
