// Who is signed in, with what rights.
import { get, type Me } from '../api/client';

// Tabs share the session of their installation: one that another person has signed in to must not show the former.
const tabs = new BroadcastChannel(`session ${new URL('.', location.href).pathname}`);

/** Who it is: when the access token ends is none of that, since each renewal changes it. */
const identity = (me: Me) => JSON.stringify({ ...me, expires_at: '' });

class Session {
  /** null: not read yet. */
  me = $state<Me | null>(null);
  /** It has ended. Once the person has signed in again, in any tab, all go on. */
  isOver = false;

  constructor() {
    tabs.onmessage = ({ data }) => (this.isOver || (this.me && identity(this.me) !== data)) && location.reload();
  }

  async read() {
    this.me = (await get<Me>('me')).data;
    tabs.postMessage(identity(this.me));
  }
}

export const session = new Session();
