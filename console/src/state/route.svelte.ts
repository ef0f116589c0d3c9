// The address after #: a path and parameters. Pages are addresses, so they can be shared.
const firstPage = '/attention';

class Route {
  path = $state('/');
  parameters = $state(new URLSearchParams());
  /** The fleet as it was last shown, with its filters. */
  fleet = $state('#/');

  /** How far the page was scrolled when it was left, if Back or Forward led here; else 0. */
  left = 0;

  constructor() {
    this.#read();
    addEventListener('hashchange', () => this.#read());
    addEventListener('scrollend', () => history.replaceState({ y: scrollY }, ''));
  }

  #read() {
    const [path = '', query = ''] = location.hash.slice(1).split('?');
    this.path = path || firstPage;
    this.parameters = new URLSearchParams(query);
    if (path === '/') this.fleet = location.hash;
    this.left = (history.state as { y: number } | null)?.y ?? 0;
    history.replaceState({ y: this.left }, ''); // a link's entry has none, so that Back differs: it closes dialogs
  }

  /** What the page is about: its path, and of a client who it is. Other parameters say how it is shown. */
  get page(): string {
    return this.path === '/client' ? `${this.path}?${this.parameters}` : this.path;
  }

  /** The number in a path such as /vehicles/42; null: there is none. */
  number(prefix: string): number | null {
    const found = this.path.match(new RegExp(`^/${prefix}/(\\d{1,15})$`));
    return found ? Number(found[1]) : null;
  }

  /** Opens what a request led to, unless the person has left the page of the request meanwhile. */
  leadOn(page: string, path: string) {
    if (this.path === page) location.hash = `#${path}`;
  }

  /** Changes a parameter of the page, without a further entry in the history. */
  set(name: string, value: string) {
    this.setAll({ [name]: value });
  }

  /** Changes several: the address changes later, so one after the other would lose the first. */
  setAll(values: Record<string, string>) {
    const next = new URLSearchParams(this.parameters);
    for (const [name, value] of Object.entries(values)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const query = next.toString();
    location.replace(`#${this.path}${query ? `?${query}` : ''}`);
  }
}

export const route = new Route();
