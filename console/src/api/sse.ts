/** One server-sent event. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Reads a stream of server-sent events from pieces of text, as they arrive. */
export class EventReader {
  /** Of the last event; also of a line that has no event, such as a ping. */
  lastID = '';
  #rest = '';
  #id = '';
  #event = '';
  #data: string[] = [];

  read(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const events: ServerEvent[] = [];
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#id) this.lastID = this.#id;
        if (this.#data.length) events.push({ event: this.#event || 'message', data: this.#data.join('\n') });
        this.#event = '';
        this.#data = [];
        continue;
      }
      const [name = '', ...rest] = line.split(':');
      const value = rest.join(':').replace(/^ /, '');
      if (name === 'id') this.#id = value;
      else if (name === 'event') this.#event = value;
      else if (name === 'data') this.#data.push(value);
    }
    return events;
  }
}
