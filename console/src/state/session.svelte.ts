// Who is signed in, with what rights.
import { get, type Me } from '../api/client';

// Tabs share the session: one that another person has signed in to must not show the former.
const tabs = new BroadcastChannel('session');

class Session {
  /** null: not read yet. */
  me = $state<Me | null>(null);

  constructor() {
    tabs.onmessage = ({ data }) => this.me && JSON.stringify(this.me) !== data && location.reload();
  }

  async read() {
    this.me = (await get<Me>('me')).data;
    tabs.postMessage(JSON.stringify(this.me));
  }
}

export const session = new Session();
