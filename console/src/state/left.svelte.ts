// Why requests failed whose page the person has left before the answer: each page shows it.
import { failure } from '../texts/index.svelte';

class Left {
  all = $state.raw<{ page: string; text: string }[]>([]);

  /** Says why what was requested on a page, such as #/vehicles/1, failed. */
  say(page: string, about: string, error: unknown) {
    this.all = [...this.all, { page, text: `${about}: ${failure(error)}` }];
  }

  forget(one: object) {
    this.all = this.all.filter((other) => other !== one);
  }
}

export const left = new Left();
