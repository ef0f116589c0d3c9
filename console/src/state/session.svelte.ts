// Who is signed in, with what rights.
import { get, type Me } from '../api/client';

class Session {
  /** null: not read yet. */
  me = $state<Me | null>(null);

  async read() {
    this.me = (await get<Me>('me')).data;
  }
}

export const session = new Session();
