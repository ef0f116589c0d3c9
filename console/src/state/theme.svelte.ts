// Light or dark: as the system has it, until a person chooses.
import { keep } from './storage';

export const themes = ['auto', 'light', 'dark'] as const;
export type ThemeName = (typeof themes)[number];

const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  name = $state<ThemeName>(themes.find((name) => name === localStorage.getItem('theme')) ?? 'auto');
  #systemDark = $state(system.matches);

  constructor() {
    system.addEventListener('change', (event) => (this.#systemDark = event.matches));
    this.#apply();
  }

  get dark(): boolean {
    return this.name === 'dark' || (this.name === 'auto' && this.#systemDark);
  }

  choose(name: ThemeName) {
    this.name = name;
    keep(localStorage, 'theme', name);
    this.#apply();
  }

  #apply() {
    document.documentElement.dataset.theme = this.name;
  }
}

export const theme = new Theme();
