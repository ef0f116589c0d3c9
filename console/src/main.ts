import { mount } from 'svelte';
import './style.css';
import App from './App.svelte';
import { prefetch } from './routes';
import { route } from './state/route.svelte';
import { language } from './texts/index.svelte';

void prefetch(route.path); // while the texts are loaded
language.begin().then(
  () => {
    document.body.replaceChildren(); // what index.html says meanwhile
    mount(App, { target: document.body });
  },
  () => {
    // There are no texts to say it with.
    const again = document.createElement('button');
    again.textContent = 'The console could not be loaded. Load it again';
    again.onclick = () => location.reload();
    document.body.replaceChildren(again);
  },
);
